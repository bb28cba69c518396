"""Metrics of base values, and what their inertia matrix says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_shape
from dynid.errors import InputError, UnknownNameError
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics, torque_regressor
from dynid.robot.model import Robot

Metric = Literal["base", "torque"]
METRICS: tuple[Metric, ...] = ("base", "torque")


@dataclass(frozen=True)
class MassMatrixCheck:
    """Inertia matrices ``M(q)`` at random positions."""

    positive_share: float
    smallest_eigenvalue: float
    n_positions: int


def mass_matrix_check(
    robot: Robot, base: BaseReduction, beta: ArrayLike, n_positions: int = 200, seed: int = 0
) -> MassMatrixCheck:
    """Eigenvalues of ``M(q)`` under base values at random positions within the limits."""
    return positive_definite_share(robot, base.lift @ np.asarray(beta, dtype=np.float64), n_positions, seed)


def positive_definite_share(
    robot: Robot, parameters: Parameters | ArrayLike, n_positions: int = 200, seed: int = 0
) -> MassMatrixCheck:
    """Share of random positions within the limits at which ``M(q)`` of a full parameter set is positive definite.

    ``M(q)`` is ``tau(q, 0, e_j) - tau(q, 0, 0)``, column by column.
    """
    values = parameters.values if isinstance(parameters, Parameters) else np.asarray(parameters, dtype=np.float64)
    check_shape("parameters", values, (len(robot.parameters),))
    n = robot.n_dof
    q, _, _ = random_states_within_limits(robot, n_positions, seed)
    a = np.vstack([np.eye(n), np.zeros((1, n))])
    positions = np.repeat(q, n + 1, axis=0)
    accelerations = np.tile(a, (n_positions, 1))
    still, model = np.zeros_like(accelerations), robot.with_parameters(robot.parameters.with_values(values))
    tau = inverse_dynamics(model, positions, still, accelerations, still).reshape(n_positions, n + 1, n)
    M = np.swapaxes(tau[:, :n] - tau[:, n:], 1, 2)
    eigenvalues = np.linalg.eigvalsh(0.5 * (M + np.swapaxes(M, 1, 2)))[:, 0]
    return MassMatrixCheck(float((eigenvalues > 0.0).mean()), float(eigenvalues.min()), n_positions)


def torque_metric(robot: Robot, base: BaseReduction, n_states: int | None = None, seed: int = 0) -> Array:
    """``R`` with ``||R beta||`` the root mean square torque of base values on random states within the robot's limits."""
    count = n_states or 3 * base.n_base // robot.n_dof + 200
    q, v, a = random_states_within_limits(robot, count, seed)
    W = torque_regressor(robot, q, v, a, np.zeros_like(a)).reshape(-1, base.n_parameters) @ base.lift
    return np.asarray(np.linalg.qr(W, mode="r") / np.sqrt(len(W)))


def metric_root(base: BaseReduction, metric: str, robot: Robot | None, gram: ArrayLike | None) -> Array:
    """``R`` with ``||R d||`` the length of a change of base values."""
    if metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS)
    if gram is not None:
        G = np.asarray(gram, dtype=np.float64)
        check_shape("gram", G, (base.n_base, base.n_base))
        eigenvalues, vectors = np.linalg.eigh(0.5 * (G + G.T))
        if eigenvalues[0] < -1e-12 * abs(eigenvalues[-1]):
            raise InputError(f"gram has the eigenvalue {eigenvalues[0]:.3g}, expected none below zero")
        return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T)
    if metric == "base":
        return np.eye(base.n_base)
    if robot is None:
        if base.gram is not None:
            return metric_root(base, metric, None, base.gram)
        raise InputError("the torque metric needs robot= (its random states) or gram= (the metric itself), neither is given")
    return torque_metric(robot, base)
