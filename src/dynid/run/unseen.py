"""Prediction of logs that a run has not seen, and the samples of a loaded run from its own logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.recording.recording import Recording
from dynid.recording.samples import Samples
from dynid.regression.factor import factorise
from dynid.run.log_part import refuse_same
from dynid.run.logs import Logs, read_logs, read_unseen, unchanged
from dynid.run.motion import assembled, chosen_filter, rows_of, under_load
from dynid.run.options import ROW_OPTIONS, Settings
from dynid.run.record import Run
from dynid.run.rows import RowPlan, plan_rows, row_kinds
from dynid.run.signals import FILTERING, Filter, hold_still, split_recording, to_samples
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
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0))
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

    def validation(self) -> Validation:
        """How well the run predicts their torque."""
        return validate(self.run.robot, self.run.estimate, self.samples, self.run.judged_hz)

    def row_error(self) -> RowError:
        """How well the run explains their rows."""
        return row_error(rows_of(self.plan, self.run.robot, self.samples, self.recordings), self.run.estimate)


def unseen_logs(run: Run, paths: Sequence[str | Path], **changes: Any) -> Unseen:
    """Logs that a run has not seen, filtered as the run was.

    ``changes`` are settings by name that differ from the run's: how the logs are read (``from_s`` and ``to_s``, by default the
    whole log, ``preset``, ``mapping``, ``drive_gains``), which rows they are judged by, and, for a run from a table of
    poses, how they are filtered.
    """
    files = [Path(path) for path in paths]
    settings = replace(run.settings, **({"from_s": None, "to_s": None} | changes))
    found = read_unseen(run.robot, files, settings)
    refuse_same(files, found.hashes, seen=run.logs)
    filtered = filter_for(run, found, settings)
    samples = under_load(run, [to_samples(recording, filtered, settings.max_rows) for recording in found.recordings])
    asked = any(name in changes for name in ROW_OPTIONS)
    return Unseen(run, found.recordings, samples, _other_plan(run, settings) if asked else _own_plan(run))


def _own_plan(run: Run) -> RowPlan:
    """The rows of the run; torque where it was identified from something else than motion."""
    return run.rows if run.rows.kind in row_kinds() else RowPlan()


def _other_plan(run: Run, settings: Settings) -> RowPlan:
    """The rows that the settings ask for, with the window that the run chose where they leave it open."""
    return plan_rows(settings, None if run.rows.polynomial is None else run.rows.polynomial.window_s, run.judged_hz)


def filter_for(run: Run, logs: Logs, settings: Settings) -> Filter:
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
    return chosen_filter(run.robot, logs.recordings, settings)[0]


def with_logs(run: Run) -> Run:
    """A loaded run with its samples and regression made again from its logs; as it is where a log is gone or has changed."""
    files = [*run.logs, *run.validation_logs]
    if run.filter is None or not all(unchanged(Path(path), digest) for path, digest in files):
        return run
    unseen = _recordings(run, [path for path, _ in run.validation_logs]) if run.validation_logs else ()
    if not run.logs:  # retrieved from coefficients: there is nothing to validate on but these
        others = [to_samples(recording, run.filter, run.settings.max_rows) for recording in unseen]
        return replace(run, unseen=under_load(run, others))
    whole = known = _recordings(run, [path for path, _ in run.logs])
    if run.settings.split is not None:
        parts = [split_recording(recording, run.settings.split) for recording in known]
        known, unseen = tuple(first for first, _ in parts), tuple(rest for _, rest in parts)
    filtered, most = run.filter, run.settings.max_rows
    samples = under_load(run, hold_still([to_samples(recording, filtered, most) for recording in known]))
    regression = factorise(rows_of(run.rows, run.robot, samples, known))
    notes = run.notes
    made = assembled(
        replace(run, samples=samples, recordings=whole, regression=regression),
        [to_samples(recording, filtered, most) for recording in unseen],
        unseen,
    )
    return replace(made, notes=notes)


def _recordings(run: Run, paths: Sequence[str]) -> tuple[Recording, ...]:
    found = read_logs(run.robot, [Path(path) for path in paths], run.settings)
    assert isinstance(found, Logs)
    return found.recordings
