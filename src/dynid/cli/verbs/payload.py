"""``dynid payload``: a tool's or load's ten parameters, from joint torque or from a force/torque sensor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import percent, say, show, show_json, show_table
from dynid.cli.options import AsJson, Gravity, numbers, parsed_gravity
from dynid.cli.schema import takes_options
from dynid.errors import InputError
from dynid.run.options import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynid.estimation.body import BodyEstimate
    from dynid.estimation.online_body import OnlineBodyState
    from dynid.export.vendors import VendorText
    from dynid.robot.model import Robot
    from dynid.run.sensor import SensorBody

_SENSOR = "Body on a force/torque sensor"
_KNOWN = "What is known of the load"


@takes_options(Reading)
def payload(
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
    frame: Annotated[
        str | None,
        typer.Option(
            "--frame",
            "--link",
            metavar="LINK",
            help="Frame of the load or sensor: any link of the description, such as tool0; default: the last link.",
            show_default=False,
        ),
    ] = None,
    frame_pose: Annotated[
        str | None,
        typer.Option(
            "--frame-pose",
            metavar="X,Y,Z,R,P,Y",
            help="Pose of the sensor in that frame: m, and roll, pitch, yaw in rad.",
            show_default=False,
            rich_help_panel=_SENSOR,
        ),
    ] = None,
    imu_pose: Annotated[
        str | None,
        typer.Option(
            "--imu-pose",
            metavar="X,Y,Z,R,P,Y",
            help="Pose in the sensor of the IMU that measured the motion; default: the sensor's own.",
            show_default=False,
            rich_help_panel=_SENSOR,
        ),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(
            "--filter",
            metavar="FILTER",
            help="auto, none, savgol:WINDOW,ORDER, butterworth:HZ, rows:HZ or polynomial:SECONDS. \\[default: auto]",
            show_default=False,
            rich_help_panel=_SENSOR,
        ),
    ] = None,
    drift: Annotated[
        bool, typer.Option("--drift", help="Estimate a linear drift of the six offsets.", rich_help_panel=_SENSOR)
    ] = False,
    tilt: Annotated[
        bool,
        typer.Option(
            "--tilt", help="Estimate the direction of gravity: the robot is not mounted level.", rich_help_panel=_SENSOR
        ),
    ] = False,
    static: Annotated[
        bool | None,
        typer.Option(
            "--static/--dynamic",
            help="Use the weight alone, or the whole motion. Default: the weight alone where the sensor hardly turns.",
            show_default=False,
            rich_help_panel=_SENSOR,
        ),
    ] = None,
    mass: Annotated[
        float | None, typer.Option("--mass", metavar="KG", help="Known mass.", show_default=False, rich_help_panel=_KNOWN)
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape",
            metavar="SHAPE",
            help="Shape that the load fills, in its frame: box:X0,Y0,Z0,X1,Y1,Z1, cylinder:X0,Y0,Z0,X1,Y1,Z1,RADIUS or mesh:FILE.",
            show_default=False,
            rich_help_panel=_KNOWN,
        ),
    ] = None,
    tool: Annotated[
        Path | None,
        typer.Option(
            "--tool",
            metavar="FILE",
            help="What holds the load and is not in the run: JSON of an earlier payload in the same frame; it is taken off.",
            show_default=False,
            rich_help_panel=_KNOWN,
        ),
    ] = None,
    gain_percent: Annotated[
        float | None,
        typer.Option(
            "--gain-percent",
            metavar="PERCENT",
            help="Standard deviation of the drive gains, part of the interval; default: 10 where torque is made of current.",
            show_default=False,
            rich_help_panel=_KNOWN,
        ),
    ] = None,
    online: Annotated[
        bool,
        typer.Option(
            "--online", help="Go through the log as if it came in now: one line a second, and which values are known yet."
        ),
    ] = False,
    each: Annotated[bool, typer.Option("--each", help="Every log has a load of its own.")] = False,
    page: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a report of the load, HTML.", show_default=False)
    ] = None,
    gravity: Gravity = None,
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
    given: dict[str, Any] | None = None,
) -> None:
    """Mass, centre of mass and inertia of a load: from logs with it and a run without it, or from a force/torque sensor.

    Example: [bold]dynid payload run loaded.parquet --frame tool0[/bold]

    [bold]dynid payload --sensor log.csv --robot arm.urdf --frame ft_sensor[/bold]
    """
    if sensor:
        if tool is not None or each or gain_percent is not None:
            raise InputError("--tool, --each and --gain-percent belong to a run and its logs, not to --sensor")
        if run is not None:
            raise InputError(
                f"--sensor takes the place of a run and its logs, '{run}' was given as well: give one of the two"
            )
        typed = {
            "gravity": parsed_gravity(gravity),
            "frame_pose": frame_pose,
            "imu_pose": imu_pose,
            "filter": filter,
            "drift": drift,
            "tilt": tilt,
            "static": static,
        }
        if online:
            _show_online(_sensor_online(sensor, robot, frame, typed, given or {}), json)
            return
        found, model = _sensor_body(sensor, robot, frame, mass, shape, typed, given or {})
        vendor = _vendor(form, found.best.phi, found.place, model, output)
        if page is not None:
            from dynid.report.load_report import report_sensor

            report_sensor(found, page)
        if json:
            show_json(found.as_dict() | {"vendor": None if vendor is None else vendor.as_dict()})
        else:
            show_sensor(found)
            _show_vendor(vendor)
        return
    if run is None or not logs:
        raise InputError(
            "nothing to identify from: expected RUN LOG... (a run without the load, logs with it) or --sensor LOG"
        )
    alone = {"--robot": robot, "--frame-pose": frame_pose, "--imu-pose": imu_pose, "--filter": filter, "--gravity": gravity}
    for flag, value in (alone | {"--drift": drift or None, "--tilt": tilt or None, "--static": static}).items():
        if value is not None:
            raise InputError(f"{flag} belongs to --sensor LOG; with a run its robot, filter and gravity are used")
    if online:
        from dynid.run.payload import online_payload
        from dynid.run.store import load_run

        _show_online(online_payload(load_run(run), logs, frame, tool=_tool(tool)), json)
        return
    known = {"mass": mass, "shape": shape, "tool": tool, "gain_percent": gain_percent, "each": each}
    _joint_payload(run, logs, frame, known, form, output, page, json)


def _sensor_body(
    logs: list[str],
    robot: Path | None,
    frame: str | None,
    mass: float | None,
    shape: str | None,
    typed: dict[str, Any],
    reading: dict[str, Any],
) -> tuple[SensorBody, Robot | None]:
    from dynid.run.known_load import known_load
    from dynid.run.sensor import SensorOptions, identify_sensor_body

    recordings, model, place, imu = _sensor_logs(logs, robot, frame, typed, reading)
    options = SensorOptions(
        drift=typed["drift"], tilt=typed["tilt"], static=typed["static"], constraints=known_load(mass, shape)
    )
    found = identify_sensor_body(recordings, model, place, filtered=typed["filter"] or "auto", imu=imu, options=options)
    return found, model


def _sensor_logs(
    logs: list[str], robot: Path | None, frame: str | None, typed: dict[str, Any], reading: dict[str, Any]
) -> tuple[Any, Robot | None, Any, Any]:
    """Recordings, robot, frame of the sensor and pose of the IMU."""
    from dynid.robot.frames import frame_named, pose_from
    from dynid.robot.read import read_robot
    from dynid.run.sensor import read_sensor_logs

    model = None if robot is None else read_robot(robot, "none", typed["gravity"])
    recordings = read_sensor_logs(logs, model, **reading)
    if model is not None and recordings[0].position is not None:
        model = model if recordings[0].joint_names == model.joint_names else model.only(recordings[0].joint_names)
    place: Any = frame
    if typed["frame_pose"] is not None:
        if model is None:
            raise InputError("--frame-pose is a pose in a frame of the robot, expected --robot ROBOT beside it")
        place = frame_named(model, frame).moved(pose_from(numbers(typed["frame_pose"], "--frame-pose")), "sensor")
    imu = None if typed["imu_pose"] is None else pose_from(numbers(typed["imu_pose"], "--imu-pose"))
    return recordings, model, place, imu


def _sensor_online(
    logs: list[str], robot: Path | None, frame: str | None, typed: dict[str, Any], reading: dict[str, Any]
) -> Iterator[OnlineBodyState]:
    from dynid.robot.frames import frame_named
    from dynid.run.sensor import online_sensor_body
    from dynid.run.sensor_signals import sensor_filter

    recordings, model, place, imu = _sensor_logs(logs, robot, frame, typed, reading)
    how = sensor_filter(typed["filter"] or "savgol:21,2")
    for recording in recordings:
        samples, _ = how.samples(recording, model, None if model is None else frame_named(model, place), imu)
        yield from online_sensor_body(samples)


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


def _vendor(form: str | None, phi: Any, frame: Any, robot: Robot | None, output: Path | None) -> VendorText | None:
    """The load in the form asked for, written where that was asked for."""
    from dynid.files import write_text
    from dynid.run.vendor import vendor_load

    if form is None:
        if output is not None:
            raise InputError(f"-o {output} writes a vendor's form, expected --format NAME beside it")
        return None
    found = vendor_load(form, phi, frame, robot)
    if output is not None:
        write_text(output, found.text + "\n")
    return found


def _show_vendor(vendor: VendorText | None) -> None:
    if vendor is None:
        return
    show()
    show(f"{vendor.form.title}, in '{vendor.frame}' ({vendor.form.units}):")
    show(vendor.text)
    for note in vendor.notes:
        say(f"note: {note}")


def show_sensor(found: SensorBody) -> None:
    """The body on a sensor by every method, and the offsets."""
    best = found.best
    show(f"body on the sensor, in frame '{found.frame}'; {found.filter.describe()}")
    show_body(best)
    force, moment = found.offsets[:3], found.offsets[3:]
    show(f"offsets of the sensor: {numbers_text(force, 3)} N, {numbers_text(moment, 4)} N m")
    if found.gravity is not None:
        show(f"gravity in the base frame: {numbers_text(found.gravity, 4)} m/s^2")
    show()
    rows = [
        (
            body.method,
            f"{body.mass:.4f} +- {1.96 * body.sigma[0]:.4f}",
            numbers_text(1e3 * body.com, 1),
            numbers_text(1e3 * body.inertia.diagonal(), 2),
            "yes" if body.feasible else "no",
        )
        for body in found.bodies
    ]
    show_table(("method", "mass, kg (95 %)", "centre, mm", "inertia about it, g m^2: xx, yy, zz", "consistent"), rows)
    for note in found.notes:
        say(f"note: {note}")
    for finding in found.findings:
        say(f"{finding.severity}: {finding.sentence}; {finding.fix}")


def numbers_text(values: Any, digits: int) -> str:
    """Three numbers in a row."""
    return ", ".join(f"{value:.{digits}f}" for value in values)


def _spread_text(values: Any) -> str:
    """Half widths of intervals, with as many digits as they mean."""
    return ", ".join(f"{value:.2g}" for value in values)


def show_body(body: BodyEstimate) -> None:
    """Mass, centre and inertia of a body with their 95 % intervals."""
    show(f"mass {body.mass:.4f} +- {1.96 * body.sigma[0]:.4f} kg (95 %)")
    show(f"centre of mass [{numbers_text(body.com, 5)}] +- [{_spread_text(1.96 * body.com_sigma)}] m")
    for row, spread in zip(body.inertia, body.inertia_sigma, strict=True):
        show(
            "inertia about it " + "  ".join(f"{value: .5f}" for value in row) + f"  +- {_spread_text(1.96 * spread)} kg m^2"
        )
    show(f"physically consistent: {'yes' if body.feasible else 'no'}")
    if body.unknown:
        show(f"not determined by these data: {', '.join(body.unknown)}")


def _joint_payload(
    run: Path,
    logs: list[str],
    frame: str | None,
    known: dict[str, Any],
    form: str | None,
    output: Path | None,
    page: Path | None,
    json: bool,
) -> None:
    from dynid.run.known_load import known_load
    from dynid.run.log_paths import log_paths
    from dynid.run.payload import identify_payload
    from dynid.run.store import load_run

    model = load_run(run)
    options: dict[str, Any] = {
        "constraints": known_load(known["mass"], known["shape"]),
        "tool": _tool(known["tool"]),
        "gain_sigma": None if known["gain_percent"] is None else known["gain_percent"] / 100.0,
    }
    paths = log_paths(logs)
    groups = [[log] for log in paths] if known["each"] else [paths]
    found = [identify_payload(model, group, frame, **options) for group in groups]
    vendors = [_vendor(form, one.phi, one.frame, model.robot, output) for one in found]
    if page is not None:
        from dynid.report.load_report import report_payload

        report_payload(model, found[0], page)
    records = [
        one.as_dict() | {"vendor": None if vendor is None else vendor.as_dict()}
        for one, vendor in zip(found, vendors, strict=True)
    ]
    if json:
        logged = [{"log": str(group[0])} | record for group, record in zip(groups, records, strict=True)]
        show_json(records[0] | ({"loads": logged} if known["each"] else {}))
        return
    for group, one, vendor in zip(groups, found, vendors, strict=True):
        show(f"load on '{one.link}', in its frame" + (f", from {group[0].name}" if known["each"] else ""))
        show_body(one.body)
        if one.gain_sigma:
            show(f"the intervals include {100.0 * one.gain_sigma:g} % for the drive gains (--gain-percent)")
        show(
            f"torque error on the loaded logs: {percent(one.relative_error_without)} without the load, "
            f"{percent(one.relative_error_with)} with it"
        )
        for warning in one.warnings:
            say(f"warning: {warning}")
        _show_vendor(vendor)
    if page is not None:
        show(f"report written to {page}")


def _tool(path: Path | None) -> list[float] | None:
    """Ten parameters of a tool from the JSON that an earlier payload printed."""
    from dynid.files import read_json

    if path is None:
        return None
    phi = read_json(path, "file of --tool").get("phi")
    if not isinstance(phi, list) or len(phi) != 10 or not all(isinstance(value, int | float) for value in phi):
        raise InputError(f"'{path}' has no ten numbers under 'phi', expected what 'dynid payload ... --json' prints")
    return [float(value) for value in phi]
