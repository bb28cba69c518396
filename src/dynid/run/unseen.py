"""Prediction of logs that a run has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynid.engine import engine_from
from dynid.errors import InputError
from dynid.recording.recording import Recording
from dynid.recording.samples import Samples, SampleStream
from dynid.run.errors import judged_streams
from dynid.run.log_paths import log_paths
from dynid.run.logs import open_unseen
from dynid.run.long_logs import (
    Changed,
    UnderLoad,
    chosen_windows,
    with_interval,
)
from dynid.run.motion import chosen_filter, rows_of, under_load
from dynid.run.options import ROW_OPTIONS, Settings
from dynid.run.record import Run
from dynid.run.rows import RowPlan, plan_rows, row_kinds
from dynid.run.signals import FILTERING, Filter, to_samples
from dynid.validation.rows import RowError, row_error
from dynid.validation.torque import Validation, validate


def validate_run(run: Run, paths: Sequence[str | Path], **reading: Any) -> Validation:
    """Prediction of logs that a run has not seen, filtered as the run was.

    Args:
        run: the run.
        paths: the logs.
        reading: settings by name that differ from the run's, such as ``preset`` or ``from_s``, see :func:`unseen_logs`.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> _ = dynid.write_recording(dynid.demo_recording(seed=1), "other.csv")
        >>> dynid.validate_run(run, ["other.csv"]).relative_error < 0.1
        True
    """
    return unseen_logs(run, paths, **reading).validation()


@dataclass(frozen=True, eq=False)
class Unseen:
    """Logs that a run has not seen, filtered as the run was, and the statement that their rows make."""

    run: Run
    recordings: tuple[Recording, ...]
    samples: tuple[Samples, ...]
    plan: RowPlan
    streams: tuple[SampleStream, ...] = ()
    """All samples, where they are too many to hold; ``recordings`` and ``samples`` are then windows of them."""
    row_streams: tuple[SampleStream, ...] = ()
    """Those that rows are made of."""
    engine: str = "serial"
    """Where passes over the streams run."""

    def validation(self) -> Validation:
        """How well the run predicts their torque."""
        if self.streams:
            return judged_streams(self.run, self.run.estimate, self.streams, engine_from(self.engine))[0]
        return validate(self.run.robot, self.run.estimate, self.samples, self.run.judged_hz)

    def row_error(self) -> RowError:
        """How well the run explains their rows."""
        if self.streams:
            loaded = [Changed(stream, UnderLoad(self.run.identified)) for stream in self.row_streams]
            return row_error(self.plan.source(self.run.robot, loaded), self.run.estimate)
        return row_error(rows_of(self.plan, self.run.robot, self.samples, self.recordings), self.run.estimate)


def unseen_logs(run: Run, paths: Sequence[str | Path], **changes: Any) -> Unseen:
    """Logs that a run has not seen, filtered as the run was.

    ``changes`` are settings by name that differ from the run's: how the logs are read (``from_s`` and ``to_s``, by default the
    whole log, ``preset``, ``mapping``, ``drive_gains``), which rows they are judged by, and, for a run from a table of
    poses, how they are filtered.
    """
    files = log_paths(paths)
    settings = replace(run.settings, **({"from_s": None, "to_s": None, "engine": "serial"} | changes))
    found = open_unseen(run.robot, files, settings, seen=run.logs)
    recordings = found.recordings or (tuple(recording for _, recording in chosen_windows(found.long)) if found.long else ())
    filtered = filter_for(run, recordings, settings)
    samples = under_load(run, [to_samples(recording, filtered, settings.max_rows) for recording in recordings])
    asked = any(name in changes for name in ROW_OPTIONS)
    plan = _other_plan(run, settings) if asked else _own_plan(run)
    if found.long:
        plan = with_interval(plan, run.robot, found.long)
    streams = tuple(log.samples(filtered, settings.max_rows) for log in found.long)
    row_streams = tuple(log.raw_samples() for log in found.long) if plan.of_recorded else streams
    return Unseen(run, recordings, samples, plan, streams, row_streams, settings.engine)


def _own_plan(run: Run) -> RowPlan:
    """The rows of the run; torque where it was identified from something else than motion."""
    return run.rows if run.rows.kind in row_kinds() else RowPlan()


def _other_plan(run: Run, settings: Settings) -> RowPlan:
    """The rows that the settings ask for, with the window that the run chose where they leave it open."""
    return plan_rows(settings, None if run.rows.polynomial is None else run.rows.polynomial.window_s, run.judged_hz)


def filter_for(run: Run, recordings: Sequence[Recording], settings: Settings) -> Filter:
    """The filter of a run; a run from a table of poses has none, so it is that of the settings."""
    if run.filter is not None:
        asked = [name for name in FILTERING if getattr(settings, name) != getattr(run.settings, name)]
        if asked:
            raise InputError(
                f"setting '{asked[0]}' differs from the run's: logs are filtered as the run was, {run.filter.describe()}"
            )
        return run.filter
    if settings.cutoff_hz == "auto" and settings.filter == "butterworth":
        raise InputError(
            f"this run was identified from {'coefficients' if run.from_coefficients else 'a table of poses'} and has no filter "
            "for a motion log: give --cutoff-hz F"
        )
    return chosen_filter(run.robot, recordings, settings)[0]
