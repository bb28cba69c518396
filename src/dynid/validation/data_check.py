"""The complete data check: the log alone, and its torque against the nominal model.

The nominal model, scaled, and friction are fitted to the recorded torque (``torque_checks/fit.py``). Gravity without a
share in the torque was subtracted before, or, where friction and inertia are missing too, this is an external torque; a
negative coefficient is a sign; a common factor is amperes or the wrong side of the gearbox. Where the fit explains the
torque badly, and well once the columns of two joints are exchanged, these columns are likely exchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.recording.check import check_signals
from dynid.recording.cutoff import first_rows
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.lag import longest_part
from dynid.recording.motion import Recording
from dynid.recording.stream import RecordingStream
from dynid.robot.model import Robot
from dynid.validation.torque_checks.exchanged import exchanged_joints
from dynid.validation.torque_checks.fit import ModelFit, fit_nominal
from dynid.validation.torque_checks.gravity import absent_gravity, counterbalance
from dynid.validation.torque_checks.lag import torque_lag
from dynid.validation.torque_checks.misread import misread_columns
from dynid.validation.torque_checks.scale import drive_gain_guess, torque_scale, torque_sign
from dynid.validation.torque_checks.tilt import tilted_base

_STREAM_ROWS = 1_000_000


def check_recording(recording: Recording | RecordingStream, robot: Robot | None = None) -> DataCheck:
    """What is wrong with a log; with a robot, also against its names, limits and nominal dynamics.

    Args:
        recording: a log, or a stream, of which the first million rows are checked.
        robot: the robot; None to check the log alone.

    Examples:
        >>> import dynid
        >>> check = dynid.check_recording(dynid.demo_recording(torque_noise=0.01), dynid.demo_robot())
        >>> len(check.findings) >= 0
        True
    """
    if isinstance(recording, RecordingStream):
        recording = first_rows(recording, _STREAM_ROWS)
    check = check_signals(recording, robot)
    if robot is None or check.find("impossible_value") is not None:
        return check
    return check.merged(check_against_model(recording, robot))


def check_against_model(recording: Recording, robot: Robot) -> DataCheck:
    """Findings on the torque, or the motor current, against the nominal model."""
    recording = longest_part(recording).cut(0)  # a value of its own: what checks keep under it ends with it
    signal = recording.torque if recording.torque is not None else recording.current
    comparable = recording.joint_names == robot.joint_names and not robot.floating and signal is not None
    if not comparable or recording.n_samples < 64 or not np.ptp(recording.position, axis=0).any():
        return DataCheck((), {})
    if not np.any(robot.parameters.inertials):
        return DataCheck(
            (
                Finding(
                    "no_nominal",
                    "note",
                    f"robot '{robot.name}' has no inertials, so torque was not compared with a nominal model",
                    "use a description with masses, such as the manufacturer's URDF, to have sign, unit and lag checked",
                ),
            ),
            {},
        )
    fit = fit_nominal(recording, robot)
    facts: dict[str, Any] = {
        "model_gravity": fit.gravity,
        "model_inertia": fit.inertia,
        "model_gravity_share": fit.gravity_share,
        "model_explained": fit.explained,
        "torque_lag_s": fit.lag_s,
        "torque_lag_common_s": fit.common_lag_s,
        "torque_lag_error_s": fit.lag_error_s,
    }
    # What exchanged columns do to the coefficients needs no finding of its own.
    findings = exchanged_joints(recording, robot, fit) or misread_columns(recording, robot) or _judged(recording, robot, fit)
    if recording.torque is None:
        with np.errstate(divide="ignore"):
            facts["drive_gain_guess"] = 1.0 / fit.gravity
    return DataCheck(tuple(findings), facts)


def _judged(recording: Recording, robot: Robot, fit: ModelFit) -> list[Finding]:
    """What the coefficients of the fit tell."""
    if recording.torque is None:
        scale = [*torque_sign(recording, fit, "motor current"), *drive_gain_guess(recording, fit)]
        return [*scale, *torque_lag(recording, robot, fit, "motor current")]
    # Without gravity in it the scale of the torque cannot be judged.
    scale = absent_gravity(recording, fit) or [*torque_sign(recording, fit, "torque"), *torque_scale(recording, fit)]
    # Gravity may be turned round where inertia is not: the robot hangs, and no sign is wrong.
    hangs = bool(np.any((fit.gravity < 0.0) & (fit.inertia > 0.0)))
    tilt = tilted_base(recording, robot, hangs=hangs) if hangs or not scale else []
    if hangs and tilt:
        scale = []
    return [*scale, *tilt, *counterbalance(recording, fit), *torque_lag(recording, robot, fit, "torque")]
