"""The gate before any number: what this motion cannot show, said in words a user can act on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.estimation.convex.verdict import Verdict
from dynid.estimation.result import Estimate
from dynid.recording.samples import Samples
from dynid.robot.links_apart import with_links_apart
from dynid.robot.model import Robot
from dynid.run.signals import STILL
from dynid.validation.consistency import check_parameters
from dynid.validation.stream import MotionRange

SLOW = 0.1
"""rad/s or m/s below which Coulomb friction is not told from an offset."""
VAGUE_PERCENT = 100.0


def gate(
    result: Estimate, robot: Robot, motion: MotionRange | None = None, verdict: Verdict | None = None
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
    notes += consistency_notes(result, robot, verdict)
    notes += with_links_apart(robot.with_parameters(result.standard), robot)[1]
    return (*notes, *result.notes)


def consistency_notes(result: Estimate, robot: Robot, verdict: Verdict | None) -> list[str]:
    """What is proven of base values that are not known to be feasible, and which links of the model are no bodies."""
    notes = []
    if verdict is not None and verdict.sentence:
        notes.append("; ".join(part for part in (verdict.sentence, verdict.inertia_matrix) if part))
    bad = check_parameters(robot, result.standard).inconsistent
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
        "leave this out and are too narrow for friction: torque rows without --signals have no such error"
    )
    return [note]


def motion_range(samples: Sequence[Samples]) -> MotionRange | None:
    """How far and how fast joints moved in all samples together; None without any."""
    found: MotionRange | None = None
    for one in samples:
        own = MotionRange.of(one)
        found = own if found is None else found | own
    return found


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
