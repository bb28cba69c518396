"""Why to believe a model, as sections of its report: it moves as the robot did, its files reload, methods agree."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.report.estimate_plots import method_figure
from dynid.report.page import Folded, Item, Items, Part, Section, Table, Tabs
from dynid.report.replay_plots import drift_figure, end_effector_figure, energy_figure
from dynid.report.torque_plots import Predicted, torque_units
from dynid.run.export import Exported
from dynid.run.identify import Run
from dynid.run.verdict import percent
from dynid.validation.replay import replay

_TITLE = "Forward validation"


def replay_section(run: Run, log: Predicted | None) -> Section | None:
    """The measured torque drives the identified model; how far it strays from the measured motion."""
    if log is None:
        return None
    try:
        found = replay(run.identified, log.samples)
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
            run.robot.joints, found.torque_error, torque_units(run.robot), found.position_drift, strict=True
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


def export_section(exported: Sequence[Exported], page: Path, refusals: Sequence[str] = ()) -> Section | None:
    """The files of the model, each with the proof that it holds what was identified; links are relative to the page."""
    if not exported and not refusals:
        return None
    wrong = tuple(f"{item.format}: {item.warning}" for item in exported if item.warning)
    missing = tuple(Item("warning", f"{text[:1].upper()}{text[1:]}.") for text in (*refusals, *wrong))
    rows = tuple(
        (
            os.path.relpath(file, page.parent),
            item.format if file == item.path else "",
            _proof(item) if file == item.path else "",
        )
        for item in exported
        for file in item.files
    )
    notes = tuple(
        Item("note", f"{item.format}: {note}.") for item in exported for note in item.notes if note != item.warning
    )
    parts = (
        *((Items(missing),) if missing else ()),
        *((Table(("file", "format", "torque difference after reloading"), rows, numeric=(2,), links=(0,)),) if rows else ()),
        *((Items(notes),) if notes else ()),
    )
    text = (
        "Each file was read again (URDF by Pinocchio, MJCF by MuJoCo, C by the compiler, SDF and JSON by dynid) and its torque "
        "compared with the identified model's on random states; the difference is relative and of what the format holds. What "
        "it has no place for is named below: take it from the JSON or the C file."
    )
    return Section("The model as files", text if rows else "", parts, "Files")


def _proof(item: Exported) -> str:
    if math.isnan(item.parity):
        return "not proven"
    return f"{item.parity:.1e}{', NOT proven' if item.failed else ''}"


def retrieval_section(run: Run) -> Section | None:
    """How far a retrieved set is from the best possible, what it violates, and what the joints would carry."""
    found = run.retrieval
    if not found:
        return None
    violated = found["violated"]
    items = [
        Item("good", "Every bound and condition is met.")
        if not violated
        else Item("error", f"Violated: {', '.join(f'{name} by {size:.3g}' for name, size in violated.items())}."),
        Item(
            "note",
            f"Its cost is {found['cost']:.6g}; no set that meets the convex conditions costs less than "
            f"{found['lower_bound']:.6g}, so the gap is {found['gap']:.2g}.",
        ),
    ]
    parts: list[Part] = [Items(tuple(items))]
    wrenches = found.get("largest_joint_wrench", ())
    if wrenches:
        rows = tuple(
            (name, f"{entry['force']:.4g}", f"{entry['moment']:.4g}")
            for name, entry in zip(run.robot.joint_names, wrenches, strict=True)
        )
        parts.append(Table(("joint", "largest force, N", "largest moment, N m"), rows, numeric=(1, 2)))
    text = "Parameters that no sensor sees still set the forces inside the joints; sane bodies give sane ones."
    return Section("Retrieval under bounds", text, tuple(parts), "Retrieval")


def comparison_section(comparisons: Sequence[Mapping[str, Any]]) -> Section | None:
    """Several methods on the same samples."""
    if not comparisons:
        return None
    rows = tuple(
        (
            str(item["method"]),
            percent(item["relative_error"].get("identification")),
            percent(item["relative_error"].get("validation")),
            {True: "yes", False: "no"}.get(item.get("feasible"), "–"),  # type: ignore[arg-type]
            "–" if item.get("seconds") is None else f"{float(item['seconds']):.3g}",
        )
        for item in comparisons
    )
    table = Table(("method", "identification", "unseen", "consistent", "seconds"), rows, numeric=(1, 2, 4))
    return Section("Methods compared", "", (table, method_figure(comparisons)), "Methods")
