"""Retrieval under bounds: how far from the best possible, and what the joints carry."""

from __future__ import annotations

import math

from dynid.report.page import Folded, Item, Items, Part, Section, Table
from dynid.report.shown import Shown


def retrieval_section(shown: Shown) -> Section | None:
    """How far a retrieved set is from the best possible, what it violates, and what the joints would carry."""
    run = shown.run
    found = run.retrieval
    if not found:
        return None
    violated = found["violated"]
    items = [
        Item("good", "Every bound and condition is met.")
        if not violated
        else Item("error", f"Violated: {', '.join(f'{name} by {size:.3g}' for name, size in violated.items())}."),
        Item(
            "note",
            f"Its cost is {found['cost']:.6g}; no set that meets the convex conditions costs less than "
            f"{found['lower_bound']:.6g}, so the gap is {found['gap']:.2g}.",
        ),
    ]
    parts: list[Part] = [Items(tuple(items))]
    wrenches = found.get("largest_joint_wrench", ())
    if wrenches:
        rows = tuple(
            (name, f"{entry['force']:.4g}", f"{entry['moment']:.4g}")
            for name, entry in zip(run.robot.joint_names, wrenches, strict=True)
        )
        parts.append(Table(("joint", "largest force, N", "largest moment, N m"), rows, numeric=(1, 2)))
    given = found.get("coefficients", ())
    if given:
        lines = tuple(
            (
                entry["name"],
                f"{entry['given']:.6g}",
                f"{entry['retrieved']:.6g}",
                "–"
                if entry["sigma_percent"] is None or math.isnan(entry["sigma_percent"])
                else f"{entry['sigma_percent']:.3g} %",
            )
            for entry in given
        )
        header = ("coefficient", "given", "retrieved", "sigma of the given one")
        parts.append(Folded(f"All {len(given)} coefficients", (Table(header, lines, numeric=(1, 2, 3), code=(0,)),)))
    text = "Parameters that joint torque does not determine still set the forces inside the joints; plausible bodies give plausible forces."
    return Section("Retrieval under bounds", text, tuple(parts), "Retrieval")
