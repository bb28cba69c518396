"""A body: its ten numbers with their intervals, every method, the offsets of its sensor, measured and predicted wrench."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.arrays import freeze
from dynid.estimation.body import BodyEstimate
from dynid.files import write_text
from dynid.finding import Finding, Level
from dynid.model.parameters import INERTIAL_SYMBOLS
from dynid.pipeline.sections.context import Shown
from dynid.pipeline.verdict import percent
from dynid.pipeline.wrench import SensorBody
from dynid.regression.wrench_rows import AXES
from dynid.report.figure import Figure
from dynid.report.page import Head, Section, Table, Tile, page
from dynid.report.panel import Axis, Curve, Panel, envelope_rows

MOST_POINTS = 1500
_UNITS = ("kg", *["kg m"] * 3, *["kg m²"] * 6)


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


def sensor_verdict(found: SensorBody) -> Head:
    """What is known of the body, and what is to be doubted."""
    body = found.best
    doubts = [Finding("warning", finding.what, finding.remedy) for finding in found.findings]
    doubts += [Finding("note", note) for note in found.notes]
    known = "The whole body is known" if not body.unknown else f"Known but for {', '.join(body.unknown)}"
    level: Level = "good" if not (body.unknown or found.findings) else "warning"
    return Head(level, known, tuple(doubts), body_tiles(found))


def body_tiles(found: SensorBody, unseen: float | None = None) -> tuple[Tile, ...]:
    """Mass, distance and error; ``unseen`` is the error on unseen wrench, where there is any."""
    body = found.best
    tiles = (
        Tile(f"{body.mass:.4g} kg", "mass", f"± {1.96 * body.sigma[0]:.2g} kg (95 %)"),
        Tile(f"{1e3 * float(np.linalg.norm(body.com)):.4g} mm", "distance of its centre from the sensor"),
        Tile(f"{100.0 * found.relative_error:.2f} %", "wrench unexplained"),
    )
    return tiles if unseen is None else (*tiles, Tile(f"{100.0 * unseen:.2f} %", "unseen wrench unexplained"))


def sensor_sections(found: SensorBody) -> tuple[Section, ...]:
    """Parameters, methods and offsets, and the wrench where the samples are at hand."""
    each = (body_section(found.best, found.frame), _methods(found), _wrench(found))
    return tuple(section for section in each if section is not None)


def parameters_of_body_section(shown: Shown) -> Section | None:
    """The ten parameters of the body on a sensor."""
    body = shown.run.body
    return None if body is None else body_section(body.best, body.frame)


def methods_of_body_section(shown: Shown) -> Section | None:
    """The body by every method, and the offsets."""
    return None if shown.run.body is None else _methods(shown.run.body)


def wrench_section(shown: Shown) -> Section | None:
    """Measured and predicted wrench; None without the samples."""
    return None if shown.run.body is None else _wrench(shown.run.body)


def prediction_section(shown: Shown) -> Section | None:
    """How well every method predicts known and unseen wrench."""
    rows = []
    for one in shown.run.comparisons:
        for data, words in (("identification", "identified on"), ("validation", "unseen")):
            error = one.get("errors", {}).get(data)
            if error is not None:
                shares = percent(error["relative_error"]), percent(error["relative_error_raw"])
                rows.append((one["method"], words, *shares, *(f"{value:.3g}" for value in error["rmse"])))
    header = ("method", "data", "error, filtered", "error, raw", *(f"{axis}, {_unit(axis)}" for axis in AXES))
    text = (
        "Error of the predicted wrench relative to its size, every axis in units of its noise, and its root mean square by axis. "
        "The offsets are those found while identifying."
    )
    return Section("Prediction", text, (Table(header, tuple(rows), numeric=tuple(range(2, 10))),)) if rows else None


def _unit(axis: str) -> str:
    return "N" if axis[0] == "f" else "N m"


BODY_SECTIONS = (parameters_of_body_section, methods_of_body_section, wrench_section, prediction_section)
"""What the page of a body on a sensor shows below the verdict."""


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
    offsets = tuple((axis, f"{value:.4g}", _unit(axis)) for axis, value in zip(AXES, found.offsets, strict=True))
    return Section(
        "Methods and offsets",
        "The same rows by every method, and the offsets of the sensor.",
        (Table(header, rows, numeric=(1, 2, 3)), Table(("axis", "offset", "unit"), offsets, numeric=(1,))),
        "Methods",
    )


def _wrench(found: SensorBody) -> Section | None:
    figures = []
    for number, (time, measured, predicted) in enumerate(found.predictions, start=1):
        panels = []
        for i, axis in enumerate(AXES):
            kept = envelope_rows(np.column_stack([measured[:, i], predicted[:, i]]), MOST_POINTS)
            t = freeze(time[kept] - time[0])
            curves = (
                Curve("measured", t, measured[kept, i], "measured", width=1.6),
                Curve("predicted", t, predicted[kept, i], "predicted", width=1.0),
            )
            panels.append(Panel(axis, Axis("time, s"), Axis(_unit(axis)), curves))
        caption = "Measured wrench, and that of the body found with the offsets of the sensor."
        figures.append(Figure(f"wrench_{number}", f"Wrench, log {number}", caption, tuple(panels), "strips", 96))
    return Section("Wrench", "", tuple(figures)) if figures else None


def body_section(body: BodyEstimate, frame: str, remark: str = "") -> Section:
    """The ten parameters of a body with their intervals, its centre and its inertia about it."""
    interval = body.interval()
    rows = tuple(
        (name, f"{value:.5g}", f"{low:.5g} to {high:.5g}" if known else "not determined", unit)
        for name, value, (low, high), known, unit in zip(
            INERTIAL_SYMBOLS, body.phi, interval, body.determined, _UNITS, strict=True
        )
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
