"""What the options of a run mean for the log of a force/torque sensor: its filter, its place on the robot, what is known of the body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.body import METHODS
from dynid.model.frames import Frame, frame_named
from dynid.model.joint import Joint
from dynid.model.poses import pose_from_numbers
from dynid.model.robot import Robot, make_robot
from dynid.option_types import flag_of, misplaced_options
from dynid.pipeline.known_load import known_load
from dynid.pipeline.option_groups import WRENCH
from dynid.pipeline.options import Settings
from dynid.pipeline.wrench import SensorBody, at_rest, identify_sensor_body
from dynid.pipeline.wrench_filter import SensorFilter, sensor_filter
from dynid.regression.wrench_rows import GUESS
from dynid.signals.recording import WrenchRecording
from dynid.signals.samples import WrenchSamples


def refuse_other_options(settings: Settings) -> None:
    """Refuse what means nothing for a sensor log, rather than leave it without effect."""
    for one in misplaced_options(settings, WRENCH):
        raise InputError(
            f"{flag_of(one)} belongs to logs of joint torque; the logs given are of a force/torque sensor: leave it out"
        )
    if settings.method not in METHODS:
        raise InputError(
            f"--method is '{settings.method}', expected one of {', '.join(METHODS)} for the body on a force/torque sensor"
        )


def filter_of(settings: Settings) -> SensorFilter | str:
    """The filter that the options of a run ask for; ``auto`` where they leave it open."""
    if settings.filter != "butterworth":
        return sensor_filter(settings.filter)
    if settings.rows == "polynomial":
        if settings.window == "auto":
            raise InputError("--rows polynomial of a force/torque-sensor log needs its window: give --window SECONDS")
        return SensorFilter("polynomial", window_s=float(settings.window))
    if settings.rows != "torque":
        raise InputError(
            f"--rows {settings.rows} is a statement on joint torque, expected polynomial or nothing for a force/torque-sensor log"
        )
    if settings.cutoff_hz == "auto":
        return "auto"
    return SensorFilter(
        "butterworth" if settings.filter_on == "signals" else "rows",
        order=settings.filter_order,
        band_hz=float(settings.cutoff_hz),
    )


def places(robot: Robot | None, settings: Settings) -> tuple[str | Frame | None, Array | None]:
    """Frame of the sensor on the robot, and pose of the IMU in it."""
    place: str | Frame | None = settings.frame
    if settings.frame_pose is not None:
        if robot is None:
            raise InputError("--frame-pose is a pose in a frame of the robot, expected a robot before the log")
        place = frame_named(robot, settings.frame).moved(pose_from_numbers(settings.frame_pose), "sensor")
    return place, None if settings.imu_pose is None else pose_from_numbers(settings.imu_pose)


def identify_body(recordings: Sequence[WrenchRecording], robot: Robot | None, settings: Settings) -> SensorBody:
    """The body on a sensor as the settings ask for it."""
    place, imu = places(robot, settings)
    return identify_sensor_body(
        recordings,
        robot,
        place,
        filtered=filter_of(settings),
        imu=imu,
        drift=settings.drift,
        tilt=settings.gravity == "auto",
        static=settings.static,
        constraints=known_load(settings.mass, settings.shape),
        answer=settings.method,
        weighted=settings.weighted,
    )


def sensor_place(robot: Robot, settings: Settings) -> Frame:
    """The sensor's frame on the robot."""
    return frame_named(robot, places(robot, settings)[0])


def samples_of(body: SensorBody, log: WrenchRecording, robot: Robot | None, settings: Settings) -> WrenchSamples:
    """Samples of a log under the filter and the gravity that were found."""
    log = at_rest(log) if settings.static and robot is None else log
    samples, _ = body.filter.samples(log, robot, body.place, places(robot, settings)[1])
    if robot is None or log.position is None or body.gravity is None:
        return samples
    return samples.moved_by(robot, body.place, body.gravity)[0]


def sensor_robot() -> Robot:
    """What moves a sensor that measures its own motion: one free body, the prior of the one to be identified."""
    joint = Joint("sensor", "floating", -1, np.eye(4), np.zeros(6))
    return make_robot("sensor", [joint], [GUESS], links=["body"])
