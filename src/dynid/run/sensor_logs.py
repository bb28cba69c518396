"""Logs of a force/torque sensor: read, and cut to the parts that are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.recording.readers.read import read_recording
from dynid.recording.recording import WrenchRecording
from dynid.robot.model import Robot
from dynid.run.described import described_robot
from dynid.run.log_part import log_part
from dynid.run.log_paths import log_paths
from dynid.run.options import Settings

READ = ("mapping", "preset", "joints", "rate_hz", "episode", "topic")
"""Options of a run that the reader of a sensor log takes as they are."""


def first_parts(
    logs: Sequence[WrenchRecording], split: float
) -> tuple[tuple[WrenchRecording, ...], tuple[WrenchRecording, ...]]:
    """The first share of every log, and the rest of it."""
    cuts = [(log, max(1, round(split * log.n_samples))) for log in logs]
    return tuple(log.rows(0, cut) for log, cut in cuts), tuple(log.rows(cut, log.n_samples) for log, cut in cuts)


def read_parts(
    paths: Sequence[Path], robot: Robot | str | Path | None, settings: Settings
) -> tuple[tuple[WrenchRecording, ...], Robot | None]:
    """The parts of sensor logs that are used, and the robot cut to the joints that they have."""
    model = None if robot is None else described_robot(robot, replace(settings, effects=()))
    parts = [log_part(path) for path in paths]
    recordings = read_sensor_logs([part.path for part in parts], model, **{name: getattr(settings, name) for name in READ})
    if model is not None and recordings[0].position is not None:
        model = model if recordings[0].joint_names == model.joint_names else model.only(recordings[0].joint_names)
    cut = [
        log.between(part.from_s, part.to_s) if part.named else log.between(settings.from_s, settings.to_s)
        for log, part in zip(recordings, parts, strict=True)
    ]
    return tuple(cut), model


def read_sensor_logs(paths: Sequence[str | Path], robot: Robot | None, **reading: Any) -> tuple[WrenchRecording, ...]:
    """Logs of a force/torque sensor; ``reading`` are options of how they are read."""
    found = []
    for path in log_paths(paths):
        options = {name: value for name, value in reading.items() if value is not None}
        recording = read_recording(path, () if robot is None else robot, kind="wrench", **options)
        assert isinstance(recording, WrenchRecording)
        found.append(recording)
    return tuple(found)
