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
from dynid.estimation.result import Estimate
from dynid.progress import Tell, silent
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

    def as_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "relative_error": {"identification": self.identification, "validation": self.validation},
            "feasible": self.estimate.feasible,
            "feasibility": self.feasibility.as_dict(),
            "outcome": self.estimate.outcome.name.lower(),
            "seconds": self.seconds,
        }


def compare(
    robot: Robot | str | Path,
    logs: Sequence[str | Path],
    settings: Settings | None = None,
    *,
    validate_on: Sequence[str | Path] = (),
    methods: Sequence[str] = METHODS,
    tell: Tell = silent,
) -> tuple[Run, tuple[Compared, ...]]:
    """Every method on the same data: filter and friction are settled once, then each method works on the same regression.

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
) -> tuple[Compared, ...]:
    """Every method on the samples of a run, with its filter and friction model."""
    if run.regression is None:
        raise InputError("this run has no data on which methods could be compared: its logs are missing or have changed")
    _check_names(methods)
    found = []
    for name in methods:
        tell(f"estimating by {name}")
        started = time.perf_counter()
        own = replace(settings, method=name, **_taken(name, settings))
        result = estimate(run.regression, run.estimate.base, method_of(own, run.robot))
        seconds = time.perf_counter() - started
        result, verdict = judged(result, run.robot, own)
        errors = torque_errors(run, result, engine_from(settings.engine))
        known = result.relative_error if errors.known is None else errors.known.relative_error
        unseen = None if errors.unseen is None else errors.unseen.relative_error
        found.append(Compared(name, result, verdict, known, unseen, seconds))
    return tuple(found)


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
