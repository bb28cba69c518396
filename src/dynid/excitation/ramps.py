"""From rest into a motion and back to rest in the same pose: polynomials of degree 5 within the same limits.

A ramp goes from rest at a free pose ``q_s`` to the state ``(q, v, a)`` with which the motion begins, in time ``T``. With ``s = t / T``
and ``D = q - q_s``

    q(s) = q_s + D (10 s^3 - 15 s^4 + 6 s^5) + v T (-4 s^3 + 7 s^4 - 3 s^5) + a T^2 / 2 (s^3 - 2 s^4 + s^5)

Position, velocity, acceleration and jerk are linear in ``D``, so each limit at each time leaves an interval of ``D``; their
intersection is what the joint may choose from. The way back to rest is the same ramp with time reversed and leaves an interval too;
from a pose in both of them the motion starts and ends in one place, so that a controller may repeat it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.excitation.acceleration_limits import random_poses
from dynid.excitation.limits import POSE_LIMITS, Limits, margins_of
from dynid.excitation.trajectories import FourierTrajectory, PolynomialTrajectory, SequenceTrajectory, Trajectory
from dynid.model.robot import Robot

SHORTEST_S, LONGEST_S = 0.25, 20.0
N_PHASES = 96
"""Beginnings of a periodic motion that are tried."""

SLOW = 0.25
"""Share of velocity and acceleration limits at which a robot goes to the start of a motion and back from its end."""

WAYS = 300
"""Random poses that are tried between home and a motion where the straight way is not free."""

ROOMY_POSES, ROOMY_SHARE = 400, 0.5
"""Random poses of which one with much room is taken, and the share of each range in which it lies."""

_N_TIMES = 41

MOST_TRIES = 200
"""Ramps with a common pose that are held against all limits before ramps without one are taken, of which three times as many are."""

_RESERVE = 1e-3
"""Of limits that depend on the pose, for what happens between the times looked at."""


def rest_to_rest(robot: Robot, motion: Trajectory, limits: Limits, periods: int = 1) -> SequenceTrajectory:
    """The motion with ramps from rest before and to rest after it.

    A periodic motion is begun where its ramps can be shortest. It ends where it starts if ramps from and to a common pose exist, or
    a way back from its end to its start; without either it stays open (``closed`` of the result says so). Ramps and way respect
    every limit, those on torque, tool speed and clearance included. A motion that is at rest at its ends needs no ramps.

    Args:
        robot: the robot.
        motion: any motion.
        limits: as made by :func:`limits_of`.
        periods: how often the motion is played.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.ramps import rest_to_rest
        >>> from dynid.excitation.shapes import random_fourier
        >>> robot = dynid.demo_robot()
        >>> motion = random_fourier(robot, period_s=5.0, fraction=0.5)
        >>> rest_to_rest(robot, motion, dynid.limits_of(robot)).at_rest
        True
    """
    if periods < 1:
        raise InputError(f"{periods} periods asked for, expected at least 1")
    if motion.at_rest:
        whole = SequenceTrajectory((motion,))
    else:
        found = next(
            chain(_ramps(robot, motion, limits, True, MOST_TRIES), _ramps(robot, motion, limits, False, 3 * MOST_TRIES)),
            None,
        )
        if found is None:
            raise InputError(
                f"no ramp of up to {LONGEST_S:g} s leads from rest into this motion within the limits of robot '{robot.name}'; "
                "design one that is itself at rest at its ends (--shape bspline; in Python FourierShape(at_rest=True))"
            )
        into, core, out = found
        whole = SequenceTrajectory((into, *(core,) * (periods if core.periodic else 1), out))
    if not whole.closed:
        whole = SequenceTrajectory((*whole.pieces, *_way_back(robot, whole, limits)))
    if periods > 1 and (motion.at_rest or not motion.periodic):
        if not whole.closed:
            raise InputError(
                f"a motion of robot '{robot.name}' that ends elsewhere than it starts cannot be played {periods} times: no way "
                "back to its start keeps every limit"
            )
        whole = SequenceTrajectory(whole.pieces * periods)
    return whole


def approach(home: Array, pose: Array, limits: Limits) -> PolynomialTrajectory:
    """From rest at one pose to rest at another, as fast as velocity and acceleration limits allow (peaks 15/8 and 10/sqrt(3))."""
    distance = np.abs(pose - home)
    by_speed = 1.875 * distance / limits.velocity
    by_rate = np.sqrt(10.0 / np.sqrt(3.0) * distance / limits.acceleration)
    by_jerk = np.cbrt(60.0 * distance / limits.jerk)
    length = float(max(np.max([by_speed, by_rate, by_jerk]) * 1.001, SHORTEST_S))
    still = np.zeros_like(home)
    return PolynomialTrajectory.between(length, (home, still, still), (pose, still, still))


def from_home(robot: Robot, motion: Trajectory, home: Array, limits: Limits, seed: int = 0) -> SequenceTrajectory:
    """The motion with a slow way from a pose to its start before it, and one from its end back to that pose after it.

    A way is straight in the joints, or by one pose in between where the straight one is not free. It keeps every limit of the motion,
    at a quarter of velocity and acceleration.

    Args:
        robot: the robot.
        motion: one that starts and ends at rest.
        home: where the robot stands, ``(joints,)``, rad or m.
        limits: as made by :func:`limits_of`.
        seed: of the poses in between.
    """
    if not motion.at_rest:
        raise InputError("--home is given for a motion that does not start and end at rest, expected one that does (--rest)")
    slow = replace(limits, velocity=SLOW * limits.velocity, acceleration=SLOW * limits.acceleration)
    check_home(robot, home, limits)
    start, end = motion.derivative([0.0, motion.duration_s], 0)
    there = _free_way(robot, home, start, slow, seed)
    back = there[::-1] if motion.closed else _free_way(robot, end, home, slow, seed)
    pieces = motion.pieces if isinstance(motion, SequenceTrajectory) else (motion,)
    return SequenceTrajectory((*_legs(there, slow), *pieces, *_legs(back, slow)))


def _free_way(robot: Robot, begin: Array, end: Array, limits: Limits, seed: int) -> list[Array]:
    """Poses between which straight ways in the joints keep every limit."""
    middles = [limits.centre, *random_poses(robot, WAYS, seed)]
    for between in ([], *([middle] for middle in middles)):
        poses = [begin, *between, end]
        if all(_fits(robot, leg, limits) for leg in _legs(poses, limits)):
            return poses
    leg = approach(begin, end, limits)
    margins = margins_of(robot, leg, limits, 2000)
    where, time_s = margins.places[margins.worst]
    raise InputError(
        f"no way was found between --home and the motion: the straight one breaks the limit of {margins.worst.replace('_', ' ')} "
        f"({where}) after {100.0 * time_s / leg.duration_s:.0f} % of it, and {len(middles)} ways by a pose in between are not free "
        "either; give another --home"
    )


def _legs(poses: list[Array], limits: Limits) -> list[PolynomialTrajectory]:
    return [approach(one, other, limits) for one, other in pairwise(poses)]


def check_home(robot: Robot, home: Array, limits: Limits) -> None:
    """Refuse a pose to start from that itself breaks a limit."""
    if home.shape != (robot.n_joints,):
        raise InputError(
            f"--home has {home.size} numbers, the motion moves {robot.n_joints} joints: {', '.join(robot.joint_names)}"
        )
    low, high = limits.position.T
    for name, value, least, most in zip(robot.joint_names, home, low, high, strict=True):
        if not least <= value <= most:
            raise InputError(
                f"--home has joint '{name}' at {value:g}, expected {least:.4g} to {most:.4g}: what the motion may use of its range"
            )
    still = PolynomialTrajectory.between(1.0, (home, 0.0 * home, 0.0 * home), (home, 0.0 * home, 0.0 * home))
    margins = margins_of(robot, still, limits, 1)
    if margins.smallest < 0.0:
        where, _ = margins.places[margins.worst]
        raise InputError(f"--home itself breaks the limit of {margins.worst.replace('_', ' ')} ({where}); give another pose")


def roomy_pose(robot: Robot, limits: Limits, pose: Array) -> Array:
    """Of a pose and random ones the one in which the nearest bodies are farthest apart; the middle where none are kept apart."""
    if limits.clearance is None:
        return limits.centre
    drawn = random_poses(robot, ROOMY_POSES)
    poses = np.vstack([pose, drawn[(np.abs(drawn - limits.centre) < ROOMY_SHARE * limits.reach).all(axis=1)]])
    spare = (limits.clearance.distances(poses) - limits.clearance.least).min(axis=1)
    return np.asarray(poses[int(np.argmax(spare))])


def _ramps(
    robot: Robot, motion: Trajectory, limits: Limits, closed: bool, most_tries: int
) -> Iterator[tuple[Trajectory, Trajectory, Trajectory]]:
    """Ramp, motion and ramp within all limits, short ramps first; ``closed`` ones start and end in the same pose."""
    turning = motion if isinstance(motion, FourierTrajectory) and motion.periodic else None
    phases = np.zeros(1) if turning is None else np.arange(N_PHASES) * (motion.duration_s / N_PHASES)
    begin = motion.evaluate(phases)
    end = motion.evaluate([motion.duration_s]) if turning is None else begin
    backward = (end[0], -end[1], end[2])
    tries = 0
    for length in np.geomspace(SHORTEST_S, LONGEST_S, 40):
        into, out = (_rest_poses(state, float(length), limits) for state in (begin, backward))
        if closed:
            low, high = np.maximum(into[0], out[0]), np.minimum(into[1], out[1])
            start = stop = 0.5 * (low + high)
            fit = into[2] & out[2] & (low <= high).all(axis=1)
        else:
            start, stop = 0.5 * (into[0] + into[1]), 0.5 * (out[0] + out[1])
            fit = into[2] & out[2]
        for phase in np.flatnonzero(fit):
            if tries >= most_tries:
                return
            tries += 1
            core = motion if turning is None else turning.shifted(float(phases[phase]))
            first, last = zip(*(tuple(part) for part in core.evaluate([0.0, core.duration_s])), strict=True)
            still = np.zeros_like(first[0])
            ramp_in = PolynomialTrajectory.between(float(length), (start[phase], still, still), first)
            ramp_out = PolynomialTrajectory.between(float(length), last, (stop[phase], still, still))
            if all(_fits(robot, ramp, limits) for ramp in (ramp_in, ramp_out)):
                yield ramp_in, core, ramp_out


def _way_back(robot: Robot, motion: Trajectory, limits: Limits) -> tuple[Trajectory, ...]:
    """From the end of a motion to its start, at rest at both, as slow as it must be; nothing if no such way keeps the limits."""
    start, end = motion.derivative([0.0, motion.duration_s], 0)
    fastest = approach(end, start, limits)
    for stretch in (1.0, 1.5, 2.0, 4.0, 8.0):
        way = fastest.slowed(1.0 / stretch)
        if _fits(robot, way, limits):
            return (way,)
    return ()


def _fits(robot: Robot, ramp: Trajectory, limits: Limits) -> bool:
    """Whether a ramp leaves a margin everywhere; kinematics, which costs nothing, is asked on a finer grid and first."""
    kinematic = replace(
        limits, torque=np.full_like(limits.torque, np.inf), tool_speed=np.inf, tool_room=None, clearance=None
    )
    if margins_of(robot, ramp, kinematic, 2000).smallest < 0.0:
        return False
    n_times = max(200, round(200 * ramp.duration_s))
    for n in (20, n_times):  # most that do not fit show it on a few times
        margins = margins_of(robot, ramp, limits, n)
        if any(margin < _RESERVE for name, margin in margins.items() if name in POSE_LIMITS):
            return False
    return True


def _rest_poses(state: tuple[Array, Array, Array], length: float, limits: Limits) -> tuple[Array, Array, BoolArray]:
    """For each state ``(states, joints)`` the lowest and highest pose that ramps of this length may start from; and which may."""
    q, v, a = (part[:, None, :] for part in state)
    s = np.linspace(0.0, 1.0, _N_TIMES)[None, :, None]
    T = length
    by_distance = (
        10 * s**3 - 15 * s**4 + 6 * s**5 - 1.0,
        (30 * s**2 - 60 * s**3 + 30 * s**4) / T,
        (60 * s - 180 * s**2 + 120 * s**3) / T**2,
        (60 - 360 * s + 360 * s**2) / T**3,
    )
    rest = (
        q + v * T * (-4 * s**3 + 7 * s**4 - 3 * s**5) + 0.5 * a * T**2 * (s**3 - 2 * s**4 + s**5),
        v * (-12 * s**2 + 28 * s**3 - 15 * s**4) + 0.5 * a * T * (3 * s**2 - 8 * s**3 + 5 * s**4),
        v / T * (-24 * s + 84 * s**2 - 60 * s**3) + 0.5 * a * (6 * s - 24 * s**2 + 20 * s**3),
        v / T**2 * (-24 + 168 * s - 180 * s**2) + 0.5 * a / T * (6 - 48 * s + 60 * s**2),
    )
    spare = 0.999  # between the times looked at
    low, high = limits.centre - spare * limits.reach, limits.centre + spare * limits.reach
    bounds = [(low, high)] + [(-spare * top, spare * top) for top in (limits.velocity, limits.acceleration, limits.jerk)]
    least, most = np.full(q.shape, -np.inf), np.full(q.shape, np.inf)
    fits = np.ones((len(q), q.shape[2]), dtype=bool)
    for factor, constant, (lower, upper) in zip(by_distance, rest, bounds, strict=True):
        flat = np.abs(factor) < 1e-12
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = (lower - constant) / factor, (upper - constant) / factor
        start, stop = np.minimum(one, other), np.maximum(one, other)
        least = np.maximum(least, np.where(flat, -np.inf, start).max(axis=1, keepdims=True))
        most = np.minimum(most, np.where(flat, np.inf, stop).min(axis=1, keepdims=True))
        # where the distance has no effect, the state itself must be within; at the very ends it is, up to the spare
        slack = 1e-9 + (upper - lower) * (1.0 - spare)
        fits &= (~flat | ((constant >= lower - slack) & (constant <= upper + slack))).all(axis=1)
    fits &= (least <= most)[:, 0, :]
    # a joint without any limit on its way starts where the motion begins
    least, most = (np.where(np.isfinite(bound), bound, 0.0) for bound in (least, most))
    return (q - most)[:, 0, :], (q - least)[:, 0, :], np.asarray(fits.all(axis=1))
