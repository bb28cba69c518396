"""Output error: torque in, motion out. For logs whose torque is small beside weight and inertia.

    minimise  sum (q_sim(t; phi, x_0) - q)^2 / s_j^2      over phi and the first state x_0 of every window

Least squares on torque rows takes the motion for exact; where noise of the motion makes a good part of what a row holds, its answers
shrink. A simulated motion has no noise. It drifts, so it is simulated in short windows, each with a first state of its own that is
eliminated (multiple shooting). Bodies are stepped in log-Cholesky coordinates, in which every point is physically consistent; the search
starts from the consistent fit to the rows. Deviations follow from the sandwich of scores that depend on their neighbours in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.linalg
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
from dynid.estimation.methods.log_cholesky import log_cholesky, log_cholesky_jacobian, phi_from_log_cholesky
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.shooting import add_scores, bounded_solution
from dynid.model.inertia import is_consistent
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression
from dynid.regression.independence import triangle_of
from dynid.signals.samples import Samples

STEP_S = 4e-3
"""Integration step of logs that are sampled faster."""
WIDTH = 0.02
"""Speed over which dry friction turns where it is a pure sign, rad/s or m/s."""
SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
DAMPINGS = (0.0, 0.1, 1.0)
"""How strongly a step is held back (Levenberg-Marquardt), in sizes of the columns, where no part of the plain one lowers the sum."""
GAIN = 0.02
"""Part by which a step must lower the error of unseen windows: what it lowers beyond is noise of the torque, followed."""
SETTLED = 1e-4
RUNAWAY = 3.0
"""Error of a position, rad or m, beyond which windows are too long for the model that the search starts from."""
FIRST_POSITION, FIRST_VELOCITY = 0.02, 0.5
"""How far a first state may be from the one that the log has, rad and rad/s."""
SPREAD = 1.0
"""Deviation of the logarithms about the fit to the rows before the motion speaks, and of effects in their own size."""
DEPTH = 1e-4
"""Part of a link's trace by which its second moments are lifted before the search starts, away from the boundary of consistency."""
NEIGHBOURS_S = 0.25


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
        first, start = search.z, search.rms.copy()
        settled = search.descend(self.iterations, unseen)
        phi = search.phi
        if search.z is first and np.array_equal(search.began, rows.standard.values):
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
            found = [_Search.of(robot, windows, np.array(start.values)) for start in starts]
            best = min(found, key=lambda one: float(np.sum(np.nan_to_num(one.rms, nan=np.inf) ** 2)))
            if float(np.nan_to_num(best.rms, nan=np.inf).max()) < RUNAWAY:
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


class _Search:
    """Gauss-Newton on bodies, effects and first states."""

    began: Array
    """Parameters before bodies were lifted off the boundary."""

    def __init__(self, robot: Robot, windows: list[Windows], coordinates: Array, states: list[tuple[Array, Array]]) -> None:
        self.robot, self.windows, self.states = robot, windows, states
        self.n, self.z = robot.n_joints, coordinates
        self.centre = coordinates.copy()
        sizes = np.maximum(np.abs(coordinates[10 * self.n :]), effect_sizes(robot, windows))
        self.weight = 1.0 / (SPREAD * np.concatenate([np.ones(10 * self.n), sizes]))
        signed = {"fo"}
        self.low = np.full(len(coordinates), -np.inf)
        for k, column in enumerate(robot.parameters.columns):
            if column.kind != "inertial" and column.symbol not in signed:
                self.low[k] = min(0.0, coordinates[k])
        self.scale = np.ones(self.n)
        self.motions, self.cost = self._tried(self.z, self.states)
        if np.isfinite(self.cost):
            self.weigh()

    @classmethod
    def of(cls, robot: Robot, windows: list[Windows], phi: Array) -> _Search:
        n = robot.n_joints
        bodies = phi[: 10 * n].reshape(n, 10).copy()
        bodies[:, 0] = np.maximum(bodies[:, 0], 1e-6)
        for j in (4, 6, 9):  # a body on the boundary has no logarithms
            bodies[:, j] += DEPTH * np.maximum(bodies[:, [4, 6, 9]].sum(axis=1), 1e-9)
        found = cls(
            robot, windows, np.concatenate([log_cholesky(bodies).ravel(), phi[10 * n :]]), [w.first for w in windows]
        )
        found.began = phi
        return found

    @property
    def phi(self) -> Array:
        return self._phi(self.z)

    def _phi(self, z: Array) -> Array:
        return np.concatenate([phi_from_log_cholesky(z[: 10 * self.n].reshape(self.n, 10)).ravel(), z[10 * self.n :]])

    @property
    def rms(self) -> Array:
        """Position error of every joint over the windows."""
        errors = [(m[0] - w.position).reshape(-1, self.n) for m, w in zip(self.motions, self.windows, strict=True)]
        return np.asarray(np.sqrt(np.mean(np.concatenate(errors) ** 2, axis=0)))

    def weigh(self) -> None:
        """Weights of the joints from their errors as they are."""
        self.scale = 1.0 / np.maximum(self.rms, 1e-3 * self.rms.max() + 1e-9)
        self.cost = self._cost(self.motions, self.z, self.states)

    def missed(self, windows: Sequence[Windows]) -> float:
        """Weighted error of windows that the search does not see, simulated from their measured first states."""
        robot, found = self._with(self.z), []
        for window in windows:
            q, _ = simulate_windows(robot, window, window.first)
            found.append(((q - window.position) * self.scale).ravel())
        return float(np.nan_to_num(np.sqrt(np.mean(np.concatenate(found) ** 2)), nan=np.inf))

    def _with(self, z: Array) -> Robot:
        return self.robot.with_parameters(self.robot.parameters.with_values(self._phi(z)))

    def _tried(self, z: Array, states: list[tuple[Array, Array]]) -> tuple[list[tuple[Array, Array]], float]:
        robot = self._with(z)
        motions = [simulate_windows(robot, w, s) for w, s in zip(self.windows, states, strict=True)]
        return motions, self._cost(motions, z, states)

    def _cost(self, motions: list[tuple[Array, Array]], z: Array, states: list[tuple[Array, Array]]) -> float:
        total = float(np.sum((self.weight * (z - self.centre)) ** 2))
        for (q, _), window, (q0, v0) in zip(motions, self.windows, states, strict=True):
            total += float(np.sum(((q - window.position) * self.scale) ** 2))
            total += float(np.sum(((q0 - window.first[0]) / FIRST_POSITION) ** 2))
            total += float(np.sum(((v0 - window.first[1]) / FIRST_VELOCITY) ** 2))
        return total if np.isfinite(total) else np.inf

    def _rows(self, transform: Array) -> list[tuple[Array, Array, Array, int]]:
        """Of every window the weighted rows by unknowns, by its first state (its prior below), and the residual."""
        found, robot, n = [], self._with(self.z), self.n
        p = transform.shape[0]
        spread = np.repeat([FIRST_POSITION, FIRST_VELOCITY], n)
        for window, motion, state in zip(self.windows, self.motions, self.states, strict=True):
            S = window_sensitivities(robot, window, motion) * self.scale[:, None]
            errors = (motion[0] - window.position) * self.scale
            for b in range(len(window)):
                rows, r = S[b].reshape(-1, p + 2 * n), errors[b]
                moved = np.concatenate([state[0][b] - window.first[0][b], state[1][b] - window.first[1][b]]) / spread
                J = np.vstack([rows[:, :p] @ transform, np.zeros((2 * n, transform.shape[1]))])
                X = np.vstack([rows[:, p:], np.diag(1.0 / spread)])
                lags = max(1, round(NEIGHBOURS_S / window.step_s))
                found.append((J, X, np.concatenate([r.ravel(), moved]), lags))
        return found

    def descend(self, iterations: int, unseen: Sequence[Windows]) -> bool:
        """Step until the sum of squares rests or unseen windows are missed by more; whether it did, at the best of them."""
        n, p = self.n, len(self.z)
        best, kept = self.missed(unseen) if unseen else np.inf, self.z
        for _ in range(iterations):
            chain = block_diagonal(log_cholesky_jacobian(self.z[: 10 * n].reshape(n, 10)), p)
            R, backs = np.zeros((0, p + 1)), []
            for J, X, r, _ in self._rows(chain):
                T = triangle_of(np.column_stack([X, J, r]))
                m = 2 * n
                backs.append((T[:m, :m], T[:m, m:-1], T[:m, -1]))
                R = triangle_of(np.vstack([R, T[m:, m:]]))
            A = np.vstack([R[:p, :p], np.diag(self.weight)])
            b = np.concatenate([R[:p, p], self.weight * (self.z - self.centre)])
            limit = np.concatenate([np.ones(10 * n), np.full(p - 10 * n, np.inf)])  # no logarithm by more than one in a step
            bounds, before, sizes = (np.maximum(self.low - self.z, -limit), limit), self.cost, np.linalg.norm(A, axis=0)
            for damping in DAMPINGS:
                held = np.vstack([A, damping * np.diag(sizes)]), np.concatenate([b, np.zeros(p)])
                move = bounded_solution(*held, *bounds)
                back = [-scipy.linalg.solve_triangular(T, J @ move + r) for T, J, r in backs]
                if self._moved(move, back):
                    break
            else:
                return float(b @ b) - float(np.sum((A @ move + b) ** 2)) < 1e-2 * before
            if unseen:
                now = self.missed(unseen)
                if now > (1.0 - GAIN) * best:
                    self.z = kept
                    self.motions, self.cost = self._tried(self.z, self.states)
                    return True
                best, kept = now, self.z
            if before - self.cost < SETTLED * before:
                return True
        return False

    def _moved(self, move: Array, back: list[Array]) -> bool:
        """Take the largest part of a step that lowers the cost; whether there is one."""
        n = self.n
        for share in SHARES:
            states, at = [], 0
            for q, v in self.states:
                d = share * np.array(back[at : at + len(q)])
                states.append((q + d[:, :n], v + d[:, n:]))
                at += len(q)
            z = self.z + share * move
            motions, cost = self._tried(z, states)
            if cost < self.cost:
                self.z, self.states, self.motions, self.cost = z, states, motions, cost
                return True
        return False

    def covariance(self, lift: Array) -> Array:
        """Of the base values, first states eliminated: the sandwich, never below that of white noise."""
        p, n = lift.shape[1], self.n
        info, white, meat = np.zeros((3, p, p))
        for J, X, r, lags in self._rows(lift):
            J = J - X @ np.linalg.lstsq(X, J, rcond=None)[0]
            info += J.T @ J
            rows = (len(r) - 2 * n) // n
            add_scores(J[: rows * n].reshape(rows, n, p), r[: rows * n].reshape(rows, n), lags, white, meat)
        size = np.sqrt(np.maximum(np.diag(info), 1e-300))
        bread = np.linalg.pinv(info / np.outer(size, size), rcond=1e-12, hermitian=True) / np.outer(size, size)
        plain, robust = (bread @ middle @ bread for middle in (white, meat))
        ratio = np.sqrt(np.maximum(np.diag(robust), np.diag(plain)) / np.maximum(np.diag(plain), 1e-300))
        return np.asarray(plain * np.outer(ratio, ratio))
