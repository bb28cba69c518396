"""``dynid demo``: the whole path on a simulated arm."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from dynid.cli.console import percent, say, show, show_json, show_note, show_table
from dynid.cli.schema import AsJson, Output, Seed


def demo(output: Output = Path("dynid_demo"), seed: Seed = 0, json: AsJson = False) -> None:
    """The complete workflow on a built-in simulated arm: design, record, identify, validate, export, report.

    Example: [bold]dynid demo -o demo[/bold]
    """
    from dynid.pipeline.demo import run_demo

    result = run_demo(output, seed=seed, say=say)
    found = result.run.estimate
    if json:
        summary = result.run.summary()
        show_json(
            summary
            | {
                "files": [str(path) for path in result.files],
                "parity": max(item.parity for item in result.exported),
                "torque_gap": {"before": result.torque_gap_before, "after": result.torque_gap_after},
                "against_truth": asdict(result.against_truth),
                "report": None if result.report is None else str(result.report),
            }
        )
        return
    rows = [
        (name, *(f"{value:.4g}" for value in row))
        for name, row in zip(result.run.robot.joint_names, result.friction, strict=True)
    ]
    show_table(("joint", "viscous, true", "found", "Coulomb, true", "found"), rows, "Friction (simulated)")
    show()
    for note in result.run.notes:
        show_note(note)
    unseen = result.run.validation
    assert unseen is not None
    show(f"{found.rank} of {found.base.n_base} base parameters determined, condition number {found.condition_number:.4g}")
    show(f"unseen simulated log: error {percent(unseen.relative_error)}, raw torque {percent(unseen.relative_error_raw)}")
    show(
        f"torque against the true robot on random states: off by {percent(result.torque_gap_before)} with the description, "
        f"by {percent(result.torque_gap_after)} with the identified model"
    )
    truth = result.against_truth
    show(
        f"{truth.n_friction} values of friction and rotor inertia: off by {percent(truth.median)} in the median, by "
        f"{percent(truth.largest)} at most ({truth.where}); {truth.inside} of {truth.n_intervals} intervals of 95 % hold the truth"
    )
    for item in result.exported:
        show(f"exported {item.path}, reloads with a torque difference of {item.parity:.1e}")
    show(f"report: {result.report}")
