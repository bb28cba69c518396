"""The result of an estimation with its intervals, how it ended, and what every method has in common.

A method is a frozen set of options with one call, ``estimate(regression, base, prior) -> Estimate``; it holds no results, so
using it twice gives the same answer twice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.model.inertia import is_consistent
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression

FEW, MANY = 10.0, 200.0
"""Degrees of freedom from which a series is near Student's quantile, and from which it gives ten digits; SciPy takes a tenth of a second
to load its function."""


def confidence_interval(values: Array, sigma: Array, freedom: float, level: float) -> Array:
    """``(n, 2)`` limits ``values +- t sigma`` with Student's quantile ``t`` of so many degrees of freedom."""
    half = student_quantile(max(freedom, 1.0), 0.5 + 0.5 * level) * sigma
    return np.column_stack([values - half, values + half])


def student_quantile(freedom: float, probability: float) -> float:
    """Student's quantile, from that of the normal distribution by the series of Fisher and Cornish, refined where freedom is not large."""
    if freedom < FEW:
        from scipy.special import stdtrit

        return float(stdtrit(freedom, probability))
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    t = z + functools.reduce(
        lambda rest, term: (term + rest) / freedom, reversed(terms), 0.0
    )  # powers of freedom may overflow
    if freedom >= MANY:
        return t
    size = math.exp(math.lgamma(0.5 * (freedom + 1.0)) - math.lgamma(0.5 * freedom)) / math.sqrt(math.pi * freedom)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for _ in range(3):  # Newton's steps on the probability, the integral of the density
        density = size * (1.0 + np.append(0.5 * t * (nodes + 1.0), t) ** 2 / freedom) ** (-0.5 * (freedom + 1.0))
        t -= (0.5 + 0.5 * t * float(weights @ density[:-1]) - probability) / float(density[-1])
    return t


class Outcome(Enum):
    """How an estimation ended; the text of each member is the advice to the user.

    Examples:
        >>> import dynid
        >>> dynid.Outcome.SOLVED.usable, dynid.Outcome.INFEASIBLE.usable
        (True, False)
    """

    SOLVED = "solved"
    RANK_DEFICIENT = (
        "the data do not determine every base parameter: the others keep their prior value; record a richer motion to "
        "determine them"
    )
    NOT_CONVERGED = (
        "the iteration stopped at its limit before it converged; the result is its last iterate: compare it with that of another "
        "method (dynid compare), or raise the limit (iterations of the method, in Python)"
    )
    INFEASIBLE = "no physically consistent parameter set meets the constraints; relax the one named in the notes"
    STALLED = "the solver stopped before it reached its tolerance; the result is verified but may not be optimal: loosen the constraints"

    @property
    def usable(self) -> bool:
        """Whether there is a parameter set to use."""
        return self is not Outcome.INFEASIBLE


Origin: TypeAlias = Literal["data", "mixed", "prior"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base values with their uncertainty, a full parameter set that has them, and what the data could not determine.

    Args:
        method: name of the method.
        base: the base parameters.
        base_values: their values.
        rank: number of base parameters that the data determine.
        channel_names: names of the families of rows, such as joints.
        n_samples: samples identified on.
        n_rows: rows identified on.
        outcome: how the estimation ended.
        notes: sentences for the user.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> result = dynid.estimate(dynid.build_regression(robot, samples), dynid.reduce_to_base(robot))
        >>> isinstance(result, dynid.Estimate), len(result.sigma) == result.base.n_base
        (True, True)
    """

    method: str
    base: BaseReduction
    base_values: Array
    covariance: Array
    """Of the base values; zero rows for values that the data do not show at all."""
    standard: Parameters
    """All parameters; ``K standard = base_values``."""
    origin: tuple[Origin, ...]
    """Where each base value comes from. ``prior``: the data do not show it, or contribute less than a hundredth of its
    precision where the method holds it by a prior; ``data``: more than 99 hundredths, or all without such a prior;
    ``mixed``: both, or a value that is right only as far as the prior value of one that the data do not show."""
    rank: int
    condition_number: float
    """2-norm one of the unscaled base regressor, over the base parameters that the data show."""
    condition_number_scaled: float
    """The same after scaling every column to length one."""
    channel_names: tuple[str, ...]
    residual_rms: Array
    """Per channel, over the rows identified on."""
    relative_error: float
    """``||tau - W beta|| / ||tau||`` over the rows identified on, unweighted."""
    n_samples: int
    n_rows: int
    outcome: Outcome
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further results of one method, by name."""

    def __post_init__(self) -> None:
        for name in ("base_values", "covariance", "residual_rms"):
            object.__setattr__(self, name, freeze(getattr(self, name)))
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def __getstate__(self) -> dict[str, Any]:
        """To another process: a read-only mapping does not travel."""
        return self.__dict__ | {"details": dict(self.details)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"details": MappingProxyType(state["details"])})

    @cached_property
    def sigma(self) -> Array:
        """Standard deviation of each base value."""
        return freeze(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @cached_property
    def sigma_percent(self) -> Array:
        """The same relative to the value, in percent; infinite for values that come from the prior."""
        with np.errstate(divide="ignore", invalid="ignore"):
            percent = 100.0 * self.sigma / np.abs(self.base_values)
        percent[np.isnan(percent)] = np.inf
        percent[np.array(self.origin) == "prior"] = np.inf
        return freeze(percent)

    @property
    def sigma_texts(self) -> tuple[str, ...]:
        """The same as text: in percent, as it is where it is far larger than the value (one at its limit, such as no friction at
        all), and a dash for values that come from the prior."""
        return tuple(
            "–" if origin == "prior" else f"{percent:.2g} %" if percent < 1000.0 else f"± {sigma:.2g}"
            for origin, percent, sigma in zip(self.origin, self.sigma_percent, self.sigma, strict=True)
        )

    @cached_property
    def seen(self) -> BoolArray:
        """Which base values are determined by data."""
        return np.array([origin != "prior" for origin in self.origin])

    @cached_property
    def link_consistent(self) -> BoolArray:
        """Full physical consistency of every link of ``standard``; links without mass and inertia count as consistent."""
        return np.atleast_1d(np.asarray(is_consistent(self.standard.inertials, condition="full", allow_empty=True)))

    @property
    def feasible(self) -> bool:
        """Whether every link of ``standard`` is fully consistent."""
        return bool(self.link_consistent.all())

    def interval(self, level: float = 0.95) -> Array:
        """``(n_base, 2)`` confidence limits of the base values."""
        freedom = self.details.get("degrees_of_freedom", self.n_rows - self.rank)
        return confidence_interval(self.base_values, self.sigma, freedom, level)


class Method(Protocol):
    """What a method has: a name, the laws it obeys, and ``estimate``; a frozen set of options with no fitted state.

    Examples:
        >>> import dynid
        >>> def name_of(method: dynid.Method) -> str:
        ...     return method.name
        >>> name_of(dynid.Ridge())
        'ridge'
    """

    name: ClassVar[str]
    laws: ClassVar[frozenset[str]]

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate: ...
