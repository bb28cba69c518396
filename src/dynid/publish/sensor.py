"""A run of the body on a force/torque sensor as a folder: numbers, the body in the forms asked for, and the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dynid.errors import InconsistentModelError, InputError
from dynid.export.vendors import FORMS
from dynid.files import write_json, write_text
from dynid.folders import changed_folder
from dynid.progress import Tell, silent
from dynid.publish.publish import DEFAULT_FORMATS
from dynid.report.run_report import REPORT
from dynid.report.sensor_report import report_sensor_run
from dynid.run.sealed import add_files, claim
from dynid.run.sensor_run import SensorRun
from dynid.run.sensor_store import write_sensor_run
from dynid.run.store import clear_run
from dynid.run.vendor import vendor_load

JSON = "json"
_SUFFIX = {"urdf": ".urdf", "mjcf": ".xml", JSON: ".json"}


def body_formats(names: Sequence[str]) -> tuple[str, ...]:
    """Forms in which the body on a sensor can be written; others are refused."""
    known = (JSON, *FORMS)
    for name in names:
        if name not in known:
            raise InputError(
                f"format '{name}' holds a robot, the run is that of a body on a force/torque sensor: expected {', '.join(known)}"
            )
    return tuple(dict.fromkeys(names))


def publish_sensor_run(
    run: SensorRun, folder: str | Path, *, formats: Sequence[str] = DEFAULT_FORMATS, tell: Tell = silent
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write the run, the body and the report into a folder, which is replaced as a whole: the files, and why a form is missing.

    Args:
        run: the run.
        folder: made if missing; one that holds files and is no run is refused.
        formats: of the body: ``json``, ``urdf``, ``mjcf`` or a vendor's form.
        tell: called with a short text before each step.
    """
    wanted = body_formats(formats)
    claim(Path(folder))
    with changed_folder(folder) as change:
        clear_run(change.stage)
        write_sensor_run(run, change.stage, change.target)
        refusals: tuple[str, ...] = ()
        try:
            written = write_bodies(run, change.stage, wanted, allow_inconsistent=False)
        except InconsistentModelError as error:
            written, refusals = [], (f"no model of the body was written: {error}",)
        tell("writing the report")
        report_sensor_run(run, change.stage / REPORT, change.target)
        add_files(change.stage, [REPORT, *(path.name for path in written)])
    named = (path.name for path in written)
    return (change.target / "run.json", change.target / REPORT, *(change.target / name for name in named)), refusals


def export_sensor_run(
    run: SensorRun, folder: str | Path, formats: Sequence[str], *, allow_inconsistent: bool = False
) -> tuple[Path, ...]:
    """Write the body on the sensor into a folder in some forms; a body that cannot exist is refused by default.

    Args:
        run: the run.
        folder: the run's own, or any other.
        formats: ``json``, ``urdf``, ``mjcf`` or a vendor's form.
        allow_inconsistent: write a body that is not physically consistent.
    """
    wanted = body_formats(formats)
    with changed_folder(folder) as change:
        written = write_bodies(run, change.stage, wanted, allow_inconsistent=allow_inconsistent)
        add_files(change.stage, [path.name for path in written])
    return tuple(change.target / path.name for path in written)


def write_bodies(run: SensorRun, folder: Path, formats: Sequence[str], *, allow_inconsistent: bool) -> list[Path]:
    """One file per form, named ``load``."""
    body = run.found.best
    if not (body.feasible or allow_inconsistent):
        raise InconsistentModelError(
            f"the body by {body.method} cannot exist (mass {body.mass:.4g} kg): identify with --method sdp, or give --allow-inconsistent"
        )
    written = []
    for name in formats:
        path = folder / f"load{_SUFFIX.get(name, f'_{name}.txt')}"
        if name == JSON:
            write_json(path, run.found.as_dict())
        else:
            write_text(path, vendor_load(name, body.phi, run.found.place or run.found.frame, run.robot).text + "\n")
        written.append(path)
    return written
