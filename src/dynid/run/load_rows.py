"""Rows of a load: what torque with it has more than the model without it, over the load's columns and those of friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, matrix
from dynid.parameters import Parameters, inertial_columns
from dynid.recording.samples import Samples
from dynid.regression.memory import with_memory
from dynid.regression.source import Chunk
from dynid.regression.torque import torque_regressor
from dynid.regression.wrench_rows import GUESS
from dynid.robot.frames import Frame
from dynid.robot.model import Robot
from dynid.run.record import Run
from dynid.run.signals import Filter
from dynid.validation.torque import predict


@dataclass(frozen=True, eq=False)
class LoadRows:
    """``[Y_F, Y_f, rest]`` of every joint over one log, and its torque, all filtered as the run's rows."""

    time: Array
    rows: tuple[Array, ...]
    torque: Array
    model: tuple[Array, ...]
    """Columns of the run's base parameters."""


def load_parameters(robot: Robot, place: Frame) -> Parameters:
    """Ten parameters of the load and the change of every friction coefficient."""
    changes = tuple(column for column in robot.parameters.columns if column.kind == "friction")
    return Parameters(
        (*inertial_columns(1, place.name), *changes), np.concatenate([np.array(GUESS), np.zeros(len(changes))])
    )


def load_rows(run: Run, one: Samples, place: Frame, tool: ArrayLike | None) -> LoadRows:
    """Rows of one log of a run's robot with a load at a place; ``tool`` are ten parameters of what else it carries there."""
    robot = run.robot
    one = with_memory(robot, one)
    assert one.torque is not None
    held = np.zeros(10) if tool is None else matrix("tool", tool, (10,))
    friction = [i for i, column in enumerate(robot.parameters.columns) if column.kind == "friction"]
    Y = torque_regressor(robot, one.position, one.velocity, one.acceleration, one.load, travel=one.travel)
    of_load = Y[:, :, 10 * place.body : 10 * place.body + 10] @ place.into_body
    rest = one.torque - predict(robot, run.estimate.standard, one) - of_load @ held
    n, lift = robot.n_dof, run.estimate.base.lift
    blocks = [np.column_stack([of_load[:, j], Y[:, j, friction], rest[:, j]]) for j in range(n)]
    model = [Y[:, j] @ lift for j in range(n)]
    *rows, beside = _filtered([*blocks, *model, np.column_stack([one.torque, one.time])], one.time, run.filter)
    return LoadRows(beside[:, -1], tuple(rows[:n]), beside[:, :-1], tuple(rows[n:]))


def _filtered(blocks: list[Array], time: Array, filtered: Filter | None) -> list[Array]:
    """Rows as the run's rows were filtered; as they are where its signals were."""
    row_filter = None if filtered is None else filtered.row_filter
    if row_filter is None:
        return blocks
    chunks = list(row_filter.over(iter([Chunk([np.asfortranarray(block) for block in blocks], time)])))
    return [np.concatenate(parts) for parts in zip(*(chunk.blocks for chunk in chunks), strict=True)]
