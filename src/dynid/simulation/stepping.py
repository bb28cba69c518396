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
from dynid.errors import InconsistentModelError
from dynid.inertia import is_consistent
from dynid.recording.samples import Samples
from dynid.regression.closed_dynamics import ClosedDynamics
from dynid.robot.model import Robot
from dynid.robot.rotors import coupled_rotors
from dynid.simulation.friction import COULOMB_WIDTH, friction_slope, refuse_acceleration_effects, smoothed

LARGEST_STEP = 0.75
"""Largest product of friction rate and step; Runge-Kutta of fourth order is stable up to 2.78."""

MOST_STEPS = 8
"""Where friction would need more steps per tick than that, an implicit method with steps of its own is faster."""

_POSES = 32
"""Poses of the reference at which the inertia matrix is looked at."""


def stable_steps(robot: Robot, reference: Samples, tick_s: float, substeps: int | None) -> tuple[Robot, int | None]:
    """The robot with smooth Coulomb friction, and the explicit steps per tick; None where these would be too many."""
    refuse_acceleration_effects(robot)
    mobilities = _mobilities(robot, reference)
    moving = smoothed(robot, COULOMB_WIDTH)
    if substeps is not None:
        return moving, substeps
    steps = max(1, int(np.ceil(_rate(moving, mobilities) * tick_s / LARGEST_STEP)))
    return moving, steps if steps <= MOST_STEPS else None


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
    return ClosedDynamics(robot).mobility if robot.loops else mobility(integration_model(robot))


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
