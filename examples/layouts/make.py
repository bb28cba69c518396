"""Layouts that show the torque of a recorded run: Foxglove and PlotJuggler, for the joints of a file.

    dynid identify arm.urdf log.parquet --split 0.65 --record run.mcap
    python examples/layouts/make.py shoulder elbow -o examples/layouts

Without names: the joints of the demonstration arm. Each joint has a plot of measured and predicted torque, and one of the residual.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from xml.etree import ElementTree

DEMO = ("shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow", "forearm_roll", "wrist_pitch", "wrist_roll")
GROUPS = (("measured", "predicted"), ("residual", "friction"))
COLOURS = ("#1f77b4", "#d62728")


def foxglove(joints: list[str]) -> str:
    """A layout of Foxglove: two plots for each joint, one below the other, in tabs by joint."""
    panels, tabs = {}, []
    for joint in joints:
        names = []
        for group in GROUPS:
            name = f"Plot!{joint}_{group[0]}"
            paths = [
                {
                    "value": f"/dynid/torque/{joint}.{field}",
                    "enabled": True,
                    "timestampMethod": "receiveTime",
                    "label": field,
                    "color": colour,
                }
                for field, colour in zip(group, COLOURS, strict=True)
            ]
            panels[name] = {
                "paths": paths,
                "showLegend": True,
                "title": f"{joint}: {' and '.join(group)}, N m or N",
                "isSynced": True,
            }
            names.append(name)
        tabs.append({"title": joint, "layout": {"direction": "column", "first": names[0], "second": names[1]}})
    panels["Tab!joints"] = {"activeTabIdx": 0, "tabs": tabs}
    return (
        json.dumps({"configById": panels, "globalVariables": {}, "userNodes": {}, "layout": "Tab!joints"}, indent=1) + "\n"
    )


def plotjuggler(joints: list[str]) -> str:
    """A layout of PlotJuggler: a tab for each joint with two plots."""
    root = ElementTree.Element("root")
    window = ElementTree.SubElement(root, "tabbed_widget", name="Main Window", parent="main_window")
    for joint in joints:
        tab = ElementTree.SubElement(window, "Tab", tab_name=joint, containers="1")
        split = ElementTree.SubElement(
            ElementTree.SubElement(tab, "Container"), "DockSplitter", orientation="-", sizes="0.5;0.5", count="2"
        )
        for group in GROUPS:
            area = ElementTree.SubElement(split, "DockArea", name=f"{joint}: {' and '.join(group)}")
            plot = ElementTree.SubElement(area, "plot", mode="TimeSeries", style="Lines")
            for field, colour in zip(group, COLOURS, strict=True):
                ElementTree.SubElement(plot, "curve", name=f"/dynid/torque/{joint}/{field}", color=colour)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def main() -> None:
    """Write both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("joints", nargs="*", default=list(DEMO))
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    given = parser.parse_args()
    (given.output / "foxglove.json").write_text(foxglove(given.joints), encoding="utf-8")
    (given.output / "plotjuggler.xml").write_text(plotjuggler(given.joints), encoding="utf-8")


if __name__ == "__main__":
    main()
