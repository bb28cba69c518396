"""Friction of a run: the choice among models by cross-validation, and friction identified anew on an old run.

A richer model always fits its own data better, so it is chosen by how well it predicts blocks of time that it was not
fitted to; among models that predict alike the one with the fewest columns wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.friction.fit import fit_friction, fit_residual_friction, needs_load, with_transmitted_load
from dynid.estimation.linear import LinearProblem
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate, Method
from dynid.progress import Tell, silent
from dynid.recording.samples import Samples
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import Regression, build_regression, factorise
from dynid.regression.source import RowSource
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import Coulomb
from dynid.robot.effects.models import START_TIME_S, friction_effects, tried_friction_models
from dynid.robot.friction import with_friction
from dynid.robot.model import Robot

BLOCKS = 5
GAP_S = 0.3
"""Left out of the training rows beside a held-out block: filters smear what happens across its edges."""
TRIAL_ROWS, TRIAL_ROUNDS = 1_500, 4
ALIKE = 0.01
"""Models whose held-out errors differ by less than this part of the best predict alike."""
FILTER_MEMORY = 0.3
"""Time over which a zero-phase low-pass smears a step, times its cut-off: where the search for a smooth sign starts."""
LOAD_ROUNDS = 8
LOAD_SETTLED = 1e-6


@dataclass(frozen=True, eq=False)
class FrictionTrial:
    """A model and its error on blocks of time that it was not fitted to."""

    model: str
    error: float
    """``||tau - tau_hat|| / ||tau||`` over all held-out blocks and joints."""
    rmse: Array
    """Per joint."""
    n_columns: int


@dataclass(frozen=True, eq=False)
class FrictionChoice:
    """A robot whose effects are those of the model chosen, with their inner numbers found."""

    robot: Robot
    model: str
    trials: tuple[FrictionTrial, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As plain values: the model and the trials it was chosen by."""
        trials = [
            {"model": t.model, "error": t.error, "rmse": t.rmse.tolist(), "n_columns": t.n_columns} for t in self.trials
        ]
        return {"model": self.model, "trials": trials}

    @classmethod
    def from_dict(cls, robot: Robot, record: Mapping[str, Any]) -> FrictionChoice:
        """The inverse of :meth:`as_dict`, for a robot that has the effects chosen."""
        trials = [
            FrictionTrial(str(t["model"]), float(t["error"]), freeze(t["rmse"]), int(t["n_columns"]))
            for t in record["trials"]
        ]
        return cls(robot, str(record["model"]), tuple(trials))

    def notes(self) -> tuple[str, ...]:
        """What was chosen and against what."""
        if not self.trials:
            return ()
        errors = ", ".join(f"{trial.model} {100.0 * trial.error:.3g} %" for trial in self.trials)
        return (f"friction '{self.model}' was chosen by its error on held-out blocks of time: {errors}",)


def choose_friction(
    robot: Robot,
    samples: Sequence[Samples],
    model: str,
    *,
    time_s: float = START_TIME_S,
    bodies_held: bool = False,
    tell: Tell = silent,
) -> FrictionChoice:
    """The robot with the friction model asked for, or for ``auto`` with the one that predicts held-out blocks best.

    The dead zone of Coulomb friction, where the robot has one, is that of the linear model. With ``bodies_held`` the
    rigid bodies are those of the robot's parameters, and friction alone is fitted.
    """
    zone = next((effect.dead_zone for effect in robot.effects if isinstance(effect, Coulomb)), 0.0)
    candidates = {
        name: with_friction(robot, friction_effects(name, time_s=time_s, dead_zone=zone))
        for name in (tried_friction_models() if model == "auto" else (model,))
    }
    trials: tuple[FrictionTrial, ...] = ()
    if model == "auto":
        tried = []
        for name, candidate in candidates.items():
            tell(f"choosing the friction model: {name}")
            tried.append(cross_validate(candidate, samples, name, bodies_held=bodies_held))
        trials = tuple(tried)
        least = min(trial.error for trial in trials)
        alike = [trial for trial in trials if trial.error <= (1.0 + ALIKE) * least]
        model = min(alike, key=lambda trial: (trial.n_columns, trial.error)).model
    chosen = candidates[model]
    # only the inner numbers are kept: the parameters are the estimator's business
    fit = fit_residual_friction if bodies_held else fit_friction
    found = fit(chosen, samples).robot if _searched(chosen) else chosen
    return FrictionChoice(robot.with_effects(found.effects), model, trials)


def with_own_numbers(robot: Robot, samples: Sequence[Samples]) -> Robot:
    """The robot with the inner numbers of its friction, such as a Stribeck velocity, searched for on the samples."""
    return robot.with_effects(fit_friction(robot, samples).robot.effects) if _searched(robot) else robot


def cross_validate(
    robot: Robot, samples: Sequence[Samples], model: str = "", *, blocks: int = BLOCKS, bodies_held: bool = False
) -> FrictionTrial:
    """Error on blocks of time, each predicted by a fit to the others; every log is cut into as many blocks."""
    if blocks < 2:
        raise InputError(f"cross-validation needs at least 2 blocks of time, got {blocks}")
    total = sum(len(one) for one in samples)
    every = max(1, int(np.ceil(total / TRIAL_ROWS)))
    thinned = [one[::every] for one in samples]
    if min(len(one) for one in thinned) < 4 * blocks:
        raise InputError(f"a log of {min(len(one) for one in samples)} rows is too short for {blocks} blocks of time")
    errors, torques = [], []
    for block in range(blocks):
        parts = [_held_out(one, block, blocks) for one in thinned]
        known = [piece for rest, _ in parts for piece in rest if len(piece)]
        fit = fit_residual_friction if bodies_held else fit_friction
        fitted = fit(robot, known, rounds=TRIAL_ROUNDS).robot
        for _, unseen in parts:
            assert unseen.torque is not None
            loaded = with_transmitted_load(fitted, unseen)
            prediction = inverse_dynamics(fitted, loaded.position, loaded.velocity, loaded.acceleration, loaded.load)
            errors.append(unseen.torque - prediction)
            torques.append(unseen.torque)
    error = np.vstack(errors)
    columns = sum(len(effect.nonlinear_options()) for effect in robot.effects) * robot.n_dof + len(robot.parameters)
    return FrictionTrial(
        model=model,
        error=float(np.linalg.norm(error) / np.linalg.norm(np.vstack(torques))),
        rmse=freeze(np.sqrt((error**2).mean(axis=0))),
        n_columns=columns - robot.parameters.n_inertial,
    )


def estimate_under_load(
    rows: RowSource, samples: Sequence[Samples], method: Method
) -> tuple[Estimate, Regression, tuple[Samples, ...]]:
    """Estimate with a method; friction that depends on load is iterated until the load is that of the estimate.

    ``samples`` are those of the motion, whatever the rows are made from. Returned with the regression that the estimate was
    made from and the samples that carry the load.
    """
    robot = rows.robot
    assert robot is not None
    base = reduce_to_base(robot)
    if not needs_load(robot):
        regression = factorise(rows)
        return estimate(regression, base, method), regression, tuple(samples)
    model, loads = fit_friction(robot, samples).robot, np.zeros(0)
    for _ in range(LOAD_ROUNDS):
        loaded = tuple(with_transmitted_load(model, one) for one in samples)
        regression = factorise(rows.with_samples(_with_loads(rows.samples, loaded)))
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
    robot: Robot, samples: Sequence[Samples], model: str, *, time_s: float = START_TIME_S
) -> tuple[FrictionChoice, Estimate, Regression, tuple[Samples, ...]]:
    """Friction identified anew with the rigid bodies of the robot's parameters held (Gaz and others 2019, IV-B).

    For the same robot after its lubrication changed, or another one of the same make. Base values of the rigid bodies keep
    the origin ``prior``; the covariance is that of the friction values alone. Samples are returned with their load.
    """
    choice = choose_friction(robot, samples, model, time_s=time_s, bodies_held=True)
    renewed = choice.robot
    loaded = tuple(with_transmitted_load(renewed, one) for one in samples)
    base = reduce_to_base(renewed)
    regression = build_regression(renewed, loaded)
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


def _searched(robot: Robot) -> bool:
    return any(effect.nonlinear_options() for effect in robot.effects)


def _held_out(samples: Samples, block: int, blocks: int) -> tuple[list[Samples], Samples]:
    """The rows before and after a block, at a distance, and the block itself."""
    edges = np.linspace(0, len(samples), blocks + 1).astype(int)
    first, last = int(edges[block]), int(edges[block + 1])
    before = int(np.searchsorted(samples.time, samples.time[first] - GAP_S)) if first else 0
    behind = int(np.searchsorted(samples.time, samples.time[last - 1] + GAP_S, side="right"))
    return [samples[:before], samples[behind:]], samples[first:last]
