"""Could any robot have these base parameters? (Sousa and Cortesao 2014, 4.3: BPFT)

    is there phi with   K phi = beta   and every link consistent?

Three answers:

- ``feasible``, with parameters: their base values are those given to round-off, and their links are consistent in exact arithmetic.
- ``infeasible``, with a proof: a direction ``d`` and a bound with ``d . K phi >= bound > d . beta`` for all consistent ``phi``, which
  holds in exact arithmetic (:mod:`dynid.estimation.convex.proof`), for bodies up to :data:`REACH` times the size of a link.
- ``boundary``, with both bounds: the nearest consistent parameters that were found, and the distance that none is below.

It works on a published grouping alone: parameters that the grouping leaves out are free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.constraints.constraints import Constraint
from dynid.estimation.convex.asked import Asked, reference_point, with_exact_base
from dynid.estimation.convex.closest import ClosestFeasible, closest_feasible
from dynid.estimation.convex.conic import MARGIN, ConsistentSet, Deepest, blamed, deepest_in
from dynid.estimation.convex.decision import Decision
from dynid.estimation.convex.extended import extended_base, standard_from_extended
from dynid.estimation.convex.metrics import (
    METRICS,
    MassMatrixCheck,
    Metric,
    mass_matrix_check,
    positive_definite_share,
    torque_metric,
)
from dynid.estimation.convex.nearest import Below, Nearest, nearest
from dynid.estimation.convex.proof import REACH, Proof, exactly_consistent
from dynid.estimation.convex.question import Question
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.robot.model import Robot

__all__ = [
    "METRICS",
    "REACH",
    "TOLERANCE",
    "ClosestFeasible",
    "Decision",
    "Feasibility",
    "MassMatrixCheck",
    "Metric",
    "closest_feasible",
    "extended_base",
    "feasibility",
    "mass_matrix_check",
    "positive_definite_share",
    "standard_from_extended",
    "torque_metric",
]

PULL = 1e-13
"""Weight of the pull that keeps parameters nothing bounds near their start while the depth is maximised."""
ROUND_OFF = 1e-12
"""Part of the base values' norm that arithmetic alone may leave."""
TOLERANCE = 1e-5
"""Part of the base values' norm by which consistent parameters may miss them and still count as on the boundary."""


@dataclass(frozen=True, eq=False)
class Feasibility:
    """Verdict on base values, with its proof."""

    decision: Decision
    depth: float
    """Slack that all conditions can have in common beyond what they ask for (scaled); negative if infeasible, zero to the
    solver's tolerance on the boundary."""
    min_eigenvalue: float
    """The smallest eigenvalue that all links can have in common: ``depth + margin``."""
    standard: Parameters | Array | None
    """A consistent parameter set with these base values, to ``base_error``; None if infeasible, or if the nearest ones found
    are further than :data:`TOLERANCE` away."""
    bodies: Array | None
    """The same as one row of ten per link, parameters that the grouping leaves out included."""
    base_error: float
    """``|| K standard - beta ||``: round-off where the values are feasible, the distance of the nearest consistent ones found on
    the boundary, not a number where infeasible."""
    direction: Array | None
    """Unit ``d`` with ``d . beta' >= bound`` for all feasible ``beta'`` but ``d . beta < bound``; None unless infeasible."""
    bound: float
    """With all errors taken off: holds for bodies up to ``reach``."""
    bound_error: float
    """How much was taken off; the violation ``bound - d . beta`` is no smaller."""
    direction_error: float
    """How far the direction is from an exact proof, relative to its size; zero where it is exact for bodies of any size."""
    conflicts: tuple[str, ...]
    """The conditions that cannot hold together with these base values, heaviest first."""
    mass_matrix: MassMatrixCheck | None
    combination: tuple[tuple[str, float], ...] = ()
    """The combination of base values that no consistent robot has so low: names and coefficients, the largest first."""
    lower_bound: float = 0.0
    """Distance in base values that no feasible ones are below."""
    reach: float = float("inf")
    """Size of all bodies together, in sizes of a link, up to which an infeasible verdict is proven."""

    @property
    def feasible(self) -> bool:
        """Whether there are consistent parameters with these base values, the boundary within :data:`TOLERANCE` included."""
        return self.standard is not None

    @property
    def proven(self) -> bool:
        """Whether the verdict is proven: by parameters or by a separating direction."""
        return self.decision != "boundary"

    @property
    def on_boundary(self) -> bool:
        """Whether the values are feasible only within ``base_error``."""
        return self.decision == "boundary"

    @property
    def links_in_conflict(self) -> tuple[int, ...]:
        """Numbers of the links whose consistency takes part in the conflict, heaviest first."""
        marked = "consistency of link "
        return tuple(int(label.removeprefix(marked)) for label in self.conflicts if label.startswith(marked))

    @property
    def certificate(self) -> Parameters | Array:
        """The consistent parameters that prove the verdict, or the separating direction."""
        found = self.standard if self.feasible else self.direction
        if found is None:
            raise InputError(
                f"nothing is proven of these base values: the nearest consistent ones found are {self.base_error:.3g} away"
            )
        return found


def feasibility(
    base: BaseReduction,
    beta: ArrayLike,
    condition: str = "full",
    constraints: Iterable[Constraint] = (),
    margin: float = MARGIN,
    *,
    absolute: bool = False,
    prior: Parameters | None = None,
    robot: Robot | None = None,
    effects_positive: bool = True,
) -> Feasibility:
    """Whether some consistent robot has these base values (BPFT), also under extra constraints.

    ``margin`` is the smallest eigenvalue asked of every link, relative to the link's size in ``prior`` (that of ``robot`` if
    given), in SI units without one or with ``absolute`` (the paper's 1e-6); parameters that keep half of it count as feasible.
    With ``robot`` the verdict is corroborated by its inertia matrix at random positions.
    """
    asked = Asked.of(base, beta, prior, robot, condition, constraints, margin, absolute, effects_positive)
    # half of the margin is what the answer must keep, the other half is the solver's
    consistent, required = asked.consistent(), asked.consistent(0.5)
    question = asked.question(consistent, np.eye(base.n_base))
    reference = reference_point(question)
    best = deepest_in(consistent, (question.E, asked.values), reference=reference, cap=max(1.0, 10.0 * margin), pull=PULL)
    mass_matrix = None if robot is None else mass_matrix_check(robot, base, asked.values)
    x = _proven_inside(asked, question, required, reference if best.verdict == "infeasible" else best.x)
    if x is None:
        below = Below.of(question)
        proof, lower = below.bound()
        if proof.separates(asked.values, REACH * question.unit):
            return _infeasible(asked, consistent, question, best, (proof, lower), mass_matrix)
        inside = Below.of(replace(question, consistent=required)).point()
        x = None if inside is None else _proven_inside(asked, question, required, inside)
        if x is None:
            found = nearest(question, below)
            return _on_boundary(asked, consistent, best, found, mass_matrix)
    standard, bodies = asked.named(consistent, x)
    return Feasibility(
        decision="feasible",
        depth=best.depth,
        min_eigenvalue=best.depth + margin,
        standard=standard,
        bodies=bodies,
        base_error=_base_error(asked, standard),
        direction=None,
        bound=float("nan"),
        bound_error=0.0,
        direction_error=0.0,
        conflicts=(),
        mass_matrix=mass_matrix,
    )


def _base_error(asked: Asked, standard: Parameters | Array) -> float:
    return float(np.linalg.norm(asked.base.base_values(standard) - asked.values))


def _proven_inside(asked: Asked, question: Question, required: ConsistentSet, x: Array) -> Array | None:
    """Parameters next to ``x`` that prove feasibility: the base values to round-off, the links in exact arithmetic."""
    exact = with_exact_base(question, required, x)
    if exact is None:
        return None
    standard, bodies = asked.named(required, exact)
    phi = np.abs(standard.values if isinstance(standard, Parameters) else standard)
    rounding = 1e-15 * float(np.linalg.norm(np.abs(asked.base.K) @ phi))
    if _base_error(asked, standard) > max(ROUND_OFF * float(np.linalg.norm(asked.values)), rounding):
        return None
    return exact if exactly_consistent(bodies, asked.condition) else None


def _infeasible(
    asked: Asked,
    consistent: ConsistentSet,
    question: Question,
    best: Deepest,
    proven: tuple[Proof, float],
    mass_matrix: MassMatrixCheck | None,
) -> Feasibility:
    proof, lower = proven
    reach = REACH * question.unit
    length = float(np.linalg.norm(proof.direction))
    error = proof.error(asked.values, reach)
    direction = proof.direction / length
    order = np.argsort(-np.abs(direction))
    names = asked.base.names
    return Feasibility(
        decision="infeasible",
        depth=best.depth,
        min_eigenvalue=best.depth + asked.margin,
        standard=None,
        bodies=None,
        base_error=float("nan"),
        direction=freeze(direction),
        bound=(proof.bound - error) / length,
        bound_error=error / length,
        direction_error=proof.defect / max(proof.size, 1e-300),
        conflicts=blamed(consistent, proof.multipliers),
        mass_matrix=mass_matrix,
        combination=tuple((names[i], float(direction[i])) for i in order if abs(direction[i]) > 1e-6),
        lower_bound=lower,
        reach=float("inf") if proof.defect == 0.0 else reach,
    )


def _on_boundary(
    asked: Asked,
    consistent: ConsistentSet,
    best: Deepest,
    found: Nearest,
    mass_matrix: MassMatrixCheck | None,
) -> Feasibility:
    near = found.distance <= TOLERANCE * max(float(np.linalg.norm(asked.values)), 1e-300)
    standard, bodies = asked.named(consistent, found.x) if near and found.x is not None else (None, None)
    return Feasibility(
        decision="boundary",
        depth=best.depth,
        min_eigenvalue=best.depth + asked.margin,
        standard=standard,
        bodies=bodies,
        base_error=found.distance if standard is None else _base_error(asked, standard),
        direction=None,
        bound=float("nan"),
        bound_error=0.0,
        direction_error=0.0,
        conflicts=(),
        mass_matrix=mass_matrix,
        lower_bound=found.lower_bound,
    )
