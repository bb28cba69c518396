"""Processing in chunks gives what processing the whole log gives, to 1e-9, however the log is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.signals.steps.clock import Decimate, PeriodAverage, Resample, Shift
from dynid.signals.steps.cuts import DropRepeated, SplitAtGaps, Trim, TrimToMotion, Unwrap
from dynid.signals.steps.filters import Differentiate, LowPass, Median, SavitzkyGolay, SmoothingSpline
from dynid.signals.steps.step import Step
from dynid.signals.stream import RecordingStream

FIELDS = ("time", "position", "velocity", "acceleration", "torque", "raw_torque")


def jittery_log(rows: int = 3000, seed: int = 0, gap: bool = False, stand: bool = False) -> Recording:
    """Two joints near 100 Hz with jitter, noise and repeated rows."""
    random = np.random.default_rng(seed)
    steps = random.uniform(0.006, 0.014, rows)
    if gap:
        steps[[rows // 3, rows // 2, rows // 2 + 20]] += 5.0
    t = 3.7 + np.cumsum(steps)
    w = np.array([1.1, 1.9])
    phase = np.outer(t - t[0], w)
    if stand:
        phase = np.clip(phase, phase[rows // 5], phase[4 * rows // 5])
    q = np.sin(phase) + 0.3
    v = w * np.cos(phase) + 1e-3 * random.normal(size=q.shape)
    tau = 20.0 * np.cos(phase) + 3.0 * np.sign(v) + 0.2 * random.normal(size=q.shape)
    repeat = np.flatnonzero(random.random(rows) < 0.05)
    repeat = repeat[repeat > 0]
    for array in (q, v, tau):
        array[repeat] = array[repeat - 1]
    return Recording(time=t, position=q, velocity=v, torque=tau, joint_names=("a", "b"))


def as_stream(recording: Recording, bounds: Sequence[int]) -> RecordingStream:
    """The recording as a stream that is cut at the given rows."""

    def pieces(rows: int) -> Iterator[tuple[Recording | None, int]]:
        edges = [0, *bounds, recording.n_samples]
        for first, stop in pairwise(edges):
            for start in range(first, stop, rows):
                yield recording.rows(start, min(start + rows, stop)), 0

    longest = max(np.diff([0, *bounds, recording.n_samples]))
    return RecordingStream(recording.joint_names, recording.quantities, recording.source, int(longest), pieces)


def assert_same(whole: Samples, stream_pieces: Sequence[Samples], tolerance: float = 1e-9) -> None:
    for name in FIELDS:
        expected = getattr(whole, name)
        found = np.concatenate([getattr(piece, name) for piece in stream_pieces])
        assert found.shape == expected.shape, name
        np.testing.assert_allclose(
            found, expected, rtol=0.0, atol=tolerance * max(1.0, np.abs(expected).max()), err_msg=name
        )
    assert stream_pieces[-1].notes == whole.notes


CHAINS: dict[str, tuple[Step, ...]] = {
    "logged clock as if uniform": (LowPass(cutoff_nyquist=0.15, order=5), Differentiate("logged")),
    "filter after differences": (
        LowPass(cutoff_nyquist=0.15, order=5, signals=("velocity",)),
        Differentiate("logged"),
        LowPass(cutoff_nyquist=0.15, order=5, signals=("acceleration",)),
    ),
    "resample, low-pass, differences": (Resample(period_s=0.01), LowPass(5.0), Differentiate("logged"), Decimate(4)),
    "step of the clock by itself": (LowPass(3.0), Differentiate("position"), Decimate(3)),
    "cubic": (Resample(rate_hz=200.0, method="cubic"), LowPass(4.0, order=3), Differentiate()),
    "median and Savitzky-Golay": (Median(5), Resample(0.01), SavitzkyGolay(21, 3, velocity="position")),
    "Savitzky-Golay of velocity": (Resample(0.01), SavitzkyGolay(11, 2, velocity="logged")),
    "spline": (SmoothingSpline(3.0, velocity="position"),),
    "spline of velocity": (SmoothingSpline(4.0, velocity="logged"), Decimate(2)),
    "without repeated rows": (DropRepeated(), Decimate(2), Resample(0.01), LowPass(5.0), Differentiate()),
    "shifted": (Shift(0.025), Shift(-0.04, signals=("torque",), method="linear"), LowPass(5.0), Differentiate()),
    "trimmed": (Trim(6.0, 25.0), LowPass(5.0), Differentiate()),
    "to motion": (TrimToMotion(margin_s=0.2), LowPass(5.0), Differentiate()),
    "averaged": (PeriodAverage(5.0, rows=500), LowPass(5.0), Differentiate("position"), Decimate(5)),
    "filtered, then averaged": (LowPass(5.0), Differentiate(), PeriodAverage(4.0, skip=1, method="cubic")),
    "unwrapped": (Unwrap(), LowPass(5.0), Differentiate()),
}


@pytest.mark.parametrize("chunk", [7, 333, 2999])
@pytest.mark.parametrize("name", CHAINS)
def test_chunks_give_the_whole_log(name: str, chunk: int) -> None:
    short = chunk == 7 and name.startswith("spline")  # many pieces of a slow step: a third of them shows as much
    recording = jittery_log(1000 if short else 3000, stand=name == "to motion")
    steps = CHAINS[name]
    if name == "unwrapped":
        wrapped = np.angle(np.exp(4j * recording.position))
        recording = recording.with_(position=wrapped)
    stream = as_stream(recording, list(range(chunk, recording.n_samples, chunk)))
    assert_same(process(recording, steps), list(process(stream, steps)))


@pytest.mark.parametrize("chunk", [1, 64, 1000])
def test_parts_between_gaps_are_processed_alike(chunk: int) -> None:
    recording = jittery_log(gap=True)
    steps = (SplitAtGaps(0.5, shortest_s=2.0), LowPass(5.0), Differentiate(), Decimate(3))
    stream = as_stream(recording, list(range(chunk, recording.n_samples, chunk)))
    assert_same(process(recording, steps), list(process(stream, steps)))


@settings(max_examples=25)
@given(
    bounds=st.lists(st.integers(1, 1499), max_size=12, unique=True).map(sorted),
    cutoff=st.floats(0.5, 30.0),
    order=st.integers(1, 8),
    every=st.integers(1, 7),
    seed=st.integers(0, 100),
)
def test_any_cut_and_any_filter(bounds: list[int], cutoff: float, order: int, every: int, seed: int) -> None:
    recording = jittery_log(1500, seed)
    steps = (Resample(0.01), LowPass(cutoff, order=order), Differentiate(), Decimate(every))
    assert_same(process(recording, steps), list(process(as_stream(recording, bounds), steps)))


def test_a_stream_may_be_walked_through_again() -> None:
    recording = jittery_log()
    stream = process(as_stream(recording, [400, 1700]), [Resample(0.01), LowPass(5.0), Differentiate()])
    first, second = list(stream), list(stream)
    assert len(first) > 1
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.acceleration, other.acceleration)
        assert one.notes == other.notes


def test_a_stream_holds_no_more_than_its_chunks_and_overlap() -> None:
    recording = jittery_log(12_000)
    stream = process(as_stream(recording, list(range(500, 12_000, 500))), [Resample(0.01), LowPass(5.0), Differentiate()])
    pieces = list(stream)
    assert len(pieces) > 15
    assert max(len(piece) for piece in pieces) < 1100


def test_the_step_of_a_long_log_does_not_depend_on_the_chunks() -> None:
    recording = jittery_log(13_000)
    steps = (LowPass(5.0), Differentiate(), Decimate(7))
    assert_same(process(recording, steps), list(process(as_stream(recording, [100, 5000, 11_000, 12_990]), steps)))
