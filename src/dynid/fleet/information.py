"""Rows of a store as information on the base parameters, in units of each joint's noise.

For the rows of one day ``H = sum_j A_j^T A_j / sigma_j^2``, ``g = sum_j A_j^T b_j / sigma_j^2`` and the noise
``M = sum_j X_j^T N_j X_j / sigma_j^4`` of ``g``, which is ``H`` where the noise is white.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray
from dynid.fleet.entry import Entry
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel

SEEN = 1e-8
"""Relative information below which a direction counts as not shown."""


@dataclass(frozen=True, eq=False)
class Information:
    """What some rows say about the base parameters."""

    day: datetime.date
    H: Array
    g: Array
    M: Array
    columns: Array
    """``(channels, base)``: sum of squares of every column in every channel, in units of torque."""
    energy: Array
    """Sum of squares of the torque of every channel."""
    power: float
    """The same in units of the noise, all channels together."""

    def __add__(self, other: Information) -> Information:
        return Information(
            self.day,
            self.H + other.H,
            self.g + other.g,
            self.M + other.M,
            self.columns + other.columns,
            self.energy + other.energy,
            self.power + other.power,
        )

    @cached_property
    def solved(self) -> tuple[Array, Array, BoolArray]:
        """Base values, their covariance, and which of them the rows show."""
        return solved(self.H, self.g, self.M)


def noise_of(entries: Sequence[Entry]) -> Array:
    """Standard deviation of each joint's torque over some rows."""
    residual = np.sum([entry.residual for entry in entries], axis=0)
    freedom = np.sum([entry.freedom for entry in entries], axis=0)
    energy = np.sum([entry.torque_energy for entry in entries], axis=0)
    rows = np.maximum(np.sum([entry.rows for entry in entries], axis=0), 1.0)
    floor = 1e-12 * np.sqrt(np.maximum(energy / rows, 1e-300)).max()  # data without noise: weights stay finite
    return np.asarray(np.maximum(np.sqrt(residual / freedom), floor))


class Reducer:
    """Entries of one store turned into information."""

    def __init__(self, channels: Sequence[Channel], base: BaseReduction) -> None:
        self._lifts = [base.regressor(channel.expansion) for channel in channels]

    def information(self, entry: Entry, sigma: Array) -> Information:
        """The information of one entry under the noise of each joint."""
        n = self._lifts[0].shape[1]
        H, M, g = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
        columns, energy = [], []
        for lift, triangle, noise, s in zip(self._lifts, entry.triangles, entry.noise, sigma, strict=True):
            A = triangle[:, :-1] @ lift
            columns.append((A * A).sum(axis=0))
            energy.append(float(triangle[:, -1] @ triangle[:, -1]))
            H += A.T @ A / s**2
            g += A.T @ triangle[:, -1] / s**2
            M += lift.T @ (noise / s**4) @ lift
        power = float(np.sum(np.array(energy) / sigma**2))
        return Information(entry.key.day, H, g, M, np.array(columns), np.array(energy), power)


def by_day(each: Sequence[Information]) -> list[Information]:
    """One for each day, in their order; several of a day are added."""
    found: dict[datetime.date, Information] = {}
    for own in each:
        found[own.day] = found[own.day] + own if own.day in found else own
    return [found[day] for day in sorted(found)]


def total_of(each: Sequence[Information]) -> Information:
    """All of them together."""
    total = each[0]
    for own in each[1:]:
        total = total + own
    return total


def solved(H: Array, g: Array, M: Array) -> tuple[Array, Array, BoolArray]:
    """``H^+ g``, ``H^+ M H^+``, and which values do not depend on directions that ``H`` does not show."""
    inverse, shown = safe_inverse(H)
    return inverse @ g, inverse @ M @ inverse, shown


def safe_inverse(H: Array) -> tuple[Array, BoolArray]:
    """Inverse along the directions that a normal matrix shows, and which coordinates lie within them."""
    size = np.sqrt(np.maximum(np.diag(H), 0.0))
    scale = np.where(size > 1e-12 * max(float(size.max(initial=0.0)), 1e-300), size, np.inf)
    values, vectors = scipy.linalg.eigh(H / np.outer(scale, scale), check_finite=False)
    kept = values > SEEN * max(float(values[-1]), 1e-300)
    V = vectors[:, kept]
    inverse = (V / values[kept]) @ V.T / np.outer(scale, scale)
    shown = np.isfinite(scale) & ((vectors[:, ~kept] ** 2).sum(axis=1) < 1e-6)
    return inverse, shown
