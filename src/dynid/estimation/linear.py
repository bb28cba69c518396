"""The weighted linear solve that the least-squares family shares, on the small triangles.

minimise  sum_j w_j^2 || A_j beta - b_j ||^2     over the seen base parameters, the others at their prior value
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray, freeze, frozen_view
from dynid.errors import InputError
from dynid.estimation.completion import complete
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate, Origin
from dynid.estimation.seen import DATA_TOLERANCE, Seen, seen_parameters
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression, large, triangle_of_blocks
from dynid.regression.independence import triangle_of

_KEPT_TRIANGLES = 4


class Merged:
    """Channels over base parameters, ``[A b]`` each, merged into one triangle; those of the last weights are kept.

    Merging is the dearest step of a large robot, and its triangle serves solution, conditioning and covariance.
    """

    def __init__(self, channels: tuple[Array, ...]) -> None:
        self.channels = channels
        self._triangles: dict[bytes, Array] = {}

    def rows(self, weights: Array) -> Array:
        """All rows, each channel's times its weight; of a large robot their triangle, which says the same."""
        blocks = zip(weights, self.channels, strict=True)
        return self.triangle(weights) if large(self.channels) else np.vstack([w * block for w, block in blocks])

    def triangle(self, weights: Array) -> Array:
        scale = np.asarray(weights, dtype=np.float64)
        key = scale.tobytes()
        if key not in self._triangles:
            found = triangle_of_blocks([w * block for w, block in zip(scale, self.channels, strict=True)])
            while len(self._triangles) >= _KEPT_TRIANGLES:
                del self._triangles[next(iter(self._triangles))]
            self._triangles[key] = frozen_view(found)
        return self._triangles[key]


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """The triangles over base parameters, channel by channel, and what they show."""

    regression: Regression
    base: BaseReduction
    prior: Parameters
    merged: Merged
    """The channels, and all of them in one triangle."""
    seen: Seen
    held: Array
    """Values of the base parameters that are not estimated; those of the prior unless a method says otherwise."""

    @classmethod
    def of(
        cls, regression: Regression, base: BaseReduction, prior: Parameters, tolerance: float = DATA_TOLERANCE
    ) -> LinearProblem:
        merged = Merged(tuple(regression.channel_matrix(i, base) for i in range(len(regression.factors))))
        seen = seen_parameters(merged.triangle(np.ones(len(merged.channels)))[:, :-1], tolerance)
        return cls(regression, base, prior, merged, seen, freeze(base.base_values(prior)))

    @property
    def channels(self) -> tuple[Array, ...]:
        """``[A b]`` of every channel."""
        return self.merged.channels

    def estimating(self, mask: BoolArray, held: Array | None = None) -> LinearProblem:
        """The same data with only these base parameters estimated and the others held, at ``held`` where it is given."""
        origin: tuple[Origin, ...] = tuple(
            own if chosen else "prior" for own, chosen in zip(self.seen.origin, mask, strict=True)
        )
        return replace(self, seen=Seen(mask, origin), held=self.held if held is None else freeze(held))

    def solve(self, weights: Array) -> Array:
        """Base values for given channel weights."""
        return self.solve_rows(self.merged.rows(weights))

    def solve_rows(self, rows: Array) -> Array:
        """Base values that fit rows ``[A b]`` best, such as a triangle of all channels."""
        beta = self.held.copy()
        mask = self.seen.mask
        if not mask.any():
            raise InputError(f"the data show none of the {self.base.n_base} base parameters: the regressor is zero")
        n = int(mask.sum())
        if self.regression.n_rows < n:  # a triangle has as many rows as columns, whatever it was made of
            raise InputError(f"the data hold {self.regression.n_rows} rows, fewer than the {n} values they should give")
        b = rows[:, -1] if mask.all() else rows[:, -1] - rows[:, :-1][:, ~mask] @ beta[~mask]
        stacked = np.column_stack([rows[:, :-1][:, mask], b])
        scale = np.linalg.norm(stacked[:, :-1], axis=0)
        stacked[:, :-1] /= scale
        R = triangle_of(stacked)
        beta[mask] = scipy.linalg.solve_triangular(R[:n, :n], R[:n, n]) / scale
        return beta

    def triangle(self, weights: Array) -> Array:
        """``[A b]`` of all channels, each times its weight, as one triangle."""
        return self.merged.triangle(weights)

    def residual_norms(self, beta: Array) -> Array:
        """``||b_j - A_j beta||`` of every channel."""
        return np.array([np.linalg.norm(block[:, -1] - block[:, :-1] @ beta) for block in self.channels])

    def rows(self) -> Array:
        return np.array([factor.n_rows for factor in self.regression.factors], dtype=float)

    def seen_triangle(self, weights: Array | None = None) -> Array:
        """Triangle over the seen base parameters alone."""
        R = self.triangle(np.ones(len(self.channels)) if weights is None else weights)[:, :-1]
        mask = self.seen.mask
        return np.asarray(R[: len(mask)] if mask.all() else triangle_of(R[:, mask]))

    def inverse_triangle(self, weights: Array | None = None) -> Array:
        """Inverse of that triangle: ``R^-1 R^-T`` is the inverse of the normal matrix."""
        R = self.seen_triangle(weights)
        return np.asarray(scipy.linalg.solve_triangular(R, np.eye(len(R))))

    def covariance(self, weights: Array, sigma: Array) -> Array:
        """``B (sum_j w_j^4 sigma_j^2 A_j^T A_j) B`` with ``B = (sum_j w_j^2 A_j^T A_j)^-1``: one noise per channel."""
        mask = self.seen.mask
        inverse = self.inverse_triangle(weights)
        bread = inverse @ inverse.T
        meat = self.seen_triangle(weights**2 * sigma)
        spread = meat @ bread
        covariance = np.zeros((self.base.n_base, self.base.n_base))
        covariance[np.ix_(mask, mask)] = spread.T @ spread
        return covariance

    def noise_sigma(self, beta: Array, pooled: bool) -> Array:
        """Residual standard deviation per channel, with the values that were fitted taken off the rows (Sousa 81)."""
        norms, rows = self.residual_norms(beta), self.rows()
        if pooled:
            freedom = max(rows.sum() - self.seen.rank, 1.0)
            return np.full(len(rows), np.sqrt((norms**2).sum() / freedom))
        spent = self.seen.rank * rows / max(rows.sum(), 1.0)
        return np.asarray(norms / np.sqrt(np.maximum(rows - spent, 1.0)))

    def condition_numbers(self) -> tuple[float, float]:
        R = self.seen_triangle()
        return condition_number(R), condition_number(R / np.linalg.norm(R, axis=0))

    def finish(
        self,
        method: str,
        beta: Array,
        covariance: Array,
        *,
        outcome: Outcome | None = None,
        standard: Parameters | None = None,
        notes: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> Estimate:
        """The estimate of these base values, with everything that does not depend on the method."""
        norms, rows = self.residual_norms(beta), self.rows()
        full_rank = bool(self.seen.mask.all())
        unscaled, scaled = self.condition_numbers()
        return Estimate(
            method=method,
            base=self.base,
            base_values=beta,
            covariance=covariance,
            standard=complete(self.base, beta, self.prior) if standard is None else standard,
            origin=self.seen.origin,
            rank=self.seen.rank,
            condition_number=unscaled,
            condition_number_scaled=scaled,
            channel_names=self.regression.channel_names,
            residual_rms=norms / np.sqrt(np.maximum(rows, 1.0)),
            relative_error=relative(norms, self.regression.torque_norms),
            n_samples=self.regression.n_samples,
            n_rows=self.regression.n_rows,
            outcome=outcome or (Outcome.SOLVED if full_rank else Outcome.RANK_DEFICIENT),
            notes=tuple(notes),
            details=dict(details or {}),
        )


def condition_number(R: Array) -> float:
    """Ratio of the largest to the smallest singular value."""
    singular = np.linalg.svd(R, compute_uv=False)
    return float(singular[0] / singular[-1]) if len(singular) and singular[-1] > 0.0 else float("inf")


def relative(errors: Array, references: Array) -> float:
    """``||errors|| / ||references||``."""
    reference = float(np.linalg.norm(references))
    return float(np.linalg.norm(errors)) / reference if reference > 0.0 else float("nan")
