"""Recursive least squares with flags: Lomakin and Deutscher 2020, section V and Fig. 1, with three repairs.

Data come in blocks ``tau_k = Y_k theta``. Columns are taken in order, and the part of each that is orthogonal to
those before it tells whether its parameter is identified (flag 1), not excited (0) or linearly dependent (-1). With
the identified set ``S``

    theta_S = K_SS^-1 (b_S - K_SS' theta0_S'),    theta_S' = theta0_S',    K = sum Y^T Y,    b = sum Y^T tau.

Against the print: (41) and line 37 use the torque of the new block, ``tau_{k+1}``. The printed update adds to
``theta_k`` with the inverse of the moment, which leaves the batch solution for good once columns wake up one after
the other (by 1e-6 to 5e-3 on an arm whose joints start one by one); ``K`` and ``b`` kept side by side do not. And one
absolute threshold cannot serve columns of different units, and sums of squares grow past it with the length of the
log, so that noise on a locked joint becomes an identified parameter in time: thresholds here are per column and per
sample.

``K`` and ``b`` are kept as the triangle ``R`` of ``[Y tau]``, ``R^T R = [K b; b^T .]``, which is twice as accurate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, BoolArray, IntArray, check_shape, freeze, frozen_view
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.estimate import Estimate, Origin
from dynid.estimation.linear import LinearProblem
from dynid.estimation.seen import DATA_TOLERANCE, Seen
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.parameters import Parameters
from dynid.recording.samples import Samples
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel
from dynid.regression.factor import Factor, Regression
from dynid.regression.independence import triangle_of
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.rows import STRETCH_ROWS, TorqueRows
from dynid.regression.torque import (
    checked_motion,
    compiled,
    effect_signals,
    fill_torque_rows,
    support_pairs,
    torque_regressor,
)
from dynid.robot.model import Robot

Form: TypeAlias = Literal["repaired", "literal"]
Over: TypeAlias = Literal["base", "standard"]
Flags: TypeAlias = NDArray[np.int8]
"""1 identified, 0 not excited, -1 linearly dependent."""

NOISE_MARGIN = 3.0
"""A column must exceed the error that motion noise causes in it by this factor."""
ROUND_OFF = 1e-9
"""A column below this fraction of the largest one is zero but for rounding."""
_MIXED = 1e-3


@dataclass(frozen=True)
class MotionNoise:
    """Standard deviations of position, velocity and acceleration in the regressor, one number or one per joint."""

    position: float | tuple[float, ...] = 0.0
    velocity: float | tuple[float, ...] = 0.0
    acceleration: float | tuple[float, ...] = 0.0


@dataclass(frozen=True)
class RecursiveLeastSquares:
    """Block by block, online by :meth:`start` or over a whole regression.

    Args:
        threshold: root mean square per sample that a column, and its independent part, must exceed, relative to its size at
            random states within the robot's limits. For the literal form: ``sigma^2``, absolute.
        motion_noise: noise of the measured motion; columns must then also exceed what it causes in them, measured on
            the very samples by disturbing them once more.
        bounds: box constraints ``name: (lowest, highest)`` on parameters. They are carried to base parameters by interval
            arithmetic and clip what is returned; the state stays unclipped (except in the literal form).
        over: identify ``base`` parameters, or the ``standard`` ones in the default grouping order.
        form: ``repaired``, or ``literal`` for the printed algorithm.
        sigma: torque noise of each joint, to weight its rows.
    """

    name: ClassVar[str] = "recursive"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order", "units", "equal_weights", "covers"})
    threshold: float = 1e-3
    motion_noise: MotionNoise | None = None
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    over: Over = "base"
    form: Form = "repaired"
    sigma: tuple[float, ...] | None = None
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        if not (np.isfinite(self.threshold) and self.threshold >= 0.0):
            raise InputError(
                f"threshold of recursive least squares is {self.threshold:g}, expected zero or a positive number"
            )
        for option, known in (("over", ("base", "standard")), ("form", ("repaired", "literal"))):
            if getattr(self, option) not in known:
                raise UnknownNameError(f"{option} of recursive least squares", getattr(self, option), known)
        for name, (low, high) in self.bounds.items():
            if not low <= high:
                raise InputError(f"bounds of parameter '{name}' are {low:g} and {high:g}, expected the lower first")
        if self.sigma is not None and not min(self.sigma, default=0.0) > 0.0:
            raise InputError(f"torque noise of recursive least squares is {self.sigma}, expected positive numbers")
        check_kind(self.covariance)
        object.__setattr__(self, "bounds", dict(self.bounds))

    def start(self, robot: Robot, base: BaseReduction, prior: Parameters | None = None) -> OnlineEstimator:
        """An estimator to feed with samples as they come."""
        start = robot.parameters if prior is None else prior
        if start.names != robot.parameters.names:
            raise InputError(f"the prior has {len(start)} parameters, the robot {len(robot.parameters)}, or other names")
        return OnlineEstimator(self, robot, base, start)

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        """Go through the stored time blocks; the literal form depends on how they were cut, the repaired does not."""
        columns = _Columns.of(self, prior, base)
        robot = _robot_of(regression)
        weights = self._weights(regression.channel_names)
        state = _State(self, columns, _scale(self, columns, robot, weights))
        n_blocks = min(len(factor.blocks) for factor in regression.factors)
        for k in range(n_blocks):
            last = k == n_blocks - 1  # channels of unequal length give all that is left
            parts, n_samples = [], 0
            for j, factor in enumerate(regression.factors):
                for triangle in factor.blocks[k:] if last else factor.blocks[k : k + 1]:
                    rows = weights[j] * regression.channel_matrix(j, None, triangle)
                    parts.append(np.hstack([columns.select(rows[:, :-1]), rows[:, -1:]]))
                n_samples = max(n_samples, int((factor.rows[k:] if last else factor.rows[k : k + 1]).sum()))
            state.add(np.vstack(parts), n_samples, None)
        if self.motion_noise is not None:
            state.noise_power += _noise_of_sources(self, regression, columns, weights)
        return self._finish(regression, base, prior, columns, state, weights)

    def _weights(self, channel_names: tuple[str, ...]) -> Array:
        if self.sigma is None:
            return np.ones(len(channel_names))
        if len(self.sigma) != len(channel_names):
            raise InputError(
                f"recursive least squares got {len(self.sigma)} torque noises, the data have {len(channel_names)} channels"
            )
        return 1.0 / np.array(self.sigma)

    def _finish(
        self,
        regression: Regression,
        base: BaseReduction,
        prior: Parameters,
        columns: _Columns,
        state: _State,
        weights: Array,
    ) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        found = state.solve()
        standard = None
        if self.over == "standard":
            phi = np.empty(len(prior))
            phi[columns.parameter] = found.values
            standard = prior.with_values(phi)
            beta = base.base_values(standard)
            # the base parameters that the identified columns decide
            shown = np.abs(base.K[:, columns.parameter[found.flags == 1]]).max(axis=1, initial=0.0) > 0.0
            mask = problem.seen.mask & shown
            problem = problem.estimating(mask, beta)
        else:
            beta = found.values
            mask = found.flags == 1
            problem = replace(
                problem, seen=Seen(mask, _origins(np.vstack(problem.channels)[:, :-1], found.flags)), held=beta
            )
        sigma = problem.noise_sigma(beta, pooled=self.sigma is None)
        details: dict[str, Any] = {
            "flags": dict(zip(columns.names, found.flags.tolist(), strict=True)),
            "clipped": tuple(name for name, out in zip(columns.names, found.clipped, strict=True) if out),
            "noise_sigma": sigma.tolist(),
        }
        covariance = np.zeros((base.n_base, base.n_base))
        if mask.any():
            spread = uncertainty(problem, beta, weights, sigma, self.covariance)
            covariance, details = spread.covariance, {**spread.details, **details}
        return problem.finish(self.name, beta, covariance, standard=standard, notes=_notes(columns, found), details=details)


@dataclass(frozen=True, eq=False)
class RecursiveEstimate:
    """What is known after a block."""

    names: tuple[str, ...]
    values: Array
    """Initial values where the flag is not 1; inside the bounds."""
    flags: Flags
    clipped: BoolArray
    n_samples: int
    residual_rms: float
    """Root mean square torque that the unclipped values leave, all joints together; over its noise where that is given."""

    @property
    def identified(self) -> tuple[str, ...]:
        return tuple(name for name, flag in zip(self.names, self.flags, strict=True) if flag == 1)

    def __getitem__(self, name: str) -> float:
        try:
            return float(self.values[self.names.index(name)])
        except ValueError:
            raise UnknownNameError("parameter", name, self.names) from None


class OnlineEstimator:
    """Feed it samples as they come; each update answers with the values and flags so far. Keeps no sample."""

    def __init__(self, method: RecursiveLeastSquares, robot: Robot, base: BaseReduction, prior: Parameters) -> None:
        if robot.floating:
            raise InputError(f"robot '{robot.name}' floats; recursive identification needs a fixed base")
        self.method, self.robot, self.base, self.prior = method, robot, base, prior
        self._columns = _Columns.of(method, prior, base)
        weights = method._weights(robot.dof_names)
        self._rows = _RowsOf(robot, self._columns, weights)
        self._state = _State(method, self._columns, _scale(method, self._columns, robot, weights))
        self._noise = None if method.motion_noise is None else _Disturbance(method.motion_noise, robot)

    def update(self, samples: Samples) -> RecursiveEstimate:
        """Add a block of samples and solve."""
        rows = self._rows.make(samples)
        power = None
        if self._noise is not None:
            power = _power_of_change(rows, self._rows.make(self._noise.disturbed(samples)))
        self._state.add(rows, len(samples), power)
        return self._state.solve()

    @property
    def n_samples(self) -> int:
        return self._state.n_samples

    def regression(self) -> Regression:
        """Everything seen so far as one channel that other methods can use; its rows cannot be made again."""
        if self.method.form == "literal":
            raise InputError("the literal form keeps no triangle; use the repaired form")
        if self._state.n_samples == 0:
            raise InputError("no sample has been given yet")
        R = self._state.R
        columns = self._columns
        if self.method.over == "standard":
            order = np.argsort(columns.parameter)
            R = triangle_of(R[:, [*order, len(order)]])
            channel = Channel("joints", freeze(range(len(order)), dtype=np.int64), freeze(np.eye(len(order))))
        else:
            # only the number of columns matters here: W = W_b K, whatever the grouping
            kept = self.base.independent if self.base.independent is not None else np.arange(self.base.n_base)
            channel = Channel("joints", freeze(kept, dtype=np.int64), self.base.K)
        rows = freeze([self._state.n_samples * self.robot.n_dof], np.int64)
        return Regression(self.robot.parameters, (Factor(channel, freeze(R[None]), rows),))

    def estimate(self) -> Estimate:
        """The full estimate of all samples so far, with covariance; not for use inside a control loop."""
        regression = self.regression()
        plain = replace(self.method, sigma=None, motion_noise=None, covariance="classical")
        return plain._finish(regression, self.base, self.prior, self._columns, self._state, np.ones(1))


# Columns and thresholds ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns to identify, in the order that flags depend on."""

    names: tuple[str, ...]
    parameter: IntArray
    """Regressor column of each, where each is one."""
    lift: Array | None
    """``Y lift`` for a grouping that is no choice of columns."""
    initial: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, method: RecursiveLeastSquares, prior: Parameters, base: BaseReduction) -> _Columns:
        if base.parameter_names != prior.names:
            raise InputError(f"base reduction is over {base.n_parameters} parameters, the data over {len(prior)}")
        low, high = np.full(len(prior), -np.inf), np.full(len(prior), np.inf)
        for name, (lowest, highest) in method.bounds.items():
            low[prior.index(name)], high[prior.index(name)] = lowest, highest
        if method.over == "standard":
            order = prior.grouping()
            names = tuple(prior.names[i] for i in order)
            return cls(names, order, None, freeze(prior.values[order]), low[order], high[order])
        lower, upper = interval_product(base.K, low, high)
        initial = freeze(base.base_values(prior))
        if base.independent is None:
            return cls(base.names, freeze(range(0), dtype=np.int64), base.lift, initial, lower, upper)
        return cls(base.names, base.independent, None, initial, lower, upper)

    def select(self, W: Array) -> Array:
        """These columns of rows over all parameters."""
        return W[:, self.parameter] if self.lift is None else W @ self.lift


def interval_product(K: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Interval of ``K x`` for ``x`` in a box: each term at the end that its sign asks for."""
    positive, negative = np.maximum(K, 0.0), np.minimum(K, 0.0)

    def total(up: Array, down: Array) -> Array:
        with np.errstate(invalid="ignore"):
            terms = np.where(positive != 0.0, positive * up, 0.0) + np.where(negative != 0.0, negative * down, 0.0)
        return np.asarray(terms.sum(axis=1))

    return total(low, high), total(high, low)


def _robot_of(regression: Regression) -> Robot | None:
    for source in regression.sources:
        if isinstance(source, TorqueRows):
            return source.robot
    return None


def _scale(method: RecursiveLeastSquares, columns: _Columns, robot: Robot | None, weights: Array) -> Array | None:
    """Root mean square of every column per sample at random states within limits; None without a robot."""
    if robot is None or method.form == "literal":
        return None
    q, v, a = random_states_within_limits(robot, 200, seed=2)
    load = np.ones_like(v)
    Y = torque_regressor(robot, q, v, a, load) * weights[:, None]
    rows = columns.select(Y.reshape(-1, Y.shape[2]))
    scale = np.sqrt((rows**2).sum(axis=0) / len(q))
    # a column of round-off has no size of its own
    return np.asarray(np.maximum(scale, ROUND_OFF * scale.max(initial=0.0) / max(method.threshold, ROUND_OFF)))


def _origins(A: Array, flags: Flags) -> tuple[Origin, ...]:
    """Where values come from: an identified one is mixed if it also carries a dependent one."""
    kept = flags == 1
    mixed = np.zeros(len(flags), dtype=bool)
    dependent = flags == -1
    if dependent.any() and kept.any():
        norms = np.linalg.norm(A, axis=0)
        unit = A / np.where(norms > 0.0, norms, 1.0)
        coefficients = np.linalg.lstsq(unit[:, kept], unit[:, dependent], rcond=None)[0]
        mixed[kept] = np.abs(coefficients).max(axis=1) > _MIXED
    return tuple("prior" if not k else ("mixed" if m else "data") for k, m in zip(kept, mixed, strict=True))


def _notes(columns: _Columns, found: RecursiveEstimate) -> tuple[str, ...]:
    notes = []
    for flag, text in ((0, "not excited, initial value kept"), (-1, "linearly dependent, initial value kept")):
        names = [name for name, own in zip(columns.names, found.flags, strict=True) if own == flag]
        if names:
            notes.append(f"{text}: {', '.join(names)}")
    clipped = [name for name, out in zip(columns.names, found.clipped, strict=True) if out]
    if clipped:
        notes.append(f"moved into their bounds: {', '.join(clipped)}")
    return tuple(notes)


# State --------------------------------------------------------------------------------------------


class _State:
    """The triangle of all rows so far and the solution from it."""

    def __init__(self, method: RecursiveLeastSquares, columns: _Columns, scale: Array | None) -> None:
        n = len(columns.names)
        self.R = np.zeros((n + 1, n + 1))
        self.n_samples = self.n_rows = 0
        self.noise_power = np.zeros(n)
        self._method, self._columns, self._scale = method, columns, scale
        self._T, self._buffer = np.empty_like(self.R), np.empty(n + 1)
        self._literal = _LiteralState(method, columns) if method.form == "literal" else None
        self._bounded = bool(method.bounds)
        self._free = freeze(np.zeros(n, dtype=bool), dtype=np.bool_)

    def add(self, rows: Array, n_samples: int, noise_power: Array | None) -> None:
        """Fold a block ``[Y tau]`` of so many samples; the rows are used up."""
        from dynid.estimation.methods.recursive_kernel import fold_rows

        self.n_samples += n_samples
        self.n_rows += len(rows)
        if noise_power is not None:
            self.noise_power += noise_power
        if self._literal is not None:
            self._literal.add(rows)
        else:
            fold_rows(self.R, rows, self._buffer)

    def solve(self) -> RecursiveEstimate:
        if self._literal is not None:
            values, flags, residual = self._literal.theta.copy(), self._literal.flags.copy(), float("nan")
        else:
            values, flags, residual = self._solve()
        clipped = self._free
        if self._bounded:
            inside = np.clip(values, self._columns.lower, self._columns.upper)
            # a value that no data moved is the user's own
            inside = np.where(flags == 1, inside, values)
            values, clipped = inside, freeze(inside != values, dtype=np.bool_)
        values.flags.writeable = False
        flags.flags.writeable = False
        return RecursiveEstimate(self._columns.names, values, flags, clipped, self.n_samples, residual)

    def _solve(self) -> tuple[Array, Flags, float]:
        from dynid.estimation.methods.recursive_kernel import solve_identified

        n = len(self._columns.names)
        values, flags = np.empty(n), np.empty(n, dtype=np.int8)
        method, start = self._method, self._columns.initial
        squares = solve_identified(self.R, start, self._bound(), method.tolerance, self._T, self._buffer, flags, values)
        return values, flags, float(np.sqrt(squares / max(self.n_rows, 1)))

    def _bound(self) -> Array:
        """Square that a column's independent part must exceed over all samples so far."""
        if self._scale is None:  # no robot to ask: only exact zeros are not excited
            own = (self.R[:-1, :-1] ** 2).sum(axis=0)
            bound = np.full(len(own), 1e-24 * own.max(initial=0.0))
        else:
            bound = self.n_samples * (self._method.threshold * self._scale) ** 2
        if self._method.motion_noise is not None:
            np.maximum(bound, NOISE_MARGIN**2 * self.noise_power, out=bound)
        return np.asarray(bound)


class _LiteralState:
    """Fig. 1 as printed, but for the torque of the new block: ``theta += K^-1 Y^T (tau - Y theta)``."""

    def __init__(self, method: RecursiveLeastSquares, columns: _Columns) -> None:
        n = len(columns.names)
        self.K, self.theta, self.flags = np.zeros((n, n)), columns.initial.copy(), np.zeros(n, dtype=np.int8)
        self._threshold, self._columns = method.threshold, columns
        self._M = np.empty((n, 2 * n))

    def add(self, rows: Array) -> None:
        from dynid.estimation.methods.recursive_kernel import eliminate

        Y, tau = rows[:, :-1], rows[:, -1]
        self.K += Y.T @ Y
        eliminate(self.K, self._threshold, self._M, self.flags)
        inverse = self._M[:, len(self.K) :]
        self.theta = self.theta + inverse @ (Y.T @ (tau - Y @ self.theta))
        moved = self.flags == 1
        self.theta[moved] = np.clip(self.theta, self._columns.lower, self._columns.upper)[moved]


# Rows of samples ----------------------------------------------------------------------------------


class _RowsOf:
    """Rows ``[Y tau]`` of a block over the chosen columns, row = sample * torques + torque."""

    def __init__(self, robot: Robot, columns: _Columns, weights: Array) -> None:
        self._robot, self._lift = robot, columns.lift
        self._weights = None if (weights == 1.0).all() else weights[None, :, None]
        parameter = columns.parameter if columns.lift is None else np.arange(len(robot.parameters))
        place = np.full(len(robot.parameters), -1, dtype=np.int64)
        place[parameter] = np.arange(len(parameter))
        n_inertial, n_effects = robot.parameters.n_inertial, robot.effect_incidence.shape[1]
        self._width = len(parameter) + 1
        torque, body = support_pairs(robot)
        column = place[10 * body[:, None] + np.arange(10)]
        self._targets = freeze(np.where(column < 0, -1, torque[:, None] * self._width + column), np.int64)
        # columns that are signals: effects where they act, then the torque as the last column
        acts, effect = np.nonzero(robot.effect_incidence * (place[n_inertial:] >= 0))
        every = np.arange(robot.n_dof)
        self._signal = freeze(np.concatenate([effect, n_effects + every]), np.int64)
        self._coefficient = freeze(np.concatenate([robot.effect_incidence[acts, effect], np.ones(robot.n_dof)]))
        self._signal_targets = freeze(
            np.concatenate([acts * self._width + place[n_inertial + effect], (every + 1) * self._width - 1]), np.int64
        )

    def make(self, samples: Samples) -> Array:
        from dynid.regression import kernel

        if samples.torque is None:
            raise InputError("samples hold motion but no torque, so there is nothing to identify from")
        robot = self._robot
        q, v, a = checked_motion(robot, samples.position, samples.velocity, samples.acceleration)
        check_shape("torque", samples.torque, v.shape)
        rows = np.zeros((len(q), robot.n_dof, self._width))
        flat, step = rows.reshape(-1), robot.n_dof * self._width
        fill_torque_rows(robot, q, v, a, self._targets, step, flat)
        signals = samples.torque
        if robot.effects:
            signals = np.hstack([effect_signals(robot, q, v, a, samples.load), signals])
        compiled(kernel.signal_rows)(frozen_view(signals), self._signal, self._coefficient, self._signal_targets, step, flat)
        if self._weights is not None:
            rows *= self._weights
        if self._lift is not None:
            rows = np.concatenate([rows[:, :, :-1] @ self._lift, rows[:, :, -1:]], axis=2)
        return rows.reshape(-1, rows.shape[2])


class _Disturbance:
    """The same motion with fresh noise on it, from a generator of its own."""

    def __init__(self, noise: MotionNoise, robot: Robot) -> None:
        self._spread = []
        for name in ("position", "velocity", "acceleration"):
            values = np.asarray(getattr(noise, name), dtype=np.float64)
            if values.shape not in ((), (robot.n_joints,)) or not (np.isfinite(values).all() and (values >= 0.0).all()):
                raise InputError(
                    f"{name} noise has {values.size} values, expected one or {robot.n_joints}, zero or positive"
                )
            self._spread.append(np.broadcast_to(values, (robot.n_joints,)))
        self._rng = np.random.default_rng(0)

    def disturbed(self, samples: Samples) -> Samples:
        noise = self._rng.standard_normal((3, *samples.velocity.shape))
        return replace(
            samples,
            position=samples.position + self._spread[0] * noise[0],
            velocity=samples.velocity + self._spread[1] * noise[1],
            acceleration=samples.acceleration + self._spread[2] * noise[2],
        )


def _noise_of_sources(method: RecursiveLeastSquares, regression: Regression, columns: _Columns, weights: Array) -> Array:
    """Power that motion noise causes in every column, one pass over the samples."""
    power = np.zeros(len(columns.names))
    if not regression.sources or not all(isinstance(source, TorqueRows) for source in regression.sources):
        raise InputError("motion noise is measured on torque rows, and this regression has none to make again")
    assert method.motion_noise is not None
    for source in regression.sources:
        assert isinstance(source, TorqueRows)
        rows, noise = _RowsOf(source.robot, columns, weights), _Disturbance(method.motion_noise, source.robot)
        for samples in source.sources:
            for piece in samples:
                for first in range(0, len(piece), STRETCH_ROWS):
                    part = piece[first : first + STRETCH_ROWS]
                    power += _power_of_change(rows.make(part), rows.make(noise.disturbed(part)))
    return power


def _power_of_change(rows: Array, disturbed: Array) -> Array:
    """Summed squares of the change of every column."""
    change = disturbed[:, :-1] - rows[:, :-1]
    return np.asarray(np.einsum("rc,rc->c", change, change))
