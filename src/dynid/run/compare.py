"""Every estimator on the same data, one table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynid.engine import engine_from
from dynid.errors import InputError
from dynid.estimation.convex.verdict import Verdict
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.registry import METHODS, entry_named
from dynid.estimation.result import Estimate, Method
from dynid.progress import Tell, silent
from dynid.regression.factor import Regression
from dynid.robot.model import Robot
from dynid.run.errors import torque_errors
from dynid.run.identify import identify
from dynid.run.judged import judged
from dynid.run.motion import method_of
from dynid.run.options import Settings
from dynid.run.record import Run


@dataclass(frozen=True, eq=False)
class Compared:
    """One method's result on the samples of a run."""

    method: str
    estimate: Estimate
    feasibility: Verdict
    identification: float
    validation: float | None
    seconds: float

    @property
    def row(self) -> tuple[str, ...]:
        """What a table shows beside the errors: links, base values, seconds and outcome."""
        return (
            "yes" if self.estimate.feasible else "no",
            self.feasibility.decision if self.feasibility.proven else "not decided",
            f"{self.seconds:.3f}",
            self.estimate.outcome.name.lower(),
        )

    @property
    def sentence(self) -> str:
        """What was found out about the base values; empty where that is nothing."""
        verdict = self.feasibility
        return "; ".join(part for part in (verdict.sentence, verdict.inertia_matrix) if part) if verdict.sentence else ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "relative_error": {"identification": self.identification, "validation": self.validation},
            "feasible": self.estimate.feasible,
            "feasibility": self.feasibility.as_dict(),
            "outcome": self.estimate.outcome.name.lower(),
            "seconds": self.seconds,
        }


@dataclass(frozen=True, eq=False)
class NotCompared:
    """A method that cannot work on these rows, and why."""

    method: str
    sentence: str
    identification: None = None
    validation: None = None
    row: tuple[str, ...] = ("-", "-", "-", "refused")

    def as_dict(self) -> dict[str, Any]:
        errors = {"identification": None, "validation": None}
        return {
            "method": self.method,
            "relative_error": errors,
            "feasible": None,
            "feasibility": {},
            "outcome": "refused",
            "seconds": None,
            "refusal": self.sentence,
        }


def compare(
    robot: Robot | str | Path,
    logs: Sequence[str | Path],
    settings: Settings | None = None,
    *,
    validate_on: Sequence[str | Path] = (),
    methods: Sequence[str] = METHODS,
    tell: Tell = silent,
) -> tuple[Run, tuple[Compared | NotCompared, ...]]:
    """Every method on the same data: filter and friction are settled once, then each method works on the same regression.

    A method that cannot work on this robot or these rows is there with its reason; if none can, the first reason is raised.

    Args:
        robot: the robot, or the path of its description.
        logs: logs to identify on; without ``validate_on`` and ``settings.split`` their last 35 % are held out.
        settings: the options; by default those of the command line.
        validate_on: unseen logs.
        methods: names of the methods.
        tell: called with a short text before each step.

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
    return run, compare_on(run, chosen, methods, tell=tell)


def compare_on(
    run: Run, settings: Settings, methods: Sequence[str] = METHODS, *, tell: Tell = silent
) -> tuple[Compared | NotCompared, ...]:
    """Every method on the samples of a run, with its filter and friction model."""
    if run.regression is None:
        raise InputError("this run has no data on which methods could be compared: its logs are missing or have changed")
    _check_names(methods)
    found: list[Compared | NotCompared] = []
    refusals: list[InputError] = []
    for name in methods:
        tell(f"estimating by {name}")
        own = replace(settings, method=name, **_taken(name, settings))
        method = method_of(own, run.robot)  # options that are wrong for every robot are refused here, for all methods
        try:
            found.append(_by_method(method, own, run, run.regression))
        except InputError as error:
            refusals.append(error)
            found.append(NotCompared(name, str(error)))
    if refusals and len(refusals) == len(found):
        raise refusals[0]
    return tuple(found)


def _by_method(method: Method, settings: Settings, run: Run, regression: Regression) -> Compared:
    started = time.perf_counter()
    result = estimate(regression, run.estimate.base, method)
    seconds = time.perf_counter() - started
    result, verdict = judged(result, run.robot, settings)
    errors = torque_errors(run, result, engine_from(settings.engine))
    known = result.relative_error if errors.known is None else errors.known.relative_error
    unseen = None if errors.unseen is None else errors.unseen.relative_error
    return Compared(settings.method, result, verdict, known, unseen, seconds)


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
