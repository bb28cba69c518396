"""The path from recording to samples: composition, edges, notes, cut-offs, and the recipes of two public logs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import dynid.signals.process as process_module
from dynid.errors import InputError
from dynid.signals.process import ProcessedStream, complete_steps, process
from dynid.signals.recording import Recording, RecordingSource, StaticRecording, WrenchRecording
from dynid.signals.samples import Samples, SampleStream
from dynid.signals.steps.clock import Decimate, PeriodAverage, Resample
from dynid.signals.steps.cuts import DropEdges
from dynid.signals.steps.filters import Differentiate, LowPass, SavitzkyGolay
from dynid.signals.steps.step import Step
from dynid.signals.stream import RecordingStream
from messages import facts


def make_log(n: int = 2000, rate_hz: float = 100.0, torque: bool = True) -> Recording:
    t = np.arange(n) / rate_hz
    q = np.stack([np.sin(2.0 * t), np.cos(1.3 * t)], axis=1)
    v = np.stack([2.0 * np.cos(2.0 * t), -1.3 * np.sin(1.3 * t)], axis=1)
    tau = 5.0 * q + np.random.default_rng(0).normal(size=q.shape) if torque else None
    source = RecordingSource(path="run.csv", notes=("read from run.csv",))
    return Recording(time=t, position=q, velocity=v, torque=tau, joint_names=("a", "b"), source=source)


# Refusals ----------------------------------------------------------------------------------------


def test_a_refusal_names_the_log_and_the_part() -> None:
    log = make_log()
    steps = [LowPass(5.0), Differentiate()]
    with pytest.raises(InputError, match=facts("run.csv", "50", "2000", "0.49", "0.3", "row")):
        process(log.rows(0, 50), steps)
    with pytest.raises(InputError, match=facts("run.csv", "13", "2000", "row")):
        process(log.rows(1987, part="validation part"), steps)
    with pytest.raises(InputError, match=facts("run.csv", "LowPass", "60", "cut-off")):
        process(log, [LowPass(60.0), Differentiate()])


def test_a_refusal_of_a_stream_names_the_log_once() -> None:
    log = make_log()

    def stream(refuse: bool) -> RecordingStream:
        def pieces(rows: int) -> Iterator[tuple[Recording | None, int]]:
            yield log, 0
            if refuse:
                raise InputError("run.csv: column 'q1' holds 'x', expected numbers")

        return RecordingStream(log.joint_names, log.quantities, log.source, 500, pieces)

    with pytest.raises(InputError, match=facts("run.csv", "LowPass", "60", "cut-off")):
        list(process(stream(False), [LowPass(60.0), Differentiate()]))
    with pytest.raises(InputError, match=facts("run.csv", "acceleration")):
        list(process(stream(False), [Decimate(2)]))
    with pytest.raises(InputError, match=r"^run.csv: column 'q1' holds"):
        list(process(stream(True), [LowPass(5.0), Differentiate()]))


# Composition -------------------------------------------------------------------------------------


def test_a_cutoff_in_hertz_brings_its_resampling() -> None:
    assert complete_steps([LowPass(5.0), Differentiate()]) == (
        Resample(),
        LowPass(5.0),
        Differentiate(),
        DropEdges(seconds=0.3, rows=1),
    )
    assert complete_steps([Resample(0.001), LowPass(5.0)])[:2] == (Resample(0.001), LowPass(5.0))
    # as if uniform: nothing is resampled
    assert Resample() not in complete_steps([LowPass(cutoff_nyquist=0.15), Differentiate()])


def test_edges_are_three_time_constants_or_three_tenths_of_a_second() -> None:
    def dropped(*steps: Step, edge_s: float | None = None) -> DropEdges | None:
        found = [step for step in complete_steps(steps, edge_s) if isinstance(step, DropEdges)]
        assert len(found) <= 1
        return found[0] if found else None

    assert dropped(LowPass(0.5)) == DropEdges(seconds=3.0 / np.pi)
    assert dropped(LowPass(50.0)) == DropEdges(seconds=0.3)
    assert dropped(LowPass(cutoff_nyquist=0.01)) == DropEdges(seconds=0.3, rows=96)
    assert dropped(SavitzkyGolay(11)) == DropEdges(rows=5)
    assert dropped(Differentiate()) == DropEdges(rows=1)
    assert dropped(Decimate(3)) is None
    assert dropped(LowPass(5.0), edge_s=1.5) == DropEdges(seconds=1.5)
    assert dropped(LowPass(5.0), edge_s=0.0) is None
    assert dropped(LowPass(5.0), DropEdges(seconds=2.0)) == DropEdges(seconds=2.0)
    with pytest.raises(InputError, match="edge_s is -1"):
        complete_steps([], -1.0)


def test_edges_are_dropped_where_they_arise() -> None:
    order = complete_steps([LowPass(5.0), Differentiate(), Decimate(4)])
    assert [type(step).__name__ for step in order] == ["Resample", "LowPass", "Differentiate", "DropEdges", "Decimate"]
    order = complete_steps([LowPass(5.0), PeriodAverage(4.0), LowPass(3.0), Differentiate()])
    names = [type(step).__name__ for step in order]
    assert names == ["Resample", "LowPass", "DropEdges", "PeriodAverage", "LowPass", "Differentiate"]


def test_samples_carry_raw_torque_and_what_was_done() -> None:
    recording = make_log()
    samples = process(recording, [LowPass(3.0), Differentiate(), Decimate(2)])
    assert recording.torque is not None
    assert samples.raw_torque is not None
    assert samples.torque is not None
    rows = np.arange(30, 2000 - 30, 2)
    np.testing.assert_allclose(samples.time, recording.time[rows], atol=1e-12)
    np.testing.assert_allclose(samples.raw_torque, recording.torque[rows], atol=1e-10)
    assert np.abs(samples.torque - samples.raw_torque).std() > 0.5
    assert samples.notes == (
        "read from run.csv",
        "resampled on the logged clock to a step of 10 ms (linear)",
        "every 2. row is kept",
        "30 rows dropped at the start, where filters settle",
        "30 rows dropped at the end, where filters settle",
    )


def test_a_log_without_torque_gives_motion_only() -> None:
    samples = process(make_log(torque=False), [LowPass(3.0), Differentiate()])
    assert samples.torque is None
    assert samples.raw_torque is None


def test_a_missing_derivative_is_said() -> None:
    with pytest.raises(InputError, match="there is no acceleration; add a step that makes it, such as Differentiate"):
        process(make_log(), [LowPass(3.0)])


def test_the_recording_is_not_changed() -> None:
    recording = make_log()
    before = recording.position.copy()
    first = process(recording, [LowPass(3.0), Differentiate()])
    second = process(recording, [LowPass(3.0), Differentiate()])
    np.testing.assert_array_equal(recording.position, before)
    np.testing.assert_array_equal(first.acceleration, second.acceleration)


def test_a_recording_is_resampled_once_and_forgotten_with_it() -> None:
    log = make_log()
    jittered = replace(log, time=log.time + 1e-3 * np.random.default_rng(1).uniform(size=log.n_samples))
    steps = [LowPass(cutoff_hz=8.0), Differentiate()]
    first, again = process(jittered, steps), process(jittered, steps)
    fresh = process(replace(jittered), steps)
    assert jittered in process_module._resampled
    for name in ("time", "position", "velocity", "acceleration", "torque", "raw_torque"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
        np.testing.assert_array_equal(getattr(fresh, name), getattr(first, name))
    assert again.notes == first.notes == fresh.notes
    assert any("resampled" in note for note in first.notes)
    coarse = process(jittered, [Resample(period_s=0.02), Differentiate()])
    assert len(coarse) < 0.6 * len(first)
    known = weakref.ref(jittered)
    del jittered
    gc.collect()
    assert known() is None


def test_a_stream_is_processed_while_it_is_read() -> None:
    recording = make_log(20_000)
    read: list[int] = []

    def pieces(rows: int) -> Iterator[tuple[Recording | None, int]]:
        for start in range(0, 20_000, rows):
            read.append(start)
            yield recording.rows(start, start + rows), 0

    stream = RecordingStream(recording.joint_names, recording.quantities, recording.source, 500, pieces)
    samples = process(stream, [Resample(0.01), LowPass(10.0), Differentiate()])
    assert isinstance(samples, ProcessedStream)
    assert isinstance(samples, SampleStream)
    assert read == []
    first = next(iter(samples))
    assert len(read) < 10  # of 40: every step holds one piece back, to know where the log ends
    assert isinstance(first, Samples)
    assert sum(len(piece) for piece in samples) == 20_000 - 60


@pytest.mark.parametrize(
    ("recording", "what"),
    [
        (
            WrenchRecording(time=np.arange(3.0), wrench=np.zeros((3, 6)), source=RecordingSource(path="ft.csv")),
            facts("ft.csv", "force/torque"),
        ),
        (
            StaticRecording(np.zeros((3, 1)), ("elbow",), gravity=np.ones((3, 1)), source=RecordingSource(path="poses.csv")),
            facts("poses.csv", "motion"),
        ),
        ("run.csv", "the recording is a str, expected a motion log"),
    ],
    ids=["sensor", "poses", "text"],
)
def test_what_is_no_motion_log_is_refused(recording, what) -> None:
    with pytest.raises(InputError, match=what):
        process(recording, [Differentiate()])
