"""What a written file changed of the robot's own: attribute by attribute, as a list to read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.io.robots.description import Description, read_description
from dynid.io.robots.mujoco_model import whole_mjcf
from dynid.io.robots.sdf_read import sdf_model
from dynid.io.robots.urdf_read import urdf_root
from dynid.io.robots.xml import read_numbers
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


ZERO = 1e-15
"""Numbers of a description below which they are zero: no length, angle, mass or inertia is so small."""


@dataclass(frozen=True)
class Change:
    """One attribute of one element; None where it was not there before, or is not there any more."""

    element: str
    """The nearest named element around it, and its own tag: ``body 'link1' inertial``."""
    attribute: str
    before: str | None
    after: str | None

    @property
    def size(self) -> float:
        """The change of numbers relative to what they were, as it is where they were zero; infinite of other texts, zero of a turn."""
        if self.attribute in ("quat", "rpy"):  # of principal axes, which turn far when moments are nearly equal
            return 0.0
        before, after = (np.array(read_numbers(text or "")) for text in (self.before, self.after))
        if not before.any() and len(after):
            return float(np.linalg.norm(after))
        if before.shape != after.shape or not len(before):
            return math.inf
        return float(np.linalg.norm(after - before) / np.linalg.norm(before))

    def __str__(self) -> str:
        return f"{self.element} {self.attribute}: {_short(self.before)} -> {_short(self.after)}"


def changes_of(robot: Robot, path: Path) -> tuple[Change, ...]:
    """Attributes and texts of elements in which a MJCF, URDF or SDF file differs from the one that the robot was read from.

    Args:
        robot: the robot, which remembers its file.
        path: the file that was written.

    Returns:
        the changes in the order of the file; none where the robot's own file has another format, or is gone.
    """
    if not robot.source.path or not Path(robot.source.path).is_file():
        return ()
    suffix, read = _READERS.get(robot.source.format, ("", None))
    if read is None or suffix != path.suffix:
        return ()
    return tuple(_between(read(read_description(robot.source.path)), read(read_description(path)), ""))


_READERS: Mapping[str, tuple[str, Callable[[Description], Element]]] = {
    "mjcf": (".xml", whole_mjcf),
    "urdf": (".urdf", urdf_root),
    "sdf": (".sdf", sdf_model),
}


def _between(before: Element, after: Element, around: str) -> Iterator[Change]:
    """Changes of two elements of one tag and of what is in them."""
    named = after.get("name")
    place = f"{after.tag} '{named}'" if named else f"{around} {after.tag}".strip()
    nearest = place if named else around
    for attribute in dict.fromkeys((*before.attrib, *after.attrib)):
        old, new = before.get(attribute), after.get(attribute)
        if _differ(old, new):
            yield Change(place, attribute, old, new)
    old, new = ((one.text or "").strip() or None for one in (before, after))
    if _differ(old, new):
        yield Change(nearest, after.tag, old, new)
    left = list(before)
    for child in after:
        twin = next((one for one in left if (one.tag, one.get("name")) == (child.tag, child.get("name"))), None)
        if twin is not None:
            left.remove(twin)
        yield from _between(_empty(child) if twin is None else twin, child, nearest)
    for child in left:
        yield from _between(child, _empty(child), nearest)


def _empty(element: Element) -> Element:
    """The element without what is in it: what it is compared with where only one of the files has it."""
    from xml.etree.ElementTree import Element

    return Element(element.tag, {"name": element.attrib["name"]} if "name" in element.attrib else {})


def _differ(old: str | None, new: str | None) -> bool:
    """Whether two texts are not the same, nor the same numbers; what arithmetic leaves of zero is zero."""
    before, after = ([0.0 if abs(x) < ZERO else x for x in read_numbers(text or "")] for text in (old, new))
    return old != new and not (before and before == after)


def _short(text: str | None) -> str:
    """Numbers with four digits, other text as it is."""
    if text is None:
        return "none"
    values = read_numbers(text)
    return " ".join(f"{value:.4g}" for value in values) if values else text
