"""How much robots of one model differ, per base parameter, and what that says about each robot (empirical Bayes).

A robot's value is ``x_r ~ N(mu, T^2 + v_r)``: spread ``T`` between robots, variance ``v_r`` of its own measurement. ``mu`` and
``T`` are found from all robots by medians, so that a few robots that differ do not hide themselves. Then

    shrunk value = mu + T^2 / (T^2 + v_r) (x_r - mu),     score = (x_r - mu) / sqrt(T^2 + v_r)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.fleet.changes import MEDIAN_CHI2, excess_variance

LEAST_ROBOTS = 5
"""Robots from which a spread is found."""
DRAWS = 100_000
"""Fleets of one parameter that the threshold of outliers is drawn from."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Mean and spread of every base parameter over the robots, and where each robot stands."""

    mean: Array
    spread: Array
    """``T``: standard deviation between robots; NaN where too few robots show the parameter."""
    score: Array
    """``(robots, base)``; NaN where a robot does not show the parameter."""
    shrunk: Array
    shrunk_sigma: Array
    counted: Array
    """How many robots show each parameter."""


def spread_of(values: Array, variance: Array) -> Spread:
    """The spread over robots, ``(robots, base)`` each; a variance that is not finite stands for a value that is not known."""
    n, p = values.shape
    mean, spread = np.full(p, np.nan), np.full(p, np.nan)
    score, shrunk, sigma = (np.full((n, p), np.nan) for _ in range(3))
    counted = np.isfinite(variance).sum(axis=0)
    for i in range(p):
        known = np.isfinite(variance[:, i])
        if not known.any():
            continue
        x, v = values[known, i], np.maximum(variance[known, i], 1e-300)
        mu = float(np.median(x))
        T2 = 0.0
        if len(x) >= LEAST_ROBOTS:
            for _ in range(20):
                T2 = excess_variance((x - mu) ** 2, v)
                new = _weighted_median(x, 1.0 / (v + T2))
                if new == mu:
                    break
                mu = new
            spread[i] = np.sqrt(T2)
            score[known, i] = (x - mu) / np.sqrt(v + T2)
            shrunk[known, i] = mu + T2 / (T2 + v) * (x - mu)
            sigma[known, i] = np.sqrt(T2 * v / (T2 + v))
        else:
            shrunk[known, i], sigma[known, i] = x, np.sqrt(v)
        mean[i] = mu
    return Spread(*(freeze(one) for one in (mean, spread, score, shrunk, sigma, counted.astype(float))))


def _weighted_median(x: Array, weight: Array) -> float:
    order = np.argsort(x)
    total = np.cumsum(weight[order])
    return float(x[order][np.searchsorted(total, 0.5 * total[-1])])


@lru_cache(maxsize=32)
def outlier_threshold(n_robots: int, n_parameters: int, rate: float) -> float:
    """Score that the largest of all robots and parameters exceeds with this probability where all robots are alike.

    Drawn, with the same medians that :func:`spread_of` takes: of few robots the spread itself is uncertain.
    """
    rng = np.random.default_rng(0)
    largest = []
    per_turn = max(1, 2_000_000 // n_robots)
    for start in range(0, DRAWS, per_turn):
        x = rng.normal(size=(min(per_turn, DRAWS - start), n_robots))
        away = np.abs(x - np.median(x, axis=1, keepdims=True))
        T = np.median(away, axis=1) / np.sqrt(MEDIAN_CHI2)
        largest.append(away.max(axis=1) / T)
    each = (1.0 - rate) ** (1.0 / n_parameters)  # so that all parameters together keep the rate
    return float(np.quantile(np.concatenate(largest), each, method="higher"))


@dataclass(frozen=True)
class Outlier:
    """A robot whose value differs from the fleet's beyond what the spread of the others explains."""

    robot: str
    parameter: str
    expression: str
    value: float
    fleet: float
    spread: float
    score: float
    threshold: float
    share: float
    """Largest share of a joint's torque that the difference makes up."""

    def sentence(self) -> str:
        """The outlier in words."""
        return (
            f"{self.robot}: {self.parameter} is {self.value:.4g}, the fleet's is {self.fleet:.4g} with a spread of {self.spread:.2g} "
            f"({abs(self.score):.1f} standard deviations, outlier above {self.threshold:.1f})"
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"type": "outlier", "text": self.sentence()}
