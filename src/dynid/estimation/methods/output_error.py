"""Output error: torque in, motion out. For logs whose torque is small beside weight and inertia.

    minimise  sum (q_sim(t; phi, x_0) - q)^2 / s_j^2      over phi and the first state x_0 of every window

Least squares on torque rows takes the motion for exact; where noise of the motion makes a good part of what a row holds, its answers
shrink. A simulated motion has no noise. It drifts, so it is simulated in short windows, each with a first state of its own that is
eliminated (multiple shooting). Bodies are stepped in log-Cholesky coordinates, in which every point is physically consistent; the search
starts from the consistent fit to the rows. Deviations follow from the sandwich of scores that depend on their neighbours in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import numpy as np
from scipy.interpolate import make_interp_spline

from dynid.arrays import Array
from dynid.dynamics.friction import refuse_acceleration_effects, smooth_friction
from dynid.dynamics.inverse_dynamics import needs_load
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.shooting import Windows, simulate_windows, window_sensitivities
from dynid.errors import InputError
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem
from dynid.estimation.methods.descent import block_diagonal
from dynid.estimation.methods.instrumental import row_logs
from dynid.estimation.methods.manifold import log_cholesky, log_cholesky_jacobian, phi_from_log_cholesky
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.shooting import DAMPINGS, SETTLED, STUCK, Shooting, sandwich, scaled_inverse
from dynid.model.inertia import is_consistent
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression
from dynid.signals.samples import Samples

STEP_S = 4e-3
"""Integration step of logs that are sampled faster."""
WIDTH = 0.02
"""Speed over which dry friction turns where it is a pure sign, rad/s or m/s."""
GAIN = 0.02
"""Part by which a step must lower the error of unseen windows: what it lowers beyond is noise of the torque, followed."""
RUNAWAY = 3.0
"""Error of a position, rad or m, beyond which windows are too long for the model that the search starts from."""
SPREAD = 1.0
"""Deviation of the logarithms about the fit to the rows before the motion speaks, and of effects in their own size."""
DEPTH = 1e-4
"""Part of a link's trace by which its second moments are lifted before the search starts, away from the boundary of consistency."""

Motions: TypeAlias = Sequence[tuple[Array, Array]]
"""Positions and velocities of windows of one length, for every log."""


@dataclass(frozen=True)
class OutputError:
    """Output error under measured torque, by multiple shooting.

    Args:
        window_s: length of the windows that are simulated, s; halved where the first model does not follow them.
        most_windows: windows taken of all logs together, spread over them.
        iterations: limit of the steps.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.methods.output_error import OutputError
        >>> robot = dynid.demo_robot().only(["shoulder_pitch", "elbow"])
        >>> samples = dynid.demo_samples(robot, seconds=2.0)
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> dynid.estimate(data, base, OutputError(iterations=2)).relative_error < 0.05
        True
    """

    name: ClassVar[str] = "output-error"
    laws: ClassVar[frozenset[str]] = frozenset()
    window_s: float = 1.6
    most_windows: int = 60
    iterations: int = 12
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        if not self.window_s > 0.0 or self.iterations < 1 or self.most_windows < 1:
            raise InputError(
                f"output error has windows of {self.window_s:g} s, {self.most_windows} of them and {self.iterations} iterations, "
                "expected positive numbers"
            )

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        logs = row_logs(regression, "output error is made by simulating the robot's motion")
        robot = simulated_robot(logs[0].robot)
        rows = FeasibleSDP(weighted=True, prior="auto").estimate(regression, base, prior)
        starts = [rows.standard] + [prior] * bool(np.all(is_consistent(prior.inertials)))
        search, unseen, window_s = self._search(robot, [log.samples for log in logs], starts)
        first, start = search.x, search.rms
        settled = search.descend(self.iterations, unseen)
        phi = search.phi
        if search.x is first and np.array_equal(search.began, rows.standard.values):
            kept = f"held-out windows of {window_s:g} s are simulated no better by output error: the fit to the rows is the answer"
            return replace(rows, method=self.name, notes=(*rows.notes, kept))
        covariance = search.covariance(base.lift)
        now, then = (1e3 * np.sqrt(np.mean(x**2)) for x in (search.rms, start))
        notes = [f"positions over windows of {window_s:g} s: {now:.3g} mrad RMS, before the first step {then:.3g} mrad"]
        return problem.finish(
            self.name,
            base.K @ phi,
            covariance,
            outcome=None if settled else Outcome.NOT_CONVERGED,
            standard=prior.with_values(phi),
            notes=notes,
            details={"window_s": window_s, "position_rms": search.rms.tolist(), "position_rms_rows": start.tolist()},
        )

    def _search(
        self, robot: Robot, samples: Sequence[Samples], starts: Sequence[Parameters]
    ) -> tuple[_Search, list[Windows], float]:
        """The search from the model that follows its windows best, and every third window held out; shorter ones where none does."""
        window_s = self.window_s
        for _ in range(4):
            windows = windows_of(samples, window_s, self.most_windows)
            unseen: list[Windows] = []
            if min(len(w) for w in windows) >= 3:
                unseen = [w.part(slice(2, None, 3)) for w in windows]
                windows = [w.part(np.arange(len(w)) % 3 != 2) for w in windows]
            found = [_Search(robot, windows, np.array(start.values)) for start in starts]
            best = min(found, key=lambda one: float(np.sum(one.rms**2)))
            if float(best.rms.max()) < RUNAWAY:
                return best, unseen, window_s
            window_s *= 0.5
        raise InputError(
            f"the motion simulated with the fit to the rows leaves the log within {2.0 * window_s:.2g} s: check torque signs and units, "
            "or use rows (--method sdp)"
        )


def simulated_robot(robot: Robot) -> Robot:
    """The robot with friction that has a slope everywhere; what cannot be simulated under torque is refused."""
    if robot.floating or robot.loops:
        raise InputError("output error simulates open chains on a fixed base; use another method for this robot")
    if needs_load(robot):
        raise InputError("output error knows no friction that depends on load: choose another --friction, or another method")
    refuse_acceleration_effects(robot)
    return smooth_friction(robot, WIDTH)


def windows_of(samples: Sequence[Samples], window_s: float, most: int) -> list[Windows]:
    """Windows of every log, as many of all together as asked for, spread evenly."""
    total = sum(one.duration_s for one in samples)
    found = []
    for one in map(_fine, samples):
        period = one.duration_s / (len(one) - 1)
        stride = max(1, round(STEP_S / period))
        steps = max(2, round(window_s / (stride * period)))
        count = (len(one) - 1) // (steps * stride)
        if count < 1:
            continue
        wanted = max(1, min(count, round(most * one.duration_s / total)))
        starts = np.unique(np.linspace(0, count - 1, wanted).astype(int)) * steps * stride
        nodes = starts[:, None] + stride * np.arange(steps + 1)
        assert one.torque is not None
        # mean torque of each step by the trapezoidal rule over its rows
        area = np.concatenate(
            [np.zeros((1, one.torque.shape[1])), np.cumsum(0.5 * (one.torque[1:] + one.torque[:-1]), axis=0)]
        )
        torque = (area[nodes[:, 1:]] - area[nodes[:, :-1]]) / stride
        found.append(Windows(torque, one.position[nodes], one.velocity[nodes], stride * period))
    if not found:
        raise InputError(f"no log lasts {window_s:g} s, which output error simulates in one go")
    return found


def _fine(samples: Samples) -> Samples:
    """The samples, or more of them by cubic splines where a step between two would be too long."""
    if samples.torque is None:
        raise InputError("output error needs measured torque")
    factor = int(np.ceil(samples.duration_s / (len(samples) - 1) / (1.5 * STEP_S)))
    if factor < 2:
        return samples
    time = np.linspace(samples.time[0], samples.time[-1], factor * (len(samples) - 1) + 1)
    parts = (samples.position, samples.velocity, samples.acceleration, samples.torque)
    q, v, a, torque = (np.asarray(make_interp_spline(samples.time, part, k=3)(time)) for part in parts)
    return Samples(time, q, v, a, torque)


def effect_sizes(robot: Robot, windows: Sequence[Windows]) -> Array:
    """Value at which each effect alone would make as much torque as was measured: how large it may be."""
    n = robot.n_joints
    q, v = (
        np.concatenate([part[:, :-1].reshape(-1, n) for part in parts])
        for parts in zip(*((w.position, w.velocity) for w in windows), strict=True)
    )
    a = np.concatenate([(np.diff(w.velocity, axis=1) / w.step_s).reshape(-1, n) for w in windows])
    torque = np.concatenate([w.torque.reshape(-1, n) for w in windows])
    made = np.sqrt(np.mean(torque_regressor(robot, q, v, a)[:, :, 10 * n :] ** 2, axis=0))
    size = np.sqrt(np.mean(torque**2, axis=0))[:, None] / np.maximum(made, 1e-9)
    return np.asarray(np.min(np.where(made > 1e-9, size, np.inf), axis=0, initial=1e3))


class _Search(Shooting):
    """Bodies in log-Cholesky coordinates, then effects.

    Args:
        robot: with friction that can be simulated.
        windows: of every log.
        phi: parameters to start from.
    """

    def __init__(self, robot: Robot, windows: Sequence[Windows], phi: Array) -> None:
        self.robot, self.windows, self.began = robot, windows, phi
        self.n = n = robot.n_joints
        bodies = phi[: 10 * n].reshape(n, 10).copy()
        bodies[:, 0] = np.maximum(bodies[:, 0], 1e-6)
        for j in (4, 6, 9):  # a body on the boundary has no logarithms
            bodies[:, j] += DEPTH * np.maximum(bodies[:, [4, 6, 9]].sum(axis=1), 1e-9)
        x = np.concatenate([log_cholesky(bodies).ravel(), phi[10 * n :]])
        signed = [column.kind == "inertial" or column.symbol == "fo" for column in robot.parameters.columns]
        states = np.concatenate([np.concatenate(w.first, axis=1) for w in windows])
        super().__init__(x, states, np.where(signed, -np.inf, np.minimum(x, 0.0)), np.full(len(x), np.inf))
        sizes = np.maximum(np.abs(x[10 * n :]), effect_sizes(robot, windows))
        self.draw_to(x, 1.0 / (SPREAD * np.concatenate([np.ones(10 * n), sizes])))
        if np.isfinite(self.cost):
            self.weigh()

    @property
    def phi(self) -> Array:
        """Parameters of the robot."""
        return self._phi(self.x)

    def _phi(self, x: Array) -> Array:
        return np.concatenate([phi_from_log_cholesky(x[: 10 * self.n].reshape(self.n, 10)).ravel(), x[10 * self.n :]])

    def _with(self, x: Array) -> Robot:
        return self.robot.with_parameters(self.robot.parameters.with_values(self._phi(x)))

    def simulate(self, x: Array, states: Array) -> tuple[Sequence[Array], Motions]:
        robot, n, motions, errors = self._with(x), self.n, [], []
        parts = np.split(states, np.cumsum([len(w) for w in self.windows])[:-1])
        for window, first in zip(self.windows, parts, strict=True):
            motions.append(simulate_windows(robot, window, (first[:, :n], first[:, n:])))
            errors += list(motions[-1][0] - window.position)
        return errors, motions

    def sensitivities(self, motions: Motions) -> Iterator[Array]:
        robot = self._with(self.x)
        for window, motion in zip(self.windows, motions, strict=True):
            yield from window_sensitivities(robot, window, motion)

    def missed(self, windows: Sequence[Windows]) -> float:
        """Weighted error of windows that the search does not see, simulated from their measured first states."""
        robot = self._with(self.x)
        found = [((simulate_windows(robot, w, w.first)[0] - w.position) * self.scale).ravel() for w in windows]
        return float(np.nan_to_num(np.sqrt(np.mean(np.concatenate(found) ** 2)), nan=np.inf))

    def descend(self, iterations: int, unseen: Sequence[Windows]) -> bool:
        """Step until the sum of squares rests or unseen windows are missed by more; whether it did, at the best of them."""
        n, p = self.n, len(self.x)
        best, kept = self.missed(unseen) if unseen else np.inf, (self.x, self.states)
        most = np.concatenate([np.ones(10 * n), np.full(p - 10 * n, np.inf)])  # no logarithm by more than one in a step
        for _ in range(iterations):
            before = self.cost
            chain = block_diagonal(log_cholesky_jacobian(self.x[: 10 * n].reshape(n, 10)), p)
            moved, promised = self.step(most, DAMPINGS, chain)
            if not moved:
                return promised < STUCK * before
            if unseen:
                now = self.missed(unseen)
                if now > (1.0 - GAIN) * best:
                    self.move_to(*kept)
                    return True
                best, kept = now, (self.x, self.states)
            if before - self.cost < SETTLED * before:
                return True
        return False

    def covariance(self, lift: Array) -> Array:
        """Of the base values, first states eliminated."""
        found, white, meat = self.information([w.step_s for w in self.windows for _ in range(len(w))], lift)
        return sandwich(scaled_inverse(found), white, meat)
