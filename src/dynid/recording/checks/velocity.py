"""Logged velocity against the derivative of logged position."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import BoolArray
from dynid.recording.checks.shared import FEWEST_ROWS, NOTHING, named
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.lag import Lag, is_difference, longest_part, velocity_lag
from dynid.recording.motion import Recording
from dynid.robot.model import Robot

_DEGREES = 180.0 / np.pi
_DIFFERENCE = Finding(
    "velocity_difference",
    "note",
    "logged velocity is the difference of the last two logged positions, half a step late",
    "identify takes velocity from position (--velocity logged keeps the logged one); in Python: Differentiate(velocity='position')",
)


def check_velocity(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Velocity that is absent, unlike the derivative of position, in another unit, or late."""
    if recording.velocity is None:
        fix = "it is taken from position (--velocity position); in Python: Differentiate(velocity='position')"
        return DataCheck((Finding("no_velocity", "note", "the log has no velocity", fix),), {})
    if longest_part(recording).n_samples < FEWEST_ROWS:
        return NOTHING
    lag = velocity_lag(recording)
    facts: dict[str, Any] = {
        "velocity_lag_s": lag.seconds,
        "velocity_scale": lag.scale,
        "velocity_mismatch": lag.unexplained,
    }
    moves = np.asarray(np.ptp(recording.position, axis=0) > 1e-3)
    if not moves.any():
        return DataCheck((), facts)
    alike = moves & (lag.unexplained < 0.3)
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
                "velocity_unrelated",
                "error",
                "logged velocity is not the derivative of logged position in any joint",
                "take velocity from position, and check which columns hold what",
                named(recording, moves),
                values,
            )
        ]
    unlike = named(recording, moves & ~alike)
    if not unlike:
        return []
    return [
        Finding(
            "velocity_mismatch",
            "warning",
            f"logged velocity of joint {', '.join(unlike)} is not the derivative of its position",
            "take velocity from position, --velocity position; in Python: Differentiate(velocity='position')",
            unlike,
            values,
        )
    ]


def _late(recording: Recording, lag: Lag, typical: float) -> list[Finding]:
    if abs(typical) <= max(1e-3, 0.25 * float(np.median(np.diff(recording.time)))):
        return []
    return [
        Finding(
            "velocity_lag",
            "warning",
            f"logged velocity {'lags' if typical > 0 else 'leads'} the derivative of position by "
            f"{1e3 * abs(typical):.1f} ms",
            f"identify takes velocity from position where that predicts torque better (--velocity position always); in Python: "
            f"Shift({typical:.4g})",
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
        "velocity_scale",
        "error",
        f"logged velocity of joint {', '.join(named(recording, off))} is {scale:.4g} times dq/dt: {why}",
        'state the unit in a mapping file (--mapping FILE), units = {velocity = "deg/s"}, give --gear-ratios with --side motor, or '
        "take velocity from position with --velocity position",
        named(recording, off),
        {"scale": lag.scale},
    )
