"""The report of a load: what it is, where it sits on the robot, and what it explains of the torque."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.arrays import freeze
from dynid.estimation.body import TEN, BodyEstimate
from dynid.files import write_text
from dynid.regression.wrench_rows import AXES, WrenchRows
from dynid.report.envelope import envelope_rows
from dynid.report.figure import Figure
from dynid.report.page import Item, Section, Table, Tile, Verdict, page
from dynid.report.panel import Axis, Curve, Panel
from dynid.report.scene import Scene, inertia_boxes, make_scene
from dynid.report.torque_plots import torque_units
from dynid.run.payload import Payload
from dynid.run.record import Run
from dynid.run.sensor import SensorBody

MOST_POINTS = 1500
_UNITS = ("kg", *["kg m"] * 3, *["kg m²"] * 6)


def report_payload(run: Run, load: Payload, path: str | Path) -> Path:
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


def report_sensor(found: SensorBody, path: str | Path) -> Path:
    """Write the report of the body on a sensor as one HTML page.

    Args:
        found: what was found.
        path: HTML file to write.
    """
    target = Path(path)
    write_text(target, page(SENSOR_TITLE, sensor_subtitle(found), sensor_verdict(found), sensor_sections(found)))
    return target


SENSOR_TITLE = "Body on a force/torque sensor"


def sensor_subtitle(found: SensorBody) -> str:
    """Frame, rows and filter."""
    return f"in frame '{found.frame}', {found.best.estimate.n_samples} rows; {found.filter.describe()}"


def sensor_verdict(found: SensorBody, tiles: Sequence[Tile] = ()) -> Verdict:
    """What is known of the body, and what is to be doubted."""
    body = found.best
    own = (
        Tile(f"{body.mass:.4g} kg", "mass", f"± {1.96 * body.sigma[0]:.2g} kg (95 %)"),
        Tile(f"{1e3 * float(np.linalg.norm(body.com)):.4g} mm", "distance of its centre from the sensor"),
        Tile(f"{100.0 * found.relative_error:.2f} %", "wrench unexplained"),
    )
    doubts = [Item("warning", finding.sentence, finding.fix) for finding in found.findings]
    doubts += [Item("note", note) for note in found.notes]
    known = "The whole body is known" if not body.unknown else f"Known but for {', '.join(body.unknown)}"
    return Verdict("good" if not (body.unknown or found.findings) else "warning", known, tuple(doubts), (*own, *tiles))


def sensor_sections(found: SensorBody) -> tuple[Section, ...]:
    """Parameters, methods and offsets, and the wrench where the samples are at hand."""
    own = (_body_section(found.best, found.frame), _methods(found))
    return (*own, _wrench(found)) if found.samples else own


def _methods(found: SensorBody) -> Section:
    rows = tuple(
        (
            body.method,
            f"{body.mass:.4f} ± {1.96 * body.sigma[0]:.4f}",
            ", ".join(f"{1e3 * value:.1f}" for value in body.com),
            ", ".join(f"{1e3 * value:.2f}" for value in np.diag(body.inertia)),
            "yes" if body.feasible else "no",
        )
        for body in found.bodies
    )
    header = ("method", "mass, kg (95 %)", "centre, mm", "inertia about it, g m²: xx, yy, zz", "consistent")
    offsets = tuple(
        (axis, f"{value:.4g}", "N" if axis[0] == "f" else "N m") for axis, value in zip(AXES, found.offsets, strict=True)
    )
    return Section(
        "Methods and offsets",
        "The same rows by every method, and the offsets of the sensor.",
        (Table(header, rows, numeric=(1, 2, 3)), Table(("axis", "offset", "unit"), offsets, numeric=(1,))),
        "Methods",
    )


def _wrench(found: SensorBody) -> Section:
    figures = []
    values = found.best.estimate.standard.values
    for number, log in enumerate(found.samples, start=1):
        rows = WrenchRows(log, len(values) > 10, len(values) > 16, found.static)
        blocks = [np.concatenate(parts) for parts in zip(*(chunk.blocks for chunk in rows.passes()), strict=True)]
        panels = []
        for axis, block in zip(AXES, blocks, strict=True):
            predicted = block[:, :-1] @ values
            kept = envelope_rows(np.column_stack([block[:, -1], predicted]), MOST_POINTS)
            t = freeze(log.time[kept] - log.time[0])
            curves = (
                Curve("measured", t, block[kept, -1], "measured", width=1.6),
                Curve("predicted", t, predicted[kept], "predicted", width=1.0),
            )
            panels.append(Panel(axis, Axis("time, s"), Axis("N" if axis[0] == "f" else "N m"), curves))
        caption = "Measured wrench, and that of the body found with the offsets of the sensor."
        figures.append(Figure(f"wrench_{number}", f"Wrench, log {number}", caption, tuple(panels), "strips", 96))
    return Section("Wrench", "", tuple(figures))


def _verdict(load: Payload) -> Verdict:
    tiles = (
        Tile(f"{load.mass:.4g} kg", "mass", f"± {1.96 * load.sigma[0]:.2g} kg (95 %)"),
        Tile(f"{1e3 * float(np.linalg.norm(load.com)):.4g} mm", "distance of its centre from the frame"),
        Tile(
            f"{100.0 * load.relative_error_with:.2f} %",
            "torque unexplained",
            f"{100.0 * load.relative_error_without:.2f} % without the load",
        ),
    )
    reasons = tuple(Item("warning", text) for text in load.warnings)
    if load.warnings:
        return Verdict("warning", "A load was found, with reservations", reasons, tiles)
    return Verdict("good", "The load explains the torque", reasons, tiles)


def _numbers(load: Payload) -> Section:
    gains = f" The intervals include {100.0 * load.gain_sigma:g} % for the drive gains." if load.gain_sigma else ""
    return _body_section(load.body, load.link, gains)


def _body_section(body: BodyEstimate, frame: str, remark: str = "") -> Section:
    interval = body.interval()
    rows = tuple(
        (name, f"{value:.5g}", f"{low:.5g} to {high:.5g}" if known else "not determined", unit)
        for name, value, (low, high), known, unit in zip(TEN, body.phi, interval, body.determined, _UNITS, strict=True)
    )
    plain = (
        (
            "centre of mass, m",
            ", ".join(f"{value:.5f}" for value in body.com),
            ", ".join(f"± {1.96 * s:.2g}" for s in body.com_sigma),
        ),
        *(
            (
                f"inertia about it, row {axis}, kg m²",
                ", ".join(f"{value:.5f}" for value in row),
                ", ".join(f"± {1.96 * s:.2g}" for s in spread),
            )
            for axis, row, spread in zip("xyz", body.inertia, body.inertia_sigma, strict=True)
        ),
    )
    return Section(
        "Parameters",
        f"Ten parameters about the origin of frame '{frame}', by method {body.method}.{remark}",
        (
            Table(("parameter", "value", "95 % interval", "unit"), rows, numeric=(1, 2)),
            Table(("quantity", "value", "95 %"), plain, numeric=(1, 2)),
        ),
    )


def _view(run: Run, load: Payload) -> Section:
    """The load's box on the body that carries it; the others are left out."""
    whole = make_scene(run.robot, run.identified, run.samples[0] if run.samples else None)
    box = inertia_boxes((load.frame.into_body @ load.phi)[None])[0]
    boxes = tuple(box if i == load.frame.body else None for i in range(run.robot.n_joints))
    scene = Scene(run.robot, boxes, (None,) * run.robot.n_joints, whole.frames, whole.frame_s)
    text = (
        "The uniform box that has the load's mass, centre and inertia, on the body that carries it; the ellipsoid of inertia has "
        "the same axes and the same proportions."
    )
    return Section("The load on the robot", text, (scene,), "View")


def _residuals(run: Run, load: Payload) -> Section:
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
