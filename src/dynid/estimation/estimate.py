"""The result of an estimation, and what every method has in common.

A method is a frozen set of options with one call, ``estimate(regression, base, prior) -> Estimate``; it holds no results, so
using it twice gives the same answer twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.errors import InputError
from dynid.estimation.outcome import Outcome
from dynid.inertia import is_consistent
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression

Origin: TypeAlias = Literal["data", "mixed", "prior"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base values with their uncertainty, a full parameter set that has them, and what the data could not show."""

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
    """What one method alone has to say, by name."""

    def __post_init__(self) -> None:
        for name in ("base_values", "covariance", "residual_rms"):
            object.__setattr__(self, name, freeze(getattr(self, name)))
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

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

    @cached_property
    def seen(self) -> BoolArray:
        """Which base values rest on data."""
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
        from scipy.stats import t

        freedom = max(self.details.get("degrees_of_freedom", self.n_rows - self.rank), 1)
        half = float(t.ppf(0.5 + 0.5 * level, freedom)) * self.sigma
        return np.column_stack([self.base_values - half, self.base_values + half])


class Method(Protocol):
    """Options of one way to estimate.

    ``laws`` names what the method promises and the contract tests: ``exact`` (recovers noise-free data), ``row_order``
    (permuted rows, same answer), ``units`` (rescaled torque scales the answer), ``equal_weights`` (is ordinary least squares
    when joints are equally noisy), ``covers`` (claimed intervals hold).
    """

    name: ClassVar[str]
    laws: ClassVar[frozenset[str]]

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate: ...


def estimate(
    regression: Regression, base: BaseReduction, method: Method | None = None, prior: Parameters | None = None
) -> Estimate:
    """Estimate parameters from a regression, by ordinary least squares unless a method is given.

    ``prior`` fills in what the data do not show and decides how base values are shared among links; by default the nominal
    parameters of the robot.
    """
    from dynid.estimation.methods.least_squares import OrdinaryLeastSquares

    start = regression.parameters if prior is None else prior
    if start.names != regression.parameters.names:
        raise InputError(
            f"the prior has {len(start)} parameters, the regression {len(regression.parameters)}, or other names"
        )
    return (method or OrdinaryLeastSquares()).estimate(regression, base, start)
