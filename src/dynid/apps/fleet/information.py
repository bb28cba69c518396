"""Rows of a store as information on the base parameters, and the values of every day from it.

In units of each joint's noise, the rows of one day say ``H = sum_j A_j^T A_j / sigma_j^2``, ``g = sum_j A_j^T b_j / sigma_j^2`` and the
noise ``M = sum_j X_j^T N_j X_j / sigma_j^4`` of ``g``, which is ``H`` where the noise is white.

Values that may change from day to day are found for each day while the rigid bodies are held to be the same on all days. A day's base
values are ``beta_d = N rho + E u_d``: ``u_d`` are friction and offset of every joint and a load on the last link, ``rho`` is all the
rest and shared by the days of one robot. With the information ``H_d, g_d`` of every day

    sum_d N^T (H_d - H_d E P_d E^T H_d) N rho = sum_d N^T (g_d - H_d E P_d E^T g_d),     P_d = (E^T H_d E + Omega^-1)^-1
    u_d = P_d E^T (g_d - H_d N rho)

which needs far less motion of a day than identifying everything anew would. ``Omega`` is wide: a value as large as all torque
could be explained with; it only keeps what a day does not show from growing without limit.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.linalg

from dynid.apps.fleet.entry import Entry
from dynid.arrays import Array, BoolArray, freeze
from dynid.estimation.linear import relative
from dynid.estimation.result import Estimate
from dynid.model.parameters import INERTIAL_SYMBOLS, INERTIAL_UNITS
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel, independent_columns

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
        """Base values ``H^+ g``, their covariance ``H^+ M H^+``, and which of them depend only on directions that the rows show."""
        inverse, shown = safe_inverse(self.H)
        return inverse @ self.g, inverse @ self.M @ inverse, shown


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


def safe_inverse(H: Array) -> tuple[Array, BoolArray]:
    """Inverse along the directions that a normal matrix shows, and which coordinates lie within them."""
    if not len(H):  # a small robot may have no value that all its days share
        return H, np.zeros(0, dtype=bool)
    size = np.sqrt(np.maximum(np.diag(H), 0.0))
    scale = np.where(size > 1e-12 * max(float(size.max(initial=0.0)), 1e-300), size, np.inf)
    values, vectors = scipy.linalg.eigh(H / np.outer(scale, scale), check_finite=False)
    kept = values > SEEN * max(float(values[-1]), 1e-300)
    V = vectors[:, kept]
    inverse = (V / values[kept]) @ V.T / np.outer(scale, scale)
    shown = np.isfinite(scale) & ((vectors[:, ~kept] ** 2).sum(axis=1) < 1e-6)
    return inverse, shown


DriftKind: TypeAlias = Literal["friction", "offset", "load"]
OFFSET = "fo"
WATCHED_OF_LOAD = 4
"""Mass and first moments; the moments of inertia are fitted beside them and hardly shown by a day."""


@dataclass(frozen=True, eq=False)
class Monitored:
    """Directions ``E`` of the base parameters that may change from day to day."""

    names: tuple[str, ...]
    kinds: tuple[DriftKind, ...]
    units: tuple[str, ...]
    joints: tuple[str, ...]
    E: Array
    """``(base, values)``."""
    watched: BoolArray
    """Values that are judged; the others are only fitted."""

    @classmethod
    def of(cls, robot: Robot, base: BaseReduction) -> Monitored:
        """Friction and offset of every joint, and the ten parameters of a load on the last link as far as motion shows them."""
        columns, last = robot.parameters.columns, robot.parameters.n_inertial - 10
        leading = () if base.independent is None else tuple(int(i) for i in base.independent)
        found: list[tuple[str, DriftKind, str, str, Array]] = []
        for one, direction in zip((columns[k] for k in leading), np.eye(base.n_base), strict=False):
            if one.kind == "friction":
                found.append((one.name, "offset" if one.symbol == OFFSET else "friction", one.unit, one.joint, direction))
        n_friction = len(found)
        for place, (symbol, unit) in enumerate(zip(INERTIAL_SYMBOLS, INERTIAL_UNITS, strict=True)):
            found.append((f"load {symbol}", "load", unit, columns[last].joint, base.K[:, last + place]))
        E = np.column_stack([one[-1] for one in found])
        weighed = np.eye(base.n_base)
        if base.gram is not None:  # a factor of what base values do to torque at random states
            values, vectors = np.linalg.eigh(base.gram)
            weighed = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        kept = independent_columns(weighed @ E, np.arange(E.shape[1]), 1e-6).kept
        names, kinds, units, joints, _ = zip(*(found[k] for k in kept), strict=True)
        watched = np.array([place < n_friction + WATCHED_OF_LOAD for place in kept])
        return cls(names, kinds, units, joints, freeze(E[:, kept]), watched)


@dataclass(frozen=True, eq=False)
class Followed:
    """One robot over its days."""

    robot: str
    days: tuple[datetime.date, ...]
    monitored: Monitored
    values: Array
    """``(days, values)``; those of a load are relative to the mean of all days."""
    variance: Array
    """``(days, values)``: of the measurement, less what is common to all days of the robot and no change."""
    share: Array
    """Largest share of the torque of a channel that one unit of each value makes up."""
    total: Information
    """All days together."""


def follow(robot: str, days: Sequence[Information], monitored: Monitored) -> Followed:
    """The values of every day of one robot."""
    total = total_of(days)
    E = monitored.E
    explained = np.maximum(np.einsum("ij,ij->j", E, total.H @ E), 1e-300)
    narrow = explained / max(total.power, 1e-300)  # one over Omega
    scale = np.sqrt(np.maximum(np.diag(total.H), 1e-300))
    Q, _ = np.linalg.qr(scale[:, None] * E, mode="complete")
    N = Q[:, E.shape[1] :] / scale[:, None]
    left, right, kept = np.zeros((N.shape[1], N.shape[1])), np.zeros(N.shape[1]), []
    noise = np.zeros_like(left)
    for day in days:
        HE = day.H @ E
        P = np.linalg.inv(E.T @ HE + np.diag(narrow))
        C = HE.T @ N
        left += N.T @ day.H @ N - C.T @ P @ C
        right += N.T @ day.g - C.T @ (P @ (E.T @ day.g))
        T = N - E @ (P @ C)  # the score of rho is T^T g
        noise += T.T @ day.M @ T
        kept.append((P, C))
    inverse, _ = safe_inverse(left)
    rho, spread = inverse @ right, inverse @ noise @ inverse
    values, variance = [], []
    common = np.mean([P @ C for P, C in kept], axis=0)  # an error of rho moves all days alike by this much
    for day, (P, C) in zip(days, kept, strict=True):
        values.append(P @ (E.T @ day.g - C @ rho))
        through = P @ C - common
        covariance = P @ (E.T @ day.M @ E) @ P + through @ spread @ through.T + P @ np.diag(narrow) @ P
        variance.append(np.diag(covariance))
    found = np.array(values)
    load = np.array([kind == "load" for kind in monitored.kinds])
    found[:, load] -= found[:, load].mean(axis=0)
    return Followed(
        robot, tuple(day.day for day in days), monitored, freeze(found), freeze(variance), _share(total, E), total
    )


def follow_rows(name: str, entries: Sequence[Entry], monitored: Monitored, reducer: Reducer) -> Followed:
    """The values of every day of one robot from its rows of a store."""
    sigma = noise_of(entries)
    return follow(name, by_day([reducer.information(entry, sigma) for entry in entries]), monitored)


def _share(total: Information, E: Array) -> Array:
    """Largest share of a channel's torque that one unit of each value makes up, as if the columns of its base values added
    up without cancelling: exact where a value has one base parameter, as friction has."""
    squares = (np.sqrt(total.columns) @ np.abs(E)) ** 2
    return freeze(np.sqrt(squares / np.maximum(total.energy, 1e-300)[:, None]).max(axis=0))


def with_stored_noise(result: Estimate, entries: Sequence[Entry], each: Sequence[Information]) -> Estimate:
    """The estimate with its uncertainty widened (or narrowed) by the colour of the noise that was stored with the rows.

    The triangles alone take every row for independent. The stored noise gives the standard deviation of each base value
    with and without that assumption; their ratio is applied to what the method found.
    """
    total = total_of(each)
    inverse, _ = safe_inverse(total.H)
    white = np.sqrt(np.maximum(np.diag(inverse), 0.0))
    coloured = np.sqrt(np.maximum(np.diag(inverse @ total.M @ inverse), 0.0))
    ratio = np.where(white > 0.0, coloured / np.where(white > 0.0, white, 1.0), 1.0)
    freedom = float(sum(entry.noise_freedom for entry in entries))
    details = dict(result.details) | {"covariance": "corrected", "degrees_of_freedom": freedom}
    return replace(result, covariance=result.covariance * np.outer(ratio, ratio), details=details)


def errors_of(
    result: Estimate, entries: Sequence[Entry], each: Sequence[Information], channels: Sequence[Channel]
) -> tuple[tuple[Mapping[str, Any], ...], float]:
    """Errors of every entry, by the estimate and by a weighted fit to all the others."""

    def missed_by(beta: Array) -> Array:
        """Norm of what base values leave of every channel."""
        own = zip(entry.triangles, channels, strict=True)
        phi = result.base.lift @ beta
        return np.array([np.linalg.norm(R[:, -1] - R[:, :-1] @ channel.values(phi)) for R, channel in own])

    total = total_of(each)
    days, left, size = [], 0.0, 0.0
    for entry, own in zip(entries, each, strict=True):
        norms = np.sqrt(entry.torque_energy)
        held = float("nan")
        if len(entries) > 1:
            inverse, _ = safe_inverse(total.H - own.H)
            missed = missed_by(inverse @ (total.g - own.g))
            held = relative(missed, norms)
            left, size = left + float(missed @ missed), size + float(norms @ norms)
        days.append(
            {
                "day": entry.key.day.isoformat(),
                "condition": dict(entry.key.condition),
                "rows": sum(entry.rows),
                "relative_error": relative(missed_by(result.base_values), norms),
                "held_out": held,
            }
        )
    whole = float(np.sqrt(left / size)) if size > 0.0 else entries[0].held_out_error
    return tuple(days), whole
