"""Measured and predicted torque."""

from __future__ import annotations

from dynid.report.page import Section, Table, Tabs
from dynid.report.shown import Shown
from dynid.report.torque_plots import torque_figure, torque_units
from dynid.report.verdict import percent
from dynid.run.record import Run

_TORQUE_POINTS = 24_000  # drawn in all panels together, so that the page stays small


def torque_section(shown: Shown) -> Section | None:
    """Measured and predicted torque."""
    run = shown.run
    if not shown.logs:
        without = "Coefficients have" if run.from_coefficients else "A table of poses has"
        missing = (
            f"{without} no torque over time."
            if run.filter is None
            else "The logs are missing or have changed, so torque cannot be shown; the numbers above are those stored with the run."
        )
        return Section("Measured and predicted torque", missing, short="Torque")
    most = max(200, _TORQUE_POINTS // (len(shown.logs) * run.robot.n_dof))
    figures = []
    for place, log in enumerate(shown.logs):
        name = "torque" if place == 0 else f"torque_{place + 1}"
        figures.append((log.name, torque_figure(run.robot, log, name, most)))
    text = "Drag over a strip to zoom, double-click to see all of it again; a click on the legend hides a curve."
    if shown.left_out:
        text += f" {shown.left_out} more logs are not shown."
    return Section("Measured and predicted torque", text, (_error_table(run), Tabs(tuple(figures))), "Torque")


def _error_table(run: Run) -> Table:
    own, unseen = run.identification, run.validation
    header = ["joint", "unit"]
    columns: list[list[str]] = [list(run.robot.dof_names), torque_units(run.robot)]
    for label, error in (("unseen", None if unseen is None else unseen.total), ("own data", own)):
        if error is not None:
            header += [f"RMS error, {label}", f"relative, {label}"]
            columns += [[f"{x:.3g}" for x in error.rmse], [percent(float(x)) for x in error.relative_error_per_joint]]
    return Table(tuple(header), tuple(zip(*columns, strict=True)), numeric=tuple(range(2, len(header))))
