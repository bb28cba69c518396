"""``dynid excite``: an exciting trajectory within limits.

``dynid simulate``: a log of a motion with chosen noise and friction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dynid.cli.console import ProgressBar, Stages, say, show, show_json
from dynid.cli.schema import AsJson, Output, RobotFile, takes_options
from dynid.cli.screen import Screen
from dynid.errors import InputError
from dynid.excitation.options import ExciteSettings
from dynid.option_types import Numbers, options_of
from dynid.pipeline.simulate_options import SimulateSettings

if TYPE_CHECKING:
    from dynid.arrays import Array
    from dynid.excitation.excitation_result import Excitation
    from dynid.excitation.prediction import Predicted
    from dynid.excitation.standing import StandingMotion
    from dynid.excitation.trajectories import Trajectory
    from dynid.model.robot import Robot


MotionFiles: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="TRAJ",
        help="File to write; the suffix sets the format: .csv .parquet .npz (columns t, q1.., dq1.., ddq1..), .yaml or .mcap "
        "(ROS 2 JointTrajectory), .script (UR), .src (KUKA), .mod (ABB), .ls (FANUC), .egm.csv (ABB EGM), .franka.csv, .lerobot.csv, "
        ".dynamixel.csv, .json (coefficients, and the times of the points as knots). Repeat for several.",
        show_default="excitation.csv",
    ),
]
PictureFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--picture",
        help="HTML page: the robot in motion, limits over time, singular values, tool path.",
        show_default=False,
    ),
]
CardFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--card", help="Experiment card (Markdown), with a dry-run file at 25 % speed.", show_default=False),
]
AxisSigns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--axis-sign",
        metavar="S1,S2,..",
        help="Controller programs: 1 or -1 for each joint, -1 where the controller's axis turns the other way. Default: 1.",
        show_default=False,
    ),
]
AxisZeros: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--axis-zero",
        metavar="Q1,Q2,..",
        help="Controller programs: what the controller shows where each joint of the description is at zero, rad or m. Default: 0.",
        show_default=False,
    ),
]
AxisCoupling: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--axis-coupling",
        metavar="AXIS:AXIS=VALUE",
        help="Controller programs: an axis that counts another one too, by number: 3:2=1 for FANUC, whose J3 is counted from the "
        "horizontal. Several are separated by commas.",
        show_default=False,
    ),
]
JudgedMotion: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--evaluate",
        metavar="MOTION",
        help="Design nothing: judge this motion, designed or logged, against limits, and say what it shows of the parameters.",
        show_default=False,
    ),
]


@takes_options(options_of(ExciteSettings))
def excite(
    robot: RobotFile,
    given: dict[str, Any],
    output: MotionFiles = None,
    picture: PictureFile = None,
    card: CardFile = None,
    evaluate: JudgedMotion = None,
    axis_sign: AxisSigns = None,
    axis_zero: AxisZeros = None,
    axis_coupling: AxisCoupling = None,
    json: AsJson = False,
) -> None:
    """Design a motion from which the robot's parameters are identified best, within its limits, and write it for the controller.

    Example: [bold]dynid excite arm.urdf -o traj.csv --period 20 --harmonics 5 --rate 1000[/bold]
    """
    settings = ExciteSettings(**given)
    from dynid.excitation.command import design_excitation, evaluate_excitation
    from dynid.excitation.experiment_sheet import distance_rows, limit_rows
    from dynid.excitation.prediction import predict_sigmas, sensitivity_lines

    if evaluate is not None and output:
        raise InputError("-o is given with --evaluate, expected one of the two: a motion that exists is not written again")
    outputs = [] if evaluate is not None else output or [Path("excitation.csv")]
    if settings.feet or settings.flat_feet:
        return _excite_on_feet(robot, settings, outputs, as_json=json)
    turned = _axis_map(outputs, _check_outputs(outputs, robot, settings), axis_sign, axis_zero, axis_coupling)
    with ProgressBar("designing", json) as bar:
        found = (
            design_excitation(robot, settings, progress=bar.tell)
            if evaluate is None
            else evaluate_excitation(robot, evaluate, settings)
        )
    axes = _axes(found, turned, outputs, stated=bool(axis_sign or axis_zero or axis_coupling))
    files = _written(found, outputs, settings.rate, picture, card, turned, axes)
    noise = settings.torque_noise
    predicted = predict_sigmas(found, noise, settings.rate)
    relations = [] if evaluate is None else sensitivity_lines(found, noise)
    if json:
        more = {"predicted": [vars(one) for one in predicted], "files": files, "smallest_clearance": _smallest(found)}
        show_json(found.as_json() | more | ({"relations": relations} if relations else {}))
        return
    for line in relations:
        show(line)
    screen = Screen()
    screen.line(f"{found.robot.name}: {found.playable.duration_s:.4g} s of motion, {found.in_words()}", "title", most=3)
    for header, *rows in filter(None, (limit_rows(found), distance_rows(found))):
        screen.table(header, rows, text=(0, len(header) - 1), most=len(rows))
    for note in (*found.warnings, *([axes] if axes else [])):
        screen.line(f"warning: {note}", "warning", most=5)
    if evaluate is None:
        screen.line(_start(found, settings, outputs), most=6)
    for line in _predicted_lines(predicted, settings):
        screen.line(line)
        if "coulomb" in settings.effects:
            screen.remark(
                "predictions count torque noise alone; dry friction that is not as modelled widens them 1.1 to 1.4 times"
            )
    for note in found.notes:
        if note not in found.warnings:
            screen.remark(note)
    if files:
        screen.last(f"written: {', '.join(files)}", most=8)
    screen.show("--json")


def _excite_on_feet(robot: Path, settings: ExciteSettings, outputs: Sequence[Path], *, as_json: bool) -> None:
    """Safe motions of a robot that stands on its feet, and what each shows."""
    from dynid.excitation.motion_files import write_motion
    from dynid.excitation.standing import MOTIONS, design_on_feet, in_sequence
    from dynid.io.robots.read import read_robot
    from dynid.model.frames import frame_named
    from dynid.pipeline.floating_log import foot_frame
    from dynid.regression.base import reduce_to_base
    from dynid.regression.floating_rows import Foot

    if not outputs or any(path.suffix not in (".csv", ".parquet", ".npz") for path in outputs):
        raise InputError("motions on feet are written as tables, expected -o with .csv, .parquet or .npz and no --evaluate")
    model = read_robot(robot, settings.effects or "none", settings.gravity, dict(settings.lock), floating=True)
    kinds = ((False, settings.feet), (True, settings.flat_feet))
    feet = [Foot(frame_named(model, foot_frame(model, name)), flat) for flat, own in kinds for name in own]
    with Stages(as_json) as stages:
        stages.tell("motions on feet")
        found = design_on_feet(model, feet, settings.motions or MOTIONS, settings.period or 20.0, settings.seed)
    samples = in_sequence(found * settings.periods, settings.rate)
    files = [
        str(write_motion(samples, path, [joint.name for joint in model.driven_joints], settings.rate)) for path in outputs
    ]
    total = reduce_to_base(model).n_base
    if as_json:
        told = [{name: value for name, value in vars(one).items() if name != "samples"} for one in found]
        show_json({"motions": told, "n_base": total, "files": files})
        return
    _show_motions(f"{model.name} on {len(feet)} feet, {samples.time[-1]:.4g} s", found, total, files)


def _show_motions(title: str, found: Sequence[StandingMotion], total: int, files: Sequence[str]) -> None:
    """Motions on feet with what they keep and show."""
    screen = Screen()
    screen.line(title, "title")
    rows = [
        (
            one.name,
            f"{100.0 * one.size:.0f} %",
            f"{1e3 * one.inside:.3g}",
            f"{one.slope:.2f}",
            f"{one.known} of {total}",
            f"{one.information:.2f}",
        )
        for one in found
    ]
    screen.table(
        ("motion", "size", "inside support, mm", "friction used", "parameters", "information, log10"),
        rows,
        text=(0,),
        most=len(rows),
    )
    for name in files:
        screen.last(f"written: {name}")
    screen.show("--json")


def _check_outputs(outputs: Sequence[Path], robot: Path, settings: ExciteSettings) -> list[bool]:
    """Refuse files that could not be written, before a motion is designed for them; says which joints are slides where they count."""
    from dynid.excitation.command import moved_robot
    from dynid.excitation.motion_files import check_file, check_form

    for path in outputs:
        check_file(path)
    slides: list[bool] = []
    if any(path.suffix != ".csv" or len(path.suffixes) > 1 for path in outputs):  # not every form takes every robot
        slides = _slides(moved_robot(robot, settings)[0])
        for path in outputs:
            check_form(path, slides)
    return slides


def _axis_map(
    outputs: Sequence[Path], slides: list[bool], sign: str | None, zero: str | None, coupling: str | None
) -> tuple[Array, Array] | None:
    """The controller's axes as a matrix of the joints and their zeros; None where no file counts axes."""
    import numpy as np

    from dynid.excitation.motion_files import FORMS, form_suffix
    from dynid.model.coupling import coupling_from_terms

    given = {"--axis-sign": (sign, 1.0), "--axis-zero": (zero, 0.0)}
    counted = any(FORMS[form_suffix(path)].axes for path in outputs)
    for flag, text in (*((flag, text) for flag, (text, _) in given.items()), ("--axis-coupling", coupling)):
        if text is not None and not counted:
            raise InputError(f"{flag} is given, expected with -o of a controller's axes: .src, .mod, .ls, .egm.csv, ..")
    found = []
    for flag, (text, usual) in given.items():
        values = [usual] * len(slides) if text is None else list(Numbers().parse(text, flag))
        if len(values) != len(slides):
            raise InputError(f"{flag} has {len(values)} numbers, expected {len(slides)}: one for each joint that is moved")
        if usual and any(abs(value) != 1.0 for value in values):
            raise InputError(f"{flag} is '{text}', expected 1 or -1 for each joint")
        found.append(np.array(values))
    if not counted:
        return None
    numbers = [str(k + 1) for k in range(len(slides))]
    together = coupling_from_terms(coupling.split(",") if coupling else (), numbers, "--axis-coupling").B
    return together * found[0], together @ found[1]


def _start(found: Excitation, settings: ExciteSettings, outputs: Sequence[Path]) -> str:
    """Where the motion starts, which files make sure that the robot stands there, and how it comes there."""
    from dynid.excitation.controller_programs import NEAR_DEG, NEAR_MM
    from dynid.excitation.experiment_sheet import pose_in_words
    from dynid.excitation.motion_files import FORMS, form_suffix

    start = f"start pose: {pose_in_words(found.robot.joint_names, found.playable.derivative([0.0], 0)[0])}"
    away = f"{NEAR_DEG:g} deg" + f" or {NEAR_MM:g} mm" * any(_slides(found.robot))
    sorts: dict[bool, list[str]] = {True: [], False: []}
    for path in outputs:
        sorts[FORMS[form_suffix(path)].guards].append(path.name)
    told = [f"{', '.join(sorts[True])}: nothing moves where the robot is more than {away} from it"] if sorts[True] else []
    told += (
        [f"{', '.join(sorts[False])}: where the robot stands is not looked at, what plays it must"] if sorts[False] else []
    )
    way = "drive there by hand, or give where the robot stands as --home Q1,Q2,..: a checked way becomes part of every file"
    if settings.home is not None:
        way = "it is that of --home; the way from there to the motion and back was checked"
    return "; ".join([start, *told, way])


def _axes(found: Excitation, turned: tuple[Array, Array] | None, outputs: Sequence[Path], stated: bool) -> str:
    """What the controller must show at the start pose, where a file counts axes and not joints of the description."""
    from dynid.excitation.controller_programs import units
    from dynid.excitation.motion_files import FORMS, AxisMotion, form_suffix

    if turned is None:
        return ""
    counted = [path for path in outputs if FORMS[form_suffix(path)].axes]
    slides = _slides(found.robot)
    start = AxisMotion(found.playable, *turned).derivative([0.0], 0)[0] * units(slides)
    word = FORMS[form_suffix(counted[0])].axes
    shown = ", ".join(f"{word.format(k + 1)} {round(value, 2) + 0.0:.2f}" for k, value in enumerate(start))  # no minus zero
    whose = "as the flags of axes state them" if stated else "the description's, the controller's may differ"
    return (
        f"axes of {', '.join(path.name for path in counted)}: zeros and signs are {whose}; before anything is played, jog to the start "
        f"pose: the pendant must show {shown} ({'deg or mm' if any(slides) else 'deg'})"
        + ("" if stated else "; else give --axis-sign, --axis-zero, --axis-coupling")
        + "; FANUC arms count J3 from the horizontal: --axis-coupling 3:2=1"
        * (not stated and ".ls" in map(form_suffix, counted))
    )


def _predicted_lines(predicted: Sequence[Predicted], settings: ExciteSettings) -> Iterator[str]:
    """What a log of the motion will tell: how many parameters well, and which one worst."""
    noise = "torque noise of 1 %"
    if settings.torque_noise is not None:
        noise = f"torque noise of {', '.join(f'{value:g}' for value in settings.torque_noise)} N m or N"
    known = [one for one in predicted if abs(one.value) > 1e-6]  # smaller ones are rounding of a grouping
    if not known:
        return  # a description without inertia: nothing is known of its torque
    well = sum(one.relative < 0.1 for one in known)
    worst = max(known, key=lambda one: one.relative)
    yield (
        f"predicted at {settings.rate:g} Hz with {noise}: {well} of the {len(known)} base parameters that have a value in the description "
        f"(of {len(predicted)}) become known to 10 % or better; least well {worst.name}, to {100.0 * worst.relative:.3g} %"
    )


def _smallest(found: Excitation) -> dict[str, Any] | None:
    """Smallest distance along what is played, of which bodies, and when; None where nothing is kept apart."""
    nearest = next((use for use in found.limit_uses if use.name == "clearance"), None)
    return None if nearest is None else {"distance_m": nearest.largest, "pair": nearest.where, "time_s": nearest.time_s}


def _written(
    found: Excitation,
    outputs: list[Path],
    rate_hz: float,
    picture: Path | None,
    card: Path | None,
    turned: tuple[Array, Array] | None,
    axes: str,
) -> list[str]:
    from dynid.excitation.experiment_sheet import DRY_RUN_SPEED, experiment_sheet
    from dynid.excitation.motion_files import FORMS, AxisMotion, form_suffix, played_deviation, write_motion
    from dynid.files import write_text

    slides = _slides(found.robot)

    def written(motion: Trajectory, path: Path) -> list[str]:
        form = FORMS[form_suffix(path)]
        motion = AxisMotion(motion, *turned) if turned is not None and form.axes else motion
        file = write_motion(motion, path, found.robot.joint_names, rate_hz, slides)
        worst, points_hz = played_deviation(file, motion, slides), form.rate_hz(rate_hz)
        if worst is not None:
            rate = f", not {rate_hz:g}" if points_hz != rate_hz else ""
            say(
                f"note: {file.name} has {points_hz:g} points a second{rate}; joined {form.curve} they are at most {worst:.2g} rad or m "
                "from the design"
            )
        return [str(file), *([] if form.beside is None else [str(file.with_suffix(form.beside))])]

    files = [name for path in outputs for name in written(found.playable, path)]
    if picture is not None:
        from dynid.pipeline.sections.motion import picture as drawn

        write_text(picture, drawn(found))
        files.append(str(picture))
    if card is not None:
        slow = found.playable.slowed(DRY_RUN_SPEED)
        for path in outputs:
            stem, suffix = path.name[: -len(form_suffix(path))], path.name[-len(form_suffix(path)) :]
            files += written(slow, path.with_name(f"{stem}_dry_run{suffix}"))
        write_text(card, experiment_sheet(found, rate_hz, files, axes))
        files.append(str(card))
    return files


def _slides(robot: Robot) -> list[bool]:
    return [joint.kind == "prismatic" for joint in robot.moving_joints]


@takes_options(options_of(SimulateSettings))
def simulate(
    robot: RobotFile,
    trajectory: Annotated[
        Path,
        typer.Argument(metavar="TRAJ", help="Motion to follow: columns t, q1.., dq1.., ddq1...", show_default=False),
    ],
    given: dict[str, Any],
    output: Output = Path("simulated.parquet"),
    json: AsJson = False,
) -> None:
    """Simulate a log of a motion: forward dynamics with friction under a tracking controller, quantised encoders, torque noise.

    With feet it is a robot on a floating base, which MuJoCo simulates with contacts.

    Example: [bold]dynid simulate arm.urdf traj.csv -o log.parquet --viscous 1.0 --coulomb 0.5[/bold]
    """
    from dynid.dynamics.simulate import effect_values, told_effects, with_effect
    from dynid.io.robots.read import read_robot
    from dynid.pipeline.simulate import robot_of_motion, simulate_feet_log, simulate_log

    settings = SimulateSettings(**given)
    on_feet, held = bool(settings.feet or settings.flat_feet), ""
    described, own = (robot, settings.effects or "none", settings.gravity, dict(settings.lock)), settings.joints
    model = read_robot(*described, joints=own, floating=True) if on_feet else read_robot(*described)
    if not on_feet:
        model, held = robot_of_motion(model, trajectory, own)
    if held:
        say(f"note: {held}; the columns of the log have the names of the joints")
    for name, values in settings.given_effects().items():
        model = with_effect(model, name, values)
    with Stages(json) as stages:
        if on_feet:
            stages.tell("simulating")
            path, recording = simulate_feet_log(model, trajectory, output, settings)
        else:
            path, recording = simulate_log(
                model,
                trajectory,
                output,
                rate_hz=settings.rate_hz,
                torque_noise=settings.torque_noise,
                encoder_bits=settings.encoder_bits,
                seed=settings.seed,
                tell=stages.tell,
                joints=own,
                by_name=bool(held or settings.lock or own),
            )
    said = told_effects(model)
    if said.startswith("none"):
        said += (
            " (the description has no values; --viscous and --coulomb give some)" if model.effects else " (--effects none)"
        )
    say(f"friction simulated: {said}")
    for note in recording.source.notes:
        say(f"note: {note}")
    if json:
        friction = {name: values.tolist() for name, values in effect_values(model).items()}
        n_samples, duration_s = recording.n_samples, recording.duration_s
        show_json({"files": [str(path)], "n_samples": n_samples, "duration_s": duration_s, "friction": friction})
    else:
        show(f"simulated {recording.duration_s:.3g} s of {model.name} at {recording.rate_hz:.4g} Hz, written to {path}")
