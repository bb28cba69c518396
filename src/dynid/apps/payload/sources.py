"""Loads that ``dynid payload`` finds: from a run and its logs, or the body on a force/torque sensor, at once or block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.apps.payload.load import Payload, identify_payload, loaded_samples
from dynid.apps.payload.load_rows import load_parameters, load_rows
from dynid.apps.payload.options import PayloadSettings
from dynid.errors import InputError
from dynid.estimation.online import body_so_far, online_body, online_sensor_body
from dynid.estimation.online_estimate import OnlineEstimate
from dynid.io.logs.paths import log_paths
from dynid.model.frames import frame_named
from dynid.model.robot import Robot
from dynid.pipeline.data import read_parts
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.sensor import identify_body, places, refuse_other_options
from dynid.pipeline.wrench import SensorBody
from dynid.pipeline.wrench_filter import sensor_filter
from dynid.regression.row_source import Chunk


def loads_of(
    run: IdentificationResult, logs: Sequence[str | Path], settings: PayloadSettings
) -> list[tuple[list[Path], Payload]]:
    """The loads that ``dynid payload RUN LOG...`` finds, each with its logs: one of all of them, or one of each.

    Args:
        run: identified without the load.
        logs: logs with the load: files, folders, patterns, URLs.
        settings: frame, what is known of the load, how the logs are read.
    """
    paths = log_paths(logs)
    groups = [[log] for log in paths] if settings.each else [paths]
    return [(group, identify_payload(run, group, **settings.for_run(run))) for group in groups]


BLOCK_S = 1.0
"""Length of a block, s."""


def online_loads_of(
    run: IdentificationResult, logs: Sequence[str | Path], settings: PayloadSettings
) -> Iterator[OnlineEstimate]:
    """The load block by block, as if the logs came in now; rows are counted by the noise of each joint in the run.

    Args:
        run: identified without the load.
        logs: logs with the load.
        settings: frame, what holds the load, how the logs are read.
    """
    asked = settings.for_run(run)
    place = frame_named(run.robot, asked["link"])
    parameters = load_parameters(run.robot, place)
    online = online_body(parameters, np.maximum(run.estimate.residual_rms, 1e-9))
    for one in loaded_samples(run, logs, asked["settings"])[0]:
        rows, _ = load_rows(run, one, place, asked["tool"])
        time = np.asarray(rows.time)
        step = max(1, round(BLOCK_S / float(np.median(np.diff(time)))))
        for start in range(0, len(time), step):
            part = slice(start, start + step)
            online.feed(Chunk([block[part] for block in rows.blocks], time[part]))
            yield body_so_far(online, parameters)


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
    chosen, recordings, model = _prepared(logs, robot, settings)
    return identify_body(recordings, model, chosen), model


def online_sensor_payload(
    logs: Sequence[str | Path], robot: Robot | str | Path | None, settings: PayloadSettings
) -> Iterator[OnlineEstimate]:
    """The same block by block, as if the logs came in now."""
    chosen, recordings, model = _prepared(logs, robot, settings)
    place, imu = places(model, chosen)
    how = sensor_filter(ONLINE_FILTER if settings.filter == "auto" else settings.filter)
    for recording in recordings:
        samples, _ = how.samples(recording, model, None if model is None else frame_named(model, place), imu)
        yield from online_sensor_body(samples)


def _prepared(logs: Sequence[str | Path], robot: Robot | str | Path | None, settings: PayloadSettings) -> tuple[Any, ...]:
    """Settings of a run, recordings and robot."""
    chosen = settings.for_sensor()
    refuse_other_options(chosen)
    if chosen.frame_pose is not None and robot is None:
        raise InputError("--frame-pose is a pose in a frame of the robot, expected --robot ROBOT beside it")
    recordings, model = read_parts(log_paths(logs), robot, chosen)
    return chosen, recordings, model
