"""The direction of gravity in the base frame of the robot that moves a sensor, from the wrench."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.body import estimate_body
from dynid.parameters import Column, Parameters
from dynid.recording.wrench_samples import WrenchSamples
from dynid.regression.body import proper_body_regressor
from dynid.regression.factor import factorise, matrix_regression
from dynid.regression.wrench_rows import AXES, WrenchRows
from dynid.robot.frames import Frame
from dynid.robot.model import Robot
from dynid.robot.motion import LinkMotion

RowsOf: TypeAlias = Callable[[Sequence[WrenchSamples]], WrenchRows]
"""Rows of samples, with the offsets, drift and weight alone that were asked for."""
TILTS = 8
"""Most steps of the search for the direction of gravity; it settles in three or four."""


def levelled(
    samples: Sequence[WrenchSamples],
    motions: Sequence[LinkMotion | None],
    robot: Robot | None,
    place: Frame | None,
    rows_of: RowsOf,
) -> tuple[Array, tuple[WrenchSamples, ...], str]:
    """The direction of gravity that explains the wrench best, and the samples under it."""
    if robot is None or any(motion is None for motion in motions):
        raise InputError("the direction of gravity needs the sensor's pose, expected --robot and joint positions in the log")
    g = robot.gravity.copy()
    size = float(np.linalg.norm(g))
    logs = tuple(samples)
    for _ in range(TILTS):
        across = np.linalg.svd(g[None])[2][1:]  # two directions that turn gravity and keep its size
        step, scale = _tilt_step(logs, motions, across, rows_of)
        g = g + step @ across
        g *= size / np.linalg.norm(g)
        logs = tuple(one.moved_by(robot, place, g)[0] for one in samples)
        if float(np.linalg.norm(step)) < 1e-9 * scale:
            break
    angle = float(np.degrees(np.arccos(np.clip(g @ robot.gravity / size**2, -1.0, 1.0))))
    direction = ",".join(f"{value:.5g}" for value in g)
    return g, logs, f"gravity in the base frame is turned by {angle:.2f} degrees: --gravity={direction}"


def _tilt_step(
    logs: Sequence[WrenchSamples], motions: Sequence[LinkMotion | None], across: Array, rows_of: RowsOf
) -> tuple[Array, float]:
    """Change of gravity along two directions, estimated with the body."""
    rows = rows_of(logs)
    phi = estimate_body(factorise(rows), ("wls",))[0].phi
    columns = tuple(Column(f"tilt{k + 1}", 1, "actuator", "m/s^2", "gravity") for k in range(2))
    parameters = Parameters((*rows.parameters.columns, *columns), np.concatenate([rows.parameters.values, np.zeros(2)]))
    parts = []
    for log, motion in zip(logs, motions, strict=True):
        assert motion is not None
        fall = -np.einsum("nji,kj->nki", motion.rotation, across)  # change of the proper acceleration
        still = np.zeros((len(log), 3))
        change = np.stack([proper_body_regressor(fall[:, k], still, still) @ phi for k in range(2)], axis=-1)
        blocks = [np.concatenate([chunk.blocks[i] for chunk in replace(rows, recording=log).passes()]) for i in range(6)]
        parts.append([np.hstack([block[:, :-1], change[:, i], block[:, -1:]]) for i, block in enumerate(blocks)])
    stacked = [np.concatenate(blocks) for blocks in zip(*parts, strict=True)]
    found = estimate_body(matrix_regression(parameters, AXES, stacked), ("wls",))[0].estimate
    return found.base_values[-2:], float(np.linalg.norm(across[0])) * 9.81
