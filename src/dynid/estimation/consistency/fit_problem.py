"""The fit that the consistent methods share, in scaled coordinates ``x`` with ``phi = D x``.

    chi^2(x) = sum_j w_j^2 || A_j K phi - b_j ||^2 / sigma^2      in units of the noise, so that a change of one matters
    J(x)     = [ 1/2 chi^2 + 1/2 pull || x - x_c ||^2 + strength R(x) ] / freedom

``x_c`` is the unconstrained solution, completed by the prior where the data say nothing, so up to a constant
``chi^2 = || F (x - x_c) ||^2``: consistent methods differ only in how they look for the nearest consistent point. ``R`` is

    euclidean   1/2 || phi - phi_0 ||^2
    scaled      1/2 || D^-1 (phi - phi_0) ||^2
    entropic    1/2 sum_k [ tr(P_0k^-1 P_k) - log det(P_0k^-1 P_k) - 4 ]
    auto        entropic; if a link of the description is not physically possible, the nearest possible one is phi_0k; where no link
                has inertials 1/2 || phi - phi_0 ||^2 of the links. Friction and rotor inertia are never pulled.

Where an offset of torque acts like the weight of bodies, ``x_c`` has the smallest offset, and the prior ``auto`` keeps it there: what of
offsets is free (:class:`~dynid.estimation.linear.OffsetPreference`) costs ``SMALL_OFFSETS^2`` per mean square torque of its joint. It has
no torque, so no base value feels it; where the described masses would have to be far off for it, it is left out. Rotors beside
bodies of which nothing is known are held the same way, less firmly.

With a prior, the share of the data in each base value comes from the curvature of ``chi^2`` and of ``R`` at the estimate.

The optimum without a prior is often approached only as masses nobody can see grow without end. The pull holds them: with
1e-4 it says that a parameter is known to a hundred times its link's size, and costs far less than the noise hides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.linalg

from dynid.arrays import Array, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency.consistent_set import ON_BOUNDARY, ConsistentSet, cannot_hold, onto_equalities
from dynid.estimation.consistency.solve import EntropicPrior, entropic_divergence, entropic_hessian, fit_in, max_margin_point
from dynid.estimation.constraints.base import Constraint, Layout, PassiveFriction, PositiveEffects
from dynid.estimation.linear import LinearProblem, OffsetPreference, with_prior
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.uncertainty import CovarianceKind, uncertainty
from dynid.model.inertia import PSEUDO_BASIS, consistency, is_consistent, phi_from_pseudo_inertia, pseudo_inertia
from dynid.regression.channels import triangle_of
from dynid.regression.factor import Regression

PriorKind: TypeAlias = Literal["none", "euclidean", "scaled", "entropic", "auto"]
PULL = 1e-4
"""Default pull, in units of chi^2."""
HARDLY = 1e-4
"""Part of the pull that is left on friction and rotor inertia under the prior ``auto``."""
NEARLY_FREE = 1e-2
"""Excess of chi^2 below which the unconstrained solution itself is tried again."""
SMALL_OFFSETS = 100.0
"""Weight of offsets that nothing tells from weight, over the torque of their joint: far above that of any prior on bodies."""
SMALL_ROTORS = 10.0
"""Weight of rotors that nothing tells from bodies of which nothing is known, over 1 kg m^2: above that of the bodies."""
USABLE = 1e-4
"""How far inside the consistent set, relative to its size, a link of the description must be to be taken as it is."""
LEAST = 0.02
"""Smallest eigenvalue of the scaled pseudo-inertia of a link that is not."""
NOISE_FLOOR = 1e-4
"""Smallest residual, relative to torque, that counts as noise: data without any would make everything else count nothing."""


def _prior_parts(
    prior: PriorKind, problem: LinearProblem, layout: Layout, scale: Array, pulls: Array
) -> tuple[Array | None, Array]:
    """Bodies that a divergence holds, and how firmly a quadratic prior holds each value; what either holds is pulled no more."""
    bodies, held, of_links = None, np.zeros(len(pulls)), layout.slots.ravel()
    if prior in ("euclidean", "scaled"):
        held = scale if prior == "euclidean" else np.ones(len(pulls))
        pulls[:] = 0.0
    elif prior == "entropic":
        bodies = consistent_bodies(layout, problem)
        pulls[of_links] = 0.0
    elif prior == "auto":
        bodies = described_bodies(layout, problem.prior.values / scale)
        pulls *= HARDLY  # what is left to the prior must not be decided by the units of friction
        pulls[of_links] = 0.0
        if bodies is None:
            held[of_links] = scale[of_links]
    return bodies, held


@dataclass(frozen=True, eq=False)
class ConsistentFit:
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
    ) -> ConsistentFit:
        """The fit; ``weights`` of the channels take the place of those by their noise.

        ``passive`` asks of the whole friction of a joint, beyond signs of single values, that it drives the joint nowhere.
        """
        if weights is None:
            weights = problem.settled_weights()[0] if weighted else np.ones(len(problem.channels))
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
        left, whole = (float(np.linalg.norm(b)) for b in (triangle[:, -1] - triangle[:, :-1] @ beta, triangle[:, -1]))
        noise = max(left, NOISE_FLOOR * whole, 1e-300)
        freedom = max(float(problem.rows().sum()) - problem.seen.rank, 1.0)
        E = problem.base.K * D
        F = triangle[: problem.base.n_base, :-1] @ E / noise
        x0 = problem.prior.values / D
        offsets = OffsetPreference.of(problem.base, problem.prior)
        free = onto_equalities(E, beta, x0)
        centre = free = free + offsets.shift(D * free) / D
        pulls, data_rows = np.full(consistent.n, pull / freedom), len(F)
        bodies, held = _prior_parts(prior, problem, layout, D, pulls)
        if held.any():
            root = np.sqrt(strength / freedom) * held
            F = np.vstack([F, np.diag(root)])
            target = np.concatenate([np.zeros(data_rows), root * (x0 - free)])  # as steps, so that what neither holds stays
            centre = np.asarray(free + scipy.linalg.lstsq(F, target, lapack_driver="gelsy")[0])
        if prior == "auto" and len(offsets.columns) and offsets.is_plausible(D * free):
            firmness = np.full(len(offsets.columns), SMALL_ROTORS)
            firmness[: offsets.n_offsets] = SMALL_OFFSETS / offset_torques(problem, offsets)
            wanted = firmness[:, None] * offsets.of_parameters() * D
            F = np.vstack([F, wanted / np.sqrt(freedom)])
            shift = offsets.shift(D * centre) / D  # what the quadratic prior moved
            centre = centre + shift
        entropic = None if bodies is None else EntropicPrior(0.5 * strength / freedom, bodies)
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

    @cached_property
    def quadratic(self) -> Array:
        """The Hessian of ``J`` without the entropic prior."""
        return np.asarray(self.F.T @ self.F + np.diag(self.pull))

    def derivatives(self, x: Array) -> tuple[Array, Array]:
        """Gradient and Hessian of ``J``."""
        gradient, hessian = self.quadratic @ (x - self.centre), self.quadratic
        if self.entropic is not None:
            slots, weight = self.consistent.layout.slots, self.entropic.weight
            inverse = np.linalg.inv(pseudo_inertia(x[slots]))
            prior = np.linalg.inv(pseudo_inertia(self.entropic.x0[slots]))
            gradient[slots] += weight * np.einsum("lij,kij->lk", prior - inverse, PSEUDO_BASIS)
            hessian = hessian.copy()
            hessian[slots[:, :, None], slots[:, None, :]] += weight * entropic_hessian(self.consistent.layout, x)
        return gradient, hessian

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
            prior = _root_of(H, float(H.diagonal().min()))
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
        cov, spread = uncertainty(problem, self.beta, self.weights, sigma, covariance)
        return problem.finish(
            method,
            beta,
            cov,
            outcome=outcome,
            standard=standard,
            notes=tuple(notes),
            details={**spread, **more, "noise_sigma": sigma.tolist(), "weights": self.weights.tolist()},
        )


def _root_of(H: Array, least: float) -> Array:
    """``R`` with ``R^T R = H``; where a body at the edge of the consistent set leaves ``H`` definite but for rounding, by its spectrum."""
    try:
        return np.asarray(np.linalg.cholesky(H).T)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(H)
        return np.asarray(np.sqrt(np.maximum(values, least))[:, None] * vectors.T)


def offset_torques(problem: LinearProblem, offsets: OffsetPreference) -> Array:
    """Root mean square torque of the joint that each of these offsets acts on."""
    K = problem.base.K[:, offsets.columns[: offsets.n_offsets]]
    acting = np.array([np.linalg.norm(block[:, :-1] @ K, axis=0) for block in problem.channels])
    channel = acting.argmax(axis=0)
    torque = np.array([np.linalg.norm(block[:, -1]) for block in problem.channels])[channel]
    return np.asarray(np.maximum(torque, 1e-300) / np.maximum(acting.max(axis=0), 1e-300))


def passive_friction(regression: Regression) -> tuple[Constraint, ...]:
    """That friction drives no joint at the speeds of the robot and of the rows; nothing where no robot made them."""
    if not regression.has_robot:
        return ()
    motions = [one for source in regression.sources for one in source.samples]
    return (PassiveFriction.of(regression.robot, motions),)


def check_prior(kind: str, strength: float, regularization: float) -> None:
    """Refuse an unknown prior, a strength that is not positive, a negative regularization."""
    if kind not in get_args(PriorKind):
        raise UnknownNameError("prior", kind, get_args(PriorKind))
    if not (np.isfinite(strength) and strength > 0.0):
        raise InputError(f"strength of the prior is {strength:g}, expected a positive number")
    if not (np.isfinite(regularization) and regularization >= 0.0):
        raise InputError(f"regularization is {regularization:g}, expected zero or a positive number")


def described_bodies(layout: Layout, x: Array) -> Array | None:
    """Scaled parameters ``x`` of a description with a consistent body in every link; None where no link has inertials.

    A divergence of bodies needs a consistent body for every link. Of a link whose inertials no body can have, it is the nearest
    one whose pseudo-inertia is clearly positive; a link without inertials is taken to be small, so that it stays as light as the
    data let.
    """
    bodies = x[layout.slots]
    if consistency(bodies).empty.all():
        return None
    found = np.array(x)
    for slots, body in zip(layout.slots, bodies, strict=True):
        if not is_consistent(body, margin=USABLE):
            values, vectors = np.linalg.eigh(pseudo_inertia(body))
            found[slots] = phi_from_pseudo_inertia((vectors * np.maximum(values, LEAST)) @ vectors.T)
    return found


def consistent_bodies(layout: Layout, problem: LinearProblem) -> Array:
    """The prior of a divergence, scaled; refused unless strictly inside the full condition."""
    good = np.atleast_1d(np.asarray(is_consistent(problem.prior.values[layout.slots], "full", margin=1e-9)))
    if not good.all():
        bad = ", ".join(str(layout.links[i]) for i in np.flatnonzero(~good))
        raise InputError(
            f"an entropic prior needs bodies strictly inside the full condition; {int((~good).sum())} of {len(good)} links "
            f"are not: {bad}; repair the model first or choose the scaled prior"
        )
    return np.asarray(problem.prior.values / layout.scale(problem.prior))


Solved: TypeAlias = tuple[Array | None, dict[str, Any], tuple[str, ...], Outcome | None]
"""A point, details, notes and the outcome (None: as usual)."""


def solve_whitened(fit: ConsistentFit) -> Solved:
    """The best consistent point, notes on it, and the outcome (None: as usual)."""
    consistent = fit.consistent
    if fit.entropic is None and consistent.contains(fit.centre):
        details = {
            "constraints_active": False,
            "iterations": 0,
            "gap": 0.0,
            "chi_square_excess": fit.chi_square_excess(fit.centre),
        }
        return fit.centre, details, (), None
    found = fit_in(consistent, fit.F, fit.centre, pull=fit.pull, entropic=fit.entropic, freedom=fit.freedom)
    if not found.usable and found.verdict != "infeasible":  # again with a looser tolerance and a stronger pull
        pull = np.maximum(1e3 * fit.pull, 1e-9)
        other = fit_in(consistent, fit.F, fit.centre, pull=pull, entropic=fit.entropic, tolerance=1e-7)
        found = other if other.usable else found
    if not found.usable:
        best = max_margin_point(consistent, reference=fit.centre)
        if best.slack < -ON_BOUNDARY:
            labels = consistent.active_constraints(best.dual)
            return None, {"depth": best.slack}, cannot_hold(labels[:4]), Outcome.INFEASIBLE
        return None, {}, (f"the solver ended with '{found.status}'",), Outcome.STALLED
    x, active = _unseen_effects_held(fit, found.x), True
    if fit.data_only and fit.chi_square_excess(x) < NEARLY_FREE:
        same = _unconstrained_base(fit, x)
        x, active = (x, True) if same is None else (same, False)
    details = {
        "constraints_active": active,
        "iterations": found.iterations,
        "gap": found.gap,
        "solver_seconds": found.seconds,
        "moved": found.moved,
        "slack": found.slack,
        "chi_square_excess": fit.chi_square_excess(x),
        "objective": fit.value(x),
    }
    if found.verdict == "solved":
        return x, details, (), None
    return x, details, (f"the solver ended with '{found.status}'",), Outcome.STALLED


def _unseen_effects_held(fit: ConsistentFit, x: Array) -> Array:
    """``x`` with the effects that the data do not determine at their centre, which is the prior.

    Nothing but the pull holds them in the program, and that is weaker than the solver's tolerance.
    """
    seen = fit.problem.seen.mask
    unseen = ~(fit.problem.base.K[seen] != 0.0).any(axis=0)
    unseen[fit.consistent.layout.slots.ravel()] = False
    if not unseen.any():
        return x
    held = np.array(x)
    held[unseen] = fit.centre[unseen]
    held, _ = fit.consistent.pushed(held)
    return held if fit.consistent.contains(held, max(ON_BOUNDARY, -float(fit.consistent.slacks(x).min()))) else x


def _unconstrained_base(fit: ConsistentFit, x: Array) -> Array | None:
    """A consistent point with exactly the unconstrained base values, if there is one: nearest to the centre, or to ``x``."""
    nearby = fit.with_free_base(x)
    if nearby is not None:
        return nearby
    E = fit.problem.base.K * fit.consistent.scale
    empty = np.zeros((0, fit.consistent.n))
    same = fit_in(fit.consistent, empty, fit.centre, pull=1e-3, equalities=(E, fit.beta))
    if not same.usable:
        return None
    exact = onto_equalities(E, fit.beta, same.x)
    return exact if fit.consistent.contains(exact, ON_BOUNDARY) else None
