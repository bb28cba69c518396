"""Walks of legged robots simulated by MuJoCo, with contacts: logs as others would make them, and the truth they were made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from dynid.arrays import Array
from dynid.dynamics.simulate import with_effect
from dynid.io.robots.mujoco_contacts import World, floating_columns, simulate_on_feet
from dynid.io.robots.read import read_robot
from dynid.model.effects import effects_from_names
from dynid.model.robot import Robot
from legged_robots import HUMANOID, HUMANOID_FEET, QUADRUPED, QUADRUPED_FEET, robot_file

LOG_S = 0.01


@dataclass(frozen=True)
class Logging:
    """How somebody else simulates and logs."""

    world: World = field(default_factory=World)
    accelerations: str = "exact"
    """``exact``, ``backward`` or ``central`` differences of logged velocities, or ``none``."""
    late: int = 0
    """Rows by which flags are late."""
    imu_bias: tuple[float, ...] = (0.0,) * 6
    """Of the accelerometer, m/s^2, and the gyroscope, rad/s."""
    imu_delay_s: float = 0.0


def floating(name: str, effects: str = "none") -> Robot:
    return read_robot(robot_file(name), effects, floating=True)


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
    gait: Callable[[float, Array], Array] = quadruped_gait,
    height: float | None = 0.26,
    stiffness: float | Array = 6.0,
    damping: float | Array = 0.15,
    viscous: float = 0.01,
    torque_noise: float = 0.0,
    motion_noise: float = 0.0,
    hanging: bool = False,
    gravity: float = 9.81,
    seed: int = 0,
    logging: Logging | None = None,
    balance: Callable[[Any, Any, Sequence[str]], Array] | None = None,
) -> Walk:
    """Simulate and log at 100 Hz.

    ``motion_noise`` multiplies the usual noise of encoders and IMU; ``hanging`` takes the ground away and holds the trunk by springs that
    push at its frame, which is measured as a force; without gravity nothing touches the robot. ``balance`` adds to the references by what
    it sees of the robot.
    """
    logging, rng = logging or Logging(), np.random.default_rng(seed)
    phase = rng.uniform(0.0, 2.0 * np.pi, 64)
    start = gait(0.0, phase)
    truth = with_effect(
        truth.with_effects((*effects_from_names("viscous"), *truth.effects)), "viscous", viscous
    ).with_gravity((0.0, 0.0, -gravity))

    def references(t: float, model: Any, data: Any) -> Array:
        moved = start + (gait(t, phase) - start) * min(t, 1.0)
        return moved if balance is None or t == 0.0 else moved + balance(model, data, feet)

    made = simulate_on_feet(
        truth,
        references,
        seconds,
        feet,
        world=logging.world,
        height=height,
        stiffness=stiffness,
        damping=damping,
        ground=not hanging and gravity > 0.0,
        push=_springs(truth, phase, height or 0.0) if hanging else None,
        rate_hz=1.0 / LOG_S if logging.imu_delay_s == 0.0 else 1.0 / logging.world.step_s,
    )
    sensed = made
    if logging.imu_delay_s:
        rows = np.arange(0, len(made["t"]), round(LOG_S / logging.world.step_s))
        earlier = np.maximum(rows - round(logging.imu_delay_s / logging.world.step_s), 0)
        made, sensed = ({name: x[own] for name, x in made.items()} for own in (rows, earlier))
    made["contact"] = made["contact"][np.maximum(np.arange(len(made["t"])) - logging.late, 0)]
    if logging.accelerations in ("backward", "central"):
        made["rate"], made["ddq"] = (_differences(made[name], logging.accelerations) for name in ("twist", "dq"))
    columns, of_imu = (
        floating_columns(own, truth, feet, torque_noise=torque_noise, motion_noise=motion_noise, seed=seed)
        for own in (made, sensed)
    )
    for k, name in enumerate(f"imu_{kind}{axis}" for kind in "aw" for axis in "xyz"):
        columns[name] = of_imu[name] + logging.imu_bias[k]
    for name in feet:
        columns[f"contact_{name.split('_')[0]}"] = columns.pop(f"contact_{name}")
    if logging.accelerations == "none":
        columns = {name: x for name, x in columns.items() if not name.startswith(("base_a", "ddq"))}
    return Walk(columns, truth)


def _springs(robot: Robot, phase: Array, height: float) -> Callable[[float, Any], Array]:
    """A spring to a moving point at the origin of the trunk, with a moment that keeps it up."""
    weight = 9.81 * float(robot.parameters.inertials[:, 0].sum())

    def push(t: float, data: Any) -> Array:
        goal = [0.1 * np.sin(2 * np.pi * hz * t + phase[k]) for hz, k in ((0.7, 10), (0.9, 11))]
        force = 8.0 * weight * (np.array([*goal, height]) - data.qpos[:3]) - 0.8 * weight * data.qvel[:3] + [0, 0, weight]
        tilt = [0.3 * np.sin(2 * np.pi * hz * t + phase[k]) for hz, k in ((0.8, 12), (0.6, 13))]
        turn = np.zeros(3)
        mujoco.mju_quat2Vel(turn, data.qpos[3:7], 1.0)
        moment = 0.4 * weight * 0.1 * (np.array([*tilt, 0.2 * np.sin(t)]) - turn) - 0.004 * weight * data.qvel[3:6]
        return np.concatenate([force, moment])

    return push


def _differences(values: Array, how: str) -> Array:
    """Rates of logged velocities, as those log them who have nothing better."""
    if how == "central":
        return np.asarray(np.gradient(values, LOG_S, axis=0))
    return np.diff(values, axis=0, prepend=values[:1]) / LOG_S


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
    middle = np.mean([data.site(f"sole of {name}").xpos for name in feet], axis=0)
    ahead, left, _ = data.subtree_com[1] - middle + 0.3 * data.subtree_linvel[1]
    move = np.zeros(len(HUMANOID_JOINTS))
    move[[4, 10]], move[[5, 11]] = BALANCE * ahead, -BALANCE * left
    return move


def stand(seconds: float = 20.0, **options: Any) -> Walk:
    """A humanoid of 90 kg that squats on flat feet."""
    robot = humanoid("armature")
    names = [name for name in robot.parameters.names if name.startswith("Ia")]
    truth = robot.with_parameters(robot.parameters.as_dict() | dict.fromkeys(names, 0.1))
    given: dict[str, Any] = {"feet": HUMANOID_FEET, "gait": squat, "height": None, "balance": over_feet}
    gains: dict[str, Any] = {
        "logging": Logging(World(sole=(0.1, 0.06, 0.01))),
        "stiffness": HUMANOID_GAINS,
        "damping": 0.01 * HUMANOID_GAINS,
        "viscous": 0.5,
    }
    return walk(truth, seconds, **given, **(gains | options))
