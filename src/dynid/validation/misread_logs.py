"""Another reading of a log explains its torque: columns exchanged, a joint mirrored, a base that is tilted.

Where no rigid model at all explains the torque as logged, but one does once two torque columns are exchanged, or once one
joint counts the other way, the log was likely read so. All explanations of this kind are tried and the best one is reported;
whole joints are exchanged under the nominal masses.

A rigid model fitted under the described gravity ``g`` cannot follow a tilt: with a tilted base gravity also loads the first joint
and depends on its position. To first order a rotation of gravity by the small vector ``r`` adds

    tau(g + r x g) - tau(g) = sum_k r_k D_k(q),      D_k = torque of the bodies under gravity e_k x g,

so ``r`` stands beside the base parameters in one linear fit. It is repeated about the gravity found, with the bodies found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from operator import itemgetter

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import torque_regressor
from dynid.finding import Finding
from dynid.model.inertia import rotation_exponential
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, find_base, reduce_to_base
from dynid.signals.measures import longest_part
from dynid.signals.recording import Recording
from dynid.validation.model_fit import (
    RigidFit,
    few_rows,
    fitted_model,
    smooth_samples,
)
from dynid.validation.position_zero import GAIN, find_zeros, zero_finding

_UNEXPLAINED = 0.004  # share of squared torque that no rigid model explains before another reading is tried
_GAIN = 0.25  # and what another reading has to leave of it
_MOST_JOINTS = 12  # of more joints only the torque columns of neighbours are exchanged


def misread_columns(recording: Recording, robot: Robot) -> list[Finding]:
    """The reading of the log that explains its torque, where the logged one does not."""
    if recording.torque is None or recording.n_joints < 2 or robot.loops or robot.coupling is not None:
        return []
    model = fitted_model(robot)
    q, v, a, tau = few_rows(smooth_samples(longest_part(recording)), model)
    fit = RigidFit.of(model, q, v, a, tau)
    logged = fit.unexplained()
    if logged < _UNEXPLAINED:
        return []
    signs = 1.0 - 2.0 * np.eye(fit.n_joints)
    readings: list[tuple[float, str, tuple[int, ...]]] = []
    for pair, order in _exchanges(fit.n_joints):  # the torque of two joints, their motion, or both
        readings.append((fit.unexplained(order), "exchanged_torque", pair))
        if fit.n_joints <= _MOST_JOINTS:
            moved = RigidFit.of(model, q[:, order], v[:, order], a[:, order], tau)
            readings.append((moved.unexplained(), "exchanged_motion", pair))
            readings.append((moved.unexplained(order), "exchanged_joints", pair))
    for j, sign in enumerate(signs):  # one joint turned round: its motion and torque, its motion alone, or its torque alone
        turned = RigidFit.of(model, sign * q, sign * v, sign * a, tau)
        readings += [(turned.unexplained(sign=sign), "mirrored", (j,)), (turned.unexplained(), "motion", (j,))]
    readings += [(fit.unexplained(sign=sign), "torque", (j,)) for j, sign in enumerate(signs)]
    left, kind, joints = min(readings, key=itemgetter(0))
    if left > _UNEXPLAINED and model.n_dof == model.n_joints:  # a column turned round is simpler than a zero that has moved
        shifts, least = find_zeros(model, (q, v, a, tau), logged)
        if least < GAIN * logged and (left > _GAIN * logged or least < GAIN * left):
            return [zero_finding(shifts, least, recording.joint_names, logged)]
    if left > _GAIN * logged:
        return []
    return [_finding(kind, tuple(recording.joint_names[j] for j in joints), left, logged)]


def _exchanges(n: int) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Pairs of joints, and the order of all with the two exchanged; of many joints neighbours alone."""
    for i, j in combinations(range(n), 2) if n <= _MOST_JOINTS else pairwise(range(n)):
        order = list(range(n))
        order[i], order[j] = j, i
        yield (i, j), order


_COLUMNS = {
    "exchanged_torque": ("torque columns", "torque = [..]"),
    "exchanged_motion": ("position and velocity columns", "position = [..], velocity = [..]"),
    "exchanged_joints": ("columns", "position = [..], velocity = [..], torque = [..]"),
}
"""What may be exchanged between two joints: in words, and the entries of a mapping file that put it right."""


def _finding(kind: str, joints: tuple[str, ...], left: float, logged: float) -> Finding:
    shares = f"{100.0 * logged:.2g} % of squared torque is unexplained by any rigid model as logged, {100.0 * left:.2g} % "
    values = {"unexplained": logged, "unexplained_otherwise": left}
    if kind in _COLUMNS:
        columns, entry = _COLUMNS[kind]
        return Finding(
            "error",
            f"the {columns} of joints {joints[0]} and {joints[1]} are likely exchanged: {shares}with the two exchanged",
            f"name the columns in their right order in a mapping file (--mapping FILE): {entry}, or check the order of joints in the "
            "description",
            where=joints,
            code=kind,
            values=values,
        )
    what, remedy = {
        "mirrored": ("position, velocity and torque", f"sign = {{{joints[0]} = -1}} turns the joint round"),
        "motion": (
            "position and velocity",
            'a minus before a column turns it round, position = [.., "-q2", ..] and velocity alike',
        ),
        "torque": ("torque", 'a minus before a column turns it round, torque = [.., "-tau2", ..]'),
    }[kind]
    return Finding(
        "error",
        f"{what} of joint {joints[0]} likely count the other way than in the description: {shares}with them turned round",
        f"turn them round in a mapping file (--mapping FILE): {remedy}",
        where=joints,
        code="torque_sign" if kind == "torque" else "mirrored_joint",
        values=values,
    )


_ROUNDS = 4
_SMALLEST_DEG = 2.0  # tilt that is reported; mountings are rarely better, and drives give less away
_TILT_GAIN = 0.8  # of the unexplained torque must be left at most with the tilt
_NONE = 0.1  # part of that tilt below which, with steps as small, it is not sought further
_TILT_DEG = 30.0  # beyond it the robot would be mounted in another way
_OTHER_MOUNTING = 0.25  # and this of the unexplained torque must be left at most
_SIGNIFICANT = 6.0  # times its standard error
_UNEXPLAINED_TILT = 0.02  # share of squared torque left unexplained before gravity is sought along the other axes, too
_RIDGE = 1e-12  # of scaled columns, for directions that the motion does not show
_DEPENDENT = 10.0  # filtered rows that count as one


def _gravity_found(problem: _Problem, gravity: Array, described: float, hangs: bool) -> tuple[Array, float, float] | None:
    """The gravity that explains the torque best, its error, and what it leaves unexplained; ``described`` is what ``gravity`` leaves."""
    found = problem.gravity_from(gravity) if described > 0.0 else None
    if described > _UNEXPLAINED_TILT * len(problem.y) and (found is None or found[2] > _OTHER_MOUNTING * described):
        size = float(np.linalg.norm(gravity))
        start = min((size * axis for axis in (*np.eye(3), *-np.eye(3))), key=problem.unexplained)
        found = _better(found, problem.gravity_from(start))
    if hangs and found is not None:
        # negative masses under the opposite gravity weigh the same: only their inertia tells the two apart
        found = _better(found, problem.gravity_from(-found[0]))
    return found


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
    found = _gravity_found(problem, gravity, described, hangs)
    if found is None:
        return []
    true, error, left = found
    turn = np.cross(gravity, true)
    angle = float(np.arctan2(np.linalg.norm(turn), gravity @ true))
    needed = _TILT_GAIN if angle < np.deg2rad(_TILT_DEG) else _OTHER_MOUNTING
    if angle < max(np.deg2rad(_SMALLEST_DEG), _SIGNIFICANT * error) or left > needed * described:
        return []
    axis = -turn / np.linalg.norm(turn)  # gravity seen from a base that was tilted turns the other way
    degrees = float(np.rad2deg(angle))
    return [
        Finding(
            "error" if degrees > 10.0 else "warning",
            f"base is likely tilted by {degrees:.1f} degrees (+-{np.rad2deg(error):.1g}) about {_axis_words(axis)} of the base "
            f"frame: {100.0 * (1.0 - left / described):.0f} % of the torque that no rigid model explains follows from it",
            f"use --gravity {','.join(f'{value + 0.0:.4g}' for value in np.round(true, 3))}, or level the base",
            code="tilted_base",
            values={"gravity": true, "degrees": degrees, "error_degrees": float(np.rad2deg(error))},
        )
    ]


_AS_WELL = 1.1  # times what is left with gravity that a model without may leave to explain torque as well
_EXPLAINED = 0.3  # share of the torque that a fitted model may leave to explain it


def without_gravity(recording: Recording, robot: Robot) -> tuple[bool, bool]:
    """Whether a rigid model without gravity, fitted to the torque, explains it as well as one with, and whether one explains it at all."""
    if recording.torque is None:
        return True, False
    model = fitted_model(robot)
    problem = _Problem.of(model, few_rows(smooth_samples(longest_part(recording)), model))
    left = [problem.unexplained(gravity) for gravity in (np.asarray(robot.gravity, dtype=np.float64), np.zeros(3))]
    return left[1] <= _AS_WELL * left[0], min(left) < _EXPLAINED * float(problem.y @ problem.y)


_Fitted = tuple[BaseReduction, Array, Array, Array]
"""Base parameters under some gravity, the rows of all parameters, and the factors ``Q`` and ``R`` of the scaled base columns."""
_Found = tuple[Array, float, float]
"""A gravity, the standard error of its direction, and the sum of squares left under it."""


def _better(one: _Found | None, other: _Found | None) -> _Found | None:
    """The one that leaves less."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda found: found[2])


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
    """A gravity, and what was fitted under it."""

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
        Q = self._fitted(self.robot.with_gravity(gravity))[2]
        return float(self.y @ self.y - np.sum((Q.T @ self.y) ** 2))

    def _fitted(self, robot: Robot, *, anew: bool = False) -> _Fitted:
        """Rows under a robot's gravity, factored; the last ones are kept: the search starts at a gravity that was tried.

        ``anew`` looks for base parameters without keeping them, for gravities that are met once.
        """
        if self.last is None or not np.array_equal(self.last[0], robot.gravity):
            W = self.rows(robot)
            base = find_base(robot) if anew else reduce_to_base(robot)
            columns = base.regressor(W)
            size = np.linalg.norm(columns, axis=0)
            Q, R = np.linalg.qr(columns[:, size > 0.0] / size[size > 0.0])
            self.last = np.array(robot.gravity), (base, W, Q, R)
        return self.last[1]

    def gravity_from(self, start: Array) -> _Found | None:
        """Gravity that explains the torque best, the standard error of its direction, and the sum of squares left.

        None where the motion does not show some tilt.
        """
        seen, phi = start, self.robot.parameters.values
        covariance, left = np.zeros((2, 2)), 0.0
        for turn in range(_ROUNDS):
            here = self.robot.with_parameters(self.robot.parameters.with_values(phi)).with_gravity(seen)
            base, W, Q, R = self._fitted(here, anew=turn > 0)
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
            phi = phi + _smallest(base, W, Q, R, self.y - W @ phi - tilt @ step)
        return seen, float(np.sqrt(np.trace(covariance))), left

    def _gravity_torque(self, robot: Robot, gravity: Array) -> Array:
        still = np.zeros_like(self.q)
        torque = inverse_dynamics(robot.with_gravity(gravity), self.q, still, still, effects=False)
        return np.asarray((torque * self.weight).ravel())


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
