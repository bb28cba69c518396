"""From rest into a motion and back to rest: polynomials of degree 5 within the same limits.

A ramp goes from rest at a free pose ``q_s`` to the state ``(q, v, a)`` with which the motion begins, in time ``T``. With ``s = t / T``
and ``D = q - q_s``

    q(s) = q_s + D (10 s^3 - 15 s^4 + 6 s^5) + v T (-4 s^3 + 7 s^4 - 3 s^5) + a T^2 / 2 (s^3 - 2 s^4 + s^5)

Position, velocity, acceleration and jerk are linear in ``D``, so each limit at each time leaves an interval of ``D``; their
intersection is what the joint may choose from. The way back to rest is the same ramp with time reversed.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.excitation.fourier import FourierTrajectory
from dynid.excitation.limits import Limits, margins_of
from dynid.excitation.shape import QuinticTrajectory, SequenceTrajectory, Trajectory
from dynid.robot.model import Robot

SHORTEST_S, LONGEST_S = 0.25, 20.0
N_PHASES = 96
"""Beginnings of a periodic motion that are tried."""

_N_TIMES = 41


def rest_to_rest(robot: Robot, motion: Trajectory, limits: Limits, periods: int = 1) -> SequenceTrajectory:
    """The motion, ``periods`` times over, with ramps from rest before and to rest after it.

    A periodic motion is begun where its ramps can be shortest. Ramps respect every limit, those on torque, tool speed and clearance
    included.
    """
    if periods < 1:
        raise InputError(f"{periods} periods asked for, expected at least 1")
    phases = np.arange(N_PHASES) * (motion.duration_s / N_PHASES) if isinstance(motion, FourierTrajectory) else np.zeros(1)
    begin = motion.evaluate(phases)
    end = begin if isinstance(motion, FourierTrajectory) else motion.evaluate([motion.duration_s])
    backward = (end[0], -end[1], end[2])
    for length in np.geomspace(SHORTEST_S, LONGEST_S, 40):
        into, into_fits = _rest_pose(begin, float(length), limits)
        out, out_fits = _rest_pose(backward, float(length), limits)
        for phase in np.flatnonzero(into_fits & out_fits):
            core = motion.shifted(float(phases[phase])) if isinstance(motion, FourierTrajectory) else motion
            whole = _with_ramps(core, float(length), into[phase], out[phase], periods)
            if _ramps_fit(robot, whole, limits):
                return whole
    raise InputError(
        f"no ramp of up to {LONGEST_S:g} s leads from rest into this motion within the limits of robot '{robot.name}'; "
        "design one that is itself at rest at its ends (at_rest)"
    )


def approach(home: Array, pose: Array, limits: Limits) -> QuinticTrajectory:
    """From rest at one pose to rest at another, as fast as velocity and acceleration limits allow (peaks 15/8 and 10/sqrt(3))."""
    distance = np.abs(pose - home)
    by_speed = 1.875 * distance / limits.velocity
    by_rate = np.sqrt(10.0 / np.sqrt(3.0) * distance / limits.acceleration)
    by_jerk = np.cbrt(60.0 * distance / limits.jerk)
    length = float(max(np.max([by_speed, by_rate, by_jerk]) * 1.001, SHORTEST_S))
    still = np.zeros_like(home)
    return QuinticTrajectory.between(length, (home, still, still), (pose, still, still))


def _with_ramps(core: Trajectory, length: float, into: Array, out: Array, periods: int) -> SequenceTrajectory:
    q, v, a = (part[0] for part in core.evaluate([0.0]))
    q_end, v_end, a_end = (part[0] for part in core.evaluate([core.duration_s]))
    still = np.zeros_like(q)
    return SequenceTrajectory(
        (
            QuinticTrajectory.between(length, (into, still, still), (q, v, a)),
            *(core,) * periods,
            QuinticTrajectory.between(length, (q_end, v_end, a_end), (out, still, still)),
        )
    )


def _ramps_fit(robot: Robot, whole: SequenceTrajectory, limits: Limits) -> bool:
    """Whether both ramps leave a margin everywhere; their kinematics is asked on a finer grid once more."""
    return all(margins_of(robot, ramp, limits, 200).smallest >= 0.0 for ramp in (whole.pieces[0], whole.pieces[-1]))


def _rest_pose(state: tuple[Array, Array, Array], length: float, limits: Limits) -> tuple[Array, BoolArray]:
    """For each state ``(states, joints)`` the pose in the middle of what ramps of this length may start from; and which may."""
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
        # where the distance has no say, the state itself must be within; at the very ends it is, up to the spare
        slack = 1e-9 + (upper - lower) * (1.0 - spare)
        fits &= (~flat | ((constant >= lower - slack) & (constant <= upper + slack))).all(axis=1)
    fits &= (least <= most)[:, 0, :]
    middle = np.where(np.isfinite(least + most), 0.5 * (least + most), 0.0)
    return (q - middle)[:, 0, :], np.asarray(fits.all(axis=1))
