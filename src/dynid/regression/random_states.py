"""Random states that excite everything a robot's equations can show."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.regression.closed_motion import feasible_positions
from dynid.robot.model import Robot


def random_states(robot: Robot, n: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Positions, velocities, accelerations and loads of ``n`` states, without regard to limits.

    Structure does not depend on limits; wide states show it best. A closed robot keeps within them, where its loops close.
    Half of the speeds keep away from zero, where signs are
    dead; the other half come from all orders of magnitude, down to those where friction peaks.
    """
    rng = np.random.default_rng(seed)
    q = feasible_positions(robot, n, rng) if robot.loops else rng.uniform(-np.pi, np.pi, (n, robot.n_position))
    if robot.floating:
        q[:, 3:7] = rng.normal(size=(n, 4))
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    v = rng.uniform(0.5, 3.0, (n, robot.n_dof)) * rng.choice([-1.0, 1.0], (n, robot.n_dof))
    v[1::2] *= np.exp(rng.uniform(np.log(1e-3), 0.0, v[1::2].shape))
    a = rng.uniform(-10.0, 10.0, (n, robot.n_dof))
    load = rng.uniform(-10.0, 10.0, (n, robot.n_dof))
    return q, v, a, load


def random_states_within_limits(robot: Robot, n: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations inside the robot's limits, where it has any, else of ordinary size."""
    rng = np.random.default_rng(seed)
    q, v, a, _ = random_states(robot, n, seed)
    first = robot.n_dof - len(robot.driven)
    low, high = robot.position_limits.T
    low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    if not robot.loops:
        q[:, first + robot.floating :] = rng.uniform(low, high, (n, len(low)))
    for array, quantity, ordinary in ((v, "dq_max", 2.0), (a, "ddq_max", 10.0)):
        bound = robot.limits(quantity)  # type: ignore[arg-type]
        bound = np.where(np.isfinite(bound), bound, ordinary)
        array[:, first:] = rng.uniform(-bound, bound, (n, len(bound)))
    return q, v, a
