"""The links of a description one by one, with the bodies that merging made of them taken apart again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.inertia import change_of_frame
from dynid.robot.model import Robot


@dataclass(frozen=True, eq=False)
class Link:
    """A link as its description has it: its own ten parameters, in its own frame."""

    name: str
    phi: Array
    body: int
    """The moving body it belongs to; -1 for the ground."""
    merged: bool


def links_of(robot: Robot) -> tuple[Link, ...]:
    """Every link: the moving ones without what was merged into them, then the merged ones."""
    own = robot.parameters.inertials.copy()
    total = np.abs(own)
    for link in robot.merged:
        if link.body >= 0:
            part = change_of_frame(link.placement[:3, :3], link.placement[:3, 3]) @ link.phi
            own[link.body] -= part
            total[link.body] += np.abs(part)
    own[np.abs(own) <= 1e-12 * total] = 0.0  # what is left of a link that had nothing of its own is round-off
    moving = [Link(name, phi, body, False) for body, (name, phi) in enumerate(zip(robot.links, own, strict=True))]
    return (*moving, *(Link(link.name, link.phi, link.body, True) for link in robot.merged))
