"""How well a result predicts torque: of what it was identified on, of what it was not, and of logs that it has not seen.

Errors are sums over their pieces. Logs that the model does not predict at all are looked into: in another unit,
with another sign, or of a robot that stands otherwise, they were likely read wrongly.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from dynid.engine import Engine, Serial, Tell, engine_from, silent
from dynid.errors import InputError
from dynid.estimation.result import Estimate
from dynid.finding import DataCheck, Finding
from dynid.io.logs.log_file import log_path
from dynid.io.logs.paths import LogInputs, log_paths, refuse_same
from dynid.pipeline.data import open_logs, open_unseen, read_sensor_data, split_data, unchanged
from dynid.pipeline.estimate_checks import estimate_warnings, sharp_friction_notes
from dynid.pipeline.estimate_rows import row_source
from dynid.pipeline.filter_selection import chosen_filter
from dynid.pipeline.log import Data, Logs, samples_under_load
from dynid.pipeline.option_groups import FLOATING
from dynid.pipeline.options import ROW_OPTIONS, Settings
from dynid.pipeline.partitions import partitioned_samples
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.row_plan import RowPlan, plan_rows, row_kinds
from dynid.pipeline.sensor import sensor_errors, sensor_samples, with_sensor_errors
from dynid.pipeline.signal_filter import FILTERING, Filter, with_dead_zone
from dynid.regression.factor import factorise
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.validation.data_check import check_recording
from dynid.validation.prediction import (
    MotionRange,
    PredictionError,
    Validation,
    log_sums,
    row_error,
    row_error_of,
    sum_errors,
    validation_of,
)


def prediction_errors(
    run: IdentificationResult, result: Estimate, logs: Logs | None, engine: Engine | None = None
) -> tuple[Validation | None, MotionRange | None]:
    """Torque errors of an estimate on logs, and how the joints moved in them; ``engine`` says where the passes over files run."""
    if logs is None or not (logs.samples or logs.wrenches):
        return None, None
    if run.body is not None:
        return sensor_errors(run.body, sensor_samples(run, logs)), None
    if run.rows.kind == FLOATING:
        from dynid.pipeline.floating import floating_errors

        return floating_errors(run.rows, run.robot, result, logs), None
    runner = Serial() if engine is None or logs.in_memory else engine
    model = run.model if result is run.estimate else run.robot.with_parameters(result.standard)
    loaded = samples_under_load(model, logs.samples)
    cut = (
        (lambda one: [one])
        if isinstance(runner, Serial)
        else partial(partitioned_samples, robot=run.robot, band_hz=run.judged_hz)
    )
    parts = [cut(one) for one in loaded]
    work = partial(sum_errors, model, run.judged_hz)
    found = runner.map(work, [part for log in parts for part in log])
    sums = [log_sums(one, [next(found) for _ in log]) for one, log in zip(loaded, parts, strict=True)]
    return validation_of(run.robot, sums), reduce(operator.add, sums).motion


UNLIKE = 0.3
"""Part of the torque of a log that the model of a run may leave unexplained before the log is looked into."""
_OF_LOADS = ("torque_sign", "exchanged_torque", "exchanged_motion", "exchanged_joints", "mirrored_joint")
"""What a load that the model lacks may look like."""


def misread_logs(run: IdentificationResult, recordings: Iterable[Recording], *, loaded: bool = False) -> tuple[str, ...]:
    """One sentence on each log that an error of reading explains better than an error of the model, with its remedy.

    ``loaded``: the robot carries something that the run does not know.
    """
    return tuple(
        f"{Path(recording.source.path).name}: {finding.what}; {finding.remedy}".replace("nominal model", "run's model")
        for recording in (
            () if run.robot.floating else recordings
        )  # a robot that stands fixed would explain their torque wrongly
        for finding in check_recording(recording, run.model).findings
        if finding.level == "error" and not (loaded and finding.code in _OF_LOADS)
    )


def with_errors(run: IdentificationResult, tell: Tell = silent) -> IdentificationResult:
    """The run with its errors on known and unseen data, and the notes on its estimate."""
    tell(f"predicting {run.measured}")
    if run.body is not None:
        return with_sensor_errors(run)
    data, engine, row_validation = run.data, engine_from(run.settings.engine), None
    assert data is not None
    if data.unseen is not None:
        judged = data.unseen.under_load(run.model)
        data, row_validation = replace(data, unseen=judged), logs_row_error(run, run.rows, judged)
    (known, motion), (unseen, _) = (prediction_errors(run, run.estimate, logs, engine) for logs in (data.known, data.unseen))
    filtered_before = run.rows.kind == "polynomial" or (run.filter is not None and run.filter.row_band_hz is None)
    misread = data.unseen is not None and unseen is not None and unseen.relative_error > UNLIKE
    return run.changed(
        data=data,
        checks=_with_disagreement(run.checks, known, unseen),
        identification=None if known is None else known.total,
        validation=unseen,
        row_error=None if run.regression is None else row_error_of(run.regression, run.estimate, run.rows.kind),
        row_validation=row_validation,
        notes=(
            *run.notes,
            *estimate_warnings(run.estimate, run.robot, motion, run.feasibility),
            *sharp_friction_notes(run.robot, filtered_before),
            *(misread_logs(run, data.unseen.recordings) if misread and data.unseen is not None else ()),
        ),
    )


DISAGREE, LEAST_GAP = 2.5, 0.01
"""Times the unseen error, and share of the torque beyond it, from which on the error on what was identified on needs an explanation."""


def _with_disagreement(
    checks: tuple[DataCheck, ...], known: Validation | None, unseen: Validation | None
) -> tuple[DataCheck, ...]:
    """The checks, with a finding where what was identified on is explained far worse than what was not."""
    if known is None or unseen is None or not checks:
        return checks
    own, other = known.relative_error, unseen.relative_error
    if not own > DISAGREE * other + LEAST_GAP:
        return checks
    finding = Finding(
        "warning",
        f"what was identified on is explained to {100.0 * own:.3g} % only, unseen torque to {100.0 * other:.3g} %: a part of the log "
        "is not of the model that fits the rest",
        "look at the residual over time for stops, contacts or a load, and leave that part out with --from and --to",
        code="unexplained_part",
        values={"identification": own, "validation": other},
    )
    return (checks[0].merged(DataCheck((finding,), {})), *checks[1:])


def logs_row_error(run: IdentificationResult, plan: RowPlan, logs: Logs) -> PredictionError:
    """Residual of the rows of logs that were not identified on."""
    rows = row_source(plan, run.robot, logs)
    return row_error(rows.with_samples(samples_under_load(run.model, rows.samples)), run.estimate)


@dataclass(frozen=True, eq=False)
class Unseen:
    """Logs that a run has not seen, filtered as the run was, and the statement that their rows make."""

    run: IdentificationResult
    logs: Logs
    plan: RowPlan
    engine: str = "serial"
    """Where passes over the files run."""

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """The logs, or windows of such as are too long to hold."""
        return self.logs.recordings

    @property
    def samples(self) -> tuple[Samples, ...]:
        """Samples of the recordings."""
        return self.logs.windows

    def validation(self) -> Validation:
        """How well the run predicts their torque."""
        found, _ = prediction_errors(self.run, self.run.estimate, self.logs, engine_from(self.engine))
        assert found is not None
        return found

    def row_error(self) -> PredictionError | None:
        """How well the run explains their rows; None for the wrench of a sensor."""
        return None if self.run.body is not None else logs_row_error(self.run, self.plan, self.logs)


def unseen_logs(run: IdentificationResult, paths: LogInputs, **changes: Any) -> Unseen:
    """Logs that a run has not seen, filtered as the run was.

    ``changes`` are settings by name that differ from the run's: how the logs are read (``from_s`` and ``to_s``, by default the
    whole log, ``preset``, ``mapping``, ``drive_gains``), which rows they are judged by, and, for a run from a table of
    poses, how they are filtered.
    """
    files = log_paths(paths)
    if run.body is not None:
        settings = run.settings.for_other_logs(changes, "sensor logs")
        logs = read_sensor_data(run.mover, files, replace(settings, split=None)).logs
        refuse_same(files, logs.hashes, seen=run.logs)
        return Unseen(run, logs, run.rows)
    if run.rows.kind == FLOATING:
        run.settings.for_other_logs(changes, "logs of a floating robot")
    settings = replace(run.settings, **({"from_s": None, "to_s": None, "engine": "serial"} | changes))
    found = open_unseen(run.robot, files, settings, seen=run.logs, plan=run.rows).with_windows()
    filtered = filter_for(run, found.recordings, settings)
    if run.filter is None:  # judged as a run with this filter is: torque in its band, friction with its dead zone
        run = replace(run, filter=filtered, robot=with_dead_zone(run.robot, found.recordings, filtered, settings))
    plan = run.rows if run.rows.kind in row_kinds() else RowPlan(band_hz=run.judged_hz)  # torque where it had no motion
    if any(name in changes for name in ROW_OPTIONS):
        window_s = None if run.rows.polynomial is None else run.rows.polynomial.window_s  # where the settings leave it open
        plan = plan_rows(settings, window_s, run.judged_hz)
    return Unseen(run, found.filtered(filtered, settings.max_rows).under_load(run.model), plan, settings.engine)


def filter_for(run: IdentificationResult, recordings: Sequence[Recording], settings: Settings) -> Filter:
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


def with_logs(run: IdentificationResult) -> IdentificationResult:
    """A loaded run with its samples and regression made again from its logs; as it is where a log is gone or has changed.

    Errors on logs that are too long to hold stay as they were found.
    """
    files, others = [log_path(path) for path, _ in run.logs], [log_path(path) for path, _ in run.validation_logs]
    known = all(unchanged(log_path(path), digest) for path, digest in (*run.logs, *run.validation_logs))
    if not known or (run.filter is None and run.body is None):
        return run
    settings = run.settings
    if run.body is not None:
        data = read_sensor_data(run.mover, files, settings, others)
        return run.changed(data=data, body=replace(run.body, samples=sensor_samples(run, data.known)))
    assert run.filter is not None
    if not run.logs:  # retrieved from coefficients: there is nothing to validate on but these
        unseen = open_unseen(run.robot, others, settings, in_memory=True) if others else None
        if unseen is None:
            return run
        judged = unseen.filtered(run.filter, settings.max_rows).under_load(run.model)
        return replace(run, data=Data(unseen.without_rows(), unseen.without_rows(), judged))
    found = open_logs(run.robot, files, settings, plan=run.rows)
    assert isinstance(found, Logs)
    data = split_data(found, run.robot, settings, others).filtered(run.filter, settings.max_rows)
    unseen = None if data.unseen is None else data.unseen.under_load(run.model)
    data = replace(data, known=data.known.under_load(run.model), unseen=unseen)
    if not data.known.in_memory:
        return replace(run, data=data)
    regression = factorise(row_source(run.rows, run.robot, data.known))
    return replace(with_errors(replace(run, data=data, regression=regression)), notes=run.notes)
