"""The experiment card: what to do at the robot, in the order it is done."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TypeAlias

import numpy as np

from dynid.excitation.excitation_result import Excitation
from dynid.excitation.motion_files import FORMS, form_suffix
from dynid.excitation.trajectories import SequenceTrajectory

DRY_RUN_SPEED = 0.25
WARM_UP_MINUTES = 15
REPEATS = 5

Rows: TypeAlias = list[tuple[str, ...]]


def limit_rows(excitation: Excitation) -> Rows:
    """A table, its header first: what the motion uses of each limit; the same on the screen, the card and the page."""
    header = ("limit", "of the robot", "largest", "share", "where")
    return [
        header,
        *(
            (
                use.name,
                f"{use.limit:.4g} {use.unit}",
                "" if np.isnan(use.largest) else f"{use.largest:.4g} {use.unit}",
                f"{100.0 * use.share:.1f} %",
                f"{use.where} at {use.time_s:.3f} s",
            )
            for use in excitation.limit_uses
            if use.name != "clearance"
        ),
    ]


def distance_rows(excitation: Excitation) -> Rows:
    """The same for distances: the smallest between links and to each obstacle; nothing where they were not checked."""
    clearance = excitation.limits.clearance
    if clearance is None or not excitation.distances:
        return []
    rows = [
        (use.name, f"{1e3 * use.largest:.3g} mm", f"{1e3 * use.limit:g} mm", f"{use.where} at {use.time_s:.3f} s")
        for use in excitation.distances
    ]
    return [(f"distance (asked {1e3 * clearance.least_m:g} mm)", "smallest", "kept", "where"), *rows]


def experiment_sheet(excitation: Excitation, rate_hz: float = 1000.0, files: Sequence[str] = (), axes: str = "") -> str:
    """Markdown for the person at the robot; ``axes`` is a sentence on the axes of the controller."""
    robot, motion = excitation.robot, excitation.playable
    start, end = motion.derivative([0.0, motion.duration_s], 0)
    lines = [
        f"# Experiment card: {robot.name}",
        "",
        (
            f"Motion of {motion.duration_s:.4g} s, {robot.n_joints} joints; {excitation.in_words()}, with its columns scaled to "
            f"equal length {excitation.condition_number_scaled:.4g}; seed {excitation.seed}."
        ),
        "",
        *_margin_lines(excitation),
        *([f"**Warning: {axes}.**"] if axes else []),
        "",
        "## Before",
        "",
        f"1. Move to the start pose, slowly and by a way that you know to be free: {pose_in_words(robot.joint_names, start)}.",
        "2. Clear everything the arm can reach; keep a hand on the emergency stop.",
        (
            f"3. Dry run at {100.0 * DRY_RUN_SPEED:.0f} % speed ({motion.duration_s / DRY_RUN_SPEED:.4g} s): watch for "
            "collisions, cables and hoses; compare torque with the limits."
        ),
        "4. Tool, payload and its settings in the controller as in the robot description; gravity as mounted.",
        (
            f"5. Warm up: {WARM_UP_MINUTES} minutes of motion over the whole range. Friction falls as grease warms; record "
            "when torque of successive runs no longer changes."
        ),
        "",
        "## Record",
        "",
        f"1. {_playing(excitation)} The same controller gains throughout.",
        (
            f"2. At {rate_hz:g} Hz or as fast as the controller allows, on one clock, unfiltered: time, position, velocity, "
            "torque or motor current of every joint, commanded position; joint temperature where there is one."
        ),
        "3. Two seconds of standstill before and after, for noise and offsets.",
        "4. A second motion for validation, designed with another seed; it must not enter the identification.",
        "5. Note down: ambient temperature, tool, firmware, gains, file names.",
        *_recorders(files),
        "",
        "## After",
        "",
        (
            f"End pose: {pose_in_words(robot.joint_names, end)}. Look at the log with `dynid data` before leaving the robot: missing "
            "samples, clipped torque, limits reached."
        ),
    ]
    if files:
        lines += ["", "## Files", "", *(f"- `{name}`" for name in files)]
    notes = [note for note in excitation.notes if note not in excitation.warnings]
    if notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"


def _recorders(files: Sequence[str]) -> list[str]:
    """How the motions of these files are recorded."""
    forms = dict.fromkeys(FORMS[form_suffix(name)] for name in files if name.lower().endswith(tuple(FORMS)))
    return [f"- {form.words}: {form.record}." for form in forms if form.record]


def _margin_lines(excitation: Excitation) -> list[str]:
    """Tables of limits and distances, and what they do not cover."""
    lines = [*_table(limit_rows(excitation)), *_table(distance_rows(excitation))]
    covers = {"torque": "torque", "clearance": "collision with itself, ground or surroundings"}
    unchecked = [text for name, text in covers.items() if getattr(excitation.margins, name) is None]
    return [
        *lines,
        f"Limits and distances were looked at {excitation.margins.n_times} times. "
        + (f"**Not checked: {'; '.join(unchecked)}.** " if unchecked else "")
        + f"Torque is that of the nominal model plus {100.0 * excitation.limits.torque_uncertainty:.0f} %.",
        *(f"**Warning: {note}.**" for note in excitation.warnings),
    ]


def _table(rows: Rows) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [*lines[:1], "|---" * len(rows[0]) + "|", *lines[1:], ""] if rows else []


def _playing(excitation: Excitation) -> str:
    """How often and how to play the file, from what it is at its ends."""
    motion, core = excitation.playable, excitation.trajectory
    pieces = motion.pieces if isinstance(motion, SequenceTrajectory) else (motion,)
    inside = max(1, sum(piece is core for piece in pieces))
    holds = f"It holds {inside} periods. " if inside > 1 else ""
    repeats = ceil(REPEATS / inside)
    play = f"Play the motion {repeats} times" if repeats > 1 else "Play the motion once"
    if not motion.at_rest:
        return (
            f"{play}. {holds}**It does not start and end at rest**: lead into it and out of it by ramps of your own, or design it "
            "with them (`dynid excite --rest`)."
        )
    if motion.closed:
        pause = " without pause" if repeats > 1 else ""
        return f"{play}{pause}. {holds}It starts and ends at rest in the same pose, so the file can be repeated as it is."
    start, end = motion.derivative([0.0, motion.duration_s], 0)
    far = int(np.argmax(np.abs(end - start)))
    name = excitation.robot.joint_names[far]
    again = f" Or design all {REPEATS} periods in one file: `--periods {REPEATS}`." if core.periodic else ""
    back = " Go slowly back to the start pose before each repeat." if repeats > 1 else ""
    return (
        f"{play}. {holds}It starts and ends at rest, but **not in the same pose** (`{name}` ends {abs(end[far] - start[far]):.3f} "
        f"away): never repeat the file without a pause.{back}{again if repeats > 1 else ''}"
    )


def pose_in_words(names: Sequence[str], pose: Sequence[float]) -> str:
    """A pose by the names of its joints."""
    return ", ".join(f"{name} {round(value, 4) + 0.0:.4f}" for name, value in zip(names, pose, strict=True))  # no minus zero
