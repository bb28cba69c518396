"""Linear estimate of actuators: command rows, their delay and the width of friction by variable projection.

For every delay the best other values follow by least squares, so the residual is a function of the delay alone; it is scanned and its
minimum refined between the points of the scan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.optimize

from dynid.apps.actuators.model import FRICTION_SYMBOLS, WIDTH, ActuatorModel, ActuatorProblem, command_samples, first_state
from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.methods.least_squares import WeightedLeastSquares
from dynid.estimation.result import Estimate
from dynid.model.effects.dry_friction import SmoothCoulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.command_rows import CommandRows
from dynid.regression.factor import Regression, factorise
from dynid.regression.row_filter import FilterAndDecimate, FilteredRows

LONGEST_DELAY_S = 0.1
SCAN_S = 0.004
"""Step of the scan; the minimum is refined between."""
WIDTHS = (0.005, 0.01, 0.02, 0.05, 0.1)
"""Speeds over which friction may turn that the linear fit compares, rad/s."""
SHARED = 1e-2
"""Weight that keeps a start small where columns are nearly dependent; well-determined values change by its square."""
ROW_SHARE = 0.2
"""Band of the rows, as a share of the sampling rate, at most that below."""
ROW_HZ = 20.0


@dataclass(frozen=True, eq=False)
class LinearActuators:
    """The linear answer: a model, the estimate behind it, and how sure the delay is."""

    model: ActuatorModel
    estimate: Estimate
    delay_sigma_s: float
    regression: Regression


def actuator_robot(robot: Robot, width: float | Sequence[float] = WIDTH) -> Robot:
    """The robot with the four effects that are asked of an actuator."""
    turned = width if isinstance(width, float) else tuple(float(w) for w in width)
    return robot.with_effects([Armature(), Viscous(), SmoothCoulomb(smooth_width=turned), Offset()])


def linear_actuators(problem: ActuatorProblem, start: ActuatorModel) -> LinearActuators:
    """Friction, rotor inertia and gains from rows, with delay and width that leave the least residual."""
    samples = tuple(command_samples(log, problem.robot.joint_names) for log in problem.logs)
    periods_s = [log.period_s for log in problem.logs]
    row_hz = min(ROW_SHARE * (1.0 / max(periods_s)), ROW_HZ)
    # as few rows as the band needs
    row_filter = FilterAndDecimate(every=max(1, int(0.4 / (row_hz * max(periods_s)))), cutoff_hz=row_hz)
    n = problem.robot.n_joints
    known = {f"{symbol}{j + 1}": float(start.values[symbol][j]) for symbol in FRICTION_SYMBOLS for j in range(n)}
    delay, width = start.values["delay"].copy(), np.full(n, WIDTH)

    def regression(delay: Array, width: Array) -> Regression:
        robot = actuator_robot(start.robot, tuple(width.tolist())).with_parameters(known)
        rows = CommandRows(robot, samples, delay, problem.free)
        return factorise(FilteredRows(rows, row_filter))

    def residuals(delay: Array, width: Array) -> Array:
        """Sum of squares of every joint that its own columns leave."""
        found = regression(delay, width).factors
        return np.array([float(factor.R[-1, -1] ** 2) for factor in found])

    sigma = 0.0
    for _ in range(2):
        if problem.asks("delay"):
            delay, sigma = _scanned(problem, partial(residuals, width=width), regression(delay, width))
        if problem.asks("width"):
            trials = np.array([residuals(delay, np.full_like(width, w)) for w in WIDTHS])
            width = np.array(WIDTHS)[np.argmin(trials, axis=0)]
    found = regression(delay, width)
    names = found.parameters.names
    estimate = WeightedLeastSquares().estimate(found, BaseReduction.from_matrix(np.eye(len(names)), names), found.parameters)
    values = dict(zip(names, _physical(found, estimate).tolist(), strict=True))
    model = ActuatorModel(start.robot, {**start.values, "delay": freeze(delay), "width": freeze(width)})
    return LinearActuators(problem.with_named(model, values), estimate, sigma, found)


def _physical(regression: Regression, estimate: Estimate) -> Array:
    """Least squares with friction, rotor inertia and gains that are not negative: what a simulation can start from."""
    weights = 1.0 / np.maximum(estimate.residual_rms, 1e-3 * estimate.residual_rms.max() + 1e-12)
    stacked = regression.stacked(weights=weights)
    A, b = stacked[:, :-1], stacked[:, -1]
    size = np.linalg.norm(A, axis=0)
    size[size == 0.0] = 1.0
    signed = [column.kind == "inertial" or column.symbol == "fo" for column in regression.parameters.columns]
    low = np.where(signed, -np.inf, 0.0)
    # columns that the motion hardly tells apart (friction and offset of a joint that did not turn back) share what is there
    A, b = np.vstack([A / size, SHARED * np.eye(len(size))]), np.concatenate([b, np.zeros(len(size))])
    return np.asarray(scipy.optimize.lsq_linear(A, b, (low, np.inf)).x / size)


def _scanned(problem: ActuatorProblem, residuals: Callable[[Array], Array], regression: Regression) -> tuple[Array, float]:
    """The delay of least residual, one for all joints or one each, and its deviation."""
    n = problem.robot.n_joints
    grid = np.arange(0.0, LONGEST_DELAY_S + 0.5 * SCAN_S, SCAN_S)
    left = np.array([residuals(np.full(n, d)) for d in grid])
    rows = np.array([factor.n_rows for factor in regression.factors], dtype=float)
    moving = np.array([any(u.joint == j for u in problem.unknowns) for j in range(n)])
    if not moving.any():
        raise InputError("no joint moves in these logs, so no delay can be found")
    cost = rows * np.log(np.maximum(left, 1e-12))
    shared = any(u.symbol == "delay" and u.joint < 0 for u in problem.unknowns)
    if shared:
        value, bend = _least(
            grid,
            cost[:, moving].sum(axis=1),
            lambda d: float((rows * np.log(np.maximum(residuals(np.full(n, d)), 1e-12)))[moving].sum()),
        )
        # twice the log likelihood changes by one within a deviation
        return np.full(n, value), float(np.sqrt(2.0 / bend)) if bend > 0.0 else np.inf
    delays = np.array([_least(grid, cost[:, j], None)[0] for j in range(n)])
    return delays, SCAN_S


def _least(grid: Array, cost: Array, evaluate: Callable[[float], float] | None) -> tuple[float, float]:
    """Minimum of a scanned function and its second derivative there."""
    k = int(np.argmin(cost))
    if k in (0, len(grid) - 1):
        return float(grid[k]), 0.0
    value, bend = _parabola(grid[k - 1 : k + 2], cost[k - 1 : k + 2])
    if evaluate is not None:
        step = 0.25 * float(grid[1] - grid[0])
        points = value + step * np.array([-1.0, 0.0, 1.0])
        value, bend = _parabola(points, np.array([evaluate(max(float(p), 0.0)) for p in points]))
    return max(value, 0.0), bend


def _parabola(x: Array, y: Array) -> tuple[float, float]:
    """Minimum of the parabola through three even points, within them, and its second derivative."""
    h = float(x[1] - x[0])
    bend = float(y[0] - 2.0 * y[1] + y[2]) / h**2
    if bend <= 0.0:
        return float(x[int(np.argmin(y))]), 0.0
    return float(np.clip(x[1] - (y[2] - y[0]) / (2.0 * h) / bend, x[0], x[2])), bend


def instrumental_actuators(problem: ActuatorProblem, linear: LinearActuators) -> ActuatorModel:
    """The model by the same rows with instruments: rows of the motion that the linear model simulates, which noise does not touch.

    theta = (Z^T W)^-1 Z^T y
    """
    simulated = [
        replace(log, position=linear.model.simulate(log, first_state(log), problem.tick_s).at_stamps) for log in problem.logs
    ]
    (source,) = linear.regression.sources
    samples = tuple(command_samples(log, problem.robot.joint_names) for log in simulated)
    instruments = source.with_samples(samples)
    p = len(linear.regression.parameters)
    A, b = np.zeros((p, p)), np.zeros(p)
    weights = 1.0 / np.maximum(linear.estimate.residual_rms, 1e-12)
    for one, other in zip(source.passes(), instruments.passes(), strict=True):
        for j, (rows, made) in enumerate(zip(one.blocks, other.blocks, strict=True)):
            columns = source.channels[j].columns
            A[np.ix_(columns, columns)] += weights[j] ** 2 * made[:, :-1].T @ rows[:, :-1]
            b[columns] += weights[j] ** 2 * made[:, :-1].T @ rows[:, -1]
    values = np.linalg.lstsq(A, b, rcond=1e-12)[0]
    found = dict(zip(linear.regression.parameters.names, values.tolist(), strict=True))
    return problem.with_named(linear.model, found)
