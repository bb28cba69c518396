"""``dynid excite``: an exciting trajectory within limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import ProgressBar, percent, show, show_json, show_note
from dynid.cli.options import AsJson, RobotFile
from dynid.cli.schema import takes_options
from dynid.run.excite_options import GROUPS, ExciteSettings

if TYPE_CHECKING:
    from dynid.excitation.judged import Excitation


@takes_options(*GROUPS)
def excite(
    robot: RobotFile,
    given: dict[str, Any],
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
    picture: Annotated[
        Path | None, typer.Option("--picture", help="HTML page: positions, singular values, tool path.", show_default=False)
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option("--card", help="Experiment card (Markdown), with a dry-run file at 25 % speed.", show_default=False),
    ] = None,
    json: AsJson = False,
) -> None:
    """Design a motion from which the robot's parameters are identified best, within its limits, and write it for the controller.

    Example: [bold]dynid excite arm.urdf -o traj.csv --period 20 --harmonics 5 --rate 1000[/bold]
    """
    settings = ExciteSettings(**given)
    from dynid.excitation.export import check_file
    from dynid.run.excite import design_motion

    outputs = output or [Path("excitation.csv")]
    for path in outputs:
        check_file(path)
    with ProgressBar("designing", json) as bar:
        found = design_motion(robot, settings, bar.tell)
    files = _written(found, outputs, settings.rate, picture, card)
    if json:
        show_json(found.as_json() | {"files": files, "smallest_clearance": _smallest(found)})
        return
    _show_excitation(found.robot.name, found, files)


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
        show_note(note)
    for name in files:
        show(f"written: {name}")


def _smallest(found: Excitation) -> dict[str, Any] | None:
    """Smallest distance along what is played, of which bodies, and when; None where nothing is kept apart."""
    from dynid.excitation.limits import CLEARANCE_SCALE_M

    kept, margin = found.limits.clearance, found.margins.clearance
    if kept is None or margin is None:
        return None
    return {"distance_m": kept.least_m + CLEARANCE_SCALE_M * margin.value, "pair": margin.where, "time_s": margin.time_s}


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
