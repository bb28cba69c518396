"""The robot in three dimensions: its joints and, for every link, the uniform box that has the link's ten parameters.

A box of mass ``m`` with half lengths ``d = sqrt(3 L / m)`` along the principal axes has the second central moments ``L``
(Traversaro 2016, eq. 27); it exists where ``L >= 0``. Where it does not, the axes with a negative moment are drawn flat and
the box is marked as none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.dynamics.closed_chains import closures_of, tree_positions
from dynid.io.robots.solids import Surface
from dynid.model.inertia import is_consistent, principal_form
from dynid.model.joint import joint_polynomial, neutral_position
from dynid.model.robot import Robot
from dynid.signals.samples import Samples

_FRAMES_PER_SECOND = 20.0
_MOST_FRAMES = 600
_MOST_TRIANGLES = 240
"""Triangles of one link's shape: the page stays small and turns smoothly."""


@dataclass(frozen=True, eq=False)
class Box:
    """The equivalent inertia box of one link in its body's frame; ``real`` where a body has these parameters."""

    mass: float
    center: Array
    half_lengths: Array
    rotation: Array
    real: bool


@dataclass(frozen=True, eq=False)
class Scene:
    """A robot, what it weighs, how its description has it, and a motion to play: ``(frames, joints of the tree)``."""

    robot: Robot
    boxes: tuple[Box | None, ...]
    nominal: tuple[Box | None, ...]
    frames: Array
    frame_s: float
    shapes: Sequence[Surface | None] = ()
    """The shapes of the links in the description, where it has them."""
    around: Sequence[Surface] = ()
    """What stands around the robot, in the base frame."""


def make_scene(
    robot: Robot,
    identified: Robot,
    samples: Samples | None,
    shapes: Sequence[Surface | None] = (),
    around: Sequence[Surface] = (),
) -> Scene:
    """The scene of an identified robot; without samples it stands at its neutral position."""
    neutral = np.array([[neutral_position(joint) for joint in robot.driven_joints]])
    if robot.loops:
        neutral = closures_of(robot).seeds.actuated[:1]
    frames, frame_s = neutral, 0.0
    if samples is not None and len(samples) > 1:
        count = int(np.clip(samples.duration_s * _FRAMES_PER_SECOND, 2, _MOST_FRAMES))
        first = robot.n_dof - len(robot.driven) + robot.floating
        instants = np.linspace(samples.time[0], samples.time[-1], count)
        frames = np.column_stack([np.interp(instants, samples.time, q) for q in samples.position[:, first:].T])
        frame_s = float(samples.duration_s / (count - 1))
    frames = tree_positions(robot, frames) if robot.loops else frames
    return Scene(
        robot,
        inertia_boxes(identified.parameters.inertials),
        inertia_boxes(robot.parameters.inertials),
        freeze(frames),
        frame_s,
        tuple(None if shape is None else shape.with_fewer(_MOST_TRIANGLES) for shape in shapes),
        tuple(around),
    )


def inertia_boxes(phi: Array) -> tuple[Box | None, ...]:
    """One box per row of ten parameters, None for a link without a positive mass."""
    boxes: list[Box | None] = []
    for row in phi:
        if not row[0] > 0.0:
            boxes.append(None)
            continue
        mass, center, rotation, moments = principal_form(row)
        half = np.sqrt(3.0 * np.maximum(moments, 0.0) / mass)
        boxes.append(Box(float(mass), center, half, rotation, bool(is_consistent(row, "full"))))
    return tuple(boxes)


def scene_record(scene: Scene) -> dict[str, Any]:
    """The scene in the types that JSON has, frames apart."""
    robot = scene.robot
    bodies = []
    for i, joint in enumerate(robot.joints):
        rotation, translation = joint_polynomial(joint)
        axis = joint.screw[:3] if joint.kind == "prismatic" else joint.screw[3:]
        pivot = np.zeros(3) if joint.kind in ("prismatic", "floating") else np.cross(joint.screw[3:], joint.screw[:3])
        bodies.append(
            {
                "link": robot.links[i],
                "joint": joint.name,
                "kind": joint.kind,
                "parent": joint.parent,
                "rotation": _rounded(rotation),
                "translation": _rounded(translation),
                "axis": _rounded(axis),
                "pivot": _rounded(pivot),
                "box": _box_record(scene.boxes[i]),
                "nominal": _box_record(scene.nominal[i]),
                "shape": _shape_record(scene.shapes[i] if scene.shapes else None),
            }
        )
    around = [_shape_record(shape) for shape in scene.around]
    return {"bodies": bodies, "frame_s": scene.frame_s, "n_driven": scene.frames.shape[1], "around": around}


def _box_record(box: Box | None) -> dict[str, Any] | None:
    if box is None:
        return None
    return {
        "mass": float(f"{box.mass:.5g}"),
        "center": _rounded(box.center),
        "half": _rounded(box.half_lengths),
        "rotation": _rounded(box.rotation),
        "real": box.real,
    }


def _shape_record(shape: Surface | None) -> dict[str, Any] | None:
    """To the tenth of a millimetre, which is finer than a screen."""
    if shape is None:
        return None
    points = [round(float(x), 4) for x in shape.vertices.ravel()]
    return {"points": points, "faces": shape.triangles.ravel().tolist()}


def _rounded(values: Array | Sequence[float]) -> list[float]:
    return [float(f"{value:.7g}") for value in np.asarray(values, dtype=np.float64).ravel()]
