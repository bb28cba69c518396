"""``dynid demo``: the whole path on a simulated arm."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.cli.console import percent, say, show_json
from dynid.cli.schema import AsJson, Output, Seed
from dynid.cli.screen import Screen

if TYPE_CHECKING:
    from dynid.pipeline.demo import Demo


def demo(output: Output = Path("dynid_demo"), seed: Seed = 0, json: AsJson = False) -> None:
    """The complete workflow on a built-in simulated arm: design, record, identify, validate, export, report.

    Example: [bold]dynid demo -o demo[/bold]
    """
    from dynid.pipeline.demo import run_demo

    result = run_demo(output, seed=seed, say=say)
    if json:
        summary = result.run.summary()
        show_json(
            summary
            | {
                "files": [str(path) for path in result.files],
                "parity": max(item.parity for item in result.exported if item.parity == item.parity),
                "torque_gap": {"before": result.torque_gap_before, "after": result.torque_gap_after},
                "against_truth": asdict(result.against_truth),
                "report": None if result.report is None else str(result.report),
            }
        )
        return
    _show_screen(result)


def _show_screen(result: Demo) -> None:
    """How close the model came to the simulated robot, whose values are known here."""
    run, truth, screen = result.run, result.against_truth, Screen()
    unseen, found = run.validation, run.estimate
    assert unseen is not None
    screen.line(
        f"model identified: predicts another simulated log to {percent(unseen.relative_error)} (raw torque "
        f"{percent(unseen.relative_error_raw)})",
        "title",
    )
    screen.line(
        f"torque against the true robot on random states: description {percent(result.torque_gap_before)}, identified model "
        f"{percent(result.torque_gap_after)}"
    )
    screen.line(
        f"friction and rotor inertia: {percent(truth.median)} from the truth in the median, {percent(truth.largest)} at most "
        f"({truth.where}); the truth is in {truth.inside} of {truth.n_intervals} intervals of 95 %"
    )
    screen.line(
        f"{found.rank} of {found.base.n_base} base parameters determined, condition number {found.condition_number:.3g}"
    )
    rows = [
        (name, *(f"{value:.4g}" for value in row)) for name, row in zip(run.robot.joint_names, result.friction, strict=True)
    ]
    screen.table(("friction of joint", "viscous, true", "found", "Coulomb, true", "found"), rows)
    parity = [item.parity for item in result.exported if item.parity == item.parity]  # a table for papers is not reloaded
    names = ", ".join(item.path.suffix.lstrip(".") for item in result.exported)
    screen.line(f"exported: {names}; {len(parity)} files reloaded, largest torque difference {max(parity):.1e}")
    for note in run.notes:
        screen.remark(note)
    screen.last(f"report: {result.report}")
    if result.report is not None:
        folder = result.report.parent
        screen.last(
            f"next: dynid identify {folder.parent}/arm.urdf {folder.parent}/identification_log.parquet -o run, or your own files"
        )
    screen.show("the report")
