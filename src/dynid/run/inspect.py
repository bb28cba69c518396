"""A look at a log before anything is identified from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.recording.finding import DataCheck
from dynid.recording.recording import Recording
from dynid.run.described import described_robot
from dynid.run.logs import read_first, windowed
from dynid.run.options import Settings
from dynid.validation.data_check import check_recording


def inspect_log(
    log: str | Path,
    robot: str | Path,
    **reading: Any,
) -> tuple[Recording, DataCheck]:
    """The recording of a motion log and all findings on it; ``reading`` are options of how it is read."""
    settings = Settings(**reading)
    notes: list[str] = []
    found, model = read_first(described_robot(robot, settings), Path(log), settings, notes)
    if not isinstance(found, Recording):
        raise InputError(f"{log} is a table of poses, expected a motion log to look into")
    recording = windowed(found, settings)
    noted = recording.with_(source=recording.source.noting(*notes)) if notes else recording
    return noted, check_recording(recording, model)
