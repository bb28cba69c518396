"""``dynid identify``: the main job."""

from __future__ import annotations

import gc
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import Stages, percent, say, show, show_failure, show_json, show_note, show_table
from dynid.cli.options import (
    AsJson,
    ConstraintsFile,
    OptionalLogFiles,
    OptionalRobotFile,
    RunFolder,
    UnseenLogs,
    constraints_table,
)
from dynid.cli.schema import takes_options
from dynid.errors import InputError
from dynid.run.options import Fit, Model, Reading, Rows, Sensor, Work

if TYPE_CHECKING:
    from dynid.publish.publish import Published
    from dynid.run.record import Run


@takes_options(Model, Rows, Fit, Reading, Sensor, Work)
def identify(
    robot: OptionalRobotFile = None,
    logs: OptionalLogFiles = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="Run file with these options (see dynid init); flags take precedence.", show_default=False
        ),
    ] = None,
    output: RunFolder = None,
    validate: UnseenLogs = None,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="METHODS",
            help="Other methods, separated by commas, to be tried on the same rows and shown in the report.",
            show_default=False,
        ),
    ] = None,
    export: Annotated[
        str, typer.Option("--export", help="Formats of the exported model: urdf, mjcf, sdf, c, json.")
    ] = "urdf,mjcf",
    constraints: ConstraintsFile = None,
    at_most: Annotated[
        float | None,
        typer.Option(
            "--at-most",
            metavar="FRACTION",
            help="Exit with 1 if the relative error of filtered torque exceeds this fraction, on unseen data where there are any.",
            show_default=False,
        ),
    ] = None,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Identify the dynamic model of a robot from logs of its motion, from a table of poses (M and g), or retrieve feasible
    parameters from base values that are known already; from logs of a force/torque sensor, the body on it.

    0.3 s or three filter time constants are dropped at both ends of each log; several logs are stacked.

    Example: [bold]dynid identify arm.urdf run1.parquet --split 0.65 -o run[/bold]
    """
    from dynid.cli.sensor import identify_sensor_logs, robot_and_logs
    from dynid.publish.publish import publish_run, reserved
    from dynid.run.export import known_formats
    from dynid.run.identify import identify as identify_robot
    from dynid.run.log_paths import log_paths, names_of
    from dynid.run.logs import SensorLogError
    from dynid.run.runfile import RunFile, read_run_file

    gc.freeze()  # what modules hold lives to the end: nobody need look there for garbage
    if at_most is not None and not 0.0 <= at_most < math.inf:
        raise InputError(f"--at-most is {at_most:g}, expected a fraction such as 0.05")
    formats = known_formats(export.split(","))
    file = RunFile() if config is None else read_run_file(config)
    known = constraints_table(constraints)
    settings = file.settings({**(given or {}), **({"constraints": known} if known else {})})
    description, recordings = robot_and_logs(robot, logs, file)
    target, unseen = output or file.output or Path("run"), log_paths(validate or file.validate)
    if description is None and recordings:
        identify_sensor_logs(None, recordings, settings, unseen, target, formats, at_most, json)
        return
    if description is None or not (recordings or settings.coefficients):
        raise InputError("expected a robot and at least one log, as arguments or in the file of --config")
    if not json:
        sources = [Path(settings.coefficients)] if settings.coefficients else recordings
        say(f"identifying {description.name} from {names_of(sources)}")
    try:
        with reserved(target), Stages(quiet=json) as stages:
            run = identify_robot(description, recordings, settings, validate_on=unseen, tell=stages.tell)
            if compare is not None:
                from dynid.run.compare import compare_on

                found = compare_on(run, settings, [name.strip() for name in compare.split(",")], tell=stages.tell)
                run = replace(run, comparisons=tuple(one.as_dict() for one in found))
            published = publish_run(run, target, formats=formats, tell=stages.tell)
    except SensorLogError:
        identify_sensor_logs(description, recordings, settings, unseen, target, formats, at_most, json)
        return
    if json:
        files = [str(path) for path in published.files]
        show_json(run.summary() | {"files": files, "refusals": list(published.refusals), "at_most": at_most})
    else:
        show_run(run)
        _show_published(published)
        if run.verdict is not None:
            show(f"verdict: {run.verdict.sentence}")
    _end_without_answer(run)
    error = run.judged_error
    if at_most is not None and not error <= at_most:
        show_failure(f"the error is {percent(error)}, more than the {percent(at_most)} allowed")
        raise typer.Exit(1)


def _show_published(published: Published) -> None:
    for refusal in published.refusals:
        show(f"note: {refusal}")
    for item in published.exported:
        for note in item.notes:
            show_note(f"{item.format}: {note}")
    for path in published.files:
        show(f"written: {path}")


def _end_without_answer(run: Run) -> None:
    """Exit code 1 where a constrained method found no parameters that keep its constraints."""
    if not run.estimate.outcome.usable:
        show_failure(f"{run.estimate.method} found no answer: {run.estimate.outcome.value}")
        raise typer.Exit(1)


def show_run(run: Run) -> None:
    """What a run found."""
    from dynid.estimation.advice import advice_lines

    found = run.estimate
    for note in run.notes:
        show_note(note)
    rows = [
        (text, f"{value:.5g}", spread, origin)
        for text, value, spread, origin in zip(
            found.base.expressions(digits=4), found.base_values, found.sigma_texts, found.origin, strict=True
        )
    ]
    show_table(("base parameter", "value", "sigma", "from"), rows, text=(0, 3))
    inner = [(one.joint, one.name, f"{one.value:.4g}", one.interval_text, one.unit) for one in run.inner_numbers]
    if inner:
        show_table(("joint", "number inside friction", "value", "95 % interval", "unit"), inner, text=(0, 1, 3, 4))
    if run.filter is not None:
        show(f"filter: {run.filter.describe()}")
    if run.from_coefficients:
        _show_coefficients(run)
        return
    show(
        f"{run.robot.name}: {found.rank} of {found.base.n_base} base parameters determined by {found.n_samples} "
        f"{'poses' if run.filter is None else 'samples'}, "
        f"condition number {found.condition_number:.4g} (scaled {found.condition_number_scaled:.4g})"
    )
    if run.row_error is not None and run.rows.kind not in ("torque", "static"):
        left = [
            f"{percent(error.relative_error)} of {words}"
            for error, words in ((run.row_error, "the rows identified on"), (run.row_validation, "unseen rows"))
            if error is not None
        ]
        show(f"{run.rows.kind} rows: {', '.join(left)} left unexplained")
    own, unseen = run.identification, run.validation
    identified = found.relative_error if own is None else own.relative_error
    identified_raw = None if own is None else own.relative_error_raw
    if run.filter is None:
        show(f"inertia matrices and gravity of {found.n_samples} poses: explained to {percent(identified)}")
    else:
        show(f"torque error on the identification set: {percent(identified)} filtered, {percent(identified_raw)} raw")
    if unseen is not None:
        filtered, raw = percent(unseen.relative_error), percent(unseen.relative_error_raw)
        show(f"torque error on unseen data: {filtered} filtered, {raw} raw")
    if "lower_bound" in found.details:
        show_retrieval(dict(found.details))
    for line in advice_lines(run.advice):
        show(f"advice: {line}")
    show_consistency(run)


def show_consistency(run: Run) -> None:
    """What is proven of the links and of the base values."""
    verdict, links = run.feasibility, "yes, every link" if run.consistency.feasible else "no, see the notes"
    show(f"physically consistent: {links}")
    if verdict is None:
        return
    words = {
        "bodies": "yes, the links of the model prove it",
        "certificate": "yes, proven by consistent links that have them",
        "direction": "no, proven, see the notes",
        "": "not decided, see the notes",
    }
    matrix = f"; {verdict.inertia_matrix}" if verdict.inertia_matrix else ""
    show(f"base values that a robot can have ({verdict.condition} condition): {words[verdict.proof]}{matrix}")


def _show_coefficients(run: Run) -> None:
    """What a retrieval from given coefficients found."""
    found, unseen = run.estimate, run.validation
    show(f"{run.robot.name}: {found.n_rows} coefficients fix {found.rank} of {found.base.n_base} base parameters")
    if unseen is not None:
        filtered, raw = percent(unseen.relative_error), percent(unseen.relative_error_raw)
        show(f"torque error on unseen data: {filtered} filtered, {raw} raw")
    show_retrieval(dict(found.details))
    show_consistency(run)


def show_retrieval(details: dict[str, Any]) -> None:
    """How far a retrieval is from the best possible, what it violates, and what the joints carry."""
    violated = ", ".join(details["violated"]) or "none"
    show(
        f"cost {details['cost']:.5g}, no feasible set costs less than {details['lower_bound']:.5g}, gap {details['gap']:.2g}; "
        f"constraints violated: {violated}"
    )
    wrenches = details.get("largest_joint_wrench", ())
    if wrenches:
        forces = ", ".join(f"{entry['force']:.3g}" for entry in wrenches)
        moments = ", ".join(f"{entry['moment']:.3g}" for entry in wrenches)
        show(f"largest joint forces {forces} N, moments {moments} N m")
