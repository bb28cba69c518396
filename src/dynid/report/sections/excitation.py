"""The motion on which the model was identified."""

from __future__ import annotations

from pathlib import Path

from dynid.report.estimate_plots import singular_value_figure
from dynid.report.motion_plots import coverage_figure, motion_figure
from dynid.report.page import Part, Section, Tabs
from dynid.report.shown import Shown

_MOTION_POINTS = 14_000  # drawn in all panels together, so that the page stays small


def excitation_section(shown: Shown) -> Section | None:
    """The motion on which the model was identified."""
    run = shown.run
    if not run.samples:
        return None
    most = max(200, _MOTION_POINTS // (2 * run.robot.n_dof))
    first = run.samples[0]
    motion = (
        ("position", motion_figure(run.robot, first, "position", most)),
        ("velocity", motion_figure(run.robot, first, "velocity", most)),
        ("velocity over position", coverage_figure(run.robot, run.samples)),
    )
    name = next(iter(run.windows), Path(run.logs[0][0]).name if run.logs else "the first log")
    text = f"The motion of {name}, on which the model was identified, and the conditioning of its regressor."
    parts: list[Part] = [Tabs(motion)]
    if run.regression is not None:
        parts.append(singular_value_figure(run.estimate, run.regression.triangle(run.estimate.base)[:, :-1]))
    return Section("Excitation", text, tuple(parts))
