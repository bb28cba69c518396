"""A base that is tilted: the direction of gravity, estimated from the torque.

A rigid model fitted under the described gravity ``g`` cannot follow a tilt: with a tilted base gravity also loads the first joint
and depends on its position. To first order a rotation of gravity by the small vector ``r`` adds

    tau(g + r x g) - tau(g) = sum_k r_k D_k(q),      D_k = torque of the bodies under gravity e_k x g,

so ``r`` stands beside the base parameters in one linear fit. It is repeated about the gravity found, with the bodies found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.inertia import rotation_exponential
from dynid.recording.finding import Finding
from dynid.recording.lag import longest_part
from dynid.recording.motion import Recording
from dynid.regression.base import BaseReduction, find_base, reduce_to_base
from dynid.regression.torque import inverse_dynamics, torque_regressor
from dynid.robot.model import Robot
from dynid.validation.torque_checks.fit import smooth_samples
from dynid.validation.torque_checks.rigid_fit import few_rows, fitted_model

_ROUNDS = 4
_SMALLEST_DEG = 2.0  # tilt that is reported; mountings are rarely better, and drives give less away
_GAIN = 0.8  # of the unexplained torque must be left at most with the tilt
_NONE = 0.1  # part of that tilt below which, with steps as small, it is not sought further
_TILT_DEG = 30.0  # beyond it the robot would be mounted in another way
_OTHER_MOUNTING = 0.25  # and this of the unexplained torque must be left at most
_SIGNIFICANT = 6.0  # times its standard error
_UNEXPLAINED = 0.02  # share of squared torque left unexplained before gravity is sought along the other axes, too
_RIDGE = 1e-12  # of scaled columns, for directions that the motion does not show
_DEPENDENT = 10.0  # filtered rows that count as one


def tilted_base(recording: Recording, robot: Robot, *, hangs: bool = False) -> list[Finding]:
    """A tilt of the base that explains the torque clearly better than the described gravity.

    ``hangs``: gravity acts the other way round in some joint, so that gravities opposite to those found are tried, too.
    """
    gravity = np.asarray(robot.gravity, dtype=np.float64)
    if recording.torque is None or robot.loops or robot.coupling is not None or not gravity.any():
        return []
    model = fitted_model(robot)
    problem = _Problem.of(model, few_rows(smooth_samples(longest_part(recording)), model))
    described = problem.unexplained(gravity)
    found = problem.gravity_from(gravity) if described > 0.0 else None
    if described > _UNEXPLAINED * len(problem.y) and (found is None or found[2] > _OTHER_MOUNTING * described):
        size = float(np.linalg.norm(gravity))
        start = min((size * axis for axis in (*np.eye(3), *-np.eye(3))), key=problem.unexplained)
        found = _better(found, problem.gravity_from(start))
    if hangs and found is not None:
        # negative masses under the opposite gravity weigh the same: only their inertia tells the two apart
        found = _better(found, problem.gravity_from(-found[0]))
    if found is None:
        return []
    true, error, left = found
    turn = np.cross(gravity, true)
    angle = float(np.arctan2(np.linalg.norm(turn), gravity @ true))
    needed = _GAIN if angle < np.deg2rad(_TILT_DEG) else _OTHER_MOUNTING
    if angle < max(np.deg2rad(_SMALLEST_DEG), _SIGNIFICANT * error) or left > needed * described:
        return []
    axis = -turn / np.linalg.norm(turn)  # gravity seen from a base that was tilted turns the other way
    degrees = float(np.rad2deg(angle))
    return [
        Finding(
            "tilted_base",
            "error" if degrees > 10.0 else "warning",
            f"base is likely tilted by {degrees:.1f} degrees (+-{np.rad2deg(error):.1g}) about {_axis_words(axis)} of the base "
            f"frame: {100.0 * (1.0 - left / described):.0f} % of the torque that no rigid model explains follows from it",
            f"use --gravity {','.join(f'{value + 0.0:.4g}' for value in np.round(true, 3))}, or level the base",
            values={"gravity": true, "degrees": degrees, "error_degrees": float(np.rad2deg(error))},
        )
    ]


_Found = tuple[Array, float, float]
"""A gravity, the standard error of its direction, and the sum of squares left under it."""


def _better(one: _Found | None, other: _Found | None) -> _Found | None:
    """The one that leaves less."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda found: found[2])


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Base parameters under some gravity, the rows of all parameters, and the factors of the scaled base columns."""

    base: BaseReduction
    W: Array
    Q: Array
    R: Array


@dataclass(eq=False)
class _Problem:
    """Rows of a log with every joint's torque scaled to the same size."""

    robot: Robot
    q: Array
    v: Array
    a: Array
    weight: Array
    y: Array
    last: tuple[Array, _Fitted] | None = None

    @classmethod
    def of(cls, robot: Robot, rows: tuple[Array, Array, Array, Array]) -> _Problem:
        q, v, a, tau = rows
        size = tau.std(axis=0)
        weight = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
        return cls(robot, q, v, a, weight, ((tau - tau.mean(axis=0)) * weight).ravel())

    def rows(self, robot: Robot) -> Array:
        """The regressor under the robot's gravity, weighted."""
        return np.asarray((torque_regressor(robot, self.q, self.v, self.a) * self.weight[:, None]).reshape(len(self.y), -1))

    def unexplained(self, gravity: Array) -> float:
        """Sum of squares that the best rigid model under this gravity leaves."""
        Q = self._fitted(self.robot.with_gravity(gravity)).Q
        return float(self.y @ self.y - np.sum((Q.T @ self.y) ** 2))

    def _fitted(self, robot: Robot, *, anew: bool = False) -> _Fitted:
        """Rows under a robot's gravity, factored; the last ones are kept: the search starts at a gravity that was tried.

        ``anew`` looks for base parameters without keeping them, for gravities that are met once.
        """
        if self.last is None or not np.array_equal(self.last[0], robot.gravity):
            W = self.rows(robot)
            base = find_base(robot) if anew else reduce_to_base(robot)
            Q, R = np.linalg.qr(_scaled(base.regressor(W)))
            self.last = np.array(robot.gravity), _Fitted(base, W, Q, R)
        return self.last[1]

    def gravity_from(self, start: Array) -> _Found | None:
        """Gravity that explains the torque best, the standard error of its direction, and the sum of squares left.

        None where the motion does not show some tilt.
        """
        seen, phi = start, self.robot.parameters.values
        covariance, left = np.zeros((2, 2)), 0.0
        for turn in range(_ROUNDS):
            here = self.robot.with_parameters(self.robot.parameters.with_values(phi)).with_gravity(seen)
            fitted = self._fitted(here, anew=turn > 0)
            W, Q, R = fitted.W, fitted.Q, fitted.R
            across = np.linalg.svd(seen[None])[2][1:]  # rotations about gravity itself change nothing
            tilt = np.column_stack([self._gravity_torque(here, np.cross(axis, seen)) for axis in across])
            rest = tilt - Q @ (Q.T @ tilt)
            if (np.linalg.norm(rest, axis=0) <= 1e-3 * np.linalg.norm(tilt, axis=0)).any():
                return None
            remaining = self.y - Q @ (Q.T @ self.y)
            step, *_ = np.linalg.lstsq(rest, remaining, rcond=None)
            last = remaining - rest @ step
            left = float(last @ last)
            freedom = max(len(self.y) / _DEPENDENT - Q.shape[1], 10.0)
            covariance = left / freedom * np.linalg.inv(rest.T @ rest)
            if np.linalg.norm(step) > 1.0:
                return None  # far from any tilt that a linear step can find
            seen = rotation_exponential(step @ across) @ seen
            turned = np.arccos(np.clip(seen @ start / (np.linalg.norm(seen) * np.linalg.norm(start)), -1.0, 1.0))
            if turn and max(turned, np.linalg.norm(step)) < _NONE * np.deg2rad(_SMALLEST_DEG):
                break  # with the bodies found too
            phi = phi + _smallest(fitted.base, W, Q, R, self.y - W @ phi - tilt @ step)
        return seen, float(np.sqrt(np.trace(covariance))), left

    def _gravity_torque(self, robot: Robot, gravity: Array) -> Array:
        still = np.zeros_like(self.q)
        torque = inverse_dynamics(robot.with_gravity(gravity), self.q, still, still, effects=False)
        return np.asarray((torque * self.weight).ravel())


def _scaled(W: Array) -> Array:
    size = np.linalg.norm(W, axis=0)
    return np.asarray(W[:, size > 0.0] / size[size > 0.0])


def _smallest(base: BaseReduction, W: Array, Q: Array, R: Array, left: Array) -> Array:
    """The smallest change of the parameters that explains what is left, from the factor of the scaled columns of ``W``."""
    size = np.linalg.norm(base.regressor(W), axis=0)
    found = np.zeros(base.n_base)
    unit = np.linalg.solve(R.T @ R + _RIDGE * np.eye(len(R)), R.T @ (Q.T @ left))
    found[size > 0.0] = unit / size[size > 0.0]
    return np.asarray(base.K.T @ np.linalg.solve(base.K @ base.K.T, found))


def _axis_words(axis: Array) -> str:
    """The axis by its letter where it is nearly one, else by its three numbers."""
    k = int(np.argmax(np.abs(axis)))
    if abs(axis[k]) > np.cos(np.deg2rad(8.0)):
        return f"{'' if axis[k] > 0.0 else '-'}{'xyz'[k]}"
    return f"({', '.join(f'{value:.2f}' for value in axis)})"
