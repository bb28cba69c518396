"""``dynid identify``: the main job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import Stages, percent, say, show, show_json, show_table
from dynid.cli.options import (
    DEFAULT_EFFECTS,
    AsJson,
    DriveGains,
    Effects,
    Gravity,
    Lock,
    Mapping,
    Output,
    Preset,
    Seed,
    effect_names,
    given,
    number_or_auto,
    numbers,
    parsed_gravity,
    parsed_lock,
)
from dynid.errors import InputError

if TYPE_CHECKING:
    from dynid.run import Run


def identify(
    context: typer.Context,
    robot: Annotated[
        Path | None,
        typer.Argument(metavar="ROBOT", help="Robot description: .urdf, .xml (MJCF) or .toml (DH).", show_default=False),
    ] = None,
    logs: Annotated[
        list[Path] | None, typer.Argument(metavar="LOG...", help="Logs: CSV, parquet, npz, MCAP.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Run file with all of this (see dynid init); flags win.", show_default=False),
    ] = None,
    output: Output = Path("run"),
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="Estimator: sdp (every link physically consistent), ols, wls, robust, tls, ridge, essential, recursive, iv, "
            "manifold, logcholesky, retrieve (under a bounds file).",
        ),
    ] = "sdp",
    bounds: Annotated[
        Path | None,
        typer.Option(
            "--bounds",
            metavar="FILE",
            help="Bounds for --method retrieve, CSV (name, lower, upper) or TOML: m1, c1x, I1xx about the centre of mass, "
            "total_mass.",
            show_default=False,
        ),
    ] = None,
    optimiser: Annotated[
        str,
        typer.Option(
            "--optimiser",
            help="Search of --method retrieve: refine (from the convex relaxation) or annealing (Algorithm 1 of the paper).",
        ),
    ] = "refine",
    starts: Annotated[int, typer.Option("--starts", help="Starts of --method retrieve, annealing over all cores.")] = 2,
    seed: Seed = 0,
    prior: Annotated[
        str,
        typer.Option(
            "--prior",
            help="What holds sdp where the data are silent: the description (entropic, scaled, euclidean), none, or auto: "
            "entropic where the description is consistent, else euclidean.",
        ),
    ] = "auto",
    validate: Annotated[
        list[Path] | None,
        typer.Option("--validate", metavar="LOG", help="Unseen log to validate on; repeat for several.", show_default=False),
    ] = None,
    split: Annotated[
        float | None,
        typer.Option("--split", help="Identify on this share of each log, from its start; validate on the rest."),
    ] = None,
    effects: Effects = DEFAULT_EFFECTS,
    friction: Annotated[
        str | None,
        typer.Option(
            "--friction",
            metavar="MODEL",
            help="Friction model in place of viscous, coulomb, offset: linear, sigmoid, stribeck, load, smooth, "
            "polynomial, load_polynomial, or auto, which predicts held-out blocks of time best.",
        ),
    ] = None,
    keep_bodies: Annotated[
        Path | None,
        typer.Option(
            "--keep-bodies",
            metavar="RUN",
            help="Take the rigid bodies from this run, filter as it did, and identify friction alone.",
        ),
    ] = None,
    gravity: Gravity = None,
    lock: Lock = None,
    velocity: Annotated[str, typer.Option("--velocity", help="logged, position (differentiated) or auto.")] = "auto",
    cutoff_hz: Annotated[
        str, typer.Option("--cutoff-hz", help="Low-pass of all signals; auto: what predicts held-out raw torque best.")
    ] = "auto",
    torque_cutoff_hz: Annotated[
        float | None, typer.Option("--torque-cutoff-hz", help="Its own cut-off for torque; default: the same.")
    ] = None,
    filter_order: Annotated[int, typer.Option("--filter-order", help="Order of the zero-phase Butterworth.")] = 4,
    dead_zone: Annotated[
        str, typer.Option("--dead-zone", help="Speed below which the sign of Coulomb friction is off; auto: 3 x noise.")
    ] = "auto",
    from_s: Annotated[float | None, typer.Option("--from", help="Use each log from this time, s.")] = None,
    to_s: Annotated[float | None, typer.Option("--to", help="Use each log up to this time, s.")] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="METHODS",
            help="Other methods, separated by commas, to be tried on the same samples and shown in the report.",
            show_default=False,
        ),
    ] = None,
    export: Annotated[
        str, typer.Option("--export", help="Formats of the exported model: urdf, mjcf, sdf, c, json.")
    ] = "urdf,mjcf",
    drive_gains: DriveGains = None,
    preset: Preset = None,
    mapping: Mapping = None,
    json: AsJson = False,
) -> None:
    """Identify the dynamic model of a robot from logs of its motion, or from a table of poses (M and g).

    0.3 s or three filter time constants are dropped at both ends of each log; several logs are stacked.

    Example: [bold]dynid identify arm.urdf run1.parquet --split 0.65 -o run[/bold]
    """
    from dynid.run import RunFile, compare_on, publish_run, read_run_file
    from dynid.run import identify as identify_robot
    from dynid.run.export import known_formats
    from dynid.run.refit import refit_friction

    formats = known_formats(export.split(","))
    file = RunFile() if config is None else read_run_file(config)
    flags = {
        "effects": effect_names(effects),
        "friction": friction,
        "gravity": parsed_gravity(gravity),
        "lock": parsed_lock(lock),
        "method": method,
        "prior": prior,
        "bounds": None if bounds is None else str(bounds),
        "optimiser": optimiser,
        "starts": starts,
        "seed": seed,
        "split": split,
        "velocity": velocity,
        "cutoff_hz": number_or_auto(cutoff_hz, "--cutoff-hz"),
        "torque_cutoff_hz": torque_cutoff_hz,
        "filter_order": filter_order,
        "dead_zone": number_or_auto(dead_zone, "--dead-zone"),
        "from_s": from_s,
        "to_s": to_s,
        "drive_gains": None if drive_gains is None else tuple(numbers(drive_gains, "--drive-gains")),
        "preset": preset,
        "mapping": None if mapping is None else str(mapping),
    }
    given_flags = {name: value for name, value in flags.items() if given(context, name)}
    settings = file.settings(given_flags)
    description, recordings = robot or file.robot, logs or list(file.logs)
    unseen = validate or list(file.validate)
    target = output if given(context, "output") or file.output is None else file.output
    if description is None or not recordings:
        raise InputError("expected a robot and at least one log, as arguments or in the file of --config")
    if not json:
        say(f"identifying {description.name} from {', '.join(log.name for log in recordings)}")
    with Stages(quiet=json) as stages:
        if keep_bodies is None:
            run = identify_robot(description, recordings, settings, validate_on=unseen, tell=stages.tell)
        else:
            changes = {**file.options, **given_flags}
            changes.pop("friction", None)
            earlier = _run_of(keep_bodies, description)
            run = refit_friction(earlier, recordings, settings.friction, validate_on=unseen, changes=changes)
        if compare is not None:
            found = compare_on(run, settings, [name.strip() for name in compare.split(",")], tell=stages.tell)
            run = replace(run, comparisons=tuple(one.as_dict() for one in found))
        published = publish_run(run, target, formats=formats, tell=stages.tell)
    if json:
        show_json(run.summary() | {"files": [str(path) for path in published.files], "refusals": list(published.refusals)})
        _end_without_answer(run)
        return
    show_run(run)
    for refusal in published.refusals:
        show(f"note: {refusal}")
    for item in published.exported:
        for note in item.notes:
            show(f"note on {item.format}: {note}")
    for path in published.files:
        show(f"written: {path}")
    for check, log in zip(run.checks, recordings, strict=False):
        for finding in check.findings:
            if finding.severity == "error":
                say(f"dynid: do not trust this yet: {log.name}: {finding.sentence}. {finding.fix}")
    _end_without_answer(run)


def _end_without_answer(run: Run) -> None:
    """Exit code 1 where a constrained method found no parameters that keep its constraints."""
    if not run.estimate.outcome.usable:
        say(f"dynid: {run.estimate.method} found no answer: {run.estimate.outcome.value}")
        raise typer.Exit(1)


def _run_of(folder: Path, robot: Path) -> Run:
    """An earlier run of the same robot description."""
    from dynid.robot.read import read_robot
    from dynid.run import load_run

    run = load_run(folder)
    given = read_robot(robot, "none")
    if given.source.sha256 != run.robot.source.sha256:
        raise InputError(f"run '{folder}' was made from another description of the robot than '{robot}'")
    return run


def show_run(run: object) -> None:
    """What a run found, for the eye."""
    from dynid.run import Run

    assert isinstance(run, Run)
    found = run.estimate
    for note in run.notes:
        show(f"note: {note}")
    rows = [
        (text, f"{value:.5g}", "-" if origin == "prior" else f"{spread:.2g} %", origin)
        for text, value, spread, origin in zip(
            found.base.expressions(digits=4), found.base_values, found.sigma_percent, found.origin, strict=True
        )
    ]
    show_table(("base parameter", "value", "sigma", "from"), rows, text=(0, 3))
    if run.filter is not None:
        show(f"filter: {run.filter.describe()}")
    show(
        f"{run.robot.name}: {found.rank} of {found.base.n_base} base parameters seen in {found.n_samples} "
        f"{'poses' if run.filter is None else 'samples'}, "
        f"condition number {found.condition_number:.4g} (scaled {found.condition_number_scaled:.4g})"
    )
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
    show("physically consistent: " + ("yes, every link" if found.feasible else "no, see the notes"))


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
