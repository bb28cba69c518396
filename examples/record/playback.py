"""A motion of ``dynid excite`` read, checked and interpolated, and a log written; shared by the recording scripts.

Needs NumPy alone, so that it runs on the robot's own computer without dynid. Tried by ``tests/examples/test_record_scripts.py``.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

NEAR = 0.0087
"""How far from the start (rad) a robot may stand: the way there is not checked for collisions."""

REST = 0.01
"""Speed (rad/s) below which a joint counts as standing still."""


class RefusedError(Exception):
    """Something is not as it must be before a robot moves; the message says what."""


@dataclass(frozen=True)
class Motion:
    """Joint positions and velocities over time, one row per sample."""

    time: Array
    position: Array
    velocity: Array

    @property
    def n_joints(self) -> int:
        return self.position.shape[1]

    @property
    def duration_s(self) -> float:
        return float(self.time[-1] - self.time[0])

    def at(self, seconds: ArrayLike) -> tuple[Array, Array]:
        """Position and velocity at times from the start, by the cubic that has both at the samples around.

        q(s) = h00 q0 + h10 h v0 + h01 q1 + h11 h v1 with s in [0, 1] between two samples h apart; held at both ends.
        """
        t = np.clip(np.atleast_1d(np.asarray(seconds, dtype=np.float64)), 0.0, self.duration_s) + self.time[0]
        k = np.clip(np.searchsorted(self.time, t, side="right") - 1, 0, len(self.time) - 2)
        h = (self.time[k + 1] - self.time[k])[:, None]
        s = (t - self.time[k])[:, None] / h
        q0, q1, v0, v1 = self.position[k], self.position[k + 1], self.velocity[k], self.velocity[k + 1]
        position = (1 + 2 * s) * (1 - s) ** 2 * q0 + s * (1 - s) ** 2 * h * v0
        position += s**2 * (3 - 2 * s) * q1 + s**2 * (s - 1) * h * v1
        velocity = 6 * s * (1 - s) * (q1 - q0) / h + (1 - s) * (1 - 3 * s) * v0 + s * (3 * s - 2) * v1
        return position, velocity

    def check(self, n_joints: int, max_speed: float, q_min: ArrayLike = -np.inf, q_max: ArrayLike = np.inf) -> None:
        """Refuse a motion for another robot, that jumps, is too fast, leaves the joint range or does not start at rest."""
        if self.n_joints != n_joints:
            raise RefusedError(f"the motion has {self.n_joints} joints, the robot has {n_joints}")
        ends = np.abs(self.velocity[[0, -1]]).max()
        if ends > REST:
            raise RefusedError(
                f"the motion moves at {ends:.3g} rad/s at its ends, expected rest: design it without --no-rest"
            )
        speed = np.abs(self.velocity).max(axis=0)
        if speed.max() > max_speed:
            j = int(np.argmax(speed))
            raise RefusedError(f"joint {j + 1} reaches {speed[j]:.3g} rad/s, allowed are {max_speed:g}; see --max-speed")
        # Between neighbours a smooth motion moves by its mean speed; a file with lost or shuffled rows does not.
        steps = np.diff(self.time)[:, None]
        jump = np.abs(np.diff(self.position, axis=0) - 0.5 * steps * (self.velocity[1:] + self.velocity[:-1]))
        if jump.max() > 1e-2:
            raise RefusedError(
                f"the motion jumps by {jump.max():.3g} rad at {self.time[int(jump.max(axis=1).argmax())]:.4g} s"
            )
        low, high = self.position.min(axis=0), self.position.max(axis=0)
        outside = (low < q_min) | (high > q_max)
        if outside.any():
            j = int(np.argmax(outside))
            raise RefusedError(f"joint {j + 1} moves from {low[j]:.4g} to {high[j]:.4g} rad, outside the robot's range")

    def summary(self) -> str:
        """One line for the question whether to go on."""
        low, high, speed = self.position.min(axis=0), self.position.max(axis=0), np.abs(self.velocity).max(axis=0)
        ranges = ", ".join(
            f"joint {j + 1} {a:.2f}..{b:.2f} rad at {v:.2f} rad/s"
            for j, (a, b, v) in enumerate(zip(low, high, speed, strict=True))
        )
        return f"{self.duration_s:.1f} s of motion: {ranges}"


def read_motion(path: str | Path) -> Motion:
    """The CSV of ``dynid excite``: columns ``t, q1.., dq1..`` (and ``ddq1..``, which are not needed)."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        header = [name.strip() for name in next(csv.reader(file))]
    n = sum(name[0] == "q" and name[1:].isdigit() for name in header)
    names = ["t", *(f"q{j + 1}" for j in range(n)), *(f"dq{j + 1}" for j in range(n))]
    missing = [name for name in names if name not in header]
    if n == 0 or missing:
        raise RefusedError(f"{path}: expected the columns t, q1.., dq1.. of dynid excite, found {', '.join(header)}")
    table = np.loadtxt(path, delimiter=",", skiprows=1, usecols=[header.index(name) for name in names], ndmin=2)
    if len(table) < 2 or not np.isfinite(table).all() or np.any(np.diff(table[:, 0]) <= 0.0):
        raise RefusedError(f"{path}: expected at least two rows of finite numbers with increasing time")
    return Motion(table[:, 0], table[:, 1 : n + 1], table[:, n + 1 :])


def check_start(position: ArrayLike, start: ArrayLike, near: float) -> float:
    """Largest distance of a joint from the start of the motion; refused where it is beyond ``near``."""
    distance = np.abs(np.asarray(position, dtype=np.float64) - np.asarray(start, dtype=np.float64))
    j = int(np.argmax(distance))
    if distance[j] > near:
        raise RefusedError(
            f"joint {j + 1} is {distance[j]:.3g} rad from the start of the motion, allowed are {near:g}: "
            "take the robot there, or design the motion with --home where it stands"
        )
    return float(distance[j])


def approach(position: ArrayLike, start: ArrayLike, speed: float, rate_hz: float = 100.0) -> Motion:
    """A slow straight line in joint space: q0 + (q1 - q0)(10 s^3 - 15 s^4 + 6 s^5), at most ``speed`` rad/s."""
    q0, q1 = np.asarray(position, dtype=np.float64), np.asarray(start, dtype=np.float64)
    duration = max(2.0, 1.875 * float(np.abs(q1 - q0).max()) / speed)  # 1.875 is the steepest slope of the polynomial
    time = np.linspace(0.0, duration, round(duration * rate_hz) + 1)
    s = (time / duration)[:, None]
    shape, slope = s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2 / duration
    return Motion(time, q0 + (q1 - q0) * shape, (q1 - q0) * slope)


def confirm(question: str) -> None:
    """Go on only after a typed yes."""
    print(question)
    print("Is the space around the robot clear and the emergency stop in your hand? Type yes to move: ", end="", flush=True)
    if sys.stdin.readline().strip().lower() != "yes":
        raise RefusedError("not confirmed, nothing was moved")


def check_new(path: str | Path) -> Path:
    """Refuse to write over a log, before anything moves."""
    file = Path(path)
    if file.exists():
        raise RefusedError(f"{file}: is there already, expected a new file")
    return file


def write_log(path: str | Path, columns: Sequence[str], rows: Iterable[Sequence[float]]) -> int:
    """Write rows of numbers with all their digits; returns how many."""
    count = 0
    with Path(path).open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([repr(float(value)) for value in row])
            count += 1
    return count
