"""The memory of effects: samples carry how far joints have moved since they last reversed, where an effect asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dynid.recording.samples import Samples, SampleStream
from dynid.recording.travel import Travel, with_travel
from dynid.robot.model import Robot


def remembers(robot: Robot) -> bool:
    """Whether any effect of the robot depends on where its joint last reversed."""
    return any(effect.remembers for effect in robot.effects)


def with_memory(robot: Robot, samples: Samples) -> Samples:
    """Samples with the distance since the last reversal, where the robot needs it; else as they are."""
    return with_travel(samples) if remembers(robot) else samples


def pieces_with_memory(robot: Robot, source: Samples | SampleStream) -> Iterator[Samples]:
    """The pieces of one log, each with what it must know of the ones before."""
    travel = Travel(robot.n_dof) if remembers(robot) else None
    for piece in source:
        if travel is None or piece.travel is not None:
            yield piece
        else:
            yield replace(piece, travel=travel.push(piece.position[:, -robot.n_dof :]))
