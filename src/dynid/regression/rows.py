"""The row source: where the rows of a regression come from, so that they can be made again.

A source is samples (or streams of them) of one robot, with optional row weights and an optional row filter. Each pass makes
the rows of every channel chunk by chunk; no stacked ``W`` is ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from dynid.arrays import Array, check_finite, check_shape, freeze, frozen_view
from dynid.errors import InputError
from dynid.parameters import Parameters
from dynid.recording.samples import Samples, SampleStream
from dynid.regression.channels import Channel, torque_channels
from dynid.regression.torque import checked_motion, compiled, effect_signals, fill_torque_rows, support_pairs
from dynid.robot.effects import Effect
from dynid.robot.model import Robot

CHUNK_ROWS = 520
"""Samples per chunk: few enough that the rows of one joint stay in the cache while they are triangularised, and no power of
two, whose columns would all begin at the same place of the cache."""

LONG_CHUNK_ROWS, LONG_ROWS = 2 * CHUNK_ROWS, 64 * CHUNK_ROWS
"""Samples per chunk of a piece that has so many: longer chunks are a little faster, and enough time blocks are left."""

STRETCH_ROWS = 8 * CHUNK_ROWS
"""Samples whose motion is checked and whose effect signals are made at a time, for several chunks."""

Weights: TypeAlias = Callable[[Samples], Array]
"""Weight of every row of some samples, ``(samples, torques)``; rows are multiplied by it."""


class RowFilter(Protocol):
    """A linear filter along time on regressor and torque together (filter and decimate, polynomial approximation)."""

    def segments(self, samples: Samples | SampleStream) -> Iterator[tuple[Samples, slice]]:
        """Overlapping pieces of the samples, each with the part of its rows that the piece answers for.

        A stream is handed over whole: its pieces belong together. Row weights are applied before the filter.
        """
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
        """Chunks of samples: how many, and for every channel ``[W tau]`` in column-major order.

        They are free to overwrite, and gone when the next chunk is asked for.
        """
        ...


@dataclass(frozen=True)
class TorqueRows:
    """Torque rows of one robot over samples."""

    robot: Robot
    sources: tuple[Samples | SampleStream, ...]
    weights: Weights | None = None
    row_filter: RowFilter | None = None
    chunk_rows: int | None = None
    """Samples per chunk, and so the shortest time block of a factor; without, chosen by the length of each piece."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("a regression needs at least one set of samples")
        if self.robot.floating:
            raise InputError(
                f"robot '{self.robot.name}' has a floating base: its logs are not defined yet, "
                "only regressor and base reduction"
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

    def passes(self) -> Iterator[tuple[int, list[Array]]]:
        maker = _RowMaker(self.robot, self.channels, self.weights)
        for source in self.sources:
            if self.row_filter is not None:
                for segment, part in self.row_filter.segments(source):
                    for _, blocks in maker.rows(segment, len(segment)):
                        rows = [np.asfortranarray(self.row_filter.apply(block, segment, part)) for block in blocks]
                        yield len(rows[0]), rows
                continue
            for piece in source:
                chunk = self.chunk_rows or (LONG_CHUNK_ROWS if len(piece) >= LONG_ROWS else CHUNK_ROWS)
                stretch = chunk * max(1, STRETCH_ROWS // chunk)
                for start in range(0, len(piece), stretch):
                    yield from maker.rows(piece[start : start + stretch], chunk)


class _RowMaker:
    """The columns of all channels for one chunk, in one buffer that is reused from chunk to chunk."""

    def __init__(self, robot: Robot, channels: tuple[Channel, ...], weights: Weights | None) -> None:
        self._robot, self._weights = robot, weights
        n_inertial, n_effects = robot.parameters.n_inertial, robot.effect_incidence.shape[1]
        self._widths = [channel.width + 1 for channel in channels]
        self._firsts = np.concatenate([[0], np.cumsum(self._widths)])
        place = np.full((robot.n_dof, len(robot.parameters)), -1)  # column of the buffer, where a channel has that parameter
        for d, channel in enumerate(channels):
            place[d, channel.columns] = self._firsts[d] + np.arange(channel.width)
        torque, body = support_pairs(robot)
        self._inertial = place[torque[:, None], 10 * body[:, None] + np.arange(10)]
        # columns that are signals: effects where they act, then the torque of each channel as its last column
        acts, effect = np.nonzero(place[:, n_inertial:] >= 0)
        self._signal = freeze(np.concatenate([effect, n_effects + np.arange(robot.n_dof)]), np.int64)
        self._coefficient = freeze(np.concatenate([robot.effect_incidence[acts, effect], np.ones(robot.n_dof)]))
        self._signal_place = np.concatenate([place[acts, n_inertial + effect], self._firsts[1:] - 1])
        self._resize(0)

    def _resize(self, n: int) -> None:
        """Make room for chunks of ``n`` samples, each column in one run."""
        self._buffer = np.zeros(n * self._firsts[-1])
        self._targets = freeze(np.where(self._inertial < 0, -1, self._inertial * n), np.int64)
        self._signal_targets = freeze(self._signal_place * n, np.int64)

    def rows(self, samples: Samples, chunk_rows: int) -> Iterator[tuple[int, list[Array]]]:
        """``[W tau]`` of every channel for chunks of the samples; the next chunk overwrites them."""
        from dynid.regression import kernel

        if samples.torque is None:
            raise InputError("samples hold motion but no torque, so there is nothing to identify from")
        robot = self._robot
        q, v, a = checked_motion(robot, samples.position, samples.velocity, samples.acceleration)
        check_shape("torque", samples.torque, (len(q), robot.n_dof))
        signals = samples.torque
        if robot.effects:
            signals = np.hstack([effect_signals(robot, q, v, a, samples.load), signals])
        signals = frozen_view(signals)
        weights = None if self._weights is None else np.asarray(self._weights(samples), dtype=np.float64)
        if weights is not None:
            check_shape("weights", weights, (len(q), robot.n_dof))
            check_finite("weights", weights)
        for start in range(0, len(samples), chunk_rows):
            part = slice(start, min(start + chunk_rows, len(samples)))
            n = part.stop - part.start
            if len(self._buffer) != n * self._firsts[-1]:
                self._resize(n)
            fill_torque_rows(robot, q[part], v[part], a[part], self._targets, 1, self._buffer)
            compiled(kernel.signal_rows)(
                signals[part], self._signal, self._coefficient, self._signal_targets, 1, self._buffer
            )
            rows = []
            for d, width in enumerate(self._widths):
                block = self._buffer[self._firsts[d] * n :][: width * n].reshape(width, n)
                if weights is not None:
                    block *= weights[part, d]
                rows.append(block.T)
            yield n, rows


@dataclass(frozen=True, eq=False)
class MatrixRows:
    """Rows given as one matrix per channel: energy differences, poses, a force/torque sensor."""

    parameters: Parameters
    channels: tuple[Channel, ...]
    matrices: tuple[Array, ...]
    """``[W tau]`` of every channel, ``(rows, columns + 1)``, over the channel's own columns."""
    chunk_rows: int = CHUNK_ROWS

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrices", tuple(freeze(block) for block in self.matrices))
        if len(self.matrices) != len(self.channels):
            raise InputError(f"{len(self.matrices)} matrices were given for {len(self.channels)} channels")
        for channel, block in zip(self.channels, self.matrices, strict=True):
            check_shape(f"[W tau] of channel '{channel.name}'", block, (None, channel.width + 1))
            check_finite(f"[W tau] of channel '{channel.name}'", block)

    def passes(self) -> Iterator[tuple[int, list[Array]]]:
        longest = max(len(block) for block in self.matrices)
        for start in range(0, longest, self.chunk_rows):
            blocks = [np.array(block[start : start + self.chunk_rows], order="F") for block in self.matrices]
            yield max(len(block) for block in blocks), blocks


@dataclass(frozen=True, eq=False)
class TimedMatrixRows(MatrixRows):
    """Such rows of one log, evenly one after the other in time and as many for every channel."""

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = [len(block) for block in self.matrices]
        if len(set(counts)) > 1:
            raise InputError(f"channels of one log have {counts} rows, expected as many for each")
