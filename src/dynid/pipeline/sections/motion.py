"""Pictures of a designed motion: positions with their limits, singular values, the tool's way through space."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.excitation.excitation_result import Excitation
from dynid.excitation.experiment_sheet import distance_rows, experiment_sheet, limit_rows
from dynid.excitation.pose_limits import tool_path
from dynid.io.robots.solids import Solid, Surface
from dynid.pipeline.sections.model import shapes_to_draw
from dynid.report.figure import Figure
from dynid.report.page import Folded, Head, Section, Table, page
from dynid.report.panel import Axis, Curve, Mark, Panel
from dynid.report.scene import make_scene

_POINTS = 1200
_SCENE_HZ = 50.0
_LIMIT_POINTS = 400
LARGE_M = 5.0
"""Obstacles with longer half edges are planes."""


def excitation_section(excitation: Excitation) -> Section:
    """The motion as a section of a report: margins, pictures, and the card for the person at the robot."""
    margins = excitation.margins
    text = (
        f"{excitation.playable.duration_s:.4g} s of motion, condition number {excitation.condition_number:.4g} over "
        f"{excitation.base.n_base} base parameters; the smallest margin is {100.0 * margins.smallest:.2f} %."
    )
    return Section(
        "Exciting motion",
        text,
        (
            *(
                Table(rows[0], tuple(rows[1:]), numeric=(1, 2))
                for rows in (limit_rows(excitation), distance_rows(excitation))
                if rows
            ),
            limits_figure(excitation),
            positions_figure(excitation),
            singular_values_figure(excitation),
            tool_figure(excitation),
            Folded("Experiment card", (experiment_sheet(excitation),)),
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


def limits_figure(excitation: Excitation) -> Figure:
    """Largest share of the robot's velocity, acceleration and torque limits over all joints, and smallest distance, over time."""
    limits, robot = excitation.limits, excitation.robot
    time = excitation.playable.grid(_LIMIT_POINTS)
    q, v, a = excitation.playable.evaluate(time)
    parts = {"velocity": (v, limits.velocity), "acceleration": (a, limits.acceleration)}
    if np.isfinite(limits.torque).any():
        torque = inverse_dynamics(robot, q, v, a) * (1.0 + limits.torque_uncertainty)
        parts["torque"] = (torque, limits.torque)
    used, whole = f"{100.0 * limits.fraction:.0f} %", 100.0 * limits.fraction
    panels = []
    for name, (values, limit) in parts.items():
        share = whole * np.abs(values / limit).max(axis=1)
        marks = (Mark("y", whole, used),) if whole == 100.0 else (Mark("y", whole, used), Mark("y", 100.0, "limit"))
        curve = Curve("largest share of all joints", time, share, "predicted")
        panels.append(Panel(name, Axis("time, s"), Axis("% of limit", low=0.0), (curve,), marks))
    if limits.clearance is not None:
        spare = limits.clearance.distances(q) - limits.clearance.least
        curve = Curve("spare distance", time, 1e3 * spare.min(axis=1), "predicted")
        panels.append(Panel("clearance", Axis("time, s"), Axis("mm", low=0.0), (curve,), (Mark("y", 0.0, "least"),)))
    caption = "Each against what the motion may use; torque with the uncertainty of the model, distance beyond what each pair keeps."
    return Figure("excitation_limits", "Limits over time", caption, tuple(panels), "strips", 110)


def surroundings(excitation: Excitation) -> tuple[Surface, ...]:
    """Obstacles of a motion to be drawn; of planes the part near the robot."""
    clearance = excitation.limits.clearance
    if clearance is None:
        return ()
    shapes, found = clearance.shapes, []
    path = _tool(excitation)
    reach = 1.2 * max(0.3, float(np.linalg.norm(path, axis=1).max()))
    for name, obstacle, one in zip(shapes.owners, shapes.obstacles, shapes.geometry.geometryObjects, strict=True):
        half = np.array(getattr(one.geometry, "halfSide", ()))
        if not obstacle or len(half) != 3:
            continue
        pose = np.array(one.placement.homogeneous)
        if half[0] > LARGE_M:  # the slab of a plane: a sheet at its free face, in front of the robot
            normal = pose[:3, 2]
            foot = path.mean(axis=0)
            foot -= normal * (normal @ (foot - pose[:3, 3]) - half[2])
            half, pose = np.array([reach, reach, 1e-3]), pose.copy()
            pose[:3, 3] = foot
        found.append(Solid(name, "box", tuple(half.tolist()), pose, obstacle=True).surface())
    return tuple(found)


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
    scene = make_scene(robot, robot, excitation.playable.samples(_SCENE_HZ), shapes, surroundings(excitation))
    around = (
        ", ".join(use.name[3:] for use in excitation.distances if use.name.startswith("to "))
        or "nothing that dynid knows of"
    )
    moving = Section(
        "The robot in motion",
        f"Press Play before the robot does. Each link as the uniform box that has its ten parameters; see-through is what stands around: "
        f"{around}. {told}",
        (scene,),
        "Robot",
    )
    worst = excitation.margins.smallest
    kept = Head("good", f"Every limit is kept; the smallest margin is {100.0 * worst:.2f} %.")
    if worst < 0.0:
        kept = Head(
            "error",
            f"Do not play: the limit of {excitation.margins.worst.replace('_', ' ')} is broken by {-100.0 * worst:.3g} %.",
        )
    elif excitation.limits.clearance is None:
        kept = Head("warning", "Clearance was not checked: the motion may collide.")
    elif excitation.warnings:
        kept = Head("warning", f"Every limit is kept, but {'; '.join(excitation.warnings)}.")
    return page(f"Exciting motion: {robot.name}", excitation.in_words(), kept, [moving, excitation_section(excitation)])


def _motion(excitation: Excitation) -> tuple[Any, Any]:
    time = excitation.playable.grid(_POINTS)
    return time, excitation.playable.derivative(time, 0)


def _tool(excitation: Excitation) -> Any:
    limits = excitation.limits
    return tool_path(excitation.robot, _motion(excitation)[1], limits.tool_body, limits.tool_point)
