"""Joints whose columns are exchanged."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np

from dynid.arrays import Array
from dynid.recording.finding import Finding
from dynid.recording.lag import longest_part
from dynid.recording.motion import Recording
from dynid.regression.torque import inverse_dynamics
from dynid.robot.model import Robot
from dynid.validation.torque_checks.fit import ModelFit, regressor_columns, smooth_samples, with_rotors_alone

_EXCHANGE_ROWS = 800  # rows on which pairs of joints are exchanged
_EXCHANGE_JOINTS = 12  # of more joints only neighbours are tried
_UNEXPLAINED = 0.05  # mean share of torque's variance that is unexplained before joints are exchanged
_EXCHANGE_GAIN = 0.25  # and what an exchange has to leave of it


def exchanged_joints(recording: Recording, robot: Robot, fit: ModelFit) -> list[Finding]:
    """Two joints whose columns, exchanged, let the nominal model explain the torque, where it does not as logged."""
    # Coefficients that are free can also explain a wrong motion, so the nominal masses have to fit better, too. Of
    # amperes that is not known.
    if recording.torque is None or recording.n_joints < 2 or np.mean(1.0 - fit.explained) < _UNEXPLAINED:
        return []
    samples = smooth_samples(longest_part(recording))
    assert samples.torque is not None
    rows = slice(None, None, max(1, len(samples) // _EXCHANGE_ROWS))
    signals = [array[rows] for array in (samples.position, samples.velocity, samples.acceleration, samples.torque)]
    n = recording.n_joints
    pairs = list(combinations(range(n), 2) if n <= _EXCHANGE_JOINTS else pairwise(range(n)))

    def unexplained(order: list[int]) -> tuple[float, float]:
        return _unexplained(robot, *(array[:, order] for array in signals))

    logged, logged_as_is = unexplained(list(range(n)))
    if logged < _UNEXPLAINED:
        return []
    (least, as_is), (i, j) = min((unexplained(_exchange(n, *pair)), pair) for pair in pairs)
    if least > _EXCHANGE_GAIN * logged or as_is > _EXCHANGE_GAIN * logged_as_is:
        return []
    names = (recording.joint_names[i], recording.joint_names[j])
    return [
        Finding(
            "exchanged_joints",
            "error",
            f"the columns of joints {names[0]} and {names[1]} are likely exchanged: {100.0 * logged:.2g} % of the variance of "
            f"torque is unexplained by the nominal model as logged, {100.0 * least:.2g} % with the two the other way round",
            "put them right in the log or with a mapping of columns, or check the order of joints in the description",
            names,
            {"unexplained": logged, "unexplained_exchanged": least},
        )
    ]


def _exchange(n: int, i: int, j: int) -> list[int]:
    order = list(range(n))
    order[i], order[j] = j, i
    return order


def _unexplained(robot: Robot, q: Array, v: Array, a: Array, tau: Array) -> tuple[float, float]:
    """Share of the torque's variance, on average over joints, that is left by the fit of the nominal model and friction;
    and by friction alone after nominal torque is taken off, at most 4 in any joint.
    """
    still = np.zeros_like(v)
    gravity = inverse_dynamics(robot, q, still, still, effects=False)
    inertia = inverse_dynamics(with_rotors_alone(robot), q, v, a) - gravity
    nothing = np.zeros(len(q))
    free, as_is = [], []
    for j in range(tau.shape[1]):
        y = tau[:, j] - tau[:, j].mean()
        total = float(y @ y)
        if total == 0.0:
            continue
        rest = y - gravity[:, j] - inertia[:, j]
        rest = rest - rest.mean()
        Q, _ = np.linalg.qr(regressor_columns(gravity[:, j], inertia[:, j], v[:, j])[0])
        F, _ = np.linalg.qr(regressor_columns(nothing, nothing, v[:, j])[0])
        free.append(1.0 - float(np.sum((Q.T @ y) ** 2)) / total)
        as_is.append(min(4.0, (float(rest @ rest) - float(np.sum((F.T @ rest) ** 2))) / total))
    return (float(np.mean(free)), float(np.mean(as_is))) if free else (0.0, 0.0)
