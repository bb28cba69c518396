"""How far the torque of each joint can be trusted, and the grade that follows.

A model is used on other motion than that of its logs. What is expected to be wrong there has two parts:

    excess        the unseen error of the joint beyond what the noise of its sensor leaves; it comes from physics that the model lacks,
                  so it grows with other motion (``BEYOND``, set on simulated robots of known truth, see ``docs/truth.md``)
    uncertainty   what the noise in the estimate makes of random states: the positions of the log, speeds and accelerations
                  of both signs, and at least a tenth of the joint's limits, however little it moved

    expected^2 = (BEYOND excess)^2 + uncertainty^2

Both are relative to the joint's own torque, but to no less than ``LEAST_TORQUE`` times its noise.

On a floating base joints are judged by their own rows: torque while no unknown force acts on their leg. Force and moment of the base are
judged beside them, each like one more joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics, needs_load, transmitting
from dynid.dynamics.regressors import torque_regressor
from dynid.estimation.friction.fit import covariance_of_moves
from dynid.finding import BASE, Grade, JointGrade
from dynid.model.robot import Robot
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.signal_filter import STILL, to_samples
from dynid.signals.measures import sensor_noise
from dynid.signals.recording import Recording
from dynid.signals.steps.clock import nominal_period_s
from dynid.validation.prediction import PredictionError, predict, validate

GOOD, USABLE, HOPELESS = 0.05, 0.15, 0.50
"""Expected torque error of a joint up to which it is good, up to which it is named only, and from which no model is of use."""
BEYOND = 1.3
"""Factor from an error on unseen data of the same motion to that on other motion: the median over joints of logs with known truth."""
NOISY = 1.2
"""Factor on the noise floor up to which an error is taken for noise."""
LEAST_TORQUE = 5.0
"""Times the noise of its sensor that the torque of a joint counts for at least."""
LEAST_RANGE = 0.1
"""Share of its limits that a joint must be able to use, however little it moved."""
SLOW = 0.05
"""rad/s or m/s below which friction of a joint cannot be known; a slow axis is asked for ``SLOW`` of its limit."""
WRONG_GAIN, UNKNOWN = 0.10, HOPELESS
"""Errors to expect of a joint whose torque has another gain, and of one whose friction was not seen."""
WORST = 1000.0
"""Largest expected error that is told; without any torque it would have no end."""
STATES = 60
UNTOLD = 0.01
"""Coefficient from which a parameter counts as a part of a base parameter that the data do not show."""
SIGN_TURNS = 0.03
"""Part of the largest speed over which a sign turns."""
FOLLOWS = 0.5
"""Part of the variance of a torque that its motion must explain to be that of a motor."""
FLOOR_ROWS = 20_000
"""Rows of a log that the noise floor is found on."""
_UNLIMITED = 3.0
"""rad, rad/s, m or m/s: what counts as the limit of a joint that has none."""


class _Judged(NamedTuple):
    """What grades follow from, an entry for each joint, and for force and moment of a floating base before them."""

    names: tuple[str, ...]
    error: Array
    """Root mean square of what is not predicted."""
    torque: Array
    """Root mean square of what is predicted; zero where torque was left out."""
    noise: Array
    """Standard deviation of the noise of its sensor."""
    floor: Array
    """What noise of all sensors leaves unknown in the band that is judged."""
    uncertain: Array
    """Standard deviation of the prediction over random states, relative to the torque there."""


def grade_joints(run: IdentificationResult) -> tuple[JointGrade, ...]:
    """The grade of every joint that torque was judged of, and of a floating base; none where a run has no samples of motion."""
    judged = run.validation.total if run.validation is not None else run.identification
    if judged is None or run.data is None or not run.samples or len(judged.rmse) != run.robot.n_dof:
        return ()
    names, error, torque, noise, floor, uncertain = (_judged_rows if run.robot.floating else _judged_torque)(run, judged)
    size = np.maximum(torque, LEAST_TORQUE * noise)
    size = np.maximum(size, 1e-12 * max(float(size.max(initial=0.0)), 1e-300))
    excess = np.sqrt(np.maximum(error**2 - (NOISY * floor) ** 2, 0.0)) / size
    expected = np.hypot(BEYOND * excess, uncertain)
    faults = _one_way(run, size[-len(run.robot.driven) :], noise[-len(run.robot.driven) :]) | _faults(run)
    found = []
    for j, name in enumerate(names):
        left_out = not torque[j] > 0.0
        fault, least = faults.get(name, ("", 0.0))
        if left_out and not run.robot.floating:
            fault, least = "its torque was left out", _unexplained(run, j)
        value = min(max(float(expected[j]), least), WORST) if np.isfinite(expected[j]) else WORST
        reason = fault if least > GOOD and least >= value else _reason(BEYOND * float(excess[j]), value)
        unseen = None if run.validation is None or left_out else float(error[j] / torque[j])
        left = float(floor[j] / (size[j] if left_out else torque[j]))
        found.append(JointGrade(name, unseen, left, value, _grade(value), reason))
    return tuple(found)


def _judged_torque(run: IdentificationResult, judged: PredictionError) -> _Judged:
    """Joints on a fixed base, by their torque."""
    assert run.data is not None
    recordings = run.data.unseen.recordings if run.data.unseen is not None else run.recordings
    noise = sensor_noise([one.torque for one in recordings if one.torque is not None])
    floor, left_out = _noise_floor(run, recordings, noise), np.isnan(judged.relative_error_per_channel)
    error, noise, floor = (np.where(left_out, 0.0, one) for one in (judged.rmse, noise, floor))
    uncertain = _uncertainty(run, noise, _covariance_by_noise(run))
    return _Judged(run.robot.dof_names, error, measured_rms(judged), noise, floor, uncertain)


def _judged_rows(run: IdentificationResult, judged: PredictionError) -> _Judged:
    """Joints and base of a robot on a floating base, by the rows that contact forces have left; a base that is carried has none."""
    from dynid.pipeline.floating import row_noise, trunk_wrench

    assert run.data is not None
    assert run.filter is not None
    logs = run.data.known if run.data.unseen is None else run.data.unseen
    sensor = sensor_noise([one.torque for one in logs.windows if one.torque is not None])
    noise, floor = row_noise(run.rows, run.model, logs, run.filter, sensor)
    known = np.full_like(floor, np.inf) if run.identification is None else run.identification.rmse
    real = np.minimum(known / np.where(floor > 0.0, floor, np.inf), 1.0)  # fast motion looks like noise, and is explained
    torque, uncertain = measured_rms(judged), _uncertainty(run, real * sensor, _covariance_by_noise(run))
    if judged.rmse[:6].any() and not torque[:6].any():  # nothing pushes the base: legs and trunk push each other
        torque[:6] = trunk_wrench(run.model, logs.windows[0])
    parts = [slice(0, 3), slice(3, 6)] if judged.rmse[:6].any() else []
    groups = [*parts, *(slice(d, d + 1) for d in run.robot.driven)]
    values = (
        np.array([np.sqrt(np.square(one[group]).mean()) for group in groups])
        for one in (judged.rmse, torque, real * noise, real * floor, uncertain)
    )
    return _Judged((*BASE[: len(parts)], *(joint.name for joint in run.robot.driven_joints)), *values)


def measured_rms(judged: PredictionError) -> Array:
    """Root mean square of what was measured of each channel; zero where nothing was."""
    own = judged.relative_error_per_channel
    return np.asarray(np.where(np.isfinite(own) & (own > 0.0), judged.rmse / np.where(own > 0.0, own, 1.0), 0.0))


def overall_grade(joints: Sequence[JointGrade]) -> Grade:
    """The worst joint decides; a model is not to be used where half of the joints are bad, or one is hopeless."""
    bad = [joint for joint in joints if joint.expected > USABLE]
    if 2 * len(bad) >= len(joints) > 0 or any(joint.grade == "do not use" for joint in joints):
        return "do not use"
    return "good" if all(joint.grade == "good" for joint in joints) else "usable"


def _noise_floor(run: IdentificationResult, recordings: Sequence[Recording], noise: Array) -> Array:
    """Torque of each joint, in the band that it is judged in, that its sensors leave unknown.

    White noise of the torque, and what the model predicts otherwise where positions and velocities have their noise once more:
    through accelerations, and through the sign of slow speeds.
    """
    if run.judged_hz is None or run.filter is None:
        return noise
    first, rng = recordings[0].rows(0, FLOOR_ROWS), np.random.default_rng(0)

    def noisier(values: Array) -> Array:
        return values + sensor_noise([values]) * rng.standard_normal(values.shape)

    speed = None if first.velocity is None else noisier(first.velocity)
    noisy = first.with_(position=noisier(first.position), velocity=speed)
    plain, shaken = (to_samples(one, run.filter, 0) for one in (first, noisy))
    otherwise = plain.with_torque(predict(run.model, shaken))
    moved = validate(run.model, run.model.parameters, otherwise, run.judged_hz).rmse
    passed = min(1.0, 2.0 * run.judged_hz * nominal_period_s(recordings[0].time))
    return np.asarray(np.hypot(noise * np.sqrt(passed), np.where(np.isfinite(moved), moved, 0.0)))


def _uncertainty(run: IdentificationResult, noise: Array, covariance: Array) -> Array:
    """Standard deviation of the predicted torque of each joint over random states, relative to its torque there."""
    q, v, a = _states(run.robot, run)
    torque = run.predict(q, v, a)
    load = torque if needs_load(run.robot) else None
    W = run.estimate.base.regressor(torque_regressor(run.robot, q, v, a, load))
    variance = ((W @ covariance) * W).sum(axis=2).mean(axis=0)
    size = np.maximum(np.sqrt((torque**2).mean(axis=0)), LEAST_TORQUE * noise)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / np.where(size > 0.0, size, np.inf))


def _covariance_by_noise(run: IdentificationResult) -> Array:
    """The covariance of the estimate without what torque that the model lacks adds to it: that shows in the excess."""
    misfit = {} if run.friction_choice is None else run.friction_choice.misfit
    return run.covariance - covariance_of_moves(run.estimate, misfit) if misfit else run.covariance


def _states(robot: Robot, run: IdentificationResult) -> tuple[Array, Array, Array]:
    """Random states within the range of the log, of both directions, and at least a part of the limits; a base moves as in the log."""
    joints, rng = robot.driven_joints, np.random.default_rng(0)
    whole = [
        np.concatenate([getattr(one, name) for one in run.samples]) for name in ("position", "velocity", "acceleration")
    ]
    base = [one[rng.integers(0, len(one), STATES) if robot.floating else slice(STATES), : -len(joints)] for one in whole]
    q, v, a = (one[:, -len(joints) :] for one in whole)
    span = np.array([joint.q_max - joint.q_min for joint in joints])
    fast = np.array([joint.dq_max for joint in joints])
    span, fast = (
        np.where(np.isfinite(one) & (one > 0.0), np.minimum(one, 2.0 * _UNLIMITED), _UNLIMITED) for one in (span, fast)
    )
    middle, half = 0.5 * (q.max(axis=0) + q.min(axis=0)), 0.5 * np.maximum(np.ptp(q, axis=0), LEAST_RANGE * span)
    speed = np.maximum(np.abs(v).max(axis=0), LEAST_RANGE * fast)
    pull = np.maximum(np.quantile(np.abs(a), 0.99, axis=0), speed**2 / np.maximum(half, LEAST_RANGE * span))
    limits = ((half, middle), (speed, 0.0), (pull, 0.0))
    moved = [rng.uniform(-one, one, (STATES, len(joints))) + at for one, at in limits]
    return tuple(map(np.hstack, zip(base, moved, strict=True)))  # type: ignore[return-value]


def _faults(run: IdentificationResult) -> dict[str, tuple[str, float]]:
    """Of joints whose log shows too little of them, or another gain: what was wrong, and the error to expect at least."""
    dry = any(effect.dry for effect in run.robot.effects)
    n = len(run.robot.driven)
    v = np.concatenate([one.velocity[:, -n:] for one in run.samples])
    fastest = np.abs(v).max(axis=0)
    reach = np.max([np.ptp(one.position[:, -n:], axis=0) for one in run.samples], axis=0)
    found = {
        one.joint: ("another gain of its torque explains the log better", WRONG_GAIN)
        for one in run.advice
        if "gain" in one.cause
    }
    for j, joint in enumerate(run.robot.driven_joints):
        if reach[j] < STILL:
            found[joint.name] = "it stood still, so its friction and what only its motion shows are not known", UNKNOWN
        elif dry and fastest[j] < SLOW * min(1.0, joint.dq_max):
            found[joint.name] = (
                f"it never moved faster than {fastest[j]:.2g} rad/s or m/s, so its friction is not known",
                UNKNOWN,
            )
    return found


def _one_way(run: IdentificationResult, size: Array, noise: Array) -> dict[str, tuple[str, float]]:
    """Of joints that never reversed: the error to expect in the other direction.

    Where slow motion shows how friction turns, Coulomb friction and offset are determined, as well as the form of the turn is known;
    else all of the friction may be offset.
    """
    driven = run.robot.driven
    v = np.concatenate([one.velocity[:, driven] for one in run.samples])
    one_way = np.flatnonzero((v.min(axis=0) >= 0.0) | (v.max(axis=0) <= 0.0))
    if not len(one_way) or not any(effect.dry for effect in run.robot.effects):
        return {}
    base, names = run.estimate.base, run.robot.parameters.names
    unknown = (~run.estimate.seen | (np.diagonal(run.covariance) <= 0.0)) @ (np.abs(base.K) > UNTOLD)
    speed = np.zeros(run.robot.n_dof)
    speed[driven] = 0.5 * np.abs(v).max(axis=0)
    rubs = np.abs(run.friction(speed))[0, driven] / size
    uncertain = _uncertainty(run, np.append(np.zeros(driven[0]), noise), run.covariance)[driven]
    why, found = "it never reversed, so its Coulomb friction is not told from its offset", {}
    for j in one_way:
        apart = not any(
            lost and name in {f"{kind}{run.robot.driven_numbers[j]}" for kind in ("fc", "fo", "fs", "fsig")}
            for name, lost in zip(names, unknown, strict=True)
        )
        found[run.robot.driven_joints[j].name] = why, min(float(uncertain[j] if apart else rubs[j]), USABLE)
    return found


def _unexplained(run: IdentificationResult, j: int) -> float:
    """Part of the torque of a joint that was left out, in whatever unit, that the bodies do not explain: friction and rotor.

    ``UNKNOWN`` where its channel follows nothing.
    """
    parts = []
    for one in run.samples:
        bodies = inverse_dynamics(transmitting(run.model), one.position, one.velocity, one.acceleration)
        v = one.velocity[:, j]
        own = v, np.tanh(v / max(SIGN_TURNS * float(np.abs(v).max()), 1e-300)), one.acceleration[:, j], np.ones(len(one))
        parts.append(np.column_stack([bodies[:, j], *own, np.asarray(one.torque)[:, j]]))
    rows = np.concatenate(parts)
    A, y = rows[:, :-1] / np.maximum(np.linalg.norm(rows[:, :-1], axis=0), 1e-300), rows[:, -1]
    x = np.linalg.lstsq(A, y)[0]
    explained = A @ x
    left, varies = (float(np.var(one)) for one in (y - explained, y))
    if not left < (1.0 - FOLLOWS) * varies:
        return UNKNOWN
    return float(np.linalg.norm(A[:, 1:] @ x[1:]) / np.linalg.norm(explained))


def _grade(expected: float) -> Grade:
    if expected <= GOOD:
        return "good"
    return "usable" if expected <= HOPELESS else "do not use"


def _reason(systematic: float, expected: float) -> str:
    if expected <= GOOD:
        return ""
    if systematic > 0.7 * expected:
        return "unseen error far above the sensor noise: the model lacks some physics"
    return "this motion determines the model too badly"
