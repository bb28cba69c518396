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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from dynid.arrays import Array, freeze
from dynid.engine import Tell, silent
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.bounds import read_bounds
from dynid.estimation.linear import DATA_TOLERANCE, Identifiability, LinearProblem
from dynid.estimation.online import OnlineEstimator
from dynid.estimation.online_estimate import Columns, Flags, OnlineEstimate, Over, origins_of_flags
from dynid.estimation.residuals import require_rows
from dynid.estimation.result import Estimate
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel, torque_channels, triangle_of
from dynid.regression.factor import Factor, Regression
from dynid.regression.row_source import Chunk
from dynid.regression.torque_rows import ChosenTorqueRows, typical_torque_rows
from dynid.signals.samples import MappedSamples, Samples

Form: TypeAlias = Literal["repaired", "literal"]


@dataclass(frozen=True)
class MotionNoise:
    """Standard deviations of position, velocity and acceleration in the regressor, one number or one per joint."""

    position: float | tuple[float, ...] = 0.0
    velocity: float | tuple[float, ...] = 0.0
    acceleration: float | tuple[float, ...] = 0.0


@dataclass(frozen=True)
class RecursiveLeastSquares:
    """Modified recursive least squares: block by block, online by :meth:`start` or over a whole regression.

    Args:
        threshold: root mean square per sample that a column, and its independent part, must exceed, relative to its size at
            random states within the robot's limits. For the literal form: ``sigma^2``, absolute.
        motion_noise: noise of the measured motion; columns must then also exceed what it causes in them, measured on
            the same samples by disturbing them once more.
        bounds: box constraints ``name: (lowest, highest)`` on parameters. They are carried to base parameters by interval
            arithmetic and clip what is returned; the state stays unclipped (except in the literal form).
        over: identify ``base`` parameters, or the ``standard`` ones in the default grouping order.
        form: ``repaired``, or ``literal`` for the printed algorithm.
        sigma: torque noise of each joint, to weight its rows.
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> online = dynid.RecursiveLeastSquares().start(robot, dynid.reduce_to_base(robot))
        >>> for start in range(0, len(samples), 200):
        ...     state = online.update(samples[start : start + 200])
        >>> online.estimate().relative_error < 1e-6
        True
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

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> RecursiveLeastSquares:
        """The method of a run; bounds are those of parameters by their names."""
        given = {} if options["threshold"] is None else {"threshold": options["threshold"]}
        return cls(bounds=read_parameter_bounds(options["bounds"], robot.parameters), form=options["form"], **given)

    def start(self, robot: Robot, base: BaseReduction, prior: Parameters | None = None) -> SampleEstimator:
        """An estimator to feed with samples as they come."""
        start = robot.parameters if prior is None else prior
        if start.names != robot.parameters.names:
            raise InputError(f"the prior has {len(start)} parameters, the robot {len(robot.parameters)}, or other names")
        return SampleEstimator(self, robot, base, start)

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        """Go through the stored time blocks; the literal form depends on how they were cut, the repaired does not."""
        columns = Columns.of(prior, base, self.bounds, self.over)
        weights = self._weights(regression.channel_names)
        typical = next((rows for source in regression.sources if (rows := source.typical_rows()) is not None), None)
        online = self._online(columns, [factor.channel for factor in regression.factors], weights, typical)
        n_blocks = min(len(factor.blocks) for factor in regression.factors)
        for k in range(n_blocks):
            last = k == n_blocks - 1  # channels of unequal length give all that is left
            parts, n_samples = [], 0
            for j, factor in enumerate(regression.factors):
                for triangle in factor.blocks[k:] if last else factor.blocks[k : k + 1]:
                    rows = weights[j] * regression.channel_matrix(j, None, triangle)
                    parts.append(np.hstack([columns.select(rows[:, :-1]), rows[:, -1:]]))
                n_samples = max(n_samples, int((factor.rows[k:] if last else factor.rows[k : k + 1]).sum()))
            online.fold(np.vstack(parts), n_samples)
        if self.motion_noise is not None:
            # Power that motion noise causes in every column, one more pass over the rows.
            power = np.zeros(len(online.columns.names))
            require_rows(regression, "thresholds from motion noise")
            for source in regression.logs():
                if source.robot is None or not source.samples:
                    raise InputError(
                        f"motion noise is measured on samples of motion, and {source.kind} rows are not made from them"
                    )
                noise = _Disturbance(self.motion_noise, source.robot)
                disturbed = source.with_samples([MappedSamples(one, noise.disturbed) for one in source.samples])
                for own, other in zip(source.passes(), disturbed.passes(), strict=True):
                    power += _power_of_change(online.choose_columns(own.blocks), online.choose_columns(other.blocks))
            online.noise_power = power
        return self._finish(regression, base, prior, columns, online.answer(), weights)

    def _online(
        self, columns: Columns, channels: Sequence[Channel], weights: Array, typical: Sequence[Array] | None
    ) -> OnlineEstimator:
        """The estimator that the options ask for."""
        kind = _LiteralEstimator if self.form == "literal" else OnlineEstimator
        return kind(
            columns,
            [columns.select(channel.expansion) for channel in channels],
            weights,
            typical=typical,
            threshold=self.threshold,
            tolerance=self.tolerance,
        )

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
        columns: Columns,
        found: OnlineEstimate,
        weights: Array,
    ) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
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
                problem,
                seen=Identifiability(mask, origins_of_flags(np.vstack(problem.channels)[:, :-1], found.flags)),
                held=beta,
            )
        sigma = problem.noise_sigma(beta, pooled=self.sigma is None)
        details: dict[str, Any] = {
            "flags": dict(zip(columns.names, found.flags.tolist(), strict=True)),
            "clipped": tuple(name for name, out in zip(columns.names, found.clipped, strict=True) if out),
            "noise_sigma": sigma.tolist(),
        }
        covariance = np.zeros((base.n_base, base.n_base))
        if mask.any():
            covariance, spread = uncertainty(problem, beta, weights, sigma, self.covariance)
            details = {**spread, **details}
        return problem.finish(self.name, beta, covariance, standard=standard, notes=_notes_on_flags(found), details=details)


def read_parameter_bounds(path: str | None, parameters: Parameters) -> dict[str, tuple[float, float]]:
    """Limits of parameters by their names, from a file; one of what is no parameter, such as a centre of mass, is refused."""
    limits = {} if path is None else dict(read_bounds(path).limits)
    for name in limits:
        parameters.index(name)
    return limits


def _notes_on_flags(found: OnlineEstimate) -> tuple[str, ...]:
    """What flags and bounds mean for the values, in words."""
    notes = []
    for flag, text in ((0, "not excited, initial value kept"), (-1, "linearly dependent, initial value kept")):
        names = [name for name, own in zip(found.names, found.flags, strict=True) if own == flag]
        if names:
            notes.append(f"{text}: {', '.join(names)}")
    clipped = [name for name, out in zip(found.names, found.clipped, strict=True) if out]
    if clipped:
        notes.append(f"moved into their bounds: {', '.join(clipped)}")
    return tuple(notes)


class SampleEstimator:
    """Feed it samples or rows as they come; each update answers with the values and flags so far. Keeps no sample."""

    def __init__(self, method: RecursiveLeastSquares, robot: Robot, base: BaseReduction, prior: Parameters) -> None:
        if robot.floating:
            raise InputError(f"robot '{robot.name}' floats; recursive identification needs a fixed base")
        self.method, self.robot, self.base, self.prior = method, robot, base, prior
        self._columns = Columns.of(prior, base, method.bounds, method.over)
        self._weights = method._weights(robot.dof_names)
        self._equal = bool((self._weights == 1.0).all())
        whole = self._columns.lift is not None
        self._made = ChosenTorqueRows(robot, freeze(range(len(prior)), np.int64) if whole else self._columns.parameter)
        self._online = method._online(self._columns, torque_channels(robot), self._weights, typical_torque_rows(robot))
        self._noise = None if method.motion_noise is None else _Disturbance(method.motion_noise, robot)

    def update(self, block: Samples | Chunk) -> OnlineEstimate:
        """Add a block of samples, or of rows made by polynomial approximation, and solve."""
        if isinstance(block, Chunk):
            if self._noise is not None:
                raise InputError("motion noise is measured on samples, rows by polynomial approximation were given")
            self._online.feed(block)
            return self._online.answer()
        rows = self._rows(block)
        power = None if self._noise is None else _power_of_change(rows, self._rows(self._noise.disturbed(block)))
        self._online.fold(rows, len(block), power)
        return self._online.answer()

    def _rows(self, samples: Samples) -> Array:
        rows = self._made.rows(samples)
        if self._columns.lift is not None:
            rows = np.concatenate([rows[:, :, :-1] @ self._columns.lift, rows[:, :, -1:]], axis=2)
        if not self._equal:
            rows *= self._weights[:, None]
        return rows.reshape(-1, rows.shape[2])

    @property
    def n_samples(self) -> int:
        """Samples so far."""
        return self._online.n_samples

    def regression(self) -> Regression:
        """Everything seen so far as one channel that other methods can use; its rows cannot be made again."""
        if self.method.form == "literal":
            raise InputError("the literal form keeps no triangle; use the repaired form")
        if self.n_samples == 0:
            raise InputError("no sample has been given yet")
        R = self._online.triangles().R[0]
        columns = self._columns
        if self.method.over == "standard":
            order = np.argsort(columns.parameter)
            R = triangle_of(R[:, [*order, len(order)]])
            channel = Channel("joints", freeze(range(len(order)), dtype=np.int64), freeze(np.eye(len(order))))
        else:
            # only the number of columns matters here: W = W_b K, whatever the grouping
            kept = self.base.independent if self.base.independent is not None else np.arange(self.base.n_base)
            channel = Channel("joints", freeze(kept, dtype=np.int64), self.base.K)
        rows = freeze([self.n_samples * self.robot.n_dof], np.int64)
        return Regression(self.robot.parameters, (Factor(channel, freeze(R[None]), rows),))

    def estimate(self) -> Estimate:
        """The full estimate of all samples so far, with covariance; not for use inside a control loop."""
        plain = replace(self.method, sigma=None, motion_noise=None, covariance="classical")
        found = self._online.answer()
        return plain._finish(self.regression(), self.base, self.prior, self._columns, found, np.ones(1))


class _LiteralEstimator(OnlineEstimator):
    """Fig. 1 as printed, but for the torque of the new block: ``theta += K^-1 Y^T (tau - Y theta)``."""

    def __init__(self, columns: Columns, maps: Sequence[Array], weights: Array, **options: Any) -> None:
        super().__init__(columns, maps, weights, **options)
        n = len(columns.names)
        self._K, self._theta, self._flags = np.zeros((n, n)), columns.initial.copy(), np.zeros(n, dtype=np.int8)
        self._M = np.empty((n, 2 * n))

    def fold(self, rows: Array, n_samples: int, noise_power: Array | None = None) -> None:
        """Update the values by a block."""
        from dynid.estimation.online_kernels import eliminate

        Y, tau = rows[:, :-1], rows[:, -1]
        self._K += Y.T @ Y
        eliminate(self._K, self._threshold, self._M, self._flags)
        inverse = self._M[:, len(self._K) :]
        self._theta = self._theta + inverse @ (Y.T @ (tau - Y @ self._theta))
        moved = self._flags == 1
        self._theta[moved] = np.clip(self._theta, self.columns.lower, self.columns.upper)[moved]
        self._now.n_times += n_samples

    def _values_and_flags(self, R: Array, n_samples: float, sizes: Array | None) -> tuple[Array, Flags, float]:
        return self._theta.copy(), self._flags.copy(), float("nan")


# Noise of the motion ------------------------------------------------------------------------------


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


def _power_of_change(rows: Array, disturbed: Array) -> Array:
    """Summed squares of the change of every column."""
    change = disturbed[:, :-1] - rows[:, :-1]
    return np.asarray(np.einsum("rc,rc->c", change, change))
