"""One body from rows of any kind: ten parameters by several methods side by side, each with what it is sure of.

The interval of what users read (mass, centre of mass, inertia about it) follows from that of the ten parameters to first order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import Constraint
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Estimate, Method, confidence_interval
from dynid.model.inertia import is_consistent, mass_com_inertia, phi_from_mass_com_inertia
from dynid.model.parameters import INERTIAL_SYMBOLS, Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression

METHODS = ("ols", "wls", "sdp", "manifold")
"""Methods that are shown side by side; the semidefinite one is the answer unless another is asked for."""
RADIUS_M = 0.1
"""Size of a body of which nothing but its mass is known, m."""


@dataclass(frozen=True, eq=False)
class BodyEstimate:
    """A body by one method, in the frame it was identified in.

    Args:
        method: name of the method.
        phi: the ten parameters.
        covariance: 10x10, infinite variance where the data do not determine a parameter.
        estimate: the whole estimate, with offsets or friction beside the body.
        iterates: bodies that an iterative method went through, ``(n, 10)``.
        seconds: time that the method took, s.
    """

    method: str
    phi: Array
    covariance: Array
    estimate: Estimate
    iterates: Array
    seconds: float = 0.0

    @cached_property
    def mass(self) -> float:
        return float(self.phi[0])

    @cached_property
    def com(self) -> Array:
        """Centre of mass, m."""
        return freeze(mass_com_inertia(self.phi)[1])

    @cached_property
    def inertia(self) -> Array:
        """Inertia about the centre of mass, kg m^2."""
        return freeze(mass_com_inertia(self.phi)[2])

    @property
    def feasible(self) -> bool:
        """Full physical consistency."""
        return bool(is_consistent(self.phi))

    @cached_property
    def sigma(self) -> Array:
        """Standard deviation of the ten parameters; infinite where the data do not determine one."""
        return freeze(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @cached_property
    def determined(self) -> BoolArray:
        """Which of the ten parameters the data determine: to better than the size that such a parameter can have.

        For a body of mass ``m`` and centre ``c`` that is ``m``, ``m r`` and ``m r^2`` with ``r`` the distance of its centre, 5 cm at least.
        """
        m, r = abs(self.mass), max(float(np.linalg.norm(self.com)), 0.05)
        size = m * np.array([1.0, *[r] * 3, *[r * r] * 6])
        return np.asarray(self.sigma < np.maximum(size, 1e-12))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the parameters that the data do not determine."""
        return tuple(name for name, known in zip(INERTIAL_SYMBOLS, self.determined, strict=True) if not known)

    @cached_property
    def com_sigma(self) -> Array:
        """``c = h / m``: ``J = [-h/m^2, 1/m]``; infinite where a moment or the mass is not determined."""
        m, h = self.phi[0], self.phi[1:4]
        J = np.hstack([-(h / m**2)[:, None], np.eye(3) / m])
        known = np.isfinite(np.diag(self.covariance)[:4])
        covariance = np.where(np.outer(known, known), self.covariance[:4, :4], 0.0)
        sigma = np.sqrt(np.maximum(np.diag(J @ covariance @ J.T), 0.0))
        return freeze(np.where(known[1:] & known[0], sigma, np.inf))

    @cached_property
    def inertia_sigma(self) -> Array:
        """Of the inertia about the centre of mass, 3x3."""
        known = np.isfinite(np.diag(self.covariance))
        J = np.zeros((9, 10))
        for k in np.flatnonzero(known):
            step = 1e-6 * max(1.0, abs(self.phi[k]))
            high, low = self.phi.copy(), self.phi.copy()
            high[k] += step
            low[k] -= step
            J[:, k] = ((mass_com_inertia(high)[2] - mass_com_inertia(low)[2]) / (2.0 * step)).ravel()
        covariance = np.where(np.outer(known, known), self.covariance, 0.0)
        sigma = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", J, covariance, J), 0.0)).reshape(3, 3)
        seen = np.zeros((3, 3), dtype=bool)
        for known_entry, (i, j) in zip(known[4:], ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)), strict=True):
            seen[i, j] = seen[j, i] = bool(known_entry)
        sigma[~seen] = np.inf
        return freeze(sigma)

    @property
    def inertia_known(self) -> bool:
        """Whether the moments about the centre of mass are known to better than their own mean."""
        moments = np.diag(self.inertia)
        return bool(np.diag(self.inertia_sigma).max() <= moments.mean())

    def interval(self, level: float = 0.95) -> Array:
        """``(10, 2)`` confidence limits of the ten parameters."""
        freedom = self.estimate.details.get("degrees_of_freedom", self.estimate.n_rows - 10)
        return confidence_interval(self.phi, self.sigma, freedom, level)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers; None where something is not determined."""
        return {
            "method": self.method,
            "mass": self.mass,
            "com": self.com.tolist(),
            "inertia": self.inertia.tolist(),
            "phi": self.phi.tolist(),
            "sigma": finite(self.sigma),
            "com_sigma": finite(self.com_sigma),
            "inertia_sigma": [finite(row) for row in self.inertia_sigma],
            "interval": [finite(row) for row in self.interval()],
            "feasible": self.feasible,
            "unknown": list(self.unknown),
            "iterations": len(self.iterates),
            "iterates": self.iterates.tolist(),
        }


def finite(values: Array) -> list[float | None]:
    """Numbers as JSON has them: None for what is infinite."""
    return [float(value) if np.isfinite(value) else None for value in values]


def estimate_body(
    regression: Regression,
    methods: Sequence[str] = METHODS,
    constraints: Sequence[Constraint] = (),
    *,
    weighted: bool = True,
) -> tuple[BodyEstimate, ...]:
    """A body by several methods on the same rows, whose first ten parameters are the body's.

    Args:
        regression: rows over ten parameters of body 1, and whatever stands beside them (offsets, change of friction).
        methods: among ``ols``, ``wls``, ``sdp`` and ``manifold``.
        constraints: what is known of the body beyond physical consistency; the semidefinite method alone takes them.
        weighted: count channels by their noise in ``sdp`` and ``manifold``; otherwise every row counts the same.
    """
    names = regression.parameters.names
    base = BaseReduction.from_matrix(np.eye(len(names)), names)
    prior = plausible_prior(regression, base)
    return tuple(_by(name, regression, base, prior, tuple(constraints), weighted) for name in methods)


def plausible_prior(regression: Regression, base: BaseReduction) -> Parameters:
    """A ball of the mass and at the place that least squares finds; what the data do not determine stays near it."""
    found = estimate(regression, base, OrdinaryLeastSquares(covariance="classical")).standard.values
    mass = float(found[0]) if found[0] > 1e-3 else 1.0
    com = found[1:4] / mass
    far = float(np.linalg.norm(com))
    com = com if far < 1.0 else np.zeros(3)
    ball = phi_from_mass_com_inertia(mass, com, 0.4 * mass * RADIUS_M**2 * np.eye(3))
    return regression.parameters.with_values(np.concatenate([ball, np.zeros(len(found) - 10)]))


def _by(
    name: str,
    regression: Regression,
    base: BaseReduction,
    prior: Parameters,
    constraints: tuple[Constraint, ...],
    weighted: bool,
) -> BodyEstimate:
    from dynid.estimation.methods.manifold import Manifold

    iterates: list[Array] = []

    def watch(parameters: Parameters) -> None:
        iterates.append(parameters.values[:10])

    made: dict[str, Method] = {
        "ols": OrdinaryLeastSquares(),
        "wls": WeightedLeastSquares(),
        "sdp": FeasibleSDP(weighted=weighted, effects_positive=False, constraints=constraints),
        "manifold": Manifold(weighted=weighted, effects_positive=False, from_prior=True, watch=watch),
    }
    if name not in made:
        raise UnknownNameError("method", name, made)
    started = time.perf_counter()
    result = estimate(regression, base, made[name], prior)
    spent = time.perf_counter() - started
    if not result.outcome.usable:
        raise InputError(f"the body cannot be estimated by {name}: {'; '.join(result.notes) or result.outcome.value}")
    found = replace(body_estimate(name, result, np.array(iterates).reshape(-1, 10)), seconds=spent)
    return (
        found
        if name != "sdp" or known_mass(constraints) is None
        else replace(found, covariance=given_mass(found.covariance))
    )


def known_mass(constraints: Sequence[Constraint]) -> float | None:
    """The mass of the body where constraints fix it."""
    from dynid.estimation.constraints.bodies import MassBounds

    fixed = [one.lower for one in constraints if isinstance(one, MassBounds) and one.lower == one.upper]
    return fixed[0] if fixed else None


def given_mass(covariance: Array) -> Array:
    """Covariance of the other parameters once the mass is known: ``C - C_m C_m^T / C_mm``."""
    with_mass, variance = covariance[:, 0], covariance[0, 0]
    known = np.isfinite(np.diag(covariance))
    rest = covariance.copy()
    if known[0] and variance > 0.0:
        rest[np.ix_(known, known)] -= np.outer(with_mass, with_mass)[np.ix_(known, known)] / variance
    rest[0, :] = rest[:, 0] = 0.0
    return freeze(rest)


def body_estimate(name: str, result: Estimate, iterates: Array | None = None) -> BodyEstimate:
    """The body of an estimate whose first ten base values are its parameters."""
    covariance = np.array(result.covariance[:10, :10])
    unseen = np.array(result.origin[:10]) != "data"  # "mixed" is right only as far as the prior of another value
    covariance[unseen, :] = covariance[:, unseen] = 0.0
    covariance[unseen, unseen] = np.inf
    known = np.empty((0, 10)) if iterates is None else iterates
    return BodyEstimate(name, freeze(result.standard.values[:10]), freeze(covariance), result, freeze(known))
