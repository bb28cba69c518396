"""The complete data check: the log alone, and its torque against the nominal model.

The nominal model, scaled, and friction are fitted to the recorded torque (:mod:`dynid.validation.model_fit`). Gravity without a
share in the torque was subtracted before, or, where friction and inertia are missing too, this is an external torque; a
negative coefficient is a sign; a common factor is amperes or the wrong side of the gearbox; torque may come late. Where the fit
explains the torque badly, and well once the columns of two joints are exchanged, these columns are likely exchanged.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.finding import DataCheck, Finding
from dynid.model.robot import Robot
from dynid.signals.checks import check_signals
from dynid.signals.measures import first_rows, longest_part, named
from dynid.signals.recording import Recording
from dynid.signals.steps.clock import nominal_period_s
from dynid.signals.stream import RecordingStream
from dynid.validation.misread_logs import misread_columns, tilted_base, without_gravity
from dynid.validation.model_fit import ModelFit, RigidFit, fit_nominal, fitted_model, smooth_samples
from dynid.validation.torque_channels import foreign_channels

_STREAM_ROWS = 1_000_000
_LEVELS = 10  # values of a column that is no constant and no switch
_STANDS = 1e-3  # rad or m: a joint that moves less stands, and what varies in its torque is friction and noise


def check_recording(recording: Recording | RecordingStream, robot: Robot | None = None) -> DataCheck:
    """What is wrong with a log; with a robot, also against its names, limits and nominal dynamics.

    Args:
        recording: a log, or a stream, of which the first million rows are checked.
        robot: the robot; None to check the log alone.

    Returns:
        the findings, the gravest first, and the facts they were drawn from.

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
    if not comparable or recording.n_samples < 64:
        return DataCheck((), {})
    copied = _copied(recording)
    if (
        copied or not (np.ptp(recording.position, axis=0) > _STANDS).any()
    ):  # a robot that stands tells nothing of sign and unit
        return DataCheck(tuple(copied), {})
    if not np.any(robot.parameters.inertials):
        return DataCheck(
            (
                *foreign_channels(recording, robot),
                Finding(
                    "note",
                    f"robot '{robot.name}' has no inertials, so torque was not compared with a nominal model",
                    "use a description with masses, such as the manufacturer's URDF, to have sign, unit and lag checked",
                    code="no_nominal",
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
    # What exchanged columns or a column without torque do to the coefficients needs no finding of its own.
    findings = [] if recording.source.ignored else misread_columns(recording, robot)
    if not findings and recording.torque is not None and not recording.source.ignored:  # most joints in another unit
        findings = [one for one in torque_scale(recording, fit) if one.level == "error"]
    findings = findings or foreign_channels(recording, robot)
    if not recording.source.ignored:
        findings = findings or _judged(recording, robot, fit)
    if recording.torque is None:
        with np.errstate(divide="ignore"):
            facts["drive_gain_guess"] = 1.0 / fit.gravity
    return DataCheck(tuple(findings), facts)


def _copied(recording: Recording) -> list[Finding]:
    """Torque columns that hold the same numbers, row by row: noise of two sensors never agrees."""
    name = "torque" if recording.torque is not None else "motor current"
    values = recording.torque if recording.torque is not None else recording.current
    assert values is not None
    telling = [j for j in range(recording.n_joints) if len(np.unique(values[:, j])) > _LEVELS]
    found = []
    for i, j in combinations(telling, 2):
        if np.array_equal(values[:, i], values[:, j]):
            joints = (recording.joint_names[i], recording.joint_names[j])
            found.append(
                Finding(
                    "error",
                    f"{name} of joints {joints[0]} and {joints[1]} is the same in every row: one column was read for both",
                    "name the column of each joint in a mapping file (--mapping FILE): torque = [..]",
                    where=joints,
                    code="copied_torque",
                )
            )
    return found


def _judged(recording: Recording, robot: Robot, fit: ModelFit) -> list[Finding]:
    """What the coefficients of the fit tell."""
    if recording.torque is None:
        scale = [*torque_sign(recording, fit, "motor current"), *drive_gain_guess(recording, fit)]
        return [*scale, *torque_lag(recording, robot, fit, "motor current")]
    # Without gravity in it the scale of the torque cannot be judged.
    scale = absent_gravity(recording, robot, fit) or [*torque_sign(recording, fit, "torque"), *torque_scale(recording, fit)]
    # Gravity may be turned round where inertia is not: the robot hangs, and no sign is wrong.
    hangs = bool(np.any((fit.gravity < 0.0) & (fit.inertia > 0.0)))
    tilt = tilted_base(recording, robot, hangs=hangs) if hangs or not scale else []
    if hangs and tilt:
        scale = []
    return [*scale, *tilt, *counterbalance(recording, fit), *torque_lag(recording, robot, fit, "torque")]


def counterbalance(recording: Recording, fit: ModelFit) -> list[Finding]:
    """Joints whose own position carries part of their gravity, which is no fault of the log."""
    if not fit.balanced.any():
        return []
    joints = named(recording, fit.balanced)
    numbers = np.flatnonzero(fit.balanced) + 1
    options = " ".join(f"--spring {number}=linear" for number in numbers.tolist())
    return [
        Finding(
            "note",
            f"torque of joint {', '.join(joints)} carries nominal gravity only beside a torque of the joint's own position: it is "
            "likely counterbalanced",
            f"put the spring into the model with {options}, or =potential for any other law",
            where=joints,
            code="counterbalance",
            values=fit.as_values(),
        )
    ]


def absent_gravity(recording: Recording, robot: Robot, fit: ModelFit) -> list[Finding]:
    """Torque of joints that gravity loads in which it has next to no share, where a fitted model confirms it."""
    loaded = np.isfinite(fit.gravity_share)
    share = float(np.median(fit.gravity_share[loaded])) if loaded.any() else 1.0
    blank = loaded.any() and float(np.median(fit.explained[loaded])) < 0.3
    if share >= 0.1 and not blank:
        return []
    joints = named(recording, loaded)
    without, explains = without_gravity(recording, robot)
    if float(np.median(fit.explained)) > 0.5:
        if not without:  # a counterbalance or wrong masses hide it from the description, not from a model that is fitted
            return []
        return [
            Finding(
                "error",
                f"gravity makes up {100.0 * share:.0f} % of the torque of the joints it loads, friction and inertia the "
                "rest: gravity was likely subtracted already",
                "log the measured or commanded joint torque with gravity, or identify with --gravity 0,0,0",
                where=joints,
                code="gravity_free",
                values=fit.as_values(),
            )
        ]
    if explains:
        return []
    return [
        Finding(
            "error",
            "torque shows neither gravity nor friction nor inertia: it is likely an estimate of external torque",
            "log the measured joint torque, not one from which a model was subtracted",
            where=joints,
            code="external_torque",
            values=fit.as_values(),
        )
    ]


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
    joints = named(recording, wrong)
    return [
        Finding(
            "error",
            f"{what} of joint {', '.join(joints)} has the opposite sign of the nominal model's",
            'turn it round in a mapping file (--mapping FILE), torque = [.., "-tau2", ..], or the whole joint, sign = {joint = -1}; '
            "or check the direction of gravity",
            where=joints,
            code="torque_sign",
            values=fit.as_values(),
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
    # a unit or a side of the gearbox is that of most joints; whatever a single factor means, a fitted model has the right masses
    grave = (ratio > _SMALL or guess == _UNIT) and 2 * np.count_nonzero(off) >= np.count_nonzero(np.isfinite(size))
    joints = named(recording, off)
    return [
        Finding(
            "error" if grave else "note",
            f"torque of joint {', '.join(joints)} is {1.0 / ratio:.3g} times the nominal model's: {guess}",
            fix,
            where=joints,
            code="torque_scale",
            values={**fit.as_values(), "ratio": 1.0 / size},
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
    joints = named(recording, seen)
    guesses = ", ".join(f"{name} {1.0 / c:.3g}" for name, c in zip(joints, fit.gravity[seen], strict=True))
    return [
        Finding(
            "note",
            f"against nominal gravity the drive gains would be about {guesses} N m/A",
            "give measured ones with --drive-gains; these are only as good as the nominal masses",
            where=joints,
            code="drive_gains",
            values={"gains": 1.0 / fit.gravity[seen]},
        )
    ]


def _factor(fit: ModelFit) -> Array:
    """Torque over that of the nominal model, by gravity where the motion shows it, else by inertia."""
    return np.where(np.isfinite(fit.gravity), fit.gravity, fit.inertia)


_FITTED_ROWS = 2000  # rows that a model is fitted to when a lag is to be confirmed
_PAYS = 0.97  # of the residual must be left at most before a shift of the torque is advised


def torque_lag(recording: Recording, robot: Robot, fit: ModelFit, what: str) -> list[Finding]:
    """Torque, or motor current, that lags or leads the motion by more than the joints disagree on it."""
    lag = fit.common_lag_s
    # Friction before sliding looks like a lag too, so the joints have to agree.
    uncertain = not np.isfinite(lag) or (recording.n_joints > 1 and not abs(lag) > 3.0 * fit.lag_error_s)
    if uncertain or abs(lag) <= max(3e-3, 0.5 * nominal_period_s(recording.time)):
        return []
    if not _shift_pays(recording, robot, lag):  # a nominal model that is off looks like a lag as well
        return []
    error = f" (+-{1e3 * fit.lag_error_s:.1f})" if np.isfinite(fit.lag_error_s) else ""
    return [
        Finding(
            "note",
            f"{what} {'lags' if lag > 0 else 'leads'} position by {1e3 * abs(lag):.1f} ms{error}, judged by the nominal "
            "model with friction",
            f"log torque and position on one clock; in Python: Shift({lag:.3g}, signals=('torque',))",
            code="torque_lag",
            values={"lag_s": fit.lag_s},
        )
    ]


def _shift_pays(recording: Recording, robot: Robot, lag_s: float) -> bool:
    """Whether a model fitted to the shifted torque leaves clearly less of it than one fitted to the torque as it is."""
    samples = smooth_samples(longest_part(recording))
    assert samples.torque is not None
    dt = float(samples.time[-1] - samples.time[0]) / (len(samples) - 1)
    late = round(lag_s / dt)
    rows = np.arange(abs(late), len(samples) - abs(late), max(1, len(samples) // _FITTED_ROWS))
    model = fitted_model(robot)
    motion = samples.position[rows], samples.velocity[rows], samples.acceleration[rows]
    left = [RigidFit.of(model, *motion, samples.torque[rows + shift]).unexplained() for shift in (0, late)]
    return left[1] < _PAYS**2 * left[0]
