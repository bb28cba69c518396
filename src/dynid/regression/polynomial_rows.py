"""Regression by polynomial approximation: rows from position and torque alone, no signal is differentiated.

Lomakin and Deutscher (2020), (28)-(37), for any robot with a fixed base. With the momentum ``A phi = dL/dv`` and
the drift ``B phi = dL/dq - friction`` the equation of motion is ``tau = d/dt (A phi) - B phi``; multiplied with the
kernel ``g`` of a sliding window and integrated by parts,

    g * tau = (g' * A(q, v) - g * B(q, v)) phi                                              (28), (35)

An effect that is a rate, rotor inertia ``Ia a = d/dt (Ia v)``, is a column of ``A``; friction and offsets ``s(q, v)``
are columns ``-s`` of ``B``. ``q`` and ``v`` come from measured positions in one of two ways:

* ``"pointwise"``, the composition rule (21): ``q_hat = g * q`` and ``v_hat = g' * q``, then ``W = g' * A(q_hat,
  v_hat) - g * B(q_hat, v_hat)`` and ``g * g * tau``. One evaluation of the dynamics per row; everything is filtered
  twice.
* ``"product"``, the product rule (22)-(23) with the ``N* + 1`` nodes of the window: ``W = sum_m A(q_m, u_m) - b_m
  B(q_m, v_m)`` and ``g * tau``. Two evaluations per node and row; everything is filtered once.

What depends in every state depends in these rows too, since ``A`` and ``B`` are evaluated at states: the channels
are those of torque rows. Neighbouring rows share most of their window, so their errors are coloured like those of
any filtered log. ``A`` and ``B`` of the bodies are those of :mod:`dynid.dynamics.regressors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_positive, check_shape, freeze
from dynid.dynamics.closed_chains import gain_rate, tree_motion
from dynid.dynamics.inverse_dynamics import effect_signals, passive_columns, tree_effect_motion
from dynid.dynamics.joint_effects import effect_momentum
from dynid.dynamics.regressors import momentum_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.model.effects.effect import Motion
from dynid.model.robot import Robot
from dynid.regression.channels import Channel, torque_channels
from dynid.regression.factor import Regression, factorise
from dynid.regression.row_source import CHUNK_ROWS, Chunk, SampleRows, as_logs
from dynid.regression.torque_rows import typical_torque_rows
from dynid.signals.kernel_filter import OnlineFilter, OnlineRowFilter, RowKernel, Rule, SampledKernel, sample_kernel
from dynid.signals.polynomial_kernels import PolynomialApproximation
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples, SampleStream
from dynid.signals.steps.step import Signals, uninterrupted_parts
from dynid.signals.stream import RecordingStream

Composition: TypeAlias = Literal["pointwise", "product"]
COMPOSITIONS: tuple[Composition, ...] = ("pointwise", "product")

Log: TypeAlias = Recording | RecordingStream | Samples | SampleStream
"""Where positions and torques come from. What else it holds is not looked at, but for the load of samples."""

_REMEDY = "resample it first, such as with process(recording, [Resample(), Differentiate()])"
_ROUND_OFF = 1e-12  # of a signal by which the slope of a constant one may miss zero
_WHOLE = 1e-5  # of a sample by which a window may miss a whole number of them for the rounding of the stamps


@dataclass(frozen=True)
class PolynomialRows(SampleRows):
    """Rows (35) of the polynomial approximation; a row source like any other, whose triangles merge with those of torque rows.

    Args:
        robot: a robot on a fixed base.
        samples: logs on a uniform clock; a gap starts a new window, an uneven clock is refused.
        settings: kernels and window.
        composition: how positions enter nonlinear expressions, see the module.
        every: one row of so many is kept.
        rule: quadrature that samples the kernels.
        exact: correct the taps so that they are exact on polynomials.
        chunk_rows: samples processed at a time; the rows do not depend on it.

    Examples:
        >>> import dynid
        >>> from dynid.regression.polynomial_rows import PolynomialRows
        >>> from dynid.signals.polynomial_kernels import PolynomialApproximation
        >>> settings = PolynomialApproximation(window_s=0.1)
        >>> rows = PolynomialRows(dynid.demo_robot(), (dynid.demo_samples(),), settings)
        >>> dynid.factorise(rows).n_samples
        990
    """

    kind = "polynomial"
    timed = True
    samples: tuple[Log, ...]
    settings: PolynomialApproximation = field(default_factory=PolynomialApproximation)
    composition: Composition = "product"
    every: int = 1
    rule: Rule = "trapezoidal"
    exact: bool = True
    chunk_rows: int = CHUNK_ROWS

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_rows(self.robot, self.settings, self.composition, self.every)
        if self.chunk_rows < 1:
            raise InputError(f"chunk_rows is {self.chunk_rows}, expected at least 1")

    @property
    def channels(self) -> tuple[Channel, ...]:
        return torque_channels(self.robot)

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        step = chunk_rows or self.chunk_rows
        for source in self.samples:
            n_samples, n_rows = 0, 0
            rows: OnlinePolynomialRows | None = None
            for period_s, part in uninterrupted_parts(_pieces(source, self.robot), remedy=_REMEDY):
                rows = None
                for piece in part:
                    rows = rows or self.online(period_s, float(piece.time[0]))
                    n_samples += len(piece)
                    for start in range(0, len(piece), step):
                        block = piece.cut(slice(start, start + step)).values
                        made = rows.push(block["position"], block["torque"], block.get("load"))
                        n_rows += len(made)
                        if len(made):
                            yield made
            if n_rows == 0:
                needed = "" if rows is None else f" without a gap, expected at least {rows.n_dropped + 1}"
                raise InputError(
                    f"log has {n_samples} samples{needed} for a window of {self.settings.window_s:g} s ({self.composition})"
                )

    def typical_rows(self) -> tuple[Array, ...]:
        """Those of torque: the kernels have unit gain."""
        return typical_torque_rows(self.robot)

    def online(self, sample_period_s: float, start_s: float = 0.0) -> OnlinePolynomialRows:
        """The same rows from samples as they come."""
        return OnlinePolynomialRows(
            self.robot,
            self.settings,
            sample_period_s,
            composition=self.composition,
            every=self.every,
            rule=self.rule,
            exact=self.exact,
            start_s=start_s,
        )


def polynomial_regression(
    robot: Robot,
    logs: Log | Iterable[Log],
    settings: PolynomialApproximation | None = None,
    *,
    composition: Composition = "product",
    every: int = 1,
    rule: Rule = "trapezoidal",
    exact: bool = True,
) -> Regression:
    """Regression of the rows (35) of one or several logs, from their positions and torques alone.

    Args:
        robot: a robot on a fixed base.
        logs: one log, or several.
        settings: kernels and window; None for the paper's: a window of 44 ms, N = 1, N* = 2, alpha = beta = 3.
        composition: how positions enter nonlinear expressions, see the module.
        every: one row of so many is kept.
        rule: quadrature that samples the kernels.
        exact: correct the taps so that they are exact on polynomials.

    Examples:
        >>> import dynid
        >>> from dynid.regression.polynomial_rows import polynomial_regression
        >>> from dynid.signals.polynomial_kernels import PolynomialApproximation
        >>> settings = PolynomialApproximation(window_s=0.1)
        >>> polynomial_regression(dynid.demo_robot(), dynid.demo_recording(), settings).n_samples
        990
    """
    sources: tuple[Log, ...] = as_logs(logs, (Recording, RecordingStream, Samples))
    chosen = settings or PolynomialApproximation()
    return factorise(PolynomialRows(robot, sources, chosen, composition, every, rule, exact))


class OnlinePolynomialRows:
    """Polynomial rows online: push samples one by one or in blocks, take the rows that they complete.

    It keeps the last ``n_dropped`` samples. A row belongs to a time ``delay_s`` before its newest sample.

    Args:
        robot: a robot on a fixed base.
        settings: kernels and window.
        sample_period_s: sampling period, s.
        composition: how positions enter nonlinear expressions, see the module.
        every: one row of so many is kept.
        rule: quadrature that samples the kernels.
        exact: correct the taps so that they are exact on polynomials.
        start_s: time of the first sample, s.

    Examples:
        >>> import dynid
        >>> from dynid.regression.polynomial_rows import OnlinePolynomialRows
        >>> from dynid.signals.polynomial_kernels import PolynomialApproximation
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples(seconds=2.0)
        >>> online = OnlinePolynomialRows(robot, PolynomialApproximation(window_s=0.1), sample_period_s=0.01)
        >>> rows = online.push(samples.position, samples.torque)
        >>> len(rows.time)
        190
    """

    def __init__(
        self,
        robot: Robot,
        settings: PolynomialApproximation,
        sample_period_s: float,
        *,
        composition: Composition = "product",
        every: int = 1,
        rule: Rule = "trapezoidal",
        exact: bool = True,
        start_s: float = 0.0,
    ) -> None:
        _check_rows(robot, settings, composition, every)
        self.robot, self.every = robot, every
        # The sample period, less the rounding of the stamps where the window is meant as a whole number of samples.
        check_positive("sample period", sample_period_s, "seconds")
        count = round(settings.window_s / sample_period_s)
        period_s = (
            settings.window_s / count
            if count and abs(settings.window_s / sample_period_s - count) < _WHOLE
            else sample_period_s
        )
        chosen = (robot, settings, period_s, rule, exact, start_s)
        self._rows: _PointwiseRows | _ProductRows
        self._rows = _PointwiseRows(*chosen) if composition == "pointwise" else _ProductRows(*chosen)
        self._loaded: bool | None = None
        self._n_made = 0

    @property
    def n_dropped(self) -> int:
        """Samples at the start that complete no row."""
        return self._rows.n_dropped

    @property
    def delay_s(self) -> float:
        return self._rows.delay_s

    @property
    def torque_taps(self) -> Array:
        """The filter that torque passes."""
        return self._rows.torque_taps

    def count_from(self, n_made: int) -> None:
        """Count rows as if so many had been made before: for going on with a stream whose last samples were pushed again."""
        self._n_made = max(n_made, 0)

    def push(self, position: ArrayLike, torque: ArrayLike, load: ArrayLike | None = None) -> Chunk:
        """Take one sample ``(joints,)`` or a block ``(samples, joints)`` and give the rows that it completes.

        ``load`` is the torque transmitted by each joint, for friction that depends on it: with every sample or with none.
        """
        n = self.robot.n_dof
        q, tau = (np.atleast_2d(np.asarray(values, dtype=np.float64)) for values in (position, torque))
        carried = None if load is None else np.atleast_2d(np.asarray(load, dtype=np.float64))
        check_shape("position", q, (None, n))
        for name, values in (("torque", tau), ("load", carried)):
            if values is not None:
                check_shape(name, values, (len(q), n))
                check_finite(name, values)
        check_finite("position", q)
        if self._loaded not in (None, carried is not None):
            raise InputError("load came with some samples and not with others, expected it with all or with none")
        self._loaded = carried is not None
        keep = slice(-self._n_made % self.every, None, self.every)
        n_complete, made = self._rows.push(q, tau, carried, keep)
        self._n_made += n_complete
        return made


# The two compositions -----------------------------------------------------------------------------


class _PointwiseRows:
    """(21): motion is approximated first, rows are made of it sample by sample and then filtered."""

    def __init__(
        self, robot: Robot, settings: PolynomialApproximation, period_s: float, rule: Rule, exact: bool, start_s: float
    ) -> None:
        self._dynamics, n = MomentumColumns(robot), robot.n_dof
        kernel = RowKernel.of(settings, period_s, rule, exact)
        self._start_s, self._kernel = start_s, kernel
        self._position, self._velocity = OnlineFilter(kernel.g, n), OnlineFilter(kernel.g_dot, n)
        self._torque, self._load = OnlineFilter(kernel.g, n), OnlineFilter(kernel.g, n)
        self._row_torque = OnlineFilter(kernel.g, n, start_s + kernel.n_dropped * period_s - kernel.delay_s)
        self._rows = OnlineRowFilter(kernel, self._dynamics.width)
        self.n_dropped, self.delay_s = 2 * kernel.n_dropped, 2.0 * kernel.delay_s
        self.torque_taps = np.convolve(kernel.g.taps, kernel.g.taps)

    def push(self, q: Array, tau: Array, load: Array | None, keep: slice) -> tuple[int, Chunk]:
        q_hat, v_hat = self._position.push(q).values, self._velocity.push(q).values
        v_hat = _without_round_off(v_hat, q_hat, self._velocity.kernel)
        tau_hat = self._torque.push(tau).values
        load_hat = None if load is None else self._load.push(load).values
        W = self._rows.push(*self._dynamics.both(q_hat, v_hat, load_hat)).values
        right = self._row_torque.push(tau_hat)
        blocks = self._dynamics.blocks(W[keep], right.values[keep])
        return len(W), Chunk(blocks, right.time[keep])


class _ProductRows:
    """(22)-(23): rows are sums over the nodes of the window, made of motion approximated there."""

    def __init__(
        self, robot: Robot, settings: PolynomialApproximation, period_s: float, rule: Rule, exact: bool, start_s: float
    ) -> None:
        self._dynamics, n = MomentumColumns(robot), robot.n_dof
        self._weights = settings.node_weights
        nodes = range(settings.product_order + 1)

        def bank(kernels: Iterable[SampledKernel]) -> list[OnlineFilter]:
            return [OnlineFilter(kernel, n, start_s) for kernel in kernels]

        def taps(derivative: int) -> list[SampledKernel]:
            return [sample_kernel(settings.node_kernel(m, derivative), period_s, rule, exact) for m in nodes]

        self._position, self._load, self._velocity = bank(taps(0)), bank(taps(0)), bank(taps(1))
        self._weighted_velocity = bank(
            sample_kernel(settings.node_product_kernel(m, derivative=1, outer=1), period_s, rule, exact) for m in nodes
        )
        g = sample_kernel(settings.kernel(), period_s, rule, exact)
        self._torque = OnlineFilter(g, n, start_s)
        self.n_dropped, self.delay_s = g.n_dropped, g.delay_s
        self.torque_taps = g.taps

    def push(self, q: Array, tau: Array, load: Array | None, keep: slice) -> tuple[int, Chunk]:
        right = self._torque.push(tau)
        time = right.time[keep]
        W = np.zeros((len(time), self._dynamics.width))
        filters = zip(self._weights, self._position, self._velocity, self._weighted_velocity, self._load, strict=True)
        for b_m, position, velocity, weighted_velocity, carried in filters:
            q_m, v_m, u_m = (bank.push(q).values[keep] for bank in (position, velocity, weighted_velocity))
            v_m = _without_round_off(v_m, q_m, velocity.kernel)
            load_m = None if load is None else carried.push(load).values[keep]
            if not len(time):
                continue  # of most samples of a stream no row is kept
            W += self._dynamics.momentum(q_m, u_m)
            W -= b_m * self._dynamics.drift(q_m, v_m, load_m)
        blocks = self._dynamics.blocks(W, right.values[keep])
        return len(right.time), Chunk(blocks, time)


def _without_round_off(v: Array, q: Array, slope: SampledKernel) -> Array:
    """Velocity that is zero where a joint stands still: round-off has a sign, and friction must not be read from it."""
    return np.where(np.abs(v) <= _ROUND_OFF * float(np.abs(slope.taps).sum()) * np.abs(q), 0.0, v)


# Logs ---------------------------------------------------------------------------------------------


def _pieces(source: Log, robot: Robot) -> Iterator[Signals]:
    """Consecutive samples of what the rows are made from."""
    logs: Iterable[Recording | Samples] = (source,) if isinstance(source, Recording) else source
    for log in logs:
        if isinstance(log, Recording) and log.joint_names != robot.joint_names:
            log = log.select(robot.joint_names)
        if log.torque is None:
            raise InputError("log holds positions but no torque, so there is nothing to identify from")
        if log.position.shape[1] != robot.n_dof:
            raise InputError(f"log has {log.position.shape[1]} joints, robot has {robot.n_dof} joints")
        values = {"position": log.position, "torque": log.torque}
        if isinstance(log, Samples) and log.load is not None:
            values["load"] = log.load
        yield Signals(log.time, values, start_s=0.0)


def _check_rows(robot: Robot, settings: PolynomialApproximation, composition: str, every: int) -> None:
    if robot.floating:
        raise InputError(f"robot '{robot.name}' has a floating base, whose velocity is no derivative of its position")
    if composition not in COMPOSITIONS:
        raise UnknownNameError("composition", composition, COMPOSITIONS)
    if every != int(every) or every < 1:
        raise InputError(f"every is {every}, expected a whole number of rows, 1 or more")
    # Kernels refuse exponents that are too small for the derivative they need: one here, two in the product rule.
    settings.kernel(1) if composition == "pointwise" else settings.kernel(2)
    still = np.zeros((1, len(robot.effect_joints)))
    for effect in robot.effects:
        is_rate = effect.momentum_signals(Motion(still, still, still, still)) is not None
        if effect.depends_on_acceleration and not is_rate:
            raise InputError(f"effect '{effect.name}' depends on acceleration, of which polynomial approximation makes none")


class MomentumColumns:
    """``A`` and ``B`` of all channels side by side, each over its own columns, and their effects."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.channels = robot, torque_channels(robot)
        n_inertial = robot.parameters.n_inertial
        self._n_dense = robot.n_dof * n_inertial
        self._ends = np.cumsum([channel.width for channel in self.channels])
        self.width = int(self._ends[-1])
        torque = np.repeat(np.arange(robot.n_dof), [channel.width for channel in self.channels])
        column = np.concatenate([channel.columns for channel in self.channels])
        inertial = np.flatnonzero(column < n_inertial)
        self._inertial: IntArray = freeze(inertial, np.int64)
        self._inertial_from: IntArray = freeze(torque[inertial] * n_inertial + column[inertial], np.int64)
        self._effect: IntArray = freeze(np.flatnonzero(column >= n_inertial), np.int64)
        self._signal: IntArray = freeze(column[self._effect] - n_inertial, np.int64)
        self._coefficient = freeze(robot.effect_incidence[torque[self._effect], self._signal])
        self._torque: IntArray = freeze(torque[self._effect], np.int64)
        still = np.zeros((1, len(robot.effect_joints)))
        self._is_rate = effect_momentum(robot, still[:, : robot.n_dof], still, Motion(still, still, still, None))[1]
        self._rubs = bool(robot.loops.rubbing and robot.effects)

    def momentum(self, q: Array, v: Array) -> Array:
        """``A(q, v)``, ``(samples, columns)``; linear in ``v``."""
        if self._rubs:
            return self.both(q, v, None)[0]
        return self._columns(momentum_regressor(self.robot, q, v)[0], self._momentum_signals(v))

    def drift(self, q: Array, v: Array, load: Array | None) -> Array:
        """``B(q, v)``, ``(samples, columns)``."""
        if self._rubs:
            return self.both(q, v, load)[1]
        return self._columns(momentum_regressor(self.robot, q, v)[1], self._drift_signals(q, v, load))

    def both(self, q: Array, v: Array, load: Array | None) -> tuple[Array, Array]:
        A, B = momentum_regressor(self.robot, q, v)
        if self._rubs:
            # With effects of passive joints: ``G^T s`` of their momentum in ``A``, ``dG/dt^T s`` of it and ``-G^T s``
            # of the rest in ``B``.
            robot = self.robot
            tree = tree_motion(robot, q, v, np.zeros_like(v))
            motion = tree_effect_motion(robot, tree)
            stored = effect_momentum(robot, q, v, motion)[0]
            rest = np.where(self._is_rate, 0.0, -effect_signals(robot, q, v, np.zeros_like(v), tree=tree))
            turning = replace(tree, G=gain_rate(robot, tree.position, v))
            first = self._columns(A, stored)
            first[:, self._effect] += passive_columns(robot, tree, stored)[:, self._torque, self._signal]
            second = self._columns(B, rest)
            carried = passive_columns(robot, turning, stored) + passive_columns(robot, tree, rest)
            second[:, self._effect] += carried[:, self._torque, self._signal]
            return first, second
        return self._columns(A, self._momentum_signals(v)), self._columns(B, self._drift_signals(q, v, load))

    def blocks(self, W: Array, tau: Array) -> list[Array]:
        """``[W tau]`` of every channel."""
        parts = np.split(W, self._ends[:-1], axis=1)
        return [np.asfortranarray(np.column_stack([part, tau[:, d]])) for d, part in enumerate(parts)]

    def _columns(self, inertial: Array, signals: Array | None) -> Array:
        out = np.empty((len(inertial), self.width))
        out[:, self._inertial] = inertial.reshape(len(inertial), self._n_dense)[:, self._inertial_from]
        if signals is not None:
            out[:, self._effect] = signals[:, self._signal] * self._coefficient
        return out

    def _momentum_signals(self, v: Array) -> Array | None:
        """``Ia a = d/dt (Ia v)``: velocity where an effect is a rate, nothing elsewhere."""
        if not self.robot.effects:
            return None
        return effect_momentum(self.robot, np.zeros_like(v), v)[0]

    def _drift_signals(self, q: Array, v: Array, load: Array | None) -> Array | None:
        if not self.robot.effects:
            return None
        return np.where(self._is_rate, 0.0, -effect_signals(self.robot, q, v, np.zeros_like(v), load))
