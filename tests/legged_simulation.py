"""Walks of legged robots simulated by MuJoCo, with contacts: logs of joints, base, IMU, forces and feet, and the truth they were made of.

Motors follow a gait by a spring and a damper; torque is that of the motors, friction is between motor and joint. MuJoCo knows nothing of
regressors and null spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from dynid.arrays import Array
from dynid.io.robots.read import read_robot
from dynid.model.frames import frame_named
from dynid.model.inertia import mass_com_inertia
from dynid.model.robot import Robot
from legged_robots import HUMANOID, HUMANOID_FEET, QUADRUPED, QUADRUPED_FEET, robot_file

LOG_S = 0.01


@dataclass(frozen=True)
class World:
    """How somebody else simulates and logs."""

    step_s: float = 0.001
    integrator: str = "Euler"
    contact: str = ""
    """Attributes of the feet and the ground, such as ``solref="0.005 1"``."""
    option: str = ""
    """Attributes of MuJoCo's options, such as ``cone="elliptic"``."""
    radius: float = 0.015
    hold_s: float = 0.0
    """Time for which a controller holds its torque; zero for one step."""
    accelerations: str = "exact"
    """``exact``, ``backward`` or ``central`` differences of logged velocities, or ``none``."""
    after: bool = False
    """Whether a row is logged behind a step: state of its end, torque and acceleration of its beginning."""
    late: int = 0
    """Rows by which flags are late."""


PLAIN = World()


def floating(name: str, effects: str = "none") -> Robot:
    return read_robot(robot_file(name), effects, floating=True)


def _numbers(values: Sequence[float] | Array) -> str:
    return " ".join(f"{value:.12g}" for value in np.ravel(values))


def mjcf_of(
    robot: Robot,
    feet: Sequence[str],
    flat: Sequence[float] = (),
    ground: bool = True,
    gravity: float = 9.81,
    world: World = PLAIN,
) -> str:
    """The robot on a plane, with spheres for point feet, or boxes for flat ones; written from its ten parameters a link."""

    def body(index: int) -> str:
        joint = robot.joints[index]
        mass, com, inertia = mass_com_inertia(robot.parameters.inertials[index])
        about = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        turn = np.zeros(4)
        mujoco.mju_mat2Quat(turn, joint.placement[:3, :3].ravel())
        rotor = robot.parameters.as_dict().get(f"Ia{index + 1}", 0.0)
        hinge = f'<joint name="{joint.name}" type="hinge" axis="{_numbers(joint.screw[3:])}" armature="{rotor:.9g}"/>'
        kind = "<freejoint/>" if index == 0 else hinge
        geoms = ""
        for name in feet:
            frame = frame_named(robot, name)
            if frame.body == index:
                shape = f'type="box" size="{_numbers(flat)}"' if len(flat) else f'type="sphere" size="{world.radius}"'
                geoms += f'<geom name="{name}" {shape} pos="{_numbers(frame.placement[:3, 3])}" friction="1 0.02 0.001" {world.contact}/>'
                geoms += f'<site name="{name}" pos="{_numbers(frame.placement[:3, 3])}"/>'
        inside = "".join(body(k) for k, one in enumerate(robot.joints) if one.parent == index)
        return (
            f'<body name="{robot.links[index]}" pos="{_numbers(joint.placement[:3, 3])}" quat="{_numbers(turn)}">{kind}'
            f'<inertial pos="{_numbers(com)}" mass="{mass:.12g}" fullinertia="{_numbers(about)}"/>{geoms}{inside}</body>'
        )

    plane = f'<geom name="floor" type="plane" size="50 50 1" friction="1 0.02 0.001" {world.contact}/>' if ground else ""
    return (
        f'<mujoco><compiler angle="radian" boundmass="0"/><option timestep="{world.step_s}" gravity="0 0 {-gravity}" '
        f'integrator="{world.integrator}" {world.option}/>'
        f"<worldbody>{plane}{body(0)}</worldbody></mujoco>"
    )


@dataclass(frozen=True)
class Walk:
    """A log as columns, and the robot that walked."""

    columns: dict[str, Array]
    truth: Robot


def quadruped_gait(t: float, phase: Array, wild: float = 1.0) -> Array:
    """References of twelve joints: a trot whose pace, sway and crouch change."""
    pace = 2.0 * np.pi * (1.6 * t - 0.25 / (2 * np.pi * 0.13) * np.cos(2 * np.pi * 0.13 * t))
    q = np.zeros(12)
    crouch = 0.12 * np.sin(2 * np.pi * 0.31 * t + phase[0]) + 0.06 * np.sin(2 * np.pi * 0.83 * t + phase[1])
    for leg in range(4):
        front, side = (1.0 if leg < 2 else -1.0), (1.0 if leg % 2 == 0 else -1.0)
        swing = np.sin(pace + (0.0 if leg in (0, 3) else np.pi))
        lift = max(swing, 0.0)
        q[3 * leg] = wild * (
            0.10 * np.sin(2 * np.pi * 0.47 * t + phase[2]) + 0.05 * side * np.sin(2 * np.pi * 0.9 * t + phase[3 + leg])
        )
        stride = 0.12 * np.cos(pace + (0.0 if leg in (0, 3) else np.pi)) * (0.6 + 0.4 * np.sin(2 * np.pi * 0.11 * t))
        q[3 * leg + 1] = front * (0.75 + crouch + 0.35 * lift) + stride
        q[3 * leg + 2] = front * (-1.5 - 2.0 * crouch - 0.75 * lift)
    return q


def walk(
    truth: Robot,
    seconds: float = 20.0,
    *,
    feet: Sequence[str] = QUADRUPED_FEET,
    gait: object = quadruped_gait,
    height: float = 0.26,
    stiffness: float = 6.0,
    damping: float = 0.15,
    viscous: float = 0.01,
    torque_noise: float = 0.0,
    motion_noise: float = 0.0,
    hanging: bool = False,
    gravity: float = 9.81,
    flat: Sequence[float] = (),
    seed: int = 0,
    world: World = PLAIN,
    balance: object = None,
) -> Walk:
    """Simulate and log at 100 Hz.

    ``motion_noise`` multiplies the usual noise of encoders and IMU; ``hanging`` takes the ground away and holds the trunk by springs that
    push at its frame, which is measured as a force; without gravity nothing touches the robot. ``balance`` adds to the references by what
    it sees of the robot.
    """
    rng = np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_string(
        mjcf_of(truth, feet, flat=flat, ground=not hanging and gravity > 0.0, gravity=gravity, world=world)
    )
    data = mujoco.MjData(model)
    phase = rng.uniform(0.0, 2.0 * np.pi, 64)
    start = gait(0.0, phase)  # type: ignore[operator]
    data.qpos[:3], data.qpos[7:] = [0.0, 0.0, height], start
    if len(flat):  # which stand from the beginning
        mujoco.mj_forward(model, data)
        data.qpos[2] += flat[2] - min(data.site(name).xpos[2] for name in feet)
    rows: dict[str, list[Array]] = {
        name: [] for name in ("t", "pose", "twist", "rate", "q", "dq", "ddq", "tau", "contact", "force", "push")
    }
    every, step_s = round(LOG_S / world.step_s), world.step_s
    hold, tau = max(1, round(world.hold_s / step_s)), np.zeros(len(start))
    weight = float(model.body_mass.sum()) * gravity
    for k in range(round((seconds + 1.0) / step_s)):
        t = k * step_s
        v, q = data.qvel[6:].copy(), data.qpos[7:].copy()
        reference = start + (gait(t, phase) - start) * min(t, 1.0)  # type: ignore[operator]
        if balance is not None:
            reference = reference + balance(model, data, feet)  # type: ignore[operator]
        if k % hold == 0:
            tau = np.asarray(stiffness * (reference - q) - damping * v)
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[6:] = tau - viscous * v
        if hanging:  # a spring to a moving point, at the origin of the trunk, with a moment that keeps it up
            R = data.xmat[1].reshape(3, 3)
            goal = np.array(
                [0.1 * np.sin(2 * np.pi * 0.7 * t + phase[10]), 0.1 * np.sin(2 * np.pi * 0.9 * t + phase[11]), height]
            )
            force = 8.0 * weight * (goal - data.qpos[:3]) - 0.8 * weight * data.qvel[:3] + [0, 0, weight]
            tilt = np.array(
                [
                    0.3 * np.sin(2 * np.pi * 0.8 * t + phase[12]),
                    0.3 * np.sin(2 * np.pi * 0.6 * t + phase[13]),
                    0.2 * np.sin(t),
                ]
            )
            turn = np.zeros(3)
            mujoco.mju_quat2Vel(turn, data.qpos[3:7], 1.0)
            moment = 0.4 * weight * 0.1 * (tilt - turn) - 0.004 * weight * data.qvel[3:6]
            data.qfrc_applied[:3], data.qfrc_applied[3:6] = force, moment
        if world.after:
            mujoco.mj_step(model, data)
            v, q = data.qvel[6:].copy(), data.qpos[7:].copy()
        else:
            mujoco.mj_forward(model, data)
        if k % every == 0 and t >= 1.0:
            R = _rotation(data.qpos[[4, 5, 6, 3]])
            moved, w, a = data.qvel[:3].copy(), data.qvel[3:6].copy(), data.qacc.copy()
            force, on = np.zeros((len(feet), 6)), np.zeros(len(feet))
            for c in range(data.ncon):
                pair = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM, g) for g in data.contact[c].geom]
                for f, name in enumerate(feet):
                    if name in pair:
                        six = np.zeros(6)
                        mujoco.mj_contactForce(model, data, c, six)
                        on[f] = 1.0
                        world_force = data.contact[c].frame.reshape(3, 3).T @ six[:3]
                        arm = data.contact[c].pos - data.site(name).xpos
                        force[f] += np.r_[world_force, np.cross(arm, world_force)]
            body = R.T @ moved
            rows["t"].append(np.array([t]))
            rows["pose"].append(np.r_[data.qpos[:3], data.qpos[4:7], data.qpos[3]])
            rows["twist"].append(np.r_[body, w])
            rows["rate"].append(np.r_[R.T @ a[:3] - np.cross(w, body), a[3:6]])
            rows["q"].append(q)
            rows["dq"].append(v)
            rows["ddq"].append(a[6:])
            rows["tau"].append(tau)
            rows["contact"].append(on)
            own = [data.xmat[truth_body(truth, name) + 1].reshape(3, 3).T for name in feet]
            rows["force"].append(
                np.concatenate([np.r_[turn @ one[:3], turn @ one[3:]] for turn, one in zip(own, force, strict=True)])
                if len(feet)
                else np.zeros(0)
            )
            rows["push"].append(np.r_[R.T @ data.qfrc_applied[:3], data.qfrc_applied[3:6]])
        if not world.after:
            mujoco.mj_step(model, data)
    made = {name: np.array(values) for name, values in rows.items()}
    made["contact"] = made["contact"][np.maximum(np.arange(len(made["t"])) - world.late, 0)]
    if world.accelerations in ("backward", "central"):
        made["rate"], made["ddq"] = (_differences(made[name], world.accelerations) for name in ("twist", "dq"))
    columns = _columns(made, feet, rng, torque_noise, motion_noise, hanging, truth, gravity)
    if world.accelerations == "none":
        columns = {name: x for name, x in columns.items() if not name.startswith(("base_a", "ddq"))}
    return Walk(columns, truth)


def _differences(values: Array, how: str) -> Array:
    """Rates of logged velocities, as those log them who have nothing better."""
    if how == "central":
        return np.asarray(np.gradient(values, LOG_S, axis=0))
    return np.diff(values, axis=0, prepend=values[:1]) / LOG_S


def truth_body(robot: Robot, foot: str) -> int:
    return frame_named(robot, foot).body


def _columns(
    made: dict[str, Array],
    feet: Sequence[str],
    rng: np.random.Generator,
    torque_noise: float,
    motion_noise: float,
    hanging: bool,
    truth: Robot,
    gravity_size: float,
) -> dict[str, Array]:
    """Columns of a log with noise; without noise of motion the accelerations are logged as well."""
    n = made["q"].shape[1]

    def noisy(values: Array, sigma: float) -> Array:
        return np.asarray(values + sigma * motion_noise * rng.normal(size=values.shape))

    pose, twist, rate = made["pose"], made["twist"], made["rate"]
    columns: dict[str, Array] = {"t": made["t"][:, 0] - made["t"][0, 0]}
    turned = noisy(pose[:, 3:], 2e-4)
    turned /= np.linalg.norm(turned, axis=1)[:, None]
    gravity = np.array([_rotation(one).T @ [0.0, 0.0, gravity_size] for one in pose[:, 3:]])
    proper = rate[:, :3] + np.cross(twist[:, 3:], twist[:, :3]) + gravity
    parts = {
        "base_": (noisy(pose[:, :3], 5e-4), "xyz"),
        "base_q": (turned, "xyzw"),
        "base_v": (noisy(twist[:, :3], 5e-3), "xyz"),
        "base_w": (noisy(twist[:, 3:], 5e-3), "xyz"),
        "imu_a": (noisy(proper, 5e-2), "xyz"),
        "imu_w": (noisy(twist[:, 3:], 5e-3), "xyz"),
    }
    if motion_noise == 0.0:
        parts |= {"base_a": (rate[:, :3], "xyz"), "base_al": (rate[:, 3:], "xyz")}
    for stem, (values, axes) in parts.items():
        columns |= {stem + axis: values[:, k] for k, axis in enumerate(axes)}
    noise = torque_noise * rng.normal(size=made["tau"].shape)
    joints = {"q": noisy(made["q"], 2e-4), "dq": noisy(made["dq"], 5e-3), "tau": made["tau"] + noise}
    if motion_noise == 0.0:
        joints["ddq"] = made["ddq"]
    for stem, values in joints.items():
        columns |= {f"{stem}{k + 1}": values[:, k] for k in range(n)}
    for k, name in enumerate(feet):
        columns[f"contact_{name.split('_')[0]}"] = made["contact"][:, k]
        sensed = made["force"][:, 6 * k : 6 * k + 6] + torque_noise * rng.normal(size=(len(made["t"]), 6)) * [
            5,
            5,
            5,
            0.1,
            0.1,
            0.1,
        ]
        columns |= {
            f"{name}_{kind}{axis}": sensed[:, 3 * j + i] for j, kind in enumerate("fm") for i, axis in enumerate("xyz")
        }
    if hanging:
        root = truth.links[0]
        push = made["push"] + torque_noise * rng.normal(size=made["push"].shape)
        columns |= {
            f"{root}_{kind}{axis}": push[:, 3 * j + i] for j, kind in enumerate("fm") for i, axis in enumerate("xyz")
        }
    return columns


def _rotation(q: Array) -> Array:
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, q[[3, 0, 1, 2]])
    return out.reshape(3, 3)


def quadruped(effects: str = "none") -> Robot:
    return floating(QUADRUPED, effects)


def described_wrong(robot: Robot, share: float = 0.2, seed: int = 0) -> Robot:
    """The robot with all parameters of each link scaled at random, which keeps links consistent."""
    rng = np.random.default_rng(seed)
    factors = np.repeat(1.0 + share * rng.choice([-1.0, 1.0], len(robot.joints)), 10)
    values = robot.parameters.values.copy()
    values[: len(factors)] *= factors
    return robot.with_parameters(robot.parameters.with_values(values))


HUMANOID_JOINTS = (
    *(f"leg_{side}_{k}_joint" for side in ("left", "right") for k in range(1, 7)),
    *("torso_1_joint", "torso_2_joint"),
    *(f"arm_{side}_{k}_joint" for side in ("left", "right") for k in (1, 2, 4)),
)
"""Legs, waist, shoulders and elbows of the humanoid that squats; its other joints are locked."""
BALANCE = 0.5
"""rad of an ankle for every metre."""
HUMANOID_GAINS = np.array([3000.0] * 12 + [3000.0] * 2 + [300.0] * 6)


def humanoid(effects: str = "none") -> Robot:
    return read_robot(robot_file(HUMANOID), effects, joints=HUMANOID_JOINTS, floating=True)


def squat(t: float, phase: Array) -> Array:
    """References of twenty joints: squats, weight from foot to foot, a turning trunk and swinging arms, both feet on the ground."""

    def wave(hz: float, k: int) -> float:
        return float(np.sin(2.0 * np.pi * hz * t + phase[k]))

    bend, lean = 0.45 + 0.22 * wave(0.43, 0) + 0.08 * wave(1.1, 1), 0.04 * wave(0.29, 2) + 0.01 * wave(0.9, 3)
    pitch = 0.05 * wave(0.61, 4)
    leg = [0.0, lean, -bend + pitch, 2.0 * bend, -bend, -lean]
    trunk = [0.35 * wave(0.37, 5) + 0.1 * wave(1.3, 6), 0.12 + 0.12 * wave(0.53, 7) + 0.04 * wave(1.2, 8)]
    arms = [
        [0.4 * wave(0.47, 9 + k), side * (0.35 + 0.25 * wave(0.67, 11 + k)), -0.6 + 0.5 * wave(0.83, 13 + k)]
        for k, side in enumerate((1.0, -1.0))
    ]
    return np.array([*leg, *leg, *trunk, *arms[0], *arms[1]])


def over_feet(model: Any, data: Any, feet: Sequence[str]) -> Array:
    """Ankles that bring the centre of mass over the middle of the feet."""
    mujoco.mj_subtreeVel(model, data)
    middle = np.mean([data.site(name).xpos for name in feet], axis=0)
    ahead, left, _ = data.subtree_com[1] - middle + 0.3 * data.subtree_linvel[1]
    move = np.zeros(len(HUMANOID_JOINTS))
    move[[4, 10]], move[[5, 11]] = BALANCE * ahead, -BALANCE * left
    return move


def stand(seconds: float = 20.0, **options: Any) -> Walk:
    """A humanoid of 90 kg that squats on flat feet."""
    robot = humanoid("armature")
    names = [name for name in robot.parameters.names if name.startswith("Ia")]
    truth = robot.with_parameters(robot.parameters.as_dict() | dict.fromkeys(names, 0.1))
    given: dict[str, Any] = {"feet": HUMANOID_FEET, "gait": squat, "height": 1.05, "balance": over_feet}
    gains: dict[str, Any] = {
        "flat": (0.1, 0.06, 0.01),
        "stiffness": HUMANOID_GAINS,
        "damping": 0.01 * HUMANOID_GAINS,
        "viscous": 0.5,
    }
    return walk(truth, seconds, **given, **gains, **options)
