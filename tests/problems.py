"""Named small test robots, as robots and as the texts of description files; nothing here needs a network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.io.demo import demo_robot
from dynid.model.effects.effect import Effect
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.joint import Joint, JointKind
from dynid.model.robot import Robot, make_robot

ALL_KINDS: tuple[JointKind, ...] = ("revolute", "prismatic", "continuous")


def random_rotation(rng: np.random.Generator) -> Array:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    Q[:, 0] *= np.linalg.det(Q)
    return Q


def random_pose(rng: np.random.Generator, reach: float = 0.5) -> Array:
    pose = np.eye(4)
    pose[:3, :3] = random_rotation(rng)
    pose[:3, 3] = rng.uniform(-reach, reach, 3)
    return pose


def random_phi(rng: np.random.Generator) -> Array:
    """A body strictly inside the full consistency condition: second moments positive along random axes."""
    Q = random_rotation(rng)
    mass = rng.uniform(0.5, 5.0)
    second = Q @ np.diag(mass * rng.uniform(0.01, 0.15, 3) ** 2) @ Q.T
    return phi_from_mass_com_inertia(mass, rng.uniform(-0.2, 0.2, 3), np.trace(second) * np.eye(3) - second)


def random_screw(rng: np.random.Generator, kind: JointKind) -> Array:
    """A joint axis in any direction that passes beside the body's origin."""
    if kind == "floating":
        return np.zeros(6)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    if kind == "prismatic":
        return np.concatenate([axis, np.zeros(3)])
    return np.concatenate([np.cross(rng.uniform(-0.2, 0.2, 3), axis), axis])


def random_tree(
    seed: int,
    n_joints: int = 6,
    floating: bool = False,
    kinds: Sequence[JointKind] = ALL_KINDS,
    effects: Sequence[Effect] = (),
) -> Robot:
    """A branched robot in general position; with ``floating`` its first joint is a floating base."""
    rng = np.random.default_rng(seed)
    joints = []
    for i in range(n_joints):
        kind: JointKind = "floating" if floating and i == 0 else kinds[i % len(kinds)]
        # the first two never hang side by side on the ground, so that a floating base carries all
        parent = -1 if i == 0 else int(rng.integers(0 if floating else -1, i)) if i > 1 else 0
        joints.append(
            Joint(
                f"joint{i + 1}",
                kind,
                parent,
                random_pose(rng),
                random_screw(rng, kind),
                q_min=-np.inf if kind in ("continuous", "floating") else -2.0,
                q_max=np.inf if kind in ("continuous", "floating") else 2.0,
                dq_max=3.0,
                ddq_max=20.0,
                tau_max=200.0,
                nominal={}
                if kind == "floating"
                else dict(zip(("fv", "fc", "fo", "Ia"), rng.uniform(0.1, 1.0, 4).tolist(), strict=True)),
            )
        )
    inertials = [random_phi(rng) for _ in joints]
    gravity = rng.normal(size=3)
    gravity *= 9.81 / np.linalg.norm(gravity)
    return make_robot(f"tree{seed}", joints, inertials, gravity=gravity, effects=effects)


def random_motion(robot: Robot, n_samples: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations in general position; quaternions of unit length."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-2.0, 2.0, (n_samples, robot.n_position))
    if robot.floating:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q, rng.normal(size=(n_samples, robot.n_dof)), rng.normal(size=(n_samples, robot.n_dof))


def planar_2r(effects: Sequence[Effect] = ()) -> Robot:
    """Two links of 1 m and 0.8 m that swing in the vertical x-z plane; gravity along -z."""
    turn = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    at_tip = np.eye(4)
    at_tip[0, 3] = 1.0
    joints = [
        Joint("shoulder", "revolute", -1, np.eye(4), turn, q_min=-3.0, q_max=3.0, dq_max=4.0, ddq_max=30.0),
        Joint("elbow", "revolute", 0, at_tip, turn, q_min=-2.5, q_max=2.5, dq_max=4.0, ddq_max=30.0),
    ]
    inertials = [
        phi_from_mass_com_inertia(2.0, np.array([0.5, 0.0, 0.0]), np.diag([0.01, 0.17, 0.17])),
        phi_from_mass_com_inertia(1.5, np.array([0.4, 0.0, 0.0]), np.diag([0.01, 0.08, 0.08])),
    ]
    return make_robot("planar_2r", joints, inertials, links=["upper", "lower"], effects=effects)


def demo_arm(effects: Sequence[Effect] | str | None = None) -> Robot:
    return demo_robot(effects)


# Texts of description files ----------------------------------------------------------------------


def inertial_urdf(mass: float, com: str = "0 0 0", rpy: str = "0 0 0", moments: str = "0.1 0.12 0.15") -> str:
    ixx, iyy, izz = moments.split()
    return (
        f'<inertial><origin xyz="{com}" rpy="{rpy}"/><mass value="{mass}"/>'
        f'<inertia ixx="{ixx}" ixy="0.01" ixz="-0.005" iyy="{iyy}" iyz="0.002" izz="{izz}"/></inertial>'
    )


ARM_URDF = f"""<?xml version="1.0"?>
<robot name="arm">
  <link name="world"/>
  <joint name="mount" type="fixed">
    <parent link="world"/><child link="base"/><origin xyz="0 0 0.2" rpy="0 0.1 0"/>
  </joint>
  <link name="base">{inertial_urdf(4.0, "0 0 0.1")}</link>
  <joint name="turn" type="revolute">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 0.1" rpy="0.2 0 0.5"/><axis xyz="0 0 2"/>
    <limit lower="-2" upper="2.5" effort="50" velocity="3"/><dynamics damping="0.4" friction="0.7"/>
  </joint>
  <link name="upper">{inertial_urdf(2.0, "0.1 0 0.05", "0.3 -0.2 0.1")}
    <visual><geometry><mesh filename="package://nowhere/upper.dae"/></geometry></visual>
    <collision><geometry><mesh filename="package://nowhere/upper.stl"/></geometry></collision>
  </link>
  <joint name="bolt" type="fixed">
    <parent link="upper"/><child link="camera"/><origin xyz="0.1 0.05 0" rpy="1 0 0"/>
  </joint>
  <link name="camera">{inertial_urdf(0.3, "0.01 0 0", moments="0.001 0.002 0.0025")}</link>
  <joint name="spin" type="continuous">
    <parent link="camera"/><child link="fore"/><origin xyz="0.3 0 0" rpy="0 1.2 0"/><axis xyz="0 1 1"/>
  </joint>
  <link name="fore">{inertial_urdf(1.0, "0 0.1 0")}</link>
  <joint name="slide" type="prismatic">
    <parent link="fore"/><child link="finger"/><origin xyz="0 0.2 0"/><axis xyz="0 -1 0"/>
    <limit lower="0" upper="0.1" effort="20" velocity="0.5"/>
  </joint>
  <link name="finger">{inertial_urdf(0.2)}</link>
  <joint name="other_slide" type="prismatic">
    <parent link="fore"/><child link="other_finger"/><origin xyz="0 0.2 0.05"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.1" effort="0" velocity="0"/>
  </joint>
  <link name="other_finger"/>
</robot>
"""

ARM_MJCF = """<mujoco model="arm">
  <compiler angle="degree"/>
  <option gravity="0.1 0.2 -9.7"/>
  <default><joint damping="0.3"/><default class="motor"><joint armature="0.05" frictionloss="0.2"/></default></default>
  <asset><mesh name="shell" file="missing.stl"/></asset>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="plane" size="1 1 1"/>
    <body name="stand" pos="0 0 0.4"><inertial mass="5" pos="0 0 0" diaginertia="1 1 1"/>
      <body name="upper" pos="0.1 0 0.2" euler="20 0 30">
        <joint name="turn" class="motor" axis="0 1 1" pos="0.05 0 -0.1" range="-90 120" ref="25"/>
        <inertial mass="2" pos="0.1 0.02 0" fullinertia="0.1 0.12 0.15 0.01 -0.005 0.002"/>
        <geom type="mesh" mesh="shell"/>
        <body name="camera" pos="0.1 0.1 0" quat="0.8 0.6 0 0">
          <inertial mass="0.3" pos="0 0 0.02" diaginertia="0.001 0.002 0.0025"/>
        </body>
        <body name="fore" pos="0.5 0 0">
          <joint name="pitch" axis="0 1 0" pos="0 0 0.03"/>
          <joint name="yaw" axis="0 0 1" pos="0.02 0 0" range="-60 60"/>
          <joint name="push" type="slide" axis="1 0 1" range="-0.2 0.3" ref="0.1"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04" density="900"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="m1" joint="turn" gear="20" forcerange="-3 3"/>
    <motor name="m2" joint="pitch" gear="10" ctrlrange="-2 2" armature="0.002"/>
  </actuator>
  <keyframe><key qpos="0 0 0 0"/></keyframe>
</mujoco>
"""


def arm_with_hand_urdf(effort: float = 90.0, shapes: bool = False) -> str:
    """A pan and a lift joint 0.3 m above the base, a hand with a finger, a wheel, and a joint that follows the finger."""
    box = '<collision><origin xyz="0.3 0 0"/><geometry><box size="0.6 0.06 0.06"/></geometry></collision>' if shapes else ""
    body, light = inertial_urdf(2.0, "0.3 0 0", moments="0.004 0.06 0.06"), inertial_urdf(0.05, moments="1e-4 1e-4 1e-4")
    limit = f'<limit effort="{effort}" velocity="2" lower="-2.5" upper="2.5"/>'
    return f"""<robot name="arm"><link name="base"/><link name="pan">{inertial_urdf(1.0)}</link><link name="lift">{body}{box}</link>
    <link name="f1">{light}</link><link name="f2">{light}</link><link name="w">{light}</link>
    <joint name="pan_joint" type="revolute"><origin xyz="0 0 0.3"/><parent link="base"/><child link="pan"/><axis xyz="0 0 1"/>
      {limit}</joint>
    <joint name="lift_joint" type="revolute"><parent link="pan"/><child link="lift"/><axis xyz="0 1 0"/>{limit}</joint>
    <joint name="finger_1" type="prismatic"><origin xyz="0.6 0 0"/><parent link="lift"/><child link="f1"/><axis xyz="0 1 0"/>
      <limit effort="9" velocity="1" lower="0.01" upper="0.04"/></joint>
    <joint name="claw" type="prismatic"><origin xyz="0.6 0 0"/><parent link="lift"/><child link="f2"/><axis xyz="0 1 0"/>
      <limit effort="9" velocity="1" lower="0" upper="0.04"/><mimic joint="finger_1"/></joint>
    <joint name="left_wheel" type="continuous"><origin xyz="0 0.2 0.1"/><parent link="base"/><child link="w"/><axis xyz="0 1 0"/>
      <limit effort="9" velocity="9"/></joint></robot>"""
