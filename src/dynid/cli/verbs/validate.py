"""``dynid validate``: prediction on unseen logs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import check_max_error, end_above, percent, show, show_json, show_note, show_table, show_warning
from dynid.cli.schema import AsJson, LogFiles, Verbose, takes_options
from dynid.cli.screen import Screen
from dynid.errors import InputError
from dynid.option_types import options_of
from dynid.pipeline.option_groups import FLOATING, READING, ROWS, WORK
from dynid.pipeline.options import Settings

if TYPE_CHECKING:
    from dynid.validation.prediction import PredictionError, Validation
    from dynid.validation.replay import HorizonError, Replay


@takes_options(options_of(Settings, READING, ROWS, WORK), without=("dead_zone", "window"))  # --window is that of --replay
def validate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an earlier identification.", show_default=False)],
    logs: LogFiles,
    max_error: Annotated[
        float | None,
        typer.Option(
            "--max-error",
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
    verbose: Verbose = False,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Predict the torque of logs that the run has not seen, filtered as the run was.

    The error in the run's own rows is shown as well; --rows chooses another statement to judge by. A run from a table of
    poses or from coefficients has no filter: give --cutoff-hz. For another run, filter options are refused.

    Example: [bold]dynid validate run unseen.csv --max-error 0.05[/bold]
    """
    from dynid.io.logs.paths import log_paths
    from dynid.pipeline.folder import load_result
    from dynid.pipeline.validate import misread_logs, unseen_logs
    from dynid.validation.replay import error_over_horizons, replay

    check_max_error(max_error)
    asked = given or {}
    paths = log_paths(logs)
    known = load_result(run)
    if forward and (known.body is not None or known.rows.kind == FLOATING):
        other = "floats" if known.body is None else "is what moves a force/torque sensor"
        raise InputError(f"--replay drives a robot that stands fixed by its joint torque; that of run '{run}' {other}")
    unseen = unseen_logs(known, paths, **asked)
    verdict, rows = unseen.validation(), unseen.row_error()
    judged = rows.relative_error if rows is not None and "rows" in asked else verdict.relative_error
    replays = [replay(known.model, one, window_s=window) for one in unseen.samples] if forward else []
    horizons = [error_over_horizons(known.model, known.robot, one) for one in unseen.samples] if forward else []
    found = _Found(paths, verdict, rows, replays, horizons, misread_logs(known, unseen.recordings))
    found.tell(max_error, json, verbose)
    end_above(judged, max_error)


@dataclass(frozen=True, eq=False)
class _Found:
    """What was found on unseen logs; replays and horizons are empty where nobody asked for them."""

    paths: Sequence[Path]
    verdict: Validation
    rows: PredictionError | None = None
    """Of the rows of joint torque; None for the wrench of a sensor."""
    replays: Sequence[Replay] = ()
    horizons: Sequence[Sequence[HorizonError]] = ()
    warnings: Sequence[str] = ()
    """What makes the errors those of reading and not of the model."""

    def tell(self, max_error: float | None, json: bool, verbose: bool) -> None:
        """As one JSON object, as tables, or on one screen."""
        if json:
            show_json(self.as_dict() | {"at_most": max_error})
            return
        self.show_screen(max_error, verbose)
        for path, found, errors in zip(self.paths, self.replays, self.horizons, strict=False):
            show_replay(path.name, found)
            show_horizons(errors)
        for warning in self.warnings:
            show_warning(warning)

    def show_screen(self, max_error: float | None, verbose: bool) -> None:
        """Error of all logs, the worst joints and the worst logs; ``verbose`` every one of them."""
        verdict, screen = self.verdict, Screen(whole=verbose)
        allowed = "" if max_error is None else f", {percent(max_error)} allowed"
        logs = f"{len(self.paths)} unseen logs" if len(self.paths) > 1 else self.paths[0].name
        raw = percent(verdict.relative_error_raw)
        screen.line(f"error on {logs}: {percent(verdict.relative_error)} filtered, {raw} raw{allowed}", "title")
        if self.rows is not None and self.rows.kind != "torque":
            screen.line(f"error of {self.rows.kind} rows: {percent(self.rows.relative_error)} of {self.rows.n_samples} rows")
        errors = zip(
            verdict.joint_names, verdict.rmse.tolist(), verdict.total.relative_error_per_channel.tolist(), strict=True
        )
        worst = sorted(errors, key=lambda one: -one[2] if one[2] == one[2] else 0.0)
        joints = [(name, percent(error), error if error == error else 0.0, f"{rmse:.4g}") for name, rmse, error in worst]
        screen.table(("joint" if self.rows else "axis", "error", "", "rms, N m or N"), joints)
        if len(self.paths) > 1:
            every = zip(self.paths, verdict.logs, strict=True)
            per_log = [
                (
                    path.name,
                    percent(log.relative_error),
                    log.relative_error,
                    percent(log.relative_error_raw),
                    str(log.n_samples),
                )
                for path, log in sorted(every, key=lambda one: -one[1].relative_error)
            ]
            screen.table(("log, the worst first", "error", "", "raw", "samples"), per_log)
        screen.show()

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
        shown = {
            "relative_error": verdict.relative_error,
            "relative_error_raw": verdict.relative_error_raw,
            "rmse": verdict.rmse,
            "logs": logs,
        }
        if self.rows is None:
            return shown | {"n_samples": verdict.total.n_samples, "rows": {"kind": "wrench"}}
        return shown | {"rows": self.rows.as_dict(), "warnings": list(self.warnings)}


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
