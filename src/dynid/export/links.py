"""Bodies that were merged of several links, taken apart again for files that keep the links.

Links that hang on a body keep the inertials of their description and the moving link gets the rest,
``P = P_body - sum_k P_k``. Where that rest is no physical body, the others are scaled by one factor ``s``, the half of the
largest for which ``P_body - s sum_k P_k >= 0``; those that are no physical bodies themselves are put into the moving link
altogether.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.inertia import change_of_frame, is_consistent, pseudo_inertia
from dynid.robot.model import Robot

ROUNDING = 1e-14
"""Relative difference up to which an inertial counts as unchanged."""


@dataclass(frozen=True, eq=False)
class LinkInertial:
    """Ten parameters of one link in its own frame, as they shall be written.

    ``size`` is that of the numbers which cancelled in them, which sets what in them is rounding.
    """

    link: str
    phi: Array
    size: Array

    def is_like(self, present: Array) -> bool:
        """Equal up to what merging and taking apart rounds off: mass, first moments and inertias each by their size."""
        groups = (slice(0, 1), slice(1, 4), slice(4, 10))
        difference = np.abs(self.phi - present)
        return all(difference[group].max() <= ROUNDING * self.size[group].max() for group in groups)


def links_taken_apart(robot: Robot, notes: list[str]) -> list[LinkInertial]:
    """Moving links first, then the merged ones, in the frames of the robot."""
    apart: list[LinkInertial] = []
    scale = {link.name: 1.0 for link in robot.merged}
    for body, (name, whole) in enumerate(zip(robot.links, robot.parameters.inertials, strict=True)):
        parts = {
            link.name: change_of_frame(link.placement[:3, :3], link.placement[:3, 3]) @ link.phi
            for link in robot.merged
            if link.body == body and link.phi.any()
        }
        own = _difference(whole, sum(parts.values(), np.zeros(10)))
        if parts and is_consistent(whole, allow_empty=True) and not is_consistent(own, allow_empty=True):
            share, taken = _shared_out(whole, parts)
            scale |= {part: share if part not in taken else 0.0 for part in parts}
            own = _difference(whole, sum((scale[part] * phi for part, phi in parts.items()), np.zeros(10)))
            told = [f"put into it from {', '.join(taken)}"] if taken else []
            if len(taken) < len(parts) and share < 1.0:
                told.append(f"multiplied by {share:.4g} in {', '.join(part for part in parts if part not in taken)}")
            notes.append(
                f"link '{name}' without {', '.join(parts)} would be no physical body: inertials were {' and '.join(told)}"
            )
        apart.append(LinkInertial(name, own, np.abs(whole) + sum((np.abs(p) for p in parts.values()), np.zeros(10))))
    apart.extend(LinkInertial(link.name, scale[link.name] * link.phi, np.abs(link.phi)) for link in robot.merged)
    return apart


def _difference(whole: Array, part: Array) -> Array:
    """What is left of numbers that cancel is no link."""
    rest = whole - part
    return np.where(np.abs(rest) <= 1e-13 * (np.abs(whole) + np.abs(part)), 0.0, rest)


def _shared_out(whole: Array, parts: Mapping[str, Array]) -> tuple[float, tuple[str, ...]]:
    """The factor for what hangs on a body, and the links whose inertials it must take over altogether.

    Those are the ones that no physical body could be themselves, or all where the body has nothing to give.
    """
    bad = tuple(name for name, phi in parts.items() if not is_consistent(phi))
    good = sum((phi for name, phi in parts.items() if name not in bad), np.zeros(10))
    if not good.any() or is_consistent(_difference(whole, good), allow_empty=True):
        return 1.0, bad
    share = 0.5 * _largest_share(whole, good)
    return (share, bad) if share > 0.0 else (0.0, tuple(parts))


def _largest_share(whole: Array, part: Array) -> float:
    """Largest ``s`` with ``P_whole - s P_part >= 0``, one over the largest eigenvalue of ``P_whole^-1 P_part``."""
    values, vectors = np.linalg.eigh(pseudo_inertia(whole))
    if values[0] <= 1e-12 * values[-1]:
        return 0.0  # a flat body has nothing to give in some direction
    root = vectors / np.sqrt(values)
    return float(1.0 / np.linalg.eigvalsh(root.T @ pseudo_inertia(part) @ root)[-1])
