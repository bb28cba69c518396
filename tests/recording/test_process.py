"""The path from recording to samples: composition, edges, notes, cut-offs, and the recipes of two public logs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.cutoff import candidate_cutoffs, choose_cutoff, fourier_cutoff_hz, motion_bandwidth_hz
from dynid.recording.process import ProcessedStream, complete_steps, process
from dynid.recording.readers.read import read_recording
from dynid.recording.recording import Recording, RecordingSource, RecordingStream, StaticRecording, WrenchRecording
from dynid.recording.samples import Samples, SampleStream
from dynid.recording.steps import (
    Decimate,
    Differentiate,
    DropEdges,
    LowPass,
    PeriodAverage,
    Resample,
    SavitzkyGolay,
    Step,
)
from dynid.regression.torque import torque_regressor
from dynid.robot.effects import Armature, Coulomb, Offset, Viscous
from dynid.robot.model import Robot
from dynid.robot.read import read_robot
from shared_data import shared


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
    with pytest.raises(InputError) as caught:
        process(log.rows(0, 50), steps)
    assert str(caught.value) == (
        "run.csv (2000 rows, 19.99 s), the first 50 of its 2000 rows: 0.49 s and 50 rows are too short: nothing is left after "
        "dropping 0.3 s and at least 1 row at both ends"
    )
    with pytest.raises(
        InputError, match=r"^run.csv .*, validation part, the last 13 of its 2000 rows: signal has 13 rows, a "
    ):
        process(log.rows(1987, part="validation part"), steps)
    with pytest.raises(InputError, match=r"^run.csv: LowPass cut-off 60 Hz is not below"):
        process(log, [LowPass(60.0), Differentiate()])


def test_a_refusal_of_a_stream_names_the_log_once() -> None:
    log = make_log()

    def stream(refuse: bool) -> RecordingStream:
        def pieces(rows: int) -> Iterator[tuple[Recording | None, int]]:
            yield log, 0
            if refuse:
                raise InputError("run.csv: column 'q1' holds 'x', expected numbers")

        return RecordingStream(log.joint_names, log.quantities, log.source, 500, pieces)

    with pytest.raises(InputError, match=r"^run.csv: LowPass cut-off 60 Hz is not below"):
        list(process(stream(False), [LowPass(60.0), Differentiate()]))
    with pytest.raises(InputError, match=r"^run.csv: after the processing steps there is no acceleration"):
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


# Cut-offs ----------------------------------------------------------------------------------------


def test_cutoff_of_a_fourier_motion() -> None:
    # Sousa and Cortesao 2014: w_f = 0.1 pi, L = 5, cut-off 10 w_f L / 2 pi = 2.5 Hz
    assert fourier_cutoff_hz(0.1 * np.pi / (2 * np.pi), 5) == pytest.approx(2.5)
    with pytest.raises(InputError, match="0 harmonics"):
        fourier_cutoff_hz(0.05, 0)
    with pytest.raises(InputError, match="-1 Hz"):
        fourier_cutoff_hz(-1, 5)


def test_bandwidth_sees_the_motion_and_not_the_noise() -> None:
    t = np.arange(20_000) / 1000.0
    random = np.random.default_rng(0)
    q = np.stack([np.sin(2 * np.pi * 0.7 * t), np.sin(2 * np.pi * 2.0 * t), 0.0 * t], axis=1)
    q[:, :2] += 1e-4 * random.normal(size=(20_000, 2))
    band = motion_bandwidth_hz(Recording(time=t, position=q, joint_names=("a", "b", "c")))
    np.testing.assert_allclose(band, [0.7, 2.0, 0.0], atol=0.15)


def test_candidates_lie_between_motion_and_half_the_rate() -> None:
    recording = make_log(4000)
    found = candidate_cutoffs(recording, 8)
    assert len(found) == 8
    assert list(found) == sorted(found)
    assert found[0] < 4.0 * 2.0 / (2 * np.pi)
    assert found[-1] < 50.0
    for cutoff in found:
        process(recording, [LowPass(cutoff), Differentiate()])
    still = Recording(time=recording.time, position=0.0 * recording.position, joint_names=("a", "b"))
    with pytest.raises(InputError, match="no joint moves"):
        candidate_cutoffs(still)


def test_choice_by_error() -> None:
    asked: list[float] = []

    def error_of(cutoff: float) -> float:
        asked.append(cutoff)
        return abs(np.log(cutoff / 6.0)) if cutoff > 1.5 else float("nan")

    choice = choose_cutoff([1.0, 2.0, 4.0, 8.0, 16.0], error_of)
    assert choice.cutoff_hz == 5.66  # between 4 and 8, tried after them
    assert choice.error == pytest.approx(np.log(6.0 / 5.66))
    assert len(asked) == len(choice.tried) == 7
    assert choose_cutoff([1.0, 2.0, 4.0, 8.0], error_of, refine=False).cutoff_hz == 8.0
    with pytest.raises(InputError, match="no cut-off to choose from"):
        choose_cutoff([], error_of)
    with pytest.raises(InputError, match="none of 2 cut-offs"):
        choose_cutoff([1.0, 1.2], error_of)


# Public logs -------------------------------------------------------------------------------------


def regressor(robot: Robot, samples: Samples) -> Array:
    W = torque_regressor(robot, samples.position, samples.velocity, samples.acceleration)
    return W.reshape(-1, W.shape[2])


def fitted(robot: Robot, samples: Samples) -> Array:
    """Least-squares parameters of least norm over scaled columns."""
    W = regressor(robot, samples)
    scale = np.linalg.norm(W, axis=0)
    scale[scale == 0.0] = 1.0
    assert samples.torque is not None
    solution, *_ = np.linalg.lstsq(W / scale, samples.torque.ravel(), rcond=1e-9)
    return np.asarray(solution / scale)


def error(robot: Robot, parameters: Array, samples: Samples, torque: Array | None) -> float:
    assert torque is not None
    tau = torque.ravel()
    return float(np.linalg.norm(tau - regressor(robot, samples) @ parameters) / np.linalg.norm(tau))


@pytest.mark.parametrize(
    ("velocity", "whole", "unseen"),
    [("logged", (0.0082, 0.0092), (0.0095, 0.0108)), ("position", (0.0096, 0.0106), (0.0112, 0.0122))],
)
def test_panda_recipe(velocity: str, whole: tuple[float, float], unseen: tuple[float, float]) -> None:
    robot = read_robot(shared("panda_gaz/robot.toml"), effects=[Viscous(), Coulomb(), Offset()])
    recording = read_recording(shared("panda_gaz/exciting_traj_1.parquet"), robot)
    assert isinstance(recording, Recording)
    steps = [Resample(period_s=0.001), LowPass(5.0, order=4), Differentiate(velocity), Decimate(4)]  # type: ignore[arg-type]
    samples = process(recording, steps)
    assert len(samples) == 5100
    assert "300 rows dropped at the start, where filters settle" in samples.notes
    parameters = fitted(robot, samples)
    assert whole[0] < error(robot, parameters, samples, samples.torque) < whole[1]
    assert 0.026 < error(robot, parameters, samples, samples.raw_torque) < 0.029
    cut = recording.time[0] + 0.65 * recording.duration_s
    first, last = process(recording.between(None, cut), steps), process(recording.between(cut, None), steps)
    assert unseen[0] < error(robot, fitted(robot, first), last, last.torque) < unseen[1]


def test_ur10e_recipe() -> None:
    effects = [Viscous(), Coulomb(), Offset(), Armature()]
    robot = read_robot(shared("ur10e_mamedov/robot.urdf"), effects=effects)
    gains = [10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232]
    steps = [
        LowPass(cutoff_nyquist=0.15, order=5, signals=("velocity",)),
        LowPass(cutoff_nyquist=0.20, order=5, signals=("torque",)),
        Differentiate("logged"),
        LowPass(cutoff_nyquist=0.15, order=5, signals=("acceleration",)),
    ]
    samples = {}
    for name in ("20_02_10_30sec_12harm", "20_01_17_ptp_10_points"):
        log = read_recording(shared(f"ur10e_mamedov/traj/{name}.parquet"), robot)
        assert isinstance(log, Recording)
        start, stop = author_window(name)
        windowed = log.with_drive_gains(gains).rows(start, stop)
        samples[name] = process(windowed, steps, edge_s=0.0)
        assert len(samples[name]) == stop - start
        np.testing.assert_array_equal(samples[name].position, windowed.position)
    train, test = samples.values()
    parameters = fitted(robot, train)
    assert 0.048 < error(robot, parameters, train, train.torque) < 0.053
    assert 0.049 < error(robot, parameters, test, test.torque) < 0.055
    assert 0.058 < error(robot, parameters, test, test.raw_torque) < 0.066


def author_window(name: str) -> tuple[int, int]:
    lines = shared("ur10e_mamedov/index.csv").read_text().splitlines()
    keys = lines[0].split(",")
    row = next(line for line in lines if line.startswith(f"traj/{name}.parquet"))
    # the role may hold commas within quotes, so count from the right
    values = row.split(",")
    back = {key: values[k - len(keys)] for k, key in enumerate(keys) if k > 4}
    return int(float(back["author_window_start"])), int(float(back["author_window_stop"]))


@pytest.mark.parametrize(
    ("recording", "what"),
    [
        (
            WrenchRecording(time=np.arange(3.0), wrench=np.zeros((3, 6)), source=RecordingSource(path="ft.csv")),
            "ft.csv is a force/torque-sensor log, expected a motion log",
        ),
        (
            StaticRecording(np.zeros((3, 1)), ("elbow",), gravity=np.ones((3, 1)), source=RecordingSource(path="poses.csv")),
            "poses.csv is a table of poses, expected a motion log",
        ),
        ("run.csv", "the recording is a str, expected a motion log"),
    ],
    ids=["sensor", "poses", "text"],
)
def test_what_is_no_motion_log_is_refused(recording, what) -> None:
    with pytest.raises(InputError, match=what):
        process(recording, [Differentiate()])
