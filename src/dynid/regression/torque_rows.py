"""Torque rows: ``tau = Y(q, v, a) phi``, one channel per joint, made chunk by chunk in one buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze, frozen_view
from dynid.dynamics.closed_chains import TreeMotion, tree_motion
from dynid.dynamics.inverse_dynamics import (
    checked_motion,
    effect_signals,
    fill_projected_rows,
    fill_torque_rows,
    passive_columns,
    random_states_within_limits,
    support_pairs,
)
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.model.robot import Robot
from dynid.regression.channels import Channel, torque_channels
from dynid.regression.row_source import CHUNK_ROWS, Chunk, SampleRows
from dynid.signals.reversal_history import pieces_with_memory, with_memory
from dynid.signals.samples import Samples, SampleStream

LONG_CHUNK_ROWS, LONG_ROWS = 2 * CHUNK_ROWS, 64 * CHUNK_ROWS
"""Samples per chunk of a piece that has so many: longer chunks are a little faster, and enough time blocks are left."""

STRETCH_ROWS = 8 * CHUNK_ROWS
"""Samples whose motion is checked and whose effect signals are made at a time, for several chunks."""

_PART_ROWS = 8192
"""A long set of samples is split for other workers into parts of about so many samples or more."""

_TYPICAL_STATES = 200

Weights: TypeAlias = Callable[[Samples], Array]
"""Weight of every row of some samples, ``(samples, torques)``; rows are multiplied by it."""


@dataclass(frozen=True)
class TorqueRows(SampleRows):
    """Torque rows ``tau = Y(q, v, a) phi`` of one robot over samples.

    Args:
        robot: the robot, with its effects.
        samples: one set of samples, or one stream of them, per log.
        weights: a function from samples to a factor of every row.
        chunk_rows: samples per chunk, and so the shortest time block of a factor; by default chosen by the length of a piece.

    Examples:
        >>> import dynid
        >>> rows = dynid.TorqueRows(dynid.demo_robot(), (dynid.demo_samples(),))
        >>> rows.kind, rows.timed, len(rows.channels)
        ('torque', True, 7)
    """

    kind = "torque"
    timed = True
    samples: tuple[Samples | SampleStream, ...]
    weights: Weights | None = None
    chunk_rows: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.robot.floating:
            raise InputError(
                f"robot '{self.robot.name}' has a floating base: its logs are not defined yet, "
                "only regressor and base reduction"
            )
        known = [with_memory(self.robot, one) if isinstance(one, Samples) else one for one in self.samples]
        object.__setattr__(self, "samples", tuple(known))

    @property
    def channels(self) -> tuple[Channel, ...]:
        return torque_channels(self.robot)

    def split(self, most: int) -> tuple[TorqueRows, ...]:
        """Logs, and contiguous parts of long ones; streams stay whole."""
        parts: list[TorqueRows] = []
        for one in self.samples:
            if not isinstance(one, Samples):
                parts.append(replace(self, samples=(one,)))
                continue
            n_parts = max(1, min(most, len(one) // _PART_ROWS))
            n_stretches = -(-len(one) // STRETCH_ROWS)  # cut between whole ones, so that only the last chunk is short
            edges = [STRETCH_ROWS * (n_stretches * k // n_parts) for k in range(n_parts + 1)]
            parts.extend(replace(self, samples=(one[a:b],)) for a, b in pairwise(edges))
        return tuple(parts)

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        maker = TorqueRowMaker(self.robot, self.weights)
        for source in self.samples:
            for piece in pieces_with_memory(self.robot, source):
                chunk = chunk_rows or self.chunk_rows or (LONG_CHUNK_ROWS if len(piece) >= LONG_ROWS else CHUNK_ROWS)
                stretch = chunk * max(1, STRETCH_ROWS // chunk)
                for start in range(0, len(piece), stretch):
                    yield from maker.rows(piece[start : start + stretch], chunk)

    def unweighted(self) -> TorqueRows:
        return replace(self, weights=None)

    def typical_rows(self) -> tuple[Array, ...]:
        return typical_torque_rows(self.robot)


def typical_torque_rows(robot: Robot) -> tuple[Array, ...]:
    """Torque rows of every joint over all parameters at random states within limits, under a load of one."""
    q, v, a = random_states_within_limits(robot, _TYPICAL_STATES, seed=2)
    Y = torque_regressor(robot, q, v, a, np.ones_like(v))
    return tuple(Y[:, d] for d in range(robot.n_dof))


@dataclass(frozen=True, eq=False)
class _Stretch:
    """Checked motion of some samples, the signals beside it, and the motion of the tree of a closed robot."""

    position: Array
    velocity: Array
    acceleration: Array
    signals: Array
    tree: TreeMotion | None


class _Places:
    """Where every coefficient of one sample's torque rows goes in a flat array, and the torque beside them."""

    def __init__(self, robot: Robot, column: IntArray, torque: IntArray) -> None:
        """``column[d, p]`` is the place of parameter ``p`` in the row of torque ``d``, negative to leave it out."""
        self._robot = robot
        n_inertial, n_effects = robot.parameters.n_inertial, robot.effect_incidence.shape[1]
        support, body = support_pairs(robot)
        self.inertial = column[support[:, None], 10 * body[:, None] + np.arange(10)]
        # columns that are signals: effects where they act, the torques, then effects of passive joints through the loops
        acts, effect = np.nonzero((robot.effect_incidence != 0.0) & (column[:, n_inertial:] >= 0))
        self._rubbing = np.flatnonzero(robot.passive_incidence.any(axis=0))
        through = column[:, n_inertial + self._rubbing].ravel()
        used = np.flatnonzero(through >= 0)
        torques = n_effects + np.arange(robot.n_dof)
        self._signal = freeze(np.concatenate([effect, torques, n_effects + robot.n_dof + used]), np.int64)
        ones = np.ones(robot.n_dof + len(used))
        self._coefficient = freeze(np.concatenate([robot.effect_incidence[acts, effect], ones]))
        self.signals = np.concatenate([column[acts, n_inertial + effect], torque, through[used]])

    def motion(self, samples: Samples) -> _Stretch:
        """The motion, checked, that of the whole tree for a closed robot, and the signals of effects and torques."""
        if samples.torque is None:
            raise InputError("samples hold motion but no torque, so there is nothing to identify from")
        robot = self._robot
        q, v, a = checked_motion(robot, samples.position, samples.velocity, samples.acceleration)
        check_shape("torque", samples.torque, (len(q), robot.n_dof))
        tree = tree_motion(robot, q, v, a) if robot.loops else None
        signals = samples.torque
        if robot.effects:
            own = effect_signals(robot, q, v, a, samples.load, tree, travel=samples.travel)
            signals = np.hstack([own, signals])
            if tree is not None and len(self._rubbing):
                through = passive_columns(robot, tree, own)[:, :, self._rubbing]
                signals = np.hstack([signals, through.reshape(len(q), -1)])
        return _Stretch(q, v, a, frozen_view(signals), tree)

    def fill(self, motion: _Stretch, part: slice, inertial: IntArray, signals: IntArray, step: int, out: Array) -> None:
        """Rows of a part of the motion into ``out`` at these places of its first sample; each further sample is ``step`` away."""
        from dynid.compiled import announced
        from dynid.dynamics import kernels as kernel

        if motion.tree is None:
            q, v, a = motion.position[part], motion.velocity[part], motion.acceleration[part]
            fill_torque_rows(self._robot, q, v, a, inertial, step, out)
        else:
            fill_projected_rows(self._robot, motion.tree, part, inertial, step, out)
        announced(kernel.signal_rows)(motion.signals[part], self._signal, self._coefficient, signals, step, out)


class TorqueRowMaker:
    """The columns of all channels for one chunk, in one buffer that is reused from chunk to chunk."""

    def __init__(self, robot: Robot, weights: Weights | None = None) -> None:
        self._weights = weights
        channels = torque_channels(robot)
        self._widths = [channel.width + 1 for channel in channels]
        self._firsts = np.concatenate([[0], np.cumsum(self._widths)])
        column = np.full((robot.n_dof, len(robot.parameters)), -1)
        for d, channel in enumerate(channels):
            column[d, channel.columns] = self._firsts[d] + np.arange(channel.width)
        self._places = _Places(robot, column, self._firsts[1:] - 1)
        self._resize(0)

    def _resize(self, n: int) -> None:
        """Make room for chunks of ``n`` samples, each column in one run."""
        self._buffer = np.zeros(n * self._firsts[-1])
        inertial = self._places.inertial
        self._inertial = freeze(np.where(inertial < 0, -1, inertial * n), np.int64)
        self._signals = freeze(self._places.signals * n, np.int64)

    def rows(self, samples: Samples, chunk_rows: int) -> Iterator[Chunk]:
        """``[W tau]`` of every channel for chunks of the samples; the next chunk overwrites them."""
        motion = self._places.motion(samples)
        weights = samples.weight if self._weights is None else np.asarray(self._weights(samples), dtype=np.float64)
        if self._weights is not None and weights is not None and samples.weight is not None:
            weights = weights * samples.weight
        if weights is not None:
            check_shape("weights", weights, motion.velocity.shape)
            check_finite("weights", weights)
        for start in range(0, len(samples), chunk_rows):
            part = slice(start, min(start + chunk_rows, len(samples)))
            n = part.stop - part.start
            if len(self._buffer) != n * self._firsts[-1]:
                self._resize(n)
            self._places.fill(motion, part, self._inertial, self._signals, 1, self._buffer)
            blocks = []
            for d, width in enumerate(self._widths):
                block = self._buffer[self._firsts[d] * n :][: width * n].reshape(width, n)
                if weights is not None:
                    block *= weights[part, d]
                blocks.append(block.T)
            yield Chunk(blocks, samples.time[part])


class ChosenTorqueRows:
    """``[Y tau]`` over chosen columns, ``row = sample * torques + torque``: for a few samples at once, as they come online."""

    def __init__(self, robot: Robot, columns: IntArray) -> None:
        self._n_dof, self._width = robot.n_dof, len(columns) + 1
        column = np.full((robot.n_dof, len(robot.parameters)), -1)
        column[:, columns] = self._width * np.arange(robot.n_dof)[:, None] + np.arange(len(columns))
        self._places = _Places(robot, column, self._width * (1 + np.arange(robot.n_dof)) - 1)
        self._inertial, self._signals = freeze(self._places.inertial, np.int64), freeze(self._places.signals, np.int64)

    def rows(self, samples: Samples) -> Array:
        """The rows of some samples, ``(samples, torques, columns + 1)``."""
        motion = self._places.motion(samples)
        made = np.zeros((len(samples), self._n_dof, self._width))
        step = self._n_dof * self._width
        self._places.fill(motion, slice(0, len(samples)), self._inertial, self._signals, step, made.reshape(-1))
        return made
