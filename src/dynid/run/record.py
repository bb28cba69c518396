"""A run: everything one identification did and found, computed once. Report, exports and store only read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from dynid.estimation.advice import Advice
from dynid.estimation.convex.verdict import Verdict
from dynid.estimation.friction.choice import FrictionChoice
from dynid.estimation.result import Estimate
from dynid.recording.finding import DataCheck
from dynid.recording.recording import Recording
from dynid.recording.samples import Samples, SampleStream
from dynid.regression.factor import Regression
from dynid.robot.friction import searched_numbers
from dynid.robot.links_apart import with_links_apart
from dynid.robot.model import Robot
from dynid.run.bands import BandTrial
from dynid.run.options import Settings, command_line
from dynid.run.reason import RunVerdict
from dynid.run.rows import RowPlan
from dynid.run.signals import Filter
from dynid.run.tune import Trial
from dynid.validation.consistency import ModelConsistency, check_model
from dynid.validation.replay import Replay
from dynid.validation.rows import RowError
from dynid.validation.torque import TorqueError, Validation

COEFFICIENTS = "coefficients"
"""Kind of the rows of a run that was retrieved from given coefficients: each of them is one."""


class InnerRow(NamedTuple):
    """A number inside the friction of one joint; ``interval`` is None where it was not estimated."""

    joint: str
    name: str
    value: float
    unit: str
    interval: tuple[float, float] | None

    @property
    def interval_text(self) -> str:
        """The interval, or why there is none."""
        if self.interval is None:
            return "–"
        low, high = self.interval
        return "at the end of its range" if low == high else f"{low:.3g} to {high:.3g}"


@dataclass(frozen=True, eq=False)
class Run:
    """What one identification did and found.

    Args:
        settings: the options.
        estimate: base values, parameters and their uncertainty.
        identification: torque error on the samples identified on; None for poses.
        validation: torque error on unseen samples; None where there are none.
        filter: how the signals were filtered; None for poses.
        trials: cut-offs or windows that were tried, with their errors.
        validation_logs: path and hash of every log validated on.
        notes: sentences for the user.
        seconds: time spent, s.
        samples: samples identified on; none for a run that was loaded without its logs.
        unseen: samples validated on.
        unseen_streams: the same of logs that are read piece by piece.
        unseen_row_streams: those that rows are made of, where rows filter the signals as recorded themselves.
        unseen_windows: where in those logs ``unseen`` lies.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> isinstance(run, dynid.Run), run.summary()["method"]
        (True, 'wls')
    """

    settings: Settings
    robot: Robot
    """Cut to the joints of the logs, with the effects identified; its parameters are the nominal ones."""
    estimate: Estimate
    identification: TorqueError | None
    validation: Validation | None
    filter: Filter | None
    rows: RowPlan
    """Which physical statement made the rows."""
    row_error: RowError | None = None
    """Residual of the rows identified on."""
    row_validation: RowError | None = None
    """Residual of the rows of unseen data."""
    trials: tuple[Trial | BandTrial, ...] = ()
    logs: tuple[tuple[str, str], ...] = ()
    """Path and hash of every log identified on."""
    validation_logs: tuple[tuple[str, str], ...] = ()
    advice: tuple[Advice, ...] = ()
    """What would lower the error on unseen data most, found in the residual of held-out blocks."""
    friction: FrictionChoice | None = None
    """The friction model, where one was asked for, and what it was chosen against."""
    checks: tuple[DataCheck, ...] = ()
    """What was found wrong with each log."""
    feasibility: Verdict | None = None
    """Whether a robot with consistent links has the base values found, and what proves it."""
    verdict: RunVerdict | None = None
    """Whether the model can be used, and why not; None before it is judged."""
    comparisons: tuple[Mapping[str, Any], ...] = ()
    """What other methods found on the same samples, each with ``method``, ``relative_error``, ``feasible``, ``seconds``."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    regression: Regression | None = None
    """What the data say about the parameters; None for a run that was loaded without its logs."""
    recordings: tuple[Recording, ...] = ()
    """The logs as they were read; none for a run that was loaded without them."""
    samples: tuple[Samples, ...] = ()
    unseen: tuple[Samples, ...] = ()
    replay: Replay | None = None
    """The identified model driven by the measured torque; None for a run that was loaded."""
    streams: tuple[SampleStream, ...] = ()
    """All samples identified on, where they are too many to hold; ``samples`` and ``recordings`` are then windows of them."""
    unseen_streams: tuple[SampleStream, ...] = ()
    unseen_row_streams: tuple[SampleStream, ...] = ()
    windows: tuple[str, ...] = ()
    """Which part of which log each of ``samples`` is; empty where they are the logs."""
    unseen_windows: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Ten lines at most: what was identified, how well it predicts, whether it can be used."""
        error, found = self.judged_error, self.estimate
        lines = [
            f"Run of {self.robot.name}: {self.robot.n_joints} joints, {found.base.n_base} base parameters, {found.n_samples} samples",
            f"  method    {self.estimate.method} ({self.estimate.outcome.name.lower()}), {self.rows.kind} rows",
            f"  filter    {'none' if self.filter is None else self.filter.describe()}",
            f"  friction  {', '.join(effect.label for effect in self.robot.effects) or 'none'}",
            f"  error     {100.0 * error:.3g} % of the torque on {'known' if self.validation is None else 'unseen'} data",
            f"  known     {self.estimate.rank} of {self.estimate.base.n_base} base parameters from the data",
            f"  links     {'all physically consistent' if self.consistency.feasible else 'not all physically consistent'}",
        ]
        if self.verdict is not None:
            lines.append(f"  verdict   {self.verdict.sentence}")
        return "\n".join(lines)

    @cached_property
    def identified(self) -> Robot:
        """The robot with the identified parameters, bodies and the links they were merged of alike."""
        return with_links_apart(self.robot.with_parameters(self.estimate.standard), self.robot)[0]

    @cached_property
    def consistency(self) -> ModelConsistency:
        """Physical consistency of every link of the identified robot, which all outputs show."""
        return check_model(self.identified)

    @property
    def inner_numbers(self) -> tuple[InnerRow, ...]:
        """Numbers inside the friction of every joint, with their 95 % intervals where these are known: for terminal and report."""
        choice = self.friction
        known = {} if choice is None else {(number.joint, number.name): number for number in choice.numbers}
        rows = []
        for one in searched_numbers(self.robot):
            number = known.get((one.joint, one.name))
            limits = None if number is None else (number.lower, number.upper)
            rows.append(InnerRow(one.joint, one.name, one.value, one.unit, limits))
        return tuple(rows)

    @property
    def judged_hz(self) -> float | None:
        """Band in which torque is judged; None where the samples were filtered already, or there is no torque."""
        return None if self.filter is None else self.filter.row_band_hz

    @property
    def judged_error(self) -> float:
        """Relative error of filtered torque on unseen data, else on what was identified on."""
        if self.validation is not None:
            return self.validation.relative_error
        return self.estimate.relative_error if self.identification is None else self.identification.relative_error

    @property
    def from_coefficients(self) -> bool:
        """Whether the parameters were retrieved from given coefficients, without data of the run's own."""
        return self.rows.kind == COEFFICIENTS

    def command(self, config: str = "dynid.toml") -> str:
        """The command that repeats this run; ``config`` is its run file, for what no flag can give."""
        return command_line(
            self.settings,
            self.robot.source.path or self.robot.name,
            [path for path, _ in self.logs],
            [path for path, _ in self.validation_logs],
            config,
        )

    def summary(self) -> dict[str, Any]:
        """What scripts rely on, under fixed names."""
        found, own, unseen = self.estimate, self.identification, self.validation
        interval = found.interval()
        return {
            "method": found.method,
            "outcome": found.outcome.name.lower(),
            "robot": self.robot.name,
            "n_samples": found.n_samples,
            "n_parameters": found.base.n_parameters,
            "n_base": found.base.n_base,
            "rank": found.rank,
            "condition_number": found.condition_number,
            "condition_number_scaled": found.condition_number_scaled,
            "relative_error": {
                "identification": found.relative_error if own is None else own.relative_error,
                "validation": None if unseen is None else unseen.relative_error,
            },
            "relative_error_raw": {
                "identification": None if own is None else own.relative_error_raw,
                "validation": None if unseen is None else unseen.relative_error_raw,
            },
            "rmse": list(found.residual_rms if own is None else own.rmse),
            "feasible": self.consistency.feasible,
            "verdict": None if self.verdict is None else self.verdict.as_dict(),
            "feasibility": None if self.feasibility is None else self.feasibility.as_dict(),
            "filter": None if self.filter is None else self.filter.as_dict() | {"text": self.filter.describe()},
            "rows": self._rows(),
            "friction": "none" if not self.robot.effects else ",".join(effect.label for effect in self.robot.effects),
            "friction_model": None if self.friction is None else self.friction.as_dict(),
            "seconds": self.seconds,
            "base": [
                {"name": name, "expression": text, "value": value, "sigma_percent": spread, "origin": origin}
                for name, text, value, spread, origin in zip(
                    found.base.names,
                    found.base.expressions(),
                    found.base_values.tolist(),
                    found.sigma_percent.tolist(),
                    found.origin,
                    strict=True,
                )
            ],
            "intervals": [
                {"name": name, "value": value, "lower": low, "upper": high}
                for name, value, (low, high) in zip(
                    found.base.names, found.base_values.tolist(), interval.tolist(), strict=True
                )
            ],
            "advice": [one.as_dict() for one in self.advice],
            "notes": list(self.notes),
        } | self._method_details()

    @property
    def retrieval(self) -> dict[str, Any]:
        """How far a retrieval is from the best possible, what it violates, what the joints carry; empty for other methods."""
        return self._some_details(
            "lower_bound", ("cost", "lower_bound", "gap", "violated", "largest_joint_wrench", "interrupted", "coefficients")
        )

    @property
    def recursion(self) -> dict[str, Any]:
        """Flags and clipped values of a recursive estimate; empty for other methods."""
        return self._some_details("flags", ("flags", "clipped"))

    def _method_details(self) -> dict[str, Any]:
        found = {"retrieval": self.retrieval, "recursive": self.recursion}
        return {name: details for name, details in found.items() if details}

    def _some_details(self, mark: str, names: tuple[str, ...]) -> dict[str, Any]:
        details = self.estimate.details
        return {name: details[name] for name in names if name in details} if mark in details else {}

    def _rows(self) -> dict[str, Any]:
        filtered = self.filter
        found = self.rows.as_dict() | {"error": self._row_errors()}
        if filtered is None or not self.samples:
            return found
        period_s = min(one.duration_s / max(len(one) - 1, 1) for one in self.samples)
        every = 1 if filtered.row_filter is None else filtered.row_filter.every(period_s)
        return found | {"signal_band_hz": filtered.cutoff_hz, "band_hz": filtered.band_hz, "every": every}

    def _row_errors(self) -> dict[str, float | None]:
        errors = {"identification": self.row_error, "validation": self.row_validation}
        return {name: None if error is None else error.relative_error for name, error in errors.items()}
