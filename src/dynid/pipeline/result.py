"""A run: everything one identification did and found, computed once. Report, exports and store only read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.codec import to_record
from dynid.dynamics.inverse_dynamics import friction_part, inverse_dynamics, mass_matrix, needs_load
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.errors import InputError
from dynid.estimation.advice import Advice
from dynid.estimation.calibration import Calibrated
from dynid.estimation.consistency.feasibility import Feasibility
from dynid.estimation.consistency.repair import rotors_in_links
from dynid.estimation.friction.selection import FrictionChoice
from dynid.estimation.result import Estimate
from dynid.finding import DataCheck, Finding, Verdict
from dynid.io.logs.paths import LogInputs
from dynid.io.robots.mjcf_new import mujoco_model
from dynid.model.effects.effect import EffectValue
from dynid.model.friction import searched_values, without_friction
from dynid.model.links import with_links_apart
from dynid.model.robot import Robot
from dynid.pipeline.filter_selection import Trial
from dynid.pipeline.log import Data
from dynid.pipeline.options import Settings, command_line
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import Filter
from dynid.pipeline.wrench import SensorBody
from dynid.regression.factor import Regression
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.validation.consistency import ModelConsistency, check_model
from dynid.validation.prediction import PredictionError, Validation
from dynid.validation.replay import Replay

LOAD_ROUNDS = 50
"""Most rounds until acceleration and load-dependent friction agree."""


def _writer(name: str) -> Any:
    """The module that writes a result, which knows results itself: it is loaded when something is written."""
    return import_module(f"dynid.pipeline.{name}")


COEFFICIENTS = "coefficients"
"""Kind of the rows of a run that was retrieved from given coefficients: each of them is one."""


def interval_text(low: float | None, high: float | None) -> str:
    """An interval in words; an end is None where the value is held at that end of its range."""
    if low is None:
        return "not determined" if high is None else f"at most {high:.3g}"
    return f"at least {low:.3g}" if high is None else f"{low:.3g} to {high:.3g}"


@dataclass(frozen=True, eq=False)
class IdentificationResult:
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

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> isinstance(run, dynid.IdentificationResult), run.summary()["method"]
        (True, 'wls')
        >>> run.predict([[0.0] * 7], [[0.1] * 7], [[0.0] * 7]).shape
        (1, 7)
    """

    settings: Settings
    robot: Robot
    """Cut to the joints of the logs, with the effects identified; its parameters are the nominal ones."""
    estimate: Estimate
    identification: PredictionError | None
    validation: Validation | None
    filter: Filter | None
    rows: RowPlan
    """Equations of the rows, and how they are filtered."""
    row_error: PredictionError | None = None
    """Residual of the rows identified on."""
    row_validation: PredictionError | None = None
    """Residual of the rows of unseen data."""
    trials: tuple[Trial, ...] = ()
    logs: tuple[tuple[str, str], ...] = ()
    """Path and hash of every log identified on."""
    validation_logs: tuple[tuple[str, str], ...] = ()
    advice: tuple[Advice, ...] = ()
    """What would lower the error on unseen data most, found in the residual of held-out blocks."""
    friction_choice: FrictionChoice | None = None
    """The friction model, where one was asked for, and what it was chosen against."""
    calibration: tuple[Calibrated, ...] | None = None
    """Zeros, gains and offsets of sensors, where they were asked for."""
    checks: tuple[DataCheck, ...] = ()
    """What was found wrong with each log."""
    feasibility: Feasibility | None = None
    """Whether a robot with consistent links has the base values found, and what proves it."""
    verdict: Verdict | None = None
    """Whether the model can be used, and why not; None before it is judged."""
    comparisons: tuple[Mapping[str, Any], ...] = ()
    """What other methods found on the same samples, each with ``method``, ``relative_error``, ``feasible``, ``seconds``."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    regression: Regression | None = None
    """What the data say about the parameters; None for a run that was loaded without its logs."""
    data: Data | None = None
    """Logs and samples that it was made from; None for a run that was loaded without them."""
    replay: Replay | None = None
    """The identified model driven by the measured torque; None for a run that was loaded."""
    body: SensorBody | None = None
    """The body on a force/torque sensor, where the logs are of one; ``estimate`` is then that of the body and its offsets."""

    @property
    def samples(self) -> tuple[Samples, ...]:
        """Samples identified on, or windows of them where they are too many to hold; none without the logs."""
        return () if self.data is None else self.data.known.windows

    @property
    def unseen(self) -> tuple[Samples, ...]:
        """Samples validated on, or windows of them."""
        return () if self.data is None or self.data.unseen is None else self.data.unseen.windows

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """The logs as they were read, or windows of such as are too long to hold; none without the logs."""
        return () if self.data is None else self.data.logs.recordings or self.data.known.recordings

    @property
    def windows(self) -> tuple[str, ...]:
        """Which part of which log each of ``samples`` is; empty where they are the logs."""
        return () if self.data is None else self.data.known.window_names

    @property
    def unseen_windows(self) -> tuple[str, ...]:
        """Which part of which log each of ``unseen`` is; empty where they are the logs."""
        return () if self.data is None or self.data.unseen is None else self.data.unseen.window_names

    def __repr__(self) -> str:
        """Ten lines at most: what was identified, how well it predicts, whether it can be used."""
        error, found = self.judged_error, self.estimate
        lines = [
            f"Run of {self.robot.name}: {self.robot.n_joints} joints, {found.base.n_base} base parameters, {found.n_samples} samples",
            f"  method    {self.estimate.method} ({self.estimate.outcome.name.lower()}), {self.rows.kind} rows",
            f"  filter    {self.filter_text or 'none'}",
            f"  friction  {', '.join(effect.label for effect in self.robot.effects) or 'none'}",
            f"  error     {100.0 * error:.3g} % of the {self.measured} on {'known' if self.validation is None else 'unseen'} data",
            f"  known     {self.estimate.rank} of {self.estimate.base.n_base} base parameters from the data",
            f"  links     {'all physically consistent' if self.consistency.feasible else 'not all physically consistent'}",
        ]
        if self.verdict is not None:
            lines.append(f"  verdict   {self.verdict.sentence}")
        return "\n".join(lines)

    def changed(self, **changes: Any) -> IdentificationResult:
        """The result with some fields replaced; the model that follows from it is not built again."""
        other = replace(self, **changes)
        if not changes.keys() & {"robot", "estimate"}:
            vars(other).update(
                {name: vars(self)[name] for name in ("model", "consistency", "without_rotors", "held") if name in vars(self)}
            )
        return other

    @cached_property
    def model(self) -> Robot:
        """The robot with the identified parameters, bodies and the links they were merged of alike.

        Of a body on a sensor it is the robot that moves the sensor as it is described, or the body alone where none does.
        """
        if self.body is not None:
            found = dict(zip(self.robot.parameters.names, self.body.best.phi.tolist(), strict=False))
            return self.robot if self.mover is not None else self.robot.with_parameters(found)
        return with_links_apart(self.robot.with_parameters(self.estimate.standard), self.robot)[0]

    @property
    def measured(self) -> str:
        """What the model predicts, in one word: ``torque`` of the joints, or ``wrench`` on a sensor."""
        return "torque" if self.body is None else "wrench"

    @property
    def filter_text(self) -> str:
        """How signals or rows were filtered, in words; empty where nothing was."""
        how = self.filter if self.body is None else self.body.filter
        return "" if how is None else how.describe()

    @property
    def mover(self) -> Robot | None:
        """The robot that moves what was identified; None for a sensor that measured its own motion."""
        return None if self.body is not None and self.body.place is None else self.robot

    @cached_property
    def consistency(self) -> ModelConsistency:
        """Physical consistency of every link of the identified robot, which all outputs show."""
        return check_model(self.model)

    @cached_property
    def without_rotors(self) -> tuple[Robot, float, float] | None:
        """The model for formats without rotor inertia, see :func:`~dynid.estimation.consistency.repair.rotors_in_links`."""
        return rotors_in_links(self.model, self.samples)

    @cached_property
    def held(self) -> dict[str, tuple[Robot, tuple[str, ...]]]:
        """The model as formats of simulators hold it, by their names, with what is to be told; made when it is first asked for."""
        return {}

    @property
    def covariance(self) -> Array:
        """Of the base values, ``(n_base, n_base)``."""
        return self.estimate.covariance

    @property
    def intervals(self) -> Array:
        """95 % intervals of the base values, ``(n_base, 2)``."""
        return self.estimate.interval()

    @property
    def parameters(self) -> tuple[dict[str, Any], ...]:
        """Every base parameter: ``name``, ``expression``, ``value``, ``sigma``, ``lower`` and ``upper`` (95 %), ``origin``."""
        found = self.estimate
        columns = found.base.names, found.base.expressions(), found.base_values.tolist(), found.sigma.tolist()
        return tuple(
            {"name": name, "expression": text, "value": value, "sigma": sigma, "lower": low, "upper": high, "origin": origin}
            for name, text, value, sigma, (low, high), origin in zip(
                *columns, self.intervals.tolist(), found.origin, strict=True
            )
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the logs, file by file, and what else is to be known."""
        of_logs = [
            replace(finding, where=(path, *finding.where))
            for (path, _), check in zip(self.logs, self.checks, strict=False)
            for finding in check
        ]
        return (*of_logs, *(self.body.findings if self.body else ()), *(Finding("note", note) for note in self.notes))

    def to_pandas(self) -> Any:
        """:attr:`parameters` as a pandas data frame, a row for each base parameter."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise InputError("to_pandas needs the package pandas, which is not installed: pip install pandas") from None
        return pandas.DataFrame(list(self.parameters)).set_index("name")

    def to_latex(self) -> str:
        """:attr:`parameters` as a LaTeX table with booktabs rules: value, standard deviation, unit and 95 % interval."""
        head = r"parameter & value & $\sigma$ & unit & 95\,\% \\"
        lines = [r"\begin{tabular}{lrrlr}", r"\toprule", head, r"\midrule"]
        units = dict(zip(self.robot.parameters.names, self.robot.parameters.units, strict=True))
        for one in self.parameters:
            interval = f"[{one['lower']:.5g}, {one['upper']:.5g}]"
            name = one["expression"].replace("_", r"\_")
            unit = re.sub(r"\^(\d)", r"$^\1$", units.get(one["name"], ""))
            lines.append(rf"{name} & {one['value']:.5g} & {one['sigma']:.2g} & {unit} & {interval} \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"

    def predict(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Torque of the identified model.

        Args:
            q: positions, ``(samples, joints)``, rad or m.
            v: velocities.
            a: accelerations.

        Returns:
            ``(samples, torques)``, N m or N.
        """
        return inverse_dynamics(self.model, q, v, a)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """``M(q)`` of bodies and rotors, ``(samples, joints, joints)``; ``q`` is ``(samples, joints)``."""
        return mass_matrix(without_friction(self.model), q)

    def coriolis(self, q: ArrayLike, v: ArrayLike) -> Array:
        """``C(q, v) v``, the torque of Coriolis and centrifugal forces, ``(samples, joints)``."""
        still = np.zeros_like(np.atleast_2d(np.asarray(v, dtype=np.float64)))
        return inverse_dynamics(self.model, q, v, still, effects=False) - self.gravity(q)

    def gravity(self, q: ArrayLike) -> Array:
        """``g(q)``, the torque that holds the links, ``(samples, joints)``."""
        still = np.zeros((len(np.atleast_2d(np.asarray(q, dtype=np.float64))), self.model.n_dof))
        return inverse_dynamics(self.model, q, still, still, effects=False)

    def friction(self, v: ArrayLike, load: ArrayLike | None = None) -> Array:
        """Torque of friction at these velocities, ``(samples, joints)``; ``load`` is the torque transmitted, zero without it."""
        speeds = np.atleast_2d(np.asarray(v, dtype=np.float64))
        carried = np.zeros_like(speeds) if load is None else np.atleast_2d(np.asarray(load, dtype=np.float64))
        q = np.zeros((len(speeds), self.model.n_position))
        return friction_part(self.model, q, speeds, carried)

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """Acceleration under a torque, ``(samples, joints)``; friction that depends on load is iterated until it agrees.

        Args:
            q: positions, ``(samples, joints)``, rad or m.
            v: velocities.
            tau: torques, N m or N.
        """
        M, torque = self.mass_matrix(q), np.atleast_2d(np.asarray(tau, dtype=np.float64))
        a = np.zeros_like(torque)
        for _ in range(LOAD_ROUNDS if needs_load(self.model) else 1):
            change = np.linalg.solve(M, (torque - self.predict(q, v, a))[..., None])[..., 0]
            a = a + change
            if np.abs(change).max(initial=0.0) < 1e-12 * max(np.abs(a).max(initial=0.0), 1.0):
                break
        return a

    def to_pinocchio(self) -> Any:
        """The identified model for Pinocchio, rotor inertia included."""
        return pinocchio_model(self.model)

    def to_mujoco(self) -> Any:
        """The identified model for MuJoCo, with the friction that MuJoCo can hold."""
        return mujoco_model(self.model)

    def validate(self, logs: LogInputs, **settings: Any) -> Validation:
        """Prediction of logs that the run has not seen, filtered as the run was: what ``dynid validate`` answers.

        Args:
            logs: files or logs in memory, as :func:`dynid.identify` takes them.
            settings: by name, where these logs are read otherwise than those of the run.
        """
        found: Validation = _writer("validate").unseen_logs(self, logs, **settings).validation()
        return found

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write numbers, models and report into a folder, as :func:`dynid.pipeline.export.write_result` does.

        Args:
            path: made if missing; a folder that holds files and is no run is refused.
            options: ``formats`` of the models, ``allow_inconsistent``, ``sections`` put into the report.

        Returns:
            The folder.
        """
        return Path(_writer("export").write_result(self, path, **options).folder)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write the report as one HTML page.

        Args:
            path: HTML file to write.
            options: ``sections`` of your own, ``png`` to write the figures as PNG files too.

        Returns:
            The file.
        """
        return Path(_writer("report").report_result(self, path, **options))

    @property
    def inner_numbers(self) -> tuple[tuple[EffectValue, str], ...]:
        """Numbers inside the friction of every joint, each with its 95 % interval in words, a dash where it was not estimated."""
        found = () if self.friction_choice is None else self.friction_choice.numbers
        texts = {(number.joint, number.name): interval_text(number.lower, number.upper) for number in found}
        return tuple((one, texts.get((one.joint, one.name), "–")) for one in searched_values(self.robot))

    @property
    def judged_hz(self) -> float | None:
        """Band in which torque is judged; None where the samples were filtered already, or there is no torque."""
        return None if self.filter is None else self.filter.row_band_hz

    @property
    def judged_error(self) -> float:
        """Relative error of filtered torque on unseen data, else on what was identified on."""
        judged = (self.validation, self.identification, self.estimate)
        return next(one.relative_error for one in judged if one is not None)

    @property
    def from_coefficients(self) -> bool:
        """Whether the parameters were retrieved from given coefficients, without data of the run's own."""
        return self.rows.kind == COEFFICIENTS

    def command(self, config: str = "dynid.toml") -> str:
        """The command that repeats this run; ``config`` is its run file, for what no flag can give."""
        robot = [] if self.mover is None else [self.robot.source.path or self.robot.name]
        first, *rest = (*robot, *(path for path, _ in self.logs))
        return command_line(self.settings, first, rest, [path for path, _ in self.validation_logs], config)

    def summary(self) -> dict[str, Any]:
        """What scripts rely on, under fixed names."""
        found, own, unseen = self.estimate, self.identification, self.validation
        values = self.parameters
        record = {
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
                "identification": (found if own is None else own).relative_error,
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
            "filter": None if self.filter is None else to_record(self.filter) | {"text": self.filter.describe()},
            "rows": self._rows(),
            "friction": "none" if not self.robot.effects else ",".join(effect.label for effect in self.robot.effects),
            "friction_model": None if self.friction_choice is None else self.friction_choice.as_dict(),
            "seconds": self.seconds,
            "base": [
                {key: one[key] for key in ("name", "expression", "value")}
                | {"sigma_percent": spread, "origin": one["origin"]}
                for one, spread in zip(values, found.sigma_percent.tolist(), strict=True)
            ],
            "intervals": [{key: one[key] for key in ("name", "value", "lower", "upper")} for one in values],
            "advice": to_record(self.advice),
            "calibration": to_record(self.calibration),
            "findings": [one.as_dict() for one in self.findings],
            "notes": list(self.notes),
        }
        record |= {name: own for name, own in (("retrieval", self.retrieval), ("recursive", self.recursion)) if own}
        body = self.body
        if body is None:
            return record
        del record[
            "base"
        ]  # the numbers of a body on a sensor stand under ``payload``, and are no base parameters of a robot
        return record | {
            "robot": None if self.mover is None else self.robot.name,
            "frame": body.frame,
            "feasible": body.best.feasible,
            "feasibility": {"decision": "feasible" if body.best.feasible else "infeasible", "proven": True},
            "filter": {"text": body.filter.describe()},
            "rows": {"kind": self.rows.kind, "channels": list(body.best.estimate.channel_names)},
            "payload": body.as_dict(),
        }

    @property
    def retrieval(self) -> dict[str, Any]:
        """How far a retrieval is from the best possible, what it violates, what the joints carry; empty for other methods."""
        return self._some_details(
            "violated",
            ("cost", "lower_bound", "gap", "gap_share", "violated", "largest_joint_wrench", "interrupted", "coefficients"),
        )

    @property
    def recursion(self) -> dict[str, Any]:
        """Flags and clipped values of a recursive estimate; empty for other methods."""
        return self._some_details("flags", ("flags", "clipped"))

    def _some_details(self, mark: str, names: tuple[str, ...]) -> dict[str, Any]:
        details = self.estimate.details
        return {name: details[name] for name in names if name in details} if mark in details else {}

    def _rows(self) -> dict[str, Any]:
        errors = {"identification": self.row_error, "validation": self.row_validation}
        told = {name: None if error is None else error.relative_error for name, error in errors.items()}
        filtered, found = self.filter, self.rows.as_dict() | {"error": told}
        if filtered is None or not self.samples:
            return found
        period_s = min(one.duration_s / max(len(one) - 1, 1) for one in self.samples)
        every = 1 if filtered.row_filter is None else filtered.row_filter.every(period_s)
        return found | {"signal_band_hz": filtered.cutoff_hz, "band_hz": filtered.band_hz, "every": every}
