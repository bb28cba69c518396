"""Closed robots of known truth for ``written_files.py``: the shipped delta and palletiser, their forces by Pinocchio.

    M a + h = S^T tau + J^T lambda        of the tree of joints, with the constraint Jacobian of Pinocchio's own frames

so motor torques are the first rows of ``[S^T J^T]^+`` times the forces of the tree. Of dynid only the motion of passive joints is taken;
speeds that break a loop by Pinocchio's Jacobian are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin

from dynid.dynamics.closed_chains import closures_of, tree_motion
from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position
from dynid.io.robots.read import read_robot
from dynid.model.loops import COMPONENTS
from dynid.model.robot import Robot
from truth_world import WIDTH, Friction

FILES = {"delta": "delta_rl5", "palletiser": "parallelogram_arm"}
FOLDER = Path(__file__).resolve().parents[1] / "examples" / "robots"


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A closed robot as it is: bodies of its table, rotors and friction of its motors."""

    robot: Robot
    arm: Any
    """Name and joints that are driven, as an arm has them."""
    armature: np.ndarray
    friction: Friction
    centre: np.ndarray
    amplitude: np.ndarray
    speed: np.ndarray

    def tree(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Any:
        """Motion of all joints."""
        return tree_motion(self.robot, q, v, a)

    def projections(self, motion: Any) -> np.ndarray:
        """What makes motor torques of the forces of the tree, ``(samples, motors, joints)``."""
        tree = self.robot.opened
        model = pinocchio_model(tree)
        data, S = model.createData(), np.eye(tree.n_dof)[:, closures_of(self.robot).actuated]
        found = []
        for position, velocity in zip(motion.position, motion.velocity, strict=True):
            pin.computeJointJacobians(model, data, to_pinocchio_position(tree, position[None])[0])
            J = np.vstack([_closed_rows(model, data, tree.n_dof, loop) for loop in self.robot.loops])
            assert np.abs(J @ velocity).max() < 1e-6 * max(np.abs(velocity).max(), 1.0)
            found.append(np.linalg.pinv(np.hstack([S, J.T]), rcond=1e-11)[: S.shape[1]])
        return np.array(found)

    def rows(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Columns of all ten parameters of every link in the motor torques, by Pinocchio."""
        tree, motion = self.robot.opened, self.tree(q, v, a)
        model = pinocchio_model(tree)
        data, L = model.createData(), self.projections(motion)
        states = (to_pinocchio_position(tree, motion.position), motion.velocity, motion.acceleration)
        own = np.array([pin.computeJointTorqueRegressor(model, data, *one) for one in zip(*states, strict=True)])
        return L @ own

    def torque(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Torque of the truth."""
        model = pinocchio_model(self.robot.opened)
        phi = np.concatenate([inertia.toDynamicParameters() for inertia in list(model.inertias)[1:]])
        return self.rows(q, v, a) @ phi + self.armature * a + self.friction.sliding(v)

    def described(self, folder: Path) -> Path:
        """The table as a data sheet has it: masses and inertias off by up to 15 %, no rotors and no friction."""
        rng, path = np.random.default_rng(3), folder / f"{self.arm.name}.toml"
        lines = []
        for line in (FOLDER / f"{FILES[self.arm.name]}.toml").read_text().splitlines():
            share = float(rng.uniform(0.85, 1.15))
            if line.startswith("inertial"):
                numbers = re.split(r"((?:mass|i[xyz]{2}) = )([-\d.e]+)", line)
                line = "".join(repr(share * float(part)) if k % 3 == 2 else part for k, part in enumerate(numbers))
            if not re.match(r"armature|fv|fc", line):
                lines.append(line)
        path.write_text("\n".join(lines))
        return path


def _closed_rows(model: Any, data: Any, n: int, loop: Any) -> np.ndarray:
    """Closed rows of the velocity of the second frame seen from the first."""
    poses, jacobians = [], []
    for frame in (loop.first, loop.second):
        local = pin.SE3(np.array(frame.placement))
        poses.append(local if frame.body < 0 else data.oMi[frame.body + 1] * local)
        own = np.zeros((6, n)) if frame.body < 0 else pin.getJointJacobian(model, data, frame.body + 1, pin.LOCAL)
        jacobians.append(local.inverse().toActionMatrix() @ own)
    rows = (poses[0].inverse() * poses[1]).toActionMatrix() @ jacobians[1] - jacobians[0]
    return rows[[COMPONENTS.index(component) for component in loop.closed]]


def mechanism_named(name: str) -> Mechanism:
    """One of :data:`FILES`."""
    robot = read_robot(FOLDER / f"{FILES[name]}.toml", effects="viscous,coulomb,armature")
    joints, values = robot.driven_joints, robot.parameters.as_dict()
    low, high, speed = np.array([(joint.q_min, joint.q_max, joint.dq_max) for joint in joints]).T
    fv, fc, Ia = (np.array([values[f"{symbol}{k}"] for k in robot.driven_numbers]) for symbol in ("fv", "fc", "Ia"))
    zero = np.zeros(len(joints))
    friction = Friction("linear", fv, fc, zero, zero, zero + 1.0, zero + WIDTH)
    arm = SimpleNamespace(
        name=name, n=len(joints), bodies=[SimpleNamespace(name=joint.name, prismatic=False) for joint in joints]
    )
    return Mechanism(robot, arm, Ia, friction, 0.5 * (low + high), 0.35 * (high - low), 0.7 * np.minimum(speed, 3.0))
