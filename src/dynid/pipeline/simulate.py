"""A simulated log of a motion, from file to file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.simulate import exact_motion, simulate
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.excitation.limits import without_excluded_joints
from dynid.excitation.motion_files import read_trajectory
from dynid.io.logs.read import read_recording, write_columns, write_recording
from dynid.io.robots.mujoco_contacts import SETTLE_S, SOLE, World, floating_columns, simulate_on_feet
from dynid.model.robot import Robot
from dynid.pipeline.floating_log import foot_frame
from dynid.pipeline.simulate_options import SimulateSettings
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples


def robot_of_motion(robot: Robot, trajectory: str | Path, joints: Sequence[str] | None = None) -> tuple[Robot, str]:
    """The robot with the joints that a motion moves, and a note where it leaves out those that an exciting motion holds.

    A motion of fewer numbered columns than the robot has joints fits if it is that of all joints but fingers, wheels and followers,
    which is what ``excite`` writes unless it is asked to move them. ``joints`` says whose the numbered columns are instead.
    """
    if joints is not None:
        read_trajectory(trajectory, robot, joints)
        held = robot.only(joints)
        return held, _told_held(robot, held, "as --joints says")
    try:
        read_trajectory(trajectory, robot)
    except InputError as refusal:
        held, _ = without_excluded_joints(robot)
        if held is robot:
            raise
        try:
            read_trajectory(trajectory, held)
        except InputError:
            raise refusal from None
        return held, _told_held(robot, held, "as by excite")
    return robot, ""


def _told_held(robot: Robot, held: Robot, why: str) -> str:
    left = [name for name in robot.joint_names if name not in held.joint_names]
    return f"the motion has {held.n_joints} joints; held, {why}: {', '.join(left)}" if left else ""


def simulate_log(
    robot: Robot,
    trajectory: str | Path,
    output: str | Path,
    *,
    joints: Sequence[str] | None = None,
    by_name: bool = False,
    rate_hz: float = 1000.0,
    torque_noise: float = 0.01,
    encoder_bits: int = 19,
    seed: int = 0,
    tell: Tell = silent,
) -> tuple[Path, Recording]:
    """Simulate a trajectory file into a log file; ``torque_noise`` is a share of each joint's root mean square torque.

    A motion far outside the robot's position limits is refused: its file is of another robot or in another unit. ``by_name`` names
    columns by joint, for logs of some of a robot's joints. ``joints`` are those of numbered columns, in their order.
    """
    _check_sensors(torque_noise, encoder_bits)
    reference = read_trajectory(trajectory, robot, joints)
    notes = (*reference.notes, *_outside(robot, reference, str(trajectory)))
    torque = exact_motion(robot, reference).torque
    assert torque is not None
    result = simulate(
        robot,
        reference,
        rate_hz=rate_hz,
        torque_noise=torque_noise * (torque**2).mean(axis=0) ** 0.5,
        encoder_counts=2**encoder_bits if encoder_bits else None,
        seed=seed,
        tell=tell,
    )
    source = replace(result.recording.source, notes=(*notes, *result.notes))
    recording = _as_logged(robot, replace(result.recording, source=source))
    return Path(write_recording(recording, output, by_name=by_name)), recording


def _check_sensors(torque_noise: float, encoder_bits: int) -> None:
    """Refuse noise and encoders that no robot has, on a fixed base and on feet alike."""
    if not torque_noise >= 0.0:
        raise InputError(f"torque noise is {torque_noise:g}, expected zero or a positive share")
    if not 0 <= encoder_bits <= 40:
        raise InputError(f"encoder has {encoder_bits} bits, expected 0 (exact) to 40")


def simulate_feet_log(
    robot: Robot, trajectory: str | Path, output: str | Path, settings: SimulateSettings
) -> tuple[Path, Recording]:
    """Simulate a robot on a floating base, whose joints follow a trajectory file on their feet, into a log file."""
    _check_sensors(settings.torque_noise, settings.encoder_bits)
    if settings.feet and settings.flat_feet:
        raise InputError("--feet and --flat-feet are both given, expected one of them: all feet are simulated alike")
    named = [foot_frame(robot, name) for name in settings.feet or settings.flat_feet]
    joints = tuple(joint.name for joint in robot.driven_joints)
    motion = read_recording(trajectory, joints, kind="motion", side="joint", joints=settings.joints)
    if not isinstance(motion, Recording):
        raise InputError(f"trajectory file '{trajectory}' holds no joint motion, expected columns t, q1, ..")
    path, time = motion.position, motion.time - motion.time[0]

    def references(t: float, _model: Any, _data: Any) -> Array:
        return np.array([np.interp(t - SETTLE_S, time, column) for column in path.T])

    step_s, sole = 1.0 / (settings.rate_hz * np.ceil(1000.0 / settings.rate_hz)), SOLE if settings.flat_feet else None
    world = World(step_s=step_s, radius=settings.foot_radius, sole=sole)
    made = simulate_on_feet(robot, references, float(time[-1]), named, world=world, rate_hz=settings.rate_hz)
    if settings.encoder_bits:
        made["q"] = np.round(made["q"] * 2**settings.encoder_bits / (2.0 * np.pi)) * 2.0 * np.pi / 2**settings.encoder_bits
    columns = floating_columns(
        made,
        robot,
        named,
        torque_noise=settings.torque_noise * (made["tau"] ** 2).mean(axis=0) ** 0.5,
        motion_noise=settings.motion_noise,
        seed=settings.seed,
        by_name=True,
    )
    return write_columns(Path(output), columns), Recording(columns["t"], made["q"], joints)


def _as_logged(robot: Robot, recording: Recording) -> Recording:
    """The log as the robot's own coupling says it is measured: at the joints, or at the motors."""
    coupling = robot.coupling
    if coupling is None or coupling.side != "motor":
        return recording
    assert recording.torque is not None
    moved = {name: coupling.at_motors(getattr(recording, name)) for name in recording.quantities if name != "torque"}
    note = "the log is measured at the motors: positions, velocities and torques are theirs"
    return recording.with_(**moved, torque=coupling.torque_at_motors(recording.torque), source=recording.source.noting(note))


def _outside(robot: Robot, motion: Samples, where: str) -> list[str]:
    """Notes of joints that leave their range; farther out than half a range again is no motion of this robot."""
    notes: list[str] = []
    if robot.floating:  # which the simulation itself refuses
        return notes
    for j, joint in enumerate(robot.moving_joints):
        q = motion.position[:, j]
        beyond = np.maximum(q - joint.q_max, joint.q_min - q)
        worst = int(np.argmax(beyond))
        if not beyond[worst] > 1e-6:
            continue
        prismatic = joint.kind == "prismatic"
        unit = "m" if prismatic else "rad"
        said = (
            f"motion '{where}' takes joint '{joint.name}' to {q[worst]:.4g} {unit} at {motion.time[worst]:.4g} s, its range is "
            f"{joint.q_min:g} to {joint.q_max:g} {unit}"
        )
        if beyond[worst] > 0.5 * (joint.q_max - joint.q_min):
            raise InputError(f"{said}; expected {'metres' if prismatic else 'radians, is the file in degrees?'}")
        notes.append(f"{said}; joint stops are not simulated")
    return notes
