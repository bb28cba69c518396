"""Filter and decimate rows: against SciPy on the stacked regressor, across chunks, gaps and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy import signal

from dynid.arrays import Array
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.io.demo import demo_robot, demo_samples
from dynid.model.effects.linear import Offset, Viscous
from dynid.model.robot import Robot
from dynid.regression import row_filter as kept_rows
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression, factorise
from dynid.regression.row_filter import BandLimit, FilterAndDecimate, FilteredRows
from dynid.regression.row_source import Chunk
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples
from messages import facts
from problems import planar_2r


@pytest.fixture
def robot() -> Robot:
    return planar_2r([Viscous(), Offset()]).with_parameters({"fv1": 1.0, "fv2": 0.5, "fo1": 0.3, "fo2": -0.2})


def stacked(robot: Robot, samples: Samples) -> Array:
    """``[W tau]`` as (samples, joints, parameters + 1)."""
    assert samples.torque is not None
    W = torque_regressor(robot, samples.position, samples.velocity, samples.acceleration)
    return np.concatenate([W, samples.torque[:, :, None]], axis=2)


def filtered_rows(row_filter: FilterAndDecimate, rows: Array, pieces: list[Samples]) -> Array:
    """What the filter returns for rows of one joint, piece by piece."""

    def chunks() -> Iterator[Chunk]:
        first = 0
        for piece in pieces:
            yield Chunk([np.asfortranarray(rows[first : first + len(piece)])], piece.time)
            first += len(piece)

    found = list(row_filter.over(chunks()))
    times = np.concatenate([chunk.time for chunk in found])
    assert np.isin(times, np.concatenate([piece.time for piece in pieces])).all()
    assert (np.diff(times) > 0.0).all()
    return np.concatenate([chunk.blocks[0] for chunk in found])


def as_chunks(samples: Samples) -> Iterator[Chunk]:
    yield Chunk([np.ones((len(samples), 2))], samples.time)


def test_equals_scipy_on_the_stacked_rows(robot: Robot, sampled: Callable[..., Samples]) -> None:
    samples = sampled(robot, n=3000, rate_hz=500.0)
    row_filter = FilterAndDecimate(every=5, cutoff_hz=20.0, order=4)
    rows = stacked(robot, samples)
    sections = signal.butter(4, 20.0, fs=500.0, output="sos")
    whole = signal.sosfiltfilt(sections, rows, axis=0, padlen=400)
    edge = row_filter.edge_rows(1.0 / 500.0)
    assert edge == 150
    for joint in range(2):
        found = filtered_rows(row_filter, rows[:, joint], [samples])
        expected = whole[edge:-edge:5, joint]
        assert found.shape == expected.shape
        # the ends are continued differently; what is left of that after 0.3 s
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
        np.testing.assert_allclose(found[40:-40], expected[40:-40], atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("chunk", [1, 37, 700, 9999])
def test_chunks_do_not_change_the_rows(robot: Robot, sampled: Callable[..., Samples], chunk: int) -> None:
    samples = sampled(robot, n=4000, rate_hz=250.0)
    rows = stacked(robot, samples)[:, 0]
    row_filter = FilterAndDecimate(every=7, cutoff_hz=10.0, order=3)
    pieces = [samples[start : start + chunk] for start in range(0, len(samples), chunk)]
    whole = filtered_rows(row_filter, rows, [samples])
    np.testing.assert_allclose(filtered_rows(row_filter, rows, pieces), whole, atol=1e-9 * np.abs(whole).max())


def test_windows_do_not_change_the_rows(robot: Robot, sampled: Callable[..., Samples]) -> None:
    samples = sampled(robot, n=20_000, rate_hz=1000.0)
    rows = stacked(robot, samples)[:, 1]
    row_filter = FilterAndDecimate(every=4, cutoff_hz=30.0)
    sections = signal.butter(4, 30.0, fs=1000.0, output="sos")
    expected = signal.sosfiltfilt(sections, rows, axis=0, padlen=300)[300:-300:4]
    found = filtered_rows(row_filter, rows, [samples])
    assert found.shape == expected.shape
    np.testing.assert_allclose(found[100:-100], expected[100:-100], atol=1e-9 * np.abs(expected).max())


def test_parameters_are_those_of_the_unfiltered_rows(robot: Robot, sampled: Callable[..., Samples]) -> None:
    samples = sampled(robot, n=2500, rate_hz=200.0)
    base = reduce_to_base(robot)
    regression = build_regression(robot, samples, row_filter=FilterAndDecimate(every=4))
    expected = base.K @ robot.parameters.values
    W = stacked(robot, samples)[:, :, :-1]
    assert regression.factors[0].n_rows == len(range(60, 2500 - 60, 4))
    gram = np.zeros((len(robot.parameters) + 1,) * 2)
    for factor in regression.factors:
        columns = [*factor.channel.columns, len(robot.parameters)]
        gram[np.ix_(columns, columns)] += factor.R.T @ factor.R
    chosen = list(base.independent)
    found = np.linalg.solve(gram[np.ix_(chosen, chosen)], gram[chosen, -1])
    assert W.shape[2] == len(robot.parameters)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_noise_above_the_band_is_taken_out(robot: Robot, sampled: Callable[..., Samples]) -> None:
    samples = sampled(robot, n=8000, rate_hz=1000.0)
    assert samples.torque is not None
    noise = np.random.default_rng(0).normal(size=samples.torque.shape)
    row_filter = FilterAndDecimate(every=20, cutoff_hz=10.0)
    left = filtered_rows(row_filter, noise, [samples])
    # of white noise the share 10 Hz / 500 Hz passes, less the roll-off of two passes
    assert 0.5 * 0.02 < left.var() < 1.1 * 0.02


def test_parts_between_gaps_are_filtered_on_their_own(robot: Robot, sampled: Callable[..., Samples]) -> None:
    samples = sampled(robot, n=3000, rate_hz=250.0)
    late = Samples(
        np.where(np.arange(3000) < 1300, samples.time, samples.time + 5.0),
        samples.position, samples.velocity, samples.acceleration, samples.torque,
    )  # fmt: skip
    rows = stacked(robot, samples)[:, 0]
    row_filter = FilterAndDecimate(every=3, cutoff_hz=10.0)
    found = filtered_rows(row_filter, rows, [late[:700], late[700:2000], late[2000:]])
    first = filtered_rows(row_filter, rows[:1300], [samples[:1300]])
    second = filtered_rows(row_filter, rows[1300:], [samples[1300:]])
    np.testing.assert_allclose(found, np.concatenate([first, second]), atol=1e-9 * np.abs(found).max())


def test_refusals(robot: Robot, sampled: Callable[..., Samples]) -> None:
    samples = sampled(robot, n=400, rate_hz=100.0)
    with pytest.raises(InputError, match=facts("40", "12.5", "4", "half")):
        list(FilterAndDecimate(every=4, cutoff_hz=40.0).over(as_chunks(samples)))
    with pytest.raises(InputError, match=facts("50", "30", "row")):
        list(FilterAndDecimate(every=2).over(as_chunks(samples[:50])))
    uneven = Samples(
        samples.time + 0.002 * (np.arange(400) == 200),
        samples.position, samples.velocity, samples.acceleration, samples.torque,
    )  # fmt: skip
    with pytest.raises(InputError, match=facts("12", "2.002", "10")):
        list(FilterAndDecimate(every=2).over(as_chunks(uneven)))
    with pytest.raises(InputError, match="give cutoff_hz or every > 1"):
        FilterAndDecimate(every=1)
    with pytest.raises(InputError, match="every is 0"):
        FilterAndDecimate(every=0)
    with pytest.raises(InputError, match="order is 0"):
        FilterAndDecimate(every=2, order=0)
    with pytest.raises(InputError, match="edge_s is -1"):
        FilterAndDecimate(every=2, edge_s=-1.0)
    with pytest.raises(InputError, match="no row to filter"):
        list(FilterAndDecimate(every=2).over(iter([])))
    with pytest.raises(InputError, match="no time"):
        list(FilterAndDecimate(every=2).over(iter([Chunk([np.ones((9, 2))])])))


def test_a_second_pass_gives_the_rows_of_the_first_and_makes_none_again() -> None:
    made: list[int] = []

    class Counted(TorqueRows):
        def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
            made.append(1)
            yield from super().passes(chunk_rows)

    robot = demo_robot()
    rows = FilteredRows(Counted(robot, (demo_samples(robot),)), BandLimit(5.0))
    first = []
    for chunk in rows.passes():
        first.append([block.copy() for block in chunk.blocks])
        for block in chunk.blocks:
            block[:] = 0.0  # a consumer may overwrite them
    second = [chunk.blocks for chunk in rows.by_log()[0].passes()]
    assert len(first) == len(second)
    assert all(
        np.array_equal(a, b) for one, other in zip(first, second, strict=True) for a, b in zip(one, other, strict=True)
    )
    assert len(made) == 1


@pytest.mark.parametrize("most_in_file", [0, 10**9], ids=["made_again", "from_a_file"])
def test_rows_beyond_what_is_kept_in_memory_are_the_same(monkeypatch: pytest.MonkeyPatch, most_in_file: int) -> None:
    monkeypatch.setattr("dynid.regression.row_filter.MOST_KEPT", 100)
    monkeypatch.setattr("dynid.regression.row_filter.MOST_SPILLED", most_in_file)
    robot = demo_robot()
    rows = FilteredRows(TorqueRows(robot, (demo_samples(robot), demo_samples(robot))), BandLimit(5.0))
    one, other = (factorise(rows).factors[0].R for _ in range(2))
    assert np.array_equal(one, other)
    assert len(rows.by_log()) == 2


def test_products_of_a_long_log_are_joined_and_stay_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = planar_2r()
    t = np.arange(6000) / 100.0
    q = np.column_stack([np.sin(t), np.cos(0.7 * t)])
    v = np.column_stack([np.cos(t), -0.7 * np.sin(0.7 * t)])
    samples = Samples(t, q, v, np.column_stack([-np.sin(t), -0.49 * np.cos(0.7 * t)]), np.tanh(v))
    monkeypatch.setattr("dynid.regression.row_filter._MOST_JOINED", 1)
    apart = list(FilteredRows(TorqueRows(robot, (samples,)), BandLimit(20.0)).passes())
    monkeypatch.setattr("dynid.regression.row_filter._MOST_JOINED", 8)
    together = list(FilteredRows(TorqueRows(robot, (samples,)), BandLimit(20.0)).passes())
    assert len(together) < 0.7 * len(apart)
    assert [len(chunk) for chunk in together[:60]] == [len(chunk) for chunk in apart[:60]]
    for k in range(2):
        one, other = (np.concatenate([chunk.blocks[k] for chunk in found]) for found in (apart, together))
        assert np.array_equal(one, other)
    one, other = (np.concatenate([np.asarray(chunk.time) for chunk in found]) for found in (apart, together))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("in_memory", [10**9, 0])
@pytest.mark.parametrize("n_logs", [1, 2])
def test_rows_of_some_channels_are_those_of_all(monkeypatch: pytest.MonkeyPatch, in_memory: int, n_logs: int) -> None:
    """Before rows are kept, and after that from memory or from the file."""
    monkeypatch.setattr(kept_rows, "MOST_KEPT", in_memory)
    robot = demo_robot()
    logs = tuple(demo_samples(robot, seconds=4.0)[200 * k :] for k in range(n_logs))
    source = FilteredRows(TorqueRows(robot, logs), BandLimit(10.0))
    some = slice(2, 5)
    first = [[block.copy() for block in blocks] for blocks in source.channel_passes(some)]
    whole = [[block.copy() for block in chunk.blocks] for chunk in source.passes()]
    again = [[block.copy() for block in blocks] for blocks in source.channel_passes(some)]
    for found in (first, again):
        for a, b in zip(zip(*found, strict=True), list(zip(*whole, strict=True))[some], strict=True):
            np.testing.assert_array_equal(np.concatenate(a), np.concatenate(b))
