"""Rows that repeat the row before them."""

from __future__ import annotations

import numpy as np

from dynid.recording.finding import DataCheck, Finding
from dynid.recording.motion import Recording
from dynid.recording.steps.repeated import repeated_rows
from dynid.robot.model import Robot


def check_repeated(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """A logger that samples faster than the robot sends writes rows twice."""
    arrays = [getattr(recording, name) for name in recording.quantities if not name.startswith("reference")]
    repeated = repeated_rows(arrays)
    share = float(np.mean(repeated[1:]))
    facts = {"repeated_share": share}
    if share < 0.001:
        return DataCheck((), facts)
    finding = Finding(
        "repeated_rows",
        "warning" if share > 0.01 else "note",
        f"{100.0 * share:.1f} % of the rows repeat the row before in every column",
        "the logger samples faster than the robot sends: log on the robot's clock; in Python: DropRepeated() before Resample()",
        values={"share": share, "rows": int(np.count_nonzero(repeated))},
    )
    return DataCheck((finding,), facts)
