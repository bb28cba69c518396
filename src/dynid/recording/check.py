"""The data check: what is in a log and what is wrong with it, each finding one sentence and a fix.

Here are the findings that need the log alone, or the robot's names and limits. Those that compare torque with the nominal
model stand above, where the model's torque is known; they use the same :class:`Finding`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.recording.cutoff import motion_bandwidth_hz
from dynid.recording.finding import DataCheck, Finding, dropped_rows
from dynid.recording.lag import Lag, longest_part, noise_level, speed, velocity_lag
from dynid.recording.recording import Recording, beyond
from dynid.recording.steps.lowpass import EDGE_S
from dynid.recording.steps.repeated import repeated_rows
from dynid.robot.model import Robot

_DEGREES = 180.0 / np.pi
_FEWEST_ROWS = 64
HELD_OUT = 0.3
"""Share at the end of a log on which a filter is judged when it is chosen."""
SHORTEST_S = 2.0 * EDGE_S / HELD_OUT
"""Seconds of log of which something is left when both ends of the held-out share are dropped."""


def check_signals(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Findings that need no dynamics; with a robot, also its joint names and limits."""
    findings: list[Finding] = []
    facts: dict[str, Any] = {
        "rows": recording.n_samples,
        "duration_s": recording.duration_s,
        "rate_hz": recording.rate_hz,
        "joints": recording.joint_names,
        "quantities": recording.quantities,
    }
    findings += _reading(recording)
    if robot is not None:
        findings += _names(recording, robot)
    impossible = _impossible(recording)
    findings += impossible + _length(recording)
    if recording.n_samples < _FEWEST_ROWS or impossible:
        return DataCheck(tuple(findings), facts)
    findings += _clock(recording, facts)
    findings += _repeated(recording, facts)
    findings += _motion(recording, facts)
    findings += _jumps(recording, robot)
    findings += _quantisation(recording, facts)
    findings += _saturation(recording, robot, facts)
    findings += _constant(recording)
    findings += _velocity(recording, facts)
    findings += _units(recording, robot)
    if robot is not None:
        findings += _limits(recording, robot)
    return DataCheck(tuple(findings), facts)


def _reading(recording: Recording) -> list[Finding]:
    source = recording.source
    if source.n_dropped and not source.findings:
        reason = "rows that hold NaN or repeat a stamp were left out"
        return [dropped_rows(reason, source.n_dropped, source.n_rows_in_file)]
    return list(source.findings)


def _impossible(recording: Recording) -> list[Finding]:
    """Numbers that no machine can have: nothing else can be said about such a log, and their squares overflow."""
    for name in recording.quantities:
        values = getattr(recording, name)
        place = beyond(name, values)
        if place is not None:
            row, k = place
            joint = recording.joint_names[k]
            return [
                Finding(
                    "impossible_value",
                    "error",
                    f"{name.replace('_', ' ')} of joint {joint} is {values[place]:.4g} in row {row + 1}, which no robot has",
                    "check the column and its unit",
                    (joint,),
                    {"row": row + 1, "value": float(values[place])},
                )
            ]
    return []


def _length(recording: Recording) -> list[Finding]:
    n, duration = recording.n_samples, recording.duration_s
    if duration < SHORTEST_S:
        why = (
            f"{EDGE_S:g} s are lost to filters at both ends of a log, also of the {100.0 * HELD_OUT:.0f} % of it that the "
            f"filter is chosen by, which takes {SHORTEST_S:g} s"
        )
    elif n < _FEWEST_ROWS:
        why = f"expected at least {_FEWEST_ROWS} rows"
    else:
        return []
    sentence = f"log of {n} rows and {duration:.3g} s is too short to identify from: {why}"
    values = {"rows": n, "duration_s": duration}
    return [Finding("short", "error", sentence, "record a longer motion, 10 s and more", values=values)]


def _names(recording: Recording, robot: Robot) -> list[Finding]:
    absent = [name for name in robot.joint_names if name not in recording.joint_names]
    strange = [name for name in recording.joint_names if name not in robot.joint_names]
    findings = []
    if strange:
        findings.append(
            Finding(
                "joint_names",
                "error",
                f"log names joints {', '.join(strange)}, which robot '{robot.name}' does not have "
                f"(it has {', '.join(robot.joint_names)})",
                "rename the columns or give a mapping from columns to joints",
                tuple(strange),
            )
        )
    if absent:
        findings.append(
            Finding(
                "absent_joints",
                "note" if not strange else "error",
                f"log lacks joints {', '.join(absent)} of robot '{robot.name}'",
                "lock them (--lock joint=value) at the position they had, or log them",
                tuple(absent),
            )
        )
    if not strange and not absent and recording.joint_names != robot.joint_names:
        findings.append(
            Finding(
                "joint_order",
                "error",
                f"log has the joints in the order {', '.join(recording.joint_names)}, robot '{robot.name}' in the order "
                f"{', '.join(robot.joint_names)}",
                "read the log together with the robot, which puts its columns in order",
            )
        )
    return findings


def _clock(recording: Recording, facts: dict[str, Any]) -> list[Finding]:
    steps = np.diff(recording.time)
    median = float(np.median(steps))
    facts |= {
        "step_min_s": float(steps.min()),
        "step_median_s": median,
        "step_mean_s": float(steps.mean()),
        "step_max_s": float(steps.max()),
        "step_spread": float(steps.std() / steps.mean()),
    }
    findings = []
    if not 5.0 <= 1.0 / median <= 20_000.0:
        findings.append(
            Finding(
                "time_unit",
                "error" if median > 1.0 else "warning",
                f"the median step of the clock is {median:.4g} s, a rate of {1.0 / median:.4g} Hz",
                "check the unit of the time column (s, ms, us, ns)",
                values={"step_s": median},
            )
        )
    irregular = float(np.mean(np.abs(steps - median) > 0.02 * median))
    facts["irregular_share"] = irregular
    if irregular > 0.001:
        findings.append(
            Finding(
                "jitter",
                "warning" if irregular > 0.01 else "note",
                f"sampling is irregular: steps from {1e3 * steps.min():.2g} to {1e3 * steps.max():.2g} ms, "
                f"median {1e3 * median:.4g} ms, {recording.rate_hz:.4g} Hz on average",
                f"resample on the logged clock, for instance Resample(period_s={median:.2g})",
                values={"share": irregular, "step_min_s": float(steps.min()), "step_max_s": float(steps.max())},
            )
        )
    gaps = np.flatnonzero(steps > max(3.0 * median, 1e-6))
    facts["gaps"] = len(gaps)
    if gaps.size:
        longest = int(gaps[np.argmax(steps[gaps])])
        bad = steps[longest] > max(0.1, 10.0 * median)
        findings.append(
            Finding(
                "gaps",
                "warning" if bad else "note",
                f"rows are missing in {gaps.size} places: up to {1e3 * steps[longest]:.3g} ms, at "
                f"{recording.time[longest]:.4g} s",
                f"identify takes the parts between as logs of their own; in Python: SplitAtGaps({0.5 * steps[longest]:.2g})"
                if bad
                else "resampling on the logged clock bridges gaps this short",
                values={"count": int(gaps.size), "longest_s": float(steps[longest])},
            )
        )
    return findings


def _repeated(recording: Recording, facts: dict[str, Any]) -> list[Finding]:
    arrays = [getattr(recording, name) for name in recording.quantities if name != "reference_position"]
    repeated = repeated_rows(arrays)
    share = float(np.mean(repeated[1:]))
    facts["repeated_share"] = share
    if share < 0.001:
        return []
    return [
        Finding(
            "repeated_rows",
            "warning" if share > 0.01 else "note",
            f"{100.0 * share:.1f} % of the rows repeat the row before in every column",
            "the logger is faster than the robot answers: DropRepeated() before Resample(), or log on the robot's clock",
            values={"share": share, "rows": int(np.count_nonzero(repeated))},
        )
    ]


def _motion(recording: Recording, facts: dict[str, Any]) -> list[Finding]:
    if longest_part(recording).n_samples < 64:
        return []
    if recording.velocity is None:
        recording = longest_part(recording)
    v = np.abs(speed(recording))
    fastest = np.quantile(v, 0.98, axis=0)
    noise = np.zeros_like(fastest) if recording.velocity is None else noise_level(recording.velocity)
    spread = np.ptp(recording.position, axis=0)
    still = np.asarray(spread < 1e-3)
    limit = np.maximum(0.01 * fastest, 3.0 * noise)
    standing = ((v <= limit) | still).all(axis=1)
    share = float(standing.mean())
    # Short rests are part of a motion; only those at the ends can be cut.
    moving = np.flatnonzero(~standing)
    head, tail = (int(moving[0]), len(v) - 1 - int(moving[-1])) if moving.size else (len(v), 0)
    t = recording.time
    head_s = float(t[min(head, len(t) - 1)] - t[0])
    tail_s = float(t[-1] - t[len(t) - 1 - tail])
    facts |= {
        "standstill_share": share,
        "standstill_head_s": head_s,
        "standstill_tail_s": tail_s,
        "speed": fastest,
        "velocity_noise": noise,
        "torque_noise": None if recording.torque is None else noise_level(recording.torque),
        "range": spread,
        "bandwidth_hz": motion_bandwidth_hz(longest_part(recording)),
    }
    findings = []
    if share > 0.02:
        findings.append(
            Finding(
                "standstill",
                "warning" if share > 0.1 else "note",
                f"the robot stands still in {100.0 * share:.0f} % of the rows ({head_s:.2g} s before the motion, "
                f"{tail_s:.2g} s after it)",
                f"trim to the motion: TrimToMotion(), or --from {t[0] + head_s:.4g} --to {t[-1] - tail_s:.4g}"
                if head_s + tail_s > 0.5
                else "friction is undefined in rests: use a dead zone, or a motion that does not rest",
                values={"share": share, "head_s": head_s, "tail_s": tail_s},
            )
        )
    resting = _named(recording, still)
    if resting:
        findings.append(
            Finding(
                "resting_joint",
                "warning",
                f"joint {', '.join(resting)} does not move: its range is below 0.001",
                "its friction and the inertia about it cannot be identified from this log; lock it or excite it",
                resting,
            )
        )
    return findings


def _jumps(recording: Recording, robot: Robot | None) -> list[Finding]:
    step = np.abs(np.diff(recording.position, axis=0))
    turns = np.asarray(((np.abs(step - 2.0 * np.pi) < 0.5) | (np.abs(step - 360.0) < 30.0)).any(axis=0))
    if robot is not None and robot.n_dof == recording.n_joints:
        turns &= np.array([joint.kind != "prismatic" for joint in robot.driven_joints])
    wrapped = _named(recording, turns)
    if not wrapped:
        return []
    return [
        Finding(
            "wrapped_angle",
            "warning",
            f"position of joint {', '.join(wrapped)} jumps by a whole turn from one row to the next",
            "identify makes it continuous by itself; in Python the first step is Unwrap()",
            wrapped,
        )
    ]


def _quantisation(recording: Recording, facts: dict[str, Any]) -> list[Finding]:
    part = longest_part(recording)
    if part.n_samples < 64:
        return []
    grain = {
        name: np.array([_grain(column) for column in getattr(part, name).T])
        for name in ("position", "velocity", "torque", "current")
        if getattr(part, name) is not None
    }
    facts["grain"] = grain
    findings = []
    median = float(np.median(np.diff(recording.time)))
    v = speed(part)
    moving = np.sqrt(np.mean(v**2, axis=0))
    # A grain is spread evenly over +-1/2, so its standard deviation is 1/sqrt(12) of it.
    blur = grain["position"] / np.sqrt(12.0) / (np.sqrt(2.0) * median)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(moving > 0.0, blur / moving, 0.0)
    if np.any(ratio > 0.005):
        worst = int(np.argmax(ratio))
        findings.append(
            Finding(
                "quantised_position",
                "warning" if ratio[worst] > 0.05 else "note",
                f"position is quantised to {grain['position'][worst]:.2g} (joint {recording.joint_names[worst]}): its plain "
                f"difference over one step is off by {100.0 * ratio[worst]:.2g} % of the speed",
                "filter before differentiating, or take the logged velocity",
                _named(recording, ratio > 0.005),
                {"grain": grain["position"], "velocity_error": blur},
            )
        )
    for name in ("velocity", "torque", "current"):
        if name not in grain:
            continue
        values = getattr(part, name)
        size = values.std(axis=0)
        coarse = (grain[name] > 0.02 * size) & (size > 0.0)
        if coarse.any():
            worst = int(np.argmax(np.where(coarse, grain[name] / np.maximum(size, 1e-300), 0.0)))
            findings.append(
                Finding(
                    f"quantised_{name}",
                    "warning" if grain[name][worst] > 0.2 * size[worst] else "note",
                    f"{name} of joint {', '.join(_named(recording, coarse))} is quantised coarsely, to "
                    f"{grain[name][worst]:.2g} where it varies by {size[worst]:.2g}",
                    "log it with more digits, or move with larger amplitude",
                    _named(recording, coarse),
                    {"grain": grain[name]},
                )
            )
    return findings


def _grain(column: Array) -> float:
    """The step that all values are multiples of, zero where there is none to see."""
    levels = np.unique(column)
    if len(levels) < 3 or (len(levels) > 0.9 * len(column) + 2 and len(column) > 100):
        # as many levels as rows: continuous, unless digits were cut in writing
        return _decimal_grain(levels) if len(levels) >= 3 else 0.0
    steps = np.diff(levels)
    smallest = float(steps[steps > 1e-12 * max(1.0, float(np.abs(levels).max()))].min(initial=np.inf))
    if not np.isfinite(smallest):
        return 0.0
    multiple = steps / smallest
    off = np.abs(multiple - np.round(multiple))
    return smallest if float(np.quantile(off, 0.95)) < 0.05 else _decimal_grain(levels)


def _decimal_grain(levels: Array) -> float:
    """``10^-k`` if all values have at most k = 6 decimals."""
    for k in range(7):
        scaled = levels * 10.0**k
        if np.abs(scaled - np.round(scaled)).max() < 1e-6:
            return float(10.0**-k)
    return 0.0


def _saturation(recording: Recording, robot: Robot | None, facts: dict[str, Any]) -> list[Finding]:
    findings = []
    moving = np.ones(recording.n_samples, dtype=np.bool_)
    moving[1:] = (np.diff(recording.position, axis=0) != 0.0).any(axis=1)
    for name in ("torque", "current"):
        values = getattr(recording, name)
        if values is None:
            continue
        share = np.array([_clipped_share(column, moving) for column in values.T])
        facts[f"{name}_clipped_share"] = share
        hit = share > 0.001
        if robot is not None and name == "torque" and robot.n_dof == recording.n_joints:
            limit = robot.limits("tau_max")
            at_limit = np.mean(np.abs(values) >= 0.999 * limit, axis=0)
            hit |= at_limit > 0.001
            share = np.maximum(share, at_limit)
        if hit.any():
            worst = int(np.argmax(share))
            findings.append(
                Finding(
                    "saturation",
                    "warning",
                    f"{name} of joint {', '.join(_named(recording, hit))} is cut off at its extreme, in up to "
                    f"{100.0 * share[worst]:.2g} % of the rows",
                    "leave those rows out or move more gently: a cut-off signal is not what drives the robot",
                    _named(recording, hit),
                    {"share": share},
                )
            )
    return findings


def _clipped_share(column: Array, moving: BoolArray) -> float:
    """Share of rows that stay at the very largest or smallest value for five rows and more while the robot moves."""
    total = 0
    if np.ptp(column) == 0.0:
        return 0.0
    for extreme in (column.max(), column.min()):
        there = (column == extreme) & moving
        edges = np.flatnonzero(np.diff(np.concatenate([[0], there.astype(np.int8), [0]])))
        lengths = edges[1::2] - edges[::2]
        total += int(lengths[lengths >= 5].sum())
    return total / len(column)


def _constant(recording: Recording) -> list[Finding]:
    findings = []
    for name in ("velocity", "torque", "current"):
        values = getattr(recording, name)
        if values is None:
            continue
        dead = (np.ptp(values, axis=0) == 0.0) & (np.ptp(recording.position, axis=0) > 1e-3)
        if dead.any():
            findings.append(
                Finding(
                    "dead_signal",
                    "error",
                    f"{name} of joint {', '.join(_named(recording, dead))} never changes although the joint moves",
                    "check the column and the sensor",
                    _named(recording, dead),
                )
            )
    return findings


def _velocity(recording: Recording, facts: dict[str, Any]) -> list[Finding]:
    if recording.velocity is None:
        return [
            Finding(
                "no_velocity",
                "note",
                "the log has no velocity",
                "it is taken from position: Differentiate(velocity='position')",
            )
        ]
    if longest_part(recording).n_samples < 64:
        return []
    lag = velocity_lag(recording)
    moves = np.ptp(recording.position, axis=0) > 1e-3
    facts |= {"velocity_lag_s": lag.seconds, "velocity_scale": lag.scale, "velocity_mismatch": lag.unexplained}
    if not moves.any():
        return []
    alike = moves & (lag.unexplained < 0.3)
    findings = []
    if not alike.any():
        return [
            Finding(
                "velocity_unrelated",
                "error",
                "logged velocity is not the derivative of logged position in any joint",
                "take velocity from position, and check which columns hold what",
                _named(recording, moves),
                {"unexplained": lag.unexplained},
            )
        ]
    strange = moves & ~alike
    if strange.any():
        findings.append(
            Finding(
                "velocity_mismatch",
                "warning",
                f"logged velocity of joint {', '.join(_named(recording, strange))} is not the derivative of its position",
                "take velocity from position: Differentiate(velocity='position')",
                _named(recording, strange),
                {"unexplained": lag.unexplained},
            )
        )
    off = alike & (np.abs(lag.scale - 1.0) > 0.05)
    if off.any():
        findings.append(_velocity_scale(recording, lag, off))
    typical = float(np.median(lag.seconds[alike]))
    facts["velocity_lag_typical_s"] = typical
    if abs(typical) > max(1e-3, 0.25 * float(np.median(np.diff(recording.time)))):
        findings.append(
            Finding(
                "velocity_lag",
                "warning",
                f"logged velocity {'lags' if typical > 0 else 'leads'} the derivative of position by "
                f"{1e3 * abs(typical):.1f} ms",
                f"shift it, Shift({typical:.4g}), or take velocity from position; whichever predicts raw torque better",
                values={"lag_s": lag.seconds},
            )
        )
    return findings


def _velocity_scale(recording: Recording, lag: Lag, off: BoolArray) -> Finding:
    scale = float(np.median(lag.scale[off]))
    known = {
        _DEGREES: "velocity is in degrees per second and position in radians",
        1.0 / _DEGREES: "position is in degrees and velocity in radians per second",
        -1.0: "velocity has the opposite sign of position",
        30.0 / np.pi: "velocity is in revolutions per minute",
        1.0 / (2.0 * np.pi): "velocity is in revolutions per second",
    }
    reason = next((text for value, text in known.items() if abs(scale / value - 1.0) < 0.03), None)
    said = reason or "velocity is on another side of the gearbox or in another unit"
    return Finding(
        "velocity_scale",
        "error",
        f"logged velocity of joint {', '.join(_named(recording, off))} is {scale:.4g} times dq/dt: {said}",
        "give the unit or the gear ratio when reading, or take velocity from position",
        _named(recording, off),
        {"scale": lag.scale},
    )


def _units(recording: Recording, robot: Robot | None) -> list[Finding]:
    findings = []
    largest = np.abs(recording.position).max(axis=0)
    turning = np.ones(recording.n_joints, dtype=np.bool_)
    bound = np.full(recording.n_joints, 4.0 * np.pi)
    if robot is not None and robot.n_dof == recording.n_joints:
        turning = np.array([joint.kind != "prismatic" for joint in robot.driven_joints])
        limits = np.abs(robot.position_limits).max(axis=1)
        bound = np.where(np.isfinite(limits), 3.0 * limits, 8.0 * np.pi)
    likely = turning & (largest > bound)
    if likely.any():
        worst = int(np.argmax(np.where(likely, largest, 0.0)))
        findings.append(
            Finding(
                "degrees",
                "error",
                f"position of joint {recording.joint_names[worst]} reaches {largest[worst]:.4g}, which as radians would be "
                f"{largest[worst] / (2.0 * np.pi):.3g} turns: it is likely in degrees",
                "read the log with the unit deg for position",
                _named(recording, likely),
                {"largest": largest},
            )
        )
    if recording.torque is None and recording.current is not None:
        findings.append(
            Finding(
                "current_only",
                "warning",
                "the log holds motor current and no torque",
                "give the drive gains in newton metre per ampere (--drive-gains)",
            )
        )
    elif recording.torque is None:
        quantity = "external torque, which is not the joint torque" if recording.external_torque is not None else "no torque"
        findings.append(
            Finding(
                "no_torque",
                "error",
                f"the log holds {quantity}",
                "log measured joint torque or motor current",
            )
        )
    return findings


def _limits(recording: Recording, robot: Robot) -> list[Finding]:
    if robot.n_dof != recording.n_joints:
        return []
    findings = []
    low, high = robot.position_limits.T
    tolerance = 1e-3 * np.where(np.isfinite(high - low), high - low, 1.0)
    q = recording.position
    outside = (q.min(axis=0) < low - tolerance) | (q.max(axis=0) > high + tolerance)
    if outside.any():
        worst = int(np.argmax(outside))
        findings.append(
            Finding(
                "position_limit",
                "warning",
                f"joint {recording.joint_names[worst]} runs from {q[:, worst].min():.4g} to {q[:, worst].max():.4g}, its "
                f"limits are {low[worst]:.4g} and {high[worst]:.4g}",
                "check unit, sign and zero of the position, or the limits of the description",
                _named(recording, outside),
            )
        )
    for name, limit, word in (("velocity", "dq_max", "speed"), ("torque", "tau_max", "torque")):
        values = getattr(recording, name)
        if values is None:
            continue
        most = np.quantile(np.abs(values), 0.999, axis=0)
        bound = robot.limits("dq_max" if limit == "dq_max" else "tau_max")
        beyond = most > 1.02 * bound
        if beyond.any():
            worst = int(np.argmax(most / bound))
            findings.append(
                Finding(
                    f"{name}_limit",
                    "warning",
                    f"{word} of joint {recording.joint_names[worst]} reaches {most[worst]:.4g}, "
                    f"its limit is {bound[worst]:.4g}",
                    f"check the unit and the side of the gearbox of {name}, or the limits of the description",
                    _named(recording, beyond),
                )
            )
    return findings


def _named(recording: Recording, mask: BoolArray) -> tuple[str, ...]:
    return tuple(name for name, chosen in zip(recording.joint_names, mask, strict=True) if chosen)
