"""Feasibility of what a method found: are there bodies, its own or others, that have these base values?

Base values do not fix the links. After an unconstrained method the links next to the description often are no bodies although
others with the same base values are: those are then taken, and only what is proven is said.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.convex.metrics import mass_matrix_check
from dynid.estimation.convex.proof import exactly_consistent
from dynid.estimation.convex.verdict import Verdict
from dynid.estimation.result import Estimate
from dynid.inertia import consistency
from dynid.parameters import Parameters
from dynid.robot.effects import nonnegative_symbols
from dynid.robot.model import Robot
from dynid.run.options import Settings

NEAREST = (
    "the parameters nearest to the description with these base values have links that are not physically consistent; the model "
    "has others with the same base values, whose links all are"
)


def judged(result: Estimate, robot: Robot, settings: Settings, *, keep: bool = False) -> tuple[Estimate, Verdict]:
    """The estimate, with consistent links if its base values have any, and the verdict; ``keep`` leaves the links as they are."""
    if _possible(result.standard, settings.condition):
        matrix = mass_matrix_check(robot, result.base, result.base_values)
        return result, Verdict("feasible", settings.condition, "bodies", mass_matrix=matrix)
    from dynid.estimation.convex.feasibility import feasibility  # it loads solvers that most runs do not need

    test = feasibility(result.base, result.base_values, settings.condition, margin=settings.margin, robot=robot)
    verdict = Verdict.of(test, result.base_values, settings.condition, robot.links)
    if keep or test.decision != "feasible" or not isinstance(test.standard, Parameters):
        return result, verdict
    standard = _near_description(result, robot, settings) or test.standard
    return replace(result, standard=standard, notes=(*result.notes, NEAREST)), verdict


def _near_description(result: Estimate, robot: Robot, settings: Settings) -> Parameters | None:
    """Consistent links with the same base values, as near to those of the estimate as they can be; None where none are found.

    A proof of feasibility may be far from anything that was built: bodies of tons whose weight other bodies take off.
    """
    from dynid.estimation.convex.repair import SAME_BASE, repair

    try:
        mended = repair(robot.with_parameters(result.standard), settings.margin)
    except InputError:  # no such links: the proof's own stand
        return None
    found = mended.robot.parameters
    if not mended.base_kept or found.names != result.standard.names or not _possible(found, settings.condition):
        return None
    missed = np.abs(result.base.base_values(found) - result.base_values).max(initial=0.0)
    return found if missed <= SAME_BASE * float(np.abs(result.base_values).max(initial=0.0)) else None


def _possible(standard: Parameters, condition: str) -> bool:
    """Whether the links are bodies, in exact arithmetic, and no effect is negative that cannot be; empty links are frames."""
    bodies: Array = standard.inertials
    solid = bodies[~consistency(bodies).empty]
    signed = set(nonnegative_symbols())
    effects = [column.symbol in signed for column in standard.columns[standard.n_inertial :]]
    negative = standard.values[standard.n_inertial :][np.array(effects, dtype=bool)] < 0.0
    return not negative.any() and exactly_consistent(solid, condition)
