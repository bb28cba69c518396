"""Effects of every kind for tests, and a motion of four joints."""

from __future__ import annotations

import numpy as np

from dynid.model.effects.dry_friction import AsymmetricCoulomb, Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.effect import Effect, Motion
from dynid.model.effects.linear import Armature, LoadViscous, Offset, Viscous, ViscousPolynomial
from dynid.model.effects.wrapped import Coupled
from dynid.model.joint import Joint
from problems import random_tree

N = 4

WRIST = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, -1.0))

SEARCHED = [
    SmoothCoulomb(smooth_width=(0.02, 0.3, 0.1, 0.5), smooth_time_s=0.05),
    SmoothCoulomb(smooth_width=0.2, smooth_time_s=0.1, dead_zone=0.1),
    AsymmetricCoulomb(smooth_width=0.2),
    Stribeck(smooth_width=0.1, smooth_time_s=0.02, stribeck_speed=(0.4, 0.5, 0.6, 0.7)),
    Stribeck(smooth_width=0.1, stribeck_speed=0.8, stribeck_exponent=1.5, form="exponential"),
    Sigmoid(slope=(2.0, 4.0, 1.0, 8.0), shift=(0.1, -0.2, 0.0, 0.05)),
    LoadCoulomb(smooth_width=0.2, smooth_time_s=0.01),
    Coupled(SmoothCoulomb(smooth_width=0.2, smooth_time_s=0.05), WRIST),
    Coupled(Sigmoid(slope=3.0, shift=0.1), WRIST, motors=(3, 4)),
]

OTHERS = [
    Viscous(),
    Coulomb(dead_zone=(0.1, 0.2, 0.3, 0.4)),
    Offset(),
    Armature(),
    ViscousPolynomial(powers=(2, 3, 5)),
    LoadViscous(),
    Coupled(Viscous(), WRIST, motors=(4,)),
    Coupled(LoadCoulomb(), WRIST),
]


def motion(seed: int = 0, samples: int = 50) -> Motion:
    rng = np.random.default_rng(seed)
    q, v, a, load = rng.normal(size=(4, samples, N))
    return Motion(q, v, a, 5.0 * load)


def joints() -> tuple[Joint, ...]:
    return random_tree(0, n_joints=N).joints


def check_derivatives(effect: Effect) -> None:
    """Slopes of the signals with every parameter that is searched for, against differences."""
    m = motion(1)
    options = effect.searched_parameters()
    assert options
    for option in options:
        values = effect.option_values(option.name, N)
        h = 1e-6 * np.maximum(np.abs(values), 0.1)
        up, down = (effect.with_option(option.name, values + s * h) for s in (1.0, -1.0))
        columns = effect.columns(range(1, N + 1), joints())
        owner = np.array([column.number - 1 for column in columns])
        numeric = (up.signals(m) - down.signals(m)) / (2.0 * h[owner])
        np.testing.assert_allclose(effect.signals_and_derivatives(m, [option.name])[1][option.name], numeric, atol=2e-7)
