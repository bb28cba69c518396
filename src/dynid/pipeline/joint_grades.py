"""How far the torque of each joint can be trusted, and the grade that follows.

A model is used on other motion than that of its logs. What is expected to be wrong there has two parts:

    excess        the unseen error of the joint beyond what the noise of its sensor leaves; it comes from physics that the model lacks,
                  so it grows with other motion (``BEYOND``, set on simulated robots of known truth, see ``docs/truth.md``)
    uncertainty   what the noise in the estimate makes of random states: the positions of the log, speeds and accelerations
                  of both signs, and at least a tenth of the joint's limits, however little it moved

    expected^2 = (BEYOND excess)^2 + uncertainty^2

Both are relative to the joint's own torque, but to no less than ``LEAST_TORQUE`` times its noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics, needs_load, transmitting
from dynid.dynamics.regressors import torque_regressor
from dynid.estimation.friction.fit import covariance_of_moves
from dynid.finding import Grade, JointGrade
from dynid.model.robot import Robot
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.signal_filter import STILL, to_samples
from dynid.signals.measures import noise_level
from dynid.signals.recording import Recording
from dynid.signals.steps.clock import nominal_period_s
from dynid.validation.prediction import predict, validate

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


def grade_joints(run: IdentificationResult) -> tuple[JointGrade, ...]:
    """The grade of every joint that torque was judged of; none where a run has no samples of motion."""
    judged = run.validation.total if run.validation is not None else run.identification
    if judged is None or run.data is None or not run.samples or len(judged.rmse) != len(run.robot.driven_joints):
        return ()
    recordings = run.data.unseen.recordings if run.data.unseen is not None else run.recordings
    noise = torque_noise([one.torque for one in recordings if one.torque is not None])
    floor = _noise_floor(run, recordings, noise)
    error, own = np.asarray(judged.rmse), np.asarray(judged.relative_error_per_channel)
    left_out = np.isnan(own)  # channels without a weight: they are in no error
    error, own, noise, floor = (np.where(left_out, 0.0, one) for one in (error, own, noise, floor))
    size = np.maximum(error / np.where(own > 0.0, own, np.inf), LEAST_TORQUE * noise)
    size = np.maximum(size, 1e-12 * max(float(size.max(initial=0.0)), 1e-300))
    excess = np.sqrt(np.maximum(error**2 - (NOISY * floor) ** 2, 0.0)) / size
    expected = np.hypot(BEYOND * excess, _uncertainty(run, noise, _covariance_by_noise(run)))
    faults = _one_way(run, size, noise) | _faults(run)
    found = []
    for j, joint in enumerate(run.robot.driven_joints):
        fault, least = (
            ("its torque was left out", _unexplained(run, j)) if left_out[j] else faults.get(joint.name, ("", 0.0))
        )
        value = min(max(float(expected[j]), least), WORST) if np.isfinite(expected[j]) else WORST
        reason = fault if least > GOOD and least >= value else _reason(BEYOND * float(excess[j]), value)
        unseen = None if run.validation is None or left_out[j] else float(own[j])
        found.append(JointGrade(joint.name, unseen, float(floor[j] / size[j]), value, _grade(value), reason))
    return tuple(found)


def overall_grade(joints: Sequence[JointGrade]) -> Grade:
    """The worst joint decides; a model is not to be used where half of the joints are bad, or one is hopeless."""
    bad = [joint for joint in joints if joint.expected > USABLE]
    if 2 * len(bad) >= len(joints) > 0 or any(joint.grade == "do not use" for joint in joints):
        return "do not use"
    return "good" if all(joint.grade == "good" for joint in joints) else "usable"


def torque_noise(signals: Sequence[Array]) -> Array:
    """Standard deviation of the noise of each column: white noise, or the steps that it is recorded in."""
    found = []
    for values in signals:
        changes = np.abs(np.diff(values, axis=0))
        step = np.array([column[column > 0.0].min(initial=np.inf) for column in changes.T])
        stays = (changes == 0.0).mean(axis=0) > 0.2
        found.append(np.maximum(noise_level(values), np.where(stays & np.isfinite(step), step, 0.0) / np.sqrt(12.0)))
    return np.asarray(np.sqrt(np.mean(np.square(found), axis=0)))


def _noise_floor(run: IdentificationResult, recordings: Sequence[Recording], noise: Array) -> Array:
    """Torque of each joint, in the band that it is judged in, that its sensors leave unknown.

    White noise of the torque, and what the model predicts otherwise where positions and velocities have their noise once more:
    through accelerations, and through the sign of slow speeds.
    """
    if run.judged_hz is None or run.filter is None:
        return noise
    first, rng = recordings[0].rows(0, FLOOR_ROWS), np.random.default_rng(0)

    def noisier(values: Array) -> Array:
        return values + torque_noise([values]) * rng.standard_normal(values.shape)

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
    """Random states within the range of the log, of both directions, and at least a part of the limits."""
    q, v, a = (
        np.concatenate([getattr(one, name) for one in run.samples]) for name in ("position", "velocity", "acceleration")
    )
    joints = robot.driven_joints
    span = np.array([joint.q_max - joint.q_min for joint in joints])
    fast = np.array([joint.dq_max for joint in joints])
    span, fast = (
        np.where(np.isfinite(one) & (one > 0.0), np.minimum(one, 2.0 * _UNLIMITED), _UNLIMITED) for one in (span, fast)
    )
    middle, half = 0.5 * (q.max(axis=0) + q.min(axis=0)), 0.5 * np.maximum(np.ptp(q, axis=0), LEAST_RANGE * span)
    speed = np.maximum(np.abs(v).max(axis=0), LEAST_RANGE * fast)
    pull = np.maximum(np.quantile(np.abs(a), 0.99, axis=0), speed**2 / np.maximum(half, LEAST_RANGE * span))
    rng, shape = np.random.default_rng(0), (STATES, len(joints))
    return tuple(rng.uniform(-one, one, shape) + at for one, at in ((half, middle), (speed, 0.0), (pull, 0.0)))  # type: ignore[return-value]


def _faults(run: IdentificationResult) -> dict[str, tuple[str, float]]:
    """Of joints whose log shows too little of them, or another gain: what was wrong, and the error to expect at least."""
    dry = any(effect.dry for effect in run.robot.effects)
    v = np.concatenate([one.velocity for one in run.samples])
    fastest = np.abs(v).max(axis=0)
    reach = np.max([np.ptp(one.position, axis=0) for one in run.samples], axis=0)
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
    v = np.concatenate([one.velocity for one in run.samples])
    one_way = np.flatnonzero((v.min(axis=0) >= 0.0) | (v.max(axis=0) <= 0.0))
    if not len(one_way) or not any(effect.dry for effect in run.robot.effects):
        return {}
    base, names = run.estimate.base, run.robot.parameters.names
    unknown = (~run.estimate.seen | (np.diagonal(run.covariance) <= 0.0)) @ (np.abs(base.K) > UNTOLD)
    rubs = np.abs(run.friction(0.5 * np.abs(v).max(axis=0)))[0] / size
    uncertain = _uncertainty(run, noise, run.covariance)
    why, found = "it never reversed, so its Coulomb friction is not told from its offset", {}
    for j in one_way:
        apart = not any(
            lost and name in {f"{kind}{j + 1}" for kind in ("fc", "fo", "fs", "fsig")}
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
