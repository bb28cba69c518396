"""Joints whose position has its zero elsewhere than in the description, found by the weight of the links.

A rigid model with free bodies is fitted to the torque under shifted positions ``q + s``. A shift that free bodies cannot make up for,
that of a joint between two links that gravity acts on, leaves torque unexplained: the shift that leaves least is the zero. The first
joint about a vertical axis and the last joint are not seen so: turned bodies explain them as well, and so they do no harm.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.finding import Finding
from dynid.model.robot import Robot
from dynid.validation.model_fit import RigidFit

STEPS = 12
"""Shifts of a turning joint that are tried first, all around."""
MOST_JOINTS = 2
"""Joints whose zeros are sought."""
LEAST_ROWS = 400
"""Rows on which shifts are tried first."""
GAIN = 1.0 / 3.0
"""Part of the unexplained torque that another zero must leave at most to be told."""
WORTH = 0.7
"""Part of the unexplained torque that the zero of one more joint must leave at most."""
SMALLEST = np.deg2rad(2.0)
"""Shift that is told."""


def zero_finding(shifts: Array, left: float, joint_names: tuple[str, ...], logged: float) -> Finding:
    """What to tell of shifts that leave so much of the squared torque; ``logged`` is what is left without any."""
    found = [(joint_names[j], -float(shifts[j])) for j in np.flatnonzero(np.abs(shifts) > SMALLEST)]
    told = " and ".join(f"{name} by {np.rad2deg(zero):.0f} degrees" for name, zero in found)
    flags = " ".join(f"--zero {name}={zero:.3f}" for name, zero in found)
    return Finding(
        "error",
        f"the log likely has another position zero than the description, {told}: {100.0 * logged:.2g} % of squared torque is "
        f"unexplained by any rigid model as logged, {100.0 * left:.2g} % with the zero moved",
        f"use {flags}, or put the zero right in the description",
        where=tuple(name for name, _ in found),
        code="position_zero",
        values={"zero": dict(found), "unexplained": logged, "unexplained_otherwise": left},
    )


def find_zeros(robot: Robot, motion: tuple[Array, Array, Array, Array], logged: float) -> tuple[Array, float]:
    """The zeros of at most two turning joints that explain the torque best: their shifts, and what these leave of its square.

    Args:
        robot: with the effects to be fitted.
        motion: position, velocity, acceleration and torque, ``(rows, joints)``.
        logged: share of squared torque that is left without any shift.
    """
    from scipy.optimize import minimize_scalar  # 0.1 s of every start, which logs with the right zeros need not pay

    q, v, a, tau = motion
    shifts, left = np.zeros(q.shape[1]), logged
    turning = [j for j, joint in enumerate(robot.moving_joints) if joint.kind != "prismatic"]

    few = slice(None, None, max(1, len(q) // LEAST_ROWS))

    def unexplained(own: Array, rows: slice = slice(None)) -> float:
        return RigidFit.of(robot, q[rows] + own, v[rows], a[rows], tau[rows]).unexplained()

    def moved(j: int, shift: float) -> Array:
        own = shifts.copy()
        own[j] += shift
        return own

    grid = np.arange(1, STEPS) * 2.0 * np.pi / STEPS
    for _ in range(MOST_JOINTS):
        free = [j for j in turning if shifts[j] == 0.0]
        best, j, shift = min(((unexplained(moved(j, s), few), j, s) for j in free for s in grid), default=(np.inf, 0, 0.0))
        if best > WORTH * unexplained(shifts, few):
            break
        shifts, left = moved(j, shift), best
        for k in np.flatnonzero(shifts) if np.count_nonzero(shifts) == 1 else np.tile(np.flatnonzero(shifts), 2):
            width = np.pi / STEPS * 2.0
            found = minimize_scalar(
                lambda s, k=k: unexplained(moved(k, s)), bounds=(-width, width), method="bounded", options={"xatol": 2e-3}
            )
            shifts, left = moved(int(k), float(found.x)), float(found.fun)
    wrapped = (shifts + np.pi) % (2.0 * np.pi) - np.pi
    return wrapped, left
