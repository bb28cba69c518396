"""Densities of links in the boxes around their shapes: kept unless the data contradict them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.estimation.constraints.densities import DensityInBox, DensityInEllipsoid
from dynid.robot.boxes import body_boxes
from dynid.robot.model import Robot


def boxes_of(robot: Robot) -> tuple[tuple[DensityInBox, ...], tuple[str, ...]]:
    """Of every link of the robot whose description has shapes, and a sentence on those that have none."""
    found = body_boxes(robot)
    notes: tuple[str, ...] = ()
    if found.reason:
        notes = (f"no link is kept in the box around its shapes: {found.reason}",)
    elif found.missing:
        notes = (
            f"links that are not kept in a box around their shapes, because they have none: {', '.join(found.missing)}",
        )
    return tuple(DensityInBox(one.link, one.lower, one.upper) for one in found.boxes), notes


@dataclass(frozen=True)
class Contradictions:
    """Links whose box the data contradict, and by which part keeping it would raise the error of the fit."""

    links: Mapping[str, float] | None = None

    def with_one(self, link: str, excess: float, chi_square: float) -> Contradictions:
        """One more link; ``excess`` is the chi-square that its box costs beside the others, above ``chi_square``."""
        part = float(np.sqrt(1.0 + excess / max(chi_square, 1e-300)) - 1.0)
        return Contradictions({**(self.links or {}), link: part})

    def notes(self) -> tuple[str, ...]:
        """One sentence a link."""
        return tuple(
            f"the data contradict that the mass of link '{link}' lies in the box around its shapes"
            + (f" (the residual would grow by {100.0 * part:.2g} %)" if np.isfinite(part) else "")
            + ": it was identified without"
            for link, part in (self.links or {}).items()
        )

    def details(self, boxes: Sequence[DensityInBox | DensityInEllipsoid]) -> dict[str, Any]:
        """For the record: which links are in their boxes, and which are not."""
        if not boxes:
            return {}
        left = dict(self.links or {})
        kept = [str(box.link) for box in boxes if str(box.link) not in left]
        return {
            "boxes": {
                "kept": kept,
                "contradicted": {link: part if np.isfinite(part) else None for link, part in left.items()},
            }
        }
