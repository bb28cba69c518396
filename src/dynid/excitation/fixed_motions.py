"""Motions without a search: velocity sinusoids for friction, and ramps, steps and chirps for actuators.

Sinusoids (Gaz and others 2019, (31)):

    dq_i(t) = A_i sin(2 pi t / T_i),     q_i(t) = c_i - A_i T_i / (2 pi) cos(2 pi t / T_i)

One joint alone shows its friction over all speeds while the rest of the arm stands still; all joints together, with periods that have
no common multiple, show whether what was found for each holds in motion. Amplitudes, periods and centres are given, or follow from
the limits.

Commands for actuators: ramps in both directions at two speeds tell dry from viscous friction and from the offset; rests between them
show dead band and backlash; steps show the delay; a chirp up to several hertz shows rotor inertia. Each joint moves alone first, then
all move together with sweeps that start at different frequencies, so that coupling is seen. Played as position commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze, matrix
from dynid.engine import one_blas_thread
from dynid.errors import InputError
from dynid.excitation.excitation_result import Excitation, finished_excitation
from dynid.excitation.limits import Limits, margins_of
from dynid.excitation.ramps import roomy_pose
from dynid.excitation.trajectories import FourierTrajectory, PolynomialTrajectory, Trajectory
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base

N_TIMES = 4000
"""Times at which sinusoids are held against the limits."""
SPARE = 0.005
"""Share of the limits that a motion made smaller leaves."""
SMALLEST = 0.02
"""Share of what range, speed and acceleration allow below which sinusoids are not made smaller."""
SHARES = (1.0, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.08)
"""The same shares that are tried for commands."""

KNOTS_HZ = 100.0
"""Rate of the knots of the spline that commands are."""
REST_S, CHIRP_S = 0.5, 8.0
SLOW, FAST = 0.05, 0.5
"""Speeds of the ramps, shares of the velocity limit."""
LARGEST = 0.6
"""Largest excursion from the middle, rad or m, whatever the range."""
UNLIMITED_SPEED, UNLIMITED_ACCELERATION = 3.0, 40.0
"""Taken for joints whose description has no limit, rad/s and rad/s^2."""
LOWEST_HZ, TOP_HZ = 0.3, 8.0

Motion = TypeVar("Motion", bound=Trajectory)


def scaled_within(
    robot: Robot,
    smaller: Callable[[float], Motion],
    limits: Limits,
    n_times: int,
    what: str,
    shares: Sequence[float],
    halvings: int = 0,
) -> tuple[Motion, float]:
    """The first of ever smaller motions ``smaller(share)`` that keeps every limit, and its share.

    Range, velocity and acceleration are kept by how such a motion is made; torque, tool speed and clearance may ask for less.
    ``halvings`` bring the share nearer to the last one that was too large.
    """
    high = shares[0]
    for share in shares:
        left = margins_of(robot, smaller(share), limits, n_times)
        if left.smallest >= 0.0:
            break
        high = share
    else:
        raise InputError(
            f"{what} about the middle of each joint's range exceed the limit of {left.worst.replace('_', ' ')} "
            f"({left.places[left.worst][0]}) even when they are {100.0 * share:.0f} % as large; give narrower ranges with --position "
            "or another limit"
        )
    for _ in range(halvings if share < high else 0):
        middle = 0.5 * (share + high)
        fits = margins_of(robot, smaller(middle), limits, n_times).smallest >= SPARE
        share, high = (middle, high) if fits else (share, middle)
    return smaller(share), share


# Sinusoids ----------------------------------------------------------------------------------------


def sinusoids(amplitude: ArrayLike, period_s: ArrayLike, centre: ArrayLike, length_s: float) -> FourierTrajectory:
    """Sinusoids of velocity, one per joint, as a Fourier series: ``dq = A sin(2 pi t / T)`` about a centre.

    Args:
        amplitude: ``A``, rad/s or m/s; zero for a joint that stands still.
        period_s: ``T``, s.
        centre: middle of the motion, rad or m.
        length_s: length of the motion, s.
    """
    b = matrix("amplitudes", amplitude, (None,))
    period = np.asarray(period_s, dtype=np.float64)
    return FourierTrajectory(period, np.zeros((len(b), 1)), b[:, None], matrix("centres", centre, b.shape), length_s)


def sinusoid_excitation(
    robot: Robot,
    limits: Limits,
    duration_s: float = 20.0,
    *,
    joint: str | None = None,
    amplitude: ArrayLike | None = None,
    period: ArrayLike | None = None,
    centre: ArrayLike | None = None,
    rest: bool = True,
    periods: int = 1,
    seed: int = 0,
) -> Excitation:
    """Sinusoids of velocity, judged like every other motion: each joint up to its largest possible speed, or exactly as given.

    Where they follow from the limits, periods have no common multiple, and all become smaller together until torque, tool speed and
    clearance keep their limits too. Given ones are refused where they exceed a limit.

    Args:
        robot: whose joints the numbers belong to, in order.
        limits: as made by :func:`limits_of`.
        duration_s: length of the motion, s.
        joint: name of the only joint that moves; None for all.
        amplitude: of the velocity, rad/s or m/s, one per joint, zero for a joint that stands still; None for what the limits allow.
        period: s, one for all joints or one per joint; with ``amplitude``.
        centre: rad or m, one per joint; None for the middle of each joint's range, or a free pose where that is none.
        rest: put ramps from and to rest around the motion.
        periods: how often the motion is to be played.
        seed: of the periods that follow from the limits.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.fixed_motions import sinusoid_excitation
        >>> robot = dynid.demo_robot()
        >>> motion = sinusoid_excitation(robot, dynid.limits_of(robot), 5.0, joint="elbow").trajectory
        >>> int((motion.b != 0.0).sum())
        1
    """
    began = monotonic()
    middle, notes = limits.centre, limits.notes
    if centre is not None:
        middle = _per_joint("centres (--centre)", centre, robot)
    elif limits.clearance is not None and limits.clearance.broken(middle[None]).any():
        middle = roomy_pose(robot, limits, middle)
        notes = (*notes, "the sinusoids are about a pose with more room: bodies are too near in the middle of the ranges")
    if amplitude is not None and period is not None:
        motion = sinusoids(
            _per_joint("amplitudes (--amplitude)", amplitude, robot),
            _per_joint("periods (--period-s)", period, robot, one=True),
            middle,
            duration_s,
        )
        margins = margins_of(robot, motion, limits, N_TIMES)
        if margins.smallest < 0.0:
            where, time_s = margins.places[margins.worst]
            raise InputError(
                f"the sinusoids exceed the limit of {margins.worst.replace('_', ' ')} by {-100.0 * margins.smallest:.3g} % at "
                f"{time_s:.3f} s ({where}); change --amplitude, --period-s or --centre"
            )
    else:
        largest = largest_sinusoids(robot, limits, duration_s, seed)
        if joint is not None:
            largest = largest.scaled(np.arange(robot.n_joints) == robot.joint_index(joint))
        largest = replace(largest, offset=middle)
        motion, _ = scaled_within(robot, largest.scaled, limits, N_TIMES, "sinusoids", (1.0, SMALLEST), halvings=10)
    with one_blas_thread():
        base = reduce_to_base(robot)
    return finished_excitation(
        robot,
        base,
        motion,
        limits,
        criterion="velocity sinusoids",
        rest=rest,
        periods=periods,
        n_times=N_TIMES,
        began=began,
        seed=seed,
        notes=notes,
    )


def _per_joint(name: str, values: ArrayLike, robot: Robot, *, one: bool = False) -> Array:
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if one and array.shape == (1,):
        return np.full(robot.n_joints, array[0])
    if array.shape != (robot.n_joints,):
        raise InputError(
            f"{array.size} {name} were given for the {robot.n_joints} joints {', '.join(robot.joint_names)}; expected one per joint"
        )
    return array


def largest_sinusoids(robot: Robot, limits: Limits, duration_s: float, seed: int = 0) -> FourierTrajectory:
    """Every joint with the amplitude and period at which its range, velocity and acceleration limits meet.

    A period ``T`` allows ``A <= min(v_max, pi R / T, a_max T / 2 pi)`` with the range ``R``; the largest ``A`` has ``T`` anywhere between
    ``2 pi A / a_max`` and ``pi R / A``. Each joint takes its own place in that interval.
    """
    spare = 0.98
    span, speed, rate = 2.0 * spare * limits.reach, spare * limits.velocity, spare * limits.acceleration
    with np.errstate(invalid="ignore"):
        fastest = np.minimum(speed, np.sqrt(0.5 * rate * span))  # where pi R / T = a T / 2 pi
    shortest = np.where(np.isfinite(rate), 2.0 * np.pi * fastest / rate, 0.0)
    longest = np.pi * span / fastest
    place = np.random.default_rng(seed).uniform(0.35, 0.9, robot.n_joints)
    period = np.where(shortest > 0.0, shortest ** (1.0 - place) * longest**place, place * longest)
    if np.isfinite(limits.jerk).any():  # A (2 pi / T)^2 <= jerk
        period = np.maximum(period, np.minimum(2.0 * np.pi * np.sqrt(fastest / (spare * limits.jerk)), longest))
        fastest = np.minimum(fastest, spare * limits.jerk * (period / (2.0 * np.pi)) ** 2)
    sign = np.where(np.arange(robot.n_joints) % 2 == 0, 1.0, -1.0)
    return sinusoids(sign * fastest, freeze(period), limits.centre, float(duration_s))


# Commands for actuators ---------------------------------------------------------------------------


def actuator_excitation(robot: Robot, limits: Limits, *, top_hz: float = TOP_HZ, seed: int = 0) -> Excitation:
    """Ramps, steps and chirps for ``dynid actuators``, judged like every other motion.

    Args:
        robot: whose joints move.
        limits: as made by ``limits_of``.
        top_hz: highest frequency of the chirps, Hz.
        seed: kept with the result; nothing is random.
    """
    began = monotonic()
    if not 1.0 <= top_hz <= 0.2 * KNOTS_HZ:
        raise InputError(f"--top-hz is {top_hz:g}, expected 1 to {0.2 * KNOTS_HZ:g} Hz")
    whole = commands_through(_knots(limits, top_hz))
    n_times = int(whole.duration_s * KNOTS_HZ)
    motion, share = scaled_within(robot, lambda part: whole.scaled(part, limits.centre), limits, n_times, "commands", SHARES)
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
        n_times=n_times,
        began=began,
        seed=seed,
        notes=notes,
    )


def _knots(limits: Limits, top_hz: float) -> Array:
    """Positions of all joints, one part after the other."""
    n = len(limits.velocity)
    centre = limits.centre
    parts = [np.tile(centre, (round(REST_S * KNOTS_HZ), 1))]
    for j in range(n):
        alone = np.concatenate(list(_alone(limits, j, top_hz)))
        part = np.tile(centre, (len(alone), 1))
        part[:, j] += alone
        parts.append(part)
    if n > 1:
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


def commands_through(knots: ArrayLike, rate_hz: float = KNOTS_HZ) -> PolynomialTrajectory:
    """A motion through positions ``(knots, joints)`` at an even clock, joined by splines of degree 5, at rest at both ends."""
    from scipy.interpolate import make_interp_spline

    places = matrix("knots", knots, (None, None))
    if len(places) < 6:
        raise InputError(f"a motion of {len(places)} knots was given, expected at least 6")
    still: Any = [(1, np.zeros(places.shape[1])), (2, np.zeros(places.shape[1]))]
    ends: Any = (still, still)
    return PolynomialTrajectory.of_spline(make_interp_spline(np.arange(len(places)) / rate_hz, places, k=5, bc_type=ends))
