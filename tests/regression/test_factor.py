"""The mergeable triangles: the same ``R^T R`` however the rows are cut, ordered or spread."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError, NoRowsError
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.regression import factor as factor_module
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels
from dynid.regression.factor import (
    build_regression,
    factorise,
    factorise_whole,
    matrix_regression,
    merge_triangles,
    triangle_of_blocks,
)
from dynid.regression.row_source import BLOCK_LIMIT, CHUNK_ROWS, Chunk, WrappedRows
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples
from messages import facts
from problems import random_tree

ALL_EFFECTS = (Viscous(), Coulomb(), Offset(), Armature())


@pytest.fixture(scope="module")
def robot():
    return random_tree(80, 4, effects=ALL_EFFECTS)


@pytest.fixture
def samples(robot, sampled):
    return sampled(robot, n=1500)


def grams(robot, *sets, weights=None):
    """``[W tau]^T [W tau]`` of every channel from the plain stacked matrix."""
    totals = None
    for samples in sets:
        Y = torque_regressor(robot, samples.position, samples.velocity, samples.acceleration, samples.load)
        scale = np.ones(samples.torque.shape) if weights is None else weights(samples)
        blocks = []
        for d, channel in enumerate(torque_channels(robot)):
            rows = np.column_stack([Y[:, d, channel.columns], samples.torque[:, d]]) * scale[:, d, None]
            blocks.append(rows.T @ rows)
        totals = blocks if totals is None else [a + b for a, b in zip(totals, blocks, strict=True)]
    return totals


def assert_grams(regression, expected):
    for found, gram in zip(regression.factors, expected, strict=True):
        np.testing.assert_array_equal(found.R, np.triu(found.R))
        np.testing.assert_allclose(found.R.T @ found.R, gram, rtol=0, atol=1e-12 * np.abs(gram).max())


# Cutting, merging, spreading ---------------------------------------------------------------------------


@pytest.mark.parametrize("chunk_rows", [1, 13, 512, 1499, 5000])
def test_chunks_do_not_matter(robot, samples, chunk_rows):
    regression = factorise(TorqueRows(robot, (samples,), chunk_rows=chunk_rows))
    assert_grams(regression, grams(robot, samples))
    assert regression.n_samples == 1500
    assert regression.n_rows == 4 * 1500
    np.testing.assert_allclose(regression.torque_norms, np.linalg.norm(samples.torque, axis=0), rtol=1e-12)


def test_fewer_samples_than_columns(robot, samples):
    few = samples[:3]
    assert_grams(build_regression(robot, few), grams(robot, few))


def test_merging_in_any_order(robot, samples, sampled):
    logs = [samples, sampled(robot, n=37, seed=1), sampled(robot, n=700, seed=2)]
    parts = [build_regression(robot, log) for log in logs]
    expected = grams(robot, *logs)
    a, b, c = parts
    for merged in (a + b + c, c + a + b, a + (b + c), (c + b) + a):
        assert_grams(merged, expected)
        assert merged.n_samples == 2237
    assert_grams(build_regression(robot, logs), expected)


def test_regressions_of_separately_made_twins_merge(samples):
    one, twin = (random_tree(80, 4, effects=ALL_EFFECTS) for _ in range(2))
    merged = build_regression(one, samples[:500]) + build_regression(twin, samples[500:])
    assert_grams(merged, grams(one, samples))


def test_spread_over_threads(robot, samples, sampled):
    logs = [samples, sampled(robot, n=200, seed=3), sampled(robot, n=600, seed=4)]
    with ThreadPoolExecutor(2) as pool:
        regression = build_regression(robot, logs, map_over=pool.map)
    assert_grams(regression, grams(robot, *logs))
    assert len(regression.sources) == 1
    assert_grams(factorise(regression.sources[0]), grams(robot, *logs))


def test_a_stream_is_one_source(robot, samples):
    class Halves:
        def __iter__(self):
            yield samples[:700]
            yield samples[700:]

    assert_grams(build_regression(robot, Halves()), grams(robot, samples))


def test_sets_that_come_from_an_iterator_can_be_read_again(robot, samples):
    regression = build_regression(robot, (samples[i : i + 500] for i in range(0, 1500, 500)))
    assert_grams(regression, grams(robot, samples))
    assert_grams(factorise(regression.sources[0]), grams(robot, samples))


def test_others_are_not_merged(robot, samples, sampled):
    other = random_tree(81, 4, effects=ALL_EFFECTS)
    mine, theirs = build_regression(robot, samples), build_regression(other, sampled(other))
    with pytest.raises(InputError, match="different robots cannot merge"):
        _ = mine + theirs
    rigid = build_regression(robot.with_effects(()), samples)
    with pytest.raises(InputError, match="regressions with 56 and 40 parameters"):
        _ = mine + rigid


def test_merge_triangles():
    rng = np.random.default_rng(0)
    triangles = np.triu(rng.normal(size=(5, 20, 20)))
    R = merge_triangles(triangles)
    np.testing.assert_allclose(R.T @ R, np.einsum("kij,kil->jl", triangles, triangles), atol=1e-12)
    before = triangles.copy()
    merge_triangles(triangles)
    np.testing.assert_array_equal(triangles, before)


# The least-squares problem in small -----------------------------------------------------------------------


@pytest.mark.parametrize("stacked", [0, 10**9])
def test_blocks_that_begin_with_zeros_merge_to_the_triangle_of_all_rows(monkeypatch, stacked):
    """As those of the joints of a tree, in any order, with an empty one and columns that no block has."""
    monkeypatch.setattr(factor_module, "_STACKED_NUMBERS", stacked)
    rng = np.random.default_rng(3)
    blocks = []
    for first, last, n in ((3, 20, 6), (9, 20, 14), (15, 20, 2), (3, 9, 5), (20, 20, 4), (12, 20, 30)):
        block = np.zeros((n, 20))
        block[:, first:last] = rng.normal(size=(n, last - first))
        blocks.append(block)
    kept = [block.copy() for block in blocks]
    R = triangle_of_blocks(blocks)
    assert R.shape == (20, 20)
    assert not np.tril(R, -1).any()
    whole = np.vstack(blocks)
    np.testing.assert_allclose(R.T @ R, whole.T @ whole, atol=1e-12)
    for block, before in zip(blocks, kept, strict=True):
        np.testing.assert_array_equal(block, before)


def test_triangle_over_all_and_over_base_parameters(robot, samples):
    regression = build_regression(robot, samples)
    Y = torque_regressor(robot, samples.position, samples.velocity, samples.acceleration)
    W = np.column_stack([Y.reshape(-1, Y.shape[2]), samples.torque.ravel()])
    for base in (None, reduce_to_base(robot)):
        full = W if base is None else np.column_stack([W[:, base.independent], W[:, -1]])
        R = regression.triangle(base)
        np.testing.assert_allclose(R.T @ R, full.T @ full, rtol=0, atol=1e-10 * np.abs(full.T @ full).max())
    weights = np.array([1.0, 0.5, 2.0, 3.0])
    weighted = (Y * weights[:, None]).reshape(-1, Y.shape[2])
    R = regression.triangle(None, weights)[:, :-1]
    np.testing.assert_allclose(R.T @ R, weighted.T @ weighted, rtol=0, atol=1e-10 * np.abs(weighted.T @ weighted).max())
    with pytest.raises(InputError, match="3 weights were given for 4 channels"):
        regression.stacked(None, [1.0, 1.0, 1.0])


def test_base_parameters_come_back_exactly_from_noise_free_samples(robot, sampled):
    regression = build_regression(robot, [sampled(robot, n=800, seed=s) for s in range(3)])
    base = reduce_to_base(robot)
    R = regression.triangle(base)
    beta = np.linalg.lstsq(R[:, :-1], R[:, -1])[0]
    np.testing.assert_allclose(beta, base.base_values(robot.parameters), rtol=0, atol=1e-10)


def test_base_of_another_robot_is_refused(robot, samples):
    base = reduce_to_base(robot.with_effects(()))
    with pytest.raises(InputError, match=facts("40", "56", "parameter")):
        build_regression(robot, samples).triangle(base)


def test_scaled_factor(robot, samples):
    factor = build_regression(robot, samples).factors[1]
    np.testing.assert_allclose(factor.scaled(3.0).torque_norm, 3.0 * factor.torque_norm, rtol=1e-12)


# Another pass ---------------------------------------------------------------------------------------------


def test_the_rows_can_be_made_again_under_other_effects(robot, samples):
    regression = build_regression(robot, samples)
    (source,) = regression.sources
    fewer = robot.with_effects((Viscous(),))
    again = factorise(replace(source, robot=fewer))
    assert again.parameters.names == fewer.parameters.names
    assert_grams(again, grams(fewer, samples))
    smooth = (Viscous(), Coulomb(smooth_width=0.1))
    other = replace(again.sources[0], robot=robot.with_effects(smooth))
    assert_grams(factorise(other), grams(other.robot, samples))
    assert regression.robot is robot
    assert again.robot.effects == (Viscous(),)


def test_the_rows_can_be_made_again_under_weights(robot, samples):
    def weigh(chunk):
        return 1.0 / (1.0 + chunk.velocity**2)

    (source,) = build_regression(robot, samples).sources
    again = factorise(replace(source, weights=weigh))
    assert_grams(again, grams(robot, samples, weights=weigh))
    assert_grams(factorise(again.sources[0]), grams(robot, samples, weights=weigh))
    assert_grams(factorise(again.sources[0].unweighted()), grams(robot, samples))


class EveryThird:
    """The plainest row filter: rows 0, 3, 6, .. of the whole."""

    def over(self, chunks):
        seen = 0
        for chunk in chunks:
            first = -seen % 3
            seen += len(chunk)
            yield Chunk([np.array(block[first::3], order="F") for block in chunk.blocks], chunk.time[first::3])


def test_a_row_filter_wraps_the_rows(robot, samples):
    thinned = samples[::3]
    filtered = build_regression(robot, samples, row_filter=EveryThird())
    assert filtered.n_samples == 500
    assert_grams(filtered, grams(robot, thinned))
    (source,) = filtered.sources
    rigid = replace(source, source=replace(source.source, robot=robot.with_effects(())))
    assert_grams(factorise(rigid), grams(rigid.robot, thinned))


def test_load_reaches_the_effects(robot, samples):
    """Rows carry the transmitted torque of their own chunk."""

    class Loaded(Viscous):
        name = "loaded"
        symbol = "fl"

        def signals(self, motion):
            return np.abs(motion.load) * np.sign(motion.velocity)

    rubbing = robot.with_effects((Loaded(),))
    loaded = samples.with_load(samples.torque)
    assert_grams(build_regression(rubbing, loaded), grams(rubbing, loaded))


def test_what_has_no_rows_cannot_be_made_again(robot, samples):
    regression = build_regression(robot, samples)
    assert not regression.without_sources().sources
    assert_grams(regression.without_sources(), grams(robot, samples))
    matrix = matrix_regression(robot.parameters, ["wrench"], [np.ones((5, 57))])
    with pytest.raises(InputError, match="matrix rows are not made from samples"):
        matrix.sources[0].with_samples((samples,))
    with pytest.raises(InputError, match="not built from the rows of a robot"):
        _ = matrix.robot


# Time blocks ---------------------------------------------------------------------------------------------


def test_blocks_partition_the_rows_in_time_order(robot, sampled):
    samples = sampled(robot, n=4 * CHUNK_ROWS + 10)
    regression = build_regression(robot, samples)
    factor = regression.factors[0]
    assert regression.n_blocks == 5
    assert factor.rows.tolist() == [CHUNK_ROWS] * 4 + [10]
    for k in range(5):
        piece = samples[k * CHUNK_ROWS : (k + 1) * CHUNK_ROWS]
        expected = grams(robot, piece)[0]
        np.testing.assert_allclose(
            factor.blocks[k].T @ factor.blocks[k], expected, rtol=0, atol=1e-12 * np.abs(expected).max()
        )


@pytest.mark.parametrize("n", [64, 65, 66, 129, 130, 500])
def test_blocks_stay_few(robot, samples, n):
    regression = factorise(TorqueRows(robot, (samples[:n],), chunk_rows=1))
    assert regression.n_blocks <= BLOCK_LIMIT
    assert regression.n_blocks > BLOCK_LIMIT // 4
    assert all(factor.n_rows == n for factor in regression.factors)
    assert all(len(factor.rows) == regression.n_blocks for factor in regression.factors)
    # no block is much longer than the rest, so that resampling them is fair
    rows = regression.factors[0].rows
    assert rows[:-1].max() == rows[0]
    assert rows.max() <= 2 * np.median(rows)
    assert_grams(regression, grams(robot, samples[:n]))


def test_merging_keeps_the_blocks(robot, samples, sampled):
    one, other = build_regression(robot, samples), build_regression(robot, sampled(robot, n=20, seed=7))
    merged = one + other
    assert merged.n_blocks == one.n_blocks + other.n_blocks
    assert merged.factors[0].rows.tolist() == [*one.factors[0].rows, *other.factors[0].rows]


# Explicit matrices -------------------------------------------------------------------------------------------


def test_matrix_regression():
    rng = np.random.default_rng(1)
    parameters = random_tree(82, 1).parameters
    long, short = rng.normal(size=(1200, 11)), rng.normal(size=(4, 11))
    regression = matrix_regression(parameters, ["force", "torque"], [long, short])
    assert regression.channel_names == ("force", "torque")
    assert regression.n_rows == 1204
    for factor, block in zip(regression.factors, (long, short), strict=True):
        np.testing.assert_allclose(factor.R.T @ factor.R, block.T @ block, atol=1e-11 * np.abs(block.T @ block).max())


# What is refused ---------------------------------------------------------------------------------------------


def test_bad_data_are_refused(robot, samples):
    with pytest.raises(InputError, match="motion but no torque"):
        build_regression(robot, replace(samples, torque=None))
    with pytest.raises(InputError, match="no row to identify from"):
        build_regression(robot, samples[:0])
    with pytest.raises(InputError, match="at least one set of samples"):
        build_regression(robot, [])
    floating = random_tree(83, 3, floating=True)
    with pytest.raises(InputError, match="robot 'tree83' has a floating base"):
        build_regression(floating, samples)
    wide = Samples(samples.time, *(np.zeros((1500, 6)) for _ in range(4)))
    with pytest.raises(InputError, match=facts("(1500, 6)", "(any, 4)", "position")):
        build_regression(robot, wide)


def test_an_empty_log_beside_a_full_one_adds_nothing(robot, samples):
    regression = build_regression(robot, [samples[:0], samples, samples[:0]])
    assert_grams(regression, grams(robot, samples))


def test_factors_are_read_only(robot, samples):
    factor = build_regression(robot, samples).factors[0]
    for array in (factor.R, factor.blocks, factor.rows):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_no_stacked_matrix_is_held(robot, sampled):
    samples = sampled(robot, n=20_000)
    build_regression(robot, samples[:600])  # what is found once per robot
    stacked = len(samples) * robot.n_dof * (len(robot.parameters) + 1) * 8
    tracemalloc.start()
    build_regression(robot, samples)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < stacked / 10


def test_rows_that_are_few_are_folded_at_once_to_the_same_triangles(robot, samples):
    rows = TorqueRows(robot, (samples,))
    whole = factorise_whole(rows)
    assert whole.n_blocks == 1
    assert whole.n_rows == factorise(rows).n_rows
    assert_grams(whole, grams(robot, samples))


def test_triangles_alone_have_no_time(robot, samples):
    data = build_regression(robot, samples)
    assert data.timed
    assert not data.without_sources().timed


def test_large_triangles_keep_fewer_blocks_and_the_same_triangle(robot, samples, monkeypatch):
    rows = TorqueRows(robot, (samples,), chunk_rows=20)
    usual = factorise(rows)
    size = sum((channel.width + 1) ** 2 for channel in rows.channels)
    monkeypatch.setattr(factor_module, "_BLOCK_NUMBERS", 4 * size)
    few = factorise(rows)
    assert few.n_blocks <= 4 < usual.n_blocks
    assert [one.n_rows for one in few.factors] == [one.n_rows for one in usual.factors]
    for one, other in zip(few.factors, usual.factors, strict=True):
        square = other.R.T @ other.R
        np.testing.assert_allclose(one.R.T @ one.R, square, rtol=0, atol=1e-12 * np.abs(square).max())


def test_large_triangles_take_rows_together(robot, samples, monkeypatch):
    usual = factorise(TorqueRows(robot, (samples,), chunk_rows=7))
    monkeypatch.setattr(factor_module, "_LARGE", 1)
    together = factorise(TorqueRows(robot, (samples,), chunk_rows=7))
    for one, other in zip(together.factors, usual.factors, strict=True):
        assert one.n_rows == other.n_rows
        square = other.R.T @ other.R
        np.testing.assert_allclose(one.R.T @ one.R, square, rtol=0, atol=1e-12 * np.abs(square).max())


def test_one_triangle_is_the_same_channel_after_channel(robot, samples, monkeypatch):
    regression = factorise(TorqueRows(robot, (samples,)))
    base, weights = reduce_to_base(robot), np.linspace(0.5, 2.0, len(regression.factors))
    at_once = regression.triangle(base, weights)
    monkeypatch.setattr(factor_module, "_STACKED_NUMBERS", 1)
    found = regression.triangle(base, weights)
    np.testing.assert_array_equal(found, np.triu(found))
    square = at_once.T @ at_once
    np.testing.assert_allclose(found.T @ found, square, rtol=0, atol=1e-12 * np.abs(square).max())


@pytest.mark.parametrize(("chunk_rows", "n"), [(1, 2 * BLOCK_LIMIT - 3), (7, 10 * BLOCK_LIMIT)])
def test_blocks_that_were_merged_go_on_at_their_size(robot, samples, chunk_rows, n):
    """Once neighbours were merged, every further block takes twice as many rows; only the last may have fewer."""
    rows = factorise(TorqueRows(robot, (samples[:n],), chunk_rows=chunk_rows)).factors[0].rows
    assert set(rows[:-1].tolist()) == {2 * chunk_rows}
    assert 0 < rows[-1] <= 2 * chunk_rows
    assert rows.sum() == n


def test_one_channel_has_blocks_as_well(sampled):
    alone = random_tree(81, 1, effects=ALL_EFFECTS)
    samples = sampled(alone, n=20 * BLOCK_LIMIT)
    regression = factorise(TorqueRows(alone, (samples,), chunk_rows=10))
    assert regression.n_blocks <= BLOCK_LIMIT
    assert_grams(regression, grams(alone, samples))


def test_the_colour_of_the_noise_adds_up_where_both_have_it(robot, samples):
    one, other = (build_regression(robot, part) for part in (samples[:700], samples[700:]))
    coloured = [replace(part, cells=float(k)) for k, part in enumerate((one, other), start=3)]  # anything that adds
    assert (coloured[0] + coloured[1]).cells == 7.0
    for pair in ((one, coloured[1]), (coloured[0], other), (one, other)):
        assert (pair[0] + pair[1]).cells is None


def test_whose_rows_these_are(robot, samples):
    data = build_regression(robot, samples)
    assert data.has_robot
    assert data.robot is robot
    assert not data.without_sources().has_robot
    explicit = matrix_regression(robot.parameters, ["one"], [np.ones((3, len(robot.parameters) + 1))])
    assert not explicit.has_robot


class Silent(WrappedRows):
    """A source that has channels and no rows."""

    def passes(self, chunk_rows=None):
        return iter(())


@pytest.mark.parametrize("make", [factorise, factorise_whole])
def test_a_source_without_rows_is_refused_as_such(robot, samples, make):
    with pytest.raises(NoRowsError, match="no row to identify from"):
        make(Silent(TorqueRows(robot, (samples,))))


def test_how_many_blocks_are_kept_follows_from_their_size(robot, monkeypatch):
    channels = torque_channels(robot)
    size, widest = sum((channel.width + 1) ** 2 for channel in channels), max(channel.width for channel in channels)
    for numbers, expected in (
        (10 * size, (10, widest)),
        (12 * size - 1, (10, widest)),
        (1, (2, widest)),
        (10**9, (BLOCK_LIMIT, 0)),
    ):
        monkeypatch.setattr(factor_module, "_BLOCK_NUMBERS", numbers)
        assert factor_module._block_limits(channels) == expected
