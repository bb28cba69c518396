"""``dynid simulate``: a log of a motion with chosen noise and friction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import Stages, say, show, show_json
from dynid.cli.options import (
    DEFAULT_EFFECTS,
    AsJson,
    Effects,
    Gravity,
    Lock,
    Output,
    RobotFile,
    Seed,
    numbers,
    parsed_gravity,
    parsed_lock,
)

_ONE_OR_ALL = "one or one per joint; default: the description's."


def simulate(
    robot: RobotFile,
    trajectory: Annotated[
        Path,
        typer.Argument(metavar="TRAJ", help="Motion to follow: columns t, q1.., dq1.., ddq1...", show_default=False),
    ],
    output: Output = Path("simulated.parquet"),
    rate_hz: Annotated[float, typer.Option("--rate", help="Samples per second of the log.")] = 1000.0,
    torque_noise: Annotated[
        float,
        typer.Option(
            "--torque-noise",
            help="Standard deviation of torque noise, as a fraction of each joint's root mean square torque.",
        ),
    ] = 0.01,
    encoder_bits: Annotated[int, typer.Option("--encoder-bits", help="Encoder bits per turn; 0 for an exact encoder.")] = 19,
    viscous: Annotated[
        str | None,
        typer.Option("--viscous", metavar="V1,V2,..", help=f"Viscous friction, N m s/rad or N s/m, {_ONE_OR_ALL}"),
    ] = None,
    coulomb: Annotated[
        str | None, typer.Option("--coulomb", metavar="C1,C2,..", help=f"Coulomb friction, N m or N, {_ONE_OR_ALL}")
    ] = None,
    offset: Annotated[
        str | None, typer.Option("--offset", metavar="O1,O2,..", help=f"Offset of the torque, N m or N, {_ONE_OR_ALL}")
    ] = None,
    armature: Annotated[
        str | None,
        typer.Option("--armature", metavar="A1,A2,..", help=f"Rotor inertia at the joint, kg m^2 or kg, {_ONE_OR_ALL}"),
    ] = None,
    effects: Effects = DEFAULT_EFFECTS,
    gravity: Gravity = None,
    lock: Lock = None,
    joints: Annotated[
        str | None,
        typer.Option(
            "--joints",
            metavar="NAME,NAME,..",
            help="Joints that numbered columns (q1, q2, ..) of the motion belong to, in their order; the others are held.",
        ),
    ] = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Simulate a log of a motion: forward dynamics with friction under a tracking controller, quantised encoders, torque noise.

    Example: [bold]dynid simulate arm.urdf traj.csv -o log.parquet --viscous 1.0 --coulomb 0.5[/bold]
    """
    from dynid.robot.read import read_robot
    from dynid.run.simulation import robot_of_motion, simulate_log
    from dynid.simulation import effect_values, told_effects, with_effect

    model = read_robot(robot, effects, parsed_gravity(gravity), parsed_lock(lock))
    order = None if joints is None else [name.strip() for name in joints.split(",")]
    model, held = robot_of_motion(model, trajectory, order)
    if held:
        say(f"note: {held}; the columns of the log have the names of the joints")
    chosen = {"viscous": viscous, "coulomb": coulomb, "offset": offset, "armature": armature}
    for name, text in chosen.items():
        if text is not None:
            values = numbers(text, f"--{name}")
            model = with_effect(model, name, values[0] if len(values) == 1 else values)
    with Stages(json) as stages:
        path, recording = simulate_log(
            model,
            trajectory,
            output,
            rate_hz=rate_hz,
            torque_noise=torque_noise,
            encoder_bits=encoder_bits,
            seed=seed,
            tell=stages.tell,
            joints=order,
            by_name=bool(held or lock or order),
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
