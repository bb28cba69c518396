"""Robots and tables of the papers, as files of the project's own in ``tests/papers``: numbers as printed there."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.io.robots.read import read_robot
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction

_PAPERS = Path(__file__).resolve().parent / "papers"


def robot_file(name: str) -> Path:
    """``wam7``, ``panda`` or ``gautier_khalil_3r``."""
    return _PAPERS / "robots" / f"{name}.toml"


def published_robot(name: str, effects: Any = "none") -> Robot:
    return read_robot(robot_file(name), effects)


@cache
def tables(paper: str) -> dict[str, Any]:
    """What ``tests/papers/tables/PAPER.toml`` holds."""
    return tomllib.loads((_PAPERS / "tables" / f"{paper}.toml").read_text("utf-8"))


def columns(rows: Sequence[Sequence[Any]], first: int = 1) -> Array:
    """The numbers of a table whose rows begin with words; one array per column."""
    return np.array([row[first:] for row in rows], dtype=float).T


# Combinations of parameters ------------------------------------------------------------------------------


def terms(expression: str) -> dict[str, float]:
    """``{printed name: coefficient}`` of a printed combination; ``0.55 m_3:7`` is a sum over links 3 to 7."""
    found: dict[str, float] = {}
    sign, factor = 1.0, 1.0
    for word in expression.replace("*", " ").split():
        if word in ("+", "-"):
            sign = 1.0 if word == "+" else -1.0
        elif word[0].isdigit():
            factor = float(word)
        else:
            stem, _, last = word.partition(":")
            first = int("".join(letter for letter in stem if letter.isdigit()))
            for link in range(first, int(last or first) + 1):
                found[stem.replace(str(first), str(link))] = sign * factor
            sign, factor = 1.0, 1.0
    return found


def combinations(text: str) -> list[dict[str, float]]:
    """All combinations of a table, line by line, ``|`` between them."""
    return [terms(one) for line in text.strip().splitlines() for one in line.split("|")]


def combination_matrix(rows: Sequence[dict[str, float]], names: Sequence[str], rename: Callable[[str], str]) -> Array:
    """``K`` of printed combinations over our parameters."""
    place = {name: k for k, name in enumerate(names)}
    K = np.zeros((len(rows), len(names)))
    for i, row in enumerate(rows):
        for name, coefficient in row.items():
            K[i, place[rename(name)]] = coefficient
    return K


def sousa_name(name: str) -> str:
    """``L_2xy -> Ixy2``, ``l_3y -> my3``, ``fv_1 -> fv1``."""
    symbol, rest = name.split("_")
    return {"L": "I", "l": "m"}.get(symbol, symbol) + rest[1:] + rest[0]


def gaz_name(name: str) -> str:
    """``J2xy -> Ixy2``, ``mc3z -> mz3``."""
    if name.startswith("J"):
        return f"I{name[2:]}{name[1]}"
    return f"m{name[3:]}{name[2]}" if name.startswith("mc") else name


def khalil_name(name: str) -> str:
    """``ZZR1 -> Izz1``, ``MXR2 -> mx2``."""
    symbol, number = name[:2], name[-1]
    return ("m" + symbol[1].lower() if symbol[0] == "M" else "I" + symbol.lower()) + number


# Sousa and Cortesao 2014 ---------------------------------------------------------------------------------


def wam_motion(time: Array) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration of (78) with the two decimals of Table 5."""
    motion = tables("sousa2014")["motion"]
    table = np.array(motion["table_5"])
    return fourier(table[:, :5], table[:, 5:10], table[:, 10], time, motion["rate_rad_s"])


def fourier(a: Array, b: Array, q0: Array, time: Array, rate: float) -> tuple[Array, Array, Array]:
    w = rate * np.arange(1, a.shape[1] + 1)
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    return s @ (a / w).T - c @ (b / w).T + q0, c @ a.T + s @ b.T, c @ (b * w).T - s @ (a * w).T


# Gaz and others 2019 -------------------------------------------------------------------------------------

GAZ_COLUMNS = ("reverse", "reverse_sigma", "p_hat", "classical", "classical_sigma", "one_step")


def gaz_coefficients() -> dict[str, Array]:
    """The columns of Table III, 43 values each; standard deviations in per cent."""
    return dict(zip(GAZ_COLUMNS, columns(tables("gaz2019")["table_3"]["coefficients"]), strict=True))


def gaz_base(robot: Robot, kept: Sequence[int] | Array | None = None) -> BaseReduction:
    """The 43 coefficients as the paper groups them, or some of them."""
    rows = combinations(tables("gaz2019")["table_3"]["combinations"])
    K = combination_matrix(rows, robot.parameters.names, gaz_name)
    return BaseReduction.from_matrix(K if kept is None else K[np.asarray(kept)], robot.parameters.names)


def gaz_bodies(rows: Sequence[Sequence[float]]) -> Array:
    """Ten parameters per link of printed rows ``m, c, I`` with the inertia about the centre of mass; ``nan`` has no effect."""
    values = np.nan_to_num(np.array(rows, dtype=float))
    bodies = []
    for m, x, y, z, xx, xy, xz, yy, yz, zz in values:
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        bodies.append(phi_from_mass_com_inertia(m, np.array([x, y, z]), tensor))
    return np.array(bodies)


def gaz_bounds(c5z_lower: float | None = None) -> dict[str, tuple[float, float]]:
    """Bounds of Tables VIII and IX; the one of ``c5z`` is -0.05 there and -0.35 in the authors' code."""
    table = tables("gaz2019")["tables_8_9"]
    limits: dict[str, tuple[float, float]] = {}
    for i in range(7):
        limits[f"m{i + 1}"] = tuple(table["mass"])
        for j, axis in enumerate("xyz"):
            limits[f"c{i + 1}{axis}"] = table["com_lower"][i][j], table["com_upper"][i][j]
        for a, b in ("xx", "xy", "xz", "yy", "yz", "zz"):
            limits[f"I{i + 1}{a}{b}"] = tuple(table["moment" if a == b else "product"])
    if c5z_lower is not None:
        limits["c5z"] = c5z_lower, limits["c5z"][1]
    return {**limits, "total_mass": tuple(table["total_mass"])}


def sigmoid_friction(velocity: Array) -> Array:
    """Equation (25) with the values of Table I."""
    table = tables("gaz2019")["table_1"]
    phi1, phi2, phi3 = (np.array(table[f"phi{i}"]) for i in (1, 2, 3))
    return phi1 / (1.0 + np.exp(-phi2 * (velocity + phi3))) - phi1 / (1.0 + np.exp(-phi2 * phi3))


def panda_motion(time: Array) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration of the exciting motion of Table II, its Fourier part."""
    table = tables("gaz2019")["table_2"]
    return fourier(np.array(table["a"]), np.array(table["b"]), np.array(table["q0"]), time, table["rate_rad_s"])
