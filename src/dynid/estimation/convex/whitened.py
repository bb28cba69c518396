"""The objective that the consistent methods share, in scaled coordinates ``x`` with ``phi = D x``.

    chi^2(x) = sum_j w_j^2 || A_j K phi - b_j ||^2 / sigma^2      in units of the noise, so that a change of one matters
    J(x)     = [ 1/2 chi^2 + 1/2 pull || x - x_c ||^2 + strength R(x) ] / freedom

``x_c`` is the unconstrained solution, completed by the prior where the data say nothing, so up to a constant
``chi^2 = || F (x - x_c) ||^2``: consistent methods differ only in how they look for the nearest consistent point. ``R`` is

    euclidean   1/2 || phi - phi_0 ||^2
    scaled      1/2 || D^-1 (phi - phi_0) ||^2
    entropic    1/2 sum_k [ tr(P_0k^-1 P_k) - log det(P_0k^-1 P_k) - 4 ]
    auto        entropic, around the nearest consistent body where a link of the description is none; where no link has
                inertials 1/2 || phi - phi_0 ||^2 of the links. Friction and rotor inertia are never pulled.

With a prior, the share of the data in each base value comes from the curvature of ``chi^2`` and of ``R`` at the estimate.

The optimum without a prior is often approached only as masses nobody can see grow without end. The pull holds them: with
1e-4 it says that a parameter is known to a hundred times its link's size, and costs far less than the noise hides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.linalg

from dynid.arrays import Array, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.constraints import Constraint, PositiveEffects
from dynid.estimation.constraints.passive import PassiveFriction
from dynid.estimation.convex.conic import (
    ConsistentSet,
    EntropicPrior,
    entropic_divergence,
    entropic_hessian,
    onto_equalities,
)
from dynid.estimation.convex.description import described_bodies
from dynid.estimation.convex.layout import Layout
from dynid.estimation.linear import LinearProblem
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate
from dynid.estimation.seen import with_prior
from dynid.estimation.uncertainty import CovarianceKind, uncertainty
from dynid.inertia import is_consistent
from dynid.regression.factor import Regression
from dynid.regression.independence import triangle_of

PriorKind: TypeAlias = Literal["none", "euclidean", "scaled", "entropic", "auto"]
PULL = 1e-4
"""Default pull, in units of chi^2."""
HARDLY = 1e-4
"""Part of the pull that is left on friction and rotor inertia under the prior ``auto``."""
NEARLY_FREE = 1e-2
"""Excess of chi^2 below which the unconstrained solution itself is tried again."""
NOISE_FLOOR = 1e-4
"""Smallest residual, relative to torque, that counts as noise: data without any would make everything else count nothing."""


@dataclass(frozen=True, eq=False)
class WhitenedFit:
    """A least-squares problem in scaled coordinates around its unconstrained solution."""

    problem: LinearProblem
    weights: Array
    beta: Array
    """The unconstrained base values."""
    consistent: ConsistentSet
    F: Array
    """Whitened, over ``sqrt(freedom)``: ``chi^2 / freedom`` grows by ``||F (x - centre)||^2``."""
    centre: Array
    """The unconstrained solution; with a quadratic prior that of data and prior together."""
    free: Array
    """The unconstrained solution of the data alone."""
    pull: Array
    """Per variable, over the freedom."""
    entropic: EntropicPrior | None
    freedom: float
    data_rows: int
    """Rows of ``F`` that stand for data; the others for a quadratic prior."""

    @classmethod
    def of(
        cls,
        problem: LinearProblem,
        *,
        condition: str,
        margin: float,
        absolute: bool = False,
        constraints: Iterable[Constraint] = (),
        effects_positive: bool = True,
        passive: bool = False,
        weighted: bool = False,
        prior: PriorKind = "none",
        strength: float = 1.0,
        pull: float = PULL,
        weights: Array | None = None,
    ) -> WhitenedFit:
        """The fit; ``weights`` of the channels take the place of those by their noise.

        ``passive`` asks of the whole friction of a joint, beyond signs of single values, that it drives the joint nowhere.
        """
        if weights is None:
            weights = channel_weights(problem) if weighted else np.ones(len(problem.channels))
        triangle = problem.triangle(weights)
        # one triangle serves the solution and the factor: merging the channels is the dearest step of a large robot
        beta = problem.solve_rows(triangle)
        links = problem.regression.robot.links if problem.regression.has_robot else ()
        layout = Layout.of_parameters(problem.prior, links)
        known = (*((PositiveEffects(),) if effects_positive else ()), *constraints)
        if effects_positive and passive:
            known = (*passive_friction(problem.regression), *known)
        consistent = ConsistentSet.of(
            layout, condition=condition, margin=margin, absolute=absolute, constraints=known, prior=problem.prior
        )
        D = consistent.scale
        rows = problem.rows()
        noise = max(
            float(np.linalg.norm(triangle[:, -1] - triangle[:, :-1] @ beta)),
            NOISE_FLOOR * float(np.linalg.norm(triangle[:, -1])),
            1e-300,
        )
        freedom = max(float(rows.sum()) - problem.seen.rank, 1.0)
        E = problem.base.K * D
        F = triangle[: problem.base.n_base, :-1] @ E / noise
        free = onto_equalities(E, beta, problem.prior.values / D)
        pulls = np.full(consistent.n, pull / freedom)
        x0 = problem.prior.values / D
        centre, entropic, data_rows = free, None, len(F)
        if prior in ("euclidean", "scaled"):
            root = np.sqrt(strength / freedom) * (D if prior == "euclidean" else np.ones(consistent.n))
            F, centre = _with_quadratic_prior(F, free, x0, root)
            pulls[:] = 0.0
        elif prior == "entropic":
            _require_consistent_prior(layout, problem)
            entropic = EntropicPrior(0.5 * strength / freedom, x0)
            pulls[layout.slots.ravel()] = 0.0
        elif prior == "auto":
            bodies, links_only = described_bodies(layout, x0), layout.slots.ravel()
            pulls *= HARDLY  # what is left to the prior must not be decided by the units of friction
            pulls[links_only] = 0.0
            if bodies is None:
                root = np.zeros(consistent.n)
                root[links_only] = np.sqrt(strength / freedom) * D[links_only]
                F, centre = _with_quadratic_prior(F, free, x0, root)
            else:
                entropic = EntropicPrior(0.5 * strength / freedom, bodies)
        return cls(
            problem, weights, beta, consistent, F, freeze(centre), freeze(free), freeze(pulls), entropic, freedom, data_rows
        )

    @property
    def data_only(self) -> bool:
        """Whether no prior takes part."""
        return self.entropic is None and self.data_rows == len(self.F)

    def value(self, x: Array) -> float:
        """``J``, less its value at the unconstrained solution of data and quadratic prior."""
        step = x - self.centre
        excess = self.F @ step
        total = 0.5 * float(excess @ excess) + 0.5 * float(self.pull @ step**2)
        if self.entropic is not None:
            total += self.entropic.weight * entropic_divergence(self.consistent.layout, x, self.entropic.x0)
        return total

    def chi_square_excess(self, x: Array) -> float:
        """``chi^2`` of the data above its unconstrained minimum."""
        excess = self.F[: self.data_rows] @ (x - self.free)
        return self.freedom * float(excess @ excess)

    def with_free_base(self, x: Array) -> Array | None:
        """The point nearest to ``x`` with exactly the unconstrained base values, if it is in the set."""
        if not self.data_only or self.chi_square_excess(x) > NEARLY_FREE:
            return None
        nearby = onto_equalities(self.problem.base.K * self.consistent.scale, self.beta, x)
        return nearby if self.consistent.contains(nearby) else None

    def share_of_data(self, x: Array) -> Array:
        """``1 - posterior variance / prior variance`` of every base value, by the curvature of the objective at ``x``.

        With ``H = F^T F + H_prior`` the posterior variance of ``beta_i = e_i . x`` is ``e_i^T H^-1 e_i``.
        """
        prior: Array = self.F[self.data_rows :]
        if self.entropic is None:
            # what no prior holds is held by the pull, or by next to nothing
            least = np.maximum(self.pull, 1e-6 * PULL / self.freedom)
            prior = np.vstack([prior, np.diag(np.sqrt(least))])
        else:
            slots = self.consistent.layout.slots
            # a divergence of bodies knows nothing of effects: there the pull stands for it
            H = np.diag(np.maximum(self.pull, 1e-6 * PULL / self.freedom))
            H[slots[:, :, None], slots[:, None, :]] += self.entropic.weight * entropic_hessian(self.consistent.layout, x)
            prior = np.asarray(np.linalg.cholesky(H).T)
        directions = (self.problem.base.K * self.consistent.scale).T
        both = triangle_of(np.vstack([self.F[: self.data_rows], prior]))
        posterior, before = (
            np.sum(scipy.linalg.solve_triangular(root, directions, trans="T") ** 2, axis=0)
            for root in (both, triangle_of(prior))
        )
        return np.asarray(1.0 - np.clip(posterior / before, 0.0, 1.0))

    def phi(self, x: Array) -> Array:
        return np.asarray(self.consistent.scale * x)

    def finish(
        self,
        method: str,
        x: Array | None,
        covariance: CovarianceKind,
        outcome: Outcome | None,
        notes: Sequence[str],
        details: Mapping[str, Any],
        *,
        free: bool = False,
    ) -> Estimate:
        """The estimate of a consistent method; without an answer, the unconstrained one with the outcome that says so.

        ``free`` says that ``x`` has the unconstrained base values, which are then given to the last digit.
        """
        problem, more = self.problem, dict(details)
        if x is not None and not self.data_only:
            share = self.share_of_data(x)
            problem, more["share_of_data"] = replace(problem, seen=with_prior(problem.seen, share)), share.tolist()
        standard = None if x is None else problem.prior.with_values(self.phi(x))
        beta = problem.solve(self.weights) if free or standard is None else problem.base.base_values(standard)
        sigma = problem.noise_sigma(self.beta, pooled=bool((self.weights == 1.0).all()))
        found = uncertainty(problem, self.beta, self.weights, sigma, covariance)
        return problem.finish(
            method,
            beta,
            found.covariance,
            outcome=outcome,
            standard=standard,
            notes=(*found.notes, *notes),
            details={**found.details, **more, "noise_sigma": sigma.tolist(), "weights": self.weights.tolist()},
        )


def passive_friction(regression: Regression) -> tuple[Constraint, ...]:
    """That friction drives no joint at the speeds of the robot and of the rows; nothing where no robot made them."""
    if not regression.has_robot:
        return ()
    motions = [one for source in regression.sources for one in source.samples]
    return (PassiveFriction.of(regression.robot, motions),)


def check_prior(kind: str, strength: float, pull: float) -> None:
    """Refuse an unknown prior, a strength that is not positive, a negative pull."""
    if kind not in get_args(PriorKind):
        raise UnknownNameError("prior", kind, get_args(PriorKind))
    if not (np.isfinite(strength) and strength > 0.0):
        raise InputError(f"strength of the prior is {strength:g}, expected a positive number")
    if not (np.isfinite(pull) and pull >= 0.0):
        raise InputError(f"pull is {pull:g}, expected zero or a positive number")


def channel_weights(problem: LinearProblem, iterations: int = 20, settle: float = 1e-6) -> Array:
    """Weights ``1 / sigma_j`` of every channel, of geometric mean one, from the residuals of the fit they give."""
    weights = np.ones(len(problem.channels))
    floor = noise_floor(problem)
    for _ in range(iterations):
        new = 1.0 / np.maximum(problem.noise_sigma(problem.solve(weights), pooled=False), floor)
        new /= np.exp(np.log(new).mean())
        change = float(np.abs(np.log(new / weights)).max())
        weights = new
        if change < settle:
            break
    return weights


def noise_floor(problem: LinearProblem) -> float:
    """The least noise that a channel is weighted by: rows without any would leave the others no say."""
    return 1e-10 * max(float(problem.regression.torque_norms.max()), 1e-300)


def _with_quadratic_prior(F: Array, free: Array, x0: Array, root: Array) -> tuple[Array, Array]:
    """``||F (x - free)||^2 + ||root (x - x0)||^2`` as one square around its own minimum, up to a constant."""
    both = np.vstack([F, np.diag(root)])
    target = np.concatenate([np.zeros(len(F)), root * (x0 - free)])  # as steps, so that what neither holds stays
    return both, np.asarray(free + scipy.linalg.lstsq(both, target, lapack_driver="gelsy")[0])


def _require_consistent_prior(layout: Layout, problem: LinearProblem) -> None:
    """A divergence needs a prior strictly inside the full condition."""
    bodies = problem.prior.values[layout.slots]
    good = np.atleast_1d(np.asarray(is_consistent(bodies, "full", margin=1e-9)))
    if not good.all():
        bad = ", ".join(str(layout.links[i]) for i in np.flatnonzero(~good))
        raise InputError(
            f"an entropic prior needs bodies strictly inside the full condition; {int((~good).sum())} of {len(good)} links "
            f"are not: {bad}; repair the model first or choose the scaled prior"
        )
