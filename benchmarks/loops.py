"""Closed chains: poses of the delta solved in a batch, and a delta's regression against the per-sample projection with Pinocchio.

The reference is what a user would write: for every sample of the log, Pinocchio's regressor of the tree and ``G^T Y`` with ``G`` from the
constraint Jacobian of Pinocchio's frames, stacked and triangularised once. Positions of the passive joints are given to it for
free. Ours starts from the actuated positions alone and ends with the factors of all channels. Median of five after a warm-up, one BLAS
thread, both in one process.
"""

from __future__ import annotations

import measure

from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.closed_chains import closures_of, feasible_positions, tree_motion
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot
from dynid.regression.factor import factorise
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples

ROBOT = Path(__file__).parents[1] / "examples" / "robots" / "delta_rl5.toml"


def main() -> None:
    """Measure and print."""
    options = measure.parser(__doc__).parse_args()
    repeats, n_samples, n_poses = (1, 200, 1000) if options.smoke else (5, 5000, 10_000)
    robot = read_robot(ROBOT, effects="none")
    q = feasible_positions(robot, n_poses, np.random.default_rng(0))
    closures = closures_of(robot)
    poses = measure.median_time(lambda: closures.positions(q), repeats)
    samples = _log(robot, n_samples)
    ours = measure.median_time(lambda: factorise(TorqueRows(robot, (samples,))), repeats)
    reference = measure.median_time(_per_sample(robot, samples), min(repeats, 3))
    result = {
        "poses_ms_10000": 1e3 * poses * 10_000 / n_poses,
        "speedup_delta": reference / ours,
        "regression_us_per_sample": 1e6 * ours / n_samples,
        "reference_us_per_sample": 1e6 * reference / n_samples,
    }
    measure.print_result(result, options.json)


def _log(robot: Robot, n: int) -> Samples:
    rng = np.random.default_rng(1)
    q = feasible_positions(robot, n, rng)
    v, a = rng.normal(size=q.shape), 5.0 * rng.normal(size=q.shape)
    return Samples(0.001 * np.arange(n), q, v, a, inverse_dynamics(robot, q, v, a))


def _per_sample(robot: Robot, samples: Samples) -> Any:
    """The loop over samples, with the tree's motion computed beforehand."""
    import pinocchio as pin

    tree = robot.opened
    model = pinocchio_model(tree)
    working = model.createData()
    motion = tree_motion(robot, samples.position, samples.velocity, samples.acceleration)
    positions = to_pinocchio_position(tree, motion.position)
    actuated = closures_of(robot).actuated
    passive = np.setdiff1d(np.arange(tree.n_dof), actuated)
    frames = [
        tuple((frame.body + 1, pin.SE3(np.array(frame.placement))) for frame in (loop.first, loop.second))
        for loop in robot.loops
    ]
    assert samples.torque is not None

    def run() -> Array:
        assert samples.torque is not None
        rows = []
        for q, v, a, tau in zip(positions, motion.velocity, motion.acceleration, samples.torque, strict=True):
            Y = pin.computeJointTorqueRegressor(model, working, q, v, a)
            pin.computeJointJacobians(model, working, q)
            J = []
            for (first, local_first), (second, local_second) in frames:
                ends = []
                for joint, local in ((first, local_first), (second, local_second)):
                    own = pin.getJointJacobian(model, working, joint, pin.ReferenceFrame.LOCAL)
                    at = working.oMi[joint].rotation
                    ends.append(at @ (own[:3] - pin.skew(local.translation) @ own[3:]))
                J.append(ends[1] - ends[0])
            constraint = np.vstack(J)
            G = np.zeros((tree.n_dof, len(actuated)))
            G[actuated] = np.eye(len(actuated))
            G[passive] = -np.linalg.lstsq(constraint[:, passive], constraint[:, actuated], rcond=None)[0]
            rows.append(np.hstack([G.T @ Y, tau[:, None]]))
        return np.asarray(np.linalg.qr(np.vstack(rows), mode="r"))

    return run


if __name__ == "__main__":
    main()
