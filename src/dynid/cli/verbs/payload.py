"""``dynid payload``: a tool's or load's ten parameters, from joint torque or from a force/torque sensor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.bodies import numbers_text, show_load, show_sensor
from dynid.cli.console import say, show, show_json
from dynid.cli.options import AsJson
from dynid.cli.schema import takes_options
from dynid.errors import InputError, UnknownNameError
from dynid.run.payload_options import GROUPS, PayloadSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynid.estimation.online_body import OnlineBodyState
    from dynid.export.vendors import VendorText
    from dynid.robot.model import Robot

_SENSOR = "Body on a force/torque sensor"


@takes_options(*GROUPS)
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
            rich_help_panel=_SENSOR,
        ),
    ] = None,
    robot: Annotated[
        Path | None,
        typer.Option(
            "--robot",
            metavar="ROBOT",
            help="Robot that moves the sensor, by the joints in its log.",
            show_default=False,
            rich_help_panel=_SENSOR,
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
    told = _Told(form, output, page, json)
    if sensor:
        _on_sensor(sensor, robot, settings, told)
    elif run is not None:
        _on_run(run, logs or [], settings, told)


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


@dataclass(frozen=True)
class _Told:
    """Where the load is told: in a vendor's form, in a file, on a page, as JSON."""

    form: str | None
    output: Path | None
    page: Path | None
    json: bool

    def __post_init__(self) -> None:
        from dynid.export.vendors import FORMS

        if self.form is not None and self.form not in FORMS:
            raise UnknownNameError("format", self.form, FORMS)
        if self.form is None and self.output is not None:
            raise InputError(f"-o {self.output} writes a vendor's form, expected --format NAME beside it")

    def vendor(self, phi: Any, frame: Any, robot: Robot | None) -> VendorText | None:
        """The load in the form asked for, written where that was asked for."""
        from dynid.files import write_text
        from dynid.run.vendor import vendor_load

        if self.form is None:
            return None
        found = vendor_load(self.form, phi, frame, robot)
        if self.output is not None:
            write_text(self.output, found.text + "\n")
        return found


def _on_sensor(logs: list[str], robot: Path | None, settings: PayloadSettings, told: _Told) -> None:
    from dynid.run.sensor_payload import online_sensor_payload, sensor_payload

    if settings.online:
        _show_online(online_sensor_payload(logs, robot, settings), told.json)
        return
    found, model = sensor_payload(logs, robot, settings)
    vendor = told.vendor(found.best.phi, found.place, model)
    if told.page is not None:
        from dynid.report.load_report import report_sensor

        report_sensor(found, told.page)
    if told.json:
        show_json(found.as_dict() | {"vendor": None if vendor is None else vendor.as_dict()})
    else:
        show_sensor(found)
        _show_vendor(vendor)


def _on_run(folder: Path, logs: list[str], settings: PayloadSettings, told: _Told) -> None:
    from dynid.run.loads import loads_of, online_loads_of
    from dynid.run.store import load_run

    settings.for_run()
    run = load_run(folder)
    if settings.online:
        _show_online(online_loads_of(run, logs, settings), told.json)
        return
    found = loads_of(run, logs, settings)
    vendors = [told.vendor(one.phi, one.frame, run.robot) for _, one in found]
    if told.page is not None:
        from dynid.report.load_report import report_payload

        report_payload(run, found[0][1], told.page)
    if told.json:
        records = [
            one.as_dict() | {"vendor": None if vendor is None else vendor.as_dict()}
            for (_, one), vendor in zip(found, vendors, strict=True)
        ]
        logged = [{"log": str(paths[0])} | record for (paths, _), record in zip(found, records, strict=True)]
        show_json(records[0] | ({"loads": logged} if settings.each else {}))
        return
    for (paths, one), vendor in zip(found, vendors, strict=True):
        show_load(one, f", from {paths[0].name}" if settings.each else "")
        _show_vendor(vendor)
    if told.page is not None:
        show(f"report written to {told.page}")


def _show_online(states: Iterator[OnlineBodyState], json: bool) -> None:
    """One line per block."""
    from json import dumps

    for state in states:
        if json:
            show(dumps(state.as_dict()))
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
