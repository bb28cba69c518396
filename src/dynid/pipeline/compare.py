"""Every estimator on the same data, one table.

Two runs side by side: what was done differently, which values differ beyond their uncertainty, which one predicts better.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dynid.engine import Tell, engine_from, silent
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency.feasibility import Feasibility
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.registry import METHODS, entry_named
from dynid.estimation.result import Estimate, Method
from dynid.io.logs.paths import LogInputs
from dynid.model.robot import Robot
from dynid.pipeline.estimate_checks import check_feasibility
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.robot_setup import method_of
from dynid.pipeline.validate import prediction_errors, unseen_logs
from dynid.validation.prediction import validate


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One method on the samples of a result, or why it cannot work on them."""

    method: str
    estimate: Estimate | None = None
    feasibility: Feasibility | None = None
    identification: float | None = None
    validation: float | None = None
    seconds: float | None = None
    logs: tuple[Mapping[str, Any], ...] = ()
    """Errors log by log, known ones first: ``log``, ``data`` (``known``, or ``unseen``: also the rest of a log that was split),
    ``relative_error``, and ``rmse`` of each joint, N m or N, or of each axis of a sensor."""
    refusal: str = ""
    """Why the method cannot work on this robot or these rows; empty where it can."""

    @property
    def row(self) -> tuple[str, ...]:
        """What a table shows beside the errors: links, base values, seconds and outcome."""
        if self.estimate is None or self.feasibility is None:
            return ("-", "-", "-", "refused")
        return (
            "yes" if self.estimate.feasible else "no",
            self.feasibility.decision if self.feasibility.proven else "not decided",
            f"{self.seconds:.3f}",
            self.estimate.outcome.name.lower(),
        )

    @property
    def sentence(self) -> str:
        """Why it was refused, or what was found out about the base values; empty where that is nothing."""
        found = self.feasibility
        if found is None or not found.sentence:
            return self.refusal
        return "; ".join(part for part in (found.sentence, found.inertia_matrix) if part)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; ``refusal`` is there where the method was refused."""
        found = self.estimate
        record = {
            "method": self.method,
            "relative_error": {"identification": self.identification, "validation": self.validation},
            "feasible": None if found is None else found.feasible,
            "feasibility": {} if self.feasibility is None else self.feasibility.as_dict(),
            "outcome": "refused" if found is None else found.outcome.name.lower(),
            "seconds": self.seconds,
            "logs": list(self.logs),
        }
        return record | ({"refusal": self.refusal} if self.refusal else {})


def compare(
    robot: Robot | str | Path | None,
    logs: LogInputs,
    settings: Settings | None = None,
    *,
    validate_on: LogInputs = (),
    methods: Sequence[str] = METHODS,
    tell: Tell = silent,
) -> tuple[IdentificationResult, tuple[MethodResult, ...]]:
    """Every method on the same data: filter and friction are settled once, then each method works on the same regression.

    A method that cannot work on this robot or these rows is there with its reason; if none can, the first reason is raised.

    Args:
        robot: the robot, or the path of its description.
        logs: logs to identify on; without ``validate_on`` and ``settings.split`` their last 35 % are held out.
        settings: the options; by default those of the command line.
        validate_on: unseen logs.
        methods: names of the methods.
        tell: called with a short text before each step.

    Returns:
        the run of the settings, and for each method its estimate, its errors (fractions), whether its base values are feasible
            and the seconds that it took, or why it could not work.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> settings = dynid.Settings(cutoff_hz=20.0, friction="linear")
        >>> run, compared = dynid.compare(dynid.demo_robot(), ["log.csv"], settings, methods=["ols", "wls"])
        >>> [one.method for one in compared]
        ['ols', 'wls']
    """
    _check_names(methods)
    given = settings or Settings()
    chosen = given if given.split is not None or validate_on else replace(given, split=0.65)
    plain = replace(chosen, method="ols", **_taken("ols", chosen))
    run = identify(robot, logs, plain, validate_on=validate_on, tell=tell)
    if run.body is not None:
        return run, _bodies(run, () if tuple(methods) == METHODS else methods)
    return run, compare_on(run, chosen, methods, tell=tell)


def _bodies(run: IdentificationResult, methods: Sequence[str]) -> tuple[MethodResult, ...]:
    """The body on a sensor by these methods, all of which a run of it has; by all where none is named."""
    found = {}
    for one in run.comparisons:
        errors, feasible = (
            one["relative_error"],
            Feasibility("feasible" if one["feasible"] else "infeasible", proof="bodies"),
        )
        assert run.body is not None
        estimate = run.body.by(one["method"]).estimate
        found[one["method"]] = MethodResult(
            one["method"], estimate, feasible, **errors, seconds=one["seconds"], logs=tuple(one["logs"])
        )
    for name in methods:
        if name not in found:
            raise UnknownNameError("method", name, found, "the body on a force/torque sensor")
    return tuple(found[name] for name in methods or found)


def compare_on(
    run: IdentificationResult, settings: Settings, methods: Sequence[str] = METHODS, *, tell: Tell = silent
) -> tuple[MethodResult, ...]:
    """Every method on the samples of a run, with its filter and friction model."""
    if run.regression is None:
        raise InputError("this run has no data on which methods could be compared: its logs are missing or have changed")
    _check_names(methods)
    found: list[MethodResult] = []
    refusals: list[InputError] = []
    for name in methods:
        tell(f"estimating by {name}")
        own = replace(settings, method=name, **_taken(name, settings))
        method = method_of(own, run.robot)  # options that are wrong for every robot are refused here, for all methods
        try:
            found.append(_by_method(method, own, run))
        except InputError as error:
            refusals.append(error)
            found.append(MethodResult(name, refusal=str(error)))
    if refusals and len(refusals) == len(found):
        raise refusals[0]
    return tuple(found)


def _by_method(method: Method, settings: Settings, run: IdentificationResult) -> MethodResult:
    assert run.regression is not None
    started = time.perf_counter()
    result = estimate(run.regression, run.estimate.base, method)
    seconds = time.perf_counter() - started
    result, verdict = check_feasibility(result, run.robot, settings)
    data, engine = run.data, engine_from(settings.engine)
    known, unseen = (
        prediction_errors(run, result, None if data is None else getattr(data, name), engine)[0]
        for name in ("known", "unseen")
    )
    error = result.relative_error if known is None else known.relative_error
    logs = [
        {"log": str(path), "data": name, "relative_error": one.relative_error, "rmse": tuple(one.rmse.tolist())}
        for name, found in (("known", known), ("unseen", unseen))
        if found is not None and data is not None
        for path, one in zip(getattr(data, name).paths, found.logs, strict=True)
    ]
    unknown = None if unseen is None else unseen.relative_error
    return MethodResult(settings.method, result, verdict, error, unknown, seconds, tuple(logs))


def _taken(method: str, settings: Settings) -> dict[str, Any]:
    """Constraints, bounds and conditions as far as a method takes them; the others are compared without.

    A consistent method that knows the full condition only keeps that one.
    """
    entry = entry_named(method)
    empty: dict[str, Any] = {"constraints": {}, "bounds": None, "conditions": ()}
    if entry.consistent:
        empty["condition"] = "full"
    return {name: getattr(settings, name) if name in entry.takes else nothing for name, nothing in empty.items()}


def compared_without(methods: Sequence[str], settings: Settings) -> str:
    """A sentence on the methods that were compared without what was asked for; empty where there are none."""
    without: dict[str, list[str]] = {}
    for name in methods:
        for option, used in _taken(name, settings).items():
            if used != getattr(settings, option):
                without.setdefault("the plain condition" if option == "condition" else option, []).append(name)
    return "; ".join(f"without {what}, which they do not take: {', '.join(names)}" for what, names in without.items())


def _check_names(methods: Sequence[str]) -> None:
    for name in methods:
        entry_named(name)


LEVEL = 1.959963984540054
"""Standard deviations of a 95 % interval: two equal values differ by more in one of twenty cases."""


@dataclass(frozen=True)
class ValuePair:
    """One base value in both runs; None where a run has no such base parameter, or the data did not show it there."""

    name: str
    expression: str
    first: float | None
    second: float | None
    first_sigma: float | None
    second_sigma: float | None

    @property
    def distance(self) -> float | None:
        """Difference in standard deviations of the difference; None where it cannot be said."""
        if self.first is None or self.second is None or self.first_sigma is None or self.second_sigma is None:
            return None
        spread = math.hypot(self.first_sigma, self.second_sigma)
        return (self.second - self.first) / spread if 0.0 < spread < math.inf else None

    @property
    def differs(self) -> bool:
        """Whether the 95 % interval of the difference leaves zero out."""
        return self.distance is not None and abs(self.distance) > LEVEL

    def as_dict(self) -> dict[str, Any]:
        """For JSON: with the distance."""
        return asdict(self) | {"distance": self.distance, "differs": self.differs}


@dataclass(frozen=True)
class ResultComparison:
    """What two runs have in common and where they differ.

    Args:
        changes: what was done differently: its name, as it was in the first run, as it was in the second.
        values: every base value of either run.
        errors: of the same logs, predicted by both: the log, the error of the first run, that of the second.
        band_hz: the band in which these errors are taken; None for torque as it is.

    Examples:
        >>> import dynid
        >>> from dynid.pipeline.compare import ResultComparison
        >>> ResultComparison(changes=(), values=()).sentence()
        'the runs have no base value in common that the data of both determine'
    """

    changes: tuple[tuple[str, str, str], ...]
    values: tuple[ValuePair, ...]
    errors: tuple[tuple[str, float, float], ...] = ()
    band_hz: float | None = None

    @property
    def n_compared(self) -> int:
        """Values that both runs know."""
        return sum(pair.distance is not None for pair in self.values)

    @property
    def differing(self) -> tuple[ValuePair, ...]:
        """Values that differ beyond their uncertainty, the farthest first."""
        return tuple(sorted((one for one in self.values if one.differs), key=lambda one: -abs(one.distance or 0.0)))

    def sentence(self) -> str:
        """How many values differ, and how many would by chance."""
        if not self.n_compared:
            return "the runs have no base value in common that the data of both determine"
        return (
            f"{len(self.differing)} of {self.n_compared} values differ beyond the 95 % interval of their difference; "
            f"equal values would do so about {0.05 * self.n_compared:.1f} times"
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "changes": [{"what": what, "first": first, "second": second} for what, first, second in self.changes],
            "n_compared": self.n_compared,
            "n_differing": len(self.differing),
            "values": [pair.as_dict() for pair in self.values],
            "logs": [{"log": log, "band_hz": self.band_hz, "first": a, "second": b} for log, a, b in self.errors],
        }


def compare_results(
    first: IdentificationResult, second: IdentificationResult, logs: Sequence[str | Path] = ()
) -> ResultComparison:
    """Two runs side by side: settings, base values with their uncertainty, and their prediction of the same logs.

    Base values are compared where both runs have a base parameter of the same name and expression. Predictions are compared in
    one band, the narrower of the two runs' own.

    Args:
        first: a run.
        second: another one.
        logs: logs that neither run was identified on, to predict.

    Returns:
        settings that differ, base values with their difference in units of its standard deviation, and the errors of both
            runs on the logs.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> a, b = (
        ...     dynid.identify("arm.urdf", "log.csv", dynid.Settings(method=name, cutoff_hz=20.0, friction="linear"))
        ...     for name in ("ols", "wls")
        ... )
        >>> found = dynid.compare_results(a, b)
        >>> [what for what, *_ in found.changes], found.n_compared > 0
        (['method'], True)
    """
    if first.body is not None or second.body is not None:
        raise InputError("a run of a body on a force/torque sensor was given, expected two runs of robots")
    if set(first.robot.joint_names).isdisjoint(second.robot.joint_names):
        raise InputError(
            f"the runs are of robots without a joint in common, '{first.robot.name}' with {', '.join(first.robot.joint_names)} and "
            f"'{second.robot.name}' with {', '.join(second.robot.joint_names)}: their values cannot be compared"
        )
    band_hz = min((run.judged_hz for run in (first, second) if run.judged_hz is not None), default=None)
    judged = [
        [one.relative_error for one in validate(run.robot, run.estimate, unseen_logs(run, logs).samples, band_hz).logs]
        for run in (first, second)
        if logs
    ]
    errors = tuple((str(log), *pair) for log, *pair in zip(logs, *judged, strict=True))
    return ResultComparison(_changes(first, second), _values(first.estimate, second.estimate), errors, band_hz)


def _changes(first: IdentificationResult, second: IdentificationResult) -> tuple[tuple[str, str, str], ...]:
    """What was done differently, in words of the options; then inputs and choices."""

    def done(run: IdentificationResult) -> list[tuple[str, Any]]:
        logs = ", ".join(f"{Path(path).name} ({digest[:8]})" for path, digest in run.logs)
        return [
            *((name.replace("_", " "), value) for name, value in run.settings.as_dict().items()),
            ("robot description", run.robot.source.sha256[:12] or "not from a file"),
            ("moving joints", ", ".join(run.robot.joint_names)),
            ("logs", logs or "none"),
            ("effects", ", ".join(effect.label for effect in run.robot.effects) or "none"),
            ("filter", run.filter_text or "none"),
        ]

    pairs = zip(done(first), done(second), strict=True)
    return tuple((name, str(before), str(after)) for (name, before), (_, after) in pairs if before != after)


def _values(first: Estimate, second: Estimate) -> tuple[ValuePair, ...]:
    known, other = _table(first), _table(second)
    return tuple(
        ValuePair(
            name,
            expression,
            *(table.get((name, expression), (None, None))[place] for place in (0, 1) for table in (known, other)),
        )
        for name, expression in dict.fromkeys([*known, *other])
    )


def _table(found: Estimate) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """Value and standard deviation by name and expression; None where the data do not show it."""
    rows = zip(
        found.base.names,
        found.base.expressions(),
        found.base_values.tolist(),
        found.sigma.tolist(),
        found.origin,
        strict=True,
    )
    return {
        (name, text): (value, sigma) if origin != "prior" and math.isfinite(sigma) else (value, None)
        for name, text, value, sigma, origin in rows
    }
