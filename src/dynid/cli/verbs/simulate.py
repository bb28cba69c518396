"""``dynid simulate``: a log of a motion with chosen noise and friction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynid.cli.console import Stages, say, show, show_json
from dynid.cli.options import AsJson, Output, RobotFile
from dynid.cli.schema import takes_options
from dynid.run.simulate_options import GROUPS, SimulateSettings


@takes_options(*GROUPS)
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

    Example: [bold]dynid simulate arm.urdf traj.csv -o log.parquet --viscous 1.0 --coulomb 0.5[/bold]
    """
    from dynid.robot.read import read_robot
    from dynid.run.simulation import robot_of_motion, simulate_log
    from dynid.simulation import effect_values, told_effects, with_effect

    settings = SimulateSettings(**given)
    model = read_robot(robot, settings.effects or "none", settings.gravity, dict(settings.lock))
    model, held = robot_of_motion(model, trajectory, settings.joints)
    if held:
        say(f"note: {held}; the columns of the log have the names of the joints")
    for name, values in settings.given_effects().items():
        model = with_effect(model, name, values)
    with Stages(json) as stages:
        path, recording = simulate_log(
            model,
            trajectory,
            output,
            rate_hz=settings.rate_hz,
            torque_noise=settings.torque_noise,
            encoder_bits=settings.encoder_bits,
            seed=settings.seed,
            tell=stages.tell,
            joints=settings.joints,
            by_name=bool(held or settings.lock or settings.joints),
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
