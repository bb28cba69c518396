"""URDF files as Pinocchio loads them: an independent reader to prove exported files with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError


@dataclass(frozen=True, eq=False)
class BodyFrame:
    """A link of the file: the joint that moves it, and its pose in that joint's frame."""

    link: str
    joint: int
    rotation: Array
    translation: Array


def load_urdf(path: Path, where: str, base_placement: Array | None = None) -> Any:
    """Pinocchio's model of a URDF file; with ``base_placement`` on a floating joint measured from there."""
    import pinocchio as pin

    try:
        if base_placement is None:
            return pin.buildModelFromUrdf(str(path))
        model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    except (ValueError, RuntimeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(f"{where} cannot be loaded by Pinocchio: {reason}") from error
    model.jointPlacements[1] = pin.SE3(np.array(base_placement))
    return model


def body_frames(model: Any) -> list[BodyFrame]:
    """Every link of the model."""
    import pinocchio as pin

    return [
        BodyFrame(
            frame.name, int(frame.parentJoint), np.array(frame.placement.rotation), np.array(frame.placement.translation)
        )
        for frame in model.frames
        if frame.type == pin.FrameType.BODY
    ]


def set_inertia(model: Any, joint: int, phi: Array) -> None:
    """Give the body of a joint these ten parameters, whatever its links add up to."""
    import pinocchio as pin

    model.inertias[joint] = pin.Inertia.FromDynamicParameters(phi)


def with_joints_held(model: Any, poses: Mapping[int, Array]) -> Any:
    """The model with joints, by number, held in the given poses (4x4) in their parents."""
    import pinocchio as pin

    held = pin.neutral(model)
    working = model.createData()
    pin.forwardKinematics(model, working, held)
    for i, pose in poses.items():
        motion = pin.log6(model.jointPlacements[i].inverse() * pin.SE3(pose))
        angle = float(np.asarray(working.joints[i].S).ravel() @ motion.vector)
        start, width = model.joints[i].idx_q, model.joints[i].nq
        held[start : start + width] = [angle] if width == 1 else [np.cos(angle), np.sin(angle)]
    reduced = pin.buildReducedModel(_with_marked_links(model, _MARK), list(poses), held)
    for frame in reduced.frames:
        frame.name = frame.name.removesuffix(_MARK)
    return reduced


_MARK = " (link)"
"""Behind the names of links while joints are held: Pinocchio looks for a joint's frame by name alone, and a link may have that name."""


def _with_marked_links(model: Any, mark: str) -> Any:
    import pinocchio as pin

    marked = model.copy()
    for frame in marked.frames:
        if frame.type == pin.FrameType.BODY:
            frame.name = f"{frame.name}{mark}"
    return marked
