"""``estimate``: parameters from a regression by any method.

Estimates around friction that was chosen: under the load that joints transmit, and of friction alone beside known bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dynid.dynamics.inverse_dynamics import needs_load, with_transmitted_load
from dynid.errors import InputError
from dynid.estimation.constraints.shapes import boxes_of
from dynid.estimation.friction.fit import fit_friction
from dynid.estimation.friction.selection import FrictionChoice, choose_friction
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Estimate, Method, Outcome
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import Regression, factorise
from dynid.regression.row_filter import FilteredRows, RowFilter
from dynid.regression.row_source import RowSource
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples, SampleStream, map_samples

__all__ = ["Estimate", "Method", "estimate"]


def estimate(
    regression: Regression, base: BaseReduction, method: Method | None = None, prior: Parameters | None = None
) -> Estimate:
    """Estimate parameters from a regression.

    Args:
        regression: of any row source.
        base: base parameters of the robot.
        method: a method, such as ``dynid.WeightedLeastSquares()``; None for that of :func:`dynid.identify`, see :func:`default_method`.
        prior: completes what the data do not determine and decides how base values are shared among links; None for the
            nominal parameters of the robot.

    Returns:
        base values with their covariance, one standard set that has them, and how well it fits; SI units.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data = dynid.build_regression(robot, samples)
        >>> result = dynid.estimate(data, dynid.reduce_to_base(robot))
        >>> result.method, result.feasible
        ('sdp', True)
        >>> dynid.estimate(data, dynid.reduce_to_base(robot), dynid.OrdinaryLeastSquares()).method
        'ols'
    """
    start = regression.parameters if prior is None else prior
    if start.names != regression.parameters.names:
        raise InputError(
            f"the prior has {len(start)} parameters, the regression {len(regression.parameters)}, or other names"
        )
    if not regression.torque_norms.any():
        raise InputError(
            f"the right-hand side (torque) is zero in all {regression.n_rows} rows, so nothing can be estimated; "
            "expected rows with measured torque"
        )
    result = (method or default_method(regression)).estimate(regression, base, start)
    # A link that the description leaves out weighs nothing, whatever a method gave it to be consistent by: no row sees it.
    absent = set(regression.robot.absent) if regression.has_robot else set()
    if not absent:
        return result
    names = result.standard.names[: result.standard.n_inertial]
    links = [names[i : i + 10] for i in range(0, len(names), 10)]
    massless = {name: 0.0 for link in links if absent.issuperset(link) for name in link}
    return replace(result, standard=result.standard.updated(massless))


def default_method(regression: Regression) -> FeasibleSDP:
    """The method that ``dynid identify`` takes by default: every link consistent, joints weighted by their noise, held by the
    description and the boxes around its shapes as far as the data allow."""
    boxes, notes = boxes_of(regression.robot) if regression.has_robot else ((), ())
    return FeasibleSDP(prior="auto", weighted=True, boxes=boxes, box_notes=notes)


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
