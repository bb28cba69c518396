"""``dynid validate``: prediction on unseen logs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.at_most import check_at_most, end_above
from dynid.cli.console import percent, show, show_json, show_note, show_table, show_warning
from dynid.cli.options import AsJson, LogFiles
from dynid.cli.schema import takes_options
from dynid.errors import InputError
from dynid.run.options import Reading, Rows, Work

if TYPE_CHECKING:
    from dynid.validation.horizons import HorizonError
    from dynid.validation.replay import Replay
    from dynid.validation.rows import RowError
    from dynid.validation.torque import Validation


@takes_options(Reading, Rows, Work, without=("dead_zone", "window"))  # --window is that of --replay
def validate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an earlier identification.", show_default=False)],
    logs: LogFiles,
    at_most: Annotated[
        float | None,
        typer.Option(
            "--at-most",
            help="Exit with 1 if the relative error exceeds this fraction: that of the filtered torque, or with --rows that "
            "of these rows.",
        ),
    ] = None,
    forward: Annotated[
        bool,
        typer.Option(
            "--replay", help="Also drive the model by the measured torque and report its deviation from the measured motion."
        ),
    ] = False,
    window: Annotated[
        float, typer.Option("--window", help="With --replay: time of free motion from each measured state, s.")
    ] = 0.1,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Predict the torque of logs that the run has not seen, filtered as the run was.

    The error in the run's own rows is shown as well; --rows chooses another statement to judge by. A run from a table of
    poses or from coefficients has no filter: give --cutoff-hz. For another run, filter options are refused.

    Example: [bold]dynid validate run unseen.csv --at-most 0.05[/bold]
    """
    from dynid.cli.sensor import validate_sensor_logs
    from dynid.run.log_paths import log_paths
    from dynid.run.misread import misread_logs
    from dynid.run.sensor_store import is_sensor_run
    from dynid.run.store import load_run
    from dynid.run.unseen import unseen_logs
    from dynid.validation.horizons import error_over_horizons
    from dynid.validation.replay import replay

    check_at_most(at_most)
    asked = given or {}
    paths = log_paths(logs)
    if is_sensor_run(run):
        if forward:
            raise InputError(
                f"--replay drives a robot by joint torque; run '{run}' is that of a body on a force/torque sensor"
            )
        validate_sensor_logs(run, paths, at_most, asked, json)
        return
    known = load_run(run)
    unseen = unseen_logs(known, paths, **asked)
    verdict, rows = unseen.validation(), unseen.row_error()
    judged = rows.relative_error if "rows" in asked else verdict.relative_error
    replays = [replay(known.identified, one, window_s=window) for one in unseen.samples] if forward else []
    horizons = [error_over_horizons(known.identified, known.robot, one) for one in unseen.samples] if forward else []
    found = _Found(paths, verdict, rows, replays, horizons, misread_logs(known, unseen.recordings))
    if json:
        show_json(found.as_dict() | {"at_most": at_most})
    else:
        found.show()
    end_above(judged, at_most)


@dataclass(frozen=True, eq=False)
class _Found:
    """What was found on unseen logs; replays and horizons are empty where nobody asked for them."""

    paths: Sequence[Path]
    verdict: Validation
    rows: RowError
    replays: Sequence[Replay]
    horizons: Sequence[Sequence[HorizonError]]
    warnings: Sequence[str]
    """What makes the errors those of reading and not of the model."""

    def as_dict(self) -> dict[str, Any]:
        """What ``dynid validate --json`` prints."""
        verdict = self.verdict
        logs: list[dict[str, Any]] = [
            {
                "file": str(path),
                "relative_error": log.relative_error,
                "relative_error_raw": log.relative_error_raw,
                "rmse": log.rmse,
                "n_samples": log.n_samples,
            }
            for path, log in zip(self.paths, verdict.logs, strict=True)
        ]
        for log, found, errors in zip(logs, self.replays, self.horizons, strict=False):
            log["replay"] = {**found.summary(), "horizons": [one.as_dict() for one in errors]}
        return {
            "relative_error": verdict.relative_error,
            "relative_error_raw": verdict.relative_error_raw,
            "rmse": verdict.rmse,
            "rows": self.rows.as_dict(),
            "logs": logs,
            "warnings": list(self.warnings),
        }

    def show(self) -> None:
        """The same as tables."""
        verdict, rows = self.verdict, self.rows
        per_log = [
            (path.name, str(log.n_samples), percent(log.relative_error), percent(log.relative_error_raw))
            for path, log in zip(self.paths, verdict.logs, strict=True)
        ]
        show_table(("log", "samples", "error, filtered", "error, raw"), per_log)
        per_joint = zip(verdict.joint_names, verdict.rmse, verdict.total.relative_error_per_joint, strict=True)
        joints = [(name, f"{rmse:.4g}", percent(error)) for name, rmse, error in per_joint]
        show_table(("joint", "rmse N m or N", "error, filtered"), joints)
        for path, found, errors in zip(self.paths, self.replays, self.horizons, strict=False):
            show_replay(path.name, found)
            show_horizons(errors)
        show(f"all: {percent(verdict.relative_error)} filtered, {percent(verdict.relative_error_raw)} raw")
        show(f"{rows.kind} rows: {percent(rows.relative_error)} of {rows.n_rows} rows")
        for warning in self.warnings:
            show_warning(warning)


def show_horizons(errors: Sequence[HorizonError]) -> None:
    """Position error of a free run over growing horizons."""
    rows = [(f"{one.horizon_s:g} s", *one.texts(1e3)) for one in errors]
    show_table(
        ("horizon", "identified, mrad or mm", "description"), rows, "Free run from measured states: error of position"
    )


def show_replay(name: str, found: Replay) -> None:
    """Forward validation of one log."""
    rows = [
        (joint, f"{torque:.4g}", f"{1e3 * drift:.4g}")
        for joint, torque, drift in zip(found.joint_names, found.torque_error, found.position_drift, strict=True)
    ]
    title = f"{name} replayed ({found.engine}), {found.n_windows} windows of {1e3 * found.window_s:.0f} ms"
    show_table(("joint", "mean torque error, N m or N", "drift, mrad or mm"), rows, title)
    for note in found.notes:
        show_note(note)
    ends = found.end_effector_position[:, -1], found.end_effector_orientation[:, -1]
    show(
        f"link {found.frame} at the end of a window: off by {1e3 * ends[0].mean():.3g} mm and "
        f"{math.degrees(ends[1].mean()):.3g} degrees on average, at most {1e3 * ends[0].max():.3g} mm and "
        f"{math.degrees(ends[1].max()):.3g} degrees; energy balance off by {percent(found.energy_error)}"
    )
