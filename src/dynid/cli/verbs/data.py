"""``dynid data``: what is in a log and what is wrong with it.

``dynid init``: a commented run file.

``dynid doctor``: versions, and what is optional and missing.
"""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import show, show_json, show_table
from dynid.cli.schema import AsJson, LogFiles, RobotFile, Verbose, takes_options
from dynid.cli.screen import Screen
from dynid.errors import InputError
from dynid.option_types import flag_of, options_of
from dynid.pipeline.option_groups import MODEL, READING
from dynid.pipeline.options import Settings

if TYPE_CHECKING:
    from dynid.finding import DataCheck
    from dynid.signals.recording import Recording, WrenchRecording


@takes_options(
    options_of(Settings, READING, MODEL), without=("effects", "friction", "gravity", "fix_bodies", "motor_effects")
)
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
    verbose: Verbose = False,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """What is in a log, what is wrong with it, and what to do about it.

    Example: [bold]dynid data run.csv --robot arm.urdf[/bold]
    """
    from dynid.io.logs.paths import log_paths
    from dynid.pipeline.inspect import inspect_any

    paths = log_paths(logs)
    looked = (inspect_any(log, robot, frame, **(given or {})) for log in paths)
    if not json:
        for log, (recording, check) in zip(paths, looked, strict=True):
            needs_gains = " --drive-gains K1,K2,.." if check.find("current_only") is not None else ""
            torque = check.find("no_torque")
            verb = "identify" if torque is None or torque.level == "error" else "actuators"
            _show(
                log, recording, check, verbose, len(paths) == 1, _next_command(verb, robot, log, given or {}) + needs_gains
            )
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


def _next_command(verb: str, robot: Path, log: Path, given: dict[str, Any]) -> str:
    """The command that identifies from this log as it was read here, to be copied."""
    words = ["dynid", verb, str(robot), str(log), "--split", "0.65"]
    for one in options_of(Settings, READING, MODEL):
        value = given.get(one.name)
        if isinstance(value, tuple) and all(isinstance(part, (str, float)) for part in value):
            words += [flag_of(one), ",".join(map(str, value))]
        elif isinstance(value, (str, float, Path)):
            words += [flag_of(one), str(value)]
    return shlex.join(words)


def _show(
    log: Path, recording: Recording | WrenchRecording, check: DataCheck, verbose: bool, alone: bool, command: str
) -> None:
    """Findings of one log: the first three with their remedies, of several logs the first line of each finding; all with ``--verbose``."""
    screen = Screen(whole=verbose)
    counts = {level: sum(one.level == level for one in check.findings) for level in ("error", "warning")}
    told = ", ".join(f"{n} {level}{'s' if n > 1 else ''}" for level, n in counts.items() if n)
    worst = next((level for level, n in counts.items() if n), "good")
    screen.line(
        f"{log.name}: {told or 'no fault found'}: {recording.n_samples} rows, {recording.duration_s:.4g} s at "
        f"{recording.rate_hz:.4g} Hz, {recording.n_joints} joints; {', '.join(recording.quantities)}",
        worst,
    )
    notes = [note for note in recording.source.notes if not any(note in one.what for one in check.findings)]
    grave = [one for one in check.findings if verbose or one.level in ("error", "warning")]
    screen.findings((one.level, one.what, one.remedy if alone or verbose else "") for one in grave)
    for text in (*notes, *(f"{one.what}: {one.remedy}" for one in check.findings if one not in grave)) if alone else ():
        screen.remark(text)
    if alone:
        if counts["error"]:
            screen.last("next: mend the errors first, then dynid identify")
        else:
            screen.next(command)
    screen.show()


def init(
    robot: RobotFile,
    logs: LogFiles,
    output: Annotated[Path, typer.Option("-o", "--output", help="Run file to write.")] = Path("dynid.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: AsJson = False,
) -> None:
    """Write a commented run file for this robot and log, every default in it; `dynid identify --config` reads it.

    Example: [bold]dynid init arm.urdf run.parquet[/bold]
    """
    from dynid.io.logs.paths import log_paths
    from dynid.pipeline.inspect import inspect_log
    from dynid.pipeline.run_file import write_run_file

    if output.exists() and not force:
        raise InputError(f"'{output}' exists already; --force replaces it")
    paths = log_paths(logs)
    amperes = [log.name for log in paths if inspect_log(log, robot)[0].torque is None]
    path = write_run_file(output, robot, paths)
    if json:
        show_json({"files": [str(path)]})
    else:
        if amperes:
            show(f"{amperes[0]} holds motor current: fill in drive_gains (N m per A, one per joint) in {path} first")
        show(f"written to {path}; run it with: dynid identify --config {path}")


NEEDED = (
    "dynid",
    "numpy",
    "scipy",
    "numba",
    "pin",
    "clarabel",
    "mujoco",
    "pyarrow",
    "plotly",
    "typer",
    "rich",
    "defusedxml",
)
OPTIONAL = {
    "mcap": ("ros", "MCAP logs"),
    "mcap-ros2-support": ("ros", "ROS 2 messages in MCAP logs"),
    "rosbags": ("ros", "ROS 2 .db3 and ROS 1 .bag logs"),
    "dask": ("dask", "runs on a cluster"),
    "xacro": (None, "xacro robot descriptions"),
}


def doctor(json: AsJson = False) -> None:
    """Versions of the packages that dynid uses, and optional packages that are missing.

    Example: [bold]dynid doctor[/bold]
    """
    needed = {name: _version(name) for name in NEEDED}
    optional = {name: _version(name) for name in OPTIONAL}
    missing = [name for name, found in needed.items() if found is None]
    if json:
        show_json({"python": platform.python_version(), "needed": needed, "optional": optional, "healthy": not missing})
        return
    rows = [("python", platform.python_version(), ""), *((name, found or "MISSING", "") for name, found in needed.items())]
    for name, (extra, purpose) in OPTIONAL.items():
        install = f"pip install 'dynid[{extra}]'" if extra else f"pip install {name}"
        rows.append((name, optional[name] or "-", purpose if optional[name] else f"{purpose}: {install}"))
    show_table(("package", "version", ""), rows, text=(0, 2))
    show("healthy" if not missing else f"missing: {', '.join(missing)}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
