"""Position, speed and torque against the limits of the robot."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dynid.recording.checks.shared import NOTHING, fits, named
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.motion import Recording
from dynid.robot.model import Robot

_LIMITS: tuple[tuple[str, Literal["dq_max", "tau_max"], str], ...] = (
    ("velocity", "dq_max", "speed"),
    ("torque", "tau_max", "torque"),
)


OVERSHOOT = {"position": 0.02, "velocity": 0.1, "torque": 0.1}
"""Shares of a limit, or of the range of a position, by which a controller overshoots; wrong units, zeros and sides exceed it by more."""


def check_limits(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Joints beyond their limits: a wrong unit, sign, zero or side of the gearbox, or a wrong description."""
    if robot is None or not fits(recording, robot):
        return NOTHING
    findings = _position(recording, robot)
    for name, limit, word in _LIMITS:
        values = getattr(recording, name)
        if values is None:
            continue
        most = np.quantile(np.abs(values), 0.999, axis=0)
        bound = robot.limits(limit)
        over = most > 1.02 * bound
        if over.any():
            worst = int(np.argmax(most / bound))
            sentence = (
                f"{word} of joint {recording.joint_names[worst]} reaches {most[worst]:.4g}, its limit is {bound[worst]:.4g}"
            )
            fix = f"check the unit and the side of the gearbox of {name}, or the limits of the description"
            overshot = most[worst] <= (1.0 + OVERSHOOT[name]) * bound[worst]
            findings.append(_finding(name, sentence, fix, named(recording, over), overshot=overshot))
    return DataCheck(tuple(findings), {})


def _position(recording: Recording, robot: Robot) -> list[Finding]:
    low, high = robot.position_limits.T
    tolerance = 1e-3 * np.where(np.isfinite(high - low), high - low, 1.0)
    q = recording.position
    outside = (q.min(axis=0) < low - tolerance) | (q.max(axis=0) > high + tolerance)
    if not outside.any():
        return []
    beyond = np.maximum(low - q.min(axis=0), q.max(axis=0) - high) / (1e3 * tolerance)
    worst = int(np.argmax(beyond))
    sentence = (
        f"joint {recording.joint_names[worst]} runs from {q[:, worst].min():.4g} to {q[:, worst].max():.4g}, its "
        f"limits are {low[worst]:.4g} and {high[worst]:.4g}"
    )
    fix = (
        'check the zero of the position, its unit and sign (a mapping file, --mapping FILE, states them: units = {position = "deg"}, '
        "sign = {joint = -1}), or the limits of the description"
    )
    overshot = bool(beyond[worst] <= OVERSHOOT["position"])
    return [_finding("position", sentence, fix, named(recording, outside), overshot=overshot)]


def _finding(name: str, sentence: str, fix: str, joints: tuple[str, ...], *, overshot: bool) -> Finding:
    """A note where a controller that overshoots explains it, else a warning."""
    if not overshot:
        return Finding(f"{name}_limit", "warning", sentence, fix, joints)
    fix = f"a controller that overshoots explains it (dynid excite --fraction 0.9 leaves it room); otherwise {fix}"
    return Finding(f"{name}_limit", "note", sentence, fix, joints)
