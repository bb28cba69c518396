"""Optimal consistent parameters by semidefinite programming (Sousa and Cortesao 2014, 4.4: FBPE), on the small triangle.

    minimise  || W beta - tau ||^2   over consistent phi,   beta = K phi

The program is convex: its answer is the best consistent one. It is solved in whitened, scaled coordinates around the
unconstrained solution; the answer is verified by eigenvalues and, where the solver's tolerance left it outside, pushed in.

Least squares, then the nearest feasible base values (Sousa and Cortesao 2014, 4.3: OLS and BPFC).

    beta = argmin || W beta - tau ||,     beta' = argmin || beta - K phi ||   over consistent phi

The correction knows nothing of the data, so on them the semidefinite estimate is never worse; it is here to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.engine import Tell, silent
from dynid.errors import UnknownNameError
from dynid.estimation.consistency.consistent_set import MARGIN
from dynid.estimation.consistency.correction import METRICS, Metric, closest_feasible
from dynid.estimation.consistency.fit_problem import (
    PULL,
    ConsistentFit,
    PriorKind,
    Solved,
    check_prior,
    passive_friction,
    solve_whitened,
)
from dynid.estimation.constraints.base import Constraint
from dynid.estimation.constraints.bounds import constraints_from_table
from dynid.estimation.constraints.shapes import DensityInBox, DensityInEllipsoid, boxes_of
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem, offsets_within_noise
from dynid.estimation.methods.registry import options_given
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression

WITHIN = 0.02
"""Part of chi-square, above that of the best consistent fit, that the prior ``auto`` may cost; and never more than one per value
that the data determine, which is what chi-square of the true values exceeds its least value by."""
WEAKER, WEAKENED = 0.2, 8
"""Factor by which a prior that costs more is weakened, and how often at most before it is left out."""
MISFIT_ROUNDS, SETTLED = 4, 0.02
"""Rounds in which weights and misfit are found, and the change of weights at which they have settled."""


@dataclass(frozen=True)
class FeasibleSDP:
    """The physically consistent parameters that fit best, by semidefinite programming.

    The covariance is that of the unconstrained fit; constraints can only reduce it.

    Args:
        condition: ``full``, or ``plain`` for Sousa's condition without the triangle inequality.
        margin: smallest eigenvalue of every link, relative to its size in the prior.
        absolute: take the margin in SI units instead.
        constraints: further constraints, such as ``dynid.TotalMass``.
        boxes: constraints of single links, such as :class:`~dynid.estimation.constraints.shapes.DensityInBox`, that are kept
            unless the data contradict them: a link whose constraints make the fit worse than the noise explains goes without them.
        box_notes: sentences on links without boxes, for the notes of the estimate.
        effects_positive: keep friction and rotor inertia that cannot be negative at zero or above, and the whole friction of every
            joint passive: at no speed of the robot does it drive the joint (:mod:`dynid.estimation.friction.passivity`).
        weighted: weight joints by their own noise. Where consistency adds an error beyond the noise, which no joint owns, that
            error counts in every joint alike: weights are ``1 / sqrt(noise_j^2 + misfit^2)``.
        prior: regularisation towards the prior parameters: ``none``, ``euclidean``, ``scaled``, ``entropic``, or ``auto``, which is
            weakened until it fits as well as the data can tell, see :mod:`dynid.estimation.consistency.fit_problem`.
        strength: weight of the prior in units of the noise; 1 takes it to be as uncertain as each parameter's size.
        regularization: weight of a small pull to the prior along directions that the data do not determine.
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.FeasibleSDP())
        >>> result.feasible, result.outcome.name
        (True, 'SOLVED')
    """

    name: ClassVar[str] = "sdp"
    shares_misfit: ClassVar[bool] = True
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order"})
    condition: str = "full"
    margin: float = MARGIN
    absolute: bool = False
    constraints: tuple[Constraint, ...] = ()
    boxes: tuple[DensityInBox | DensityInEllipsoid, ...] = ()
    box_notes: tuple[str, ...] = ()
    effects_positive: bool = True
    weighted: bool = False
    prior: PriorKind = "none"
    strength: float = 1.0
    regularization: float = PULL
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", tuple(self.constraints))
        object.__setattr__(self, "boxes", tuple(self.boxes))
        check_kind(self.covariance)
        check_prior(self.prior, self.strength, self.regularization)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> FeasibleSDP:
        """The method of a run.

        What the data hardly determine of a link, its mass most of all, would move to the boundary of the consistent set. So
        the estimate is held by the description, as far as that costs nothing that the data can tell.
        """
        chosen = options_given(options, ("condition", "margin", "weighted", "regularization"))
        boxes, box_notes = boxes_of(robot) if options.get("boxes", True) else ((), ())
        return cls(
            prior=options["prior"],
            strength=options["prior_strength"],
            constraints=constraints_from_table(options["constraints"]),
            boxes=boxes,
            box_notes=box_notes,
            **chosen,
        )

    def whiten(
        self,
        problem: LinearProblem,
        *,
        prior: PriorKind | None = None,
        strength: float | None = None,
        weights: Array | None = None,
        boxes: Sequence[Constraint] = (),
    ) -> ConsistentFit:
        """The program's data: its set, its factor, its centre; under another prior or other weights where these are given."""
        return ConsistentFit.of(
            problem,
            condition=self.condition,
            margin=self.margin,
            absolute=self.absolute,
            constraints=(*self.constraints, *boxes),
            effects_positive=self.effects_positive,
            passive=True,
            weighted=self.weighted,
            prior=self.prior if prior is None else prior,
            strength=self.strength if strength is None else strength,
            pull=self.regularization,
            weights=weights,
        )

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        found = self._estimate(problem)
        if self.prior != "auto" or not len(offsets := offsets_within_noise(found, prior)):
            return found
        held = self._estimate(problem.knowing(offsets))
        if not held.outcome.usable:
            return found
        standard = held.standard.updated({base.names[k]: prior[base.names[k]] for k in offsets})  # to the last digit
        spread = {key: found.details[key] for key in ("classical_sigma", "degrees_of_freedom") if key in found.details}
        return replace(
            found,
            base_values=base.base_values(standard),
            standard=standard,
            residual_rms=held.residual_rms,
            relative_error=held.relative_error,
            outcome=found.outcome
            if held.outcome is Outcome.RANK_DEFICIENT
            else held.outcome,  # offsets are known, not missed
            notes=(*held.notes, "torque offsets lie within their noise: they are held at those of the description"),
            details={**held.details, **spread},
        )

    def _estimate(self, problem: LinearProblem) -> Estimate:
        plain = self.whiten(problem, prior="none")
        at_once = self._at_once(plain) if self.prior == "auto" else None
        fit, found, contradicted = (*at_once, {}) if at_once is not None else self._step_by_step(plain)
        x, details, notes, outcome = found
        free = fit.data_only and not details.get("constraints_active", True)
        if self.boxes:
            details["boxes"] = {
                "kept": [str(box.link) for box in self.boxes if str(box.link) not in contradicted],
                "contradicted": {link: part if np.isfinite(part) else None for link, part in contradicted.items()},
            }
        contradictions = (
            f"the data contradict that the mass of link '{link}' lies in the box around its shapes"
            + (f" (the residual would grow by {100.0 * part:.2g} %)" if np.isfinite(part) else "")
            + ": it was identified without"
            for link, part in contradicted.items()
        )
        return fit.finish(
            self.name, x, self.covariance, outcome, (*notes, *self.box_notes, *contradictions), details, free=free
        )

    def _at_once(self, plain: ConsistentFit) -> tuple[ConsistentFit, Solved] | None:
        """The fit with the whole prior and every box, where the data cannot tell it from the best fit of any parameters.

        No consistent fit is better than the unconstrained one: the best of them need not be known to see that none is noticeably
        better. None where the data can tell.
        """
        fit = self.whiten(plain.problem, weights=plain.weights, boxes=self.boxes)
        held = solve_whitened(fit)
        if held[0] is None or not fit.chi_square_excess(held[0]) <= _allowed(fit):
            return None
        if (
            self.weighted
            and self.shares_misfit
            and not _settled(plain, _misfit_weights(fit, held[0], plain.problem.channel_noise(plain.beta)))
        ):
            return None
        held[1]["prior_strength"] = self.strength
        return fit, held

    def _step_by_step(self, fit: ConsistentFit) -> tuple[ConsistentFit, Solved, dict[str, float]]:
        """The best consistent fit, then the boxes and the prior as far as the data cannot tell the fit from it."""
        found, kept, contradicted = None, self.boxes, dict[str, float]()
        if self.weighted and self.shares_misfit:
            fit, found = self._with_misfit(fit)
        best = found
        if self.boxes and (best := found or solve_whitened(fit))[0] is not None:
            fit, found, kept, contradicted = self._in_boxes(fit, best)
        if self.prior == "auto":
            found = found or solve_whitened(fit)
            fit, found = self._near_description(fit, found, best or found, kept)
        elif self.prior != "none":
            fit, found = self.whiten(fit.problem, weights=fit.weights, boxes=kept), None
        return fit, found or solve_whitened(fit), contradicted

    def _in_boxes(
        self, best: ConsistentFit, found: Solved
    ) -> tuple[ConsistentFit, Solved, tuple[DensityInBox | DensityInEllipsoid, ...], dict[str, float]]:
        """The best fit with every link in its box, those links excepted whose boxes the data contradict; which are kept, and
        by which part each of the others would raise the error of the fit.

        Boxes cost nothing that the data can tell where chi-square stays within the noise of its least value. Where they cost
        more, the one without which the fit is best is left out, and so on.
        """
        assert found[0] is not None
        least = best.chi_square_excess(found[0])

        def tried(boxes: Sequence[Constraint]) -> tuple[ConsistentFit, Solved, float]:
            fit = self.whiten(best.problem, prior="none", weights=best.weights, boxes=boxes)
            held = solve_whitened(fit)
            return fit, held, np.inf if held[0] is None else fit.chi_square_excess(held[0])

        kept, contradicted = self.boxes, dict[str, float]()
        fit, held, cost = tried(kept)
        while kept and cost > least + _allowed(best):
            without = [kept[:k] + kept[k + 1 :] for k in range(len(kept))]
            trials = [tried(boxes) for boxes in without]
            place = int(np.argmin([trial[2] for trial in trials]))
            excess = (cost - trials[place][2]) / max(best.freedom + least, 1e-300)  # of its box beside the others
            contradicted[str(kept[place].link)] = float(np.sqrt(1.0 + excess) - 1.0)
            kept, (fit, held, cost) = without[place], trials[place]
        return fit, held, kept, contradicted

    def _with_misfit(self, fit: ConsistentFit) -> tuple[ConsistentFit, Solved | None]:
        """The fit without a prior, weighted by the noise of every joint and what consistency costs beyond it; its solution, if known.

        Where links or friction cannot be what the rows ask for, the model lacks something. Weights by the noise alone would
        leave all of that error to the joints with the largest noise.
        """
        noise = fit.problem.channel_noise(fit.beta)
        for _ in range(MISFIT_ROUNDS):
            found = solve_whitened(fit)
            x = found[0]
            if x is None:
                return fit, found
            weights = _misfit_weights(fit, x, noise)
            if _settled(fit, weights):
                return fit, found
            fit = self.whiten(fit.problem, prior="none", weights=weights)
        return fit, None

    def _near_description(
        self, best: ConsistentFit, found: Solved, least: Solved, boxes: Sequence[Constraint]
    ) -> tuple[ConsistentFit, Solved]:
        """The fit with the prior, weakened until the data cannot tell it from the best consistent fit, ``least``.

        Among the consistent parameters whose chi-square is within the noise of the least one, these are near the description.
        """
        if found[0] is None or least[0] is None:
            return best, found
        most = best.chi_square_excess(least[0]) + _allowed(best)
        strength = self.strength
        for _ in range(WEAKENED):
            fit = self.whiten(best.problem, strength=strength, weights=best.weights, boxes=boxes)
            held = solve_whitened(fit)
            if held[0] is not None and fit.chi_square_excess(held[0]) <= most:
                held[1]["prior_strength"] = strength
                return fit, held
            strength *= WEAKER
        return best, found


def _allowed(best: ConsistentFit) -> float:
    """Chi-square above its least value that the data cannot tell from it."""
    return min(float(best.problem.seen.rank), WITHIN * best.freedom)


def _misfit_weights(fit: ConsistentFit, x: Array, noise: Array) -> Array:
    """Weights by the noise and what ``x`` leaves beyond it, of geometric mean one."""
    problem = fit.problem
    by_chance = 1.0 + 2.0 * problem.seen.rank / float(problem.rows().sum())  # where the true values are consistent
    left = problem.noise_sigma(problem.base.K @ fit.phi(x)[: problem.base.K.shape[1]], pooled=False)
    misfit = max(float((left**2 - by_chance * noise**2).max()), 0.0)  # as large everywhere as where it shows most
    weights: Array = 1.0 / np.sqrt(noise**2 + misfit)
    return weights / float(np.exp(np.log(weights).mean()))


def _settled(fit: ConsistentFit, weights: Array) -> bool:
    """Whether these weights are those of the fit already."""
    return float(np.abs(np.log(weights / fit.weights)).max()) < SETTLED


@dataclass(frozen=True)
class WeightedFeasibleSDP(FeasibleSDP):
    """:class:`FeasibleSDP` with joints weighted by their own noise (Sousa and Cortesao 2014, 5.2: FBPE-WLS).

    The options ``condition``, ``margin``, ``absolute``, ``constraints``, ``boxes``, ``box_notes``, ``effects_positive``,
    ``weighted``, ``prior``, ``strength``, ``regularization``, ``covariance`` and ``tolerance`` are those of :class:`FeasibleSDP`.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.methods.sdp import WeightedFeasibleSDP
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> dynid.estimate(data, base, WeightedFeasibleSDP()).feasible
        True
    """

    name: ClassVar[str] = "fbpe-wls"
    shares_misfit: ClassVar[bool] = False
    weighted: bool = True

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> WeightedFeasibleSDP:
        """The method of a run: the paper's program, which knows no prior."""
        chosen = options_given(options, ("condition", "margin", "regularization"))
        return cls(constraints=constraints_from_table(options["constraints"]), **chosen)


@dataclass(frozen=True)
class CorrectedLeastSquares:
    """Least squares moved to the nearest feasible base values (OLS and BPFC of Sousa and Cortesao).

    The covariance is that of the unconstrained fit.

    Args:
        condition: ``full``, or ``plain`` for Sousa's condition without the triangle inequality.
        margin: smallest eigenvalue of every link, relative to its size in the prior.
        absolute: take the margin in SI units instead.
        constraints: further constraints, such as ``dynid.TotalMass``.
        effects_positive: keep friction and rotor inertia that cannot be negative at zero or above, and the whole friction of every
            joint passive.
        metric: distance that is made small: ``base`` for that of base values, as in the paper, or ``torque``.
        weighted: weight joints by their own noise.
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.methods.sdp import CorrectedLeastSquares
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> dynid.estimate(data, base, CorrectedLeastSquares()).feasible
        True
    """

    name: ClassVar[str] = "bpfc"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order"})
    condition: str = "full"
    margin: float = MARGIN
    absolute: bool = False
    constraints: tuple[Constraint, ...] = ()
    effects_positive: bool = True
    metric: Metric = "base"
    weighted: bool = False
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", tuple(self.constraints))
        check_kind(self.covariance)
        if self.metric not in METRICS:
            raise UnknownNameError("metric", self.metric, METRICS)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> CorrectedLeastSquares:
        """The method of a run."""
        chosen = options_given(options, ("condition", "margin", "weighted"))
        return cls(constraints=constraints_from_table(options["constraints"]), **chosen)

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        weights = problem.settled_weights()[0] if self.weighted else np.ones(len(problem.channels))
        beta = problem.solve(weights)
        sigma = problem.noise_sigma(beta, pooled=not self.weighted)
        covariance, spread = uncertainty(problem, beta, weights, sigma, self.covariance)
        near = closest_feasible(
            base,
            beta,
            self.condition,
            self.metric,
            (*(passive_friction(regression) if self.effects_positive else ()), *self.constraints),
            self.margin,
            absolute=self.absolute,
            prior=prior,
            robot=regression.robot if self.metric == "torque" else None,
            effects_positive=self.effects_positive,
        )
        details = {
            **spread,
            "noise_sigma": sigma.tolist(),
            "weights": weights.tolist(),
            "distance": near.distance,
            "lower_bound": near.lower_bound,
            "constraints_active": not near.feasible_before,
        }
        return problem.finish(
            self.name,
            near.base,
            covariance,
            outcome=None if near.outcome is Outcome.SOLVED else near.outcome,
            standard=near.standard if isinstance(near.standard, Parameters) else None,
            notes=near.notes,
            details=details,
        )
