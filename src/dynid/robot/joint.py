"""One joint: how the body that it moves sits in its parent, its limits, and what its description states of friction.

The pose of the body in its parent is ``T(q) = P exp([S] q)`` with a constant placement ``P`` and a constant screw ``S`` given
in the body's own frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.inertia import skew

JointKind: TypeAlias = Literal["revolute", "continuous", "prismatic", "floating"]
JOINT_KINDS: tuple[JointKind, ...] = ("revolute", "continuous", "prismatic", "floating")


@dataclass(frozen=True)
class Joint:
    """One joint and where the body it moves sits; limits are infinite where the description has none.

    Args:
        name: of the joint.
        kind: ``revolute``, ``continuous``, ``prismatic`` or ``floating``.
        parent: index of the joint that carries it; -1 for the ground.
        placement: 4x4 pose ``P`` of the body in its parent at position zero.
        screw: ``S`` (linear, angular) in the body's frame, with a unit axis: the pose at ``q`` is ``P exp([S] q)``.
        q_min: lower position limit, rad or m.
        q_max: upper position limit.
        dq_max: velocity limit, rad/s or m/s.
        ddq_max: acceleration limit, rad/s^2 or m/s^2.
        tau_max: torque limit, N m or N.

    Examples:
        >>> import dynid, numpy as np
        >>> joint = dynid.Joint("elbow", "revolute", -1, np.eye(4), [0, 0, 0, 0, 0, 1], q_min=-1.0, q_max=1.0)
        >>> joint.pose(np.pi / 2)[:3, 0].round(6).tolist()
        [0.0, 1.0, 0.0]
    """

    name: str
    kind: JointKind
    parent: int
    placement: Array
    screw: Array
    q_min: float = -np.inf
    q_max: float = np.inf
    dq_max: float = np.inf
    ddq_max: float = np.inf
    tau_max: float = np.inf
    nominal: Mapping[str, float] = field(default_factory=dict)
    """Values of effects that the description states, by symbol (``fv``, ``fc``, ``fo``, ``Ia``)."""

    def __post_init__(self) -> None:
        if self.kind not in JOINT_KINDS:
            raise UnknownNameError("joint type", self.kind, JOINT_KINDS, f"joint '{self.name}'")
        object.__setattr__(self, "placement", matrix(f"placement of joint '{self.name}'", self.placement, (4, 4)))
        object.__setattr__(self, "screw", matrix(f"screw of joint '{self.name}'", self.screw, (6,)))
        rotation = float(np.linalg.norm(self.screw[3:]))
        length = float(np.linalg.norm(self.screw[:3])) if self.kind == "prismatic" else rotation
        if self.kind == "prismatic" and rotation > 1e-9:
            raise InputError(f"joint '{self.name}' is prismatic but its screw rotates")
        if self.kind != "floating" and abs(length - 1.0) > 1e-9:
            raise InputError(f"axis of joint '{self.name}' has length {length:.6g}, expected 1")
        if self.q_min > self.q_max:
            raise InputError(f"joint '{self.name}' has q_min {self.q_min:g} above q_max {self.q_max:g}")
        for limit in ("dq_max", "ddq_max", "tau_max"):
            if not getattr(self, limit) > 0.0:
                raise InputError(f"joint '{self.name}' has {limit} {getattr(self, limit):g}, expected a positive number")

    @property
    def n_dof(self) -> int:
        return 6 if self.kind == "floating" else 1

    def pose(self, q: ArrayLike) -> Array:
        """``P exp([S] q)``: 4x4 pose of the body in its parent for one scalar joint position."""
        rotation_parts, translation_parts = joint_polynomial(self)
        angle = float(np.asarray(q))
        c, s = np.cos(angle), np.sin(angle)
        pose = np.eye(4)
        pose[:3, :3] = rotation_parts[0] + c * rotation_parts[1] + s * rotation_parts[2]
        pose[:3, 3] = np.array([1.0, c, s, angle]) @ translation_parts
        return pose


def neutral_position(joint: Joint) -> float:
    """Zero, or the middle of the range where zero lies outside it."""
    if joint.q_min <= 0.0 <= joint.q_max:
        return 0.0
    if np.isfinite(joint.q_min) and np.isfinite(joint.q_max):
        return 0.5 * (joint.q_min + joint.q_max)
    return joint.q_min if np.isfinite(joint.q_min) else joint.q_max


def joint_polynomial(joint: Joint) -> tuple[Array, Array]:
    """Constant matrices of ``R(q)`` and ``p(q)``, see :class:`dynid.robot.tree.KinematicTree`."""
    rotation, translation = np.zeros((3, 3, 3)), np.zeros((4, 3))
    base, shift = joint.placement[:3, :3], joint.placement[:3, 3]
    linear, axis = joint.screw[:3], joint.screw[3:]
    rotation[0], translation[0] = base, shift
    if joint.kind == "prismatic":
        translation[3] = base @ linear
    elif joint.kind != "floating":
        cross = skew(axis)
        square = cross @ cross
        centre = cross @ linear  # the point of the axis nearest to the frame's origin
        rotation[0] += base @ square
        rotation[1] = -base @ square
        rotation[2] = base @ cross
        translation[0] = translation[0] - base @ square @ centre
        translation[1] = base @ square @ centre
        translation[2] = -base @ cross @ centre
        translation[3] = base @ axis * (axis @ linear)
    return rotation, translation
