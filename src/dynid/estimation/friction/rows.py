"""Rows for friction fits: what does not change during a search is made and factored once.

Signals of effects are made at every sample and then pass through the row filter, like regressor and torque:
``F(tau) = F(Y) beta + F(s(v, a; theta)) c``. Filtered rows are few, so that all further work is on small matrices: the rigid
columns of every joint are factored once, ``A_d = Q_d R_d``, and columns of friction are only seen through their coordinates

    [ Q_d^T x ; R of (1 - Q_d Q_d^T) x ]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray, IntArray
from dynid.dynamics.inverse_dynamics import inverse_dynamics, transmitting
from dynid.dynamics.joint_effects import driven_motion
from dynid.errors import InputError
from dynid.model.effects.effect import Motion
from dynid.model.friction import without_searched
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.channels import orthonormal_basis, torque_channels
from dynid.regression.decimation import Decimation
from dynid.regression.row_filter import RowFilter
from dynid.regression.row_source import Chunk, RowSource
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.reversal_history import with_travel
from dynid.signals.samples import Samples

MOST_ROWS = 6_000
"""Rows kept without a row filter: a low-passed signal repeats itself."""
MOST_NUMBERS = 10_000_000
"""Numbers in the rigid columns of all joints: of a long chain, whose columns are many, rows of windows are taken, spread over all logs."""
WINDOW_ROWS = 12
"""Filtered rows of such a window, about."""
ROUNDED = 1e-10
"""Part of a column outside the span of others that is no more than rounding."""
COARSE_S, SAMPLES_PER_ROW = 5e-3, 6
"""Sampling period that a search makes do with, and samples per filtered row; where it ends, all samples are taken."""


@dataclass(frozen=True, eq=False)
class Log:
    """One log: its motion at every sample, and how columns over it become rows."""

    samples: Samples
    motion: Motion
    row_filter: RowFilter | None
    every: int = 1
    """One sample of so many is a row, where no filter makes rows of them."""
    kept: IntArray | None = None
    """Numbers of the samples that a coarse log has of the whole one."""
    planned: Decimation | None = None
    """How these samples become the rows of the whole log, but for rounding of sharp turns in time."""

    def rows(self, columns: Sequence[Array]) -> Array:
        """Columns over samples, several arrays ``(samples, columns)``, as columns over rows side by side."""
        if self.row_filter is None:
            return np.hstack([one[:: self.every] for one in columns])
        if self._decimation is not None:
            return self._decimation.rows(columns)
        chunk = Chunk([np.asfortranarray(np.hstack(columns))], self.samples.time)
        return np.concatenate([part.blocks[0] for part in self.row_filter.over(iter([chunk]))])

    def used(self, signals: Array, joints: IntArray) -> Array:
        """Signals over samples, each of one joint, times the weight that this joint's rows have."""
        weight = self.samples.weight
        if weight is None:
            return signals
        return np.asfortranarray(signals * (weight if self.kept is None else weight[self.kept])[:, joints])

    @cached_property
    def times(self) -> Array:
        """Times of the rows."""
        if self.row_filter is None:
            return self.samples.time[:: self.every]
        chunk = Chunk([np.zeros((len(self.samples), 1))], self.samples.time)
        return np.concatenate([np.asarray(part.time) for part in self.row_filter.over(iter([chunk]))])

    @cached_property
    def _decimation(self) -> Decimation | None:
        """The row filter planned for this log, where it is one that can be."""
        if self.planned is not None:
            return self.planned
        plan = getattr(self.row_filter, "decimation", None)
        return None if plan is None else plan(self.samples.time)

    @cached_property
    def coarse(self) -> Log | None:
        """The same rows from fewer samples, to search on; None where that is no less work."""
        if self._decimation is None:
            return None
        period_s = self.samples.duration_s / max(len(self.samples) - 1, 1)
        kept, decimation = self._decimation.thinned(int(COARSE_S / period_s), SAMPLES_PER_ROW)
        if 2 * len(kept) > len(self.samples):
            return None
        whole = self.motion
        parts = {name: np.asfortranarray(getattr(whole, name)[kept]) for name in ("position", "velocity", "acceleration")}
        travel = None if whole.travel is None else np.asfortranarray(whole.travel[kept])
        return replace(self, motion=Motion(**parts, travel=travel), kept=kept, planned=decimation)


class Basis:
    """Columns of every joint that no search changes, over some rows, factored: ``A_d = Q_d R_d``."""

    def __init__(self, Q: Sequence[Array], blocks: Sequence[Array]) -> None:
        self._Q = Q
        self.blocks = blocks
        """Coordinates of every joint's columns, expanded into base parameters and friction values."""

    @classmethod
    def of(cls, columns: Sequence[Array], expansions: Sequence[Array]) -> Basis:
        """Of the rigid columns of every joint and how base parameters enter them."""
        factored = [np.linalg.qr(A) for A in columns]
        return cls([Q for Q, _ in factored], [R @ E for (_, R), E in zip(factored, expansions, strict=True)])

    def beside(self, columns: Array, incidence: Array) -> Basis:
        """With further columns, ``(rows, columns)``, that enter joints by an ``incidence`` of ``(joints, columns)``."""
        made, blocks = [], []
        for d, (Q, block, gains) in enumerate(zip(self._Q, self.blocks, incidence, strict=True)):
            entering = np.flatnonzero(gains)
            own = columns[:, entering] * gains[entering]
            inside, left = self._projected(d, own)
            left[:, np.linalg.norm(left, axis=0) < ROUNDED * np.linalg.norm(own, axis=0)] = 0.0
            more = orthonormal_basis(left)
            made.append(np.hstack([Q, more]))
            whole = np.zeros((made[-1].shape[1], block.shape[1] + len(gains)))
            whole[: len(block), : block.shape[1]] = block
            whole[:, block.shape[1] + entering] = np.vstack([inside, more.T @ left])
            blocks.append(whole)
        return Basis(made, blocks)

    def _projected(self, joint: int, columns: Array) -> tuple[Array, Array]:
        """Coordinates of columns inside the span of a joint's own, and what is left of them."""
        Q = self._Q[joint]
        inside = Q.T @ columns
        left = columns - Q @ inside
        again = Q.T @ left  # once more, so that what is left is orthogonal to working precision
        return inside + again, left - Q @ again

    def coordinates(self, columns: Mapping[int, Array]) -> list[Array]:
        """``(coordinates, columns)`` of some joints: lengths and angles of columns, to each other and to those of the basis, are kept."""
        parts = {d: self._projected(d, own) for d, own in columns.items()}
        outside = [left for _, left in parts.values()]
        triangles: Any
        alike = len({left.shape for left in outside}) == 1
        triangles = np.linalg.qr(np.array(outside), mode="r") if alike else [np.linalg.qr(A, mode="r") for A in outside]
        found = [np.zeros((0, 0))] * len(self._Q)
        for (d, (inside, _)), R in zip(parts.items(), triangles, strict=True):
            found[d] = np.vstack([inside, R])
        return found


@dataclass(frozen=True, eq=False)
class FrictionData:
    """Filtered rows of everything but friction, for any friction model of one robot."""

    rigid: Robot
    """The robot without friction; its parameters are the nominal ones, or those that are held."""
    logs: tuple[Log, ...]
    columns: tuple[Array, ...]
    """Rigid columns of every joint, none where the bodies are held."""
    torque: Array
    """``(rows, joints)``, less that of the nominal bodies, or of the bodies held."""
    measured: Array
    """``(rows, joints)``, as it is."""
    held: bool
    """Whether the rigid bodies are known."""

    @classmethod
    def of(
        cls,
        robot: Robot,
        samples: Samples | Sequence[Samples],
        row_filter: RowFilter | None = None,
        *,
        held: bool = False,
        most_rows: int = MOST_ROWS,
    ) -> FrictionData:
        if robot.floating:
            raise InputError(f"robot '{robot.name}' has a floating base: friction is fitted on robots that stand fixed")
        if robot.loops.rubbing:
            raise InputError(
                f"passive joints {', '.join(robot.loops.rubbing)} of robot '{robot.name}' have friction, for which no model is chosen; "
                "name the effects (--effects viscous,coulomb), or leave friction off these joints"
            )
        sets = [with_travel(one) for one in ([samples] if isinstance(samples, Samples) else samples)]
        if not sets:
            raise InputError("fitting friction needs at least one set of samples, got none")
        if any(one.torque is None for one in sets):
            raise InputError("samples hold motion but no torque, so there is nothing to fit friction to")
        rigid = without_searched(robot)
        every = 1 if row_filter is not None else max(1, int(np.ceil(sum(len(one) for one in sets) / most_rows)))
        width = sum(channel.width for channel in torque_channels(rigid))
        sets = fewer_samples(sets, row_filter, width, MOST_NUMBERS)
        logs = tuple(Log(one, _motion(robot, one), row_filter, every) for one in sets)
        made = [torque_rows_of(rigid, log) for log in logs]
        columns = [np.concatenate(parts) for parts in zip(*(blocks for blocks, _ in made), strict=True)]
        measured = np.concatenate([torque for _, torque in made])
        if len(measured) * robot.n_dof < len(robot.parameters):
            raise InputError(
                f"{len(measured)} rows of {robot.n_dof} joints are left, too few for {len(robot.parameters)} parameters: give "
                "longer logs or a higher --cutoff-hz"
            )
        channels = torque_channels(rigid)
        nominal = np.column_stack(
            [A @ channel.values(rigid.parameters.values) for A, channel in zip(columns, channels, strict=True)]
        )
        if held:
            columns = [A[:, :0] for A in columns]
        return cls(rigid, logs, tuple(columns), measured - nominal, measured, held)

    def holding(self, parameters: Parameters) -> FrictionData:
        """The same rows with the rigid bodies of some parameters held."""
        bodies = self.rigid.parameters.with_values([parameters[name] for name in self.rigid.parameters.names])
        channels = torque_channels(self.rigid)
        known = [A @ channel.values(bodies.values) for A, channel in zip(self.columns, channels, strict=True)]
        return FrictionData(
            rigid=self.rigid.with_parameters(bodies),
            logs=self.logs,
            columns=tuple(A[:, :0] for A in self.columns),
            torque=self.measured - np.column_stack(known),
            measured=self.measured,
            held=True,
        )

    @property
    def has_coarse(self) -> bool:
        """Whether some log has fewer samples to search on."""
        return any(log.coarse is not None for log in self.logs)

    @property
    def n_joints(self) -> int:
        return self.rigid.n_dof

    @cached_property
    def base(self) -> BaseReduction:
        """Base parameters of everything but friction."""
        return reduce_to_base(self.rigid)

    @cached_property
    def expansions(self) -> list[Array]:
        """How base parameters enter the rigid columns of every joint."""
        channels = torque_channels(self.rigid)
        return [np.zeros((0, 0)) if self.held else self.base.regressor(channel.expansion) for channel in channels]

    @property
    def n_shared(self) -> int:
        return 0 if self.held else self.base.n_base

    def basis_of(self, columns: Array, incidence: Array, rows: BoolArray | None = None) -> Basis:
        """The rigid columns, and further ones that no search changes beside them, over all rows or some of them.

        Models of these data share it.
        """
        key = columns.tobytes(), b"" if rows is None else rows.tobytes()
        if key not in self._bases:
            if columns.size:
                found = self.basis_of(columns[:, :0], incidence[:, :0], rows)
                found = found.beside(columns if rows is None else columns[rows], incidence)
            else:
                found = Basis.of([A if rows is None else A[rows] for A in self.columns], self.expansions)
            self._bases[key] = found
        return self._bases[key]

    @cached_property
    def _bases(self) -> dict[tuple[bytes, bytes], Basis]:
        return {}

    def squares(self, weights: Array) -> tuple[Array, Array]:
        """Normal matrix and right side of the base parameters, joints counted by their weights; those of the last weights are kept."""
        key = weights.tobytes()
        if key in self._squares:
            return self._squares[key]
        H, g = np.zeros((self.n_shared, self.n_shared)), np.zeros(self.n_shared)
        for columns, expansion, torque, weight in zip(self.columns, self.expansions, self.torque.T, weights, strict=True):
            seen = np.flatnonzero(expansion.any(axis=0))  # the links that a joint carries
            A = weight * (columns @ expansion[:, seen])
            H[np.ix_(seen, seen)] += A.T @ A
            g[seen] += A.T @ (weight * torque)
        self._squares.clear()
        self._squares[key] = H, g
        return H, g

    @cached_property
    def _squares(self) -> dict[bytes, tuple[Array, Array]]:
        return {}

    def rigid_torque(self, parameters: Parameters) -> list[Array]:
        """Torque that joints transmit at every sample of each log."""
        known = self._transmitting.parameters
        robot = self._transmitting.with_parameters(known.with_values([parameters[name] for name in known.names]))
        return [
            inverse_dynamics(robot, log.samples.position, log.samples.velocity, log.samples.acceleration)
            for log in self.logs
        ]

    @cached_property
    def _transmitting(self) -> Robot:
        return transmitting(self.rigid)

    @cached_property
    def held_torque(self) -> list[Array]:
        """The same for the bodies that are held, which all models have."""
        return self.rigid_torque(self.rigid.parameters)

    def motions(self, loads: Sequence[Array] | None, *, coarse: bool = False) -> Iterator[tuple[Log, Motion]]:
        """Each log with its motion under a load; ``coarse`` takes fewer samples where that is less work."""
        for i, log in enumerate(self.logs):
            own = (log.coarse if coarse else None) or log
            if loads is None:
                yield own, own.motion
            else:
                load = loads[i] if own.kept is None else np.asfortranarray(loads[i][own.kept])
                yield own, replace(own.motion, load=load)

    def blocks(self, n_blocks: int, gap_s: float) -> IntArray:
        """Block of time of every row, see :func:`time_blocks`."""
        return time_blocks(self.logs, n_blocks, gap_s)


def _motion(robot: Robot, samples: Samples) -> Motion:
    """Motion whose columns lie in one run each, as a filter along time takes them; so do then signals made of it."""
    made = driven_motion(robot, samples.position, samples.velocity, samples.acceleration, travel=samples.travel)
    names = ("position", "velocity", "acceleration", "travel")
    return replace(made, **{name: np.asfortranarray(getattr(made, name)) for name in names})


def time_blocks(logs: Sequence[Log], n_blocks: int, gap_s: float) -> IntArray:
    """Block of time of every row, each log cut into as many of as many rows; -1 for rows within half a gap of a cut."""
    found = []
    for log in logs:
        time = log.times
        edges = time[np.linspace(0, len(time) - 1, n_blocks + 1).astype(int)]  # by rows: a log may have gaps
        block = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, n_blocks - 1)
        near = np.abs(time[:, None] - edges[None, 1:-1]).min(axis=1) < 0.5 * gap_s
        found.append(np.where(near, -1, block))
    return np.concatenate(found)


def fewer_samples(samples: Sequence[Samples], row_filter: RowFilter | None, width: int, most: int) -> list[Samples]:
    """Windows of the samples, spread over all of them, whose filtered rows over ``width`` columns hold about ``most`` numbers.

    All samples where these hold no more. Rows are filtered window by window, as parts of a log with gaps.
    """
    if row_filter is None:
        return list(samples)
    idle = (Chunk([np.zeros((len(one), 1), order="F")], one.time) for one in samples)
    rows = sum(len(part) for chunk in idle for part in row_filter.over(iter([chunk])))
    wanted, total = most / width, sum(len(one) for one in samples)
    if rows < 1.5 * wanted:
        return list(samples)
    found = []
    for one in samples:
        period_s = one.duration_s / max(len(one) - 1, 1)
        edge = getattr(row_filter, "edge_rows", lambda period_s: 0)(period_s)
        length = 2 * edge + int(np.ceil(WINDOW_ROWS * total / rows))
        count = int(np.ceil(wanted / WINDOW_ROWS * len(one) / total))
        step = len(one) / count
        if step < length + 2:
            found.append(one)
            continue
        inside = (np.arange(len(one)) % step >= 0.5 * (step - length)) & (np.arange(len(one)) % step < 0.5 * (step + length))
        found.append(one[np.flatnonzero(inside)])
    return found


def torque_rows_of(robot: Robot, log: Log, known: RowSource | None = None) -> tuple[list[Array], Array]:
    """Rows of every joint of a robot, such as one without friction, and the measured torque in the same rows.

    ``known`` has the filtered rows already, where they were made before.
    """
    samples = log.samples if log.row_filter is not None else log.samples[:: log.every]
    chunks = (TorqueRows(robot, (samples,)) if known is None else known).passes()
    if log.row_filter is not None and known is None:
        chunks = log.row_filter.over(chunks)
    parts = [[block.copy() for block in chunk.blocks] for chunk in chunks]
    joined = [np.concatenate(blocks) for blocks in zip(*parts, strict=True)]
    return [block[:, :-1] for block in joined], np.column_stack([block[:, -1] for block in joined])
