"""Values that may change from day to day, found for each day while the rigid bodies are held to be the same on all days.

A day's base values are ``beta_d = N rho + E u_d``: ``u_d`` are friction and offset of every joint and a load on the last
link, ``rho`` is all the rest and shared by the days of one robot. With the information ``H_d, g_d`` of every day

    sum_d N^T (H_d - H_d E P_d E^T H_d) N rho = sum_d N^T (g_d - H_d E P_d E^T g_d),     P_d = (E^T H_d E + Omega^-1)^-1
    u_d = P_d E^T (g_d - H_d N rho)

which needs far less motion of a day than identifying everything anew would. ``Omega`` is wide: a value as large as all torque
could be explained with; it only keeps what a day does not show from growing without limit.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.fleet.information import Information, safe_inverse, total_of
from dynid.parameters import INERTIAL_SYMBOLS, INERTIAL_UNITS
from dynid.regression.base import BaseReduction
from dynid.regression.independence import independent_columns
from dynid.robot.model import Robot

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
        columns = robot.parameters.columns
        names: list[str] = []
        kinds: list[DriftKind] = []
        units: list[str] = []
        joints: list[str] = []
        directions: list[Array] = []
        leading = () if base.independent is None else tuple(int(i) for i in base.independent)
        for row, column in enumerate(leading):
            one = columns[column]
            if one.kind == "friction":
                names.append(one.name)
                kinds.append("offset" if one.symbol == OFFSET else "friction")
                units.append(one.unit)
                joints.append(one.joint)
                directions.append(np.eye(base.n_base)[row])
        n_friction = len(names)
        last = robot.parameters.n_inertial - 10
        for place, (symbol, unit) in enumerate(zip(INERTIAL_SYMBOLS, INERTIAL_UNITS, strict=True)):
            names.append(f"load {symbol}")
            kinds.append("load")
            units.append(unit)
            joints.append(columns[last].joint)
            directions.append(base.K[:, last + place])
        E = np.column_stack(directions)
        kept = independent_columns(_weighed(base) @ E, np.arange(E.shape[1]), 1e-6).kept
        watched = np.array([place < n_friction + WATCHED_OF_LOAD for place in kept])
        return cls(
            tuple(names[k] for k in kept),
            tuple(kinds[k] for k in kept),
            tuple(units[k] for k in kept),
            tuple(joints[k] for k in kept),
            freeze(E[:, kept]),
            watched,
        )


def _weighed(base: BaseReduction) -> Array:
    """A factor of what base values do to torque at random states, where it is known."""
    if base.gram is None:
        return np.eye(base.n_base)
    values, vectors = np.linalg.eigh(base.gram)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


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


def _share(total: Information, E: Array) -> Array:
    """Largest share of a channel's torque that one unit of each value makes up, as if the columns of its base values added
    up without cancelling: exact where a value has one base parameter, as friction has."""
    squares = (np.sqrt(total.columns) @ np.abs(E)) ** 2
    return freeze(np.sqrt(squares / np.maximum(total.energy, 1e-300)[:, None]).max(axis=0))
