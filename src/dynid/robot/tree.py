"""The tree of a robot's joints as flat arrays, for the compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.robot.joint import Joint, joint_polynomial


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
