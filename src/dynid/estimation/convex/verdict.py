"""What is proven of base values, in words and as plain numbers: by the bodies of an estimate, a certificate or a direction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from dynid.arrays import Array
from dynid.estimation.convex.decision import Decision
from dynid.estimation.convex.metrics import MassMatrixCheck

if TYPE_CHECKING:
    from dynid.estimation.convex.feasibility import Feasibility  # it loads solvers that most runs do not need

SHOWN_TERMS = 6
"""Terms of a combination that a sentence lists; the rest of them is marked by dots."""
CONSISTENCY = "consistency of link "
"""How the name of a link's condition begins."""
SMALL_TERM = 0.02
"""Terms below this part of the largest are not listed."""


@dataclass(frozen=True)
class Verdict:
    """Whether a robot with consistent links has some base values, and what proves it."""

    decision: Decision
    condition: str = "full"
    proof: str = ""
    """``bodies``: the links of the estimate itself; ``certificate``: other links with the same base values; ``direction``: a
    combination that every consistent robot has larger; empty where nothing is proven."""
    conflicts: tuple[str, ...] = ()
    """Conditions that cannot hold together with these base values, heaviest first, links by name."""
    combination: tuple[tuple[str, float], ...] = ()
    """Of base values, the largest factor first."""
    value: float = math.nan
    """Of the combination, here."""
    bound: float = math.nan
    """Every consistent robot has at least this of it."""
    reach: float = math.inf
    """Size of all bodies together, in sizes of a link, up to which that is proven."""
    distance: float = 0.0
    """To the nearest consistent base values found; not a number where none were sought."""
    lower_bound: float = 0.0
    """No consistent base values are nearer."""
    mass_matrix: MassMatrixCheck | None = None
    """Inertia matrices at random positions."""

    @classmethod
    def of(cls, test: Feasibility, values: Array, condition: str, links: Sequence[str] = ()) -> Verdict:
        """The verdict of a test of feasibility; ``links`` are names of the links by number from 1."""
        if test.decision == "feasible":
            return cls("feasible", condition, "certificate", mass_matrix=test.mass_matrix)
        if test.direction is None:
            return cls(
                "boundary",
                condition,
                distance=test.base_error,
                lower_bound=test.lower_bound,
                mass_matrix=test.mass_matrix,
            )
        return cls(
            "infeasible",
            condition,
            "direction",
            conflicts=tuple(_conflict(label, links) for label in test.conflicts),
            combination=test.combination,
            value=float(test.direction @ np.asarray(values, dtype=np.float64)),
            bound=test.bound,
            reach=test.reach,
            distance=math.nan,
            lower_bound=test.lower_bound,
            mass_matrix=test.mass_matrix,
        )

    @property
    def proven(self) -> bool:
        """Whether the decision is proven: by bodies or by a separating direction."""
        return bool(self.proof)

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
                f"nearest ones found are {self.distance:.3g} away, none is nearer than {self.lower_bound:.3g}"
            )
        return (
            f"no robot whose links meet the {self.condition} condition has these base values, proven: {self.separation}; in "
            f"conflict: {self.in_conflict}"
        )

    @property
    def inertia_matrix(self) -> str:
        """The share of random positions with a positive definite inertia matrix, in words; empty where it was not looked at."""
        found = self.mass_matrix
        if found is None:
            return ""
        share = 100.0 * found.positive_share
        return f"M(q) is positive definite at {share:.4g} % of {found.n_positions} random positions"

    def as_dict(self) -> dict[str, Any]:
        """Plain values; numbers that do not exist are None."""
        matrix = self.mass_matrix
        direction = self.proof == "direction"
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
            "distance": self.distance if math.isfinite(self.distance) else None,
            "lower_bound": self.lower_bound,
            "positive_definite_share": None if matrix is None else matrix.positive_share,
            "smallest_eigenvalue": None if matrix is None else matrix.smallest_eigenvalue,
            "n_positions": None if matrix is None else matrix.n_positions,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Verdict:
        """The inverse of :meth:`as_dict`."""
        if record["decision"] not in get_args(Decision):
            raise ValueError(f"decision '{record['decision']}'")
        share = record["positive_definite_share"]
        matrix = None if share is None else MassMatrixCheck(share, record["smallest_eigenvalue"], record["n_positions"])
        return cls(
            decision=record["decision"],
            condition=record["condition"],
            proof=record["proof"] or "",
            conflicts=tuple(record["conflicts"]),
            combination=tuple((item["name"], float(item["factor"])) for item in record["combination"]),
            value=_number(record["value"], math.nan),
            bound=_number(record["bound"], math.nan),
            reach=_number(record["reach"], math.inf),
            distance=_number(record["distance"], math.nan),
            lower_bound=float(record["lower_bound"]),
            mass_matrix=matrix,
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


def _conflict(label: str, links: Sequence[str]) -> str:
    """A condition with the link by its name."""
    if not label.startswith(CONSISTENCY):
        return label
    number = int(label.removeprefix(CONSISTENCY))
    return f"{CONSISTENCY}{links[number - 1]}" if number <= len(links) else label


def _number(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(value)
