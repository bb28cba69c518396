"""Position commands as a drive receives them: held from stamp to stamp, and late by a delay.

A command that is held is a staircase. What a filtered row needs of it is its mean about a time, and what an integration step
needs is its mean over the step; both are differences of its integral, which is exact for any delay, also between samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from dynid.arrays import Array, check_positive, freeze, matrix
from dynid.errors import InputError
from dynid.signals.recording import checked_clock

Between: TypeAlias = Literal["held", "linear"]
BETWEEN: tuple[Between, ...] = ("held", "linear")


@dataclass(frozen=True, eq=False)
class Command:
    """Commanded positions of every joint, as logged.

    Args:
        time: stamps, s, increasing.
        values: ``(n, joints)``, rad or m.
        between: ``held`` until the next stamp, as a digital interface does, or ``linear`` where the drive interpolates.

    Examples:
        >>> import numpy as np
        >>> import dynid
        >>> from dynid.signals.commands import Command
        >>> command = Command(np.array([0.0, 0.01, 0.02]), np.array([[0.0], [1.0], [1.0]]))
        >>> command.mean(np.array([0.014]), 0.004, np.array([0.004])).tolist()
        [[0.5]]
    """

    time: Array
    values: Array
    between: Between = "held"

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", checked_clock(self.time))
        object.__setattr__(self, "values", matrix("command", self.values, (len(self.time), None)))
        if self.between not in BETWEEN:
            raise InputError(f"unknown interpolation '{self.between}' of commands; available: {', '.join(BETWEEN)}")

    @property
    def n_joints(self) -> int:
        return int(self.values.shape[1])

    @cached_property
    def _integral(self) -> Array:
        """Integral of the command from the first stamp to each."""
        steps = np.diff(self.time)[:, None]
        height = self.values[:-1] if self.between == "held" else 0.5 * (self.values[:-1] + self.values[1:])
        return freeze(np.concatenate([np.zeros((1, self.n_joints)), np.cumsum(steps * height, axis=0)]))

    def mean(self, centre: Array, width: float, delay_s: Array) -> Array:
        """Mean over ``centre +- width / 2`` of what arrives ``delay_s`` (one per joint) late, ``(times, joints)``."""
        early, late = (self._integrated(centre + end * width, delay_s) for end in (-0.5, 0.5))
        return np.asarray((late - early) / width)

    def at(self, time: Array, delay_s: Array) -> Array:
        """What is in force at some times, ``(times, joints)``."""
        found = np.empty((len(time), self.n_joints))
        for j in range(self.n_joints):
            when = time - delay_s[j]
            if self.between == "linear":
                found[:, j] = np.interp(when, self.time, self.values[:, j])
            else:
                place = np.searchsorted(self.time, when + 1e-9, side="right") - 1
                found[:, j] = self.values[np.clip(place, 0, None), j]
        return found

    def band_limited(self, time: Array, period_s: float, delay_s: Array) -> Array:
        """The command at evenly spaced times without what aliases: its mean over a period, whose droop is made up for.

        A mean over ``T`` weakens a wave of ``f`` to ``sinc(f T)``; ``(26 x_0 - x_-1 - x_1) / 24`` restores it up to ``(f T)^4``.
        """
        mean = self.mean(time, period_s, delay_s)
        if len(mean) < 3:
            return mean
        bent = np.zeros_like(mean)
        bent[1:-1] = mean[2:] - 2.0 * mean[1:-1] + mean[:-2]
        return np.asarray(mean - bent / 24.0)

    def _integrated(self, time: Array, delay_s: Array) -> Array:
        found = np.empty((len(time), self.n_joints))
        first, last = self.time[0], self.time[-1]
        for j in range(self.n_joints):
            when = time - delay_s[j]
            inside = self._inside(when, j)
            before, after = np.minimum(when - first, 0.0), np.maximum(when - last, 0.0)
            found[:, j] = inside + before * self.values[0, j] + after * self.values[-1, j]
        return found

    def _inside(self, when: Array, j: int) -> Array:
        if self.between == "held":
            return np.asarray(np.interp(when, self.time, self._integral[:, j]))
        place = np.clip(np.searchsorted(self.time, when, side="right") - 1, 0, len(self.time) - 2)
        width = self.time[place + 1] - self.time[place]
        s = np.clip(when - self.time[place], 0.0, width)
        low, high = self.values[place, j], self.values[place + 1, j]
        return np.asarray(self._integral[place, j] + s * (low + 0.5 * s / width * (high - low)))


@dataclass(frozen=True, eq=False)
class PositionControl:
    """What is known of the drives of one log: ``tau = kp (u - q) - kd v``, at most ``limit``; with velocity control ``kd (u - v)``.

    Args:
        kp: position gain, N m/rad or N/m, one per joint; where it is estimated, the number that it is a multiple of.
        kd: velocity gain, N m s/rad or N s/m.
        limit: largest torque of a drive; infinite where none is known.
        rate: whether the drive damps ``v - u'``, the speed relative to that of the command, and not ``v`` itself.
        dead_band: error of position within which the drive does nothing, rad or m, as hobby servos have it.
        velocity: whether commands are speeds: ``tau = kd (u - v)``.
        stall: torque of the motor at rest, which falls to zero at ``no_load_speed``; infinite where the speed does not limit it.
        no_load_speed: rad/s or m/s at the joint.
        lag_s: time constant of the current loop, s: the torque follows what the controller asks for by a first-order lag.
        reach: error of position beyond which the drive gives no more, rad or m: a voltage that is at its supply; infinite for none.
        supply: voltage of the supply over time, zero where the drive is switched off. The position gain is then a torque per volt, and
            the velocity gain that of the voltage which the motor induces. None for drives that are given torques.

    Examples:
        >>> import numpy as np
        >>> import dynid
        >>> from dynid.signals.commands import PositionControl
        >>> PositionControl(np.array([20.0]), np.array([1.5])).limit.tolist()
        [inf]
    """

    kp: Array
    kd: Array
    limit: Array | None = None
    rate: bool = False
    dead_band: float = 0.0
    velocity: bool = False
    stall: Array | None = None
    no_load_speed: Array | None = None
    lag_s: float = 0.0
    reach: Array | None = None
    supply: Command | None = None

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.kp))
        for name in ("limit", "stall", "no_load_speed", "reach"):
            given = getattr(self, name)
            values = np.full(n, np.inf) if given is None else np.broadcast_to(np.asarray(given, dtype=np.float64), (n,))
            if not (values > 0.0).all():
                raise InputError(f"{name} of the drives is {values.min():g}, expected a positive number")
            object.__setattr__(self, name, freeze(values))
        for name in ("kp", "kd"):
            values = matrix(name, getattr(self, name), (n,))
            if (values < 0.0).any():
                raise InputError(f"{name} of joint {int(np.argmin(values)) + 1} is {values.min():g}, expected zero or more")
            object.__setattr__(self, name, values)
        check_positive("dead band", self.dead_band, or_zero=True)
        check_positive("lag of the current loop", self.lag_s, "seconds", or_zero=True)
        if np.isfinite(self.no_load_speed).any() and not np.isfinite(self.stall).all():  # type: ignore[arg-type]
            raise InputError("a no-load speed was given without the torque at rest, expected both")
        if self.velocity and self.rate:
            raise InputError(
                "velocity control follows the commanded speed already, expected no damping of its rate beside it"
            )

    def parts(self, command: Array, rate: Array, q: Array, v: Array, time: Array) -> tuple[Array, Array]:
        """What the position gain and the velocity gain make of a motion: torque is the first less the second."""
        if self.supply is not None:
            assert self.reach is not None
            volts = self.supply.at(time, np.zeros(len(self.kp)))
            error = np.clip(self.acting(command - q), -self.reach, self.reach)
            return self.kp * error * volts, self.kd * (v - rate) * (volts > 0.0)
        if self.velocity:
            return np.zeros_like(q), self.kd * (v - command)
        return self.kp * self.acting(command - q), self.kd * (v - rate)

    def limited(self, torque: Array, v: Array) -> Array:
        """What of a torque the motor can give at its speed."""
        assert self.limit is not None
        assert self.stall is not None
        assert self.no_load_speed is not None
        high = np.minimum(self.limit, self.stall * np.maximum(1.0 - v / self.no_load_speed, 0.0))
        low = np.maximum(-self.limit, -self.stall * np.maximum(1.0 + v / self.no_load_speed, 0.0))
        return np.asarray(np.clip(torque, low, high))

    def lagged(self, torque: Array, period_s: float) -> Array:
        """Torque behind the current loop, ``lag tau' + tau = asked``, on an even clock and at rest before it."""
        if not self.lag_s:
            return torque
        from scipy.signal import lfilter

        # exact for a torque that is linear between samples
        ratio = period_s / self.lag_s
        gone = np.exp(-ratio)
        first = (1.0 - gone) / ratio
        b, a = [1.0 - first, first - gone], [1.0, -gone]
        return np.asarray(lfilter(b, a, torque, axis=0, zi=first * torque[:1])[0])

    def acting(self, error: Array) -> Array:
        """What of an error of position the drive acts on: what lies beyond its dead band."""
        return np.asarray(error - np.clip(error, -self.dead_band, self.dead_band)) if self.dead_band else error
