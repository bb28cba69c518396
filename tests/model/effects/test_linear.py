"""Effects linear in the motion: stored energy and momentum, powers."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.model.effects.dry_friction import Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.effect import Motion
from dynid.model.effects.linear import Armature, Offset, Viscous, ViscousPolynomial
from dynid.model.effects.wrapped import Coupled
from effect_cases import WRIST, N, motion


@pytest.mark.parametrize(
    "effect", [Armature(), Offset(), Coupled(Armature(), WRIST, motors=(1, 3)), Coupled(Offset(), WRIST)]
)
def test_energy_changes_by_the_work_of_the_signals(effect):
    """``E(q, v)`` along ``q(t)``: its rate is the signal times the speed that the column acts on."""
    m, h = motion(6), 1e-5
    at = [Motion(m.position + s * h * m.velocity, m.velocity + s * h * m.acceleration, m.acceleration) for s in (1, -1)]
    rate = (effect.energy_signals(at[0]) - effect.energy_signals(at[1])) / (2.0 * h)
    np.testing.assert_allclose(rate, effect.signals(m) * (m.velocity @ effect.incidence(N)), atol=1e-8)


@pytest.mark.parametrize("effect", [Armature(), Coupled(Armature(), WRIST, motors=(1, 3))])
def test_momentum_changes_by_the_signals(effect):
    m, h = motion(7), 1e-5
    at = [Motion(m.position, m.velocity + s * h * m.acceleration, m.acceleration) for s in (1, -1)]
    np.testing.assert_allclose(
        (effect.momentum_signals(at[0]) - effect.momentum_signals(at[1])) / (2.0 * h), effect.signals(m), atol=1e-8
    )


def test_friction_stores_nothing():
    for effect in (Viscous(), Coulomb(), SmoothCoulomb(), Sigmoid(), Stribeck(), LoadCoulomb(), Coupled(Viscous(), WRIST)):
        assert effect.energy_signals(motion()) is None
        assert effect.momentum_signals(motion()) is None


@pytest.mark.parametrize("powers", [(1, 2), (), (2, 2), (2.5,), (7,)])
def test_powers_are_checked(powers):
    with pytest.raises(InputError, match="viscous polynomial has powers"):
        ViscousPolynomial(powers=powers)
