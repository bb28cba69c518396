"""``dynid actuators``: position-controlled joints without torque."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.apps.actuators.options import ASKED, CONTROL, ActuatorSettings
from dynid.cli.console import Stages, show, show_json, show_note, show_table
from dynid.cli.schema import AsJson, LogFiles, RobotFile, UnseenLogs, Verbose, takes_options
from dynid.cli.screen import Screen
from dynid.errors import InputError
from dynid.option_types import options_of
from dynid.pipeline.option_groups import READING

if TYPE_CHECKING:
    from dynid.apps.actuators.identify import ActuatorRun


@takes_options(options_of(ActuatorSettings, CONTROL, ASKED, READING))
def actuators(
    robot: RobotFile,
    logs: LogFiles,
    given: dict[str, Any],
    validate: UnseenLogs = None,
    export: Annotated[
        str | None,
        typer.Option(
            "--export", metavar="FORMS", help="Files to write: some of mjcf,isaac,newton,urdf,json.", show_default=False
        ),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for exports and report.")] = Path("actuators"),
    report: Annotated[bool, typer.Option("--report", help="Write report.html into the folder.")] = False,
    verbose: Verbose = False,
    json: AsJson = False,
) -> None:
    """Armature, friction, delay and gains of position-controlled joints from commands and positions, without torque.

    Bodies are held at the description unless --free or --hold says otherwise. What the data cannot tell apart is printed first,
    with the experiment that would separate it.

    Example: [bold]dynid actuators go2.xml log.parquet --kp 20 --kd 1.5 --delay auto --split 0.65 --export mjcf,isaac[/bold]
    """
    from dynid.apps.actuators.identify import identify_actuators

    settings = ActuatorSettings(**given)
    forms = _forms(export)
    if forms and settings.servo:
        raise InputError(
            "--export has no file that holds drives of --motor voltage; leave it out: --json prints their numbers"
        )
    with Stages(json) as stages:
        run = identify_actuators(robot, logs, settings, validate_on=validate or (), tell=stages.tell)
        written = _written(run, forms, output, report)
    if json:
        show_json(run.as_json() | written)
        return
    notes = [*_motor_notes(run), *run.notes, *written.get("export_notes", ())]
    if "mujoco_rollout" in written:
        proof = written["mujoco_rollout"]
        notes.insert(
            0,
            f"MuJoCo with the written file: {proof['rms']:.5f} rad RMS from the log, {proof['difference']:.5f} rad from the rollout above",
        )
    if verbose:
        _show_table(run, notes)
    _show_screen(run, notes, written["files"])


def _forms(text: str | None) -> tuple[str, ...]:
    from dynid.apps.actuators.options import EXPORTS
    from dynid.errors import UnknownNameError

    forms = tuple(part.strip() for part in text.split(",")) if text else ()
    for form in forms:
        if form not in EXPORTS:
            raise UnknownNameError("form of export", form, EXPORTS)
    return forms


def _written(run: ActuatorRun, forms: tuple[str, ...], folder: Path, report: bool) -> dict[str, Any]:
    """Files, and what is known of them."""
    from dynid.apps.actuators.export import export_actuators
    from dynid.errors import reason_of

    found: dict[str, Any] = {"files": []}
    if forms:
        try:
            found = export_actuators(run, forms, folder)
        except Exception as error:  # the answer is there, whatever a file cannot hold
            found["export_notes"] = [f"{', '.join(forms)} was not written: {reason_of(error)}"]
    if report:
        from dynid.apps.actuators.section import report_actuators

        command = shlex.join(["dynid", *sys.argv[1:]])
        try:
            found["files"].append(str(report_actuators(run, folder / "report.html", command=command, files=found["files"])))
        except Exception as error:  # drawing may stumble over anything in the numbers
            found.setdefault("export_notes", []).append(f"report.html was not written: {reason_of(error)}")
    return found


MILLI = 0.1
"""Values of a column that are all below this are told in thousandths."""
UNITS = {"armature": "kg m2", "viscous": "N m s/rad", "coulomb": "N m", "offset": "N m", "kp": "N m/rad", "kd": "N m s/rad"}


def _number(found: tuple[float, float] | None, scale: float = 1.0) -> str:
    """A value and its deviation, both to the first digit of the deviation; a dash where there is none."""
    if found is None:
        return "-"
    value, sigma = (scale * one for one in found)
    if sigma == 0.0 or not math.isfinite(sigma):
        return f"{value:.3g}"
    places = max(0, -math.floor(math.log10(sigma)))
    if places > 3:  # better known than three places show
        return f"{round(value, places) + 0.0:.3g} ({sigma:.1g})"
    return f"{round(value, places) + 0.0:.{places}f} ({sigma:.{places}f})"  # no minus zero


def _rows(run: ActuatorRun) -> tuple[list[list[str]], list[str]]:
    """The table of joints, and the columns that are told in thousandths."""
    n, small, columns = run.robot.n_joints, list[str](), list[list[str]]()
    for word, symbol in run.words.items():
        values = [run.value(j, symbol) for j in range(n)]
        largest = max((abs(part) for pair in values if pair is not None for part in pair), default=1.0)
        small += [word] * (0.0 < largest < MILLI)
        columns.append([_number(pair, 1e3 if word in small else 1.0) for pair in values])
    return [[name, *(column[j] for column in columns)] for j, name in enumerate(run.robot.joint_names)], small


def _units(run: ActuatorRun, small: Sequence[str]) -> str:
    """Units of the table; of joints that slide metres stand for radians."""
    units = UNITS | ({"kp": "N m/V"} if run.settings.servo else {})
    told = ", ".join(f"{word} {'1e-3 ' * (word in small)}{units.get(word, '')}".strip() for word in list(run.words)[:6])
    return told + ("; of sliding joints kg, N s/m, N" if any(one.kind == "prismatic" for one in run.robot.joints) else "")


def _open(run: ActuatorRun, files: Sequence[str]) -> list[tuple[str, str, str]]:
    """What the logs do not determine, by joint, in two findings; and that files hold it all the same."""
    words = {run.problem.name_for(j, s): (j, word) for j in range(run.robot.n_joints) for word, s in run.words.items()}

    def named(names: Sequence[str]) -> str:
        joints: dict[str, list[str]] = {}
        for name in names:
            j, word = words.get(name, (None, name))
            joints.setdefault("others" if j is None else run.robot.joint_names[j], []).append(word)
        return ", ".join(f"{joint} ({' '.join(told)})" for joint, told in joints.items())

    groups, found = run.separability.groups, []
    together = [group for group in groups if not group.alone]
    if together:
        sums = f"; known is only {together[0].determined}, and so on" if together[0].determined else ""
        told = f"cannot be told apart by these logs: {named([name for one in together for name in one.names])}{sums}"
        found.append(("warning", told, together[0].experiment))
    if alone := [group.names[0] for group in groups if group.alone]:
        more = "slow and fast ramps in both directions and chirps of these joints: 'dynid excite --for actuators'"
        found.append(("warning", f"not determined by these logs: {named(alone)}", more))
    models = [name for name in files if not name.endswith(".html")]
    if models and found:
        what = (
            f"{', '.join(models)}: {'it has' if len(models) == 1 else 'they have'} values that these logs do not determine"
        )
        found.insert(
            0, ("warning", f"{what}, as fitted", "trust it in motions like these alone; --verbose names the values")
        )
    return found


def _show_screen(run: ActuatorRun, notes: Sequence[str], files: Sequence[str]) -> None:
    from dynid.apps.actuators.model import SYMBOL_OF

    delay, screen = run.as_json()["delay_s"], Screen()
    screen.line(f"verdict: {run.verdict.grade}: {run.verdict.opening}", run.verdict.grade)
    rows, small = _rows(run)
    screen.line(
        f"delay {1e3 * delay['value']:.2f} ms ({1e3 * delay['sigma']:.2g} ms); values below with (sigma): {_units(run, small)}"
    )
    screen.table(["joint", *SYMBOL_OF], [row[: 1 + len(SYMBOL_OF)] for row in rows])
    reasons = [(one.level, one.what, one.remedy) for one in run.verdict.reasons if one.level != "good"]
    screen.findings(sorted([*reasons, *_open(run, files)], key=lambda one: one[0] != "error"))
    for note in notes:
        screen.remark(note)
    for name in files:
        screen.last(f"written: {name}")
    screen.show()


def _show_table(run: ActuatorRun, notes: Sequence[str]) -> None:
    for _, what, experiment in _open(run, ()):
        show(what)
        show(f"  to separate: {experiment}")
    rows, small = _rows(run)
    show_table(["joint", *run.words], rows, f"value (standard deviation): {_units(run, small)}")
    found = run.as_json()
    parts = [part for part in ("identification", "validation") if found["rollout"][part] is not None]
    table = [[name, *(f"{errors[part]:.5f}" for part in parts)] for name, errors in found["models"].items()]
    show_table(["rollout of", *(f"{part}, rad RMS" for part in parts)], table, "position error of the commands alone")
    show(f"verdict: {run.verdict.sentence}")
    for note in notes:
        show_note(note)
    show(f"{run.seconds:.1f} s")


def _motor_notes(run: ActuatorRun) -> tuple[str, ...]:
    """Motor constant and resistance of joints that are driven by voltage, and friction under load where it was asked for."""
    from dynid.apps.actuators.model import FURTHER_SYMBOLS

    notes = []
    for j, name in enumerate(run.robot.joint_names):
        found = run.motor(j)
        if found is not None:
            (kt, kt_sigma), (ohm, ohm_sigma) = found["kt"], found["resistance"]
            notes.append(
                f"motor of joint {name}, at the joint: kt {kt:.3g} ({kt_sigma:.1g}) N m/A, R {ohm:.3g} ({ohm_sigma:.1g}) ohm"
            )
        words = ((word, run.value(j, symbol)) for word, symbol in run.words.items() if symbol in FURTHER_SYMBOLS)
        told = ", ".join(f"{word} {pair[0]:.3g} ({pair[1]:.1g})" for word, pair in words if pair is not None)
        if told:
            notes.append(f"motor and friction of joint {name}: {told}")
    return tuple(notes)
