"""Boxes around the bodies of a robot, from the shapes of its description: what a body's mass lies in.

A box is aligned with the frame of its body and spans the shapes of all links that were merged into the body. Where one of these has
mass and no shape, the body has no box.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dynid.errors import InputError
from dynid.robot.model import Robot
from dynid.robot.shapes import bodies_of, named_shapes

WIDER_M = 0.01
"""Added on every side: shapes of descriptions are simplified, and screws and cables stand out of them."""


@dataclass(frozen=True)
class BodyBox:
    """The box that the mass of one body lies in, in the body's frame, m."""

    link: str
    lower: tuple[float, float, float]
    upper: tuple[float, float, float]


@dataclass(frozen=True)
class BodyBoxes:
    """Boxes of the bodies that have one, and why the others have none."""

    boxes: tuple[BodyBox, ...]
    missing: Mapping[str, str]
    """Reason by link."""
    reason: str = ""
    """Why no body has one; empty where some do."""


def body_boxes(robot: Robot, wider_m: float = WIDER_M) -> BodyBoxes:
    """The boxes of a robot read from URDF, MJCF or SDF.

    Args:
        robot: the robot, which remembers its file.
        wider_m: added on every side.

    Examples:
        >>> import dynid
        >>> from dynid.robot.boxes import body_boxes
        >>> body_boxes(dynid.demo_robot()).reason[:40]
        "robot 'demo_arm' was not read from a URD"
    """
    try:
        named = named_shapes(robot)
        shapes, shaped = bodies_of(robot, named), {name for name, _ in named}
    except InputError as error:
        return BodyBoxes((), {}, str(error))
    boxes, missing = [], {}
    for body, (name, shape) in enumerate(zip(robot.links, shapes, strict=True)):
        merged = [link.name for link in robot.merged if link.body == body and link.phi.any()]
        bare = [link for link in (name, *merged) if link not in shaped]
        if shape is None or bare:
            missing[name] = f"link '{(bare or [name])[0]}' has no shape"
            continue
        (x0, y0, z0), (x1, y1, z1) = (
            (shape.vertices.min(axis=0) - wider_m).tolist(),
            (shape.vertices.max(axis=0) + wider_m).tolist(),
        )
        boxes.append(BodyBox(name, (x0, y0, z0), (x1, y1, z1)))
    return BodyBoxes(tuple(boxes), missing)
