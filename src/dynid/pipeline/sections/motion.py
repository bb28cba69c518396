"""Pictures of a designed motion: positions with their limits, singular values, the tool's way through space."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.excitation.excitation_result import Excitation
from dynid.excitation.experiment_sheet import experiment_sheet
from dynid.excitation.pose_limits import tool_path
from dynid.pipeline.sections.model import shapes_to_draw
from dynid.report.figure import Figure
from dynid.report.page import Code, Folded, Head, Section, Table, page
from dynid.report.panel import Axis, Curve, Mark, Panel
from dynid.report.scene import make_scene

_POINTS = 1200
_SCENE_HZ = 50.0


def excitation_section(excitation: Excitation) -> Section:
    """The motion as a section of a report: margins, pictures, and the card for the person at the robot."""
    margins = excitation.margins
    rows = tuple(
        (name.replace("_", " "), f"{100.0 * margin:.2f} %", margins.places[name][0], f"{margins.places[name][1]:.3f} s")
        for name, margin in margins.items()
    )
    text = (
        f"{excitation.playable.duration_s:.4g} s of motion, condition number {excitation.condition_number:.4g} over "
        f"{excitation.base.n_base} base parameters; the smallest margin is {100.0 * margins.smallest:.2f} %."
    )
    return Section(
        "Exciting motion",
        text,
        (
            Table(("limit", "left", "where", "at"), rows, numeric=(1, 3)),
            positions_figure(excitation),
            singular_values_figure(excitation),
            tool_figure(excitation),
            Folded("Experiment card", (Code(experiment_sheet(excitation)),)),
        ),
        "Motion",
    )


def positions_figure(excitation: Excitation) -> Figure:
    """Position of every joint over time, between its limits."""
    time, q = _motion(excitation)
    panels = []
    for j, name in enumerate(excitation.robot.joint_names):
        marks = tuple(
            Mark("y", float(bound), word)
            for bound, word in zip(excitation.limits.position[j], ("lowest", "highest"), strict=True)
            if np.isfinite(bound)
        )
        curve = Curve("position", time, q[:, j], "predicted")
        panels.append(Panel(name, Axis("time, s"), Axis("rad or m"), (curve,), marks))
    caption = "Dashed lines are the limits of each joint's range."
    return Figure("excitation_positions", "Designed positions", caption, tuple(panels), "strips", 110)


def singular_values_figure(excitation: Excitation) -> Figure:
    """Singular values of the base regressor, largest first."""
    values = excitation.singular_values
    index = np.arange(1, len(values) + 1, dtype=np.float64)
    curve = Curve("SI units", index, values, "data", "points", width=5.0)
    panel = Panel("", Axis("number"), Axis("singular value", log=True), (curve,))
    caption = f"Condition number {excitation.condition_number:.4g}: the largest over the smallest."
    return Figure(
        "excitation_singular_values", "Singular values of the designed motion", caption, (panel,), "grid", 260, columns=1
    )


def tool_figure(excitation: Excitation) -> Figure:
    """Path of the tool seen along each axis of the base frame."""
    path = _tool(excitation)
    panels = tuple(
        Panel(
            f"{'xyz'[across]}{'xyz'[up]}",
            Axis(f"{'xyz'[across]}, m"),
            Axis(f"{'xyz'[up]}, m"),
            (Curve("tool", path[:, across], path[:, up], "predicted"),),
        )
        for across, up in ((0, 1), (0, 2), (1, 2))
    )
    return Figure(
        "excitation_tool", "Path of the tool", "Seen from above, from the front and from the side.", panels, "grid", 260
    )


def picture(excitation: Excitation) -> str:
    """One HTML page that needs nothing but itself: the motion as a section, and the robot that plays it in three dimensions."""
    robot = excitation.robot
    shapes, told = shapes_to_draw(robot)
    scene = make_scene(robot, robot, excitation.playable.samples(_SCENE_HZ), shapes)
    moving = Section(
        "The robot in motion", f"Each link as the uniform box that has its ten parameters. {told}", (scene,), "Robot"
    )
    kept = Head("good", f"Every limit is kept; the smallest margin is {100.0 * excitation.margins.smallest:.2f} %.")
    return page(f"Exciting motion: {robot.name}", excitation.in_words(), kept, [excitation_section(excitation), moving])


def _motion(excitation: Excitation) -> tuple[Any, Any]:
    time = excitation.playable.grid(_POINTS)
    return time, excitation.playable.derivative(time, 0)


def _tool(excitation: Excitation) -> Any:
    limits = excitation.limits
    return tool_path(excitation.robot, _motion(excitation)[1], limits.tool_body, limits.tool_point)
