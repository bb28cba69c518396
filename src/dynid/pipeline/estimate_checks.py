"""Warnings before any number: what this motion cannot show, said in words a user can act on.

Feasibility of what a method found: are there bodies, its own or others, that have these base values?

Base values do not fix the links. After an unconstrained method the links next to the description often are no bodies although
others with the same base values are: those are then taken, and only what is proven is said.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.consistency.certificate import exactly_consistent
from dynid.estimation.consistency.feasibility import Feasibility, check_mass_matrix, feasibility
from dynid.estimation.result import Estimate
from dynid.model.effects import nonnegative_symbols
from dynid.model.inertia import consistency
from dynid.model.links import with_links_apart
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import STILL
from dynid.validation.consistency import check_model
from dynid.validation.prediction import MotionRange

SLOW = 0.1
"""rad/s or m/s below which Coulomb friction is not told from an offset."""
VAGUE_PERCENT = 100.0


def estimate_warnings(
    result: Estimate, robot: Robot, motion: MotionRange | None = None, verdict: Feasibility | None = None
) -> tuple[str, ...]:
    """One line per problem: parameters that keep their prior, joints that hardly move, values that are known vaguely, and
    what is proven of base values that no consistent robot has."""
    notes = [result.base.note] if result.base.note else []
    notes += _motion_advice(robot, motion)
    missing = [name for name, origin in zip(result.base.names, result.origin, strict=True) if origin == "prior"]
    if missing:
        notes.append(
            f"{len(missing)} of {result.base.n_base} base parameters cannot be known from this motion (its rank is {result.rank}) "
            f"and keep their nominal value: {', '.join(missing)}"
        )
    vague = [
        name
        for name, spread, origin in zip(result.base.names, result.sigma_percent, result.origin, strict=True)
        if origin != "prior" and spread > VAGUE_PERCENT
    ]
    if vague:
        notes.append(f"known to no better than {VAGUE_PERCENT:.0f} %: {', '.join(vague)}")
    model, apart = with_links_apart(robot.with_parameters(result.standard), robot)
    return (*notes, *consistency_notes(model, verdict), *apart, *result.notes)


def consistency_notes(model: Robot, verdict: Feasibility | None) -> list[str]:
    """What is proven of base values that are not known to be feasible, and which links of the model are no bodies."""
    notes = []
    if verdict is not None and verdict.sentence:
        notes.append("; ".join(part for part in (verdict.sentence, verdict.inertia_matrix) if part))
    bad = check_model(model).inconsistent
    if bad:
        feasible = verdict is not None and verdict.decision == "feasible"
        remedy = "" if feasible else "; --method sdp keeps every link consistent"
        notes.append(f"links of the model that are not physically consistent: {', '.join(bad)}{remedy}")
    return notes


def sharp_friction_notes(robot: Robot, velocity_is_filtered: bool) -> list[str]:
    """That intervals leave out what filtering a velocity does to a friction which is its sign."""
    sharp = [effect.label for effect in robot.effects if effect.is_friction and effect.is_sharp]
    if not (velocity_is_filtered and sharp):
        return []
    note = (
        f"friction ({', '.join(sharp)}) is the sign of a velocity that was filtered before, which shifts it by some percent; the intervals "
        "leave this out and are too narrow for friction: torque rows with --filter-on rows have no such error"
    )
    return [note]


def _motion_advice(robot: Robot, motion: MotionRange | None) -> list[str]:
    if motion is None:
        return []
    speed = np.maximum(np.abs(motion.slowest), np.abs(motion.fastest))
    reach = motion.highest - motion.lowest
    frictional = any(effect.dry for effect in robot.effects)
    notes = []
    for j, name in enumerate(robot.joint_names):
        if reach[j] < STILL:
            notes.append(f"joint '{name}' stands still: neither its friction nor what only its motion shows can be known")
        elif frictional and speed[j] < SLOW:
            notes.append(
                f"joint '{name}' never moves faster than {speed[j]:.2g} rad/s or m/s: its friction cannot be separated from its offset"
            )
        elif frictional and not motion.slowest[j] < 0.0 < motion.fastest[j]:
            notes.append(f"joint '{name}' never reverses: its Coulomb friction cannot be separated from its offset")
    return notes


NEAREST = (
    "the parameters nearest to the description with these base values have links that are not physically consistent; the model "
    "has others with the same base values, whose links all are"
)


def check_feasibility(
    result: Estimate, robot: Robot, settings: Settings, *, keep: bool = False
) -> tuple[Estimate, Feasibility]:
    """The estimate, with consistent links if its base values have any, and the verdict; ``keep`` leaves the links as they are."""
    if _possible(result.standard, settings.condition):
        matrix = check_mass_matrix(robot, result.base.lift @ result.base_values)
        return result, Feasibility("feasible", settings.condition, "bodies", mass_matrix=matrix)
    test = feasibility(result.base, result.base_values, settings.condition, margin=settings.margin, robot=robot)
    verdict = test.with_link_names(robot.links)
    if keep or verdict.decision != "feasible" or not isinstance(verdict.standard, Parameters):
        return result, verdict
    standard = _near_description(result, robot, settings) or verdict.standard
    return replace(result, standard=standard, notes=(*result.notes, NEAREST)), verdict


def _near_description(result: Estimate, robot: Robot, settings: Settings) -> Parameters | None:
    """Consistent links with the same base values, as near to those of the estimate as they can be; None where none are found.

    A proof of feasibility may be far from anything that was built: bodies of tons whose weight other bodies take off.
    """
    from dynid.estimation.consistency.repair import SAME_BASE, repair

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
