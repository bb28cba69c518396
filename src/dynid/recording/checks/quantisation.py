"""Signals that are quantised coarsely."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.recording.checks.shared import FEWEST_ROWS, NOTHING, named
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.lag import longest_part, speed
from dynid.recording.motion import Recording
from dynid.robot.model import Robot


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
    return [
        Finding(
            "quantised_position",
            "warning" if ratio[worst] > 0.05 else "note",
            f"position is quantised to {grain[worst]:.2g} (joint {recording.joint_names[worst]}): its plain "
            f"difference over one step is off by {100.0 * ratio[worst]:.2g} % of the speed",
            "identify filters position before it differentiates it; a finer encoder or a faster motion shows more",
            named(recording, ratio > 0.005),
            {"grain": grain, "velocity_error": blur},
        )
    ]


def _signal(recording: Recording, name: str, grain: Array, size: Array) -> list[Finding]:
    coarse = (grain > 0.02 * size) & (size > 0.0)
    if not coarse.any():
        return []
    worst = int(np.argmax(np.where(coarse, grain / np.maximum(size, 1e-300), 0.0)))
    return [
        Finding(
            f"quantised_{name}",
            "warning" if grain[worst] > 0.2 * size[worst] else "note",
            f"{name} of joint {', '.join(named(recording, coarse))} is quantised coarsely, to "
            f"{grain[worst]:.2g} where it varies by {size[worst]:.2g}",
            "log it with more digits, or move with larger amplitude",
            named(recording, coarse),
            {"grain": grain},
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
