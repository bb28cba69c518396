"""Torque without gravity: gravity was subtracted before logging, or it is an estimate of external torque."""

from __future__ import annotations

import numpy as np

from dynid.recording.finding import Finding
from dynid.recording.motion import Recording
from dynid.validation.torque_checks.fit import ModelFit, chosen_joints


def counterbalance(recording: Recording, fit: ModelFit) -> list[Finding]:
    """Joints whose own position carries part of their gravity, which is no fault of the log."""
    if not fit.balanced.any():
        return []
    joints = chosen_joints(recording, fit.balanced)
    numbers = np.flatnonzero(fit.balanced) + 1
    options = " ".join(f"--spring {number}=linear" for number in numbers.tolist())
    return [
        Finding(
            "counterbalance",
            "note",
            f"torque of joint {', '.join(joints)} carries nominal gravity only beside a torque of the joint's own position: it is "
            "likely counterbalanced",
            f"put the spring into the model with {options}, or =potential for any other law",
            joints,
            fit.as_values(),
        )
    ]


def absent_gravity(recording: Recording, fit: ModelFit) -> list[Finding]:
    """Torque of joints that gravity loads in which it has next to no share."""
    loaded = np.isfinite(fit.gravity_share)
    share = float(np.median(fit.gravity_share[loaded])) if loaded.any() else 1.0
    blank = loaded.any() and float(np.median(fit.explained[loaded])) < 0.3
    if share >= 0.1 and not blank:
        return []
    joints = chosen_joints(recording, loaded)
    if float(np.median(fit.explained)) > 0.5:
        return [
            Finding(
                "gravity_free",
                "error",
                f"gravity makes up {100.0 * share:.0f} % of the torque of the joints it loads, friction and inertia the "
                "rest: gravity was likely subtracted already",
                "log the measured or commanded joint torque with gravity, or identify with --gravity 0,0,0",
                joints,
                fit.as_values(),
            )
        ]
    return [
        Finding(
            "external_torque",
            "error",
            "torque shows neither gravity nor friction nor inertia: it is likely an estimate of external torque",
            "log the measured joint torque, not one from which a model was subtracted",
            joints,
            fit.as_values(),
        )
    ]
