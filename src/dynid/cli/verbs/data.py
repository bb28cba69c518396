"""``dynid data``: what is in a log and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import show, show_json, show_note
from dynid.cli.options import AsJson, LogFiles
from dynid.cli.schema import takes_options
from dynid.run.options import Model, Reading

if TYPE_CHECKING:
    from dynid.recording.finding import DataCheck
    from dynid.recording.motion import Recording
    from dynid.recording.wrench import WrenchRecording


@takes_options(Reading, Model, without=("effects", "friction", "gravity", "keep_bodies", "motor_effects"))
def data(
    logs: LogFiles,
    robot: Annotated[
        Path,
        typer.Option(
            "--robot", metavar="ROBOT", help="Its description: names, limits and torque are compared.", show_default=False
        ),
    ],
    frame: Annotated[
        str | None,
        typer.Option(
            "--frame",
            metavar="LINK",
            help="Frame of the sensor, for a log of a force/torque sensor; default: the last link.",
            show_default=False,
        ),
    ] = None,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """What is in a log, what is wrong with it, and what to do about it.

    Example: [bold]dynid data run.csv --robot arm.urdf[/bold]
    """
    from dynid.run.inspect import inspect_any
    from dynid.run.log_paths import log_paths

    paths = log_paths(logs)
    looked = (inspect_any(log, robot, frame, **(given or {})) for log in paths)
    if not json:
        for log, (recording, check) in zip(paths, looked, strict=True):
            _show(log, recording, check)
        return
    found = [_record(log, recording, check) for log, (recording, check) in zip(paths, looked, strict=True)]
    show_json(found[0] | ({"logs": found} if len(found) > 1 else {}))


def _record(log: Path, recording: Recording | WrenchRecording, check: DataCheck) -> dict[str, Any]:
    return {
        "file": str(log),
        "n_samples": recording.n_samples,
        "duration_s": recording.duration_s,
        "rate_hz": recording.rate_hz,
        "joints": recording.joint_names,
        "quantities": recording.quantities,
        "findings": [finding.as_dict() for finding in check.findings],
        "facts": check.facts,
        "notes": recording.source.notes,
    }


def _show(log: Path, recording: Recording | WrenchRecording, check: DataCheck) -> None:
    show(
        f"{log.name}: {recording.n_samples} rows, {recording.duration_s:.4g} s at {recording.rate_hz:.4g} Hz, "
        f"{recording.n_joints} joints; {', '.join(recording.quantities)}"
    )
    for note in recording.source.notes:
        if not any(note in finding.sentence for finding in check.findings):  # said there already
            show_note(note)
    for finding in check.findings:
        show(f"{finding.severity}: {finding.sentence}")
        show(f"    {finding.fix}")
    if not check.findings:
        show("nothing to complain about")
