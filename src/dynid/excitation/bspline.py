"""Joint motion as B-splines that start and end at rest.

``q_j(t) = sum_k c_jk B_k(t)`` with B-splines of degree 5 on equal knot intervals, clamped at both ends. The first three control points
are equal, and so are the last three: velocity and acceleration vanish at the ends. Coefficients have a place in time, so a limit
touched at one moment does not hold back the rest of the motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, matrix
from dynid.errors import InputError
from dynid.excitation.shape import LinearShape, Trajectory, times

DEGREE = 5


@dataclass(frozen=True, eq=False)
class BSplineTrajectory(Trajectory):
    """Control points ``(joints, points)`` of a clamped B-spline of degree 5."""

    length_s: float
    control: Array

    def __post_init__(self) -> None:
        if not (np.isfinite(self.length_s) and self.length_s > 0.0):
            raise InputError(f"a spline lasts {self.length_s:g} s, expected a positive time")
        control = matrix("control points", self.control, (None, None))
        if control.shape[1] < DEGREE + 1:
            raise InputError(f"a spline has {control.shape[1]} control points, expected at least {DEGREE + 1}")
        object.__setattr__(self, "control", control)

    @property
    def n_joints(self) -> int:
        return int(self.control.shape[0])

    @property
    def duration_s(self) -> float:
        return self.length_s

    def derivative(self, time: ArrayLike, order: int) -> Array:
        return np.asarray(_basis(times(time), self.length_s, self.control.shape[1], order) @ self.control.T)

    def as_json(self) -> dict[str, Any]:
        return {"kind": "bspline", "degree": DEGREE, "duration_s": self.length_s, "control": self.control.tolist()}


@dataclass(frozen=True)
class BSplineShape(LinearShape):
    """All rest-to-rest splines of degree 5 with one length and number of knot intervals.

    Args:
        length_s: length of the motion, s.
        intervals: number of knot intervals.

    Examples:
        >>> import dynid
        >>> dynid.BSplineShape(length_s=10.0, intervals=8).duration_s
        10.0
    """

    length_s: float = 20.0
    intervals: int = 12

    def __post_init__(self) -> None:
        if not (np.isfinite(self.length_s) and self.length_s > 0.0):
            raise InputError(f"a spline lasts {self.length_s:g} s, expected a positive time")
        if self.intervals < 3:
            raise InputError(f"a spline has {self.intervals} intervals, expected at least 3")

    @property
    def duration_s(self) -> float:
        return self.length_s

    @property
    def n_control(self) -> int:
        """Control points per joint, of which three at each end are one."""
        return self.intervals + DEGREE

    @property
    def n_coefficients(self) -> int:
        return self.n_control - 4

    def basis(self, time: Array, order: int) -> Array:
        return np.asarray(_basis(time, self.length_s, self.n_control, order) @ self._free())

    def trajectory(self, coefficients: Array) -> BSplineTrajectory:
        return BSplineTrajectory(self.length_s, coefficients @ self._free().T)

    def still(self) -> Array:
        return np.ones(self.n_coefficients)

    def design_times(self, fineness: float) -> Array:
        return np.linspace(0.0, self.length_s, round(10 * fineness * self.intervals))

    def limit_times(self) -> tuple[Array, float]:
        """Twenty times per interval: between them a polynomial of degree 5 hardly rises; a design is proven afterwards."""
        return np.linspace(0.0, self.length_s, 20 * self.intervals + 1), 1.004

    def random(self, rng: np.random.Generator, n_joints: int) -> Array:
        return rng.normal(size=(n_joints, self.n_coefficients))

    def _free(self) -> Array:
        """All control points in terms of the free ones."""
        place = np.clip(np.arange(self.n_control) - 2, 0, self.n_coefficients - 1)
        return np.asarray(np.eye(self.n_coefficients)[place], dtype=np.float64)


def _basis(time: Array, length: float, n_control: int, order: int) -> Array:
    """Derivatives of all B-splines, ``(times, control points)``."""
    from scipy.interpolate import BSpline

    inner = np.linspace(0.0, length, n_control - DEGREE + 1)
    knots = np.concatenate([np.zeros(DEGREE), inner, np.full(DEGREE, length)])
    spline = BSpline(knots, np.eye(n_control), DEGREE)
    inside = np.clip(time, 0.0, length)
    return np.asarray((spline.derivative(order) if order else spline)(inside), dtype=np.float64)
