"""The main job: robot and logs in, estimate and validation out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.estimation.constraints.bounds import read_bounds
from dynid.estimation.constraints.constraints import constraints_from_table
from dynid.estimation.estimate import Estimate, Method, estimate
from dynid.estimation.friction.choice import (
    FILTER_MEMORY,
    FrictionChoice,
    choose_friction,
    estimate_under_load,
    with_own_numbers,
)
from dynid.estimation.friction.fit import with_transmitted_load
from dynid.estimation.methods.registry import method_named
from dynid.inertia import is_consistent
from dynid.progress import Tell, silent
from dynid.recording.finding import DataCheck
from dynid.recording.recording import Recording, StaticRecording
from dynid.recording.samples import Samples
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import matrix_regression
from dynid.regression.static import static_matrix
from dynid.robot.effects import friction_effects
from dynid.robot.friction import with_friction
from dynid.robot.model import Robot
from dynid.robot.read import read_robot
from dynid.run.gate import gate
from dynid.run.prepare import (
    Filter,
    Logs,
    hold_still,
    read_logs,
    read_unseen,
    refuse_repeats,
    split_recording,
    to_samples,
    with_dead_zone,
)
from dynid.run.settings import Settings
from dynid.run.tune import Trial, choose_filter
from dynid.validation.data_check import check_recording
from dynid.validation.torque import TorqueError, Validation, validate

PRIOR_MARGIN = 1e-4
"""How far inside the consistent set, relative to its size, a link of the description must be to serve as a prior."""


@dataclass(frozen=True, eq=False)
class Run:
    """Everything one identification did and found."""

    settings: Settings
    robot: Robot
    """Cut to the joints of the logs, with the effects identified; its parameters are the nominal ones."""
    estimate: Estimate
    identification: TorqueError | None
    validation: Validation | None
    filter: Filter | None
    trials: tuple[Trial, ...] = ()
    logs: tuple[tuple[str, str], ...] = ()
    """Path and hash of every log identified on."""
    validation_logs: tuple[tuple[str, str], ...] = ()
    friction: FrictionChoice | None = None
    """The friction model, where one was asked for, and what it was chosen against."""
    checks: tuple[DataCheck, ...] = ()
    """What was found wrong with each log."""
    comparisons: tuple[Mapping[str, Any], ...] = ()
    """What other methods found on the same samples, each with ``method``, ``relative_error``, ``feasible``, ``seconds``."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    samples: tuple[Samples, ...] = ()
    unseen: tuple[Samples, ...] = ()

    @property
    def identified(self) -> Robot:
        """The robot with the identified parameters."""
        return self.robot.with_parameters(self.estimate.standard)

    def summary(self) -> dict[str, Any]:
        """What scripts rely on, under fixed names."""
        own, unseen = self.identification, self.validation
        return {
            "method": self.estimate.method,
            "outcome": self.estimate.outcome.name.lower(),
            "robot": self.robot.name,
            "n_samples": self.estimate.n_samples,
            "n_parameters": self.estimate.base.n_parameters,
            "n_base": self.estimate.base.n_base,
            "rank": self.estimate.rank,
            "condition_number": self.estimate.condition_number,
            "condition_number_scaled": self.estimate.condition_number_scaled,
            "relative_error": {
                "identification": self.estimate.relative_error if own is None else own.relative_error,
                "validation": None if unseen is None else unseen.relative_error,
            },
            "relative_error_raw": {
                "identification": None if own is None else own.relative_error_raw,
                "validation": None if unseen is None else unseen.relative_error_raw,
            },
            "rmse": list(self.estimate.residual_rms if own is None else own.rmse),
            "feasible": self.estimate.feasible,
            "filter": None if self.filter is None else self.filter.__dict__ | {"text": self.filter.describe()},
            "friction": "none" if not self.robot.effects else ",".join(effect.name for effect in self.robot.effects),
            "friction_model": None if self.friction is None else self.friction.as_dict(),
            "seconds": self.seconds,
            "base": [
                {"name": name, "expression": text, "value": value, "sigma_percent": spread, "origin": origin}
                for name, text, value, spread, origin in zip(
                    self.estimate.base.names,
                    self.estimate.base.expressions(),
                    self.estimate.base_values.tolist(),
                    self.estimate.sigma_percent.tolist(),
                    self.estimate.origin,
                    strict=True,
                )
            ],
            "notes": list(self.notes),
        } | ({"retrieval": self.retrieval} if self.retrieval else {})

    @property
    def retrieval(self) -> dict[str, Any]:
        """How far a retrieval is from the best possible, what it violates, what the joints carry; empty for other methods."""
        details = self.estimate.details
        if "lower_bound" not in details:
            return {}
        names = ("cost", "lower_bound", "gap", "violated", "largest_joint_wrench", "interrupted")
        return {name: details[name] for name in names if name in details}


def identify(
    robot: Robot | str | Path,
    logs: Sequence[str | Path] | str | Path,
    settings: Settings | None = None,
    *,
    validate_on: Sequence[str | Path] = (),
    tell: Tell = silent,
) -> Run:
    """Identify a robot from logs of its motion (or a table of poses), and validate on unseen logs or a held-out part.

    ``tell`` hears what is being done.
    """
    started = time.perf_counter()
    chosen = settings or Settings()
    if chosen.split is not None and validate_on:
        raise InputError("a split and validation logs were both given, expected one of the two")
    paths = [Path(path) for path in ([logs] if isinstance(logs, (str, Path)) else logs)]
    model = robot if isinstance(robot, Robot) else read_robot(robot, chosen.effects or "none", chosen.gravity, chosen.lock)
    if chosen.bounds is not None:
        read_bounds(chosen.bounds)  # a file that cannot be read is said before any work
    tell("reading the logs")
    found = read_logs(model, paths, chosen)
    if isinstance(found, StaticRecording):
        run = _identify_static(model, found, paths[0], chosen, validate_on, tell)
    else:
        run = _identify_motion(found, chosen, [Path(path) for path in validate_on], tell)
    return replace(run, seconds=time.perf_counter() - started)


def method_of(settings: Settings, robot: Robot, tell: Tell = silent) -> Method:
    """The method that the settings name, under their constraints.

    What the data hardly see of a link, its mass most of all, would wander to the boundary of the consistent set. So the
    semidefinite estimate is held by the description, taken to be as uncertain as its own size, where that is consistent;
    where it is not, or is empty, by the square of the distance to it, so that masses stay as small as the data let them.
    """
    options: dict[str, Any] = {} if settings.bounds is None else {"bounds": settings.bounds}
    if settings.bounds is not None:
        read_bounds(settings.bounds).check(robot.parameters, f"bounds of '{settings.bounds}'")
    if settings.method == "sdp":
        usable = np.all(is_consistent(robot.parameters.inertials, margin=PRIOR_MARGIN))
        prior = ("entropic" if usable else "euclidean") if settings.prior == "auto" else settings.prior
        options |= {"prior": prior, "strength": settings.prior_strength}
    if settings.method == "retrieve":
        options |= {
            "optimiser": settings.optimiser,
            "starts": settings.starts,
            "seed": settings.seed,
            "engine": "processes" if settings.optimiser == "annealing" and settings.starts > 1 else None,
            "progress": lambda done, total: tell(f"estimating by retrieve: {done} of {total} starts done"),
        }
    return method_named(settings.method, constraints_from_table(settings.constraints), **options)


def _identify_motion(logs: Logs, settings: Settings, validate_on: list[Path], tell: Tell) -> Run:
    robot = logs.robot
    known, unseen_recordings = list(logs.recordings), []
    validation_files: list[tuple[str, str]] = []
    if settings.split is not None:
        parts = [split_recording(recording, settings.split) for recording in logs.recordings]
        known, unseen_recordings = [first for first, _ in parts], [rest for _, rest in parts]
    elif validate_on:
        hashes = refuse_repeats(validate_on, seen=logs.hashes)
        others = read_unseen(robot, validate_on, settings)
        unseen_recordings = list(others.recordings)
        validation_files = list(zip((str(path) for path in validate_on), hashes, strict=True))
    if settings.bounds is not None and settings.friction is None:
        method_of(settings, robot)  # names that the robot does not have are said before any work
    tell("looking into the logs")
    checks = tuple(check_recording(recording, robot) for recording in logs.recordings)
    if settings.friction is not None:
        robot = with_friction(robot, friction_effects("linear"))
    chosen_filter, trials = choose_filter(robot, reduce_to_base(robot), known, settings, tell)
    robot = with_dead_zone(robot, known, chosen_filter, settings)
    samples = hold_still([to_samples(recording, chosen_filter, settings.max_rows) for recording in known])
    unseen = tuple(to_samples(recording, chosen_filter, settings.max_rows) for recording in unseen_recordings)
    choice = None
    if settings.friction is not None:
        memory_s = FILTER_MEMORY / chosen_filter.torque_cutoff_hz
        choice = choose_friction(robot, samples, settings.friction, time_s=memory_s, tell=tell)
        robot = choice.robot
    else:
        robot = with_own_numbers(robot, samples)
    tell(f"estimating by {settings.method}")
    result, samples = estimate_under_load(robot, samples, method_of(settings, robot, tell))
    tell("predicting torque")
    unseen = under_load(robot, result, unseen)
    return Run(
        settings=settings,
        robot=robot,
        estimate=result,
        identification=validate(robot, result, samples).total,
        validation=validate(robot, result, unseen) if unseen else None,
        filter=chosen_filter,
        trials=trials,
        logs=tuple(zip(logs.paths, logs.hashes, strict=True)),
        validation_logs=tuple(validation_files),
        friction=choice,
        checks=checks,
        notes=(
            *robot.source.notes,
            *logs.notes,
            *_findings(logs, checks),
            *(() if choice is None else choice.notes()),
            *gate(result, robot, samples),
        ),
        samples=samples,
        unseen=unseen,
    )


def _identify_static(
    robot: Robot, poses: StaticRecording, path: Path, settings: Settings, validate_on: Sequence[str | Path], tell: Tell
) -> Run:
    """Reverse engineering from a table of poses: rigid bodies only, no filter."""
    if validate_on or settings.split is not None:
        raise InputError(f"{path} is a table of poses; it is validated by its own residual, not by other logs")
    rigid = robot.with_effects(())
    regression = matrix_regression(
        rigid.parameters, ["poses"], [static_matrix(rigid, poses.position, poses.inertia, poses.gravity)]
    )
    tell(f"estimating by {settings.method}")
    result = estimate(regression, reduce_to_base(rigid), method_of(settings, rigid, tell))
    result = replace(result, n_samples=len(poses.position))
    return Run(
        settings=settings,
        robot=rigid,
        estimate=result,
        identification=None,
        validation=None,
        filter=None,
        logs=((str(path), refuse_repeats([path])[0]),),
        notes=(*rigid.source.notes, *poses.source.notes, *gate(result, rigid)),
    )


def validate_run(run: Run, paths: Sequence[str | Path]) -> Validation:
    """Prediction of logs that a run has not seen, filtered as the run was."""
    return validate(run.robot, run.estimate, unseen_samples(run, paths))


def unseen_samples(run: Run, paths: Sequence[str | Path], **reading: Any) -> tuple[Samples, ...]:
    """Samples of logs that a run has not seen, filtered as the run was.

    How they are read may differ from the run's logs: ``from_s`` and ``to_s`` (by default the whole log), ``preset``,
    ``mapping``, ``drive_gains``.
    """
    changes = {"from_s": None, "to_s": None} | reading
    files = [Path(path) for path in paths]
    if run.filter is None:
        raise InputError("this run was identified from a table of poses: it has no filter to apply to a motion log")
    refuse_repeats(files, seen=[digest for _, digest in run.logs])
    found = read_unseen(run.robot, files, replace(run.settings, **changes))
    samples = [to_samples(recording, run.filter, run.settings.max_rows) for recording in found.recordings]
    return under_load(run.robot, run.estimate, samples)


def resampled(run: Run) -> Run:
    """A loaded run with its samples and errors made again from its logs; as it is where a log is gone or has changed."""
    files = [*run.logs, *run.validation_logs]
    if run.filter is None or not all(_unchanged(path, digest) for path, digest in files):
        return run
    filtered, most = run.filter, run.settings.max_rows
    known = _recordings(run, [path for path, _ in run.logs])
    unseen = _recordings(run, [path for path, _ in run.validation_logs]) if run.validation_logs else []
    if run.settings.split is not None:
        parts = [split_recording(recording, run.settings.split) for recording in known]
        known, unseen = [first for first, _ in parts], [rest for _, rest in parts]
    held = hold_still([to_samples(recording, filtered, most) for recording in known])
    samples = under_load(run.robot, run.estimate, held)
    others = under_load(run.robot, run.estimate, [to_samples(recording, filtered, most) for recording in unseen])
    return replace(
        run,
        samples=samples,
        unseen=others,
        identification=validate(run.robot, run.estimate, samples).total,
        validation=validate(run.robot, run.estimate, others) if others else None,
    )


def under_load(robot: Robot, result: Estimate, samples: Sequence[Samples]) -> tuple[Samples, ...]:
    """Samples with the load that the estimate gives, where the robot's friction depends on it."""
    identified = robot.with_parameters(result.standard)
    return tuple(with_transmitted_load(identified, one) for one in samples)


def _recordings(run: Run, paths: list[str]) -> list[Recording]:
    found = read_logs(run.robot, [Path(path) for path in paths], run.settings)
    assert not isinstance(found, StaticRecording)
    return list(found.recordings)


def _unchanged(path: str, digest: str) -> bool:
    return Path(path).is_file() and refuse_repeats([Path(path)]) == [digest]


def _findings(logs: Logs, checks: Sequence[DataCheck]) -> list[str]:
    """What is wrong with the logs, with the file that it is about; what spoils the result is called an error."""
    words = {"error": "error in ", "warning": ""}
    return [
        f"{words[finding.severity]}{Path(path).name}: {finding.sentence}. {finding.fix}"
        for path, check in zip(logs.paths, checks, strict=True)
        for finding in check.findings
        if finding.severity != "note"
    ]
