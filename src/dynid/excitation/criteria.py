"""How good a motion is for identification, as a function of its base regressor ``W``; smaller is better.

With singular values ``s_1 >= .. >= s_b`` of ``W``:

    SpectralCriterion   of the eigenvalues ``s^2`` of the information ``A = W^T W``
        condition         log (s_1 / s_b)                      the amplification of relative errors
        smallest         -log s_b                              the worst direction (E)
        trace             1/2 log sum 1 / s_i^2                the sum of the parameters' variances (A)
        logdet           -(1/b) sum log s_i                    the volume of the confidence ellipsoid (D)
        frobenius         1/2 log (||A||_F ||A^-1||_F)         Gautier and Khalil's third measure (21), smooth
    PivotedCondition    log |R_11 / R_bb| of QR with pivoting, their second measure
    Scaling             log (max |W_ij| / min |W_ij|)          their measure of equilibrium S (19)

A spectral criterion has ``df = <M, dA>`` and therefore ``df/dW = 2 W M``. ``s_1`` and ``s_b`` have kinks where singular values meet; a
finite ``power`` p replaces ``max`` by the p-norm of the eigenvalues, which has none and bounds the sharp value from above.
``frobenius`` is ``condition`` with the power 2, ``trace`` is ``smallest`` with the power 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError


class Criterion(ABC):
    """What a design makes small; a set of options. A criterion of your own gives its value and ``df/dW``.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.excitation.criteria import Criterion
        >>> class Frobenius(Criterion):
        ...     def of_regressor(self, W):
        ...         return float((W**2).sum()), 2.0 * W
        >>> Frobenius().value(np.eye(2))
        2.0
    """

    @abstractmethod
    def of_regressor(self, W: Array) -> tuple[float, Array]:
        """Value and ``df/dW``."""

    def value(self, W: Array) -> float:
        return self.of_regressor(W)[0]


@dataclass(frozen=True)
class SpectralCriterion(Criterion):
    """A criterion of the eigenvalues of ``A = W^T W``.

    condition   ``1/2p (log sum lambda_i^p + log sum lambda_i^-p)``
    smallest    ``1/2p log sum lambda_i^-p``
    logdet      ``-(1 / 2b) sum log(lambda_i + ridge mean(lambda))``: the ridge keeps a motion that sees nothing differentiable
    """

    name: Literal["condition", "smallest", "logdet"]
    power: float = np.inf
    ridge: float = 0.0

    def of_spectrum(self, eigenvalues: Array) -> tuple[float, Array]:
        """Value and its derivative by each eigenvalue of ``A``, which come in rising order."""
        if self.name == "logdet":
            b = len(eigenvalues)
            lifted = eigenvalues + self.ridge * eigenvalues.mean()
            share = self.ridge * (1.0 / lifted).sum() / b
            return float(-0.5 * np.log(lifted).mean()), -0.5 / b * (1.0 / lifted + share)
        logarithm = np.log(eigenvalues)
        low, down = _soft_largest(-logarithm, self.power)
        if self.name == "smallest":
            return 0.5 * low, -0.5 * down / eigenvalues
        high, up = _soft_largest(logarithm, self.power)
        return 0.5 * (high + low), 0.5 * (up - down) / eigenvalues

    def of_regressor(self, W: Array) -> tuple[float, Array]:
        eigenvalues, vectors = np.linalg.eigh(W.T @ W)
        # below rounding of the largest an eigenvalue is rounding: a motion that does not see a direction, not a negative one
        floor = max(eigenvalues[-1], 0.0) * 1e-15 + 1e-300
        value, slope = self.of_spectrum(np.maximum(eigenvalues, floor))
        return value, 2.0 * (W @ ((vectors * slope) @ vectors.T))


@dataclass(frozen=True)
class PivotedCondition(Criterion):
    """``log |R_11 / R_bb|`` of ``W P = Q R``: cheap, and differentiable while the pivots stay the same."""

    def of_regressor(self, W: Array) -> tuple[float, Array]:
        Q, R, pivots = scipy.linalg.qr(W, mode="economic", pivoting=True)
        first, last = R[0, 0], R[-1, -1]
        gradient = np.zeros_like(W)
        gradient[:, pivots[0]] += Q[:, 0] / first
        # R_bb is the distance of the last column to the span of the others, at the combination c
        c = scipy.linalg.solve_triangular(R[:-1, :-1], R[:-1, -1])
        gradient[:, pivots[-1]] -= Q[:, -1] / last
        gradient[:, pivots[:-1]] += np.outer(Q[:, -1], c) / last
        return float(np.log(abs(first / last))), gradient


@dataclass(frozen=True)
class Scaling(Criterion):
    """``log (max |W_ij| / min |W_ij|)`` over entries that are not zero; with a finite ``power`` p-norms of both."""

    power: float = np.inf

    def of_regressor(self, W: Array) -> tuple[float, Array]:
        size = np.abs(W)
        seen = size > 1e-12 * size.max(initial=0.0)
        logarithm = np.log(size[seen])
        high, up = _soft_largest(logarithm, self.power)
        low, down = _soft_largest(-logarithm, self.power)
        gradient = np.zeros_like(W)
        gradient[seen] = (up - down) / W[seen]
        return high + low, gradient


@dataclass(frozen=True)
class Mix(Criterion):
    """``sum_k weight_k criterion_k``; of ``ratios`` ``sum_k weight_k exp(criterion_k)``.

    Criteria are logarithms: the ratios themselves are Gautier and Khalil's ``lambda_1 cond(W) + lambda_2 S`` (18).
    """

    parts: tuple[tuple[float, Criterion], ...]
    ratios: bool = False

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("a mix of 0 criteria was asked for, expected at least 1")
        for weight, criterion in self.parts:
            if not (np.isfinite(weight) and weight >= 0.0):
                raise InputError(f"weight of {criterion} is {weight:g}, expected zero or a positive number")

    def of_regressor(self, W: Array) -> tuple[float, Array]:
        total, gradient = 0.0, np.zeros_like(W)
        for weight, criterion in self.parts:
            value, slope = criterion.of_regressor(W)
            ratio = weight * float(np.exp(min(value, 200.0))) if self.ratios else weight
            total += ratio if self.ratios else weight * value
            gradient += ratio * slope
        return total, gradient


def of_scaled_columns(criterion: Criterion, W: Array) -> tuple[float, Array]:
    """Value and ``df/dW`` of ``W`` with every column divided by its norm: what is left when each parameter's unit is free."""
    norms = np.linalg.norm(W, axis=0)
    norms = np.where(norms > 0.0, norms, 1.0)
    scaled = W / norms
    value, slope = criterion.of_regressor(scaled)
    return value, (slope - scaled * (scaled * slope).sum(axis=0)) / norms


CRITERIA = ("condition", "logdet", "smallest", "trace", "frobenius")


def criterion_from(choice: str | Criterion, power: float = np.inf, ridge: float = 0.0) -> Criterion:
    """A criterion by its name.

    Args:
        choice: ``condition``, ``logdet``, ``smallest``, ``trace``, ``frobenius``, a mix such as ``condition+0.5*logdet``, or a
            criterion, which is returned.
        power: exponent of the smooth maximum in ``condition`` and ``smallest``; infinite for the maximum.
        ridge: regularisation of ``logdet``.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.excitation.criteria import criterion_from
        >>> criterion_from("condition").value(np.eye(3))
        0.0
    """
    if isinstance(choice, Criterion):
        return choice
    parts: list[tuple[float, Criterion]] = []
    for term in choice.split("+"):
        left, star, right = term.strip().partition("*")
        name = (right if star else left).strip()
        try:
            weight = float(left) if star else 1.0
        except ValueError:
            raise InputError(f"criterion '{choice}' has the weight '{left}', expected a number, as in 0.5*logdet") from None
        known: dict[str, Criterion] = {
            "condition": SpectralCriterion("condition", power),
            "logdet": SpectralCriterion("logdet", ridge=ridge),
            "smallest": SpectralCriterion("smallest", power),
            "trace": SpectralCriterion("smallest", 1.0),
            "frobenius": SpectralCriterion("condition", 2.0),
        }
        if name not in known:
            raise UnknownNameError("criterion", name, CRITERIA)
        parts.append((weight, known[name]))
    return parts[0][1] if len(parts) == 1 and parts[0][0] == 1.0 else Mix(tuple(parts))


def condition_number(W: Array, *, scaled: bool = False) -> float:
    """Condition number in the 2-norm.

    Args:
        W: the matrix.
        scaled: scale the columns to length one first.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.excitation.criteria import condition_number
        >>> round(condition_number(np.diag([1.0, 4.0])), 6)
        4.0
    """
    if scaled:
        norms = np.linalg.norm(W, axis=0)
        W = W / np.where(norms > 0.0, norms, 1.0)
    singular = np.linalg.svd(np.linalg.qr(W, mode="r"), compute_uv=False)
    return float(singular[0] / singular[-1]) if singular[-1] > 0.0 else float("inf")


def scaling_of(W: Array) -> float:
    """``S = max |W_ij| / min |W_ij|`` over entries that are not zero."""
    return float(np.exp(Scaling().value(W)))


def _soft_largest(logarithms: Array, power: float) -> tuple[float, Array]:
    """``1/p log sum exp(p x)`` and its derivative by each ``x``; the largest itself for infinite ``p``."""
    largest = logarithms.max()
    if np.isinf(power):
        top = logarithms == largest
        return float(largest), top / np.count_nonzero(top)
    weights = np.exp(power * (logarithms - largest))
    total = weights.sum()
    return float(largest + np.log(total) / power), weights / total
