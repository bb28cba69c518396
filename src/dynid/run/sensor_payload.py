"""The body on a force/torque sensor, by the options of ``dynid payload --sensor``: an answer at once, without a run that is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.online_body import OnlineBodyState
from dynid.recording.recording import WrenchRecording
from dynid.robot.frames import Frame, frame_named
from dynid.robot.model import Robot
from dynid.run.known_load import known_load
from dynid.run.log_paths import log_paths
from dynid.run.options import Settings
from dynid.run.payload_options import PayloadSettings
from dynid.run.sensor import SensorBody, SensorOptions, identify_sensor_body, online_sensor_body
from dynid.run.sensor_logs import read_parts
from dynid.run.sensor_settings import filter_of, places, refuse_other_options
from dynid.run.sensor_signals import sensor_filter

ONLINE_FILTER = "savgol:21,2"
"""Filter of rows that come in one after another, where none is named: it needs no rows but its neighbours."""


def sensor_payload(
    logs: Sequence[str | Path], robot: Robot | str | Path | None, settings: PayloadSettings
) -> tuple[SensorBody, Robot | None]:
    """The body on a sensor, and the robot cut to the joints of the logs.

    Args:
        logs: logs of the sensor, all with the same body and offsets.
        robot: the robot that moves the sensor, or its description; None where the logs hold the sensor's own motion.
        settings: where the sensor is, its filter, what is known of the body.
    """
    chosen, recordings, model, place, imu = _prepared(logs, robot, settings)
    options = SensorOptions(
        drift=chosen.drift, tilt=chosen.tilt, static=chosen.static, constraints=known_load(chosen.mass, chosen.shape)
    )
    return identify_sensor_body(recordings, model, place, filtered=filter_of(chosen), imu=imu, options=options), model


def online_sensor_payload(
    logs: Sequence[str | Path], robot: Robot | str | Path | None, settings: PayloadSettings
) -> Iterator[OnlineBodyState]:
    """The same block by block, as if the logs came in now."""
    _, recordings, model, place, imu = _prepared(logs, robot, settings)
    how = sensor_filter(ONLINE_FILTER if settings.filter == "auto" else settings.filter)
    for recording in recordings:
        samples, _ = how.samples(recording, model, None if model is None else frame_named(model, place), imu)
        yield from online_sensor_body(samples)


def _prepared(
    logs: Sequence[str | Path], robot: Robot | str | Path | None, settings: PayloadSettings
) -> tuple[Settings, tuple[WrenchRecording, ...], Robot | None, str | Frame | None, Array | None]:
    """Settings of a run, recordings, robot, frame of the sensor and pose of the IMU."""
    chosen = settings.for_sensor()
    refuse_other_options(chosen)
    if chosen.frame_pose is not None and robot is None:
        raise InputError("--frame-pose is a pose in a frame of the robot, expected --robot ROBOT beside it")
    recordings, model = read_parts(log_paths(logs), robot, chosen)
    return chosen, recordings, model, *places(model, chosen)
