"""What every exporter shares: refusal of impossible bodies, and the notes on a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import InconsistentModelError, InputError
from dynid.inertia import is_consistent
from dynid.robot.model import Robot


@dataclass(frozen=True)
class WrittenModel:
    """A file that was written: its format, how it was made, and what it could not hold."""

    path: Path
    format: str
    patched: bool
    """True where the robot's own file was edited, False where the file was written anew."""
    notes: tuple[str, ...] = ()
    companions: tuple[Path, ...] = ()
    """Files that belong to it, such as a header or arrays."""


def inconsistent_links(robot: Robot) -> tuple[str, ...]:
    """Moving links that no physical body could be; empty ones are frames and allowed."""
    fine = np.atleast_1d(is_consistent(robot.parameters.inertials, "full", allow_empty=True))
    return tuple(link for link, good in zip(robot.links, fine, strict=True) if not good)


def refuse_inconsistent(robot: Robot, allow_inconsistent: bool) -> tuple[str, ...]:
    """Names of the inconsistent links where they are allowed; an error that names them where they are not."""
    bad = inconsistent_links(robot)
    if bad and not allow_inconsistent:
        raise InconsistentModelError(
            f"{those_of(robot, bad)}; choose a method that keeps links consistent, or have them written as they are "
            "('dynid export RUN --allow-inconsistent', in Python allow_inconsistent=True)"
        )
    return bad


def those_of(robot: Robot, bad: Sequence[str]) -> str:
    """How many links are inconsistent, and which."""
    return f"robot '{robot.name}' has {len(bad)} of {robot.n_bodies} links that no physical body could be: {', '.join(bad)}"


FARTHEST_CENTRE = 1e5
"""Metres: a mass whose centre would be farther away is a rounding error of none, and moments written about it are lost."""


def refuse_moments_without_mass(link: str, phi: Array, format: str) -> None:
    """Formats that state a centre of mass cannot hold first moments of a link that has no mass."""
    moment, mass = float(np.linalg.norm(phi[1:4])), float(phi[0])
    if moment > FARTHEST_CENTRE * abs(mass):
        raise InputError(
            f"link '{link}' has first moments {', '.join(f'{value:.4g}' for value in phi[1:4])} kg m but no mass ({mass:.2g} kg); "
            f"{format} cannot hold that: C source and JSON can, and 'dynid repair RUN -o FILE' gives every link a mass"
        )


def untied(robot: Robot) -> list[str]:
    """Joints that follow others in their description and are joints of their own in a file written anew."""
    beginnings = tuple(f"joint '{joint.name}' is treated as a joint of its own" for joint in robot.joints)
    return [f"{note}; it is written as such" for note in robot.source.notes if note.startswith(beginnings)]


def number(value: float) -> str:
    """Shortest text that reads back as the same double; no negative zero."""
    return repr(value + 0.0)


def vector(values: Array) -> str:
    """Numbers separated by spaces."""
    return " ".join(number(float(value)) for value in values)
