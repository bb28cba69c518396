"""Could any robot have these base parameters? (Sousa and Cortesao 2014, 4.3: BPFT)

    is there phi with   K phi = beta   and every link consistent?

Three answers:

- ``feasible``, with parameters: their base values are those given to round-off, and their links are consistent in exact arithmetic.
- ``infeasible``, with a proof: a direction ``d`` and a bound with ``d . K phi >= bound > d . beta`` for all consistent ``phi``, which
  holds in exact arithmetic (:mod:`dynid.estimation.consistency.certificate`), for bodies up to ``REACH`` times the size of a link.
- ``boundary``, with both bounds: the nearest consistent parameters that were found, and the distance that none is below.

It works on a published grouping alone: parameters that the grouping leaves out are free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_shape, freeze
from dynid.dynamics.inverse_dynamics import mass_matrix, random_states_within_limits
from dynid.errors import InputError
from dynid.estimation.consistency.certificate import REACH, Certificate, exactly_consistent
from dynid.estimation.consistency.consistent_set import MARGIN
from dynid.estimation.consistency.solve import max_margin_point
from dynid.estimation.constraints.base import Constraint
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction

if TYPE_CHECKING:  # loaded where it is needed: base values of most runs come with bodies that prove them feasible
    from dynid.estimation.consistency.nearest_feasible import DualBound, NearestFeasibleProblem

Decision: TypeAlias = Literal["feasible", "boundary", "infeasible"]

PULL = 1e-13
"""Weight of the pull that keeps parameters nothing bounds near their start while the common slack is maximised."""
ROUND_OFF = 1e-12
"""Part of the base values' norm that arithmetic alone may leave."""
TOLERANCE = 1e-5
"""Part of the base values' norm by which consistent parameters may miss them and still count as on the boundary."""
SHOWN_TERMS = 6
"""Terms of a combination that a sentence lists; the rest of them is marked by dots."""
SMALL_TERM = 0.02
"""Terms below this part of the largest are not listed."""
CONSISTENCY = "consistency of link "
"""How the name of a link's condition begins."""


@dataclass(frozen=True)
class MassMatrixCheck:
    """Inertia matrices ``M(q)`` at random positions."""

    positive_share: float
    smallest_eigenvalue: float
    n_positions: int


@dataclass(frozen=True, eq=False)
class Feasibility:
    """Whether a robot with consistent links has some base values, and what proves it."""

    decision: Decision
    condition: str = "full"
    proof: str = ""
    """``bodies``: the links of an estimate itself; ``certificate``: other links with the same base values; ``direction``: a
    combination that every consistent robot has larger; empty where nothing is proven."""
    depth: float = math.nan
    """Slack that all conditions can have in common beyond what they ask for (scaled); negative if infeasible, zero to the
    solver's tolerance on the boundary."""
    min_eigenvalue: float = math.nan
    """The smallest eigenvalue that all links can have in common: ``depth + margin``."""
    standard: Parameters | Array | None = None
    """A consistent parameter set with these base values, to ``base_error``; None if infeasible, or if the nearest ones found
    are further than :data:`TOLERANCE` away."""
    bodies: Array | None = None
    """The same as one row of ten per link, parameters that the grouping leaves out included."""
    base_error: float = 0.0
    """``|| K standard - beta ||``: round-off where the values are feasible, the distance of the nearest consistent ones found on
    the boundary, not a number where infeasible."""
    direction: Array | None = None
    """Unit ``d`` with ``d . beta' >= bound`` for all feasible ``beta'`` but ``d . beta < bound``; None unless infeasible."""
    value: float = math.nan
    """``d . beta``"""
    bound: float = math.nan
    """With all errors taken off: holds for bodies up to ``reach``."""
    bound_error: float = 0.0
    """How much was taken off; the violation ``bound - d . beta`` is no smaller."""
    direction_error: float = 0.0
    """How far the direction is from an exact proof, relative to its size; zero where it is exact for bodies of any size."""
    conflicts: tuple[str, ...] = ()
    """The conditions that cannot hold together with these base values, heaviest first."""
    combination: tuple[tuple[str, float], ...] = ()
    """The combination of base values that no consistent robot has so low: names and coefficients, the largest first."""
    lower_bound: float = 0.0
    """Distance in base values that no feasible ones are below."""
    reach: float = math.inf
    """Size of all bodies together, in sizes of a link, up to which an infeasible verdict is proven."""
    mass_matrix: MassMatrixCheck | None = None
    """Inertia matrices at random positions."""

    @property
    def feasible(self) -> bool:
        """Whether there are consistent parameters with these base values, the boundary within :data:`TOLERANCE` included."""
        return self.decision == "feasible" or self.standard is not None

    @property
    def proven(self) -> bool:
        """Whether the decision is proven: by bodies or by a separating direction."""
        return self.decision != "boundary"

    @property
    def on_boundary(self) -> bool:
        """Whether the values are feasible only within ``base_error``."""
        return self.decision == "boundary"

    @property
    def certificate(self) -> Parameters | Array:
        """The consistent parameters that prove the verdict, or the separating direction."""
        found = self.standard if self.feasible else self.direction
        if found is None:
            raise InputError(
                f"nothing is proven of these base values: the nearest consistent ones found are {self.base_error:.3g} away"
            )
        return found

    @property
    def separation(self) -> str:
        """The proof of an infeasible verdict as an inequality."""
        size = f", with bodies of up to {self.reach:.1g} times the size of a link" if math.isfinite(self.reach) else ""
        return (
            f"{combination_text(self.combination)} is {self.value:.4g} here and at least {self.bound:.4g} for every such robot"
            f"{size}"
        )

    @property
    def in_conflict(self) -> str:
        """The conditions that cannot hold together, the links in one list."""
        others = [label for label in self.conflicts if not label.startswith(CONSISTENCY)]
        links = [label.removeprefix(CONSISTENCY) for label in self.conflicts if label.startswith(CONSISTENCY)]
        plural = "s" if len(links) > 1 else ""
        return ", ".join([*others, *([f"{CONSISTENCY.strip()}{plural} {', '.join(links)}"] if links else [])])

    @property
    def sentence(self) -> str:
        """What is known of the base values, with its proof; empty where they are feasible."""
        if self.decision == "feasible":
            return ""
        if self.decision == "boundary":
            return (
                f"whether a robot whose links meet the {self.condition} condition has these base values is not decided: the "
                f"nearest ones found are {self.base_error:.3g} away, none is nearer than {self.lower_bound:.3g}"
            )
        return (
            f"no robot whose links meet the {self.condition} condition has these base values, proven: {self.separation}; in "
            f"conflict: {self.in_conflict}"
        )

    @property
    def inertia_matrix(self) -> str:
        """In how many random positions the inertia matrix is positive definite, in words; empty where it was not looked at."""
        found = self.mass_matrix
        if found is None:
            return ""
        good = round(found.positive_share * found.n_positions)
        return f"mass matrix positive definite in {good} of {found.n_positions} test poses"

    def with_link_names(self, links: Sequence[str]) -> Feasibility:
        """The same with links in conflict by name, those of the numbers from 1."""

        def named(label: str) -> str:
            number = label.removeprefix(CONSISTENCY)
            if number == label or int(number) > len(links):
                return label
            return f"{CONSISTENCY}{links[int(number) - 1]}"

        return replace(self, conflicts=tuple(named(label) for label in self.conflicts))

    def as_dict(self) -> dict[str, Any]:
        """Plain values; numbers that do not exist are None."""
        matrix = self.mass_matrix
        direction = self.proof == "direction"
        distance = 0.0 if self.decision == "feasible" else self.base_error
        return {
            "decision": self.decision,
            "proven": self.proven,
            "proof": self.proof or None,
            "condition": self.condition,
            "conflicts": list(self.conflicts),
            "combination": [{"name": name, "factor": factor} for name, factor in self.combination],
            "value": self.value if direction else None,
            "bound": self.bound if direction else None,
            "reach": self.reach if math.isfinite(self.reach) else None,
            "distance": distance if math.isfinite(distance) else None,
            "lower_bound": self.lower_bound,
            "positive_definite_share": None if matrix is None else matrix.positive_share,
            "smallest_eigenvalue": None if matrix is None else matrix.smallest_eigenvalue,
            "n_positions": None if matrix is None else matrix.n_positions,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Feasibility:
        """What :meth:`as_dict` wrote; the parameters themselves are not among it."""
        if record["decision"] not in get_args(Decision):
            raise ValueError(f"decision '{record['decision']}'")
        share = record["positive_definite_share"]
        matrix = None if share is None else MassMatrixCheck(share, record["smallest_eigenvalue"], record["n_positions"])
        missing = {"value": math.nan, "bound": math.nan, "reach": math.inf, "distance": math.nan}
        value, bound, reach, distance = (
            otherwise if record[name] is None else float(record[name]) for name, otherwise in missing.items()
        )
        return cls(
            decision=record["decision"],
            condition=record["condition"],
            proof=record["proof"] or "",
            base_error=distance,
            value=value,
            bound=bound,
            conflicts=tuple(record["conflicts"]),
            combination=tuple((item["name"], float(item["factor"])) for item in record["combination"]),
            lower_bound=float(record["lower_bound"]),
            reach=reach,
            mass_matrix=matrix,
        )


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
    """Whether some consistent robot has these base values (BPFT of Sousa and Cortesao), also under extra constraints.

    Args:
        base: the base parameters.
        beta: their values ``(base,)``, SI units.
        condition: ``full``, or ``plain`` without the triangle inequality of the moments of inertia.
        constraints: what else is known of the links.
        margin: smallest eigenvalue asked of every link, relative to its size in ``prior``, in SI units without one (the
            paper's 1e-6); parameters that keep half of it count as feasible.
        absolute: take the margin in SI units.
        prior: sizes of the links; by default those of ``robot``.
        robot: corroborates the verdict by its inertia matrix at random positions.
        effects_positive: friction and rotor inertia that cannot be negative are zero or more.

    Returns:
        the decision (``feasible``, ``infeasible`` or ``boundary``) with its proof: a robot that has the values, or a
        certificate that none has.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects="none")
        >>> base = dynid.reduce_to_base(robot)
        >>> beta = base.base_values(robot.parameters.values)
        >>> dynid.feasibility(base, beta).decision, dynid.feasibility(base, -beta).decision
        ('feasible', 'infeasible')
    """
    from dynid.estimation.consistency.nearest_feasible import DualBound, NearestFeasibleProblem

    ask = partial(
        NearestFeasibleProblem.of,
        base,
        beta,
        condition=condition,
        constraints=tuple(constraints),
        absolute=absolute,
        prior=prior,
        robot=robot,
        effects_positive=effects_positive,
    )
    # half of the margin is what the answer must keep, the other half is the solver's
    problem, required = ask(margin=margin), ask(margin=0.5 * margin)
    best = max_margin_point(
        problem.consistent,
        (problem.E, problem.beta),
        reference=problem.reference,
        cap=max(1.0, 10.0 * margin),
        pull=PULL,
    )
    common = Feasibility(
        "feasible",
        condition,
        depth=best.slack,
        min_eigenvalue=best.slack + margin,
        mass_matrix=None if robot is None else check_mass_matrix(robot, base.lift @ problem.beta),
    )
    x = _proven_inside(required, problem.reference if best.verdict == "infeasible" else best.x)
    if x is None:
        below = DualBound.of(problem)
        certificate, lower = below.bound()
        if certificate.separates(problem.beta, REACH * problem.unit):
            return _infeasible(common, problem, certificate, lower)
        inside = DualBound.of(required).point()
        x = None if inside is None else _proven_inside(required, inside)
        if x is None:
            return _on_boundary(common, problem, below)
    standard, bodies = problem.parameters(x)
    return replace(common, proof="certificate", standard=standard, bodies=bodies, base_error=_base_error(problem, standard))


def _base_error(problem: NearestFeasibleProblem, standard: Parameters | Array) -> float:
    return float(np.linalg.norm(problem.base.base_values(standard) - problem.beta))


def _proven_inside(required: NearestFeasibleProblem, x: Array) -> Array | None:
    """Parameters next to ``x`` that prove feasibility: the base values to round-off, the links in exact arithmetic."""
    exact = required.exact_point(x)
    if exact is None:
        return None
    standard, bodies = required.parameters(exact)
    phi = np.abs(standard.values if isinstance(standard, Parameters) else standard)
    rounding = 1e-15 * float(np.linalg.norm(np.abs(required.base.K) @ phi))
    if _base_error(required, standard) > max(ROUND_OFF * float(np.linalg.norm(required.beta)), rounding):
        return None
    return exact if exactly_consistent(bodies, required.consistent.condition) else None


def _infeasible(common: Feasibility, problem: NearestFeasibleProblem, certificate: Certificate, lower: float) -> Feasibility:
    reach = REACH * problem.unit
    length = float(np.linalg.norm(certificate.direction))
    error = certificate.error(problem.beta, reach)
    direction = certificate.direction / length
    order = np.argsort(-np.abs(direction))
    names = problem.base.names
    return replace(
        common,
        decision="infeasible",
        proof="direction",
        base_error=math.nan,
        direction=freeze(direction),
        value=float(direction @ problem.beta),
        bound=(certificate.bound - error) / length,
        bound_error=error / length,
        direction_error=certificate.defect / max(certificate.size, 1e-300),
        conflicts=problem.consistent.active_constraints(certificate.multipliers),
        combination=tuple((names[i], float(direction[i])) for i in order if abs(direction[i]) > 1e-6),
        lower_bound=lower,
        reach=math.inf if certificate.defect == 0.0 else reach,
    )


def _on_boundary(common: Feasibility, problem: NearestFeasibleProblem, below: DualBound) -> Feasibility:
    from dynid.estimation.consistency.nearest_feasible import nearest_feasible

    found = nearest_feasible(problem, below)
    near = found.distance <= TOLERANCE * max(float(np.linalg.norm(problem.beta)), 1e-300)
    standard, bodies = problem.parameters(found.x) if near and found.x is not None else (None, None)
    return replace(
        common,
        decision="boundary",
        standard=standard,
        bodies=bodies,
        base_error=found.distance if standard is None else _base_error(problem, standard),
        lower_bound=found.lower_bound,
    )


def combination_text(combination: Sequence[tuple[str, float]]) -> str:
    """A combination of base values as text, its small terms left out."""
    largest = max((abs(factor) for _, factor in combination), default=0.0)
    listed = [(name, factor) for name, factor in combination[:SHOWN_TERMS] if abs(factor) >= SMALL_TERM * largest]
    text = ""
    for name, factor in listed:
        sign = "-" if factor < 0.0 else ("+" if text else "")
        text += f"{' ' if text else ''}{sign}{' ' if text else ''}{abs(factor):.3g} {f'({name})' if ' ' in name else name}"
    return text + (" + .." if len(listed) < len(combination) else "")


def check_mass_matrix(
    robot: Robot, parameters: Parameters | ArrayLike, n_positions: int = 200, seed: int = 0
) -> MassMatrixCheck:
    """Eigenvalues of ``M(q)`` of a full parameter set (``lift beta`` of base values) at random positions within the limits."""
    values = parameters.values if isinstance(parameters, Parameters) else np.asarray(parameters, dtype=np.float64)
    check_shape("parameters", values, (len(robot.parameters),))
    q, _, _ = random_states_within_limits(robot, n_positions, seed)
    M = mass_matrix(robot.with_parameters(robot.parameters.with_values(values)), q)
    eigenvalues = np.linalg.eigvalsh(0.5 * (M + np.swapaxes(M, 1, 2)))[:, 0]
    return MassMatrixCheck(float((eigenvalues > 0.0).mean()), float(eigenvalues.min()), n_positions)
