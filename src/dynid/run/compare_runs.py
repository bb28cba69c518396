"""Two runs side by side: what was done differently, which values differ beyond their uncertainty, which one predicts better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.estimation.result import Estimate
from dynid.run.record import Run
from dynid.run.unseen import unseen_logs
from dynid.validation.torque import validate

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
        return {
            "name": self.name,
            "expression": self.expression,
            "first": self.first,
            "second": self.second,
            "first_sigma": self.first_sigma,
            "second_sigma": self.second_sigma,
            "distance": self.distance,
            "differs": self.differs,
        }


@dataclass(frozen=True)
class ErrorPair:
    """Prediction of one log by both runs, in one band."""

    log: str
    band_hz: float | None
    first: float
    second: float

    def as_dict(self) -> dict[str, Any]:
        return {"log": self.log, "band_hz": self.band_hz, "first": self.first, "second": self.second}


@dataclass(frozen=True)
class ComparedRuns:
    """What two runs have in common and where they differ.

    Args:
        changes: what was done differently: its name, as it was in the first run, as it was in the second.
        values: every base value of either run.
        errors: prediction of the same logs by both.

    Examples:
        >>> import dynid
        >>> dynid.ComparedRuns(changes=(), values=()).sentence()
        'the runs have no base value in common that the data of both determine'
    """

    changes: tuple[tuple[str, str, str], ...]
    values: tuple[ValuePair, ...]
    errors: tuple[ErrorPair, ...] = ()

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
            "logs": [pair.as_dict() for pair in self.errors],
        }


def compare_runs(first: Run, second: Run, logs: Sequence[str | Path] = ()) -> ComparedRuns:
    """Two runs side by side: settings, base values with their uncertainty, and their prediction of the same logs.

    Base values are compared where both runs have a base parameter of the same name and expression. Predictions are compared in
    one band, the narrower of the two runs' own.

    Args:
        first: a run.
        second: another one.
        logs: logs that neither run was identified on, to predict.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> a, b = (
        ...     dynid.identify("arm.urdf", "log.csv", dynid.Settings(method=name, cutoff_hz=20.0, friction="linear"))
        ...     for name in ("ols", "wls")
        ... )
        >>> found = dynid.compare_runs(a, b)
        >>> [what for what, *_ in found.changes], found.n_compared > 0
        (['method'], True)
    """
    if set(first.robot.joint_names).isdisjoint(second.robot.joint_names):
        raise InputError(
            f"the runs are of robots without a joint in common, '{first.robot.name}' with {', '.join(first.robot.joint_names)} and "
            f"'{second.robot.name}' with {', '.join(second.robot.joint_names)}: their values cannot be compared"
        )
    return ComparedRuns(_changes(first, second), _values(first.estimate, second.estimate), _errors(first, second, logs))


def _changes(first: Run, second: Run) -> tuple[tuple[str, str, str], ...]:
    """What was done differently, in words of the options; then inputs and choices."""
    before, after = first.settings.as_dict(), second.settings.as_dict()
    found = [(name.replace("_", " "), before[name], after[name]) for name in before if before[name] != after.get(name)]
    facts = [
        ("robot description", _short(first.robot.source.sha256), _short(second.robot.source.sha256)),
        ("moving joints", ", ".join(first.robot.joint_names), ", ".join(second.robot.joint_names)),
        ("logs", _logs(first.logs), _logs(second.logs)),
        ("effects", _effects(first), _effects(second)),
        ("filter", _filter(first), _filter(second)),
    ]
    found += [(name, before, after) for name, before, after in facts if before != after]
    return tuple((name, str(before), str(after)) for name, before, after in found)


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


def _errors(first: Run, second: Run, logs: Sequence[str | Path]) -> tuple[ErrorPair, ...]:
    if not logs:
        return ()
    bands = [run.judged_hz for run in (first, second) if run.judged_hz is not None]
    band_hz = min(bands, default=None)
    found = []
    for run in (first, second):
        unseen = unseen_logs(run, logs)
        found.append([log.relative_error for log in validate(run.robot, run.estimate, unseen.samples, band_hz).logs])
    return tuple(ErrorPair(str(log), band_hz, a, b) for log, a, b in zip(logs, *found, strict=True))


def _short(digest: str) -> str:
    return digest[:12] or "not from a file"


def _logs(logs: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{Path(path).name} ({digest[:8]})" for path, digest in logs) or "none"


def _effects(run: Run) -> str:
    return ", ".join(effect.label for effect in run.robot.effects) or "none"


def _filter(run: Run) -> str:
    return "none" if run.filter is None else run.filter.describe()
