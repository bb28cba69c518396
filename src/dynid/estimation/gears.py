"""Links that are not where their motors are: gears that wind up under the torque they carry, and gears with play.

    q_link = q_motor - w - x,      w = c tau(q_link),      x = b / 2 on the side that the torque is on

Encoders are at the motors; ``tau`` is what a gear carries, without friction and rotor. Where torque changes its side the link crosses the
play alone, driven by the torque that its motor no longer gives, and stops at the other side. Torques of other joints change as well:

    change of torque = tau(q_link) - tau(q_motor)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.linalg

from dynid.arrays import Array
from dynid.compiled import njit
from dynid.dynamics.inverse_dynamics import inverse_dynamics, transmitting
from dynid.model.robot import Robot
from dynid.signals.samples import Samples

SMALL = 1e-4
"""rad or m, and their rates, by which a link is moved to see what torques change by."""
DAMPING = 0.1
"""Of a link that swings about its motor, part of the critical one: what gears have; it matters near the resonance alone."""
LEAST_PLAY = 0.01
"""rad or m: smaller play is crossed in the same time, in parts of the way, so that its torque grows in proportion."""
WIDE, BEFORE_S, AFTER_S = 0.02, 0.05, 0.1
"""Least play that is looked out for where links cross it, rad or m, and time before and after in which they may swing, s: how they land
is not known."""
SUBSTEPS = 4
"""Steps of a crossing between two samples."""


class Gears:
    """The gears of some joints over the samples of a log that has no gap."""

    def __init__(self, robot: Robot, samples: Samples, joints: Sequence[int]) -> None:
        self.samples, self.joints, self._bodies = samples, joints, transmitting(robot)
        self._period_s = float(np.median(np.diff(samples.time)))

    @cached_property
    def rigid(self) -> Array:
        """What gears carry if nothing yields, ``(samples, joints)``."""
        return self._torque(np.zeros_like(self.samples.position))

    @cached_property
    def slopes(self) -> tuple[Array, Array, Array]:
        """Change of torque with position, speed and acceleration of every link, ``(samples, joints, links)`` each."""
        one, found = self.samples, np.zeros((3, *self.rigid.shape, len(self.joints)))
        for k in range(3):
            for i, j in enumerate(self.joints):
                moved = [one.position, one.velocity, one.acceleration]
                moved[k] = moved[k].copy()
                moved[k][:, j] += SMALL
                found[k, :, :, i] = (inverse_dynamics(self._bodies, *moved) - self.rigid) / SMALL
        return found[0], found[1], found[2]

    def change(self, compliance: Array, play: Array) -> Array:
        """Change of torque, ``(samples, joints)``; both arguments have a number for each of the gears."""
        behind = np.zeros_like(self.samples.position)
        behind[:, self.joints] = self._crossed(play)
        if compliance.any():
            carried = self._torque(behind)[:, self.joints]
            behind[:, self.joints] += self._wound(compliance, (compliance * carried)[:, :, None])[:, :, 0]
        return self._torque(behind) - self.rigid

    def settled(self, play: Array) -> Array:
        """1 where no link is on its way through a play as wide as this, nor shortly before or after, else 0, ``(samples,)``."""
        wide = np.maximum(np.abs(play), WIDE)
        crossing = np.asarray((np.abs(self._crossed(wide)) < 0.5 * wide).any(axis=1), dtype=np.float64)
        before, after = (round(seconds / self._period_s) for seconds in (BEFORE_S, AFTER_S))
        near = np.convolve(crossing, np.ones(before + after + 1))[before : before + len(crossing)]
        return np.asarray(near < 0.5, dtype=np.float64)

    def columns(self, compliance: Array, play: Array) -> tuple[Array, Array]:
        """How the change grows with compliance and with play of every gear, ``(samples, joints, gears)`` each."""
        m = len(self.joints)
        carried = self.rigid + self.change(compliance, play)
        right = np.einsum("ti,ij->tij", carried[:, self.joints], np.eye(m))
        by_compliance = self._changed(self._wound(compliance, right))
        step = 0.05 * np.maximum(np.abs(play), LEAST_PLAY)
        further = (self._crossed(play + step) - self._crossed(play)) / step
        by_play = self._changed(np.einsum("ti,ij->tij", further, np.eye(m)))
        if compliance.any():
            by_play += self._changed(self._wound(compliance, compliance[:, None] * by_play[:, self.joints]))
        return by_compliance, by_play

    def _torque(self, behind: Array) -> Array:
        one, h = self.samples, self._period_s
        speed, rate = _rates(behind, h)
        return inverse_dynamics(self._bodies, one.position - behind, one.velocity - speed, one.acceleration - rate)

    def _changed(self, behind: Array) -> Array:
        """Change of torque, to first order, by courses of the links, ``(samples, links, courses)``."""
        courses = (behind, *_rates(behind, self._period_s))
        return -np.asarray(np.sum([slope @ course for slope, course in zip(self.slopes, courses, strict=True)], axis=0))

    def _crossed(self, play: Array) -> Array:
        """Where the links are in their play, behind the middle of it."""
        made = np.zeros((len(self.samples), len(self.joints)))
        for i, j in enumerate(self.joints):
            if play[i] != 0.0:
                wide, inertia = max(abs(float(play[i])), LEAST_PLAY), np.maximum(self.slopes[2][:, j, i], 1e-12)
                made[:, i] = play[i] / wide * _crossings(self.rigid[:, j] / inertia, 0.5 * wide, self._period_s)
        return made

    def _wound(self, compliance: Array, right: Array) -> Array:
        """Solution of ``w + c (K w + D dw + M ddw) = right`` over time, ``(samples, links, right sides)``, from ``right`` on.

        Every step takes the mean of three samples (trapezoidal rule), so that links which swing faster than the clock stay bounded. A
        compliance below zero, which noise may give, winds but does not swing.
        """
        h, m, n = self._period_s, len(self.joints), len(self.samples)
        K, D, M = (slope[1:-1, self.joints] for slope in self.slopes)
        c = np.maximum(compliance, 0.0)
        inertia = np.maximum(np.diagonal(M, axis1=1, axis2=2), 0.0) * c
        D = c[:, None] * D + np.eye(m) * (2.0 * DAMPING * np.sqrt(inertia))[:, None, :]
        still, M = 0.25 * (np.eye(m) + c[:, None] * K), c[:, None] * M / h**2
        terms = (still + M + D / (2.0 * h), 2.0 * (still - M), still + M - D / (2.0 * h))
        below, above = 3 * m - 1, m - 1
        banded = np.zeros((below + above + 1, n * m))
        banded[above] = 1.0
        for i in range(m):
            for j in range(m):
                for late, term in enumerate(terms):  # the row of a sample holds it and the two before
                    banded[above + i - j + late * m, (2 - late) * m + j : (n - late) * m : m] = term[:, i, j]
        mean = right.copy()
        mean[2:] = 0.25 * (right[2:] + 2.0 * right[1:-1] + right[:-2])
        flat = mean.reshape(n * m, -1)
        return np.asarray(scipy.linalg.solve_banded((below, above), banded, flat, check_finite=False)).reshape(right.shape)


def gears_of(robot: Robot, samples: Samples, joints: Sequence[int]) -> list[tuple[slice, Gears]]:
    """The gears over every part of a log that has no gap, and its rows."""
    steps = np.diff(samples.time)
    cuts = [0, *(np.flatnonzero(steps > 1.5 * np.median(steps)) + 1).tolist(), len(samples)]
    parts = [slice(a, b) for a, b in pairwise(cuts) if b - a > 2]
    return [(part, Gears(robot, samples[part], joints)) for part in parts]


def _rates(course: Array, h: float) -> tuple[Array, Array]:
    """First and second rates of a course, differences on either side; none at the ends."""
    first, second = np.zeros_like(course), np.zeros_like(course)
    first[1:-1] = (course[2:] - course[:-2]) / (2.0 * h)
    second[1:-1] = (course[2:] - 2.0 * course[1:-1] + course[:-2]) / h**2
    return first, second


@njit()
def _crossings(pull: Array, half: float, period_s: float) -> Array:
    """Where a link is in its play, under the acceleration that a rigid gear would give it; it stops at either side."""
    at, speed, h = half if pull[0] > 0.0 else -half, 0.0, period_s / SUBSTEPS
    made = np.empty_like(pull)
    for k in range(len(pull)):
        made[k] = at
        rate = pull[min(k + 1, len(pull) - 1)] - pull[k]
        for step in range(SUBSTEPS):
            speed += h * (pull[k] + rate * step / SUBSTEPS)
            at += h * speed
            if abs(at) >= half:
                at, speed = half if at > 0.0 else -half, 0.0
    return made
