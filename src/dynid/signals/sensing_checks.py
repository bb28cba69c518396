"""Checks of what sensors and loggers did to signals: quantised coarsely, cut off at their extremes, never changing, and velocity unlike
the derivative of position.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.finding import DataCheck, Finding
from dynid.model.robot import Robot
from dynid.signals.measures import (
    FEWEST_ROWS,
    NOTHING,
    Lag,
    fits,
    is_difference,
    longest_part,
    motion_bandwidth_hz,
    named,
    speed,
    velocity_lag,
)
from dynid.signals.recording import Recording


def check_quantisation(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """The step that values are multiples of, against the speed of position and the spread of the others."""
    part = longest_part(recording)
    if part.n_samples < FEWEST_ROWS:
        return NOTHING
    grain = {
        name: np.array([_grain(column) for column in getattr(part, name).T])
        for name in ("position", "velocity", "torque", "current")
        if getattr(part, name) is not None
    }
    findings = _position(recording, part, grain["position"])
    for name in ("velocity", "torque", "current"):
        if name in grain:
            findings += _signal(recording, name, grain[name], getattr(part, name).std(axis=0))
    return DataCheck(tuple(findings), {"grain": grain})


_FILTERED = 5.0  # times the bandwidth of the motion, about what identify filters position at


def _position(recording: Recording, part: Recording, grain: Array) -> list[Finding]:
    median = float(np.median(np.diff(recording.time)))
    moving = np.sqrt(np.mean(speed(part) ** 2, axis=0))
    # A grain is spread evenly over +-1/2, so its standard deviation is 1/sqrt(12) of it.
    blur = grain / np.sqrt(12.0) / (np.sqrt(2.0) * median)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(moving > 0.0, blur / moving, 0.0)
    if not np.any(ratio > 0.005):
        return []
    worst = int(np.argmax(ratio))
    # white noise of a difference grows with frequency: a low-pass of b of the rate leaves (2 b)^1.5 sqrt(2/3) pi / 2 of it
    band_hz = _FILTERED * float(motion_bandwidth_hz(part)[worst])
    left = 1.3 * (2.0 * min(band_hz * median, 0.5)) ** 1.5 * ratio[worst]
    return [
        Finding(
            "warning" if left > 0.05 else "note",
            f"position is quantised to {grain[worst]:.2g} (joint {recording.joint_names[worst]}): its plain "
            f"difference over one step is off by {100.0 * ratio[worst]:.2g} % of the speed, behind a filter of {_FILTERED:g} "
            f"times the band of the motion by {100.0 * left:.2g} %",
            "identify filters position before it differentiates it; a finer encoder or a faster motion shows more",
            where=named(recording, ratio > 0.005),
            code="quantised_position",
            values={"grain": grain, "velocity_error": blur},
        )
    ]


def _signal(recording: Recording, name: str, grain: Array, size: Array) -> list[Finding]:
    coarse = (grain > 0.02 * size) & (size > 0.0)
    if not coarse.any():
        return []
    worst = int(np.argmax(np.where(coarse, grain / np.maximum(size, 1e-300), 0.0)))
    return [
        Finding(
            "warning" if grain[worst] > 0.2 * size[worst] else "note",
            f"{name} of joint {', '.join(named(recording, coarse))} is quantised coarsely, to "
            f"{grain[worst]:.2g} where it varies by {size[worst]:.2g}",
            "log it with more digits, or move with larger amplitude",
            where=named(recording, coarse),
            code=f"quantised_{name}",
            values={"grain": grain},
        )
    ]


def _grain(column: Array) -> float:
    """The step that all values are multiples of, zero where there is none."""
    levels = np.unique(column)
    if len(levels) < 3 or (len(levels) > 0.9 * len(column) + 2 and len(column) > 100):
        # As many levels as rows: continuous, unless digits were cut in writing.
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


def check_saturation(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Torque or current that stays at its largest value, or at the limit of the joint."""
    findings, facts = [], dict[str, Any]()
    moving = np.ones(recording.n_samples, dtype=np.bool_)
    moving[1:] = (np.diff(recording.position, axis=0) != 0.0).any(axis=1)
    for name in ("torque", "current"):
        values = getattr(recording, name)
        if values is None:
            continue
        share = np.array([_clipped_share(column, moving) for column in values.T])
        facts[f"{name}_clipped_share"] = share
        hit = share > 0.001
        if robot is not None and fits(recording, robot) and name == "torque":
            limits, sizes = robot.limits("tau_max"), np.abs(values)
            # a limit that the signal exceeds did not cut it off: that is told as such, by the check of limits
            inside = np.quantile(sizes, 0.999, axis=0) <= 1.02 * limits
            at_limit = np.where(inside, np.mean(sizes >= 0.999 * limits, axis=0), 0.0)
            hit |= at_limit > 0.001
            share = np.maximum(share, at_limit)
        if hit.any():
            worst = int(np.argmax(share))
            findings.append(
                Finding(
                    "warning",
                    f"{name} of joint {', '.join(named(recording, hit))} is cut off at its extreme, in up to "
                    f"{100.0 * share[worst]:.2g} % of the rows",
                    "leave those rows out or move with less torque: a cut-off signal is not what drives the robot",
                    where=named(recording, hit),
                    code="saturation",
                    values={"share": share},
                )
            )
    return DataCheck(tuple(findings), facts)


_PILED = 4.0  # times as many rows at an extreme as at the values next to it, where a signal is cut off


def _clipped_share(column: Array, moving: BoolArray) -> float:
    """Share of rows that stay at the very largest or smallest value for five rows and more while the robot moves."""
    total = 0
    if np.ptp(column) == 0.0:
        return 0.0
    for extreme in (column.max(), column.min()):
        there = (column == extreme) & moving
        edges = np.flatnonzero(np.diff(np.concatenate([[0], there.astype(np.int8), [0]])))
        lengths = edges[1::2] - edges[::2]
        held = int(lengths[lengths >= 5].sum())
        if held and _piled_up(column, extreme):
            total += held
    return total / len(column)


def _piled_up(column: Array, extreme: float) -> bool:
    """Whether far more rows lie at an extreme than at the values next to it.

    A signal that is cut off has there all rows that would lie beyond; the peak of one in steps is at most 2.4 times as
    long on its last step as on the one before.
    """
    levels, counts = np.unique(column, return_counts=True)
    ordered = counts if extreme == levels[0] else counts[::-1]
    return bool(ordered[0] > _PILED * ordered[1:3].max(initial=0))


def check_constant(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Signals that never change although the joint moves."""
    findings = []
    # against a robot a single torque is named once more, and then left out
    apart = robot is not None and robot.coupling is None and recording.n_joints > 1
    for name in ("velocity", "torque", "current"):
        values = getattr(recording, name)
        if values is None:
            continue
        dead = (np.ptp(values, axis=0) == 0.0) & (np.ptp(recording.position, axis=0) > 1e-3)
        if dead.any():
            findings.append(
                Finding(
                    "note" if name == "torque" and apart else "error",
                    f"{name} of joint {', '.join(named(recording, dead))} never changes although the joint moves",
                    "check the column and the sensor",
                    where=named(recording, dead),
                    code="dead_signal",
                )
            )
    return DataCheck(tuple(findings), {})


_DEGREES = 180.0 / np.pi
_UNLIKE = 0.3  # part of a velocity that the derivative of position leaves unexplained before it is another signal
_QUANTA = 100.0  # steps of the encoder that a joint must move: the derivative of fewer is that of rounding
_MOTION = 3.0  # times the bandwidth of the motion, below which a noisy velocity is compared
_DIFFERENCE = Finding(
    "note",
    "logged velocity is the difference of the last two logged positions, half a step late",
    "identify takes velocity from position (--velocity logged keeps the logged one); in Python: Differentiate(velocity='position')",
    code="velocity_difference",
)


def check_velocity(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Velocity that is absent, unlike the derivative of position, in another unit, or late."""
    if recording.velocity is None:
        fix = "it is taken from position (--velocity position); in Python: Differentiate(velocity='position')"
        return DataCheck((Finding("note", "the log has no velocity", fix, code="no_velocity"),), {})
    if longest_part(recording).n_samples < FEWEST_ROWS:
        return NOTHING
    lag = velocity_lag(recording)
    facts: dict[str, Any] = {
        "velocity_lag_s": lag.seconds,
        "velocity_scale": lag.scale,
        "velocity_mismatch": lag.unexplained,
    }
    part = longest_part(recording)
    grain = np.array([_grain(column) for column in part.position.T])
    moves = np.asarray(np.ptp(part.position, axis=0) > np.maximum(1e-3, _QUANTA * grain))
    if not moves.any():
        return DataCheck((), facts)
    alike = moves & (lag.unexplained < _UNLIKE)
    if (moves & ~alike).any():  # a noisy velocity is no wrong one: what counts is the band of the motion
        alike = moves & (alike | (velocity_lag(recording, _MOTION).unexplained < _UNLIKE))
    findings = _unlike(recording, lag, moves, alike)
    if alike.any():
        off = alike & (np.abs(lag.scale - 1.0) > 0.05)
        if off.any():
            findings.append(_scale(recording, lag, off))
        facts["velocity_lag_typical_s"] = float(np.median(lag.seconds[alike]))
        findings += [_DIFFERENCE] if is_difference(recording) else _late(recording, lag, facts["velocity_lag_typical_s"])
    return DataCheck(tuple(findings), facts)


def _unlike(recording: Recording, lag: Lag, moves: BoolArray, alike: BoolArray) -> list[Finding]:
    values = {"unexplained": lag.unexplained}
    if not alike.any():
        return [
            Finding(
                "error",
                "logged velocity is not the derivative of logged position in any joint",
                "take velocity from position, and check which columns hold what",
                where=named(recording, moves),
                code="velocity_unrelated",
                values=values,
            )
        ]
    unlike = named(recording, moves & ~alike)
    if not unlike:
        return []
    return [
        Finding(
            "warning",
            f"logged velocity of joint {', '.join(unlike)} is not the derivative of its position",
            "take velocity from position, --velocity position; in Python: Differentiate(velocity='position')",
            where=unlike,
            code="velocity_mismatch",
            values=values,
        )
    ]


def _late(recording: Recording, lag: Lag, typical: float) -> list[Finding]:
    if abs(typical) <= max(1e-3, 0.25 * float(np.median(np.diff(recording.time)))):
        return []
    return [
        Finding(
            "warning",
            f"logged velocity {'lags' if typical > 0 else 'leads'} the derivative of position by "
            f"{1e3 * abs(typical):.1f} ms",
            f"identify takes velocity from position where that predicts torque better (--velocity position always); in Python: "
            f"Shift({typical:.4g})",
            code="velocity_lag",
            values={"lag_s": lag.seconds},
        )
    ]


def _scale(recording: Recording, lag: Lag, off: BoolArray) -> Finding:
    scale = float(np.median(lag.scale[off]))
    known = {
        _DEGREES: "velocity is in degrees per second and position in radians",
        1.0 / _DEGREES: "position is in degrees and velocity in radians per second",
        -1.0: "velocity has the opposite sign of position",
        30.0 / np.pi: "velocity is in revolutions per minute",
        1.0 / (2.0 * np.pi): "velocity is in revolutions per second",
    }
    reason = next((text for value, text in known.items() if abs(scale / value - 1.0) < 0.03), None)
    why = reason or "velocity is on another side of the gearbox or in another unit"
    return Finding(
        "error",
        f"logged velocity of joint {', '.join(named(recording, off))} is {scale:.4g} times dq/dt: {why}",
        'state the unit in a mapping file (--mapping FILE), units = {velocity = "deg/s"}, give --gear-ratios with --side motor, or '
        "take velocity from position with --velocity position",
        where=named(recording, off),
        code="velocity_scale",
        values={"scale": lag.scale},
    )
