"""The row source: where the rows of a regression come from, so that they can be made again.

A source is samples (or streams of them) of one robot, with optional row weights and an optional row filter. Each pass makes
the rows of every channel chunk by chunk; no stacked ``W`` is ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from dynid.arrays import Array, check_finite, check_shape, freeze
from dynid.errors import InputError
from dynid.parameters import Parameters
from dynid.recording.samples import Samples, SampleStream
from dynid.regression.channels import Channel, torque_channels
from dynid.regression.torque import checked_motion, effect_signals, fill_torque_rows
from dynid.robot.effects import Effect
from dynid.robot.model import Robot

CHUNK_ROWS = 512
"""Samples per chunk: small enough that the rows of one joint stay in the cache while they are triangularised."""

Weights: TypeAlias = Callable[[Samples], Array]
"""Weight of every row of a chunk of samples, ``(samples, torques)``; rows are multiplied by it."""


class RowFilter(Protocol):
    """A linear filter along time on regressor and torque together (filter and decimate, polynomial approximation)."""

    def segments(self, samples: Samples) -> Iterator[tuple[Samples, slice]]:
        """Overlapping pieces of the samples, each with the part of its rows that the piece answers for."""
        ...

    def apply(self, rows: Array, piece: Samples, part: slice) -> Array:
        """Filter ``(rows, columns)`` of a piece along its rows and return those that it answers for."""
        ...


class RowSource(Protocol):
    """Anything that can make the rows of some channels, any number of times."""

    @property
    def parameters(self) -> Parameters: ...

    @property
    def channels(self) -> tuple[Channel, ...]: ...

    def passes(self) -> Iterator[tuple[int, list[Array]]]:
        """Chunks of samples: how many, and for every channel ``[W tau]`` in column-major order, free to overwrite."""
        ...


@dataclass(frozen=True)
class TorqueRows:
    """Torque rows of one robot over samples."""

    robot: Robot
    sources: tuple[Samples | SampleStream, ...]
    weights: Weights | None = None
    row_filter: RowFilter | None = None
    chunk_rows: int = CHUNK_ROWS

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("a regression needs at least one set of samples")
        if self.robot.floating:
            raise InputError(
                f"robot '{self.robot.name}' has a floating base: its logs are not defined yet, only regressor and base reduction"
            )

    @property
    def parameters(self) -> Parameters:
        return self.robot.parameters

    @property
    def channels(self) -> tuple[Channel, ...]:
        return torque_channels(self.robot)

    def with_options(
        self,
        effects: Sequence[Effect] | None = None,
        weights: Weights | None = None,
        row_filter: RowFilter | None = None,
    ) -> TorqueRows:
        """The same samples under other effects, weights or a row filter; what is None stays as it is."""
        return replace(
            self,
            robot=self.robot if effects is None else self.robot.with_effects(effects),
            weights=self.weights if weights is None else weights,
            row_filter=self.row_filter if row_filter is None else row_filter,
        )

    def pieces(self) -> Iterator[Samples]:
        """The samples in chunks."""
        for source in self.sources:
            for piece in source:
                for start in range(0, len(piece), self.chunk_rows):
                    yield piece[start : start + self.chunk_rows]

    def passes(self) -> Iterator[tuple[int, list[Array]]]:
        maker = _RowMaker(self.robot, self.channels)
        if self.row_filter is None:
            for chunk in self.pieces():
                yield len(chunk), maker.rows(chunk, self.weights)
            return
        for source in self.sources:
            for whole in source:
                for piece, part in self.row_filter.segments(whole):
                    rows = [
                        np.asfortranarray(self.row_filter.apply(block, piece, part))
                        for block in maker.rows(piece, self.weights)
                    ]
                    yield len(rows[0]), rows


class _RowMaker:
    """Buffers for the rows of one chunk, reused from chunk to chunk."""

    def __init__(self, robot: Robot, channels: tuple[Channel, ...]) -> None:
        self._robot, self._channels = robot, channels
        n_inertial = robot.parameters.n_inertial
        width = max(channel.width for channel in channels)
        self._target = np.full((robot.n_dof, n_inertial), -1, dtype=np.int64)
        self._effects: list[tuple[int, int, int, float]] = []  # torque, place in its rows, effect column, coefficient
        for d, channel in enumerate(channels):
            for place, column in enumerate(channel.columns):
                if column < n_inertial:
                    self._target[d, column] = place
                else:
                    effect = int(column - n_inertial)
                    self._effects.append((d, place, effect, float(robot.effect_incidence[d, effect])))
        self._buffer = np.zeros((robot.n_dof, width + 1, 0))

    def rows(self, samples: Samples, weights: Weights | None) -> list[Array]:
        n = len(samples)
        if self._buffer.shape[2] != n:
            self._buffer = np.zeros((*self._buffer.shape[:2], n))
        if samples.torque is None:
            raise InputError("samples hold motion but no torque, so there is nothing to identify from")
        q, v, a = checked_motion(self._robot, samples.position, samples.velocity, samples.acceleration)
        fill_torque_rows(self._robot, q, v, a, self._target, self._buffer)
        if self._effects:
            signals = np.ascontiguousarray(effect_signals(self._robot, q, v, a, samples.load).T)
            for d, place, effect, coefficient in self._effects:
                np.multiply(signals[effect], coefficient, out=self._buffer[d, place])
        scale = None if weights is None else np.asarray(weights(samples), dtype=np.float64)
        if scale is not None:
            check_shape("weights", scale, (n, self._robot.n_dof))
            check_finite("weights", scale)
        rows = []
        for d, channel in enumerate(self._channels):
            self._buffer[d, channel.width] = samples.torque[:, d]
            block = self._buffer[d, : channel.width + 1]
            if scale is not None:
                block *= scale[:, d]
            rows.append(block.T)
        return rows


@dataclass(frozen=True, eq=False)
class MatrixRows:
    """Rows given as one matrix per channel: energy differences, poses, a force/torque sensor."""

    parameters: Parameters
    channels: tuple[Channel, ...]
    matrices: tuple[Array, ...]
    """``[W tau]`` of every channel, ``(rows, columns + 1)``, over the channel's own columns."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrices", tuple(freeze(block) for block in self.matrices))
        if len(self.matrices) != len(self.channels):
            raise InputError(f"{len(self.matrices)} matrices were given for {len(self.channels)} channels")
        for channel, block in zip(self.channels, self.matrices, strict=True):
            check_shape(f"[W tau] of channel '{channel.name}'", block, (None, channel.width + 1))
            check_finite(f"[W tau] of channel '{channel.name}'", block)

    def passes(self) -> Iterator[tuple[int, list[Array]]]:
        longest = max(len(block) for block in self.matrices)
        for start in range(0, longest, CHUNK_ROWS):
            blocks = [np.asfortranarray(block[start : start + CHUNK_ROWS]) for block in self.matrices]
            yield max(len(block) for block in blocks), [np.array(block, order="F") for block in blocks]
