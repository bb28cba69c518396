"""The data check of a log alone: what is in it and what is wrong with it, each finding one sentence and a fix.

Here are the findings that need the log alone, or the robot's names and limits. Those that compare torque with the nominal
model are in :mod:`dynid.validation.data_check`. A new check is one function and one line at the end.

Checks of joints: their names and limits, rests and jumps of whole turns, units that look wrong, and torque that is not there. Checks of
rows and their clock: its unit, steps and gaps, the length of the log, repeated rows, what reading found, and values that cannot be. Those
of what sensors do to a signal are in :mod:`dynid.signals.sensing_checks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.finding import DataCheck, Finding, dropped_rows
from dynid.model.robot import Robot
from dynid.signals.measures import (
    FEWEST_ROWS,
    NOTHING,
    fits,
    longest_part,
    motion_bandwidth_hz,
    named,
    noise_level,
    speed,
    turning_joints,
)
from dynid.signals.recording import Recording, beyond
from dynid.signals.sensing_checks import check_constant, check_quantisation, check_saturation, check_velocity
from dynid.signals.steps.cuts import repeated_rows
from dynid.signals.steps.filters import EDGE_S


def check_joint_names(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Joints that only the log or only the robot has, and another order of them."""
    if robot is None:
        return NOTHING
    absent = [name for name in robot.joint_names if name not in recording.joint_names]
    unknown = [name for name in recording.joint_names if name not in robot.joint_names]
    findings = []
    if unknown:
        findings.append(
            Finding(
                "error",
                f"log names joints {', '.join(unknown)}, which robot '{robot.name}' does not have "
                f"(it has {', '.join(robot.joint_names)})",
                'name the columns by their joints in a mapping file (--mapping FILE): position = {joint = "column"}, torque alike',
                where=tuple(unknown),
                code="joint_names",
            )
        )
    if absent:
        findings.append(
            Finding(
                "note" if not unknown else "error",
                f"log lacks joints {', '.join(absent)} of robot '{robot.name}'",
                "lock them (--lock joint=value) at the position they had, or log them",
                where=tuple(absent),
                code="absent_joints",
            )
        )
    if not unknown and not absent and recording.joint_names != robot.joint_names:
        findings.append(
            Finding(
                "error",
                f"log has the joints in the order {', '.join(recording.joint_names)}, robot '{robot.name}' in the order "
                f"{', '.join(robot.joint_names)}",
                "read the log together with the robot, which puts its columns in order",
                code="joint_order",
            )
        )
    return DataCheck(tuple(findings), {})


_LIMITS: tuple[tuple[str, Literal["dq_max", "tau_max"], str], ...] = (
    ("velocity", "dq_max", "speed"),
    ("torque", "tau_max", "torque"),
)
OVERSHOOT = {"position": 0.02, "velocity": 0.1, "torque": 0.1}
"""Shares of a limit, or of the range of a position, by which a controller overshoots; wrong units, zeros and sides exceed it by more."""


def check_limits(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Joints beyond their limits: a wrong unit, sign, zero or side of the gearbox, or a wrong description."""
    if robot is None or not fits(recording, robot):
        return NOTHING
    findings = _position(recording, robot)
    for name, limit, word in _LIMITS:
        values = getattr(recording, name)
        if values is None:
            continue
        most = np.quantile(np.abs(values), 0.999, axis=0)
        bound = robot.limits(limit)
        over = most > 1.02 * bound
        if over.any():
            worst = int(np.argmax(most / bound))
            sentence = (
                f"{word} of joint {recording.joint_names[worst]} reaches {most[worst]:.4g}, its limit is {bound[worst]:.4g}"
            )
            fix = f"check the unit and the side of the gearbox of {name}, or the limits of the description"
            overshot = most[worst] <= (1.0 + OVERSHOOT[name]) * bound[worst]
            findings.append(_finding(name, sentence, fix, named(recording, over), overshot=overshot))
    return DataCheck(tuple(findings), {})


def _position(recording: Recording, robot: Robot) -> list[Finding]:
    low, high = robot.position_limits.T
    tolerance = 1e-3 * np.where(np.isfinite(high - low), high - low, 1.0)
    q = recording.position
    outside = (q.min(axis=0) < low - tolerance) | (q.max(axis=0) > high + tolerance)
    if not outside.any():
        return []
    beyond = np.maximum(low - q.min(axis=0), q.max(axis=0) - high) / (1e3 * tolerance)
    worst = int(np.argmax(beyond))
    sentence = (
        f"joint {recording.joint_names[worst]} runs from {q[:, worst].min():.4g} to {q[:, worst].max():.4g}, its "
        f"limits are {low[worst]:.4g} and {high[worst]:.4g}"
    )
    fix = (
        'check the zero of the position, its unit and sign (a mapping file, --mapping FILE, states them: units = {position = "deg"}, '
        "sign = {joint = -1}), or the limits of the description"
    )
    overshot = bool(beyond[worst] <= OVERSHOOT["position"])
    return [_finding("position", sentence, fix, named(recording, outside), overshot=overshot)]


def _finding(name: str, sentence: str, fix: str, joints: tuple[str, ...], *, overshot: bool) -> Finding:
    """A note where a controller that overshoots explains it, else a warning."""
    if not overshot:
        return Finding("warning", sentence, fix, where=joints, code=f"{name}_limit")
    fix = f"a controller that overshoots explains it (dynid excite --fraction 0.9 leaves it room); otherwise {fix}"
    return Finding("note", sentence, fix, where=joints, code=f"{name}_limit")


def check_motion(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Time without motion, and joints without motion."""
    if longest_part(recording).n_samples < FEWEST_ROWS:
        return NOTHING
    if recording.velocity is None:
        recording = longest_part(recording)
    v = np.abs(speed(recording))
    fastest = np.quantile(v, 0.98, axis=0)
    noise = np.zeros_like(fastest) if recording.velocity is None else noise_level(recording.velocity)
    spread = np.ptp(recording.position, axis=0)
    still = np.asarray(spread < 1e-3)
    standing = ((v <= np.maximum(0.01 * fastest, 3.0 * noise)) | still).all(axis=1)
    # Short rests are part of a motion; only those at the ends can be cut.
    moving = np.flatnonzero(~standing)
    head, tail = (int(moving[0]), len(v) - 1 - int(moving[-1])) if moving.size else (len(v), 0)
    t = recording.time
    facts: dict[str, Any] = {
        "standstill_share": float(standing.mean()),
        "standstill_head_s": float(t[min(head, len(t) - 1)] - t[0]),
        "standstill_tail_s": float(t[-1] - t[len(t) - 1 - tail]),
        "speed": fastest,
        "velocity_noise": noise,
        "torque_noise": None if recording.torque is None else noise_level(recording.torque),
        "range": spread,
        "bandwidth_hz": motion_bandwidth_hz(longest_part(recording)),
    }
    findings = _standstill(recording, facts)
    resting = named(recording, still)
    if resting:
        findings.append(
            Finding(
                "warning",
                f"joint {', '.join(resting)} does not move: its range is below 0.001",
                "its friction and the inertia about it cannot be identified from this log; lock it or excite it",
                where=resting,
                code="resting_joint",
            )
        )
    return DataCheck(tuple(findings), facts)


def _standstill(recording: Recording, facts: dict[str, Any]) -> list[Finding]:
    share, head_s, tail_s = (facts[f"standstill_{name}"] for name in ("share", "head_s", "tail_s"))
    if share <= 0.02:
        return []
    t = recording.time
    return [
        Finding(
            "warning" if share > 0.1 else "note",
            f"the robot stands still in {100.0 * share:.0f} % of the rows ({head_s:.2g} s before the motion, "
            f"{tail_s:.2g} s after it)",
            f"identify leaves it out, as with --from {t[0] + head_s:.4g} --to {t[-1] - tail_s:.4g}; in Python: TrimToMotion()"
            if head_s + tail_s > 0.5
            else "friction is undefined in rests: widen --dead-zone, or record a motion that does not rest",
            code="standstill",
            values={"share": share, "head_s": head_s, "tail_s": tail_s},
        )
    ]


def check_jumps(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Angles that jump by a whole turn."""
    step = np.abs(np.diff(recording.position, axis=0))
    turns = np.asarray(((np.abs(step - 2.0 * np.pi) < 0.5) | (np.abs(step - 360.0) < 30.0)).any(axis=0))
    wrapped = named(recording, turns & turning_joints(recording, robot))
    if not wrapped:
        return NOTHING
    finding = Finding(
        "warning",
        f"position of joint {', '.join(wrapped)} jumps by a whole turn from one row to the next",
        "identify makes it continuous automatically; in Python the first step is Unwrap()",
        where=wrapped,
        code="wrapped_angle",
    )
    return DataCheck((finding,), {})


def check_degrees(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Positions far beyond what a joint can turn in radians."""
    largest = np.abs(recording.position).max(axis=0)
    bound = np.full(recording.n_joints, 4.0 * np.pi)
    if robot is not None and fits(recording, robot):
        limits = np.abs(robot.position_limits).max(axis=1)
        bound = np.where(np.isfinite(limits), 3.0 * limits, 8.0 * np.pi)
    likely = turning_joints(recording, robot) & (largest > bound)
    if not likely.any():
        return NOTHING
    worst = int(np.argmax(np.where(likely, largest, 0.0)))
    finding = Finding(
        "error",
        f"position of joint {recording.joint_names[worst]} reaches {largest[worst]:.4g}, which as radians would be "
        f"{largest[worst] / (2.0 * np.pi):.3g} turns: it is likely in degrees",
        'state it in a mapping file (--mapping FILE): units = {position = "deg"}',
        where=named(recording, likely),
        code="degrees",
        values={"largest": largest},
    )
    return DataCheck((finding,), {})


def check_torque_present(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Logs without joint torque: with motor current, with external torque alone, with neither."""
    if recording.torque is not None:
        return NOTHING
    if recording.current is not None:
        finding = Finding(
            "warning",
            "the log holds motor current and no torque",
            "give the drive gains in newton metre per ampere (--drive-gains)",
            code="current_only",
        )
        return DataCheck((finding,), {})
    external = recording.external_torque is not None
    held = "external torque, which is not the joint torque" if external else "no torque"
    fix = (
        "log measured joint torque or motor current; where it is there under another name, a mapping file (--mapping FILE) states it: "
        'torque = "M{number}" for columns M1, M2, ..'
    )
    if recording.reference_position is not None and not external:
        what = (
            "the log has commands and positions and no torque: friction, rotor inertia and delay can be found, bodies cannot"
        )
        return DataCheck((Finding("warning", what, f"use 'dynid actuators'; for bodies {fix}", code="no_torque"),), {})
    return DataCheck((Finding("error", f"the log holds {held}", fix, code="no_torque"),), {})


def check_clock(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Steps of the clock against their median."""
    steps = np.diff(recording.time)
    median = float(np.median(steps))
    irregular = float(np.mean(np.abs(steps - median) > 0.02 * median))
    gaps = np.flatnonzero(steps > max(3.0 * median, 1e-6))
    facts = {
        "step_min_s": float(steps.min()),
        "step_median_s": median,
        "step_mean_s": float(steps.mean()),
        "step_max_s": float(steps.max()),
        "step_spread": float(steps.std() / steps.mean()),
        "irregular_share": irregular,
        "gaps": len(gaps),
    }
    findings = []
    if not 5.0 <= 1.0 / median <= 20_000.0:
        findings.append(
            Finding(
                "error" if median > 1.0 else "warning",
                f"the median step of the clock is {median:.4g} s, a rate of {1.0 / median:.4g} Hz",
                'check the unit of the time column, which a mapping file (--mapping FILE) states: units = {time = "ms"}',
                code="time_unit",
                values={"step_s": median},
            )
        )
    if irregular > 0.001:
        findings.append(
            Finding(
                "warning" if irregular > 0.01 else "note",
                f"sampling is irregular: steps from {1e3 * steps.min():.2g} to {1e3 * steps.max():.2g} ms, "
                f"median {1e3 * median:.4g} ms, {recording.rate_hz:.4g} Hz on average",
                f"identify resamples it on the logged clock; in Python: Resample(period_s={median:.2g})",
                code="jitter",
                values={"share": irregular, "step_min_s": float(steps.min()), "step_max_s": float(steps.max())},
            )
        )
    if gaps.size:
        longest = int(gaps[np.argmax(steps[gaps])])
        findings.append(_gap(recording, steps, median, gaps.size, longest))
    return DataCheck(tuple(findings), facts)


def _gap(recording: Recording, steps: Array, median: float, count: int, longest: int) -> Finding:
    bad = steps[longest] > max(0.1, 10.0 * median)
    return Finding(
        "warning" if bad else "note",
        f"rows are missing in {count} places: up to {1e3 * steps[longest]:.3g} ms, at {recording.time[longest]:.4g} s",
        f"identify takes the parts between as logs of their own; in Python: SplitAtGaps({0.5 * steps[longest]:.2g})"
        if bad
        else "resampling on the logged clock bridges gaps this short",
        code="gaps",
        values={"count": int(count), "longest_s": float(steps[longest])},
    )


HELD_OUT = 0.3
"""Share at the end of a log on which a filter is judged when it is chosen."""
SHORTEST_S = 2.0 * EDGE_S / HELD_OUT
"""Seconds of log of which something is left when both ends of the held-out share are dropped."""


def check_length(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Logs that nothing is left of once filters have taken their ends."""
    n, duration = recording.n_samples, recording.duration_s
    if duration < SHORTEST_S:
        why = (
            f"filters lose {EDGE_S:g} s at both ends of a log and of the {100.0 * HELD_OUT:.0f} % of it that is held out to "
            f"choose the filter, expected at least {SHORTEST_S:g} s"
        )
    elif n < FEWEST_ROWS:
        why = f"expected at least {FEWEST_ROWS} rows"
    else:
        return NOTHING
    sentence = f"log of {n} rows and {duration:.3g} s is too short to identify from: {why}"
    values = {"rows": n, "duration_s": duration}
    return DataCheck((Finding("error", sentence, "record a longer motion, 10 s and more", code="short", values=values),), {})


def check_repeated(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """A logger that samples faster than the robot sends writes rows twice."""
    arrays = [getattr(recording, name) for name in recording.quantities if not name.startswith("reference")]
    repeated = repeated_rows(arrays)
    share = float(np.mean(repeated[1:]))
    facts = {"repeated_share": share}
    if share < 0.001:
        return DataCheck((), facts)
    finding = Finding(
        "warning" if share > 0.01 else "note",
        f"{100.0 * share:.1f} % of the rows repeat the row before in every column",
        "the logger samples faster than the robot sends: log on the robot's clock; in Python: DropRepeated() before Resample()",
        code="repeated_rows",
        values={"share": share, "rows": int(np.count_nonzero(repeated))},
    )
    return DataCheck((finding,), facts)


def check_reading(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Findings of the reader, such as rows that were left out."""
    source = recording.source
    if source.n_dropped and not source.findings:
        reason = "rows that hold NaN or repeat a stamp were left out"
        return DataCheck((dropped_rows(reason, source.n_dropped, source.n_rows_in_file),), {})
    return DataCheck(source.findings, {})


def check_values(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Numbers that no machine can have: no other check makes sense for such a log, and their squares overflow."""
    for name in recording.quantities:
        values = getattr(recording, name)
        place = beyond(name, values)
        if place is not None:
            row, k = place
            joint = recording.joint_names[k]
            finding = Finding(
                "error",
                f"{name.replace('_', ' ')} of joint {joint} is {values[place]:.4g} in row {row + 1}, which no robot has",
                "check the column and its unit",
                where=(joint,),
                code="impossible_value",
                values={"row": row + 1, "value": float(values[place])},
            )
            return DataCheck((finding,), {})
    return DataCheck((), {})


Check = Callable[[Recording, Robot | None], DataCheck]

#: Made on every log.
_ALWAYS: tuple[Check, ...] = (check_reading, check_joint_names, check_values, check_length)
#: Made on logs of enough rows whose values are all possible.
_SIGNALS: tuple[Check, ...] = (
    check_clock,
    check_repeated,
    check_motion,
    check_jumps,
    check_quantisation,
    check_saturation,
    check_constant,
    check_velocity,
    check_degrees,
    check_torque_present,
    check_limits,
)


def check_signals(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Findings that need no dynamics; with a robot, also its joint names and limits."""
    found = DataCheck(
        (),
        {
            "rows": recording.n_samples,
            "duration_s": recording.duration_s,
            "rate_hz": recording.rate_hz,
            "joints": recording.joint_names,
            "quantities": recording.quantities,
        },
    )
    for check in _ALWAYS:
        found = found.merged(check(recording, robot))
    if recording.n_samples < FEWEST_ROWS or found.find("impossible_value") is not None:
        return found
    for check in _SIGNALS:
        found = found.merged(check(recording, robot))
    return found
