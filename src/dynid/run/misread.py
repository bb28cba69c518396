"""Logs beside those of a run that were likely read wrongly: in another unit, with another sign, of a robot that stands otherwise.

The model of the run is at hand, so that the torque is compared with it instead of the description.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dynid.recording.recording import Recording
from dynid.run.record import Run
from dynid.validation.data_check import check_recording

UNLIKE = 0.3
"""Part of the torque of a log that the model of a run may leave unexplained before the log is looked into."""
_OF_LOADS = ("torque_sign", "exchanged_torque", "exchanged_joints", "mirrored_joint")
"""What a load that the model lacks may look like."""


def misread_logs(run: Run, recordings: Iterable[Recording], *, loaded: bool = False) -> tuple[str, ...]:
    """One sentence on each log that an error of reading explains better than an error of the model, with its remedy.

    ``loaded``: the robot carries something that the run does not know.
    """
    return tuple(
        f"{Path(recording.source.path).name}: {finding.sentence}; {finding.fix}".replace("nominal model", "run's model")
        for recording in recordings
        for finding in check_recording(recording, run.identified).findings
        if finding.severity == "error" and not (loaded and finding.code in _OF_LOADS)
    )
