"""Integration steps that resolve friction: how many a control tick needs, and how wide a pure sign is smoothed for them.

Friction alone decays as ``M v' = -D v``; a step must resolve the largest eigenvalue of ``M^-1 D`` on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.adapters.pinocchio import pinocchio_model
from dynid.adapters.recursions import OfState, forward_dynamics, gravity_torque, inverse_dynamics, mobility
from dynid.arrays import Array
from dynid.errors import InconsistentModelError, InputError
from dynid.inertia import is_consistent
from dynid.recording.samples import Samples
from dynid.regression.closed_dynamics import ClosedDynamics
from dynid.robot.model import Robot
from dynid.robot.rotors import coupled_rotors
from dynid.simulation.friction import COULOMB_WIDTH, friction_slope, refuse_acceleration_effects, smoothed

LARGEST_STEP = 0.75
"""Largest product of friction rate and step; Runge-Kutta of fourth order is stable up to 2.78."""

MOST_STEPS_FOR_COULOMB = 16
WIDEST = 10.0
"""Where friction would need more steps than that, its sign is smoothed wider, at most so many times."""

MOST_STEPS = 1000

_POSES = 32
"""Poses of the reference at which the inertia matrix is looked at."""


def stable_steps(
    robot: Robot, reference: Samples, tick_s: float, substeps: int | None
) -> tuple[Robot, tuple[str, ...], int]:
    """The robot with smooth Coulomb friction, notes on how it was smoothed, and the steps per tick."""
    refuse_acceleration_effects(robot)
    mobilities = _mobilities(robot, reference)
    moving, widen = smoothed(robot, COULOMB_WIDTH), 1.0
    if substeps is not None:
        return moving, (), substeps
    while _rate(moving, mobilities) * tick_s > LARGEST_STEP * MOST_STEPS_FOR_COULOMB and widen < WIDEST:
        widen = min(1.25 * widen, WIDEST)
        moving = smoothed(robot, COULOMB_WIDTH * widen)
    steps = max(1, int(np.ceil(_rate(moving, mobilities) * tick_s / LARGEST_STEP)))
    if steps > MOST_STEPS:
        raise InputError(
            f"friction of robot '{robot.name}' is too stiff for its inertia: {steps} integration steps per "
            f"control tick would be needed, at most {MOST_STEPS} are taken"
        )
    notes: tuple[str, ...] = ()
    if widen > 1.0:
        notes = (f"Coulomb friction is smoothed over {COULOMB_WIDTH * widen:.3g} rad/s, because inertias are small",)
    return moving, notes, steps


def acceleration_law(robot: Robot) -> OfState:
    """``a(q, v, tau)`` of rigid bodies and rotors."""
    return ClosedDynamics(robot).acceleration if robot.loops else forward_dynamics(integration_model(robot))


def torque_law(robot: Robot) -> OfState:
    """``tau(q, v, a)`` of rigid bodies and rotors."""
    return ClosedDynamics(robot).torque if robot.loops else inverse_dynamics(integration_model(robot))


def gravity_law(robot: Robot) -> Callable[[Array], Array]:
    """``g(q)``."""
    return ClosedDynamics(robot).gravity if robot.loops else gravity_torque(integration_model(robot))


def mobility_law(robot: Robot) -> Callable[[Array], Array]:
    """``M(q)^-1``, rotors included."""
    if robot.loops:
        return ClosedDynamics(robot).mobility
    model = integration_model(robot)
    return lambda q: mobility(model, q)


def integration_model(robot: Robot) -> Any:
    """Pinocchio's model with one number per joint position, continuous joints included."""
    joints = tuple(replace(joint, kind="revolute") if joint.kind == "continuous" else joint for joint in robot.joints)
    return pinocchio_model(replace(robot, joints=joints))


def _mobilities(robot: Robot, reference: Samples) -> Array:
    """``M^-1`` at poses along the reference; a robot that has none there is refused with the links at fault."""
    inverse = mobility_law(robot)
    inverses = np.array([inverse(q) for q in reference.position[:: max(1, len(reference) // _POSES)]])
    rotors = coupled_rotors(robot)
    if rotors.any() and np.isfinite(inverses).all():
        inverses = np.linalg.inv(np.linalg.inv(inverses) + rotors)
    if not np.isfinite(inverses).all() or np.linalg.eigvalsh(inverses).min() <= 0.0:
        fine = np.atleast_1d(is_consistent(robot.parameters.inertials, allow_empty=True))
        bad = [link for link, good in zip(robot.links, fine, strict=True) if not good]
        raise InconsistentModelError(
            f"robot '{robot.name}' cannot be simulated: its inertia matrix is not positive definite; "
            f"links that are not physically consistent: {', '.join(bad) or 'none'}"
        )
    return inverses


def _rate(robot: Robot, mobilities: Array) -> float:
    """Largest rate at which friction slows the joints down, 1/s."""
    root = np.sqrt(friction_slope(robot))
    return float(np.linalg.eigvalsh(root[:, None] * mobilities * root).max())
