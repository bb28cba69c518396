"""The weighted linear solve that the least-squares family shares, on the small triangles.

minimise  sum_j w_j^2 || A_j beta - b_j ||^2     over the seen base parameters, the others at their prior value

From base values to a full parameter set: the prior plus the smallest scaled correction that has the base values.

    minimise || D^-1 (phi - phi0) ||   subject to   K phi = beta,

with a scale ``D`` of each parameter's own size, so that a gram and a kilogram square metre count alike.

Where the weight of bodies and a constant offset of torque act alike (a vertical slide), no fit can tell them apart. The choice among the
sets with these base values is then stated here and not left to the scales: offsets are as small as they can be, so that a weight is a
mass, which every simulator has a place for (:class:`OffsetPreference`). Offsets that data tell from weight poorly are a choice as well:
where all of them together lie within their noise, they are those of the description (:func:`offsets_within_noise`).

What the data can show: the base parameters whose columns are independent on these very rows.

Walking through the base parameters in order, one is *seen* if its column is independent of those seen before. The rest are
held at their prior value; a seen parameter whose column takes part in explaining an unseen one is *mixed*: its value is
right only as far as the prior of the other is.

Where a prior takes part in the estimate itself, a value is as much the data's as they narrow it down,

    share = 1 - posterior variance / prior variance = data information / (data information + prior information)

in the direction of that base parameter: from the data above 99 percent, from the prior below one, else mixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray, IntArray, freeze, frozen_view
from dynid.errors import InputError
from dynid.estimation.result import Estimate, Origin, Outcome
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.channels import ZERO_COLUMN, independent_columns, triangle_of
from dynid.regression.factor import Regression, large, triangle_of_blocks

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


DATA_TOLERANCE = 1e-7
"""Relative part of a column that must lie outside the span of those before it to count as seen."""


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """The triangles over base parameters, channel by channel, and what they show."""

    regression: Regression
    base: BaseReduction
    prior: Parameters
    merged: Merged
    """The channels, and all of them in one triangle."""
    seen: Identifiability
    held: Array
    """Values of the base parameters that are not estimated; those of the prior unless a method says otherwise."""

    @classmethod
    def of(
        cls, regression: Regression, base: BaseReduction, prior: Parameters, tolerance: float = DATA_TOLERANCE
    ) -> LinearProblem:
        merged = Merged(tuple(regression.channel_matrix(i, base) for i in range(len(regression.factors))))
        seen = find_identifiable(merged.triangle(np.ones(len(merged.channels)))[:, :-1], tolerance)
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
        return replace(self, seen=Identifiability(mask, origin), held=self.held if held is None else freeze(held))

    def knowing(self, known: IntArray) -> LinearProblem:
        """The same data with some base parameters known to have their prior value: their torque is taken off the right-hand side."""
        mask, channels = self.seen.mask.copy(), [block.copy() for block in self.channels]
        mask[known] = False
        for block in channels:
            block[:, -1] -= block[:, known] @ self.held[known]
            block[:, known] = 0.0
        return replace(self.estimating(mask), merged=Merged(tuple(channels)))

    def solve(self, weights: Array | None = None) -> Array:
        """Base values for given channel weights, equal ones where none are given."""
        return self.solve_rows(self.merged.rows(np.ones(len(self.channels)) if weights is None else weights))

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

    def channel_noise(self, beta: Array) -> Array:
        """Noise of every channel, at least round-off: rows without any would leave the others no say."""
        floor = 1e-10 * max(float(self.regression.torque_norms.max()), 1e-300)
        return used_alone(np.maximum(self.noise_sigma(beta, pooled=False), floor), self.rows() > 0)

    def noise_weights(self, beta: Array) -> Array:
        """Weights ``1 / sigma_j`` of every channel by what base values leave there, of geometric mean one."""
        weights: Array = 1.0 / self.channel_noise(beta)
        return weights / float(np.exp(np.log(weights).mean()))

    def settled_weights(self, iterations: int = 20, settle: float = 1e-6) -> tuple[Array, bool]:
        """Weights of the channels that agree with the residuals they lead to, and whether they have settled."""
        weights = np.ones(len(self.channels))
        for _ in range(iterations):
            before, weights = weights, self.noise_weights(self.solve(weights))
            if float(np.abs(np.log(weights / before)).max()) < settle:
                return weights, True
        return weights, False

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
            standard=base_to_standard(self.base, beta, self.prior) if standard is None else standard,
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


def used_alone(noise: Array, used: BoolArray) -> Array:
    """Noise of channels in which those without rows have the usual one: they must not decide how the others are counted."""
    return noise if used.all() or not used.any() else np.where(used, noise, np.exp(np.log(noise[used]).mean()))


def condition_number(R: Array) -> float:
    """Ratio of the largest to the smallest singular value."""
    singular = np.linalg.svd(R, compute_uv=False)
    return float(singular[0] / singular[-1]) if len(singular) and singular[-1] > 0.0 else float("inf")


def relative(errors: Array, references: Array) -> float:
    """``||errors|| / ||references||``."""
    reference = float(np.linalg.norm(references))
    return float(np.linalg.norm(errors)) / reference if reference > 0.0 else float("nan")


def base_to_standard(base: BaseReduction, beta: Array, prior: Parameters) -> Parameters:
    """All parameters, nearest to ``prior`` in its own scale, with ``K phi = beta``."""
    scale = parameter_scale(prior)
    gap = beta - base.K @ prior.values
    correction = np.linalg.lstsq(base.K * scale, gap, rcond=None)[0]
    phi = prior.values + scale * correction
    # one step of refinement: K phi = beta to round-off, whatever the scales
    phi = phi + scale * np.linalg.lstsq(base.K * scale, beta - base.K @ phi, rcond=None)[0]
    return prior.with_values(phi + OffsetPreference.of(base, prior).shift(phi))


ALIKE = 1e-6
"""Share of an offset's column that the rows of ``K`` must leave free for the offset to be told from nothing else."""
FAR_MASS = 3.0
"""Factor by which the mass of all links may differ from the description and still be taken for a poor description."""


@dataclass(frozen=True, eq=False)
class OffsetPreference:
    """Offsets that no base parameter tells from weight, and what of each can be chosen freely.

    With ``N`` the projection onto the null space of ``K``, in units of each parameter's size, ``N phi`` has no torque. Offsets are
    brought as near to those of the description, zero as a rule, as ``N phi`` lets them. Where no body is described, so are then the
    rotors, as far as offsets leave them free: an inertia is that of a body. Where bodies are described and would weigh less than a
    third or more than three times of what they are said to (a sensor that reports force without weight), nothing is moved.
    """

    columns: Array
    """Which parameters they are: offsets, then rotors."""
    rows: Array
    """``(columns, parameters)``: what of each is free, as a function of the parameters in units of their size."""
    scale: Array
    described: Array
    n_offsets: int
    described_mass: float
    """Sum over all links; zero where no body is described."""
    n_inertial: int

    @classmethod
    def of(cls, base: BaseReduction, prior: Parameters) -> OffsetPreference:
        """Those of a robot's base parameters."""
        scale = parameter_scale(prior, untold_rotor=1.0)
        fixed, columns, rows, counts = base.K * scale, [np.zeros(0, dtype=int)], [np.zeros((0, len(prior)))], [0]
        for symbol in ("fo",) if prior.inertials[:, 0].any() else ("fo", "Ia"):
            found = np.array([k for k, column in enumerate(prior.columns) if column.symbol.startswith(symbol)], dtype=int)
            Q = np.linalg.qr(fixed.T)[0] if len(found) else np.zeros((len(prior), 0))
            free = -Q[found] @ Q.T
            free[np.arange(len(found)), found] += 1.0
            kept = free[np.arange(len(found)), found] > ALIKE
            if kept.any():  # rows that are independent of those before them
                order = np.arange(int(kept.sum()))
                fixed = np.vstack([fixed, free[kept][independent_columns(free[kept].T, order, 1e-9).kept]])
            columns.append(found[kept])
            rows.append(free[kept])
            counts.append(int(kept.sum()))
        chosen = np.concatenate(columns)
        mass = float(prior.inertials[:, 0].sum())
        return cls(chosen, np.vstack(rows), scale, prior.values[chosen], counts[1], mass, prior.n_inertial)

    def is_plausible(self, phi: Array) -> bool:
        """Whether the bodies still weigh about what they are said to, once offsets are smallest."""
        mass = float((phi + self._moved(phi))[: self.n_inertial : 10].sum())
        return self.described_mass <= 0.0 or self.described_mass / FAR_MASS < mass < FAR_MASS * self.described_mass

    def shift(self, phi: Array) -> Array:
        """The smallest change without torque after which offsets, then rotors, are smallest; nothing where that is not plausible."""
        return self._moved(phi) if self.is_plausible(phi) else np.zeros(len(phi))

    def _moved(self, phi: Array) -> Array:
        moved, n = np.zeros(len(phi)), self.n_offsets
        for part in (slice(0, n), slice(n, None)):
            if len(own := self.columns[part]):
                wanted = (self.described[part] - phi[own] - moved[own]) / self.scale[own]
                moved += self.scale * np.linalg.lstsq(self.rows[part], wanted, rcond=1e-9)[0]
        return moved

    def of_parameters(self) -> Array:
        """``rows`` in SI units: the free part of each of them from the parameters, ``(columns, parameters)``."""
        return np.asarray(self.scale[self.columns, None] * self.rows / self.scale)


BY_CHANCE = 2.326
"""Normal quantile of 99 %: one robot in a hundred without offsets is taken to have some."""


def offsets_within_noise(found: Estimate, prior: Parameters) -> IntArray:
    """Base parameters that are offsets alone, where the estimate tells none of them from the description; else nothing.

    All are asked together, ``d^T C^-1 d`` against the quantile of chi-square: a robot with one offset that shows has others, so each of
    them stays as estimated, however poorly. The noise ``C`` is that of the free fit.
    """
    offset = np.array([column.symbol.startswith("fo") for column in prior.columns])
    K = found.base.K
    rows = np.flatnonzero(((K != 0.0).sum(axis=1) == 1) & (K[:, offset] != 0.0).any(axis=1) & (found.sigma > 0.0))
    if not len(rows):
        return rows
    d = found.base_values[rows] - K[rows] @ prior.values
    spread = float(d @ np.linalg.lstsq(found.covariance[np.ix_(rows, rows)], d, rcond=None)[0])
    share = 2.0 / (9.0 * len(rows))
    quantile = len(rows) * (1.0 - share + BY_CHANCE * np.sqrt(share)) ** 3  # Wilson and Hilferty 1931
    return rows if spread <= quantile else rows[:0]


UNTOLD_ROTOR = 1e-5
"""Scale of a rotor beside bodies that are not described: what cannot be told from a body is left to the body."""


def parameter_scale(prior: Parameters, untold_rotor: float = UNTOLD_ROTOR) -> Array:
    """Size by which each parameter may sensibly move: from the mass and radius of gyration of its link, or the robot's mean."""
    scale = np.ones(len(prior))
    phi = prior.inertials
    mass = np.abs(phi[:, 0])
    mass = np.maximum(mass, 0.05 * mass.max(initial=0.0))
    mass[mass == 0.0] = 1.0
    gyration = np.sqrt(np.abs(phi[:, [4, 6, 9]]).sum(axis=1) / (2.0 * mass))
    length = np.maximum(gyration, 0.3 * gyration.max(initial=0.0))
    length[length == 0.0] = 0.1
    links = np.column_stack([mass, *(3 * [mass * length]), *(6 * [mass * length**2])])
    scale[: prior.n_inertial] = links.ravel()
    if not phi[:, 0].any():  # of bodies that nothing is known of, nothing says how much of an inertia is that of a rotor
        scale[[column.symbol.startswith("Ia") for column in prior.columns]] *= untold_rotor
    return scale


MOSTLY = 0.99
"""Share of a value's precision from which it counts as coming from one side alone."""
_ORDER: tuple[Origin, ...] = ("data", "mixed", "prior")


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Mask of the seen base parameters and the origin of each value."""

    mask: BoolArray
    origin: tuple[Origin, ...]

    @property
    def rank(self) -> int:
        return int(self.mask.sum())


def find_identifiable(A: Array, tolerance: float = DATA_TOLERANCE) -> Identifiability:
    """Decide from the (stacked or triangular) regressor over base parameters."""
    n = A.shape[1]
    if _all_independent(A, tolerance):
        return Identifiability(np.ones(n, dtype=bool), ("data",) * n)
    found = independent_columns(A, np.arange(n), tolerance)
    mask = np.zeros(n, dtype=bool)
    mask[found.kept] = True
    mixed = np.zeros(n, dtype=bool)
    if not mask.all():
        mixed[found.kept] = np.abs(found.K[:, ~mask]).max(axis=1) > 1e-6
    origin: list[Origin] = ["prior" if not s else ("mixed" if m else "data") for s, m in zip(mask, mixed, strict=True)]
    return Identifiability(mask, tuple(origin))


def _all_independent(A: Array, tolerance: float) -> bool:
    """Whether every column clearly is independent of those before it: as much lies outside their span as the diagonal of R says."""
    if not A.shape[1] or A.shape[0] < A.shape[1]:
        return False
    R = triangle_of(A)
    norms = np.linalg.norm(R, axis=0)
    clear = np.abs(np.diag(R)) > 2.0 * tolerance * norms
    return bool(clear.all() and (norms > ZERO_COLUMN * norms.max()).all())


def origins_of(share: Array) -> tuple[Origin, ...]:
    """Origin of every value from the share of its precision that the data contribute."""
    return tuple("data" if s > MOSTLY else ("prior" if s < 1.0 - MOSTLY else "mixed") for s in share)


def with_prior(seen: Identifiability, share: Array) -> Identifiability:
    """What the data show where a prior takes part: each origin the one furthest from the data of rank and share."""
    both = zip(seen.origin, origins_of(share), strict=True)
    return Identifiability(seen.mask, tuple(max(pair, key=_ORDER.index) for pair in both))
