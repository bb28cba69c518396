"""Instrumental variables (IDIM-IV, Janot et al. 2014): rows that share the motion but not the noise.

Noise on the measured motion enters ``W`` and biases least squares. Instruments ``Z``, the regressor of a *simulated*
motion, have none of it:

    Z^T W beta = Z^T tau,      cov = (Z^T W)^-1 Z^T Gamma Z (Z^T W)^-T

The simulation closes the loop: the current model, under computed torque with that same model, tracks the logged
reference or the low-passed motion. It is never driven open-loop by the logged torque, which would drift away. Model
and controller are made again from each new estimate until the values settle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar, TypeAlias

import numpy as np
import scipy.linalg

from dynid.arrays import Array
from dynid.dynamics.forward_dynamics import is_simulatable
from dynid.dynamics.simulate import ComputedTorque, Controller, simulate
from dynid.errors import DynidError, InputError
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem, base_to_standard
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.residuals import channel_coefficients, stretches
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.uncertainty import coloured_covariance
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression
from dynid.regression.row_source import RowSource
from dynid.signals.butterworth import filter_window
from dynid.signals.samples import Samples, SampleStream

MOTION_SHARE = 0.9999
"""Share of the power of the positions that lies below the frequency taken for that of the motion."""
CUTOFF_OVER_MOTION = 3.0
WORST_CONDITION = 1e12


@dataclass(frozen=True)
class InstrumentalVariables:
    """Instrumental variables: least squares with instruments from a closed-loop simulation of the current model.

    Args:
        cutoff_hz: low-pass of the logged motion that the simulated robot tracks, Hz; None for three times the frequency below
            which the positions have practically all their power.
        reference: the logged reference instead, one set of motion per set of samples, over the same times.
        controller: None for computed torque with the current model. That cancels friction, which is therefore left out of
            model and controller alike; any other controller moves the model with all its effects.
        weighted: weight joints by their own noise.
        iterations: limit of the iterations.
        settle: relative change of the values at which the iteration stops.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot().only(["shoulder_pitch", "elbow"])
        >>> samples = dynid.demo_samples(robot, seconds=2.0)
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> dynid.estimate(data, base, dynid.InstrumentalVariables(iterations=2)).relative_error < 0.01
        True
    """

    name: ClassVar[str] = "iv"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "units", "covers"})
    cutoff_hz: float | None = None
    reference: tuple[Samples, ...] | None = None
    controller: Controller | None = None
    weighted: bool = True
    iterations: int = 10
    settle: float = 1e-3
    """Change of the prediction, relative to the residual, below which the iteration counts as settled."""
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        if self.cutoff_hz is not None and not self.cutoff_hz > 0.0:
            raise InputError(f"cut-off of the tracked motion is {self.cutoff_hz:g} Hz, expected a positive number")
        if self.iterations < 1:
            raise InputError(f"{self.iterations} iterations asked for, expected at least 1")

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        logs = row_logs(regression)
        if self.reference is not None and len(self.reference) != len(logs):
            raise InputError(f"{len(self.reference)} references were given for {len(logs)} sets of samples")
        tracked = [
            log.tracked(self.cutoff_hz) if self.reference is None else log.aligned(self.reference[i])
            for i, log in enumerate(logs)
        ]
        beta = problem.solve()
        weights = problem.noise_weights(beta) if self.weighted else np.ones(len(problem.channels))
        notes: list[str] = []
        settled, moments, simulated = False, None, None
        for _ in range(self.iterations):
            motion = self._simulate(problem, beta, logs, tracked, notes, simulated)
            if motion is None:
                break
            simulated = motion
            moments = _moments(problem, logs, simulated, weights)
            new = _solve(problem, moments)
            moved = np.linalg.norm(np.vstack(problem.channels)[:, :-1] @ (new - beta))
            rest = np.linalg.norm(problem.residual_norms(new))
            beta = new
            # on exact data the last digits never rest
            settled = bool(moved <= self.settle * rest + 1e-9 * np.linalg.norm(regression.torque_norms))
            if settled:
                break
        assert moments is not None
        assert simulated is not None
        covariance, freedom = _covariance(problem, logs, simulated, weights, moments, beta)
        return problem.finish(
            self.name,
            beta,
            covariance,
            outcome=None if settled or notes else Outcome.NOT_CONVERGED,
            notes=notes,
            details={
                "moments": moments[0],
                "degrees_of_freedom": freedom,
                "weights": weights.tolist(),
                "tracking_error": [
                    float(np.sqrt(np.mean((s.position - t.position) ** 2))) for s, t in zip(simulated, tracked, strict=True)
                ],
            },
        )

    def _simulate(
        self,
        problem: LinearProblem,
        beta: Array,
        logs: list[_Log],
        tracked: list[Samples],
        notes: list[str],
        last: list[Samples] | None,
    ) -> list[Samples] | None:
        """Motion of the current model, of another where the current one cannot move; None to stay with the last."""
        current = base_to_standard(problem.base, beta, problem.prior)
        try:
            return [self._track(log.robot.with_parameters(current), t) for log, t in zip(logs, tracked, strict=True)]
        except DynidError as reason:
            if last is not None:
                notes.append(f"instruments are those of an earlier iterate: {reason}")
                return None
            start, whose = _movable(problem, logs)
            notes.append(f"instruments are those of {whose}: {reason}")
        return [self._track(log.robot.with_parameters(start), t) for log, t in zip(logs, tracked, strict=True)]

    def _track(self, robot: Robot, tracked: Samples) -> Samples:
        """Closed-loop motion of a robot along a motion, on the same clock."""
        if self.controller is None:
            robot = robot.with_effects([effect for effect in robot.effects if not effect.is_friction])
            controller: Controller = ComputedTorque(model_error=0.0, friction_compensation=0.0)
        else:
            controller = self.controller
        rate_hz = (len(tracked) - 1) / tracked.duration_s
        # without torque limits: instruments should follow the motion, not a wrong model's saturation
        joints = tuple(replace(joint, tau_max=np.inf) for joint in robot.joints)
        moved = simulate(
            replace(robot, joints=joints),
            tracked,
            controller=controller,
            rate_hz=rate_hz,
            torque_noise=0.0,
            encoder_counts=None,
            velocity_noise=0.0,
        ).truth
        return _on_clock(moved, tracked.time)


def _movable(problem: LinearProblem, logs: list[_Log]) -> tuple[Parameters, str]:
    """Parameters under which the robot can be simulated: the prior or, of a description without masses, a consistent fit."""
    if all(is_simulatable(log.robot.with_parameters(problem.prior)) for log in logs):
        return problem.prior, "the prior"
    return FeasibleSDP(weighted=True).estimate(problem.regression, problem.base, problem.prior).standard, "a consistent fit"


# Logs and the motion to track ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Log:
    """One set of samples, whole, and how its rows are made."""

    source: RowSource
    robot: Robot
    samples: Samples

    def rows(self, samples: Samples | None = None) -> RowSource:
        """Row source of the log itself or, without weights, of another motion."""
        if samples is None:
            return self.source.with_samples((self.samples,))
        still = samples.with_torque(np.zeros_like(samples.velocity))
        loaded = still if self.samples.load is None else still.with_load(self.samples.load)
        return self.source.unweighted().with_samples((loaded,))

    def tracked(self, cutoff_hz: float | None) -> Samples:
        """The logged positions after a zero-phase low-pass, with the derivatives of a spline through them."""
        time = np.linspace(self.samples.time[0], self.samples.time[-1], len(self.samples))
        q = _columnwise(time, self.samples.time, self.samples.position)
        nyquist_hz = 0.5 * (len(time) - 1) / (time[-1] - time[0])
        cutoff = cutoff_hz if cutoff_hz is not None else CUTOFF_OVER_MOTION * motion_frequency_hz(q, nyquist_hz)
        if cutoff < 0.95 * nyquist_hz:
            q = filter_window(q, 4, cutoff / nyquist_hz, True, True)
        from scipy.interpolate import make_interp_spline

        spline = make_interp_spline(time, q, k=5)
        return Samples(time, q, spline.derivative()(time), spline.derivative(2)(time))

    def aligned(self, reference: Samples) -> Samples:
        """A logged reference on a uniform clock over the times of the log."""
        if reference.position.shape[1] != self.samples.position.shape[1]:
            raise InputError(f"reference has {reference.position.shape[1]} joints, the log {self.samples.position.shape[1]}")
        if reference.time[0] > self.samples.time[0] + 1e-9 or reference.time[-1] < self.samples.time[-1] - 1e-9:
            raise InputError(
                f"reference lasts from {reference.time[0]:g} s to {reference.time[-1]:g} s, the log from "
                f"{self.samples.time[0]:g} s to {self.samples.time[-1]:g} s"
            )
        time = np.linspace(self.samples.time[0], self.samples.time[-1], len(self.samples))
        return _on_clock(reference, time)


def row_logs(regression: Regression, why: str = "instruments are made by simulating the robot's motion") -> list[_Log]:
    """Every log of a regression, whole; refused where its rows are not made from samples of a motion."""
    logs = []
    for source in regression.logs():
        made_from = source.samples
        if source.robot is None or len(made_from) != 1 or not isinstance(made_from[0], (Samples, SampleStream)):
            raise InputError(f"{why}, and {source.kind} rows are not made from samples of it")
        whole = made_from[0] if isinstance(made_from[0], Samples) else reduce(Samples.joined, made_from[0])
        if len(whole) < 12:
            raise InputError(f"a set of samples has {len(whole)} rows, a simulated motion needs at least 12")
        logs.append(_Log(source, source.robot, whole))
    if not logs:
        raise InputError("a simulated motion needs every row again, and this regression holds only its triangles")
    return logs


def motion_frequency_hz(q: Array, nyquist_hz: float) -> float:
    """Frequency below which practically all power of the positions lies, that of the fastest joint."""
    n = len(q)
    line = np.linspace(0.0, 1.0, n)[:, None]
    moving = (q - q[0] - line * (q[-1] - q[0])) * np.hanning(n)[:, None]
    power = np.abs(np.fft.rfft(moving, axis=0)) ** 2
    total = power.sum(axis=0)
    moves = total > 1e-16 * max(float(total.max()), 1e-300)
    share = np.cumsum(power[:, moves], axis=0) / total[moves]
    bins = (share < MOTION_SHARE).sum(axis=0).max(initial=1)
    return float(max(bins, 2) / (len(power) - 1) * nyquist_hz)


def _columnwise(time: Array, known: Array, values: Array) -> Array:
    if len(time) == len(known) and np.allclose(time, known, rtol=0.0, atol=1e-9):
        return np.array(values)
    return np.column_stack([np.interp(time, known, column) for column in values.T])


def _on_clock(motion: Samples, time: Array) -> Samples:
    q, v, a = (_columnwise(time, motion.time, x) for x in (motion.position, motion.velocity, motion.acceleration))
    return Samples(time, q, v, a)


# Moments ------------------------------------------------------------------------------------------


_Moments: TypeAlias = tuple[Array, Array]
"""``Z^T [W tau]`` and ``Z^T Z`` over base parameters, joints weighted."""


def _paired(log: _Log, motion: Samples) -> Iterator[tuple[list[Array], list[Array]]]:
    """Stretches of the rows of a log and of its instruments, side by side."""
    yield from zip(stretches(log.rows()), stretches(log.rows(motion)), strict=True)


def _moments(problem: LinearProblem, logs: list[_Log], simulated: list[Samples], weights: Array) -> _Moments:
    channels = [factor.channel for factor in problem.regression.factors]
    data = [np.zeros((c.width, c.width + 1)) for c in channels]
    own = [np.zeros((c.width, c.width)) for c in channels]
    for log, motion in zip(logs, simulated, strict=True):
        for rows, instruments in _paired(log, motion):
            for j, (W, Z) in enumerate(zip(rows, instruments, strict=True)):
                data[j] += Z[:, :-1].T @ W
                own[j] += Z[:, :-1].T @ Z[:, :-1]
    n = problem.base.n_base
    of_data, of_instruments = np.zeros((n, n + 1)), np.zeros((n, n))
    for j, channel in enumerate(channels):
        expand = channel.expansion @ problem.base.lift
        square = weights[j] ** 2
        of_data += square * expand.T @ np.hstack([data[j][:, :-1] @ expand, data[j][:, -1:]])
        of_instruments += square * expand.T @ own[j] @ expand
    return of_data, of_instruments


def _square(problem: LinearProblem, moments: _Moments) -> tuple[Array, Array, Array]:
    """``Z^T W`` over the seen parameters in unit columns, with the scales of its rows and columns."""
    mask, (of_data, of_instruments) = problem.seen.mask, moments
    rows = 1.0 / np.sqrt(np.diag(of_instruments)[mask])
    columns = 1.0 / np.linalg.norm(np.vstack(problem.channels)[:, :-1][:, mask], axis=0)
    S = rows[:, None] * of_data[:, :-1][np.ix_(mask, mask)] * columns
    condition = float(np.linalg.cond(S)) if np.isfinite(S).all() else np.inf
    if condition > WORST_CONDITION:
        raise InputError(
            f"instruments do not show what the data show (condition number {condition:.1e}): "
            "the tracked motion is too smooth; raise its cut-off"
        )
    return S, rows, columns


def _solve(problem: LinearProblem, moments: _Moments) -> Array:
    mask, of_data = problem.seen.mask, moments[0]
    S, rows, columns = _square(problem, moments)
    beta = problem.held.copy()
    right = of_data[mask, -1] - of_data[np.ix_(mask, ~mask)] @ beta[~mask] if mask.any() else np.zeros(0)
    beta[mask] = columns * np.linalg.solve(S, rows * right)
    return beta


def _covariance(
    problem: LinearProblem, logs: list[_Log], simulated: list[Samples], weights: Array, moments: _Moments, beta: Array
) -> tuple[Array, float]:
    """``S^-1 (sum_j w_j^4 sum_f S_j(f) G_j(f)) S^-T``, ``G_j`` of the instruments, ``S_j`` of the residual."""
    mask = problem.seen.mask
    coefficients = channel_coefficients(problem.regression, problem.base, beta)
    S, rows, columns = _square(problem, moments)
    own = rows[:, None] * moments[1][np.ix_(mask, mask)] * rows
    triangle = np.linalg.cholesky(own).T  # whitens the instruments in unit rows
    whiten = rows[:, None] * scipy.linalg.solve_triangular(triangle, np.eye(len(own)))
    left = columns[:, None] * np.linalg.solve(S, triangle.T)

    def blocks() -> Iterator[list[Array]]:
        for log, motion in zip(logs, simulated, strict=True):
            for data, instruments in _paired(log, motion):
                for W, Z, c in zip(data, instruments, coefficients, strict=True):
                    Z[:, -1] = W[:, -1] - W[:, :-1] @ c
                yield instruments

    return coloured_covariance(problem, blocks(), weights, whiten, left)
