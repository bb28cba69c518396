"""``dynid excite``: an exciting trajectory within limits."""

from __future__ import annotations

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
    from dynid.excitation.design import Excitation
    from dynid.excitation.limits import Limits
    from dynid.robot.model import Robot

SHAPES = ("fourier", "bspline", "points", "sinusoids")


def excite(
    robot: RobotFile,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="TRAJ",
            help="Where to write; the suffix says how: .csv .parquet .npz (columns t, q1.., dq1.., ddq1..), .yaml (ROS 2 "
            "JointTrajectory), .script (UR), .json (coefficients). Repeat for several.",
            show_default="excitation.csv",
        ),
    ] = None,
    shape: Annotated[
        str, typer.Option("--shape", help="fourier, bspline, points (Gautier-Khalil) or sinusoids.")
    ] = "fourier",
    period: Annotated[float, typer.Option("--period", help="Length of one period, or of the motion, s.")] = 20.0,
    harmonics: Annotated[int, typer.Option("--harmonics", help="Harmonics of the Fourier series.")] = 5,
    periods: Annotated[int, typer.Option("--periods", help="How often to play the motion.")] = 1,
    intervals: Annotated[int, typer.Option("--intervals", help="Knot intervals of a B-spline.")] = 12,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="Rows of the energy model, for points: at least one per base parameter.",
            show_default="30, or 1.5 per base parameter",
        ),
    ] = None,
    scaling: Annotated[
        float, typer.Option("--scaling", help="Weight of the scaling S beside the condition, for points.")
    ] = 0.0,
    joint: Annotated[
        str | None, typer.Option("--joint", help="With sinusoids: move this joint alone, to see its friction.")
    ] = None,
    rate_hz: Annotated[float, typer.Option("--rate", help="Samples per second: the controller's rate.")] = 1000.0,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Time to spend on the design; first-use compilation is not counted.")
    ] = 60.0,
    criterion: Annotated[
        str,
        typer.Option("--criterion", help="condition, logdet, smallest, trace, frobenius, or a mix: condition+0.5*logdet."),
    ] = "condition",
    scaled: Annotated[bool, typer.Option("--scaled", help="Judge columns scaled to equal length.")] = False,
    torque_noise: Annotated[
        str | None,
        typer.Option("--torque-noise", metavar="S1,S2,..", help="Expected torque noise per joint: rows count by it."),
    ] = None,
    rest: Annotated[
        bool, typer.Option("--rest/--no-rest", help="Ramps from rest before, and to rest in the same pose after.")
    ] = True,
    fraction: Annotated[float, typer.Option("--fraction", help="Share of the robot's limits to use.")] = 1.0,
    position: Annotated[
        str | None,
        typer.Option(
            "--position",
            metavar="LOW:HIGH,..",
            help="Position limits, rad or m, one pair or one per joint; here and below: beside the description's, the tighter holds.",
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
        float | None, typer.Option("--clearance", help="Keep bodies this far apart, m; needs collision shapes in the URDF.")
    ] = None,
    ground: Annotated[
        float | None, typer.Option("--ground", help="Height of the ground in the base frame, m; with --clearance.")
    ] = None,
    starts: Annotated[int, typer.Option("--starts", help="Random starts of the search.")] = 36,
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
    """Design a motion that shows the robot's parameters best, within its limits, and write it for the controller.

    Example: [bold]dynid excite arm.urdf -o traj.csv --period 20 --harmonics 5 --rate 1000[/bold]
    """
    from dynid.excitation.export import check_file
    from dynid.excitation.limits import limits_of
    from dynid.excitation.shape import check_n_samples
    from dynid.robot.read import read_robot

    if shape not in SHAPES:
        raise UnknownNameError("shape of motion", shape, SHAPES)
    outputs = output or [Path("excitation.csv")]
    for path in outputs:
        check_file(path)
    check_n_samples(period * max(periods, 1), rate_hz)
    model = read_robot(robot, effects, parsed_gravity(gravity), parsed_lock(lock))
    limits = limits_of(
        model,
        fraction=fraction,
        position=None if position is None else _pairs(position, "--position"),
        velocity=None if velocity is None else _one_or_all(velocity, "--velocity"),
        acceleration=None if acceleration is None else _one_or_all(acceleration, "--acceleration"),
        jerk=None if jerk is None else _one_or_all(jerk, "--jerk"),
        torque=None if torque is None else _one_or_all(torque, "--torque"),
        torque_uncertainty=torque_uncertainty,
        tool_speed=tool_speed,
        tool=tool,
        clearance=_clearance(model, clearance, ground),
    )
    if joint is not None and shape != "sinusoids":
        raise InputError(f"--joint is given with --shape {shape}, expected --shape sinusoids")
    noise = None if torque_noise is None else _one_or_all(torque_noise, "--torque-noise")
    with ProgressBar("designing", json) as bar:
        search: dict[str, Any] = {"seconds": seconds, "seed": seed, "progress": bar.tell}
        if shape == "points":
            from dynid.excitation.points import points_excitation

            found = points_excitation(
                model, None, rows, limits=limits, periods=periods, lambda2=scaling, tick_s=1.0 / rate_hz, **search
            )
        elif shape == "sinusoids":
            found = _sinusoids(model, limits, period, rest, periods, seed, joint)
        else:
            from dynid.excitation.bspline import BSplineShape
            from dynid.excitation.design import design_excitation
            from dynid.excitation.fourier import FourierShape

            family = FourierShape(period, harmonics) if shape == "fourier" else BSplineShape(period, intervals)
            found = design_excitation(
                model,
                None,
                family,
                criterion=criterion,
                scaled=scaled,
                torque_noise=noise,
                limits=limits,
                rest=rest,
                periods=periods,
                starts=starts,
                **search,
            )
    files = _written(found, outputs, rate_hz, picture, card)
    if json:
        show_json(found.as_json() | {"files": files})
        return
    show(
        f"{model.name}: condition number {found.as_json()['condition_number']:.4g} over {found.base.n_base} base parameters, "
        f"{found.playable.duration_s:.4g} s of motion, designed in {found.seconds:.3g} s"
    )
    for limit, margin in found.margins.items():
        show(f"left of {limit.replace('_', ' ')}: {percent(margin.value)} at {margin.where}, {margin.time_s:.3f} s")
    for note in found.notes:
        show(f"note: {note}")
    for name in files:
        show(f"written: {name}")


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


def _sinusoids(
    model: Robot, limits: Limits, period: float, rest: bool, periods: int, seed: int, joint: str | None
) -> Excitation:
    from time import monotonic

    from dynid.excitation.design import finished_excitation
    from dynid.excitation.sinusoids import all_joint_sinusoids, single_joint_sinusoid
    from dynid.regression.base import reduce_to_base

    began = monotonic()
    if joint is None:
        motion = all_joint_sinusoids(model, limits, period, seed=seed)
    else:
        motion = single_joint_sinusoid(model, joint, limits, period, seed=seed)
    return finished_excitation(
        model,
        reduce_to_base(model),
        motion,
        limits,
        criterion="velocity sinusoids",
        rest=rest,
        periods=periods,
        n_times=4000,
        began=began,
        seed=seed,
        notes=limits.notes,
    )


def _clearance(model: Robot, clearance: float | None, ground: float | None) -> Any:
    if clearance is None:
        if ground is not None:
            raise InputError("--ground is given without --clearance, expected the distance to keep from it")
        return None
    from dynid.excitation.collision import clearance_of

    return clearance_of(model, least_m=clearance, ground_m=ground)


def _pairs(text: str, option: str) -> list[list[float]]:
    """``low:high`` pairs of an option."""
    pairs = [numbers(pair.replace(":", ","), option) for pair in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"{option} is '{text}', expected low:high, or one such pair per joint separated by commas")
    return pairs


def _one_or_all(text: str, option: str) -> float | list[float]:
    values = numbers(text, option)
    return values[0] if len(values) == 1 else values
