"""Torque rows: those of the regressor, whatever the chunks and parts."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.arrays import Array
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.regression.row_source import Chunk
from dynid.regression.torque_rows import ChosenTorqueRows, TorqueRows
from dynid.signals.samples import Samples

ROBOT, SAMPLES = dynid.demo_robot(), dynid.demo_samples(seconds=3.0)


def dense() -> Array:
    return torque_regressor(ROBOT, SAMPLES.position, SAMPLES.velocity, SAMPLES.acceleration)


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_rows_are_those_of_the_regressor(chunk_rows: int) -> None:
    source, Y = TorqueRows(ROBOT, (SAMPLES,)), dense()
    chunks = [Chunk([block.copy() for block in chunk.blocks], chunk.time) for chunk in source.passes(chunk_rows)]
    found = Chunk.concatenate(chunks)
    np.testing.assert_array_equal(found.time, SAMPLES.time)
    assert SAMPLES.torque is not None
    for d, (channel, block) in enumerate(zip(source.channels, found.blocks, strict=True)):
        np.testing.assert_allclose(block[:, :-1] @ channel.expansion, Y[:, d], atol=1e-12 * np.abs(Y).max())
        np.testing.assert_array_equal(block[:, -1], SAMPLES.torque[:, d])


def test_chosen_columns_are_those_of_the_regressor() -> None:
    columns, Y = np.array([3, 0, len(ROBOT.parameters) - 1]), dense()
    found = ChosenTorqueRows(ROBOT, columns).rows(SAMPLES)
    np.testing.assert_allclose(found[:, :, :-1], Y[:, :, columns], atol=1e-12 * np.abs(Y).max())


def test_weights_multiply_rows_and_may_be_left_out() -> None:
    def weigh(samples: Samples) -> Array:
        return np.full(samples.velocity.shape, 2.0)

    weighted = TorqueRows(ROBOT, (SAMPLES,), weigh)
    plain = next(TorqueRows(ROBOT, (SAMPLES,)).passes()).blocks[0].copy()
    np.testing.assert_array_equal(next(weighted.passes()).blocks[0], 2.0 * plain)
    np.testing.assert_array_equal(next(weighted.unweighted().passes()).blocks[0], plain)


def test_motion_without_torque_is_refused() -> None:
    motion = Samples(SAMPLES.time, SAMPLES.position, SAMPLES.velocity, SAMPLES.acceleration)
    with pytest.raises(InputError, match="no torque"):
        list(TorqueRows(ROBOT, (motion,)).passes())
    with pytest.raises(InputError, match="at least one set"):
        TorqueRows(ROBOT, ())
