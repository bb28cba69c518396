"""Bodies merged upward where joints are locked: who carries whom, and what every carrier weighs then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.inertia import change_of_frame
from dynid.robot.joint import Joint
from dynid.robot.source import MergedLink


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
            own = whole[i] - _brought(link for link in earlier if link.body == i)
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


def _brought(links: Iterable[MergedLink]) -> Array:
    """What earlier merges brought into a body; it stays listed under its own name."""
    frames = ((change_of_frame(link.placement[:3, :3], link.placement[:3, 3]), link.phi) for link in links)
    return sum((frame @ phi for frame, phi in frames), np.zeros(10))
