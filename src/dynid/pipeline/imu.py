"""Bias and delay of the IMU on a floating base, found beside everything else that the rows show.

Rows are nearly linear in them. All base parameters and these seven values are fitted together, the IMU is corrected, and again. What is no
chance is undone; how far it is known goes into the intervals of the base parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import fdtrc, stdtrit

from dynid.arrays import Array
from dynid.engine import Tell, silent
from dynid.estimation.block_scatter import LONG_BLOCKS, step_beside
from dynid.estimation.calibration import Calibrated
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import WeightedLeastSquares
from dynid.pipeline.floating import with_radius
from dynid.pipeline.floating_log import FloatingLog, FloatingSetup
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import Filter
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import factorise
from dynid.validation.floating_check import check_poses

GROUPS = {"accelerometer": slice(0, 3), "gyroscope": slice(3, 6), "delay": slice(6, 7)}
"""Places of what is sought among the values of a plan."""
UNITS = (0.05, 0.05, 0.05, 0.02, 0.02, 0.02, 0.2)
"""Changes over which rows are differentiated: m/s^2, rad/s, and steps of the log for the delay."""
LARGEST = (1.0, 1.0, 1.0, 0.3, 0.3, 0.3, 10.0)
"""m/s^2, rad/s and steps of the log: what is larger is an error of axes, of the pose of the IMU or of a clock."""
ROUNDS, SETTLED = 4, 0.1
CHANCE = 1e-3
"""Chance that an error of a faultless IMU is undone."""
WIDER, OF_A_PERIOD = 1.1, 0.01
"""Deviations of values from the truth over those of the scatter of rows, and the part of a sampling period that a delay is known to at
best; both measured on simulated walks: round feet and filters repeat with every step."""
SURE = float(stdtrit(LONG_BLOCKS - 1, 0.975))
"""Half of a 95 % interval, in deviations that are known from a few blocks."""


def find_imu_errors(
    setup: FloatingSetup, logs: Sequence[FloatingLog], filtered: Filter, settings: Settings, tell: Tell = silent
) -> tuple[FloatingSetup, tuple[Calibrated, ...]]:
    """The setup with errors of an IMU undone where they are no chance, and each with its interval; none where no IMU is used."""
    source = setup.motion(logs[0], logs[0].filtered_base(filtered)).source
    groups = [name for name in GROUPS if name in source]
    if not groups:
        return setup, ()
    tell("looking for bias and delay of the IMU")
    check_poses(setup.robot, [log.samples(filtered) for log in logs])
    known = with_radius(setup, logs, filtered, settings)[0]
    values, found = np.array(setup.plan.imu or np.zeros(7)), dict[str, tuple[Array, Array]]()
    groups, tried = [*groups, "delay"], list[str]()
    while groups and groups != tried:
        tried, values = groups, np.where(_places(groups), values, 0.0)
        values, spread, _ = fit_imu(known, logs, filtered, values, tried)
        owner = np.repeat(tried, [len(values[GROUPS[name]]) for name in tried])
        for name in tried:
            found[name] = values[GROUPS[name]], spread[np.ix_(owner == name, owner == name)]
        likely = np.abs(values) <= LARGEST * _steps(logs)
        groups = [name for name in tried if _chance(*found[name]) < CHANCE and likely[GROUPS[name]].all()]
    told = [
        Calibrated(
            "IMU", name if len(own) == 1 else f"{name} bias {'xyz'[k]}", x, x - SURE * s, x + SURE * s, name in groups
        )
        for name, (own, covariance) in found.items()
        for k, (x, s) in enumerate(zip(own.tolist(), np.sqrt(np.diag(covariance)).tolist(), strict=True))
    ]
    return replace(setup, plan=replace(setup.plan, imu=tuple(values.tolist()) if groups else ())), tuple(told)


def _chance(values: Array, covariance: Array) -> float:
    """Chance that noise alone gives values as large."""
    size = float(values @ np.linalg.pinv(covariance, hermitian=True) @ values) / len(values)
    return float(fdtrc(len(values), LONG_BLOCKS - 1, size))


def with_imu_moves(setup: FloatingSetup, logs: Sequence[FloatingLog], filtered: Filter) -> FloatingSetup:
    """The setup with what its base values may be off by since errors of the IMU are not known exactly."""
    values = np.array(setup.plan.imu or np.zeros(7))
    groups = [name for name, place in GROUPS.items() if values[place].any()]
    if not groups:
        return setup
    return replace(setup, moves=fit_imu(setup, logs, filtered, values, groups)[2])


def _places(groups: Sequence[str]) -> Array:
    """Which of the seven values belong to groups."""
    sought = np.zeros(7, dtype=bool)
    for name in groups:
        sought[GROUPS[name]] = True
    return sought


def _steps(logs: Sequence[FloatingLog]) -> Array:
    """Factor of the seven values from their units to SI: one, and the step of the logs for the delay."""
    return np.append(np.ones(6), min(1.0 / log.joints.rate_hz for log in logs))


def fit_imu(
    setup: FloatingSetup,
    logs: Sequence[FloatingLog],
    filtered: Filter,
    values: Array,
    groups: Sequence[str],
) -> tuple[Array, Array, Array]:
    """The values of some groups that rows ask for, their covariance, and how base values move with them, each by one deviation."""
    sought, values = np.flatnonzero(_places(groups)), values.copy()
    unit = UNITS * _steps(logs)
    base, method = reduce_to_base(setup.robot), WeightedLeastSquares()
    for _ in range(ROUNDS):
        points = [values, *(values + unit * (np.arange(7) == k) for k in sought)]
        plans = [replace(setup.plan, imu=tuple(point.tolist())) for point in points]
        samples = [[replace(log, setup=replace(setup, plan=plan)).samples(filtered) for log in logs] for plan in plans]
        rows, *changed = (setup.plan.source(setup.robot, own) for own in samples)
        step, spread, moves = step_beside(estimate(factorise(rows), base, method), rows, samples[0], changed)
        values[sought] += step * unit[sought]
        if (np.abs(step) < SETTLED * np.sqrt(np.diag(spread))).all():
            break
    spread = WIDER**2 * spread * np.outer(unit[sought], unit[sought])
    spread[sought == 6, sought == 6] += (OF_A_PERIOD / UNITS[6] * unit[6]) ** 2
    return values, spread, WIDER * moves
