"""The shipped closed robots, and what tests need of them: random feasible motion, and the same robots in Pinocchio with its constraints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.closed_chains import closures_of, feasible_positions, tree_motion
from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position
from dynid.io.robots.read import read_robot
from dynid.model.loops import COMPONENTS
from dynid.model.robot import Robot

FOLDER = Path(__file__).parents[1] / "examples" / "robots"
MECHANISMS = ("four_bar", "parallelogram_arm", "five_bar", "delta_rl5")


def closed_robot(name: str, effects: str = "none") -> Robot:
    return read_robot(FOLDER / f"{name}.toml", effects)


def feasible_motion(robot: Robot, n: int, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    q = feasible_positions(robot, n, rng)
    return q, rng.normal(size=q.shape), 5.0 * rng.normal(size=q.shape)


def constrained_inverse_dynamics(robot: Robot, q: Array, v: Array, a: Array) -> tuple[Array, float, float]:
    """Motor torques from Pinocchio's tree and the multipliers of its own constraint Jacobians.

    Solves ``M a + h = S^T tau + J^T lambda`` sample by sample. Also returned: the largest part of the left side that no torque and
    multiplier explains, and the largest ``J v``: both vanish for feasible motion.
    """
    import pinocchio as pin

    motion, tree = tree_motion(robot, q, v, a), robot.opened
    model = pinocchio_model(tree)
    working = model.createData()
    actuated = closures_of(robot).actuated
    S = np.eye(tree.n_dof)[:, actuated]
    torques, unexplained, slip = [], 0.0, 0.0
    for position, velocity, acceleration in zip(motion.position, motion.velocity, motion.acceleration, strict=True):
        own = to_pinocchio_position(tree, position[None])[0]
        force = pin.rnea(model, working, own, velocity, acceleration).copy()
        pin.computeJointJacobians(model, working, own)
        J = np.vstack([_constraint(pin, model, working, tree.n_dof, loop) for loop in robot.loops])
        system = np.hstack([S, J.T])
        solution = np.linalg.lstsq(system, force, rcond=1e-11)[0]
        torques.append(solution[: len(actuated)])
        unexplained = max(unexplained, float(np.abs(system @ solution - force).max()))
        slip = max(slip, float(np.abs(J @ velocity).max()))
    return np.array(torques), unexplained, slip


def _constraint(pin: Any, model: Any, working: Any, n: int, loop: Any) -> Array:
    """Closed rows of the velocity of the second frame seen from the first."""
    poses, jacobians = [], []
    for frame in (loop.first, loop.second):
        local = pin.SE3(np.array(frame.placement))
        poses.append(local if frame.body < 0 else working.oMi[frame.body + 1] * local)
        own = np.zeros((6, n)) if frame.body < 0 else pin.getJointJacobian(model, working, frame.body + 1, pin.LOCAL)
        jacobians.append(local.inverse().toActionMatrix() @ own)
    relative = poses[0].inverse() * poses[1]
    rows = relative.toActionMatrix() @ jacobians[1] - jacobians[0]
    return np.asarray(rows[[COMPONENTS.index(component) for component in loop.closed]])
