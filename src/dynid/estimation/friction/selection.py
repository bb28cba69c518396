"""The choice among friction models by how well each predicts blocks of time that it was not fitted to.

A richer model always fits its own data better, so it is chosen by prediction; among models that predict alike the one with the
fewest columns wins. A model at its best nonlinear parameters is linear in everything around it: base parameters, friction values,
and the tangents of its columns along the nonlinear parameters. Leaving a block out is then one more small linear solve, over the
factors of the other blocks; nothing is searched for again. Friction stays passive in each of them. Nonlinear parameters may move by
about their own size: a weak pull holds those that the rest of the rows does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray, IntArray, freeze
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.estimation.friction.fit import (
    TRIAL_ROUNDS,
    FrictionFit,
    FrictionParameter,
    finished,
    fit_model,
    fit_nonlinear_friction,
    has_nonlinear_parameters,
    is_fitted_in_turn,
    nonlinear_parameters,
    residual_norms,
    with_bodies_held,
)
from dynid.estimation.friction.misfit import misfit_moves
from dynid.estimation.friction.model import FrictionModel
from dynid.estimation.friction.rows import FrictionData
from dynid.estimation.friction.search import Solver
from dynid.estimation.friction.springs import with_spring_geometry
from dynid.model.effects.dry_friction import Coulomb, SignEffect
from dynid.model.effects.effect import Effect
from dynid.model.effects.friction_models import AUTO, START_TIME_S, START_WIDTH, friction_effects, tried_friction_models
from dynid.model.effects.wrapped import OnJoints
from dynid.model.friction import with_friction, without_motors
from dynid.model.robot import Robot
from dynid.regression.base import LONG_CHAIN
from dynid.regression.row_filter import RowFilter
from dynid.signals.samples import Samples

BLOCKS = 5
GAP_S = 0.3
"""Rows so near to the edge of a block are left out: filters smear what happens across it."""
LEAST_ROWS = 10
"""Rows that a block must have at least."""


@dataclass(frozen=True, eq=False)
class FrictionTrial:
    """A model and its error on blocks of time that it was not fitted to."""

    model: str
    error: float
    """``||tau - tau_hat|| / ||tau||`` over all held-out blocks and joints."""
    rmse: Array
    """Per joint."""
    n_columns: int
    squares: Array | None = None
    """``(blocks, joints)``: squared error of each held-out block, for comparing models block by block."""
    fitted_rmse: Array | None = None
    """Per joint, on the rows that the model was fitted to: decides between models of one size that predict alike."""


def cross_validate(fitted: FrictionFit, name: str = "", *, blocks: int = BLOCKS) -> FrictionTrial:
    """Error on blocks of time, each predicted by a fit to the others; every log is cut into as many blocks."""
    if blocks < 2:
        raise InputError(f"cross-validation needs at least 2 blocks of time, got {blocks}")
    model, data = fitted.model, fitted.model.data
    place = data.blocks(blocks, GAP_S)
    if too_short(data, blocks):
        raise InputError(
            f"{len(place)} rows are too few for cross-validation over {blocks} blocks of time; give a longer log, or name a "
            "friction model"
        )
    parts = [_block(fitted, place == block) for block in range(blocks)]
    noise = np.sqrt(fitted.solution.cost / max(len(data.torque) * data.n_joints, 1))
    n_joints = data.n_joints
    squares = np.zeros((blocks, n_joints))
    G = model.passive_rows(fitted.theta, fitted.loads)
    problems = [np.arange(parts[0][0].shape[1] - 1)]
    if model.apart:  # every joint is a problem of its own
        problems = [np.concatenate([model.entering[d], len(model.names) + model.places_of(d)]) for d in range(n_joints)]
    # of what each problem sees of each block: what fits to other blocks need of it
    triangles = []
    for d, columns in enumerate(problems):
        own = [(0, len(rows)) if not model.apart else (ends[d - 1] if d else 0, ends[d]) for rows, ends in parts]
        seen = [rows[first:last][:, [*columns, -1]] for (rows, _), (first, last) in zip(parts, own, strict=True)]
        triangles.append([np.asarray(np.linalg.qr(rows, mode="r")) for rows in seen])
    n_linear = data.n_shared + len(model.names)
    for block, (rows, ends) in enumerate(parts):
        x = np.zeros(rows.shape[1] - 1)
        for columns, made in zip(problems, triangles, strict=True):
            n_inner, mine = int(np.count_nonzero(columns >= n_linear)), G[:, columns[columns < n_linear]]
            known = np.vstack([triangle for k, triangle in enumerate(made) if k != block])
            x[columns] = _fitted_to(known, n_inner, noise, mine[mine.any(axis=1)] if model.apart else mine)
        left = rows[:, -1] - rows[:, :-1] @ x
        squares[block] = [float(own @ own) for own in np.split(left, ends[:-1])] / fitted.weights**2
    used = data.measured[place >= 0]
    return FrictionTrial(
        model=name,
        error=float(np.sqrt(squares.sum()) / max(np.linalg.norm(used), 1e-300)),
        rmse=freeze(np.sqrt(squares.sum(axis=0) / len(used))),
        n_columns=len(model.names) + len(model.start),
        squares=freeze(squares),
        fitted_rmse=freeze(residual_norms(fitted.solution, fitted.weights) / np.sqrt(len(data.torque))),
    )


def too_short(data: FrictionData, blocks: int = BLOCKS) -> bool:
    """Whether blocks of time would have too few rows to tell models apart."""
    place = data.blocks(blocks, GAP_S)
    counts = np.bincount(place[place >= 0], minlength=blocks)
    spare = (counts.sum() - counts.max()) * data.n_joints - data.n_shared
    return bool(counts.min() < LEAST_ROWS or spare < 10 * data.n_joints)


def _block(fitted: FrictionFit, rows: BoolArray) -> tuple[Array, IntArray]:
    """One block of time in coordinates: rows ``[A J y]`` of system, tangents and torque, and where those of each joint end."""
    model, weights = fitted.model, fitted.weights
    basis, coordinates = model.coordinates(fitted.columns, rows)
    A, J = model.system(basis, coordinates, weights), model.tangents(coordinates, fitted.solution.own, weights)
    y = np.concatenate([w * c[:, -1] for w, c in zip(weights, coordinates, strict=True)])
    return np.column_stack([A, J, y]), np.cumsum([len(c) for c in coordinates])


def _fitted_to(rows: Array, n_inner: int, noise: float, G: Array) -> Array:
    """Base parameters, passive friction values and steps of the nonlinear parameters that fit rows ``[A J y]`` best."""
    n_linear = rows.shape[1] - 1 - n_inner
    pull = np.hstack([np.zeros((n_inner, n_linear)), noise * np.eye(n_inner)])
    solver = Solver.over(np.vstack([rows[:, :-1], pull]))
    x = solver.solve(np.concatenate([rows[:, -1], np.zeros(n_inner)]))
    return solver.passive(x, np.hstack([G, np.zeros((len(G), n_inner))]))[0]


ALIKE = 0.01
"""Models whose held-out errors differ by less than this part of the best predict alike."""
OWN_MODEL = 0.05
"""Part by which a joint's held-out error must fall for it to have a model of its own."""
TOGETHER = 0.03
"""Part by which the error of all joints must fall for some of them to have models of their own: a motion that shows little
is also predicted better by chance."""
TURN = 0.02
"""Part of its largest speed over which friction that remembers reversals turns, where no history is known."""
FILTER_MEMORY = 0.3
"""Time over which a zero-phase low-pass smears a step, times its cut-off: where the search for a smooth sign starts."""


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
    numbers: tuple[FrictionParameter, ...] = ()
    """Nonlinear parameters of the friction chosen, such as the width of its turn, with their intervals."""
    moves: Mapping[str, Array] = field(default_factory=dict)
    """What a standard deviation of each moves in the linear parameters, see :func:`~dynid.estimation.friction.fit.widen_covariance`; not
    stored."""
    misfit: Mapping[str, Array] = field(default_factory=dict)
    """What torque that the model lacks moves in them, see :mod:`dynid.estimation.friction.misfit`; not stored."""
    in_turn: bool = False
    """The chain is long: these numbers and the bodies were fitted in turn, each with the other held."""

    def as_dict(self) -> dict[str, Any]:
        """As plain values: the model and the trials it was chosen by."""
        trials = [
            {"model": t.model, "error": t.error, "rmse": t.rmse.tolist(), "n_columns": t.n_columns} for t in self.trials
        ]
        numbers = [asdict(number) for number in self.numbers]
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
        numbers = tuple(FrictionParameter(**number) for number in record.get("numbers", ()))
        own, in_turn = dict(record.get("joints", {})), bool(record.get("in_turn", False))
        return cls(robot, str(record["model"]), tuple(trials), own, numbers=numbers, in_turn=in_turn)

    @classmethod
    def of(cls, fitted: FrictionFit, model: str, **more: Any) -> FrictionChoice:
        """The choice of a model with the numbers that a finished fit found for it."""
        numbers, moves = nonlinear_parameters(fitted)
        return cls(fitted.tuned, model, numbers=numbers, moves=moves, misfit=misfit_moves(fitted), **more)

    def notes(self) -> tuple[str, ...]:
        """What was chosen and against what."""
        notes = []
        if self.reason:
            notes.append(f"friction '{self.model}' was taken: {self.reason}")
        elif self.trials:
            # the error on held-out blocks beside that of the linear model, or of the best other where it is the linear one
            errors = {trial.model: trial.error for trial in self.trials}
            error = errors.pop(self.model, None)
            other = "linear" if "linear" in errors else min(errors, key=lambda name: errors[name], default="")
            told = [f"held-out error {100.0 * error:.2g} %"] if error is not None else []
            told += [f"{other} {100.0 * errors[other]:.2g} %"] if other else []
            notes.append(f"Friction model: {self.model} ({'; '.join(told)}).")
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

    Returns:
        the robot with the effects of the model and the numbers inside them, and what every trial predicted (fractions).

    Examples:
        >>> import dynid
        >>> dynid.choose_friction(dynid.demo_robot(), [dynid.demo_samples()], "linear").model
        'linear'
    """
    zone = next((effect.dead_zone for effect in robot.effects if isinstance(effect, Coulomb)), 0.0)

    if time_s is None:
        time_s = START_TIME_S if row_filter is None else 0.0

    fastest = np.max([np.abs(one.velocity).max(axis=0) for one in samples], axis=0)[-len(robot.driven) :]
    width = tuple(np.clip(TURN * fastest, 1e-6, START_WIDTH).tolist())

    def candidate(name: str) -> Robot:
        effects = friction_effects(name, time_s=time_s, dead_zone=zone)
        if robot.coupling is None and len(robot.effect_joints) == len(width):
            effects = tuple(
                replace(one, smooth_width=width) if isinstance(one, SignEffect) and one.remembers else one for one in effects
            )
        return with_friction(robot, effects)

    plain = model != AUTO and not has_nonlinear_parameters(candidate(model))
    if plain and row_filter is None:  # filtered signals bend the rows by more than their residual shows
        return FrictionChoice(candidate(model), model)
    data = FrictionData.of(candidate("linear"), samples, row_filter, held=bodies_held)
    if plain and is_fitted_in_turn(data):
        return FrictionChoice(candidate(model), model)
    if not is_fitted_in_turn(data):
        return _choice(robot, candidate, data, model, turns=row_filter is not None, tell=tell)
    first = candidate("smooth" if model == AUTO else model)
    # bodies beside a wrong width of its turn would leave an error that other models take for theirs
    first = fit_model(FrictionModel(first, with_bodies_held(first, data)), weighted=False, finish=False).tuned
    held = with_bodies_held(first, data)
    choice = _choice(robot, candidate, held, model, turns=row_filter is not None, tell=tell)
    if not has_nonlinear_parameters(choice.robot):
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
    fits: dict[str, FrictionFit] = {}
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


def _information(fit: FrictionFit) -> float:
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
    alike = [trial for trial, own in zip(trials, squares, strict=True) if predict_alike(own, best)]

    def size_and_misfit(trial: FrictionTrial) -> tuple[int, float]:
        assert trial.fitted_rmse is not None
        scaled = trial.fitted_rmse / np.maximum(noise, 1e-150) * (noise > 0.0)
        return trial.n_columns, float(scaled @ scaled) if joint is None else float(scaled[joint] ** 2)

    return min(alike, key=size_and_misfit).model


def predict_alike(own: Array, best: Array) -> bool:
    """Whether a model predicts about as well as a better one: squared errors of held-out blocks, joints in units of their noise."""
    limit = ((1.0 + ALIKE) ** 2 - 1.0) * best.sum()
    return bool((own - best).sum() <= max(limit, np.sqrt(len(best)) * float(np.std(own - best, ddof=1))))


def _block_squares(trial: FrictionTrial, joint: int | None, noise: Array | None = None) -> Array:
    """Squared error of each block: of one joint, or of all in units of their noise."""
    assert trial.squares is not None
    if joint is not None:
        return np.asarray(trial.squares[:, joint])
    scale = np.ones(trial.squares.shape[1]) if noise is None else np.maximum(noise, 1e-150) ** -2.0 * (noise > 0.0)
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


def _mixed(robot: Robot, models: Mapping[str, str], fits: Mapping[str, FrictionFit]) -> Robot:
    """The robot with a friction model for each joint: every effect on the joints whose model has it."""
    where: dict[str, tuple[Effect, list[int]]] = {}
    for number, joint in enumerate(robot.joint_names, start=1):
        for effect in without_motors(fits[models[joint]].model.effects, robot.coupling):
            where.setdefault(effect.name, (effect, []))[1].append(number)
    effects = [
        effect if len(joints) == robot.n_joints else OnJoints(effect, tuple(joints)) for effect, joints in where.values()
    ]
    return with_friction(robot, effects)


def choose_friction_model(
    robot: Robot,
    samples: Sequence[Samples],
    model: str | None,
    row_filter: RowFilter | None,
    time_s: float,
    tell: Tell = silent,
) -> tuple[Robot, FrictionChoice | None]:
    """The robot with the geometry of its springs, the friction model where one is asked for, and its nonlinear parameters."""
    robot = with_spring_geometry(robot, samples, row_filter)
    if model is None:
        return fit_nonlinear_friction(robot, samples, row_filter), None
    choice = choose_friction(robot, samples, model, row_filter=row_filter, time_s=time_s, tell=tell)
    return choice.robot, choice
