"""The report of a load: what it is, where it sits on the robot, and what it explains of the torque."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.apps.payload.load import Payload
from dynid.arrays import freeze
from dynid.files import write_text
from dynid.finding import Finding
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.sections.body import MOST_POINTS, body_section
from dynid.pipeline.sections.torque import torque_units
from dynid.report.figure import Figure
from dynid.report.page import Head, Section, Tile, page
from dynid.report.panel import Axis, Curve, Panel, envelope_rows
from dynid.report.scene import Scene, inertia_boxes, make_scene


def report_payload(run: IdentificationResult, load: Payload, path: str | Path) -> Path:
    """Write the report of a load as one HTML page.

    Args:
        run: the run without the load.
        load: what was found.
        path: HTML file to write.
    """
    target = Path(path)
    sections = (_numbers(load), _view(run, load), _residuals(run, load))
    subtitle = f"in frame '{load.link}', from {load.estimate.n_samples} rows with the load"
    write_text(target, page(f"Load on {run.robot.name}", subtitle, _verdict(load), sections))
    return target


def _verdict(load: Payload) -> Head:
    tiles = (
        Tile(f"{load.mass:.4g} kg", "mass", f"± {1.96 * load.sigma[0]:.2g} kg (95 %)"),
        Tile(f"{1e3 * float(np.linalg.norm(load.com)):.4g} mm", "distance of its centre from the frame"),
        Tile(
            f"{100.0 * load.relative_error_with:.2f} %",
            "torque unexplained",
            f"{100.0 * load.relative_error_without:.2f} % without the load",
        ),
    )
    reasons = tuple(Finding("warning", text) for text in load.warnings)
    if load.warnings:
        return Head("warning", "A load was found, with reservations", reasons, tiles)
    return Head("good", "The load explains the torque", reasons, tiles)


def _numbers(load: Payload) -> Section:
    gains = f" The intervals include {100.0 * load.gain_sigma:g} % (1 sigma) for the drive gains." if load.gain_sigma else ""
    return body_section(load, load.link, gains)


def _view(run: IdentificationResult, load: Payload) -> Section:
    """The load's box on the body that carries it; the others are left out."""
    whole = make_scene(run.robot, run.model, run.samples[0] if run.samples else None)
    box = inertia_boxes((load.frame.into_body @ load.phi)[None])[0]
    boxes = tuple(box if i == load.frame.body else None for i in range(run.robot.n_joints))
    scene = Scene(run.robot, boxes, (None,) * run.robot.n_joints, whole.frames, whole.frame_s)
    text = (
        "The uniform box that has the load's mass, centre and inertia, on the body that carries it; the ellipsoid of inertia has "
        "the same axes and the same proportions."
    )
    return Section("The load on the robot", text, (scene,), "View")


def _residuals(run: IdentificationResult, load: Payload) -> Section:
    figures = []
    units = torque_units(run.robot)
    for number, (time, without, within) in enumerate(load.residuals, start=1):
        panels = []
        for j, joint in enumerate(run.robot.dof_names):
            rows = envelope_rows(np.column_stack([without[:, j], within[:, j]]), MOST_POINTS)
            t = freeze(time[rows] - time[0])
            curves = (
                Curve("without the load", t, without[rows, j], "measured", width=1.6),
                Curve("with it", t, within[rows, j], "residual", width=1.0),
            )
            panels.append(Panel(joint, Axis("time, s"), Axis(units[j]), curves))
        caption = "Measured torque less that of the model, without the load and with it."
        figures.append(Figure(f"load_residual_{number}", f"Residual, log {number}", caption, tuple(panels), "strips", 96))
    return Section("What the load explains", "", tuple(figures), "Residual")
