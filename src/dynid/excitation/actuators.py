"""Commands that show actuators: slow and fast ramps with rests, steps, and chirps, joint by joint and all together.

Ramps in both directions at two speeds tell dry from viscous friction and from the offset; rests between them show dead band and backlash;
steps show the delay; a chirp up to several hertz shows rotor inertia. Each joint moves alone first, then all move together with sweeps
that start at different frequencies, so that coupling is seen. Played as position commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, make_interp_spline

from dynid.adapters.blas import one_blas_thread
from dynid.arrays import Array, freeze, matrix
from dynid.errors import InputError
from dynid.excitation.judged import Excitation, finished_excitation
from dynid.excitation.limits import Limits, margins_of
from dynid.excitation.shape import Trajectory, times
from dynid.regression.base import reduce_to_base
from dynid.robot.model import Robot

KNOTS_HZ = 100.0
"""Rate of the knots of the spline that the motion is."""
REST_S, CHIRP_S = 0.5, 8.0
SLOW, FAST = 0.05, 0.5
"""Speeds of the ramps, shares of the velocity limit."""
LARGEST = 0.6
"""Largest excursion from the middle, rad or m, whatever the range."""
UNLIMITED_SPEED, UNLIMITED_ACCELERATION = 3.0, 40.0
"""Taken for joints whose description has no limit, rad/s and rad/s^2."""
LOWEST_HZ, TOP_HZ = 0.3, 8.0
SHARES = (1.0, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.08)
"""Sizes that are tried until torque, tool speed and clearance keep their limits too."""


@dataclass(frozen=True, eq=False)
class CommandTrajectory(Trajectory):
    """A motion through knots at an even clock, joined by splines of degree 5.

    Args:
        knots: positions, ``(knots, joints)``, rad or m.
        rate_hz: of the knots.

    Examples:
        >>> import numpy as np
        >>> from dynid.excitation.actuators import CommandTrajectory
        >>> motion = CommandTrajectory(np.sin(np.linspace(0.0, 1.0, 101))[:, None])
        >>> motion.duration_s
        1.0
    """

    knots: Array
    rate_hz: float = KNOTS_HZ

    def __post_init__(self) -> None:
        object.__setattr__(self, "knots", matrix("knots", self.knots, (None, None)))
        if len(self.knots) < 6:
            raise InputError(f"a motion of {len(self.knots)} knots was given, expected at least 6")

    @property
    def n_joints(self) -> int:
        return int(self.knots.shape[1])

    @property
    def duration_s(self) -> float:
        return (len(self.knots) - 1) / self.rate_hz

    @cached_property
    def _spline(self) -> BSpline:
        still: Any = [(1, np.zeros(self.n_joints)), (2, np.zeros(self.n_joints))]
        ends: Any = (still, still)
        return make_interp_spline(np.arange(len(self.knots)) / self.rate_hz, self.knots, k=5, bc_type=ends)

    def derivative(self, time: ArrayLike, order: int) -> Array:
        return np.asarray(self._spline(np.clip(times(time), 0.0, self.duration_s), nu=order), dtype=np.float64)

    def as_json(self) -> dict[str, Any]:
        return {"shape": "actuators", "rate_hz": self.rate_hz, "knots": self.knots.tolist()}


def actuator_excitation(
    robot: Robot, limits: Limits, *, top_hz: float = TOP_HZ, together: bool = True, seed: int = 0
) -> Excitation:
    """Ramps, steps and chirps for ``dynid actuators``, judged like every other motion.

    Args:
        robot: whose joints move.
        limits: as made by ``limits_of``.
        top_hz: highest frequency of the chirps, Hz.
        together: whether all joints also move together.
        seed: kept with the result; nothing is random.
    """
    began = monotonic()
    if not 1.0 <= top_hz <= 0.2 * KNOTS_HZ:
        raise InputError(f"--top-hz is {top_hz:g}, expected 1 to {0.2 * KNOTS_HZ:g} Hz")
    whole = CommandTrajectory(_knots(limits, top_hz, together))
    motion, share = _within(robot, whole, limits)
    notes = (
        *limits.notes,
        *((f"excursions are {100.0 * share:.0f} % of what range and speed would allow",) if share < 1.0 else ()),
    )
    with one_blas_thread():
        base = reduce_to_base(robot)
    return finished_excitation(
        robot,
        base,
        motion,
        limits,
        criterion="ramps, steps and chirps for actuators",
        rest=False,
        periods=1,
        n_times=int(motion.duration_s * KNOTS_HZ),
        began=began,
        seed=seed,
        notes=notes,
    )


def _knots(limits: Limits, top_hz: float, together: bool) -> Array:
    """Positions of all joints, one part after the other."""
    n = len(limits.velocity)
    centre = limits.centre
    parts = [np.tile(centre, (round(REST_S * KNOTS_HZ), 1))]
    for j in range(n):
        alone = np.concatenate(list(_alone(limits, j, top_hz)))
        part = np.tile(centre, (len(alone), 1))
        part[:, j] += alone
        parts.append(part)
    if together and n > 1:
        wave = [0.5 * _chirp(*_room(limits, j), top_hz * (1.0 - 0.5 * j / n), backwards=j % 2 == 1) for j in range(n)]
        parts.append(centre + np.column_stack(wave))
    parts.append(parts[0])
    return np.concatenate(parts)


def _room(limits: Limits, j: int) -> tuple[float, float, float]:
    """Excursion, speed and acceleration that a joint may use, a little less than its limits."""
    low, high = limits.range[j]
    speed, acceleration = float(limits.velocity[j]), float(limits.acceleration[j])
    return (
        min(0.4 * float(high - low), LARGEST),
        0.8 * (speed if np.isfinite(speed) else UNLIMITED_SPEED),
        0.8 * (acceleration if np.isfinite(acceleration) else UNLIMITED_ACCELERATION),
    )


def _alone(limits: Limits, j: int, top_hz: float) -> Iterator[Array]:
    """Excursions of one joint while the others rest."""
    reach, speed, acceleration = _room(limits, j)
    rest = np.zeros(round(REST_S * KNOTS_HZ))
    for share in (SLOW, FAST):
        for start, end in ((0.0, reach), (reach, -reach), (-reach, 0.0)):
            yield _move(start, end, share * speed, acceleration)
            yield rest + end
    step = reach / 3.0
    for start, end in ((0.0, step), (step, -step), (-step, 0.5 * step), (0.5 * step, 0.0)):
        yield _move(start, end, speed, acceleration)
        yield rest + end
    yield _chirp(reach, speed, acceleration, top_hz)
    yield rest


def _move(start: float, end: float, speed: float, acceleration: float) -> Array:
    """From rest to rest with constant speed between: the speed rises and falls along half a cosine."""
    distance = abs(end - start)
    # a rise over T with half a cosine has the peak acceleration pi v / (2 T) and covers v T / 2
    speed = min(speed, np.sqrt(2.0 * distance * acceleration / np.pi))
    rise = 0.5 * np.pi * speed / acceleration
    flat = max(distance / speed - rise, 0.0)
    time = np.arange(1, int(np.ceil((2.0 * rise + flat) * KNOTS_HZ)) + 1) / KNOTS_HZ
    ramp = np.clip(time / rise, 0.0, 1.0) if rise > 0.0 else np.ones_like(time)
    fall = np.clip((time - rise - flat) / rise, 0.0, 1.0) if rise > 0.0 else np.zeros_like(time)

    def covered(part: Array) -> Array:
        return np.asarray(rise * (0.5 * part - np.sin(np.pi * part) / (2.0 * np.pi)))

    level = np.clip(time - rise, 0.0, flat)
    way = speed * (covered(ramp) + level + rise * fall - covered(fall))
    return np.asarray(start + np.sign(end - start) * way * distance / way[-1])


def _chirp(reach: float, speed: float, acceleration: float, top_hz: float, *, backwards: bool = False) -> Array:
    """A sine whose frequency rises exponentially, as large as speed and acceleration allow, faded in and out."""
    time = np.arange(round(CHIRP_S * KNOTS_HZ)) / KNOTS_HZ
    ratio = np.log(top_hz / LOWEST_HZ) / CHIRP_S
    frequency = LOWEST_HZ * np.exp(ratio * time)
    phase = 2.0 * np.pi * (frequency - LOWEST_HZ) / ratio
    w = 2.0 * np.pi * frequency
    size = np.minimum(np.minimum(0.5 * reach, 0.7 * speed / w), 0.7 * acceleration / w**2)
    fade = np.clip(np.minimum(time, CHIRP_S - time) / 0.5, 0.0, 1.0)
    wave = size * np.sin(phase) * 0.5 * (1.0 - np.cos(np.pi * fade))
    return np.asarray(wave[::-1] if backwards else wave)


def _within(robot: Robot, motion: CommandTrajectory, limits: Limits) -> tuple[CommandTrajectory, float]:
    """The motion made smaller about the middle until it keeps every limit."""
    for share in SHARES:
        knots = limits.centre + share * (motion.knots - limits.centre)
        smaller = replace(motion, knots=freeze(knots))
        worst = margins_of(robot, smaller, limits, int(motion.duration_s * KNOTS_HZ))
        if worst.smallest >= 0.0:
            return smaller, share
    name, margin = min(worst.items(), key=lambda item: item[1].value)
    raise InputError(
        f"commands about the middle of each joint's range exceed the limit of {name.replace('_', ' ')} ({margin.where}) even when they are "
        f"{100.0 * SHARES[-1]:.0f} % as large; give narrower ranges with --position or another limit"
    )
