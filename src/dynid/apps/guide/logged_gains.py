"""Drive gains that a log itself holds: controllers that log the torque they want and the current they ask for.

A Universal Robots controller logs ``target_moment`` and ``target_current``. The current carries the torque and the friction that
the controller compensates, so with the gain ``K`` of a joint

    i = tau / K + c sign(v) + d v + e

which is least squares in ``1 / K``, ``c``, ``d`` and ``e``; at standstill it is ``tau / i``. Only the controller's own numbers enter: a
gain is as right as the controller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.io.logs.columns import HasJoints
from dynid.io.logs.formats import open_table
from dynid.io.logs.log_file import LogFile, log_path
from dynid.io.logs.read import read_recording
from dynid.io.logs.table import OpenOptions
from dynid.signals.recording import Recording

_PAIRS = (("target_moment", "target_current"), ("tau_des", "i_des"), ("target_torque", "target_current"))
_FORMS = ("_{index}", "{index}", "[{index}]", "_{number}", "{number}")
MOST_LEFT = 0.15
"""Share of the wanted current that the wanted torque and friction may leave unexplained."""
MOST_UNSURE = 0.05
"""Relative standard deviation of a gain up to which it is told."""
STILL = 0.01
"""rad/s or m/s below which a joint's friction has no direction."""
_CORRELATED_S = 0.2
"""Time over which what is left of the current is taken for one number, s."""


@dataclass(frozen=True)
class LoggedGains:
    """Gains of the joints, N m per A (N per A of a sliding joint); NaN where the log does not show one."""

    joints: tuple[str, ...]
    values: Array
    sigma: Array
    columns: tuple[str, str]

    @property
    def complete(self) -> bool:
        """Whether every joint has its gain."""
        return bool(np.isfinite(self.values).all())


def logged_gains(log: str | Path, robot: HasJoints | Sequence[str]) -> LoggedGains | None:
    """The gains that the wanted torque and current of a log show; None where it lacks such columns.

    Args:
        log: motion log.
        robot: a robot, or the names of its moving joints.
    """
    with LogFile(log_path(log)) as file:
        names = set(open_table(file.path, OpenOptions(None, None, file)).shapes)
    for torque, current in _PAIRS:
        for form in _FORMS:
            pair = {"torque": torque + form, "current": current + form}
            n_joints = len(robot.joint_names if isinstance(robot, HasJoints) else robot)
            places = [{"index": k, "number": k + 1} for k in range(n_joints)]
            if all(pattern.format(**place) in names for pattern in pair.values() for place in places):
                found = read_recording(log, robot, mapping=pair, kind="motion")
                assert isinstance(found, Recording)
                values, sigma = _fit(found)
                return LoggedGains(found.joint_names, values, sigma, (torque, current))
    return None


def _fit(recording: Recording) -> tuple[Array, Array]:
    """Gain and standard deviation of each joint."""
    assert recording.torque is not None
    assert recording.current is not None
    speed = recording.velocity
    if speed is None:
        speed = np.gradient(recording.position, recording.time, axis=0)
    values, sigma = np.full((2, recording.n_joints), np.nan)
    together = max(1.0, _CORRELATED_S * recording.rate_hz)
    for j in range(recording.n_joints):
        i, tau, v = recording.current[:, j], recording.torque[:, j], speed[:, j]
        A = np.column_stack([tau, np.sign(v) * (np.abs(v) > STILL), v, np.ones_like(v)])
        size = np.linalg.norm(A, axis=0)
        if size[0] == 0.0 or not i.any():
            continue
        A = A[:, size > 0.0]
        solved, *_ = np.linalg.lstsq(A, i, rcond=None)
        left = i - A @ solved
        spread = np.sqrt(together * (left @ left) / max(len(i) - A.shape[1], 1) * np.linalg.pinv(A.T @ A)[0, 0])
        if solved[0] > 0.0 and np.linalg.norm(left) <= MOST_LEFT * np.linalg.norm(i) and spread <= MOST_UNSURE * solved[0]:
            values[j], sigma[j] = 1.0 / solved[0], spread / solved[0] ** 2
    return values, sigma
