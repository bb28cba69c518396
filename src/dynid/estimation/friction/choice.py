"""Friction of a run: the choice among models by cross-validation, and friction identified anew on an old run.

A richer model always fits its own data better, so it is chosen by how well it predicts blocks of time that it was not
fitted to; among models that predict alike the one with the fewest columns wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.estimation.estimate import estimate
from dynid.estimation.friction.cross_validation import FrictionTrial, cross_validate, too_short
from dynid.estimation.friction.data import FrictionData
from dynid.estimation.friction.fit import (
    ROUNDS,
    Fitted,
    finished,
    fit_friction,
    fit_model,
    needs_load,
    with_bodies_held,
    with_transmitted_load,
)
from dynid.estimation.friction.inner import InnerNumber, InnerUncertainty, inner_uncertainty
from dynid.estimation.friction.model import FrictionModel
from dynid.estimation.linear import LinearProblem
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate, Method
from dynid.progress import Tell, silent
from dynid.recording.samples import Samples
from dynid.regression.base import LONG_CHAIN, reduce_to_base
from dynid.regression.factor import Regression, factorise
from dynid.regression.row_filter import FilteredRows, RowFilter
from dynid.regression.source import RowSource
from dynid.regression.torque_rows import TorqueRows
from dynid.robot.effects import Coulomb, Effect, OnJoints
from dynid.robot.effects.models import AUTO, START_TIME_S, friction_effects, tried_friction_models
from dynid.robot.friction import with_friction
from dynid.robot.model import Robot
from dynid.robot.motors import without_motors

ALIKE = 0.01
"""Models whose held-out errors differ by less than this part of the best predict alike."""
OWN_MODEL = 0.05
"""Part by which a joint's held-out error must fall for it to have a model of its own."""
TOGETHER = 0.03
"""Part by which the error of all joints must fall for some of them to have models of their own: a motion that shows little
is also predicted better by chance."""
FILTER_MEMORY = 0.3
"""Time over which a zero-phase low-pass smears a step, times its cut-off: where the search for a smooth sign starts."""
TRIAL_ROUNDS = 3
LOAD_ROUNDS = 8
LOAD_SETTLED = 1e-6


@dataclass(frozen=True, eq=False)
class FrictionChoice:
    """A robot whose effects are those of the model chosen, with their inner numbers found."""

    robot: Robot
    model: str
    trials: tuple[FrictionTrial, ...] = ()
    joints: Mapping[str, str] = field(default_factory=dict)
    """Joints with a model of their own, which predicts their held-out blocks better."""
    reason: str = ""
    """Why models were not compared although that was asked for."""
    numbers: tuple[InnerNumber, ...] = ()
    """Numbers inside the friction chosen, such as the width of its turn, with their intervals."""
    inner: InnerUncertainty | None = None
    """What their uncertainty adds to that of an estimate; not stored."""
    in_turn: bool = False
    """The chain is long: these numbers and the bodies were fitted in turn, each with the other held."""

    def as_dict(self) -> dict[str, Any]:
        """As plain values: the model and the trials it was chosen by."""
        trials = [
            {"model": t.model, "error": t.error, "rmse": t.rmse.tolist(), "n_columns": t.n_columns} for t in self.trials
        ]
        numbers = [number.as_dict() for number in self.numbers]
        return {
            "model": self.model,
            "trials": trials,
            "joints": dict(self.joints),
            "numbers": numbers,
            "in_turn": self.in_turn,
        }

    @classmethod
    def from_dict(cls, robot: Robot, record: Mapping[str, Any]) -> FrictionChoice:
        """The inverse of :meth:`as_dict`, for a robot that has the effects chosen."""
        trials = [
            FrictionTrial(str(t["model"]), float(t["error"]), freeze(t["rmse"]), int(t["n_columns"]))
            for t in record["trials"]
        ]
        numbers = tuple(InnerNumber(**number) for number in record.get("numbers", ()))
        own, in_turn = dict(record.get("joints", {})), bool(record.get("in_turn", False))
        return cls(robot, str(record["model"]), tuple(trials), own, numbers=numbers, in_turn=in_turn)

    @classmethod
    def of(cls, fitted: Fitted, model: str, **more: Any) -> FrictionChoice:
        """The choice of a model with the numbers that a finished fit found for it."""
        inner = inner_uncertainty(fitted)
        return cls(fitted.robot, model, numbers=() if inner is None else inner.numbers, inner=inner, **more)

    def notes(self) -> tuple[str, ...]:
        """What was chosen and against what."""
        notes = []
        if self.reason:
            notes.append(f"friction '{self.model}' was taken: {self.reason}")
        elif self.trials:
            errors = ", ".join(f"{trial.model} {100.0 * trial.error:.3g} %" for trial in self.trials)
            notes.append(
                f"friction '{self.model}' was chosen: the simplest model that predicts held-out blocks of time as well as the best, "
                f"each joint in units of its own noise; error of all torque: {errors}"
            )
        if self.joints:
            own = ", ".join(f"{joint} {model}" for joint, model in self.joints.items())
            notes.append(f"joints with a friction model of their own, which predicts them better: {own}")
        if self.in_turn and self.numbers:
            notes.append(
                f"the robot has more than {LONG_CHAIN} base parameters: numbers inside friction were fitted with the bodies held, so "
                "that their intervals are slightly too narrow and do not widen those of the bodies"
            )
        return tuple(notes)


def choose_friction(
    robot: Robot,
    samples: Sequence[Samples],
    model: str = AUTO,
    *,
    row_filter: RowFilter | None = None,
    time_s: float | None = None,
    bodies_held: bool = False,
    tell: Tell = silent,
) -> FrictionChoice:
    """The robot with the friction model asked for, or for ``auto`` with the one that predicts held-out blocks best.

    Args:
        robot: with any effects; a model takes the place of viscous, Coulomb and offset.
        samples: motion and torque.
        model: a friction model by its name, or ``auto``; joints may then have models of their own.
        row_filter: acts on regressor, friction and torque alike; without one, the samples are taken as they are.
        time_s: where the search for the memory of filtered signals starts; by default 30 ms, and zero where rows are
            filtered, which have none.
        bodies_held: the rigid bodies are those of the robot's parameters, and friction alone is fitted.
        tell: is told what is being done.
    """
    zone = next((effect.dead_zone for effect in robot.effects if isinstance(effect, Coulomb)), 0.0)

    if time_s is None:
        time_s = START_TIME_S if row_filter is None else 0.0

    def candidate(name: str) -> Robot:
        return with_friction(robot, friction_effects(name, time_s=time_s, dead_zone=zone))

    if model != AUTO and not _searched(candidate(model)):
        return FrictionChoice(candidate(model), model)
    data = FrictionData.of(candidate("linear"), samples, row_filter, held=bodies_held)
    if not _in_turn(data):
        return _choice(robot, candidate, data, model, turns=row_filter is not None, tell=tell)
    first = candidate("smooth" if model == AUTO else model)
    # bodies beside a wrong width of its turn would leave an error that other models take for theirs
    first = fit_model(FrictionModel(first, with_bodies_held(first, data)), weighted=False, finish=False).robot
    held = with_bodies_held(first, data)
    choice = _choice(robot, candidate, held, model, turns=row_filter is not None, tell=tell)
    if not _searched(choice.robot):
        return choice
    tell("choosing the friction model: with the bodies that it gives")
    again = fit_model(FrictionModel(choice.robot, with_bodies_held(choice.robot, data)), weighted=False)
    return FrictionChoice.of(
        again, choice.model, trials=choice.trials, joints=choice.joints, reason=choice.reason, in_turn=True
    )


def _choice(
    robot: Robot, candidate: Callable[[str], Robot], data: FrictionData, model: str, *, turns: bool, tell: Tell
) -> FrictionChoice:
    """The model asked for, or the one that predicts best, on these rows; ``turns`` says that these show how sharply friction turns."""
    weighted = not data.held
    if model != AUTO:
        return FrictionChoice.of(fit_model(FrictionModel(candidate(model), data), weighted=weighted), model)
    if too_short(data):
        reason = "the logs are too short to compare friction models on held-out blocks"
        smooth = fit_model(FrictionModel(candidate("smooth"), data), weighted=weighted)
        hard = fit_model(FrictionModel(candidate("linear"), data), weighted=weighted, weights=smooth.weights, rounds=1)
        soft = turns and _information(smooth) < _information(hard)
        return FrictionChoice.of(smooth if soft else hard, "smooth" if soft else "linear", reason=reason)
    fits: dict[str, Fitted] = {}
    trials: dict[str, FrictionTrial] = {}
    weights: Array | None = None
    places: dict[str, Array] = {}
    for name in tried_friction_models():
        tell(f"choosing the friction model: {name}")
        fit = fit_model(
            FrictionModel(candidate(name), data),
            weighted=weighted,
            weights=weights,
            start=places,
            rounds=TRIAL_ROUNDS,
            finish=False,
        )
        fits[name], trials[name] = fit, cross_validate(fit, name)
        weights, places = fit.weights, {**places, **fit.places()}
    best = _chosen(list(trials.values()))
    models = {joint: _own_model(trials, best, d) for d, joint in enumerate(robot.joint_names)}
    own = {joint: name for joint, name in models.items() if name != best}
    if own:
        tell("choosing the friction model: joints with models of their own")
        mixed = fit_model(
            FrictionModel(_mixed(robot, models, fits), data),
            weighted=weighted,
            weights=weights,
            start=places,
            rounds=TRIAL_ROUNDS,
            finish=False,
        )
        together = cross_validate(mixed, "mixed")
        if together.error <= (1.0 - TOGETHER) * trials[best].error:
            return FrictionChoice.of(finished(mixed), best, trials=(*trials.values(), together), joints=own)
    return FrictionChoice.of(finished(fits[best]), best, trials=tuple(trials.values()))


def _information(fit: Fitted) -> float:
    """Schwarz's criterion: what a fit leaves, and what its numbers cost."""
    n_rows = fit.model.data.torque.size
    return n_rows * float(np.log(max(fit.solution.cost, 1e-300))) + len(fit.model.start) * float(np.log(n_rows))


def _chosen(trials: Sequence[FrictionTrial], joint: int | None = None) -> str:
    """Among models that predict about as well as the best, the one with the fewest columns, of these the one that fits best.

    Joints count by their own noise, which the best model of each shows: the friction of a wrist must not be decided by what
    is left at the shoulder. Two models predict alike where their errors differ by less than ``ALIKE``, or by less than what
    the difference varies by from block to block: one standard error of its mean.
    """
    noise = np.min([trial.rmse for trial in trials], axis=0)
    squares = [_block_squares(trial, joint, noise) for trial in trials]
    best = squares[int(np.argmin([own.sum() for own in squares]))]
    limit = ((1.0 + ALIKE) ** 2 - 1.0) * best.sum()
    alike = [
        trial
        for trial, own in zip(trials, squares, strict=True)
        if (own - best).sum() <= max(limit, np.sqrt(len(best)) * float(np.std(own - best, ddof=1)))
    ]
    return min(alike, key=lambda trial: (trial.n_columns, _fitted_square(trial, joint, noise))).model


def _fitted_square(trial: FrictionTrial, joint: int | None, noise: Array) -> float:
    """Squared error on the rows of the fit, of one joint or of all in units of their noise."""
    assert trial.fitted_rmse is not None
    scaled = trial.fitted_rmse / np.maximum(noise, 1e-300)
    return float(scaled @ scaled) if joint is None else float(scaled[joint] ** 2)


def _block_squares(trial: FrictionTrial, joint: int | None, noise: Array | None = None) -> Array:
    """Squared error of each block: of one joint, or of all in units of their noise."""
    assert trial.squares is not None
    if joint is not None:
        return np.asarray(trial.squares[:, joint])
    scale = np.ones(trial.squares.shape[1]) if noise is None else np.maximum(noise, 1e-300) ** -2
    return np.asarray(trial.squares @ scale)


def _own_model(trials: Mapping[str, FrictionTrial], best: str, joint: int) -> str:
    """The model of one joint: that of the robot, unless another one predicts this joint better in every block of time.

    With several models and joints some block errors are better by chance; all blocks of a joint rarely are.
    """
    common = _block_squares(trials[best], joint)
    better = [
        trial
        for trial in trials.values()
        if (_block_squares(trial, joint) < common).all() and trial.rmse[joint] < (1.0 - OWN_MODEL) * trials[best].rmse[joint]
    ]
    return _chosen(better, joint) if better else best


def _mixed(robot: Robot, models: Mapping[str, str], fits: Mapping[str, Fitted]) -> Robot:
    """The robot with a friction model for each joint: every effect on the joints whose model has it."""
    where: dict[str, tuple[Effect, list[int]]] = {}
    for number, joint in enumerate(robot.joint_names, start=1):
        for effect in without_motors(fits[models[joint]].model.effects, robot.coupling):
            where.setdefault(effect.name, (effect, []))[1].append(number)
    effects = [
        effect if len(joints) == robot.n_joints else OnJoints(effect, tuple(joints)) for effect, joints in where.values()
    ]
    return with_friction(robot, effects)


def with_own_numbers(
    robot: Robot, samples: Sequence[Samples], row_filter: RowFilter | None = None, *, finish: bool = True
) -> Robot:
    """The robot with the inner numbers of its friction, such as a Stribeck velocity, searched for on the samples.

    Without ``finish`` they are as exact as comparisons need: see :func:`~dynid.estimation.friction.fit.fit_model`.
    """
    if not _searched(robot):
        return robot
    data = FrictionData.of(robot, samples, row_filter)
    rounds = ROUNDS if finish else TRIAL_ROUNDS
    if not _in_turn(data):
        return fit_model(FrictionModel(robot, data), weighted=True, rounds=rounds, finish=finish).robot
    for _ in range(2 if finish else 1):
        robot = fit_model(FrictionModel(robot, with_bodies_held(robot, data)), weighted=False, finish=finish).robot
    return robot


def estimate_under_load(
    rows: RowSource,
    samples: Sequence[Samples],
    method: Method,
    *,
    carrying: Callable[[Robot], RowSource] | None = None,
    factor: Callable[[RowSource], Regression] = factorise,
) -> tuple[Estimate, Regression, tuple[Samples, ...]]:
    """Estimate with a method; friction that depends on load is iterated until the load is that of the estimate.

    ``samples`` are those of the motion, whatever the rows are made from. Returned with the regression that the estimate was
    made from and the samples that carry the load. Where the rows are those of streams, ``samples`` are windows of them, in
    which the load must settle, and ``carrying`` gives the rows under the load of a robot. ``factor`` makes the triangles.
    """
    robot = rows.robot
    assert robot is not None
    base = reduce_to_base(robot)
    if not needs_load(robot):
        regression = factor(rows)
        return estimate(regression, base, method), regression, tuple(samples)
    model, loads = fit_friction(robot, samples).robot, np.zeros(0)
    for _ in range(LOAD_ROUNDS):
        loaded = tuple(with_transmitted_load(model, one) for one in samples)
        own = rows.with_samples(_with_loads(rows.samples, loaded)) if carrying is None else carrying(model)
        regression = factor(own)
        result = estimate(regression, base, method)
        model = robot.with_parameters(result.standard)
        new = np.concatenate([one.load.ravel() for one in loaded if one.load is not None])
        settled = loads.size and float(np.linalg.norm(new - loads)) < LOAD_SETTLED * float(np.linalg.norm(new))
        loads = new
        if settled:
            break
    return result, regression, tuple(with_transmitted_load(model, one) for one in samples)


def _with_loads(own: Sequence[Samples], loaded: Sequence[Samples]) -> list[Samples]:
    """The samples that rows are made from with the loads of others that cover the same time."""
    found = []
    for one, other in zip(own, loaded, strict=True):
        assert other.load is not None
        same = len(one) == len(other) and np.array_equal(one.time, other.time)
        load = other.load if same else np.column_stack([np.interp(one.time, other.time, x) for x in other.load.T])
        found.append(one.with_load(load))
    return found


def friction_alone(
    robot: Robot,
    samples: Sequence[Samples],
    model: str,
    *,
    row_filter: RowFilter | None = None,
    time_s: float | None = None,
) -> tuple[FrictionChoice, Estimate, Regression, tuple[Samples, ...]]:
    """Friction identified anew with the rigid bodies of the robot's parameters held (Gaz and others 2019, IV-B).

    For the same robot after its lubrication changed, or another one of the same make. Base values of the rigid bodies keep
    the origin ``prior``; the covariance is that of the friction values alone. Samples are returned with their load.
    """
    choice = choose_friction(robot, samples, model, row_filter=row_filter, time_s=time_s, bodies_held=True)
    renewed = choice.robot
    loaded = tuple(with_transmitted_load(renewed, one) for one in samples)
    base = reduce_to_base(renewed)
    rows: RowSource = TorqueRows(renewed, loaded)
    regression = factorise(rows if row_filter is None else FilteredRows(rows, row_filter))
    problem = LinearProblem.of(regression, base, renewed.parameters)
    friction = np.array([column.kind == "friction" for column in renewed.parameters.columns])
    asked = ~base.K[:, ~friction].any(axis=1)
    all_seen = bool(problem.seen.mask[asked].all())
    problem = problem.estimating(asked & problem.seen.mask)
    weights = np.ones(len(problem.channels))
    beta = problem.solve(weights)
    sigma = problem.noise_sigma(beta, pooled=False)
    result = problem.finish(
        "friction",
        beta,
        problem.covariance(weights, sigma),
        outcome=Outcome.SOLVED if all_seen else Outcome.RANK_DEFICIENT,
        notes=("rigid bodies were held at their given values; friction alone was identified",),
        details={"noise_sigma": sigma.tolist()},
    )
    return choice, result, regression, loaded


def _in_turn(data: FrictionData) -> bool:
    """Whether bodies and friction are fitted in turn: together they would be one large solve at every step."""
    return data.n_shared > LONG_CHAIN


def _searched(robot: Robot) -> bool:
    return any(effect.nonlinear_options() for effect in robot.effects)
