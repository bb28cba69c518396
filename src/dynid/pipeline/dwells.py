"""Rows in which dry friction has no sign: a joint that dwells is held by whatever friction it came to rest with.

The sign of a speed near zero says nothing of that, and a fit that keeps such rows bends bodies and friction to explain them. Stretches
in which a joint hardly moves are therefore left out of its rows, where this lets the same model explain the other rows clearly better;
friction with a memory of the last reversal keeps them, and where dwells are explained as well as motion they stay. Rows slower than a
dead zone that was asked for are left out always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.estimation.friction.rows import MOST_NUMBERS, fewer_samples
from dynid.estimation.linear import LinearProblem
from dynid.finding import DataCheck, Finding
from dynid.model.robot import Robot
from dynid.pipeline.log import Data, Logs
from dynid.pipeline.options import Settings
from dynid.regression.base import LONG_CHAIN, reduce_to_base
from dynid.regression.channels import torque_channels
from dynid.regression.factor import factorise_whole
from dynid.regression.row_filter import FilteredRows, RowFilter
from dynid.regression.row_source import RowSource
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples, map_samples

SLOW = 0.02
"""Of its usual speed: a joint that is slower for ``DWELL_S`` dwells. A reversal of a motion below 2 Hz takes less time."""
DWELL_S = 0.1
PAYS = 1.1
"""Factor by which dwells must raise what is left of other rows, in some joint, before they are left out."""
DWELLS = "dwells"
"""Code of the finding on rows left out."""


@dataclass(frozen=True, eq=False)
class SlowRows:
    """Weights of samples: zero where a joint is slower than its zone, for ``least_s`` at a time or more."""

    zone: Array
    """Per joint, rad/s or m/s; zero to keep all rows of a joint."""
    least_s: float

    def mask(self, samples: Samples) -> BoolArray:
        """Rows that are left out, ``(samples, joints)``."""
        slow = np.abs(samples.velocity) < self.zone
        period_s = samples.duration_s / max(len(samples) - 1, 1)
        least = int(np.ceil(self.least_s / max(period_s, 1e-12)))
        for column in slow.T if least > 1 else ():
            edges = np.flatnonzero(np.diff(np.concatenate([[0], column.astype(np.int8), [0]])))
            for first, last in edges.reshape(-1, 2):  # of every stretch that is slow
                if last - first < least:
                    column[first:last] = False
        return np.asarray(slow)

    def __call__(self, samples: Samples) -> Samples:
        return samples.with_weight(np.where(self.mask(samples), 0.0, 1.0))


def usual_speed(samples: Sequence[Samples]) -> Array:
    """Root mean square of each joint's speed."""
    return np.asarray(np.sqrt(np.mean(np.concatenate([one.velocity for one in samples]) ** 2, axis=0)))


def below_dead_zone(data: Data, robot: Robot, settings: Settings) -> Data:
    """Without the rows that are slower than a dead zone asked for."""
    if settings.dead_zone == "auto" or settings.dead_zone == 0.0 or not any(effect.dry for effect in robot.effects):
        return data
    zone = np.full(robot.n_dof, float(settings.dead_zone))
    return _weighted(data, SlowRows(zone, 0.0))


def poisoning_dwells(data: Data, robot: Robot, settings: Settings, row_filter: RowFilter | None) -> SlowRows | None:
    """Dwells that spoil the fit of the other rows; None where there are none, or where the model explains them."""
    windows = data.known.windows
    plain = settings.rows == "torque" and settings.dead_zone == "auto" and robot.coupling is None and not robot.floating
    if not plain or not any(effect.dry for effect in robot.effects) or any(effect.remembers for effect in robot.effects):
        return None
    if len(robot.parameters) > 10 * LONG_CHAIN or any(effect.loaded for effect in robot.effects):
        return None
    found = SlowRows(SLOW * usual_speed(windows), DWELL_S)
    shares = np.mean(np.concatenate([found.mask(one) for one in windows]), axis=0)
    if not shares.any():
        return None
    width = sum(channel.width for channel in torque_channels(robot))
    few = fewer_samples(windows, row_filter, width, MOST_NUMBERS)
    whole, moving = (_problem(robot, samples, row_filter) for samples in (few, [found(one) for one in few]))
    weights, _ = moving.settled_weights()
    left = [moving.residual_norms(one.solve(weights)) for one in (whole, moving)]
    worse = left[0] / np.maximum(left[1], 1e-300)
    return found if (worse[left[1] > 0.0] > PAYS).any() else None


def _problem(robot: Robot, samples: Sequence[Samples], row_filter: RowFilter | None) -> LinearProblem:
    rows: RowSource = TorqueRows(robot, tuple(samples))
    rows = rows if row_filter is None else FilteredRows(rows, row_filter)
    return LinearProblem.of(factorise_whole(rows), reduce_to_base(robot), robot.parameters)


def _weighted(data: Data, found: SlowRows) -> Data:
    """What is identified on, without the rows found."""
    known: Logs = data.known
    windows = tuple(found(one) for one in known.windows)
    samples = windows if known.in_memory else tuple(map_samples(found, one) for one in known.samples)
    return replace(data, known=replace(known, samples=samples, windows=windows))


def without_dwells(data: Data, found: SlowRows, checks: Sequence[DataCheck]) -> tuple[Data, tuple[DataCheck, ...]]:
    """Without dwells in what is identified on, and the checks that say so."""
    shares = np.mean(np.concatenate([found.mask(one) for one in data.known.windows]), axis=0)
    names = data.known.robot.dof_names
    joints = tuple(name for name, share in zip(names, shares, strict=True) if share > 0.0)
    finding = Finding(
        "note",
        f"joints dwell in up to {100.0 * shares.max():.2g} % of the rows, where friction holds them with a torque that no speed tells: "
        "these rows of theirs are left out of the fit",
        "a motion without stops, or --friction presliding, uses all rows; --dead-zone SPEED leaves out other ones, 0 none",
        where=joints,
        code=DWELLS,
        values={"share": shares, "speed": found.zone},
    )
    first = checks[0].merged(DataCheck((finding,), {})) if checks else DataCheck((finding,), {})
    return _weighted(data, found), (first, *checks[1:])
