"""Torque columns that are exchanged, and joints that are mirrored, found without trusting the nominal masses.

Where no rigid model at all explains the torque as logged, but one does once two torque columns are exchanged, or once one
joint counts the other way, the log was likely read so. All explanations of this kind are tried and the best one is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from dynid.arrays import Array
from dynid.recording.finding import Finding
from dynid.recording.lag import longest_part
from dynid.recording.motion import Recording
from dynid.robot.model import Robot
from dynid.validation.torque_checks.fit import smooth_samples
from dynid.validation.torque_checks.rigid_fit import RigidFit, few_rows, fitted_model

_UNEXPLAINED = 0.004  # share of squared torque that no rigid model explains before another reading is tried
_GAIN = 0.25  # and what another reading has to leave of it
_MOST_JOINTS = 12  # of more joints only neighbours are exchanged


@dataclass(frozen=True)
class _Reading:
    """One way to read the log, and what it leaves unexplained."""

    left: float
    kind: str
    joints: tuple[int, ...]


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
    best = min((*_exchanged(fit), *_mirrored(model, q, v, a, tau)), key=lambda one: one.left)
    if best.left > _GAIN * logged:
        return []
    return [_finding(best, tuple(recording.joint_names[j] for j in best.joints), logged)]


def _exchanged(fit: RigidFit) -> list[_Reading]:
    n = fit.n_joints
    found = []
    for i, j in combinations(range(n), 2) if n <= _MOST_JOINTS else pairwise(range(n)):
        order = list(range(n))
        order[i], order[j] = j, i
        found.append(_Reading(fit.unexplained(order), "exchanged", (i, j)))
    return found


def _mirrored(model: Robot, q: Array, v: Array, a: Array, tau: Array) -> list[_Reading]:
    """One joint turned round: its motion and torque, its motion alone, or its torque alone."""
    n = q.shape[1]
    found = []
    for j in range(n):
        sign = np.ones(n)
        sign[j] = -1.0
        turned = RigidFit.of(model, sign * q, sign * v, sign * a, tau)
        found.append(_Reading(turned.unexplained(sign=sign), "mirrored", (j,)))
        found.append(_Reading(turned.unexplained(), "motion", (j,)))
    plain = RigidFit.of(model, q, v, a, tau)
    for j in range(n):
        sign = np.ones(n)
        sign[j] = -1.0
        found.append(_Reading(plain.unexplained(sign=sign), "torque", (j,)))
    return found


def _finding(best: _Reading, joints: tuple[str, ...], logged: float) -> Finding:
    shares = (
        f"{100.0 * logged:.2g} % of squared torque is unexplained by any rigid model as logged, {100.0 * best.left:.2g} % "
    )
    values = {"unexplained": logged, "unexplained_otherwise": best.left}
    if best.kind == "exchanged":
        return Finding(
            "exchanged_torque",
            "error",
            f"the torque columns of joints {joints[0]} and {joints[1]} are likely exchanged: {shares}with the two exchanged",
            "name the torque columns in their right order in a mapping file (--mapping FILE): torque = [..]",
            joints,
            values,
        )
    what, remedy = {
        "mirrored": ("position, velocity and torque", f"sign = {{{joints[0]} = -1}} turns the joint round"),
        "motion": (
            "position and velocity",
            'a minus before a column turns it round, position = [.., "-q2", ..] and velocity alike',
        ),
        "torque": ("torque", 'a minus before a column turns it round, torque = [.., "-tau2", ..]'),
    }[best.kind]
    return Finding(
        "torque_sign" if best.kind == "torque" else "mirrored_joint",
        "error",
        f"{what} of joint {joints[0]} likely count the other way than in the description: {shares}with them turned round",
        f"turn them round in a mapping file (--mapping FILE): {remedy}",
        joints,
        values,
    )
