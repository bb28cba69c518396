"""The report of a run of the body on a force/torque sensor: the body, its methods and wrench, validation, and how to repeat it."""

from __future__ import annotations

from pathlib import Path

from dynid.files import write_text
from dynid.regression.wrench_rows import AXES
from dynid.report.load_report import SENSOR_TITLE, sensor_sections, sensor_subtitle, sensor_verdict
from dynid.report.page import Section, Table, Tile, page
from dynid.report.sections.repeat import how_to_repeat
from dynid.run.sensor_run import SensorRun
from dynid.run.store import RUN_FILE


def report_sensor_run(run: SensorRun, path: str | Path, folder: str | Path | None = None) -> Path:
    """Write the report of a run as one HTML page.

    Args:
        run: the run.
        path: HTML file to write.
        folder: of the run, as the command that repeats it names it; by default that of the page.
    """
    target = Path(path)
    tiles: tuple[Tile, ...] = ()
    if run.validation:
        unseen = run.validation[run.method]
        tiles = (Tile(f"{100.0 * unseen.relative_error:.2f} %", "unseen wrench unexplained"),)
    sections = (*sensor_sections(run.found), _errors(run), _repeat(run, Path(folder or target.parent)))
    write_text(target, page(SENSOR_TITLE, sensor_subtitle(run.found), sensor_verdict(run.found, tiles), sections))
    return target


def _errors(run: SensorRun) -> Section:
    """How well every method predicts known and unseen wrench."""
    rows = []
    for body in run.found.bodies:
        for words, errors in (("identified on", run.identification), ("unseen", run.validation)):
            if body.method not in errors:
                continue
            one = errors[body.method]
            raw = "–" if one.relative_error_raw is None else f"{100.0 * one.relative_error_raw:.3g} %"
            axes = (f"{value:.3g}" for value in one.rmse)
            rows.append((body.method, words, f"{100.0 * one.relative_error:.3g} %", raw, *axes))
    header = ("method", "data", "error, filtered", "error, raw", *(f"{axis}, {_unit(axis)}" for axis in AXES))
    text = (
        "Error of the predicted wrench relative to its size, every axis in units of its noise, and its root mean square by axis. "
        "The offsets are those found while identifying."
    )
    return Section("Prediction", text, (Table(header, tuple(rows), numeric=tuple(range(2, 10))),))


def _unit(axis: str) -> str:
    return "N" if axis[0] == "f" else "N m"


def _repeat(run: SensorRun, folder: Path) -> Section:
    files = [] if run.robot is None else [("robot", run.robot.source.path or "built in", run.robot.source.sha256)]
    files += [("identified on", path, digest) for path, digest in run.logs]
    files += [("validated on", path, digest) for path, digest in run.validation_logs]
    return how_to_repeat(run.command(str(folder / RUN_FILE)), files, run.settings)
