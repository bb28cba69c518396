"""Forward validation: the model moves as the robot did."""

from __future__ import annotations

import numpy as np

from dynid.errors import InputError
from dynid.report.page import Folded, Item, Items, Section, Table, Tabs
from dynid.report.replay_plots import drift_figure, end_effector_figure, energy_figure
from dynid.report.shown import Shown
from dynid.report.torque_plots import torque_units
from dynid.validation.replay import replay

_TITLE = "Forward validation"


def replay_section(shown: Shown) -> Section | None:
    """The measured torque drives the identified model; how far it strays from the measured motion."""
    run, log = shown.run, shown.judged
    if log is None:
        return None
    try:
        found = run.replay or replay(
            run.identified, (run.unseen or run.samples)[0]
        )  # torque as the robot had it, in no band
    except InputError as error:
        return Section(_TITLE, f"The motion could not be replayed: {error}.", short="Replay")
    engine = "MuJoCo" if found.engine == "mujoco" else "our own integrator"
    text = (
        f"Measured torque ({log.name}) drives the identified model in {engine}; it is set back to the measured state every "
        f"{1e3 * found.window_s:.0f} ms. At the end of a window the end effector is off by "
        f"{1e3 * found.end_effector_position[:, -1].mean():.3g} mm and "
        f"{np.rad2deg(found.end_effector_orientation[:, -1].mean()):.3g} degrees on average."
    )
    rows = tuple(
        (joint.name, f"{torque:.3g}", unit, f"{1e3 * drift:.3g}", "mm" if joint.kind == "prismatic" else "mrad")
        for joint, torque, unit, drift in zip(
            run.robot.moving_joints, found.torque_error, torque_units(run.robot), found.position_drift, strict=True
        )
    )
    table = Table(("joint", "mean torque error", "", "drift at the end of a window", ""), rows, numeric=(1, 3))
    figures = (
        ("end effector", end_effector_figure(found)),
        ("joints", drift_figure(run.robot, found)),
        ("energy", energy_figure(found)),
    )
    notes = (Items(tuple(Item("note", f"{note[:1].upper()}{note[1:]}.") for note in found.notes)),) if found.notes else ()
    return Section(_TITLE, text, (Tabs(figures), Folded("Joint by joint", (table,)), *notes), "Replay")
