"""What an online estimator identifies, how uncertain its rows are, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, BoolArray, IntArray, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.result import Origin
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction

Over: TypeAlias = Literal["base", "standard"]
Flags: TypeAlias = NDArray[np.int8]
"""1 identified, 0 not excited, -1 linearly dependent."""

KNOWN_SHARE = 0.2
"""A parameter of a body is known once its standard deviation is below this share of the size that it can have."""
_MIXED = 1e-3


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns to identify, in the order that flags depend on."""

    names: tuple[str, ...]
    parameter: IntArray
    """Regressor column of each, where each is one."""
    lift: Array | None
    """``Y lift`` for a grouping that is no choice of columns."""
    initial: Array
    lower: Array
    upper: Array

    @classmethod
    def of(
        cls,
        prior: Parameters,
        base: BaseReduction | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        over: Over = "base",
    ) -> Columns:
        """Base parameters (without a base: all parameters, as they stand), or standard ones in the default grouping order."""
        if base is None:
            base = BaseReduction.from_matrix(np.eye(len(prior)), prior.names)
        if base.parameter_names != prior.names:
            raise InputError(f"base reduction is over {base.n_parameters} parameters, the data over {len(prior)}")
        low, high = np.full(len(prior), -np.inf), np.full(len(prior), np.inf)
        for name, (lowest, highest) in (bounds or {}).items():
            low[prior.index(name)], high[prior.index(name)] = lowest, highest
        if over == "standard":
            order = prior.grouping()
            names = tuple(prior.names[i] for i in order)
            return cls(names, order, None, freeze(prior.values[order]), low[order], high[order])
        lower, upper = interval_product(base.K, low, high)
        initial = freeze(base.base_values(prior))
        if base.independent is None:
            return cls(base.names, freeze(range(0), dtype=np.int64), base.lift, initial, lower, upper)
        return cls(base.names, base.independent, None, initial, lower, upper)

    def select(self, W: Array) -> Array:
        """These columns of rows over all parameters."""
        return W[:, self.parameter] if self.lift is None else W @ self.lift


def interval_product(K: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Interval of ``K x`` for ``x`` in a box: each term at the end that its sign asks for."""
    positive, negative = np.maximum(K, 0.0), np.minimum(K, 0.0)

    def total(up: Array, down: Array) -> Array:
        with np.errstate(invalid="ignore"):
            terms = np.where(positive != 0.0, positive * up, 0.0) + np.where(negative != 0.0, negative * down, 0.0)
        return np.asarray(terms.sum(axis=1))

    return total(low, high), total(high, low)


@dataclass(frozen=True, eq=False)
class RowNoise:
    """How uncertain one row is where neighbouring rows share their noise.

    Args:
        rows_as_one: rows that count as one where noise is white, by the filter of the rows.
        learned: standard deviation of a row that counts for itself, by channel, as blocks of time have shown it; NaN where not known.
    """

    rows_as_one: float
    learned: Array = field(default_factory=lambda: np.array(np.nan))

    def of(self, norms: Array, n_rows: float, n_values: float) -> Array:
        """Standard deviation that one row counts with, by channel; residual norms over so many rows left so many values free."""
        effective = n_rows / self.rows_as_one
        freedom = max(effective - n_values, 1.0)
        own = norms / np.sqrt(n_rows) * np.sqrt(self.rows_as_one * effective / freedom)
        return np.asarray(np.fmax(own, self.learned))


@dataclass(frozen=True, eq=False)
class OnlineEstimate:
    """What is known now.

    Args:
        names: of the values.
        values: initial ones where the flag is not 1; inside the bounds.
        flags: 1 identified, 0 not excited, -1 linearly dependent.
        clipped: whether a value was moved into its bounds.
        n_samples: times of the rows that count.
        residual_rms: root mean square that the values leave, all channels together; over its noise where weights are given.
        sigma: standard deviations, infinite where the flag is not 1; None where they were not asked for.
        residual: root mean square that the values leave in the rows of each channel, where each has a triangle of its own.
        measured: root mean square of the right-hand side of these rows.
        origin: where each value comes from, where that was asked for; ``mixed`` where it carries one that cannot be told from it.
        time_s: of the newest row.
    """

    names: tuple[str, ...]
    values: Array
    flags: Flags
    clipped: BoolArray
    n_samples: float
    residual_rms: float
    sigma: Array | None = None
    residual: Array | None = None
    measured: Array | None = None
    origin: tuple[Origin, ...] = ()
    time_s: float = float("nan")

    @property
    def identified(self) -> tuple[str, ...]:
        """Names of the values that rows have shown."""
        return tuple(name for name, flag in zip(self.names, self.flags, strict=True) if flag == 1)

    def __getitem__(self, name: str) -> float:
        try:
            return float(self.values[self.names.index(name)])
        except ValueError:
            raise UnknownNameError("parameter", name, self.names) from None

    @property
    def known(self) -> tuple[str, ...]:
        """Of a body, whose parameters are the first ten: those known to a fifth of the size that such a parameter can have."""
        assert self.sigma is not None
        m = abs(float(self.values[0]))
        r = max(float(np.linalg.norm(self.values[1:4])) / m, 0.05) if m > 0.0 else 0.05
        size = max(m, 1e-3) * np.array([1.0, *[r] * 3, *[r * r] * 6])
        return tuple(
            name
            for name, origin, sigma, own in zip(self.names, self.origin, self.sigma, size, strict=False)
            if origin == "data" and sigma < KNOWN_SHARE * own
        )

    def ordered(self, names: Sequence[str]) -> OnlineEstimate:
        """The same with its values in this order."""
        order = [self.names.index(name) for name in names]
        return replace(
            self,
            names=tuple(names),
            values=freeze(self.values[order]),
            flags=freeze(self.flags[order], np.int8),
            clipped=freeze(self.clipped[order], np.bool_),
            sigma=None if self.sigma is None else freeze(self.sigma[order]),
            origin=tuple(self.origin[place] for place in order) if self.origin else (),
        )

    def as_dict(self) -> dict[str, Any]:
        """Values, standard deviations and flags by name, as JSON has them."""
        sigma = np.full(len(self.names), np.inf) if self.sigma is None else self.sigma
        return {
            "values": dict(zip(self.names, self.values.tolist(), strict=True)),
            "sigma": {name: s if np.isfinite(s) else None for name, s in zip(self.names, sigma.tolist(), strict=True)},
            "flags": dict(zip(self.names, self.flags.tolist(), strict=True)),
        }


def origins_of_flags(A: Array, flags: Flags) -> tuple[Origin, ...]:
    """Where values come from: an identified one is mixed if it also carries a dependent one."""
    kept = flags == 1
    mixed = np.zeros(len(flags), dtype=bool)
    dependent = flags == -1
    if dependent.any() and kept.any():
        norms = np.linalg.norm(A, axis=0)
        unit = A / np.where(norms > 0.0, norms, 1.0)
        coefficients = np.linalg.lstsq(unit[:, kept], unit[:, dependent], rcond=None)[0]
        mixed[kept] = np.abs(coefficients).max(axis=1) > _MIXED
    return tuple("prior" if not k else ("mixed" if m else "data") for k, m in zip(kept, mixed, strict=True))
