"""Lag of the current loop and dead band of the drives, found where the data can tell them.

Neither is linear in anything, so each is profiled: for a few values all other unknowns follow by output error, and what is left of the
positions is a function of that value alone. Its minimum is refined by a parabola; twice the log likelihood changes by 3.84 within the
95 % interval. Rows of a log depend on their neighbours, so they count as the fewer rows that their autocorrelation leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dynid.arrays import Array
from dynid.estimation.actuators.output_error import OutputError
from dynid.progress import Tell

GRIDS: Final[Mapping[str, tuple[float, ...]]] = {
    "lag": (0.0, 0.002, 0.005, 0.01, 0.02, 0.04),
    "dead_band": (0.0, 0.002, 0.005, 0.01, 0.02, 0.04),
}
"""Values that are compared first, s and rad or m."""
WORDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "lag": ("lag of the current loop", "s", "steps and chirps above 1 / (2 pi lag), recorded at twice that rate or more"),
    "dead_band": ("dead band", "rad or m", "slow ramps that turn back, with rests between them"),
}
ROUNDS = 2
"""Refinements of the minimum between its neighbours."""
CHANGE = 3.841
"""Twice the log likelihood that a 95 % interval spans."""


@dataclass(frozen=True)
class Profile:
    """One number that was profiled.

    Args:
        name: ``lag`` or ``dead_band``.
        value: the one that leaves least; zero where the data do not tell it from zero.
        low: lower end of the 95 % interval.
        high: upper end; infinite where the largest value that was tried still fits.
        told: whether the data tell the value from zero.
        trials: values tried and twice the negative log likelihood of each, the least one taken off.
    """

    name: str
    value: float
    low: float
    high: float
    told: bool
    trials: tuple[tuple[float, float], ...]

    @property
    def sigma(self) -> float:
        """Half the interval, as a standard deviation."""
        return (self.high - self.low) / (2.0 * 1.96)

    def as_json(self) -> dict[str, Any]:
        """Plain numbers; None where an interval has no end."""
        high = self.high if np.isfinite(self.high) else None
        sigma = self.sigma if np.isfinite(self.high) else None
        return {"value": self.value, "sigma": sigma, "interval": [self.low, high], "told": self.told}

    def sentence(self) -> str:
        """What was found, for the user."""
        words, unit, experiment = WORDS[self.name]
        high = f"{self.high:.3g}" if np.isfinite(self.high) else "more than the largest value tried"
        if self.told:
            return f"{words}: {self.value:.3g} {unit}, 95 % interval {self.low:.3g} to {high}; the other deviations hold it there"
        return (
            f"{words}: not told from zero by these logs, anything from {self.low:.3g} to {high} {unit} fits alike; it is left at zero; "
            f"to find it: {experiment}"
        )


def profiled(name: str, fit: Callable[[float], OutputError], n_rows: int, tell: Tell) -> Profile:
    """The value of ``lag`` or ``dead_band`` that leaves least of the positions, and its interval.

    Args:
        name: what is profiled.
        fit: output error of everything else, with that value held.
        n_rows: rows of all logs.
        tell: called before every fit.
    """
    found: dict[float, OutputError] = {}

    def tried(x: float) -> None:
        if x not in found:
            tell(f"{WORDS[name][0]} of {x:.4g} {WORDS[name][1]}")
            found[x] = fit(x)

    for x in GRIDS[name]:
        tried(x)
    for _ in range(ROUNDS):
        grid, cost = _costs(found, n_rows)
        tried(_between(grid, cost))
    grid, cost = _costs(found, n_rows)
    k = int(np.argmin(cost))
    low, high = _crossing(grid[: k + 1][::-1], cost[: k + 1][::-1], grid[0]), _crossing(grid[k:], cost[k:], np.inf)
    told = bool(cost[0] > CHANGE)
    trials = tuple(zip(grid.tolist(), cost.tolist(), strict=True))
    return Profile(name, float(grid[k]) if told else 0.0, low if told else 0.0, high, told, trials)


def _costs(found: Mapping[float, OutputError], n_rows: int) -> tuple[Array, Array]:
    """Values in order, and twice the negative log likelihood of each above the least, in rows that count."""
    grid = np.array(sorted(found))
    rms = np.array([found[x].rms for x in grid])
    best = int(np.argmin(np.log(np.maximum(rms, 1e-12)).sum(axis=1)))
    rows = n_rows / found[float(grid[best])].inflation ** 2
    cost = rows * 2.0 * np.log(np.maximum(rms, 1e-12)).sum(axis=1)
    return grid, cost - cost.min()


def _between(grid: Array, cost: Array) -> float:
    """Where the parabola through the least value and its neighbours is least; half-way to the neighbour at an end."""
    k = int(np.argmin(cost))
    if k in (0, len(grid) - 1):
        return float(0.5 * (grid[k] + grid[1 if k == 0 else k - 1]))
    x, y = grid[k - 1 : k + 2], cost[k - 1 : k + 2]
    bend, slope, _ = np.polyfit(x - x[1], y, 2)
    at = float(x[1] - slope / (2.0 * bend)) if bend > 0.0 else float(x[1])
    if abs(at - x[1]) < 1e-3 * float(x[2] - x[0]):
        at = float(0.5 * (x[1] + x[0 if x[1] - x[0] > x[2] - x[1] else 2]))
    return float(np.clip(at, x[0], x[2]))


def _crossing(grid: Sequence[float] | Array, cost: Sequence[float] | Array, otherwise: float) -> float:
    """Where the cost first exceeds the interval's change, outward from its least value."""
    for inner, outer, below, above in zip(grid[:-1], grid[1:], cost[:-1], cost[1:], strict=True):
        if above > CHANGE:
            # costs grow as the square of the distance from the minimum
            share = (np.sqrt(CHANGE) - np.sqrt(max(below, 0.0))) / (np.sqrt(above) - np.sqrt(max(below, 0.0)))
            return float(inner + share * (outer - inner))
    return float(otherwise)
