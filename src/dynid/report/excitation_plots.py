"""Pictures of a designed motion: positions with their limits, singular values, the tool's way through space."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.excitation.card import experiment_card
from dynid.excitation.design import Excitation
from dynid.excitation.tool import tool_path
from dynid.report.figure import Figure
from dynid.report.page import Code, Folded, Section, Table
from dynid.report.panel import COLOURS, Axis, Curve, Mark, Panel

_POINTS = 1200
_LINE, _LIMIT, _SOFT = COLOURS["predicted"][0], COLOURS["limit"][0], COLOURS["data"][0]


def excitation_section(excitation: Excitation) -> Section:
    """The motion as a section of a report: margins, pictures, and the card for the person at the robot."""
    rows = tuple(
        (name.replace("_", " "), f"{100.0 * margin.value:.2f} %", margin.where, f"{margin.time_s:.3f} s")
        for name, margin in excitation.margins.items()
    )
    text = (
        f"{excitation.playable.duration_s:.4g} s of motion, condition number {excitation.condition_number:.4g} over "
        f"{excitation.base.n_base} base parameters; the smallest margin is {100.0 * excitation.margins.smallest:.2f} %."
    )
    return Section(
        "Exciting motion",
        text,
        (
            Table(("limit", "left", "where", "at"), rows, numeric=(1, 3)),
            positions_figure(excitation),
            singular_values_figure(excitation),
            tool_figure(excitation),
            Folded("Experiment card", (Code(experiment_card(excitation)),)),
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
    """One HTML page that needs nothing but itself: positions, singular values, and the tool's path in three dimensions."""
    figures = (_positions_plot(excitation), _singular_values_plot(excitation), _tool_plot(excitation))
    parts = [
        figure.to_html(full_html=False, include_plotlyjs=number == 0, div_id=f"excitation-{number}")
        for number, figure in enumerate(figures)
    ]
    from html import escape

    name = escape(excitation.robot.name)
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title></head><body>\n{body}\n</body></html>\n'


def _positions_plot(excitation: Excitation) -> Any:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    names = excitation.robot.joint_names
    time, q = _motion(excitation)
    figure = make_subplots(rows=len(names), cols=1, shared_xaxes=True, vertical_spacing=0.012)
    for j, name in enumerate(names):
        line = go.Scatter(
            x=time.round(4), y=q[:, j].round(5), line={"color": _LINE, "width": 1.4}, name=name, showlegend=False
        )
        figure.add_trace(line, row=j + 1, col=1)
        for bound in excitation.limits.position[j]:
            if np.isfinite(bound):
                figure.add_hline(y=float(bound), line={"color": _LIMIT, "width": 1, "dash": "dash"}, row=j + 1, col=1)
        figure.update_yaxes(title_text=name, row=j + 1, col=1)
    figure.update_xaxes(title_text="time, s", row=len(names), col=1)
    figure.update_layout(
        title=f"{excitation.robot.name}: positions and their limits, rad or m", height=110 * len(names) + 120
    )
    return figure


def _singular_values_plot(excitation: Excitation) -> Any:
    import plotly.graph_objects as go

    values = excitation.singular_values
    figure = go.Figure(go.Bar(x=np.arange(1, len(values) + 1), y=values, marker={"color": _SOFT}))
    figure.update_yaxes(type="log", title_text="singular value")
    figure.update_layout(
        title=f"Singular values of the base regressor, condition number {excitation.condition_number:.4g}", height=360
    )
    return figure


def _tool_plot(excitation: Excitation) -> Any:
    import plotly.graph_objects as go

    x, y, z = _tool(excitation).T.round(5)
    figure = go.Figure(go.Scatter3d(x=x, y=y, z=z, mode="lines", line={"color": _LINE, "width": 4}))
    scene = {"aspectmode": "data", "xaxis_title": "x, m", "yaxis_title": "y, m", "zaxis_title": "z, m"}
    figure.update_layout(title="Path of the tool in the base frame", height=560, scene=scene)
    return figure


def _motion(excitation: Excitation) -> tuple[Any, Any]:
    time = excitation.playable.grid(_POINTS)
    return time, excitation.playable.derivative(time, 0)


def _tool(excitation: Excitation) -> Any:
    limits = excitation.limits
    return tool_path(excitation.robot, _motion(excitation)[1], limits.tool_body, limits.tool_point)
