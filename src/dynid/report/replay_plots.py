"""Forward validation drawn: how far the model strays while it runs free."""

from __future__ import annotations

import numpy as np

from dynid.report.figure import Figure
from dynid.report.panel import Axis, Curve, Panel
from dynid.robot.model import Robot
from dynid.validation.replay import Replay

_OFTEN = 95.0
"""Percentile of the windows that is drawn beside their mean."""


def end_effector_figure(replay: Replay) -> Figure:
    """Error of the end effector in position and orientation over the time since a window began."""
    milliseconds = 1e3 * replay.time
    panels = tuple(
        Panel(
            title,
            Axis("time since the measured state, ms"),
            Axis(unit, low=0.0),
            (
                Curve("mean of the windows", milliseconds, error.mean(axis=0), "predicted"),
                Curve(f"{_OFTEN:g} % stay below", milliseconds, np.percentile(error, _OFTEN, axis=0), "residual"),
            ),
        )
        for title, unit, error in (
            ("position", "mm", 1e3 * replay.end_effector_position),
            ("orientation", "degrees", np.rad2deg(replay.end_effector_orientation)),
        )
    )
    caption = f"Distance and angle between link {replay.frame} as replayed and as measured, over {replay.n_windows} windows."
    return Figure("replay_end_effector", "End effector in free motion of the model", caption, panels, "grid", 240, columns=2)


def drift_figure(robot: Robot, replay: Replay) -> Figure:
    """Root mean square position error of every joint over the time since a window began."""
    milliseconds = 1e3 * replay.time
    error = np.sqrt(((replay.position - replay.measured) ** 2).mean(axis=0))
    panels = []
    for j, joint in enumerate(robot.moving_joints):
        unit, scale = ("mm", 1e3) if joint.kind == "prismatic" else ("mrad", 1e3)
        curve = Curve("drift", milliseconds, scale * error[:, j], "residual")
        panels.append(Panel(joint.name, Axis("ms"), Axis(unit, low=0.0), (curve,)))
    caption = "Root mean square over the windows of replayed less measured position."
    return Figure("replay_drift", "Drift of every joint", caption, tuple(panels))


def energy_figure(replay: Replay) -> Figure:
    """Energy that the model cannot account for, against what went through the joints, window by window."""
    curve = Curve("windows", replay.energy_throughput, replay.energy_residual, "data", "points", width=3.0)
    panel = Panel("", Axis("energy through the joints, J"), Axis("change of energy less work, J"), (curve,))
    caption = (
        f"Energy balance of the measured motion, without integration: {100.0 * replay.energy_error:.3g} % of the energy that went "
        "through the joints is not found again in the bodies and in friction."
    )
    return Figure("replay_energy", "Energy balance", caption, (panel,), "grid", 240, columns=1)
