"""Row sources: what they yield, under which weights and filters, any number of times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.regression.channels import full_channel, torque_channels
from dynid.regression.row_filter import FilteredRows
from dynid.regression.row_source import Chunk, MatrixRows
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples
from messages import facts
from problems import random_tree

ALL_EFFECTS = (Viscous(), Coulomb(), Offset(), Armature())


@pytest.fixture(scope="module")
def robot():
    return random_tree(70, 4, effects=ALL_EFFECTS)


@pytest.fixture
def samples(robot, sampled):
    return sampled(robot, n=300)


def gathered(source):
    """Rows of every channel, stacked over the chunks."""
    parts = [[block.copy() for block in chunk.blocks] for chunk in source.passes()]
    return [np.vstack(blocks) for blocks in zip(*parts, strict=True)]


def expected_rows(robot, samples):
    Y = torque_regressor(robot, samples.position, samples.velocity, samples.acceleration, samples.load)
    return [
        np.column_stack([Y[:, d, channel.columns], samples.torque[:, d]]) for d, channel in enumerate(torque_channels(robot))
    ]


def assert_rows(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max())


@pytest.mark.parametrize("chunk_rows", [1, 7, 299, 300, 512])
def test_rows_are_the_regressors_whatever_the_chunk(robot, samples, chunk_rows):
    source = TorqueRows(robot, (samples,), chunk_rows=chunk_rows)
    assert_rows(gathered(source), expected_rows(robot, samples))
    counts = [len(chunk) for chunk in source.passes()]
    assert sum(counts) == 300
    assert max(counts) <= chunk_rows


def test_rows_can_be_overwritten_and_made_again(robot, samples):
    source = TorqueRows(robot, (samples,), chunk_rows=64)
    for chunk in source.passes():
        for block in chunk.blocks:
            assert block.flags.f_contiguous or block.T.flags.c_contiguous
            block[:] = np.nan
    assert_rows(gathered(source), expected_rows(robot, samples))


def test_several_sources_follow_one_another(robot, samples, sampled):
    other = sampled(robot, n=40, seed=5)
    found = gathered(TorqueRows(robot, (samples, other), chunk_rows=128))
    both = [np.vstack(pair) for pair in zip(expected_rows(robot, samples), expected_rows(robot, other), strict=True)]
    assert_rows(found, both)


class Pieces:
    """A stream that can be read any number of times."""

    def __init__(self, samples, size):
        self.samples, self.size, self.readings = samples, size, 0

    def __iter__(self):
        self.readings += 1
        for start in range(0, len(self.samples), self.size):
            yield self.samples[start : start + self.size]


def test_streams_are_read_piece_by_piece(robot, samples):
    stream = Pieces(samples, 110)
    source = TorqueRows(robot, (stream,), chunk_rows=64)
    assert_rows(gathered(source), expected_rows(robot, samples))
    assert_rows(gathered(source), expected_rows(robot, samples))
    assert stream.readings == 2


def test_weights_multiply_rows_and_torque(robot, samples):
    def weigh(chunk):
        return 0.1 + np.abs(np.sin(chunk.time))[:, None] * np.arange(1, 5)

    found = gathered(TorqueRows(robot, (samples,), weights=weigh, chunk_rows=77))
    expected = [block * weigh(samples)[:, d, None] for d, block in enumerate(expected_rows(robot, samples))]
    assert_rows(found, expected)


@pytest.mark.parametrize(
    ("weigh", "message"),
    [
        (lambda chunk: np.ones(len(chunk)), facts("(300,)", "(300, 4)", "weight")),
        (lambda chunk: np.ones((len(chunk), 3)), facts("(300, 3)", "(300, 4)", "weight")),
        (lambda chunk: np.full((len(chunk), 4), np.nan), "weights holds 1200 values that are NaN"),
    ],
)
def test_bad_weights_are_refused(robot, samples, weigh, message):
    with pytest.raises(InputError, match=message):
        list(TorqueRows(robot, (samples,), weights=weigh).passes())


class MovingMean:
    """Means of ``width`` rows each, however the rows come."""

    def __init__(self, width):
        self.width = width

    def over(self, chunks):
        blocks = [[block.copy() for block in chunk.blocks] for chunk in chunks]
        whole = [np.vstack(parts) for parts in zip(*blocks, strict=True)]
        yield Chunk([np.asfortranarray(rows.reshape(-1, self.width, rows.shape[1]).mean(axis=1)) for rows in whole])


@pytest.mark.parametrize("piece", [50, 120, 1000])
def test_filter_acts_on_regressor_and_torque_together(robot, samples, piece):
    found = gathered(FilteredRows(TorqueRows(robot, (samples,), chunk_rows=piece), MovingMean(10)))
    expected = [block.reshape(30, 10, -1).mean(axis=1) for block in expected_rows(robot, samples)]
    assert_rows(found, expected)
    for block, channel in zip(found, torque_channels(robot), strict=True):
        residual = block[:, :-1] @ (channel.expansion @ robot.parameters.values) - block[:, -1]
        assert np.abs(residual).max() < 1e-10 * np.abs(block[:, -1]).max()


def test_other_effects_keep_what_else_a_source_has(robot, samples):
    source = TorqueRows(robot, (samples,), weights=lambda chunk: np.full((len(chunk), 4), 2.0))
    again = replace(source, robot=robot.with_effects(()))
    assert again.weights is source.weights
    assert len(again.parameters) == 40


def test_what_cannot_be_a_source_is_refused(robot, samples):
    with pytest.raises(InputError, match="at least one set of samples"):
        TorqueRows(robot, ())
    with pytest.raises(InputError, match="robot 'tree71' has a floating base"):
        TorqueRows(random_tree(71, 3, floating=True), (samples,))
    with pytest.raises(InputError, match="motion but no torque"):
        list(TorqueRows(robot, (replace(samples, torque=None),)).passes())
    narrow = Samples(
        samples.time, *(x[:, :3] for x in (samples.position, samples.velocity, samples.acceleration, samples.torque))
    )
    with pytest.raises(InputError, match=facts("(300, 3)", "(any, 4)", "position")):
        list(TorqueRows(robot, (narrow,)).passes())


def test_matrices_are_yielded_as_given():
    rng = np.random.default_rng(0)
    parameters = random_tree(72, 1).parameters
    long, short = rng.normal(size=(1300, 11)), rng.normal(size=(20, 11))
    source = MatrixRows(parameters, (full_channel("long", 10), full_channel("short", 10)), (long, short))
    found = gathered(source)
    np.testing.assert_array_equal(found[0], long)
    np.testing.assert_array_equal(found[1], short)
    for chunk in source.passes():
        for block in chunk.blocks:
            block[:] = np.nan
    np.testing.assert_array_equal(gathered(source)[0], long)


def test_bad_matrices_are_refused():
    parameters = random_tree(72, 1).parameters
    channels = (full_channel("wrench", 10),)
    with pytest.raises(InputError, match=facts("wrench", "(5, 10)", "(any, 11)", "channel")):
        MatrixRows(parameters, channels, (np.zeros((5, 10)),))
    with pytest.raises(InputError, match="2 matrices were given for 1 channels"):
        MatrixRows(parameters, channels, (np.zeros((5, 11)), np.zeros((5, 11))))
    with pytest.raises(InputError, match=facts("wrench", "55", "NaN", "channel")):
        MatrixRows(parameters, channels, (np.full((5, 11), np.nan),))
