"""The parts of a robot: joints, merged links, the tree of joints as flat arrays, and who carries whom when joints are locked.

The pose of the body that a joint moves in its parent is ``T(q) = P exp([S] q)`` with a constant placement ``P`` and a constant screw
``S`` given in the body's own frame. Compiled kernels take the tree as arrays (:class:`KinematicTree`). Bodies of locked joints are
merged upward (:class:`Carried`): what every carrier weighs then, and where merged links lie in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, freeze, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.model.inertia import change_of_frame, skew


def axis_point(joint: Joint) -> Array:
    """Point of a rotating joint's axis nearest to the body's origin; the origin for other joints."""
    if joint.kind in ("prismatic", "floating"):
        return np.zeros(3)
    return np.cross(joint.screw[3:], joint.screw[:3])


def pitch(joint: Joint) -> float:
    """Advance along the axis per radian; rounding counts as none."""
    if joint.kind in ("prismatic", "floating"):
        return 0.0
    advance = float(joint.screw[3:] @ joint.screw[:3])
    return advance if abs(advance) > 1e-12 else 0.0


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
    """Constant matrices of ``R(q)`` and ``p(q)``, see :class:`dynid.model.joint.KinematicTree`."""
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


@dataclass(frozen=True)
class KinematicTree:
    """Joints and the bodies that they move, as flat arrays.

    ``rotation[i] = (M0, M1, M2)`` and ``translation[i] = (P0, P1, P2, P3)`` give the pose of body ``i`` in its parent:
    ``R = M0 + cos(q) M1 + sin(q) M2`` and ``p = P0 + cos(q) P1 + sin(q) P2 + q P3``.
    ``support_start, support`` list, body by body, the velocity indices that move it (root first, its own last).
    """

    parent: IntArray
    dof_start: IntArray
    dof_count: IntArray
    rotation: Array
    translation: Array
    screw: Array
    support_start: IntArray
    support: IntArray
    floating: bool


def kinematic_tree(joints: Sequence[Joint]) -> KinematicTree:
    """The tree of these joints, parents before what they carry."""
    counts = np.array([joint.n_dof for joint in joints])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    polynomials = [joint_polynomial(joint) for joint in joints]
    screws: list[Array] = []
    supports: list[list[int]] = []
    for i, joint in enumerate(joints):
        screws.extend(np.eye(6) if joint.kind == "floating" else [joint.screw])
        above = supports[joint.parent] if joint.parent >= 0 else []
        supports.append(above + list(range(starts[i], starts[i] + counts[i])))
    return KinematicTree(
        parent=freeze([joint.parent for joint in joints], dtype=np.int64),
        dof_start=freeze(starts, dtype=np.int64),
        dof_count=freeze(counts, dtype=np.int64),
        rotation=freeze([rotation for rotation, _ in polynomials]),
        translation=freeze([translation for _, translation in polynomials]),
        screw=freeze(screws),
        support_start=freeze(np.concatenate([[0], np.cumsum([len(s) for s in supports])]), dtype=np.int64),
        support=freeze([d for s in supports for d in s], dtype=np.int64),
        floating=joints[0].kind == "floating",
    )


@dataclass(frozen=True)
class MergedLink:
    """A link that is fixed to a body and was merged into it: its pose in the body's frame and its own ten parameters.

    ``body`` is -1 for links fixed to the ground.
    """

    name: str
    body: int
    placement: Array
    phi: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "placement", matrix(f"placement of link '{self.name}'", self.placement, (4, 4)))
        object.__setattr__(self, "phi", matrix(f"inertial of link '{self.name}'", self.phi, (10,)))


@dataclass(frozen=True, eq=False)
class Carried:
    """Which body that still moves carries each body once some joints are locked; bodies in the old numbering."""

    joints: tuple[Joint, ...]
    carrier: list[int]
    """Of every body: itself where it is kept, -1 for the ground."""
    pose: Array
    """Of every body in its carrier, ``(bodies, 4, 4)``."""
    kept: list[int]
    number: dict[int, int]
    """New number of every kept body; -1 stays the ground."""

    @classmethod
    def of(cls, robot: str, joints: tuple[Joint, ...], positions: Mapping[str, float]) -> Carried:
        carrier: list[int] = []
        pose = np.tile(np.eye(4), (len(joints), 1, 1))
        for i, joint in enumerate(joints):
            if joint.name not in positions:
                carrier.append(i)
                continue
            above = pose[joint.parent] if joint.parent >= 0 else np.eye(4)
            pose[i] = above @ joint.pose(positions[joint.name])
            carrier.append(carrier[joint.parent] if joint.parent >= 0 else -1)
        kept = [i for i, into in enumerate(carrier) if into == i]
        if not kept:
            raise InputError(f"every joint of robot '{robot}' would be locked; at least one must move")
        return cls(joints, carrier, pose, kept, {old: new for new, old in enumerate(kept)} | {-1: -1})

    def merged_into(
        self, inertials: Array, links: Sequence[str], earlier: Sequence[MergedLink]
    ) -> tuple[Array, list[MergedLink]]:
        """Inertials of all bodies with those of locked ones added to their carriers, and every merged link in its new body."""
        whole = inertials.copy()
        merged = [self._moved(link) for link in earlier]
        for i, into in enumerate(self.carrier):
            if into == i:
                continue
            pose = self.pose[i]
            # what earlier merges brought into the body stays listed under its own name
            brought = [
                change_of_frame(one.placement[:3, :3], one.placement[:3, 3]) @ one.phi for one in earlier if one.body == i
            ]
            own = whole[i] - sum(brought, np.zeros(10))
            merged.append(MergedLink(links[i], self.number[into], pose, own))
            if into >= 0:
                whole[into] += change_of_frame(pose[:3, :3], pose[:3, 3]) @ whole[i]
        return whole, merged

    def _moved(self, link: MergedLink) -> MergedLink:
        if link.body < 0:
            return link
        return replace(link, body=self.number[self.carrier[link.body]], placement=self.pose[link.body] @ link.placement)

    def moving(self) -> list[Joint]:
        """The joints that still move, with their new parents."""
        found = []
        for joint in (self.joints[i] for i in self.kept):
            if joint.parent >= 0:
                above = joint.parent
                placement = joint.placement if self.carrier[above] == above else self.pose[above] @ joint.placement
                joint = replace(joint, parent=self.number[self.carrier[above]], placement=placement)
            found.append(joint)
        return found
