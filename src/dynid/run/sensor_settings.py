"""What the options of a run mean for the log of a force/torque sensor."""

from __future__ import annotations

from dataclasses import fields

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.body import METHODS
from dynid.robot.frames import Frame, frame_named, pose_from
from dynid.robot.model import Robot
from dynid.run.known_load import known_load
from dynid.run.option import flag_of
from dynid.run.options import Sensor, Settings
from dynid.run.sensor import SensorOptions
from dynid.run.sensor_logs import READ
from dynid.run.sensor_signals import SensorFilter, sensor_filter

TAKEN = {
    "gravity", "lock", "from_s", "to_s", *READ, "rows", "window", "filter", "signals", "cutoff_hz", "filter_order", "method", "split",
    *(one.name for one in fields(Sensor)),
}  # fmt: skip
"""Options of a run that mean something for a sensor log; others are refused where they are given."""


def sensor_options(settings: Settings) -> SensorOptions:
    """How the body is identified, from the options of a run."""
    return SensorOptions(
        drift=settings.drift,
        tilt=settings.tilt,
        static=settings.static,
        constraints=known_load(settings.mass, settings.shape),
        answer=settings.method,
    )


def refuse_other_options(settings: Settings) -> None:
    """Refuse what means nothing for a sensor log, rather than leave it without effect."""
    from dynid.run.options import all_options

    changed = settings.changed()
    for one in all_options():
        if one.name in changed and one.name not in TAKEN:
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
        "butterworth" if settings.signals else "rows", order=settings.filter_order, band_hz=float(settings.cutoff_hz)
    )


def places(robot: Robot | None, settings: Settings) -> tuple[str | Frame | None, Array | None]:
    """Frame of the sensor on the robot, and pose of the IMU in it."""
    place: str | Frame | None = settings.frame
    if settings.frame_pose is not None:
        if robot is None:
            raise InputError("--frame-pose is a pose in a frame of the robot, expected a robot before the log")
        place = frame_named(robot, settings.frame).moved(pose_from(settings.frame_pose), "sensor")
    return place, None if settings.imu_pose is None else pose_from(settings.imu_pose)
