"""Torque without gravity: gravity was subtracted before logging, or it is an estimate of external torque."""

from __future__ import annotations

import numpy as np

from dynid.recording.finding import Finding
from dynid.recording.motion import Recording
from dynid.validation.torque_checks.fit import ModelFit, chosen_joints


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
