"""``dynid simulate``: a log of a motion with chosen noise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import show, show_json
from dynid.cli.options import (
    DEFAULT_EFFECTS,
    AsJson,
    Effects,
    Gravity,
    Lock,
    Output,
    RobotFile,
    Seed,
    parsed_gravity,
    parsed_lock,
)


def simulate(
    robot: RobotFile,
    trajectory: Annotated[
        Path,
        typer.Argument(metavar="TRAJ", help="Motion to track: columns t, q1.., dq1.., ddq1...", show_default=False),
    ],
    output: Output = Path("simulated.parquet"),
    rate_hz: Annotated[float, typer.Option("--rate", help="Samples per second of the log.")] = 1000.0,
    torque_noise: Annotated[
        float,
        typer.Option("--torque-noise", help="Standard deviation of torque noise, as a share of each joint's rms torque."),
    ] = 0.01,
    encoder_bits: Annotated[
        int, typer.Option("--encoder-bits", help="Encoder counts per turn, as a power of two; 0: exact.")
    ] = 19,
    effects: Effects = DEFAULT_EFFECTS,
    gravity: Gravity = None,
    lock: Lock = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Play a motion on a simulated robot: forward dynamics under a tracking controller, quantised encoders, torque noise.

    Example: [bold]dynid simulate arm.urdf traj.csv -o log.parquet[/bold]
    """
    from dynid.robot.read import read_robot
    from dynid.run import simulate_log

    model = read_robot(robot, effects, parsed_gravity(gravity), parsed_lock(lock))
    path, recording = simulate_log(
        model, trajectory, output, rate_hz=rate_hz, torque_noise=torque_noise, encoder_bits=encoder_bits, seed=seed
    )
    if json:
        show_json({"files": [str(path)], "n_samples": recording.n_samples, "duration_s": recording.duration_s})
    else:
        show(f"simulated {recording.duration_s:.3g} s of {model.name} at {recording.rate_hz:.4g} Hz, written to {path}")
