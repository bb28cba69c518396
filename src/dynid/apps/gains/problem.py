"""Drive gains as a least-squares problem in ``(links, loads, effects, g)`` with ``g = 1/K``, the mass of the loads known.

    i_j = g_j (Y beta + Y_L phi_L)_j

The sum of squares of the current's errors is minimised by Gauss-Newton; each step is a linear regression. With ``K`` in place of ``g``
the same equations are linear at once, and the current is part of the regressor (``ols``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.constraints.bodies import MassBounds, TotalMass
from dynid.estimation.linear import LinearProblem, find_identifiable
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.uncertainty import uncertainty
from dynid.model.frames import Frame
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.parameters import Column, Parameters, inertial_columns
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import Regression, matrix_regression
from dynid.regression.row_source import Chunk

IDENTIFIABLE = 0.05
"""Largest relative standard deviation of a gain that counts as identified."""
STEPS = 30
SETTLED = 1e-7


@dataclass(frozen=True)
class Gain:
    """The gain of one joint, N m per unit of its signal; its value is that of the data alone or, with a prior, of both."""

    joint: str
    value: float
    sigma: float
    identifiable: bool

    def as_dict(self) -> dict[str, Any]:
        known = bool(np.isfinite(self.sigma))
        return {
            "joint": self.joint,
            "value": self.value if known else None,
            "sigma": self.sigma if known else None,
            "identifiable": self.identifiable,
        }


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Gains of all joints and the load that they were found with.

    Args:
        gains: one per joint.
        covariance: of the gains.
        loads: ten parameters of every load in its frame.
        unit: of the gains.
        relative_error: ``||i - i_hat|| / ||i||`` over both logs.
    """

    gains: tuple[Gain, ...]
    covariance: Array
    loads: tuple[Array, ...]
    frame: str
    unit: str
    method: str
    relative_error: float
    notes: tuple[str, ...] = ()
    least_squares: tuple[Gain, ...] = ()
    """The same by ordinary least squares, beside another method."""

    @property
    def load(self) -> Array:
        """Ten parameters of the first load."""
        return self.loads[0]

    @property
    def values(self) -> Array:
        """The gains in order, NaN where they are not identifiable."""
        return freeze([gain.value if gain.identifiable else np.nan for gain in self.gains])

    def as_dict(self) -> dict[str, Any]:
        """What ``dynid gains --json`` prints."""
        return {
            "gains": [gain.as_dict() for gain in self.gains],
            "unit": self.unit,
            "method": self.method,
            "load": self.load.tolist(),
            "loads": [load.tolist() for load in self.loads],
            "frame": self.frame,
            "relative_error": self.relative_error,
            "ols": [gain.as_dict() for gain in self.least_squares] or None,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class GainProblem:
    """Parameters ``(links, load, effects, g)`` and the rows of all logs."""

    robot: Robot
    place: Frame
    logs: Sequence[Chunk]
    """Rows ``[Y, Y_L, i]`` of every joint, log by log."""
    mass: float
    """Of all loads together."""
    parameters: Parameters
    base: BaseReduction
    n_loads: int = 1

    @classmethod
    def of(cls, robot: Robot, place: Frame, logs: Sequence[Chunk], mass: float, n_loads: int = 1) -> GainProblem:
        n, known = robot.n_joints, robot.parameters
        one = mass / n_loads
        ball = phi_from_mass_com_inertia(one, np.zeros(3), 0.4 * one * 0.1**2 * np.eye(3))
        gains = tuple(Column("g", j + 1, "actuator", "A/(N m)", name) for j, name in enumerate(robot.dof_names))
        names_of = ["load"] if n_loads == 1 else [f"load {k + 1}" for k in range(n_loads)]
        loads = tuple(column for k, name in enumerate(names_of) for column in inertial_columns(n + 1 + k, name))
        columns = (*known.columns[: 10 * n], *loads, *known.columns[10 * n :], *gains)
        values = np.concatenate([known.values[: 10 * n], *[ball] * n_loads, known.values[10 * n :], np.ones(n)])
        K = reduce_to_base(robot).K
        (b, p), m = K.shape, 10 * n_loads
        whole = np.zeros((b + m + n, p + m + n))
        whole[:b, : 10 * n], whole[:b, 10 * n + m : p + m] = K[:, : 10 * n], K[:, 10 * n :]
        whole[b : b + m, 10 * n : 10 * n + m] = np.eye(m)
        whole[b + m - 10, 10 * n : 10 * n + m : 10] = 1.0  # in place of the last mass that of all loads, which is known
        whole[b + m :, p + m :] = np.eye(n)
        names = [column.name for column in columns]
        return cls(robot, place, logs, mass, Parameters(columns, values), BaseReduction.from_matrix(whole, names), n_loads)

    @property
    def _n(self) -> int:
        return self.robot.n_dof

    def _regression(self, rows_of: Callable[[int, Array], tuple[Array, Array]]) -> Regression:
        """Rows over the parameters of all logs: for every joint those of its own, and the columns of the gains with what is told."""
        parts = []
        for log in self.logs:
            made = [rows_of(j, rows) for j, rows in enumerate(log.blocks)]
            matrices = [np.hstack([W, own]) for W, own in made]
            parts.append(matrix_regression(self.parameters, self.robot.dof_names, matrices, timed=True))
        return reduce(operator.add, parts)

    def regression(self, phi: Array, g: Array) -> Regression:
        """``[g0 Y, g0 Y_L, tau0 | i + g0 tau0]``: the current linearised at ``phi`` and ``g``."""

        def rows_of(j: int, rows: Array) -> tuple[Array, Array]:
            tau, own = rows[:, :-1] @ phi, np.zeros((len(rows), self._n + 1))
            own[:, j], own[:, -1] = tau, rows[:, -1] + g[j] * tau
            return g[j] * rows[:, :-1], own

        return self._regression(rows_of)

    def start(self) -> tuple[Array, Array]:
        """What least squares gives: biased, and near enough to start from."""
        phi, K = self._split(self._least_squares()[1])
        typical = float(np.median(K[K > 0.0])) if (K > 0.0).any() else 1.0
        return phi, 1.0 / np.where(0.05 * typical < K, K, typical)

    @property
    def _mass_row(self) -> int:
        """Base value that is the mass of the load, or of all loads together."""
        return self.base.n_base - self._n - 10

    def solved(self, method: str) -> tuple[Array, Array, Array, float]:
        """Parameters, gains ``K``, their covariance and the relative error."""
        if method == "ols":
            problem, beta = self._least_squares()
            sigma = problem.noise_sigma(beta, pooled=True)
            covariance, _ = uncertainty(problem, beta, np.ones(self._n), sigma, "corrected")
            phi, K = self._split(beta)
            left = problem.residual_norms(beta) / np.maximum(np.abs(K), 1e-12)
            return phi, K, covariance[-self._n :, -self._n :], self._relative(left)
        phi, g = self.start()
        for _ in range(STEPS):
            phi, new, *_ = self._step(phi, g, None)
            change = float(np.abs(np.log(np.maximum(new, 1e-12) / g)).max())
            g = np.clip(new, 0.3 * g, 3.0 * g)
            if change < SETTLED:
                break
        if method == "sdp":
            for _ in range(3):
                phi, g, *_ = self._step(phi, g, "sdp")
        phi, g, covariance, error = self._step(phi, g, method)
        K = 1.0 / g
        return phi, K, covariance * np.outer(K**2, K**2), error

    def _least_squares(self) -> tuple[LinearProblem, Array]:
        """``K i = Y phi`` with every row counting alike."""

        def rows_of(j: int, rows: Array) -> tuple[Array, Array]:
            own = np.zeros((len(rows), self._n + 1))
            own[:, j] = -rows[:, -1]
            return rows[:, :-1], own

        problem = self._with_mass(self._regression(rows_of), self.parameters)
        return problem, problem.solve(np.ones(self._n))

    def _split(self, beta: Array) -> tuple[Array, Array]:
        """Parameters and gains of base values."""
        return self.base.lift[: -self._n, : -self._n] @ beta[: -self._n], beta[-self._n :]

    def _with_mass(self, regression: Regression, prior: Parameters) -> LinearProblem:
        """The linear problem with the mass of the load held at its value."""
        problem = LinearProblem.of(regression, self.base, prior)
        held = np.array(self.base.base_values(prior))
        held[self._mass_row] = self.mass
        # with the mass free all of it could be scaled together, and the last gain would count as not seen
        stacked = np.delete(np.vstack(problem.channels)[:, :-1], self._mass_row, axis=1)
        free = np.insert(find_identifiable(stacked).mask, self._mass_row, False)
        return problem.estimating(free, held)

    def _relative(self, left: Array) -> float:
        """Root mean square over joints of ``||i - i_hat|| / ||i||``."""
        current = [np.linalg.norm(np.concatenate([log.blocks[j][:, -1] for log in self.logs])) for j in range(self._n)]
        return float(np.linalg.norm(left / np.maximum(current, 1e-12)) / np.sqrt(self._n))

    def _step(self, phi: Array, g: Array, method: str | None) -> tuple[Array, Array, Array, float]:
        regression = self.regression(phi, g)
        prior = self.parameters.with_values(np.concatenate([phi, g]))
        problem = self._with_mass(regression, prior)
        weights, _ = problem.settled_weights()
        beta = problem.solve(weights)
        covariance = np.zeros((self._n, self._n))
        if method is not None:
            sigma = problem.noise_sigma(beta, pooled=False)
            covariance = uncertainty(problem, beta, weights, sigma, "corrected")[0][-self._n :, -self._n :]
        if method == "sdp":
            n = self.robot.n_joints
            loads = tuple(range(n + 1, n + 1 + self.n_loads))
            total = TotalMass(self.mass, self.mass, loads) if len(loads) > 1 else MassBounds(n + 1, self.mass, self.mass)
            program = FeasibleSDP(weighted=True, effects_positive=False, constraints=(total,))
            result = program.estimate(
                regression, self.base, self.parameters.with_values(np.concatenate([self.parameters.values[: -self._n], g]))
            )
            if not result.outcome.usable:
                raise InputError(f"no consistent links and load explain the logs: {'; '.join(result.notes)}")
            phi, g = result.standard.values[: -self._n], result.standard.values[-self._n :]
        else:
            phi, g = self._split(beta)
        return phi, g, covariance, self._relative(problem.residual_norms(beta))

    def gains(
        self, found: tuple[Array, Array, Array, float], unit: str, method: str, prior: Sequence[float] | None, spread: float
    ) -> DriveGains:
        """Gains with their uncertainty, joined with a prior where there is one."""
        phi, K, C, error = found
        sigma = np.sqrt(np.maximum(np.diag(C), 0.0))
        seen = (sigma > 0.0) & np.isfinite(sigma)
        sigma[~seen] = np.inf
        known = sigma < IDENTIFIABLE * np.abs(K)
        notes = []
        shares = self._load_shares(phi)
        unknown = [
            f"{name} (the load makes {100.0 * share:.2g} % of its torque)"
            for name, share, good in zip(self.robot.dof_names, shares, known, strict=True)
            if not good
        ]
        if unknown:
            notes.append(
                f"not identifiable from these logs, standard deviation above {100.0 * IDENTIFIABLE:g} %: the gain of "
                f"{', '.join(unknown)}; the load must act on a joint to show its gain, and weight does not act on a vertical axis"
            )
        if prior is not None:
            given = np.asarray(prior, dtype=np.float64)
            if given.shape != K.shape or not (np.isfinite(given) & (given > 0.0)).all():
                raise InputError(f"--gains-prior has {given.size} numbers, expected {len(K)} positive ones, one per joint")
            data, sheet = 1.0 / sigma**2, 1.0 / (spread * given) ** 2
            K, sigma = (data * np.nan_to_num(K) + sheet * given) / (data + sheet), 1.0 / np.sqrt(data + sheet)
            notes.append(f"combined with given gains of {100.0 * spread:g} % standard deviation")
        loads = np.split(phi[self._loads], self.n_loads)
        gains = tuple(
            Gain(name, float(k), float(s), bool(good))
            for name, k, s, good in zip(self.robot.dof_names, K, sigma, known, strict=True)
        )
        return DriveGains(gains, freeze(C), tuple(map(freeze, loads)), self.place.name, unit, method, error, tuple(notes))

    @property
    def _loads(self) -> slice:
        """Columns of the loads."""
        n = 10 * self.robot.n_joints
        return slice(n, n + 10 * self.n_loads)

    def _load_shares(self, phi: Array) -> list[float]:
        """Of every joint, the torque of the load over all torque, root mean square over the loaded logs."""
        body = self._loads
        shares = []
        for j in range(self._n):
            rows = [log.blocks[j] for log in self.logs if log.blocks[j][:, body].any()]
            load = sum(float(((block[:, body] @ phi[body]) ** 2).sum()) for block in rows)
            whole = sum(float(((block[:, :-1] @ phi) ** 2).sum()) for block in rows)
            shares.append(float(np.sqrt(load / max(whole, 1e-300))))
        return shares
