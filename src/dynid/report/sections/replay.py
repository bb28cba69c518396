"""Forward validation: the model moves as the robot did."""

from __future__ import annotations

import numpy as np

from dynid.errors import InputError
from dynid.export.simulator_joint import as_held
from dynid.recording.samples import Samples
from dynid.report.page import Folded, Item, Items, Section, Table, Tabs
from dynid.report.replay_plots import drift_figure, end_effector_figure, energy_figure
from dynid.report.shown import Shown
from dynid.report.torque_plots import torque_units
from dynid.robot.effects import PLACES
from dynid.run.export import as_format_holds
from dynid.run.record import Run
from dynid.validation.horizons import error_over_horizons
from dynid.validation.replay import replay

HORIZON_WINDOWS = 4
"""Free runs per horizon: a report must not take longer than the identification."""

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
    horizons = _horizons(run, (run.unseen or run.samples)[0])
    notes = (Items(tuple(Item("note", f"{note[:1].upper()}{note[1:]}.") for note in found.notes)),) if found.notes else ()
    folded = (Folded("Joint by joint", (table,)), *((horizons,) if horizons is not None else ()))
    return Section(_TITLE, text, (Tabs(figures), *folded, *notes), "Replay")


def _horizons(run: Run, samples: Samples) -> Folded | None:
    """Error of a free run over growing horizons beside that of the description, both as a simulator's file holds them.

    None where there is no such file: of closed or floating robots, and of links that no body can be.
    """
    if run.robot.loops or run.robot.floating or not run.consistency.feasible:
        return None
    held, _ = as_format_holds(run, "MJCF", PLACES)
    try:
        errors = error_over_horizons(as_held(held), as_held(run.robot), samples, HORIZON_WINDOWS)
    except InputError:  # samples shorter than every horizon, or bodies that no simulator takes: the text above says so
        return None
    rows = tuple((f"{1e3 * one.horizon_s:.0f}", *one.texts()) for one in errors)
    header = ("horizon, ms", "identified, rad or m", "description, rad or m")
    title = (
        "Free run over growing horizons, root mean square of position over joints and time, with friction as MJCF holds it"
    )
    return Folded(title, (Table(header, rows, numeric=(0, 1, 2)),))
