"""Springs: the torque is the slope of the potential."""

import numpy as np
import pytest

from dynid.model.effects.effect import Motion
from dynid.model.effects.springs import Cable, Potential, TorsionSpring


@pytest.mark.parametrize("spring", [TorsionSpring(0.3), TorsionSpring(find_rest=True), Cable(), Potential()], ids=repr)
def test_the_torque_is_the_slope_of_the_energy(spring):
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (7, 2))
    still, step = np.zeros_like(q), 1e-6
    forth, back = (spring.energy_signals(Motion(q + sign * step, still, still)) for sign in (1.0, -1.0))
    np.testing.assert_allclose(spring.signals(Motion(q, still, still)), (forth - back) / (2.0 * step), atol=1e-8)
    assert not spring.is_friction
