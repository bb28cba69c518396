"""Signals that are cut off at their extremes, and signals that never change."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.recording.checks.shared import fits, named
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.motion import Recording
from dynid.robot.model import Robot


def check_saturation(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Torque or current that stays at its largest value, or at the limit of the joint."""
    findings, facts = [], dict[str, Any]()
    moving = np.ones(recording.n_samples, dtype=np.bool_)
    moving[1:] = (np.diff(recording.position, axis=0) != 0.0).any(axis=1)
    for name in ("torque", "current"):
        values = getattr(recording, name)
        if values is None:
            continue
        share = np.array([_clipped_share(column, moving) for column in values.T])
        facts[f"{name}_clipped_share"] = share
        hit = share > 0.001
        if robot is not None and fits(recording, robot) and name == "torque":
            limits, sizes = robot.limits("tau_max"), np.abs(values)
            # a limit that the signal exceeds did not cut it off: that is told as such, by the check of limits
            inside = np.quantile(sizes, 0.999, axis=0) <= 1.02 * limits
            at_limit = np.where(inside, np.mean(sizes >= 0.999 * limits, axis=0), 0.0)
            hit |= at_limit > 0.001
            share = np.maximum(share, at_limit)
        if hit.any():
            worst = int(np.argmax(share))
            findings.append(
                Finding(
                    "saturation",
                    "warning",
                    f"{name} of joint {', '.join(named(recording, hit))} is cut off at its extreme, in up to "
                    f"{100.0 * share[worst]:.2g} % of the rows",
                    "leave those rows out or move with less torque: a cut-off signal is not what drives the robot",
                    named(recording, hit),
                    {"share": share},
                )
            )
    return DataCheck(tuple(findings), facts)


def _clipped_share(column: Array, moving: BoolArray) -> float:
    """Share of rows that stay at the very largest or smallest value for five rows and more while the robot moves."""
    total = 0
    if np.ptp(column) == 0.0:
        return 0.0
    for extreme in (column.max(), column.min()):
        there = (column == extreme) & moving
        edges = np.flatnonzero(np.diff(np.concatenate([[0], there.astype(np.int8), [0]])))
        lengths = edges[1::2] - edges[::2]
        total += int(lengths[lengths >= 5].sum())
    return total / len(column)


def check_constant(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Signals that never change although the joint moves."""
    findings = []
    for name in ("velocity", "torque", "current"):
        values = getattr(recording, name)
        if values is None:
            continue
        dead = (np.ptp(values, axis=0) == 0.0) & (np.ptp(recording.position, axis=0) > 1e-3)
        if dead.any():
            findings.append(
                Finding(
                    "dead_signal",
                    "error",
                    f"{name} of joint {', '.join(named(recording, dead))} never changes although the joint moves",
                    "check the column and the sensor",
                    named(recording, dead),
                )
            )
    return DataCheck(tuple(findings), {})
