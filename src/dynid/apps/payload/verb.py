"""Bodies on the terminal: mass, centre and inertia with their intervals, and what a sensor measured of them.

``dynid payload``: a tool's or load's ten parameters, from joint torque or from a force/torque sensor.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dynid.apps.payload.options import CARRIED, KNOWN, SENSOR, PayloadSettings
from dynid.cli.bodies import body_lines, numbers_text, show_sensor
from dynid.cli.console import percent, say, show, show_json, show_warning
from dynid.cli.schema import AsJson, takes_options
from dynid.cli.screen import Screen
from dynid.errors import InputError, UnknownNameError
from dynid.option_types import options_of
from dynid.pipeline.option_groups import READING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dynid.apps.payload.load import Payload
    from dynid.estimation.body import BodyEstimate
    from dynid.finding import Grade, Verdict
    from dynid.io.vendors import VendorText
    from dynid.model.robot import Robot

    VendorOf: TypeAlias = Callable[[BodyEstimate, Any, Robot | None], VendorText | None]


WIDE = 0.2
"""Half of the interval of a mass, as a share of the mass, from which on a load is not called good."""


def load_grade(found: Payload, run: Verdict | None) -> Grade:
    """Whether a load can be used: no better than the run without it."""
    worst = "good" if run is None else run.grade
    if worst == "do not use" or not found.feasible:
        return "do not use"
    wide = 1.96 * found.sigma[0] > WIDE * abs(found.mass)
    return "usable" if worst == "usable" or found.warnings or wide else "good"


def show_load(found: Payload, where: str, run: Verdict | None = None) -> None:
    """A load, and what it explains of the torque; ``where`` names its log, ``run`` is the verdict of the run without it."""
    screen, grade = Screen(), load_grade(found, run)
    spread = 1.96 * found.sigma[0]
    screen.line(f"verdict: {grade}: load on '{found.link}'{where}: mass {found.mass:.4f} +- {spread:.4f} kg (95 %)", grade)
    if run is not None and run.grade != "good":
        screen.line(
            f"warning: the run without the load is '{run.grade}': {run.opening}; a load is no better than its run", "warning"
        )
    screen.line(
        f"torque error on the loaded logs: {percent(found.relative_error_without)} without the load, "
        f"{percent(found.relative_error_with)} with it"
    )
    for line in body_lines(found)[1:]:
        screen.line(line)
    if found.gain_sigma:
        screen.line(f"intervals include {100.0 * found.gain_sigma:g} % (1 sigma) for the drive gains (--gain-percent)")
    screen.show()
    for warning in found.warnings:
        show_warning(warning)


@takes_options(options_of(PayloadSettings, CARRIED, SENSOR, KNOWN, READING))
def payload(
    given: dict[str, Any],
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="Identification of the robot without the load.", show_default=False),
    ] = None,
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOG...]",
            help="Logs with the load: CSV, parquet, npz, MCAP; also a folder, a pattern in quotes, a URL.",
            show_default=False,
        ),
    ] = None,
    sensor: Annotated[
        list[str] | None,
        typer.Option(
            "--sensor",
            metavar="LOG",
            help="Log of a force/torque sensor that carries the body; repeat for several.",
            show_default=False,
            rich_help_panel=SENSOR,
        ),
    ] = None,
    robot: Annotated[
        Path | None,
        typer.Option(
            "--robot",
            metavar="ROBOT",
            help="Robot that moves the sensor, by the joints in its log.",
            show_default=False,
            rich_help_panel=SENSOR,
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a report of the load, HTML.", show_default=False)
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Print the load in a vendor's form: franka, ur, kuka, abb, fanuc, yaskawa, urdf or mjcf.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write that form into a file too.", show_default=False),
    ] = None,
    json: AsJson = False,
) -> None:
    """Mass, centre of mass and inertia of a load: from logs with it and a run without it, or from a force/torque sensor.

    Example: [bold]dynid payload run loaded.parquet --frame tool0[/bold]

    [bold]dynid payload --sensor log.csv --robot arm.urdf --frame ft_sensor[/bold]
    """
    settings = PayloadSettings(**given)
    _check_sources(run, logs, sensor, robot)
    vendor_of = _vendor_writer(form, output)
    if sensor:
        _on_sensor(sensor, robot, settings, vendor_of, page, json)
    elif run is not None:
        _on_run(run, logs or [], settings, vendor_of, page, json)


def _check_sources(run: Path | None, logs: list[str] | None, sensor: list[str] | None, robot: Path | None) -> None:
    """A load is found from a run and its logs, or from a sensor: from one of the two."""
    if sensor and run is not None:
        raise InputError(f"--sensor takes the place of a run and its logs, '{run}' was given as well: give one of the two")
    if not sensor and (run is None or not logs):
        raise InputError(
            "nothing to identify from: expected RUN LOG... (a run without the load, logs with it) or --sensor LOG"
        )
    if robot is not None and not sensor:
        raise InputError("--robot belongs to --sensor LOG; with a run its robot, filter and gravity are used")


def _vendor_writer(form: str | None, output: Path | None) -> VendorOf:
    """What gives a load in a vendor's form, and writes it where that was asked for."""
    from dynid.files import write_text
    from dynid.io.vendors import FORMS, vendor_load

    if form is not None and form not in FORMS:
        raise UnknownNameError("format", form, FORMS)
    if form is None and output is not None:
        raise InputError(f"-o {output} writes a vendor's form, expected --format NAME beside it")

    def written(body: BodyEstimate, frame: Any, robot: Robot | None) -> VendorText | None:
        if form is None:
            return None
        found = vendor_load(form, body.phi, frame, robot, inertia_known=body.inertia_known)
        if output is not None:
            write_text(output, found.text + "\n")
        return found

    return written


def _on_sensor(
    logs: list[str], robot: Path | None, settings: PayloadSettings, vendor_of: VendorOf, page: Path | None, json: bool
) -> None:
    from dynid.apps.payload.sources import online_sensor_payload, sensor_payload
    from dynid.pipeline.wrench import judge_body

    if settings.online:
        _show_online(online_sensor_payload(logs, robot, settings), json)
        return
    found, model = sensor_payload(logs, robot, settings)
    vendor = vendor_of(found.best, found.place, model)
    if page is not None:
        from dynid.pipeline.sections.body import report_sensor

        report_sensor(found, page)
    verdict = judge_body(found, found.relative_error, "the log's own")
    if json:
        show_json(found.as_dict() | {"vendor": None if vendor is None else vendor.as_dict(), "verdict": verdict.as_dict()})
    else:
        show_sensor(found, verdict)
        _show_vendor(vendor)


def _on_run(
    folder: Path, logs: list[str], settings: PayloadSettings, vendor_of: VendorOf, page: Path | None, json: bool
) -> None:
    from dynid.apps.payload.sources import loads_of, online_loads_of
    from dynid.pipeline.folder import load_robot_result

    settings.refuse_sensor()
    run = load_robot_result(folder)
    if settings.online:
        _show_online(online_loads_of(run, logs, settings), json)
        return
    found = loads_of(run, logs, settings)
    vendors = [vendor_of(one, one.frame, run.robot) for _, one in found]
    if page is not None:
        from dynid.apps.payload.section import report_payload

        report_payload(run, found[0][1], page)
    if json:
        records = [
            one.as_dict() | {"vendor": None if vendor is None else vendor.as_dict()}
            for (_, one), vendor in zip(found, vendors, strict=True)
        ]
        logged = [{"log": str(paths[0])} | record for (paths, _), record in zip(found, records, strict=True)]
        show_json(records[0] | ({"loads": logged} if settings.each else {}))
        return
    for (paths, one), vendor in zip(found, vendors, strict=True):
        show_load(one, f", from {paths[0].name}" if settings.each else "", run.verdict)
        _show_vendor(vendor)
    if page is not None:
        show(f"report written to {page}")


def _show_online(states: Iterator[Any], json: bool) -> None:
    """One line per block."""
    from json import dumps

    for state in states:
        if json:
            show(dumps({"t": state.time_s} | state.as_dict() | {"known": list(state.known), "residual": state.residual_rms}))
            continue
        known = ", ".join(state.known) or "nothing yet"
        m = float(state.values[0])
        centre = numbers_text(1e3 * state.values[1:4] / m, 1) if m > 0.0 else "-"
        show(f"t {state.time_s:8.2f} s  mass {m:8.4f} kg  centre [{centre}] mm  known: {known}")


def _show_vendor(vendor: VendorText | None) -> None:
    if vendor is None:
        return
    show()
    show(f"{vendor.form.title}, in '{vendor.frame}' ({vendor.form.units}):")
    show(vendor.text)
    for note in vendor.notes:
        say(f"note: {note}")
