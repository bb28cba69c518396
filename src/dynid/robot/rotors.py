"""Effects as matrices: from column signals to torques, and what rotors add to the inertia matrix."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.robot.effects import Effect, Motion
from dynid.robot.model import Robot


def effect_gains(robot: Robot) -> list[tuple[Effect, Array]]:
    """Every effect with the matrix from its signals to the torques of the driven joints, ``(joints, columns)``."""
    gains: list[tuple[Effect, Array]] = []
    start = robot.parameters.n_inertial
    for effect in robot.effects:
        incidence = effect.incidence(len(robot.driven))
        gains.append((effect, incidence * robot.parameters.values[start : start + incidence.shape[1]]))
        start += incidence.shape[1]
    return gains


def rotor_matrix(robot: Robot) -> Array:
    """What rotors add to the inertia matrix, ``(dof, dof)``: effects that are no friction are linear in the acceleration."""
    n = len(robot.driven)
    still = np.zeros((n, n))
    added = np.zeros((robot.n_dof, robot.n_dof))
    for effect, gain in effect_gains(robot):
        if not effect.is_friction:
            added[np.ix_(robot.driven, robot.driven)] += gain @ effect.signals(Motion(still, still, np.eye(n), still)).T
    return added
