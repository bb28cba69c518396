"""Sign and scale of torque or motor current against the nominal model."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.recording.finding import Finding
from dynid.recording.motion import Recording
from dynid.validation.torque_checks.fit import ModelFit, chosen_joints

_UNLIKE = 1.6  # factor of torque against the nominal model above which it is reported
_SMALL = 3.0  # times that nominal torque is larger: no description is so far off
_LARGE = 1.0 / 30.0  # times that it is smaller: placeholders in place of masses may reach ten
_ANOTHER_BODY = 10.0  # times the usual factor of joints from which on one has a body that the description lacks
_UNIT = "it is likely in another unit"


def torque_sign(recording: Recording, fit: ModelFit, what: str) -> list[Finding]:
    """Joints whose torque has the opposite sign."""
    factor = _factor(fit)
    size = np.abs(factor)
    usual = float(np.median(size[np.isfinite(size)])) if np.isfinite(size).any() else 0.0
    # a load beside an axis that the description loads with next to nothing is no sign
    wrong = np.isfinite(factor) & (factor < 0.0) & (size < _ANOTHER_BODY * usual) & (fit.explained > 0.5)
    if not wrong.any():
        return []
    joints = chosen_joints(recording, wrong)
    return [
        Finding(
            "torque_sign",
            "error",
            f"{what} of joint {', '.join(joints)} has the opposite sign of the nominal model's",
            'turn it round in a mapping file (--mapping FILE), torque = [.., "-tau2", ..], or the whole joint, sign = {joint = -1}; '
            "or check the direction of gravity",
            joints,
            fit.as_values(),
        )
    ]


def torque_scale(recording: Recording, fit: ModelFit) -> list[Finding]:
    """Joints whose torque is far from what the nominal model has: amperes, the motor side, another unit."""
    size = np.abs(_factor(fit))
    seen = np.isfinite(fit.gravity)
    # Rotors that the description does not know make inertia larger than its own: only gravity can show too much torque.
    off = np.isfinite(size) & ((size < 1.0 / _UNLIKE) | (seen & (size > _UNLIKE))) & (fit.explained > 0.5) & (size > 0.0)
    if not off.any():
        return []
    ratio = float(np.median(1.0 / size[off]))
    # a unit is that of all joints; a single one has a load that the description lacks
    guess, fix = _cause(ratio, unit=ratio < _LARGE and int(seen.sum()) > 1 and bool((size[seen] > 0.1 / _LARGE).all()))
    grave = ratio > _SMALL or guess == _UNIT
    joints = chosen_joints(recording, off)
    return [
        Finding(
            "torque_scale",
            "error" if grave else "warning",
            f"torque of joint {', '.join(joints)} is {1.0 / ratio:.3g} times the nominal model's: {guess}",
            fix,
            joints,
            {**fit.as_values(), "ratio": 1.0 / size},
        )
    ]


def _cause(ratio: float, *, unit: bool) -> tuple[str, str]:
    """What makes nominal torque ``ratio`` times the recorded one, and what to do about it."""
    suggested = f"(the nominal model suggests about {ratio:.3g})"
    if ratio > _SMALL:
        return (
            "it is likely motor current in ampere or torque at the motor side",
            f"give --drive-gains, or --gear-ratios with --side motor {suggested}",
        )
    if unit:
        return (
            _UNIT,
            f'state it in a mapping file (--mapping FILE): units = {{torque = "Nmm"}}, or "Ncm" {suggested}',
        )
    return (
        "it may be in another unit, or the load is not in the description",
        f"give --drive-gains, or --gear-ratios with --side motor {suggested}",
    )


def drive_gain_guess(recording: Recording, fit: ModelFit) -> list[Finding]:
    """Drive gains that nominal gravity suggests, for logs of motor current."""
    seen = np.isfinite(fit.gravity)
    if not seen.any():
        return []
    joints = chosen_joints(recording, seen)
    guesses = ", ".join(f"{name} {1.0 / c:.3g}" for name, c in zip(joints, fit.gravity[seen], strict=True))
    return [
        Finding(
            "drive_gains",
            "note",
            f"against nominal gravity the drive gains would be about {guesses} N m/A",
            "give measured ones with --drive-gains; these are only as good as the nominal masses",
            joints,
            {"gains": 1.0 / fit.gravity[seen]},
        )
    ]


def _factor(fit: ModelFit) -> Array:
    """Torque over that of the nominal model, by gravity where the motion shows it, else by inertia."""
    return np.where(np.isfinite(fit.gravity), fit.gravity, fit.inertia)
