"""``dynid excite``: an exciting trajectory within limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import ProgressBar, percent, show, show_json
from dynid.cli.options import (
    DEFAULT_EFFECTS,
    AsJson,
    Effects,
    Gravity,
    Lock,
    RobotFile,
    Seed,
    numbers,
    parsed_gravity,
    parsed_lock,
)
from dynid.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from dynid.excitation.collision import Clearance
    from dynid.excitation.judged import Excitation
    from dynid.excitation.limits import Limits
    from dynid.robot.model import Robot

SHAPES = ("fourier", "bspline", "points", "sinusoids")
SEARCHED = ("fourier", "bspline")
PURPOSES = ("bodies", "actuators")

SHAPES_OF_OPTION = {
    "--period": ("fourier", "bspline", "sinusoids"),
    "--harmonics": ("fourier",),
    "--intervals": ("bspline",),
    "--criterion": SEARCHED,
    "--scaled": SEARCHED,
    "--torque-noise": SEARCHED,
    "--starts": (*SEARCHED, "points"),
    "--no-rest": (*SEARCHED, "sinusoids"),
    "--rows": ("points",),
    "--measure": ("points",),
    "--lambda1": ("points",),
    "--lambda2": ("points",),
    "--joint": ("sinusoids",),
    "--amplitude": ("sinusoids",),
    "--period-s": ("sinusoids",),
    "--centre": ("sinusoids",),
}
"""Shapes of motion for which an option has a meaning; with another shape it is refused."""

INSTEAD_FOR_POINTS = {
    "--period": "the length of a motion through points follows from the limits of velocity and acceleration",
    "--criterion": "the criterion of points is lambda1 cond(W) + lambda2 S: see --measure, --lambda1 and --lambda2",
    "--scaled": "the scaling S of the matrix is part of the criterion of points: see --lambda2",
    "--torque-noise": "a row of the energy model is the work of all joints together and has no weight per joint",
    "--no-rest": "a motion through points starts and ends at rest",
}

DEFAULT_PERIOD_S = 20.0
DEFAULT_CLEARANCE_M = 0.01


def excite(
    robot: RobotFile,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="TRAJ",
            help="File to write; the suffix sets the format: .csv .parquet .npz (columns t, q1.., dq1.., ddq1..), .yaml (ROS 2 "
            "JointTrajectory), .script (UR), .json (coefficients, and the times of the points as knots). Repeat for several.",
            show_default="excitation.csv",
        ),
    ] = None,
    purpose: Annotated[
        str,
        typer.Option(
            "--for",
            help="What the motion is for: bodies (torque logs of 'identify'), or actuators: ramps, steps and chirps to be played as "
            "position commands for 'dynid actuators'.",
        ),
    ] = "bodies",
    top_hz: Annotated[
        float | None, typer.Option("--top-hz", help="Actuators: highest frequency of the chirps, Hz.", show_default="8")
    ] = None,
    shape: Annotated[
        str, typer.Option("--shape", help="fourier, bspline, points (Gautier-Khalil) or sinusoids (Gaz).")
    ] = "fourier",
    period: Annotated[
        float | None,
        typer.Option("--period", help="Length of one period, or of the motion, s; not for points.", show_default="20"),
    ] = None,
    harmonics: Annotated[
        int | None, typer.Option("--harmonics", help="Harmonics of the Fourier series.", show_default="5")
    ] = None,
    periods: Annotated[int, typer.Option("--periods", help="How often the motion is repeated in the file.")] = 1,
    intervals: Annotated[
        int | None, typer.Option("--intervals", help="Knot intervals of a B-spline.", show_default="12")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="Points: rows of the energy model, at least one per base parameter.",
            show_default="30, or 1.5 per base parameter",
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            help="Points: condition number by singular values (singular), QR with pivoting (pivoted) or Frobenius norms (frobenius).",
            show_default="singular",
        ),
    ] = None,
    lambda1: Annotated[
        float | None, typer.Option("--lambda1", help="Points: weight of the condition number.", show_default="1")
    ] = None,
    lambda2: Annotated[
        float | None,
        typer.Option(
            "--lambda2",
            "--scaling",
            help="Points: weight of the scaling S = max |W| / min |W| beside the condition number; 0 to leave it out.",
            show_default="0.02",
        ),
    ] = None,
    joint: Annotated[str | None, typer.Option("--joint", help="Sinusoids: move this joint alone, for its friction.")] = None,
    amplitude: Annotated[
        str | None,
        typer.Option(
            "--amplitude",
            metavar="A1,A2,..",
            help="Sinusoids: amplitude of each joint's velocity, rad/s or m/s: dq = A sin(2 pi t / P). Default: from the limits.",
        ),
    ] = None,
    period_s: Annotated[
        str | None,
        typer.Option("--period-s", metavar="P1,P2,..", help="Sinusoids: period of each joint, s, one or one per joint."),
    ] = None,
    centre: Annotated[
        str | None,
        typer.Option(
            "--centre",
            metavar="C1,C2,..",
            help="Sinusoids: position about which each joint moves, rad or m. Default: the middle of its range.",
        ),
    ] = None,
    rate_hz: Annotated[float, typer.Option("--rate", help="Samples per second: the controller's rate.")] = 1000.0,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Time to spend on the design; first-use compilation is not counted.")
    ] = 60.0,
    criterion: Annotated[
        str | None,
        typer.Option(
            "--criterion",
            help="Fourier and B-spline: condition, logdet, smallest, trace, frobenius, or a mix: condition+0.5*logdet.",
            show_default="condition",
        ),
    ] = None,
    scaled: Annotated[
        bool, typer.Option("--scaled", help="Fourier and B-spline: criterion of the regressor with columns of length one.")
    ] = False,
    torque_noise: Annotated[
        str | None,
        typer.Option(
            "--torque-noise",
            metavar="S1,S2,..",
            help="Fourier and B-spline: expected torque noise per joint; rows are divided by it.",
        ),
    ] = None,
    rest: Annotated[
        bool,
        typer.Option("--rest/--no-rest", help="Ramps from rest before the motion, and to rest in the same pose after it."),
    ] = True,
    fraction: Annotated[float, typer.Option("--fraction", help="Share of the robot's limits to use.")] = 1.0,
    position: Annotated[
        str | None,
        typer.Option(
            "--position",
            metavar="LOW:HIGH,..",
            help="Position limits, rad or m, one pair or one per joint. For this and the next four options: where the description "
            "has a limit too, the tighter one holds.",
        ),
    ] = None,
    velocity: Annotated[
        str | None,
        typer.Option("--velocity", metavar="V1,V2,..", help="Velocity limits, rad/s or m/s, one or one per joint."),
    ] = None,
    acceleration: Annotated[
        str | None,
        typer.Option(
            "--acceleration", metavar="A1,A2,..", help="Acceleration limits, rad/s^2 or m/s^2, one or one per joint."
        ),
    ] = None,
    jerk: Annotated[
        str | None,
        typer.Option("--jerk", metavar="J1,J2,..", help="Jerk limits, rad/s^3 or m/s^3, one or one per joint."),
    ] = None,
    torque: Annotated[
        str | None, typer.Option("--torque", metavar="T1,T2,..", help="Torque limits, N m or N, one or one per joint.")
    ] = None,
    torque_uncertainty: Annotated[
        float, typer.Option("--torque-uncertainty", help="Relative uncertainty of the nominal model's torque.")
    ] = 0.1,
    tool_speed: Annotated[float | None, typer.Option("--tool-speed", help="Speed limit of the tool, m/s.")] = None,
    tool: Annotated[str | None, typer.Option("--tool", help="Link whose origin is the tool; default: the last one.")] = None,
    clearance: Annotated[
        float | None,
        typer.Option(
            "--clearance",
            help="Smallest distance between bodies, and to the ground, m. Collision shapes of the URDF are kept apart, else capsules "
            "of joint frames and inertia.",
            show_default="0.01",
        ),
    ] = None,
    ground: Annotated[
        str | None,
        typer.Option(
            "--ground",
            metavar="HEIGHT|none",
            help="Height of the mounting plane in the base frame, m, which no body may touch; none: there is no plane.",
            show_default="0",
        ),
    ] = None,
    collision: Annotated[
        bool,
        typer.Option("--collision/--no-collision", help="Keep bodies apart from one another and from the mounting plane."),
    ] = True,
    move: Annotated[
        str | None,
        typer.Option(
            "--move",
            metavar="JOINT,..|all",
            help="Also move these joints; joints that follow others, fingers and wheels are held otherwise.",
            show_default=False,
        ),
    ] = None,
    starts: Annotated[
        int | None, typer.Option("--starts", help="Random starts of the search.", show_default="36; 2 for points")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="HTML page: positions, singular values, tool path.", show_default=False)
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option("--card", help="Experiment card (Markdown), with a dry-run file at 25 % speed.", show_default=False),
    ] = None,
    effects: Effects = DEFAULT_EFFECTS,
    gravity: Gravity = None,
    lock: Lock = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Design a motion from which the robot's parameters are identified best, within its limits, and write it for the controller.

    Example: [bold]dynid excite arm.urdf -o traj.csv --period 20 --harmonics 5 --rate 1000[/bold]
    """
    from dynid.excitation.export import check_file
    from dynid.excitation.idle import without_idle_joints
    from dynid.excitation.limits import limits_of
    from dynid.excitation.shape import check_n_samples
    from dynid.robot.read import read_robot

    if purpose not in PURPOSES:
        raise UnknownNameError("purpose of a motion", purpose, PURPOSES)
    if top_hz is not None and purpose != "actuators":
        raise InputError("--top-hz is given without --for actuators, expected both")
    if shape not in SHAPES:
        raise UnknownNameError("shape of motion", shape, SHAPES)
    _refuse_options_of_other_shapes(
        shape,
        {
            "--period": period,
            "--harmonics": harmonics,
            "--intervals": intervals,
            "--criterion": criterion,
            "--scaled": scaled or None,
            "--torque-noise": torque_noise,
            "--starts": starts,
            "--no-rest": None if rest else True,
            "--rows": rows,
            "--measure": measure,
            "--lambda1": lambda1,
            "--lambda2": lambda2,
            "--joint": joint,
            "--amplitude": amplitude,
            "--period-s": period_s,
            "--centre": centre,
        },
    )
    outputs = output or [Path("excitation.csv")]
    for path in outputs:
        check_file(path)
    length_s = DEFAULT_PERIOD_S if period is None else period
    check_n_samples(length_s * max(periods, 1), rate_hz)
    described = read_robot(robot, effects, parsed_gravity(gravity), parsed_lock(lock))
    model, held = without_idle_joints(described, () if move is None else [name.strip() for name in move.split(",")])
    apart, told = _clearance(model, clearance, ground, collision)
    limits = limits_of(
        model,
        fraction=fraction,
        position=None if position is None else _pairs(position, "--position"),
        velocity=_one_or_all(velocity, "--velocity"),
        acceleration=_one_or_all(acceleration, "--acceleration"),
        jerk=_one_or_all(jerk, "--jerk"),
        torque=_one_or_all(torque, "--torque"),
        torque_uncertainty=torque_uncertainty,
        tool_speed=tool_speed,
        tool=tool,
        clearance=apart,
    )
    limits = replace(limits, notes=(*([held] if held else []), *told, *limits.notes))
    with ProgressBar("designing", json) as bar:
        search = _given(seconds=seconds, seed=seed, starts=starts, progress=bar.tell)
        if purpose == "actuators":
            from dynid.excitation.actuators import actuator_excitation

            found = actuator_excitation(model, limits, **_given(top_hz=top_hz, seed=seed))
        elif shape == "points":
            weights = _given(measure=measure, lambda1=lambda1, lambda2=lambda2)
            found = _points(model, limits, rows, periods, rate_hz, weights | search)
        elif shape == "sinusoids":
            wave = _waves(amplitude, period_s, centre)
            found = _sinusoids(model, limits, length_s, joint, wave, rest=rest, periods=periods, seed=seed)
        else:
            chosen = _given(criterion=criterion, torque_noise=_one_or_all(torque_noise, "--torque-noise"))
            played = {"rest": rest, "periods": periods, "scaled": scaled}
            found = _searched(model, limits, _family(shape, length_s, harmonics, intervals), chosen | played | search)
    files = _written(found, outputs, rate_hz, picture, card)
    if json:
        show_json(found.as_json() | {"files": files, "smallest_clearance": _smallest(found)})
        return
    _show_excitation(model.name, found, files)


def _show_excitation(robot: str, found: Excitation, files: list[str]) -> None:
    show(f"{robot}: {found.in_words()}")
    show(f"{found.playable.duration_s:.4g} s of motion, designed in {found.seconds:.3g} s")
    for limit, margin in found.margins.items():
        show(
            f"margin to the limit of {limit.replace('_', ' ')}: {percent(margin.value)} ({margin.where} at {margin.time_s:.3f} s)"
        )
    nearest = _smallest(found)
    if nearest is not None:
        show(f"smallest clearance: {1e3 * nearest['distance_m']:.3g} mm ({nearest['pair']} at {nearest['time_s']:.3f} s)")
    for note in found.notes:
        show(f"note: {note}")
    for name in files:
        show(f"written: {name}")


def _smallest(found: Excitation) -> dict[str, Any] | None:
    """Smallest distance along what is played, of which bodies, and when; None where nothing is kept apart."""
    from dynid.excitation.limits import CLEARANCE_SCALE_M

    kept, margin = found.limits.clearance, found.margins.clearance
    if kept is None or margin is None:
        return None
    return {"distance_m": kept.least_m + CLEARANCE_SCALE_M * margin.value, "pair": margin.where, "time_s": margin.time_s}


def _refuse_options_of_other_shapes(shape: str, options: dict[str, Any]) -> None:
    """Refuse an option that was given and that this shape cannot use."""
    for option, value in options.items():
        shapes = SHAPES_OF_OPTION[option]
        if value is None or shape in shapes:
            continue
        reason = INSTEAD_FOR_POINTS.get(option) if shape == "points" else None
        raise InputError(
            f"{option} is given with --shape {shape}, expected --shape {' or '.join(shapes)}"
            + (f"; {reason}" if reason else "")
        )


def _given(**options: Any) -> dict[str, Any]:
    """Those options that have a value; for the others the design has its own default."""
    return {name: value for name, value in options.items() if value is not None}


def _points(
    model: Robot, limits: Limits, rows: int | None, periods: int, rate_hz: float, options: dict[str, Any]
) -> Excitation:
    from dynid.excitation.points import points_excitation

    return points_excitation(model, None, rows, limits=limits, periods=periods, tick_s=1.0 / rate_hz, **options)


def _family(shape: str, length_s: float, harmonics: int | None, intervals: int | None) -> Any:
    from dynid.excitation.bspline import BSplineShape
    from dynid.excitation.fourier import FourierShape

    if shape == "fourier":
        return FourierShape(length_s, 5 if harmonics is None else harmonics)
    return BSplineShape(length_s, 12 if intervals is None else intervals)


def _searched(model: Robot, limits: Limits, family: Any, options: dict[str, Any]) -> Excitation:
    from dynid.excitation.design import design_excitation

    return design_excitation(model, None, family, limits=limits, **options)


def _waves(amplitude: str | None, period_s: str | None, centre: str | None) -> tuple[Any, Any, Any] | None:
    """Amplitudes, periods and centres of given sinusoids; None where they are to follow from the limits."""
    if amplitude is None:
        for option, text in (("--period-s", period_s), ("--centre", centre)):
            if text is not None:
                raise InputError(f"{option} is given without --amplitude, expected both, or neither to use the limits")
        return None
    if period_s is None:
        raise InputError("--amplitude is given without --period-s, expected the period of each joint in s")
    return (
        numbers(amplitude, "--amplitude"),
        numbers(period_s, "--period-s"),
        None if centre is None else numbers(centre, "--centre"),
    )


def _sinusoids(
    model: Robot,
    limits: Limits,
    length_s: float,
    joint: str | None,
    waves: tuple[Any, Any, Any] | None,
    *,
    rest: bool,
    periods: int,
    seed: int,
) -> Excitation:
    from dynid.excitation.sinusoids import (
        all_joint_sinusoids,
        given_sinusoids,
        single_joint_sinusoid,
        sinusoid_excitation,
    )

    if waves is not None:
        if joint is not None:
            raise InputError("--joint and --amplitude are both given, expected one; an amplitude of 0 holds a joint")
        motion = given_sinusoids(model, limits, *waves, duration_s=length_s)
    elif joint is not None:
        motion = single_joint_sinusoid(model, joint, limits, length_s, seed=seed)
    else:
        motion = all_joint_sinusoids(model, limits, length_s, seed=seed)
    return sinusoid_excitation(model, motion, limits, rest=rest, periods=periods, seed=seed)


def _written(found: Excitation, outputs: list[Path], rate_hz: float, picture: Path | None, card: Path | None) -> list[str]:
    from dynid.excitation.card import DRY_RUN_SPEED, experiment_card
    from dynid.excitation.export import TABLES, write_motion
    from dynid.excitation.shape import SlowedTrajectory
    from dynid.files import write_text

    names = found.robot.joint_names
    files = [str(write_motion(found.playable, path, names, rate_hz)) for path in outputs]
    if picture is not None:
        from dynid.report.excitation_plots import picture as drawn

        write_text(picture, drawn(found))
        files.append(str(picture))
    if card is not None:
        table = next((path for path in outputs if path.suffix.lower() in TABLES), outputs[0])
        slow = table.with_name(f"{table.stem}_dry_run{table.suffix}")
        files.append(str(write_motion(SlowedTrajectory(found.playable, DRY_RUN_SPEED), slow, names, rate_hz)))
        write_text(card, experiment_card(found, rate_hz, files))
        files.append(str(card))
    return files


def _clearance(
    model: Robot, clearance: float | None, ground: str | None, collision: bool
) -> tuple[Clearance | None, tuple[str, ...]]:
    """What is to be kept apart, and notes on it; nothing where that was switched off."""
    if not collision:
        for option, value in (("--clearance", clearance), ("--ground", ground)):
            if value is not None:
                raise InputError(f"{option} is given with --no-collision, expected one of the two")
        return None, ("bodies are not kept apart, nor from the mounting plane: --no-collision was given",)
    from dynid.excitation.collision import clearance_of, usual_clearance

    height = 0.0 if ground is None else None if ground == "none" else _one_number(ground, "--ground")
    least = DEFAULT_CLEARANCE_M if clearance is None else clearance
    if clearance is not None and model.source.format == "urdf":
        return clearance_of(model, least_m=least, ground_m=height), ()
    return usual_clearance(model, least_m=least, ground_m=height, assumed=ground is None)


def _one_number(text: str, option: str) -> float:
    values = numbers(text, option)
    if len(values) != 1:
        raise InputError(f"{option} is '{text}', expected one number or none")
    return values[0]


def _pairs(text: str, option: str) -> list[list[float]]:
    """``low:high`` pairs of an option."""
    pairs = [numbers(pair.replace(":", ","), option) for pair in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"{option} is '{text}', expected low:high, or one such pair per joint separated by commas")
    return pairs


def _one_or_all(text: str | None, option: str) -> float | list[float] | None:
    if text is None:
        return None
    values = numbers(text, option)
    return values[0] if len(values) == 1 else values
