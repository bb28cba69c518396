"""Rows of a load: the columns of the body that carries it and of friction, in the load's frame, filtered as those of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, matrix
from dynid.dynamics.regressors import torque_regressor
from dynid.model.frames import Frame
from dynid.model.parameters import Parameters, inertial_columns
from dynid.model.robot import Robot
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.signal_filter import Filter
from dynid.regression.row_source import Chunk
from dynid.regression.wrench_rows import GUESS
from dynid.signals.reversal_history import with_memory
from dynid.signals.samples import Samples
from dynid.validation.prediction import predict


def load_parameters(robot: Robot, place: Frame) -> Parameters:
    """Ten parameters of the load and the change of every friction coefficient."""
    changes = tuple(column for column in robot.parameters.columns if column.kind == "friction")
    return Parameters(
        (*inertial_columns(1, place.name), *changes), np.concatenate([np.array(GUESS), np.zeros(len(changes))])
    )


def regressor_of(robot: Robot, samples: Samples) -> Array:
    """``Y`` of the torque of some samples, ``(samples, joints, parameters)``, with what friction remembers."""
    one = with_memory(robot, samples)
    return torque_regressor(robot, one.position, one.velocity, one.acceleration, one.load, travel=one.travel)


def load_columns(robot: Robot, place: Frame, regressor: Array) -> Array:
    """``[Y_F, Y_f]`` of a torque regressor ``(..., parameters)``: columns of :func:`load_parameters`."""
    friction = [i for i, column in enumerate(robot.parameters.columns) if column.kind == "friction"]
    of_body = regressor[..., 10 * place.body : 10 * place.body + 10] @ place.into_body
    return np.concatenate([of_body, regressor[..., friction]], axis=-1)


def filter_rows(blocks: Sequence[Array], time: Array, filtered: Filter | None) -> Chunk:
    """Rows of one log as a run's rows were filtered; as they are where its signals were."""
    row_filter = None if filtered is None else filtered.row_filter
    if row_filter is None:
        return Chunk(list(blocks), time)
    chunks = list(row_filter.over(iter([Chunk([np.asfortranarray(block) for block in blocks], time)])))
    times = [chunk.time for chunk in chunks if chunk.time is not None]
    return Chunk([np.concatenate(parts) for parts in zip(*(c.blocks for c in chunks), strict=True)], np.concatenate(times))


def load_rows(run: IdentificationResult, one: Samples, place: Frame, tool: ArrayLike | None) -> tuple[Chunk, list[Array]]:
    """``[Y_F, Y_f, rest]`` of every joint over one log of a run's robot, and ``[Y_base, torque]``, filtered as the run's rows.

    ``tool`` are ten parameters of what else the robot carries there and is not in the run.
    """
    robot = run.robot
    assert one.torque is not None
    held = np.zeros(10) if tool is None else matrix("tool", tool, (10,))
    Y = regressor_of(robot, one)
    columns = load_columns(robot, place, Y)
    rest = (
        one.torque
        - predict(robot.with_parameters(run.estimate.standard), with_memory(robot, one))
        - columns[..., :10] @ held
    )
    joints, lift = range(robot.n_dof), run.estimate.base.lift
    blocks = [np.column_stack([columns[:, j], rest[:, j]]) for j in joints]
    model = [np.column_stack([Y[:, j] @ lift, one.torque[:, j]]) for j in joints]
    found = filter_rows([*blocks, *model], one.time, run.filter)
    return Chunk(found.blocks[: robot.n_dof], found.time), list(found.blocks[robot.n_dof :])
