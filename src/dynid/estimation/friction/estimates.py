"""Estimates around friction that was chosen: under the load that joints transmit, and of friction alone beside known bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from dynid.dynamics.inverse_dynamics import needs_load, with_transmitted_load
from dynid.estimation.estimate import estimate
from dynid.estimation.friction.fit import fit_friction
from dynid.estimation.friction.selection import FrictionChoice, choose_friction
from dynid.estimation.linear import LinearProblem
from dynid.estimation.result import Estimate, Method, Outcome
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import Regression, factorise
from dynid.regression.row_filter import FilteredRows, RowFilter
from dynid.regression.row_source import RowSource
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples, SampleStream, map_samples

LOAD_ROUNDS = 8
LOAD_SETTLED = 1e-6


def estimate_under_load(
    rows: RowSource,
    samples: Sequence[Samples],
    method: Method,
    *,
    factor: Callable[[RowSource], Regression] = factorise,
) -> tuple[Estimate, Regression, tuple[Samples, ...]]:
    """Estimate with a method; friction that depends on load is iterated until the load is that of the estimate.

    ``samples`` are those of the motion, whatever the rows are made from. Returned with the regression that the estimate was
    made from and the samples that carry the load. Where the rows are those of streams, ``samples`` are windows of them, in
    which the load must settle. ``factor`` makes the triangles.
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
        regression = factor(rows.with_samples(_with_loads(rows.samples, loaded, model)))
        result = estimate(regression, base, method)
        model = robot.with_parameters(result.standard)
        new = np.concatenate([one.load.ravel() for one in loaded if one.load is not None])
        settled = loads.size and float(np.linalg.norm(new - loads)) < LOAD_SETTLED * float(np.linalg.norm(new))
        loads = new
        if settled:
            break
    return result, regression, tuple(with_transmitted_load(model, one) for one in samples)


def _with_loads(
    own: Sequence[Samples | SampleStream], loaded: Sequence[Samples], model: Robot
) -> list[Samples | SampleStream]:
    """The samples that rows are made from with the loads of others that cover the same time, or streams with that of a model."""
    if not all(isinstance(one, Samples) for one in own):
        return [map_samples(partial(with_transmitted_load, model), one) for one in own]
    found: list[Samples | SampleStream] = []
    for one, other in zip(own, loaded, strict=True):
        assert isinstance(one, Samples)
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
