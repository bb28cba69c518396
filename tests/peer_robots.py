"""Robots of every joint type beside the same robots in Pinocchio, built by Pinocchio's own URDF parser where it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.io.robots.read import read_robot
from dynid.model.effects.effect import Effect
from dynid.model.inertia import change_of_frame
from dynid.model.joint import Joint, JointKind
from dynid.model.robot import Robot, make_robot
from dynid.signals.samples import Samples
from problems import random_phi, random_pose


@dataclass(frozen=True)
class Peer:
    """A robot, the same one in Pinocchio, and how columns and velocities of the two correspond."""

    robot: Robot
    model: Any
    columns: Array
    """``Y_robot = Y_pinocchio columns``: link frames may differ from Pinocchio's joint frames."""
    dofs: Array
    """Pinocchio's velocity index of each of the robot's."""

    def states(self, n: int, seed: int = 0) -> list[tuple[Array, Array, Array]]:
        """States in the robot's coordinates, one tuple per sample."""
        rng = np.random.default_rng(seed)
        q = rng.uniform(-2.0, 2.0, (n, self.robot.n_position))
        if self.robot.floating:
            q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        v, a = rng.normal(size=(2, n, self.robot.n_dof))
        return list(zip(q, v, a, strict=True))

    def position(self, q: Array) -> Array:
        """One position in Pinocchio's coordinates."""
        out = np.zeros(self.model.nq)
        start = 0
        for joint in self.robot.joints:
            width = 7 if joint.kind == "floating" else 1
            index = self.model.getJointId(joint.name)
            at, size = self.model.idx_qs[index], self.model.nqs[index]
            value = q[start : start + width]
            out[at : at + size] = [np.cos(value[0]), np.sin(value[0])] if (width, size) == (1, 2) else value
            start += width
        return out

    def velocity(self, v: Array) -> Array:
        out = np.zeros(self.model.nv)
        out[self.dofs] = v
        return out


def make_peer(robot: Robot, model: Any) -> Peer:
    blocks = np.zeros((10 * (model.njoints - 1), robot.parameters.n_inertial))
    dofs: list[int] = []
    for i, joint in enumerate(robot.joints):
        index = model.getJointId(joint.name)
        dofs.extend(range(model.idx_vs[index], model.idx_vs[index] + model.nvs[index]))
        frame = model.frames[model.getFrameId(robot.links[i], pin.FrameType.BODY)]
        body_in_joint = change_of_frame(frame.placement.rotation, frame.placement.translation)
        blocks[10 * (index - 1) : 10 * index, 10 * i : 10 * i + 10] = body_in_joint
    return Peer(robot, model, blocks, np.array(dofs))


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


def random_urdf(seed: int, kinds: tuple[str, ...]) -> str:
    """A tree of links with inertials anywhere; every third joint is followed by a fixed one that carries the next."""
    rng = np.random.default_rng(seed)

    def origin() -> str:
        return f'<origin xyz="{_numbers(rng.uniform(-0.4, 0.4, 3))}" rpy="{_numbers(rng.uniform(-1.5, 1.5, 3))}"/>'

    def link(name: str) -> str:
        second = rng.uniform(0.01, 0.06, 3)
        ixx, iyy, izz = (second.sum() - second).tolist()
        return (
            f'<link name="{name}"><inertial>{origin()}<mass value="{float(rng.uniform(0.3, 4.0))!r}"/>'
            f'<inertia ixx="{ixx!r}" ixy="0" ixz="0" iyy="{iyy!r}" iyz="0" izz="{izz!r}"/></inertial></link>'
        )

    lines = ['<robot name="random"><link name="ground"/>']
    bodies = ["ground"]
    for i, kind in enumerate(kinds):
        parent = bodies[-1] if i < 2 else bodies[int(rng.integers(1, len(bodies)))]
        limit = "" if kind == "continuous" else '<limit lower="-2" upper="2" effort="50" velocity="3"/>'
        lines.append(
            f'{link(f"body{i}")}<joint name="j{i}" type="{kind}"><parent link="{parent}"/><child link="body{i}"/>'
            f'{origin()}<axis xyz="{_numbers(rng.normal(size=3))}"/>{limit}</joint>'
        )
        bodies.append(f"body{i}")
        if i % 3 == 0:
            lines.append(
                f'{link(f"bolted{i}")}<joint name="bolt{i}" type="fixed"><parent link="body{i}"/>'
                f'<child link="bolted{i}"/>{origin()}</joint>'
            )
            bodies.append(f"bolted{i}")
    return "\n".join([*lines, "</robot>"])


def urdf_peer(folder: Path, seed: int, kinds: tuple[str, ...], floating: bool) -> Peer:
    text = random_urdf(seed, kinds)
    path = folder / "random.urdf"
    path.write_text(text)
    robot = read_robot(path, effects="none", floating=floating)
    if not floating:
        return make_peer(robot, pin.buildModelFromXML(text))
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer(), robot.joint_names[0])
    return make_peer(robot, model)


def depth_first_tree(seed: int, n_joints: int, floating: bool = False, effects: tuple[Effect, ...] = ()) -> Robot:
    """A branched robot whose numbers go branch by branch, as Pinocchio's ``crba`` and MuJoCo number joints.

    Every frame lies beside its joint's axis; the axes are coordinate axes, so that none of them advances by round-off.
    """
    rng = np.random.default_rng(seed)
    kinds: tuple[JointKind, ...] = ("revolute", "prismatic", "continuous")
    joints: list[Joint] = []
    path: list[int] = []
    for i in range(n_joints):
        kind: JointKind = "floating" if floating and i == 0 else kinds[i % 3]
        axis = np.eye(3)[rng.integers(3)]
        screw = {
            "floating": np.zeros(6),
            "prismatic": np.concatenate([axis, np.zeros(3)]),
        }.get(kind, np.concatenate([np.cross(rng.uniform(-0.2, 0.2, 3), axis), axis]))
        keep = int(rng.integers(1, len(path) + 1)) if path else 0
        path = path[:keep] if rng.random() < 0.4 else path  # a new branch leaves from somewhere along the last one
        values = dict(zip(("fv", "fc", "fo", "Ia"), rng.uniform(0.1, 1.0, 4).tolist(), strict=True))
        nominal = {} if kind == "floating" else values
        joints.append(Joint(f"j{i}", kind, path[-1] if path else -1, random_pose(rng), screw, nominal=nominal))
        path.append(i)
    gravity = rng.normal(size=3)
    inertials = [random_phi(rng) for _ in joints]
    return make_robot(
        f"branches{seed}", joints, inertials, gravity=9.81 * gravity / np.linalg.norm(gravity), effects=effects
    )


def screw_arm() -> Robot:
    """Revolute, helical and prismatic joints in a chain, all frames beside their axes."""
    rng = np.random.default_rng(3)
    joints = []
    for i in range(4):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        linear = np.cross(rng.uniform(-0.3, 0.3, 3), axis) + (0.2 * axis if i % 2 else 0.0)
        joints.append(Joint(f"j{i}", "revolute", i - 1, random_pose(rng), np.concatenate([linear, axis])))
    return make_robot("screws", joints, [random_phi(rng) for _ in joints])


CASES: dict[str, Callable[[Path], Peer]] = {
    "revolute": lambda folder: urdf_peer(folder, 1, ("revolute",) * 6, False),
    "prismatic": lambda folder: urdf_peer(folder, 2, ("prismatic",) * 4, False),
    "continuous": lambda folder: urdf_peer(folder, 3, ("continuous",) * 5, False),
    "mixed": lambda folder: urdf_peer(folder, 4, ("revolute", "prismatic", "continuous") * 3, False),
    "floating": lambda folder: urdf_peer(folder, 5, ("revolute", "continuous", "prismatic") * 2, True),
    "beside the axis": lambda _: _adapted(depth_first_tree(6, 8)),
    "helical": lambda _: _adapted(screw_arm()),
    "floating, placed": lambda _: _adapted(depth_first_tree(7, 6, floating=True)),
}


def _adapted(robot: Robot) -> Peer:
    return make_peer(robot, pinocchio_model(robot))


@pytest.fixture(scope="session", params=list(CASES))
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Peer:
    return CASES[request.param](tmp_path_factory.mktemp("robots"))


@pytest.fixture
def branches() -> Callable[..., Robot]:
    return depth_first_tree


@dataclass(frozen=True)
class Wave:
    """A smooth motion, ``q = sum a sin(w t) + ..``, with its exact derivatives at any time."""

    amplitude: Array
    rate: Array
    phase: Array

    def __call__(self, t: Array) -> tuple[Array, Array, Array]:
        angle = np.asarray(t)[:, None, None] * self.rate + self.phase
        q = (self.amplitude * np.sin(angle)).sum(axis=1)
        v = (self.amplitude * self.rate * np.cos(angle)).sum(axis=1)
        a = -(self.amplitude * self.rate**2 * np.sin(angle)).sum(axis=1)
        return q, v, a


@pytest.fixture
def wave() -> Callable[..., Wave]:
    def make(n: int, seed: int = 0, harmonics: int = 3) -> Wave:
        rng = np.random.default_rng(seed)
        shape = (harmonics, n)
        return Wave(rng.uniform(0.2, 0.8, shape), rng.uniform(0.5, 3.0, shape), rng.uniform(0.0, 6.0, shape))

    return make


@pytest.fixture
def sampled(wave: Callable[..., Wave]) -> Callable[..., Samples]:
    """Noise-free samples of a robot on a smooth motion, torque from its own parameters."""

    def make(robot: Robot, n: int = 400, rate_hz: float = 100.0, seed: int = 0) -> Samples:
        t = np.arange(n) / rate_hz
        q, v, a = wave(robot.n_dof, seed)(t)
        return Samples(t, q, v, a, torque=inverse_dynamics(robot, q, v, a))

    return make
