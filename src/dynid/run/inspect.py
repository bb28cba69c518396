"""A look at a log before anything is identified from it."""

from __future__ import annotations

from pathlib import Path

from dynid.errors import InputError
from dynid.recording.finding import DataCheck
from dynid.recording.recording import Recording
from dynid.robot.read import read_robot
from dynid.run.prepare import read_first
from dynid.run.settings import Settings
from dynid.validation.data_check import check_recording


def inspect_log(
    log: str | Path,
    robot: str | Path,
    *,
    drive_gains: tuple[float, ...] | None = None,
    preset: str | None = None,
    mapping: str | Path | None = None,
) -> tuple[Recording, DataCheck]:
    """The recording of a motion log and everything that can be said about it."""
    settings = Settings(drive_gains=drive_gains, preset=preset, mapping=None if mapping is None else str(mapping))
    notes: list[str] = []
    recording, model = read_first(read_robot(robot), Path(log), settings, notes)
    if not isinstance(recording, Recording):
        raise InputError(f"{log} is a table of poses, expected a motion log to look into")
    noted = recording.with_(source=recording.source.noting(*notes)) if notes else recording
    return noted, check_recording(recording, model)
