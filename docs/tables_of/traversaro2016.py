"""Traversaro, Brossette, Escande and Nori 2016: bodies that can exist, and estimation on their manifold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.signal import savgol_filter

import dynid
from dynid.arrays import Array
from dynid.estimation.constraints.base import Linear
from dynid.model.inertia import consistency, phi_from_mass_com_inertia, phi_from_principal, principal_form, reorder
from dynid.model.parameters import Parameters, inertial_columns
from dynid.regression.factor import matrix_regression
from tables_of import markdown, yes

# Table I: m, m c, then the inertia row by row (xx, xy, xz, yy, yz, zz), about the sensor's frame.
_TABLE_1 = {
    ("10 s", "least squares"): [1.836, 0.062, 0.001, 0.208, 0.580, 0.593, -0.541, 1.022, 0.190, -0.129],
    ("10 s", "manifold"): [1.836, 0.062, 0.001, 0.208, 0.215, 0.012, -0.064, 0.227, 0.038, 0.028],
    ("5 s", "least squares"): [1.842, 0.061, 0.000, 0.206, 0.128, -0.018, -0.125, 0.125, 0.026, -0.001],
    ("5 s", "manifold"): [1.842, 0.060, 0.000, 0.206, 0.166, 0.001, -0.089, 0.216, 0.001, 0.050],
    ("2 s", "least squares"): [1.852, 0.060, 0.001, 0.206, 0.065, 0.001, -0.035, 0.066, 0.006, 0.007],
    ("2 s", "manifold"): [1.852, 0.060, 0.001, 0.206, 0.067, 0.001, -0.030, 0.086, 0.003, 0.014],
    ("1 s", "least squares"): [1.820, 0.060, 0.002, 0.205, 0.032, 0.0014, -0.017, 0.036, 0.002, 0.008],
    ("1 s", "manifold"): [1.820, 0.060, 0.002, 0.205, 0.034, 0.001, -0.015, 0.042, 0.001, 0.009],
    ("0.5 s", "least squares"): [1.843, 0.060, 0.005, 0.204, 0.033, 0.003, -0.014, 0.035, 0.000, 0.008],
    ("0.5 s", "manifold"): [1.844, 0.059, 0.004, 0.204, 0.037, 0.001, -0.013, 0.039, 0.000, 0.008],
}
_HALF_DIGIT = 0.0005

# Section IV: duration of a move, window of the Savitzky-Golay filter.
_WINDOWS = {10.0: 499, 5.0: 41, 2.0: 21, 1.0: 9, 0.5: 7}
_RATE_HZ, _DURATION_S = 100.0, 60.0
_SEEDS = 10
# Not printed: encoder steps, noise of the sensor, and a body like the identified ones, 12 cm from the sensor.
_ENCODER = np.deg2rad(0.01)
_NOISE = np.array([0.5] * 3 + [0.03] * 3)
_TRUTH = phi_from_mass_com_inertia(1.85, np.array([0.033, 0.002, 0.111]), np.diag([0.0095, 0.0105, 0.0025]))
_SENSOR = np.array([0.0, 0.0, 0.1])


def table_1() -> str:
    """Each printed row: how far outside, and whether any body that rounds to its digits is consistent."""
    rows = []
    base = dynid.BaseReduction.from_matrix(np.eye(10), _names())
    for (speed, method), printed in _TABLE_1.items():
        phi = reorder(printed, "idyntree")
        report = consistency(phi)
        digits = [Linear({n: 1.0}, v - _HALF_DIGIT, v + _HALF_DIGIT) for n, v in zip(_names(), phi, strict=True)]
        inside = dynid.closest_feasible(base, phi, "full", constraints=digits, margin=0.0)
        distance = dynid.closest_feasible(base, phi, "full", margin=0.0).distance
        plain, full = (dynid.is_consistent(phi, condition) for condition in ("plain", "full"))
        slack = f"{1e3 * float(report.triangle_slack):.2f}"
        within = inside.outcome is dynid.Outcome.SOLVED
        rows.append((f"{speed}, {method}", yes(plain), yes(full), slack, f"{1e3 * distance:.2f}", yes(within)))
    header = ("row", "plain", "full", "J1 + J2 - J3, g m²", "distance to a consistent body, 1e-3", "one within its digits")
    return markdown(header, rows)


def five_speeds() -> str:
    """The experiment of section IV, simulated: which estimates can exist, over the seeds."""
    said = {10.0: "inconsistent", 5.0: "inconsistent", 2.0: "", 1.0: "both the same", 0.5: "both the same"}
    rows = []
    for move_s, window in _WINDOWS.items():
        runs = [_identified(move_s, seed) for seed in range(_SEEDS)]
        least, best = (np.array([getattr(run, name) for run in runs]) for name in ("least_squares", "manifold"))
        iterates = np.concatenate([run.iterates for run in runs])
        errors = (np.median(np.linalg.norm((phi - _TRUTH)[:, 4:], axis=1)) for phi in (least, best))
        rows.append(
            (
                f"{move_s:g} s",
                f"{window}",
                said[move_s],
                *(f"{np.sum(dynid.is_consistent(phi))} of {_SEEDS}" for phi in (least, best)),
                f"{np.sum(dynid.is_consistent(iterates))} of {len(iterates)}" if len(iterates) else "none needed",
                " / ".join(f"{1e3 * error:.3g}" for error in errors),
            )
        )
    header = (
        "move",
        "window",
        "least squares in the paper",
        "least squares consistent",
        "manifold consistent",
        "its iterates",
        "error of inertia, both, g m²",
    )
    return markdown(header, rows)


def bodies() -> str:
    """The coordinates ``(m, c, Q, L)`` of bodies, and the cuboid that proves that each can exist."""
    chosen = {"true body": _TRUTH}
    for move_s in (0.5, 5.0, 10.0):
        chosen[f"manifold, moves of {move_s:g} s"] = _identified(move_s, 0).manifold
    rows = []
    for name, phi in chosen.items():
        m, c, Q, L = principal_form(phi)
        half_lengths = np.sqrt(3.0 * L / m)  # (27)
        back = [phi_from_principal(m, c, Q, moments) for moments in (L, m * half_lengths**2 / 3.0)]
        rows.append(
            (
                name,
                f"{m:.3f}",
                ", ".join(f"{1e3 * value:.1f}" for value in c),
                ", ".join(f"{1e3 * value:.3f}" for value in L),
                " x ".join(f"{2e3 * value:.1f}" for value in half_lengths),
                f"{max(np.abs(other - phi).max() for other in back):.0e}",
            )
        )
    return markdown(("body", "m, kg", "c, mm", "L, g m²", "cuboid, mm", "largest difference on the way back"), rows)


@dataclass(frozen=True, eq=False)
class _Identified:
    """Both estimates of one log, and what the manifold method went through."""

    least_squares: Array
    manifold: Array
    iterates: Array


@cache
def _identified(move_s: float, seed: int) -> _Identified:
    """(19) and (24), both with the same weight on all six components."""
    data = _regression(move_s, seed)
    base = dynid.BaseReduction.from_matrix(np.eye(10), data.parameters.names)
    least = dynid.estimate(data, base, dynid.OrdinaryLeastSquares(covariance="classical"))
    iterates: list[Parameters] = []
    method = dynid.Manifold(covariance="classical", watch=iterates.append)
    best = dynid.estimate(data, base, method)
    seen = np.array([one.inertials[0] for one in iterates]).reshape(-1, 10)
    return _Identified(least.base_values, best.standard.inertials[0], seen)


def _names() -> list[str]:
    return [column.name for column in inertial_columns(1, "arm")]


def _regression(move_s: float, seed: int) -> dynid.Regression:
    """Wrench of the true motion with noise, against the regressor of the measured motion."""
    rng = np.random.default_rng(seed)
    motion = _moves(move_s, rng)
    wrench = _wrench_regressor(*motion) @ _TRUTH
    wrench += _NOISE * rng.normal(size=wrench.shape)
    q = np.round(motion[0] / _ENCODER) * _ENCODER
    measured = [savgol_filter(q, _WINDOWS[move_s], 2, deriv=k, delta=1.0 / _RATE_HZ, axis=0) for k in range(3)]
    rows = np.concatenate([_wrench_regressor(*measured), wrench[:, :, None]], axis=-1)
    start = phi_from_mass_com_inertia(2.0, np.zeros(3), 0.01 * np.eye(3))
    channels = [f"{kind}_{axis}" for kind in ("force", "moment") for axis in "xyz"]
    return matrix_regression(Parameters(inertial_columns(1, "arm"), start), channels, [rows[:, i] for i in range(6)])


def _moves(move_s: float, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Random point to point moves of three shoulder joints of least jerk, each of the same duration."""
    t = np.arange(round(_DURATION_S * _RATE_HZ)) / _RATE_HZ
    goals = rng.uniform(-1.0, 1.0, (int(_DURATION_S / move_s) + 2, 3))
    leg = np.minimum((t / move_s).astype(int), len(goals) - 2)
    s = (t / move_s - leg)[:, None]
    delta = goals[leg + 1] - goals[leg]
    q = goals[leg] + delta * (10 * s**3 - 15 * s**4 + 6 * s**5)
    return q, delta * 30 * (s**2 - 2 * s**3 + s**4) / move_s, delta * 60 * (s - 3 * s**2 + 2 * s**3) / move_s**2


def _wrench_regressor(q: Array, v: Array, a: Array) -> Array:
    """``Y(a^g, v)`` of (4) at the sensor, with yaw, pitch and roll of the arm as the joints."""
    h = 1e-6
    B, dB = _rates(q), (_rates(q + h * v) - _rates(q - h * v)) / (2.0 * h)
    omega = np.einsum("nij,nj->ni", B, v)
    alpha = np.einsum("nij,nj->ni", B, a) + np.einsum("nij,nj->ni", dB, v)
    gravity = -9.81 * B[:, :, 0]  # the yaw axis is vertical: in the body it is the third row of R
    acceleration = np.cross(alpha, _SENSOR) - gravity  # spatial: without omega x v
    Y: Array = dynid.body_regressor(np.hstack([acceleration, alpha]), np.hstack([np.cross(omega, _SENSOR), omega]))
    return Y


def _rates(q: Array) -> Array:
    """``omega = B(q) dq`` in the body: the axes of yaw, pitch and roll."""
    (_, pitch, roll), zero, one = q.T, np.zeros(len(q)), np.ones(len(q))
    rows = [
        [-np.sin(pitch), zero, one],
        [np.sin(roll) * np.cos(pitch), np.cos(roll), zero],
        [np.cos(roll) * np.cos(pitch), -np.sin(roll), zero],
    ]
    return np.moveaxis(np.array(rows), -1, 0)
