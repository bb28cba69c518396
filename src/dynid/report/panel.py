"""What a figure is drawn from: curves, axes, marks and panels, as data.

A curve states its role; colours, sizes and the arrangement on a narrow screen are decided where it is drawn.

Fewer points of a long signal with every peak still there: in each stretch of rows the lowest and the highest stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError

Role: TypeAlias = Literal[
    "measured", "predicted", "residual", "raw", "data", "mixed", "prior", "limit", "good", "bad", "chosen"
]
COLOURS: dict[Role, tuple[str, str]] = {
    "measured": ("#64748b", "#94a3b8"),
    "predicted": ("#d9480f", "#ff922b"),
    "residual": ("#0b7285", "#3bc9db"),
    "raw": ("#b8c1cc", "#566275"),
    "data": ("#1864ab", "#4dabf7"),
    "mixed": ("#b7791f", "#e3b04b"),
    "prior": ("#9aa5b1", "#6b778a"),
    "limit": ("#c92a2a", "#ff8787"),
    "good": ("#2b8a3e", "#69db7c"),
    "bad": ("#c92a2a", "#ff8787"),
    "chosen": ("#862e9c", "#e599f7"),
}
"""Colour of every role on a light and on a dark page."""
CurveKind: TypeAlias = Literal["line", "points", "bars", "rows"]


@dataclass(frozen=True, eq=False)
class Curve:
    """Points ``(x, y)`` of one role; ``rows`` are horizontal bars of length ``x`` at the places ``y`` of a list of names."""

    name: str
    x: Array
    y: Array
    role: Role
    kind: CurveKind = "line"
    dashed: bool = False
    width: float = 1.4
    """Of a line or a bar's edge, or the diameter of a point, in pixels."""
    spread: Array | None = None
    """Half lengths of error bars along ``y``."""
    texts: tuple[str, ...] = ()
    """Text shown at each point."""
    bar: float | None = None
    """Width of upright bars in units of ``x``."""

    def __post_init__(self) -> None:
        for name in ("x", "y", "spread"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, freeze(getattr(self, name)))
        lengths = {len(self.x), len(self.y)} | ({len(self.spread)} if self.spread is not None else set())
        if self.texts:
            lengths.add(len(self.texts))
        if len(lengths) != 1:
            raise InputError(f"curve '{self.name}' has parts of different lengths: {sorted(lengths)}")


@dataclass(frozen=True)
class Axis:
    """What an axis counts, and between which values; ``categories`` name the places 0, 1, 2.. instead."""

    title: str = ""
    log: bool = False
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mark:
    """A straight line through a panel at one value of ``x`` or ``y``: a limit, a cut-off, a level."""

    along: Literal["x", "y"]
    value: float
    name: str
    role: Role = "limit"


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes."""

    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()


def limits_of(panel: Panel, along: Literal["x", "y"]) -> tuple[float, float]:
    """From where to where an axis runs: as it was given, and around everything drawn where it was not."""
    axis = panel.x if along == "x" else panel.y
    if axis.categories:
        return -0.6, len(axis.categories) - 0.4
    values = np.concatenate([np.zeros(0), *(part for curve in panel.curves for part in _extent(curve, along))])
    values = np.concatenate([values, [mark.value for mark in panel.marks if mark.along == along]])
    values = values[np.isfinite(values) & ((values > 0.0) if axis.log else True)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.1 if axis.log else 0.0, 1.0)
    low, high = (low if axis.low is None else axis.low), (high if axis.high is None else axis.high)
    outer = _widened(low, high, axis.log)
    return (outer[0] if axis.low is None else low), (outer[1] if axis.high is None else high)


def _widened(low: float, high: float, log: bool) -> tuple[float, float]:
    """The range with a twentieth of its length at both ends, on a logarithmic scale where the axis has one."""
    if log:
        a, b = np.log10(low), np.log10(max(high, low))
        edge = 0.05 * (b - a) or 0.5
        return float(10.0 ** (a - edge)), float(10.0 ** (b + edge))
    edge = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - edge, high + edge


def _extent(curve: Curve, along: Literal["x", "y"]) -> list[Array]:
    values = curve.x if along == "x" else curve.y
    parts = [values]
    if along == "y" and curve.spread is not None:
        parts = [values - curve.spread, values + curve.spread]
    if (curve.kind, along) in (("bars", "y"), ("rows", "x")):
        parts.append(np.zeros(1))
    return parts


def envelope_rows(signals: Array, most: int) -> IntArray:
    """At most about ``most`` rows, ascending: the ends, and of each stretch where any column is lowest and highest."""
    n, columns = signals.shape
    if n <= most:
        return np.arange(n, dtype=np.int64)
    stretches = max(1, (most - 2) // (2 * columns))
    length = -(-n // stretches)
    padded = np.full((stretches * length, columns), np.nan)
    padded[:n] = signals
    blocks = padded.reshape(stretches, length, columns)
    start = (np.arange(stretches) * length)[:, None]
    empty = start[:, 0] >= n
    low = start + np.argmin(np.where(np.isnan(blocks), np.inf, blocks), axis=1)
    high = start + np.argmax(np.where(np.isnan(blocks), -np.inf, blocks), axis=1)
    kept = np.concatenate([low[~empty].ravel(), high[~empty].ravel(), [0, n - 1]])
    return np.unique(kept[kept < n]).astype(np.int64)


def spread_rows(signal: Array, most: int) -> IntArray:
    """At most ``most`` rows that cover the values of a signal evenly in rank, its extremes included."""
    order = np.argsort(signal, kind="stable")
    if len(order) <= most:
        return order.astype(np.int64)
    return order[np.unique(np.linspace(0, len(order) - 1, most).round().astype(np.int64))].astype(np.int64)
