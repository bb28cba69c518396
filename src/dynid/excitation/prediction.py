"""What a motion promises before anything is recorded, and what a motion that exists is worth.

With torque noise ``s_j`` of joint ``j``, white at the rate ``f`` of the log, the base parameters will have the covariance

    C = ( sum_j W_j^T W_j / s_j^2 )^-1

whatever low-pass filter follows, as long as it passes the motion. Gautier and Khalil 1992 bound the relative errors of all base
parameters together by the condition number, for errors of the torque alone and of the regressor alone:

    |dX| / |X| <= Cond(W) |dY| / |Y|   (12),      |dX| / |X + dX| <= Cond(W) |dW| / |W|   (13)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from time import monotonic

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.criteria import condition_number, scaling_of
from dynid.excitation.excitation_result import MEASURE_HZ, Excitation, base_regressor, finished_excitation
from dynid.excitation.limits import Limits, per_joint
from dynid.excitation.shapes import random_fourier
from dynid.excitation.trajectories import PolynomialTrajectory
from dynid.io.logs.read import read_recording
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.steps.filters import EDGE_S, Differentiate, LowPass

DEFAULT_NOISE = 0.01
"""Torque noise as a share of each joint's root mean square torque, where none is stated: that of ``dynid simulate``."""
MOST_PERIODS = 500
"""Repeats of a motion that a target may ask for."""
LOG_BAND_HZ = 10.0
"""Low-pass filter of a log whose accelerations are not recorded, Hz."""
SPLINE_HZ = 200.0
RANDOM_MOTIONS = 10
"""Random motions to which one is compared, as in Table 2 of Gautier and Khalil."""

_TARGET = re.compile(r"\s*sigma\(\s*(?P<name>[^)]+?)\s*\)\s*<\s*(?P<value>[0-9.eE+-]+)\s*(?P<percent>%?)\s*")


@dataclass(frozen=True)
class Predicted:
    """A base parameter, its value by the description, and the standard deviation that a log of the motion will give it.

    Args:
        name: of the base parameter.
        value: of the description, SI.
        sigma: SI.
    """

    name: str
    value: float
    sigma: float

    @property
    def relative(self) -> float:
        """``sigma / |value|``, infinite where the description has no value."""
        return self.sigma / abs(self.value) if self.value != 0.0 else np.inf


def torque_noise_of(found: Excitation, stated: ArrayLike | None = None) -> Array:
    """Torque noise of every joint, N m or N: as stated, else one percent of the joint's root mean square torque."""
    robot = found.robot
    if stated is not None:
        return per_joint("torque noise", stated, robot)
    tau = inverse_dynamics(robot, *found.playable.evaluate(found.playable.grid(2000)))
    size = np.sqrt((tau**2).mean(axis=0))
    return np.where(size > 0.0, DEFAULT_NOISE * size, DEFAULT_NOISE * max(float(size.max()), 1e-9))


def predict_sigmas(
    found: Excitation, torque_noise: ArrayLike | None = None, rate_hz: float = 1000.0
) -> tuple[Predicted, ...]:
    """Standard deviation of every base parameter from one log of the motion as it is played.

    Args:
        found: the motion.
        torque_noise: standard deviation of each joint's torque in the log, N m or N; None for one percent of its size.
        rate_hz: of the log, Hz.
    """
    robot, base = found.robot, found.base
    whole = found.playable.duration_s
    edge = min(EDGE_S, 0.1 * whole)  # identification drops so much at both ends of a log
    n = max(round((whole - 2.0 * edge) * MEASURE_HZ), 200)
    time = edge + np.arange(n) * ((whole - 2.0 * edge) / n)
    noise = torque_noise_of(found, torque_noise) * np.sqrt(n / ((whole - 2.0 * edge) * rate_hz))
    Y = torque_regressor(robot, *found.playable.evaluate(time)) / noise[:, None]
    W = base.regressor(Y.reshape(-1, Y.shape[2]))
    size = np.linalg.norm(W, axis=0)
    R = np.linalg.qr(W / np.where(size > 0.0, size, 1.0), mode="r")
    with np.errstate(divide="ignore", invalid="ignore"):
        sigma = np.linalg.norm(np.linalg.pinv(R), axis=1) / size
    values = base.K @ robot.parameters.values
    return tuple(Predicted(name, float(value), float(s)) for name, value, s in zip(base.names, values, sigma, strict=True))


def periods_until(found: Excitation, target: str, periods: int, torque_noise: ArrayLike | None, rate_hz: float) -> int:
    """How often a motion must be played until a target such as ``sigma(Izz6) < 5 %`` is met: deviations fall with the root.

    Args:
        found: the motion, played ``periods`` times.
        target: the base parameter, and its standard deviation in SI units or percent of the description's value.
        periods: of ``found``.
        torque_noise: as in :func:`predict_sigmas`.
        rate_hz: of the log, Hz.
    """
    match = _TARGET.fullmatch(target)
    if match is None:
        raise InputError(f"--until is '{target}', expected a target such as \"sigma(Izz6) < 5 %\"")
    name, wanted = match["name"], float(match["value"])
    if not wanted > 0.0:
        raise InputError(f"--until is '{target}', expected a positive number")
    base = found.base
    if name not in base.names:
        if name in base.parameter_names:
            column = base.K[:, base.parameter_names.index(name)]
            within = [base.names[k] for k in np.flatnonzero(np.abs(column) > 1e-12)]
            told = f"it is part of {', '.join(within[:6])}" if within else "no motion shows it"
            raise InputError(f"--until asks for '{name}', which is no base parameter: {told}; expected one of these")
        raise UnknownNameError("base parameter", name, base.names, "--until")
    one = next(one for one in predict_sigmas(found, torque_noise, rate_hz) if one.name == name)
    if match["percent"]:
        if one.value == 0.0:
            raise InputError(
                f"--until asks for percent of '{name}', whose value is 0 in the description; give it in SI units"
            )
        wanted *= 0.01 * abs(one.value)
    needed = max(periods, ceil(periods * (one.sigma / wanted) ** 2 - 1e-9))
    if needed > MOST_PERIODS:
        raise InputError(
            f"--until '{target}' needs {needed} repeats of this motion, more than {MOST_PERIODS}; after one its sigma is "
            f"{one.sigma:.3g} ({100.0 * one.relative:.3g} %): try a longer --period, a larger --fraction or another target"
        )
    return needed


def evaluate_motion(robot: Robot, path: str | Path, limits: Limits) -> Excitation:
    """A motion that exists, designed or logged, judged like a designed one; nothing is refused for a limit that it breaks.

    Args:
        robot: whose joints the columns are.
        path: a table of the motion, or a log of it; a log without accelerations is low-passed at 10 Hz first.
        limits: to which its margins are measured.
    """
    began = monotonic()
    log = read_recording(path, robot, kind="motion", side="joint")
    if not isinstance(log, Recording):
        raise InputError(f"'{path}' holds {type(log).__name__}, expected joint motion t, q1, ..")
    time, position, notes = log.time, log.position, list(log.source.notes)
    if log.acceleration is None:
        samples = process(log, [LowPass(cutoff_hz=min(LOG_BAND_HZ, 0.2 * log.rate_hz)), Differentiate()])
        time, position = samples.time, samples.position
        notes.append(
            f"positions were low-passed at {min(LOG_BAND_HZ, 0.2 * log.rate_hz):g} Hz: the file has no accelerations"
        )
    trajectory = spline_through(time, position)
    return finished_excitation(
        robot,
        reduce_to_base(robot),
        trajectory,
        limits,
        criterion="none: the motion was given",
        rest=False,
        periods=1,
        n_times=max(4000, round(200 * trajectory.duration_s)),
        began=began,
        seed=0,
        notes=(*limits.notes, *notes),
        refuse=False,
    )


def spline_through(time: Array, position: Array) -> PolynomialTrajectory:
    """A spline of degree 5 through positions, from time zero."""
    from scipy.interpolate import make_interp_spline

    if len(time) < 12:
        raise InputError(f"a motion of {len(time)} rows was given, expected at least 12")
    every = max(1, int((len(time) - 1) / (time[-1] - time[0]) / SPLINE_HZ))
    return PolynomialTrajectory.of_spline(make_interp_spline(time[::every] - time[0], position[::every], k=5))


def sensitivity_lines(found: Excitation, torque_noise: ArrayLike | None = None) -> list[str]:
    """Gautier and Khalil's relations of a motion, in words: ``Cond``, ``S``, the bounds, and random motions beside it."""
    W = base_regressor(found.robot, found.base, found.trajectory)
    robot, cond = found.robot, found.condition_number
    tau = inverse_dynamics(robot, *found.trajectory.evaluate(found.trajectory.grid(2000)))
    size = float(np.linalg.norm(np.sqrt((tau**2).mean(axis=0))))
    noise = float(np.linalg.norm(torque_noise_of(found, torque_noise)))
    period = min(found.trajectory.duration_s, 20.0)
    others = [
        condition_number(base_regressor(robot, found.base, random_fourier(robot, period, seed=seed)))
        for seed in range(RANDOM_MOTIONS)
    ]
    share = noise / size if size > 0.0 else DEFAULT_NOISE
    bound = f"torque errors of {100.0 * share:.3g} % change the base parameters by at most {100.0 * share * cond:.3g} % (12)"
    beside = f"{RANDOM_MOTIONS} random motions of {period:.3g} s within the limits"
    return [
        f"Cond(W) = {cond:.4g}, of equal columns {found.condition_number_scaled:.4g}; S = max |W| / min |W| = {scaling_of(W):.3g}",
        f"{bound}; regressor errors of 1 % by at most {cond:.3g} % (13)",
        f"{beside}: Cond(W) {min(others):.4g} to {max(others):.4g}, mean {np.mean(others):.4g}",
    ]
