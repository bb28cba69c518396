"""What reading the file found, and values that cannot be."""

from __future__ import annotations

from dynid.recording.finding import DataCheck, Finding, dropped_rows
from dynid.recording.motion import Recording
from dynid.recording.quantities import beyond
from dynid.robot.model import Robot


def check_reading(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Findings of the reader, such as rows that were left out."""
    source = recording.source
    if source.n_dropped and not source.findings:
        reason = "rows that hold NaN or repeat a stamp were left out"
        return DataCheck((dropped_rows(reason, source.n_dropped, source.n_rows_in_file),), {})
    return DataCheck(source.findings, {})


def check_values(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Numbers that no machine can have: no other check makes sense for such a log, and their squares overflow."""
    for name in recording.quantities:
        values = getattr(recording, name)
        place = beyond(name, values)
        if place is not None:
            row, k = place
            joint = recording.joint_names[k]
            finding = Finding(
                "impossible_value",
                "error",
                f"{name.replace('_', ' ')} of joint {joint} is {values[place]:.4g} in row {row + 1}, which no robot has",
                "check the column and its unit",
                (joint,),
                {"row": row + 1, "value": float(values[place])},
            )
            return DataCheck((finding,), {})
    return DataCheck((), {})
