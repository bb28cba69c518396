"""Physical consistency of shipped robot models: every URDF of the wheel ``example-robot-data``, as a Markdown table.

    python benchmarks/shipped_models.py

A link is *inconsistent* if no mass distribution has its parameters (full condition); *plain* counts those that even break
positive mass or positive principal moments. ``repair`` says whether the robot's motion can be kept with consistent links.
"""

from __future__ import annotations

import measure

from importlib.metadata import files
from pathlib import Path

import numpy as np

from dynid.errors import DynidError
from dynid.estimation.consistency.repair import repair
from dynid.io.robots.read import read_robot
from dynid.model.inertia import consistency, is_consistent
from dynid.model.links import links_of


def urdf_files() -> list[Path]:
    """The URDF files of the wheel."""
    listed = files("example-robot-data") or []
    found = [Path(str(item.locate())) for item in listed if item.suffix == ".urdf"]
    return sorted(path.resolve() for path in found)


def main() -> None:
    """Check, repair where needed, and print."""
    options = measure.parser(__doc__).parse_args()
    rows, refused = [], []
    paths = urdf_files()[:5] if options.smoke else urdf_files()
    for path in paths:
        try:
            robot = read_robot(path, "none")
        except DynidError as error:
            refused.append({"file": path.name, "reason": str(error).replace(str(path.parent), "")})
            continue
        links = links_of(robot)
        phi = np.array([link.phi for link in links])
        empty = consistency(phi).empty
        full = np.atleast_1d(is_consistent(phi, "full", allow_empty=True))
        plain = np.atleast_1d(is_consistent(phi, "plain", allow_empty=True))
        row = {
            "file": path.name,
            "links": int((~empty).sum()),
            "empty": int(empty.sum()),
            "inconsistent": int((~full).sum()),
            "plain": int((~plain).sum()),
        }
        if not full.all():
            fixed = repair(robot)
            row |= {"base_kept": fixed.base_kept, "torque_change": fixed.torque_change}
            row["names"] = [link.name for link, good in zip(links, full, strict=True) if not good]
        rows.append(row)
    bad = [row for row in rows if row["inconsistent"]]
    result = {"models": len(rows), "inconsistent_models": len(bad), "refused": refused, "rows": rows}
    if options.json:
        measure.print_result(result, True)
        return
    print(f"{len(bad)} of {len(rows)} models have links that no body could be; {len(refused)} files hold no robot.\n")
    print("| model | links | empty | inconsistent | of these plain | motion kept by repair | torque change | which |")
    print("|---|---|---|---|---|---|---|---|")
    for row in bad:
        names = row["names"]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        print(
            f"| {row['file']} | {row['links']} | {row['empty']} | {row['inconsistent']} | {row['plain']} "
            f"| {'yes' if row['base_kept'] else 'no'} | {100.0 * row['torque_change']:.3g} % | {shown} |"
        )
    print("\nConsistent: " + ", ".join(row["file"] for row in rows if not row["inconsistent"]) + ".")


if __name__ == "__main__":
    main()
