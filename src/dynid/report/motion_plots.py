"""The motion that was identified on: how far and how fast each joint went, against its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.recording.samples import Samples
from dynid.report.envelope import envelope_rows
from dynid.report.figure import Figure
from dynid.report.panel import Axis, Curve, Mark, Panel
from dynid.report.torque_plots import clock
from dynid.robot.model import Joint, Robot

_COVERAGE_POINTS = 1200


def motion_figure(robot: Robot, samples: Samples, quantity: Literal["position", "velocity"], most: int) -> Figure:
    """Position or velocity of every driven joint over time, with its limits where they lie near."""
    time, title = clock(samples)
    signals = _driven(robot, samples, quantity)
    panels = []
    for j, joint in enumerate(robot.driven_joints):
        values = signals[:, j]
        rows = envelope_rows(values[:, None], most)
        panels.append(
            Panel(
                joint.name,
                Axis(title),
                Axis(_unit(joint, quantity)),
                (Curve(quantity, time[rows], values[rows], "data"),),
                tuple(Mark("y", limit, "limit") for limit in near_limits(joint, quantity, values)),
            )
        )
    far = "" if any(panel.marks for panel in panels) else " No limit of the description lies near."
    caption = f"Dashed: limits of the description, where they lie within reach of the motion.{far}"
    return Figure(f"excitation_{quantity}", f"{quantity.capitalize()} of every joint", caption, tuple(panels), "strips", 80)


def coverage_figure(robot: Robot, logs: Sequence[Samples]) -> Figure:
    """Velocity over position: which states the motion visited, inside the limits."""
    panels = []
    q = np.vstack([_driven(robot, samples, "position") for samples in logs])
    v = np.vstack([_driven(robot, samples, "velocity") for samples in logs])
    rows = np.unique(np.linspace(0, len(q) - 1, min(len(q), _COVERAGE_POINTS)).astype(int))
    for j, joint in enumerate(robot.driven_joints):
        marks = [Mark("x", limit, "limit") for limit in near_limits(joint, "position", q[:, j])]
        marks += [Mark("y", limit, "limit") for limit in near_limits(joint, "velocity", v[:, j])]
        panels.append(
            Panel(
                joint.name,
                Axis(f"position, {_unit(joint, 'position')}"),
                Axis(_unit(joint, "velocity")),
                (Curve("visited", q[rows, j], v[rows, j], "data", "points", width=2.4),),
                tuple(marks),
            )
        )
    caption = "A motion that fills its box separates effects of position from effects of speed."
    return Figure("excitation_coverage", "Velocity over position", caption, tuple(panels), "grid", 170)


def near_limits(joint: Joint, quantity: Literal["position", "velocity"], values: Array) -> list[float]:
    """Limits not further away than the motion is wide."""
    limits = (joint.q_min, joint.q_max) if quantity == "position" else (-joint.dq_max, joint.dq_max)
    low, high = float(values.min()), float(values.max())
    reach = max(high - low, 1e-6)
    return [limit for limit in limits if np.isfinite(limit) and low - reach <= limit <= high + reach]


def _driven(robot: Robot, samples: Samples, quantity: Literal["position", "velocity"]) -> Array:
    first = robot.n_dof - len(robot.driven)
    return samples.position[:, first + robot.floating :] if quantity == "position" else samples.velocity[:, first:]


def _unit(joint: Joint, quantity: Literal["position", "velocity"]) -> str:
    length = "m" if joint.kind == "prismatic" else "rad"
    return length if quantity == "position" else f"{length}/s"
