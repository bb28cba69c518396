"""Gautier and Khalil 1992: motions through optimal points of the energy model of a three-joint arm."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

import dynid
from dynid.arrays import Array
from dynid.excitation.criteria import scaling_of
from dynid.excitation.excitation_result import Excitation
from dynid.excitation.points import design_points
from dynid.excitation.points_problem import energy_rows_of
from dynid.io.robots.dh import robot_from_table
from tables_of import markdown

# Table 1: d, alpha, r, which are a, alpha, d here. Limits are not printed; these allow optima as good as the published ones.
_ARM = [(0.0, 0.0, 0.0), (0.0, -0.5 * math.pi, 0.0), (0.5, 0.0, 0.2)]
_LIMITS = {"q_min": -math.pi, "q_max": math.pi, "ddq_max": 8.0}
# Table 2: mean of ten random sequences, and the optimum where there is one.
_TABLE_2 = {15: (27994, 53), 20: (1945, 30), 30: (953.98, 11), 50: (586.09, None), 100: (496.41, None), 200: (438.67, None)}
_DESIGNED = (15, 30, 50)
# Table 3: ||dX|| / ||X|| by noise k on the torque, optimum and random, r = 30; X is that of Table 6.
_TABLE_3 = {0.001: (0.00047, 0.018), 0.01: (0.007, 0.161), 0.1: (0.059, 1.796)}
_X = np.array([5.0186, -2.05, 0.7, -1.07, 0.65, 6.55, 4.3, 0.6, 0.7634, 0.6872, 0.55, -0.6, 0.9646, 0.528, 1.14])
_SLOW = 0.6


def table_2() -> str:
    """Condition number over rows, of random points and of designed ones."""
    rows = []
    for r, (mean, optimum) in _TABLE_2.items():
        random = [float(np.mean([np.linalg.cond(_random(r, seed, v)) for seed in range(10)])) for v in (_SLOW, 2.0)]
        design = _design(r) if r in _DESIGNED else None
        found = ("", "")
        if design is not None:
            q, v, _ = design.trajectory.evaluate(design.trajectory.point_times_s)
            used = (np.abs(q - design.limits.centre) / design.limits.reach, np.abs(v) / design.limits.velocity)
            position, velocity = (f"{100.0 * share.max():.0f} %" for share in used)
            found = (f"**{np.linalg.cond(design.energy_rows):.1f}**", f"{position}, {velocity}")
        printed = "" if optimum is None else f"{optimum}"
        rows.append((f"{r}", f"{mean:.0f}", *(f"{value:.0f}" for value in random), printed, *found))
    header = (
        "rows r",
        "random, printed",
        "random up to 0.6 rad/s",
        "random up to 2 rad/s",
        "optimum, printed",
        "designed",
        "of range, of speed",
    )
    return markdown(header, rows)


def scaling() -> str:
    """The two parts of the criterion with and without the second, and at half the speed; 30 rows."""
    rows = [("printed optimum", "11", "175")]
    for lambda2, speed in ((0.0, 2.0), (0.02, 2.0), (0.0, 1.0)):
        design = _design(30, lambda2, speed)
        name = f"designed up to {speed:g} rad/s, `lambda_2 = {lambda2:g}`"
        rows.append((name, f"{np.linalg.cond(design.energy_rows):.1f}", f"{scaling_of(design.energy_rows):.2g}"))
    values = [(np.linalg.cond(W), scaling_of(W)) for W in (_random(30, seed, 2.0) for seed in range(10))]
    condition, worst = np.mean(values, axis=0)
    rows.append(("random points up to 2 rad/s, mean of 10", f"{condition:.0f}", f"{worst:.2g}"))
    return markdown(("points", "condition number", "S"), rows)


def table_3() -> str:
    """Error of the base parameters by noise on the torque, median of draws."""
    matrices = {"designed": [_design(30).energy_rows]}
    matrices |= {f"random up to {v:g} rad/s": [_random(30, seed, v) for seed in range(10)] for v in (_SLOW, 2.0)}
    rows = []
    for k, printed in _TABLE_3.items():
        ours = [_error(W, k) for W in matrices.values()]
        rows.append((f"{k:g}", *(f"{value:g}" for value in printed), *(f"{value:.2g}" for value in ours)))
    return markdown(("noise k", "optimum, printed", "random, printed", *matrices), rows)


@cache
def _arm(speed: float = 2.0) -> tuple[dynid.Robot, dynid.BaseReduction]:
    joints = [
        {"name": f"joint{i}", "type": "revolute", "a": a, "alpha": alpha, "d": d, "dq_max": speed, **_LIMITS}
        for i, (a, alpha, d) in enumerate(_ARM, start=1)
    ]
    table = {"name": "three joints", "gravity": [0.0, 0.0, -9.81], "dh_convention": "modified", "joint": joints}
    robot = robot_from_table(table)
    return robot, dynid.reduce_to_base(robot)


@cache
def _design(r: int, lambda2: float = 0.0, speed: float = 2.0) -> Excitation:
    return design_points(_arm(speed)[0], rows=r, lambda2=lambda2)


def _random(r: int, seed: int, speed: float) -> Array:
    """``W`` of random points within a full turn and up to a speed."""
    rng = np.random.default_rng(seed)
    q, v = rng.uniform(-math.pi, math.pi, (r + 1, 3)), rng.uniform(-speed, speed, (r + 1, 3))
    return energy_rows_of(*_arm(), q, v)


def _error(matrices: list[Array], k: float) -> float:
    """Section 6.3: white noise of ``k/4`` times the largest ``|Y|``; 200 draws for each matrix."""
    rng = np.random.default_rng(0)
    errors = []
    for W in matrices:
        Y = W @ _X
        noisy = Y + k / 4.0 * np.abs(Y).max() * rng.normal(size=(200, len(Y)))
        found = np.linalg.lstsq(W, noisy.T)[0].T
        errors.append(np.linalg.norm(found - _X, axis=1) / np.linalg.norm(_X))
    return float(np.median(errors))
