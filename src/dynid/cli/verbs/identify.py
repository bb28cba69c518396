"""``dynid identify``: the main job."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dynid.cli.bodies import show_sensor
from dynid.cli.console import (
    Stages,
    check_max_error,
    end_above,
    say,
    show,
    show_failure,
    show_json,
    show_table,
)
from dynid.cli.program import asked_run
from dynid.cli.run_screen import show_run_screen
from dynid.cli.schema import (
    AsJson,
    ConfigFile,
    ConstraintsFile,
    OptionalLogFiles,
    OptionalRobotFile,
    RunFolder,
    UnseenLogs,
    Verbose,
    takes_options,
)
from dynid.option_types import options_of
from dynid.pipeline.option_groups import BASE, ESTIMATION, MODEL, READING, ROWS, SENSOR, WORK
from dynid.pipeline.options import Settings

if TYPE_CHECKING:
    from dynid.pipeline.export import Published
    from dynid.pipeline.result import IdentificationResult


OtherMethods: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--compare",
        metavar="METHODS",
        help="Other methods, separated by commas, to be tried on the same rows and shown in the report.",
        show_default=False,
    ),
]
ExportFormats: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--export",
        help="Formats of the model: urdf, mjcf, sdf, json, c, cpp, python, matlab, latex; default: urdf,mjcf, and none of a "
        "robot that never moved.",
        show_default=False,
    ),
]
MaxError: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-error",
        metavar="FRACTION",
        help="Exit with 1 if the relative torque error exceeds this fraction. It is that of filtered torque, on unseen data where "
        "there are any.",
        show_default=False,
    ),
]
Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 unless the verdict is good.", show_default=False)
]
ApplyAdvice: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--apply-advice",
        help="Add the option that advice names and identify again. At most three times; what made the error worse is taken back.",
        show_default=False,
    ),
]
RecordFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE.mcap",
        help="Write measured and predicted torque, residual and parts of the judged logs, for Foxglove and PlotJuggler; also .parquet, "
        ".csv, .npz.",
        show_default=False,
    ),
]


@takes_options(options_of(Settings, MODEL, ROWS, ESTIMATION, READING, BASE, SENSOR, WORK))
def identify(
    robot: OptionalRobotFile = None,
    logs: OptionalLogFiles = None,
    config: ConfigFile = None,
    output: RunFolder = None,
    validate: UnseenLogs = None,
    compare: OtherMethods = None,
    export: ExportFormats = None,
    constraints: ConstraintsFile = None,
    max_error: MaxError = None,
    strict: Strict = False,
    apply_advice: ApplyAdvice = False,
    record: RecordFile = None,
    table: Annotated[bool, typer.Option("--table", help="Print every base parameter.")] = False,
    verbose: Verbose = False,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Identify the dynamic model of a robot from logs of its motion.

    A table of poses (M and g) and base values that are known already (--coefficients) serve as well; from logs of a force/torque sensor
    the body on it is identified. 0.3 s or three filter time constants are dropped at both ends of each log; several logs are stacked.

    Example: [bold]dynid identify arm.urdf run1.parquet --split 0.65 -o run[/bold]
    """
    from dynid.io.logs.paths import names_of
    from dynid.pipeline.identify import identify as identify_robot
    from dynid.pipeline.model_files import known_formats
    from dynid.pipeline.predict import check_suffix, run_predictions, write_predictions

    check_max_error(max_error)
    formats = None if export is None else known_formats(export.split(","))
    asked, settings = asked_run(robot, logs, validate, config=config, constraints=constraints, given=given)
    target = output or asked.output or Path("run")
    methods = None if compare is None else [name.strip() for name in compare.split(",")]
    if record is not None:
        check_suffix(record)
    if not json:
        sources = [Path(settings.coefficients)] if settings.coefficients else asked.logs
        say(f"identifying {'the body on a sensor' if asked.robot is None else asked.robot.name} from {names_of(sources)}")
    run_with = partial(identify_robot, asked.robot, asked.logs, validate_on=asked.validate)
    run, published = _published(run_with, settings, target, formats, methods, json, apply_advice)
    recorded = [] if record is None else [str(path) for path in write_predictions(run_predictions(run), record)]
    if json:
        files = [*(str(path) for path in published.files), *recorded]
        show_json(run.summary() | {"files": files, "refusals": list(published.refusals), "at_most": max_error})
    else:
        if table and run.body is None:
            _show_values(run)
        if run.body is not None:
            show_sensor(run.body)
        for name in recorded:
            show(f"recorded: {name}")
        show_run_screen(run, published, verbose)
    if not run.estimate.outcome.usable:  # a constrained method found no parameters that keep its constraints
        show_failure(f"{run.estimate.method} found no answer: {run.estimate.outcome.value}")
        raise typer.Exit(1)
    end_above(run.judged_error, max_error)
    if strict and run.verdict is not None and run.verdict.grade != "good":
        show_failure(f"the verdict is '{run.verdict.grade}', expected 'good' by --strict")
        raise typer.Exit(1)


def _published(
    run_with: Callable[..., IdentificationResult],
    settings: Settings,
    target: Path,
    formats: Sequence[str] | None,
    methods: Sequence[str] | None,
    quiet: bool,
    apply_advice: bool,
) -> tuple[IdentificationResult, Published]:
    """The robot identified, with the other methods that were asked for, in its folder; ``run_with`` identifies with some settings."""
    from dynid.pipeline.export import reserved, write_result
    from dynid.pipeline.follow_advice import follow_advice

    gc.freeze()  # what modules hold lives to the end: nobody need look there for garbage
    with reserved(target), Stages(quiet=quiet) as stages:
        told = partial(run_with, tell=stages.tell)
        run = follow_advice(settings, told) if apply_advice else told(settings)
        if methods is not None and run.body is None:  # of a body every method is shown anyway
            from dynid.pipeline.compare import compare_on

            found = compare_on(run, settings, methods, tell=stages.tell)
            run = replace(run, comparisons=tuple(one.as_dict() for one in found))
        return run, write_result(run, target, formats=formats, tell=stages.tell)


def _show_values(run: IdentificationResult) -> None:
    """Base parameters, and the numbers inside friction."""
    found = run.estimate
    rows = [
        (text, f"{value:.5g}", spread, origin)
        for text, value, spread, origin in zip(
            found.base.expressions(digits=4), found.base_values, found.sigma_texts, found.origin, strict=True
        )
    ]
    show_table(("base parameter", "value", "sigma", "from"), rows, text=(0, 3))
    inner = [(one.joint, one.name, f"{one.value:.4g}", text, one.unit) for one, text in run.inner_numbers]
    if inner:
        show_table(("joint", "number inside friction", "value", "95 % interval", "unit"), inner, text=(0, 1, 3, 4))
