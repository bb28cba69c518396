"""Long logs: read piece by piece they give what they give in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynid
from dynid.recording.recording import Recording
from dynid.recording.survey import survey
from dynid.run import long_logs
from dynid.run.long_logs import LongLog, chosen_windows
from dynid.run.unseen import unseen_logs

ARM = dynid.demo_robot().only(dynid.demo_robot().joint_names[:4])
FIXED = dynid.Settings(
    method="wls",
    cutoff_hz=8.0,
    signal_band_hz=20.0,
    velocity="logged",
    dead_zone=0.02,
    effects=("viscous", "coulomb", "armature"),
)


def _log(path: Path, seconds: float = 12.0, seed: int = 0) -> Path:
    log = dynid.demo_recording(ARM, seconds=seconds, rate_hz=100.0, seed=seed, torque_noise=0.05)
    dynid.write_recording(log, path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("long")
    _log(made / "one.parquet")
    _log(made / "two.csv", seed=1)
    return made


def _alike(one: dynid.Run, other: dynid.Run, tolerance: float = 1e-9) -> None:
    scale = np.abs(one.estimate.base_values).max()
    np.testing.assert_allclose(other.estimate.base_values, one.estimate.base_values, atol=tolerance * scale, rtol=0.0)
    spread = np.sqrt(np.diag(one.estimate.covariance))
    np.testing.assert_allclose(np.sqrt(np.diag(other.estimate.covariance)), spread, rtol=1e-6)
    assert one.identification is not None
    assert other.identification is not None
    np.testing.assert_allclose(other.identification.rmse, one.identification.rmse, rtol=1e-8)
    assert other.identification.relative_error_raw == pytest.approx(one.identification.relative_error_raw, rel=1e-8)
    assert other.identification.n_samples == one.identification.n_samples
    assert (one.validation is None) == (other.validation is None)
    if one.validation is not None and other.validation is not None:
        np.testing.assert_allclose(other.validation.rmse, one.validation.rmse, rtol=1e-8)
        assert [log.n_samples for log in one.validation.logs] == [log.n_samples for log in other.validation.logs]


@pytest.mark.parametrize(
    "options",
    [{}, {"split": 0.65}, {"from_s": 2.0, "to_s": 11.0}, {"signals": True, "signal_band_hz": "auto"}],
    ids=["whole", "split", "from_to", "signals"],
)
def test_a_streamed_log_gives_the_numbers_of_one_in_memory(folder: Path, options: dict[str, object]) -> None:
    settings = replace(FIXED, **options)
    logs = [folder / "one.parquet", folder / "two.csv"]
    runs = [dynid.identify(ARM, logs, replace(settings, stream=when)) for when in ("off", "on")]
    assert not runs[0].streams
    assert len(runs[1].streams) == 2
    _alike(*runs)


def test_windows_of_short_logs_are_the_logs_so_that_choices_are_the_same(folder: Path) -> None:
    logs = [folder / "one.parquet"]
    settings = dynid.Settings(method="wls", friction="smooth")
    runs = [dynid.identify(ARM, logs, replace(settings, stream=when)) for when in ("off", "on")]
    assert runs[0].filter == runs[1].filter
    assert [c.codes for c in runs[0].checks] == [c.codes for c in runs[1].checks]
    _alike(*runs)


def test_friction_under_load_settles_to_the_same_values_in_a_stream(folder: Path) -> None:
    settings = replace(FIXED, effects=dynid.Settings().effects, friction="load", split=0.65)
    runs = [dynid.identify(ARM, folder / "one.parquet", replace(settings, stream=when)) for when in ("off", "on")]
    _alike(*runs)


def test_validation_logs_and_later_validation_are_streamed_too(folder: Path) -> None:
    robot = ARM
    runs = [
        dynid.identify(robot, folder / "one.parquet", replace(FIXED, stream=when), validate_on=[folder / "two.csv"])
        for when in ("off", "on")
    ]
    _alike(*runs)
    first = dynid.identify(robot, folder / "one.parquet", replace(FIXED, stream="off"))
    whole, streamed = (unseen_logs(first, [folder / "two.csv"], stream=when) for when in ("off", "on"))
    assert streamed.streams
    assert streamed.validation().relative_error == pytest.approx(whole.validation().relative_error, rel=1e-8)
    assert streamed.row_error().relative_error == pytest.approx(whole.row_error().relative_error, rel=1e-8)


@pytest.mark.parametrize("rows", ["energy", pytest.param("polynomial", marks=pytest.mark.slow)])
def test_other_rows_are_streamed(folder: Path, rows: str) -> None:
    settings = replace(FIXED, rows=rows, split=0.65, **({"window": 0.2} if rows == "polynomial" else {}))
    runs = [dynid.identify(ARM, folder / "one.parquet", replace(settings, stream=when)) for when in ("off", "on")]
    scale = np.abs(runs[0].estimate.base_values).max()
    np.testing.assert_allclose(runs[0].estimate.base_values, runs[1].estimate.base_values, atol=1e-8 * scale, rtol=0.0)
    unseen = [run.row_validation for run in runs]
    assert unseen[0] is not None
    assert unseen[1] is not None
    assert unseen[1].n_rows == unseen[0].n_rows
    assert unseen[1].relative_error == pytest.approx(unseen[0].relative_error, rel=1e-6)


def test_a_log_in_both_sets_is_refused_when_streamed(folder: Path) -> None:
    with pytest.raises(dynid.InputError, match="same content"):
        dynid.identify(ARM, folder / "one.parquet", replace(FIXED, stream="on"), validate_on=[folder / "one.parquet"])


def test_a_joint_that_never_moves_is_held_in_streams(tmp_path: Path) -> None:
    log = dynid.demo_recording(ARM, seconds=12.0, torque_noise=0.01)
    noise = 1e-5 * np.random.default_rng(0).normal(size=log.n_samples)
    position, velocity = np.array(log.position), np.array(log.velocity)
    position[:, 3], velocity[:, 3] = 0.3 + noise, 100.0 * noise
    dynid.write_recording(log.with_(position=position, velocity=velocity), tmp_path / "log.parquet")
    runs = [dynid.identify(ARM, tmp_path / "log.parquet", replace(FIXED, stream=w)) for w in ("off", "on")]
    assert all("stands still" in " ".join(run.notes) for run in runs)
    _alike(*runs)


def test_standstill_at_the_ends_is_left_out_of_streams_too(tmp_path: Path) -> None:
    log = dynid.demo_recording(ARM, seconds=12.0, torque_noise=0.05)
    still = {name: np.array(getattr(log, name)) for name in ("position", "velocity", "torque")}
    before, after = 300, 500
    arrays = {
        name: np.concatenate([np.repeat(x[:1], before, axis=0), x, np.repeat(x[-1:], after, axis=0)])
        for name, x in still.items()
    }
    arrays["velocity"][:before] = arrays["velocity"][-after:] = 0.0
    time = 0.01 * np.arange(len(arrays["position"]))
    dynid.write_recording(Recording(time, joint_names=log.joint_names, **arrays), tmp_path / "log.parquet")
    runs = [dynid.identify(ARM, tmp_path / "log.parquet", replace(FIXED, stream=w)) for w in ("off", "on")]
    assert [sum("standstill was left out" in note for note in run.notes) for run in runs] == [1, 1]
    _alike(*runs)


def _long(recording: Recording, tmp_path: Path) -> LongLog:
    dynid.write_recording(recording, tmp_path / "log.parquet")
    stream = dynid.open_recording(tmp_path / "log.parquet", recording.joint_names, chunk_rows=500)
    return LongLog.of(stream, survey(stream))


def test_a_survey_counts_what_the_whole_log_shows(tmp_path: Path) -> None:
    log = dynid.demo_recording(seconds=30.0)
    time = np.array(log.time)
    time[1000:] += 2.0
    position = np.array(log.position)
    position[2000:, 3] += 2.0 * np.pi
    found = _long(log.with_(time=time, position=position), tmp_path).survey
    assert found.n_rows == log.n_samples
    assert found.gaps == ((pytest.approx(time[999]), pytest.approx(time[1000])),)
    assert found.wrapped == (4,)
    assert found.duration_s == pytest.approx(time[-1] - time[0])
    np.testing.assert_allclose(found.highest, position.max(axis=0))
    assert "2 parts" in found.notes(log.joint_names)[0]


def test_windows_are_few_short_and_lie_on_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_logs, "WINDOW_VALUES", 7 * 4000)
    log = dynid.demo_recording(seconds=200.0)
    time = np.array(log.time)
    time[10_000:] += 5.0
    long = _long(log.with_(time=time), tmp_path)
    windows = [recording for _, recording in chosen_windows([long])]
    assert 2 <= len(windows) <= long_logs.WINDOWS
    assert sum(window.n_samples for window in windows) <= 4100
    assert all(np.diff(window.time).max() < 0.1 for window in windows)
    assert windows[0].time[0] < 60.0 < 140.0 < windows[-1].time[-1]
    assert " s to " in windows[0].place


def test_a_part_of_a_stream_is_read_from_where_it_lies(tmp_path: Path) -> None:
    log = dynid.demo_recording(seconds=60.0)
    long = _long(log, tmp_path)
    part = long.stream.within(31.0, 33.0).read()
    inside = (log.time >= 31.0) & (log.time < 33.0)
    np.testing.assert_array_equal(part.position, log.position[inside])
    with pytest.raises(dynid.InputError, match="no sample between"):
        long.stream.within(100.0, 101.0).read()


def _untidy_log(path: Path, rows: int = 80_000) -> None:
    """Rows that come up to 900 places late, and others without a number."""
    rng = np.random.default_rng(0)
    places = np.arange(rows)
    late = rng.choice(rows, rows // 50, replace=False)
    order = np.argsort(places + np.where(np.isin(places, late), rng.uniform(0.0, 900.0, rows), 0.0), kind="stable")
    q = np.sin(1e-3 * places)
    q[np.concatenate([np.arange(100, 3100), rng.choice(rows, 500, replace=False)])] = np.nan
    table = pa.table({"t": 1e-3 * places[order], "q1": q[order], "tau1": places[order].astype(float)})
    pq.write_table(table, path, row_group_size=7000)


def test_a_part_of_an_untidy_log_has_its_rows_and_little_before_them_is_read(tmp_path: Path) -> None:
    _untidy_log(tmp_path / "log.parquet")
    stream = dynid.open_recording(tmp_path / "log.parquet", ["elbow"])
    long = LongLog.of(stream, survey(stream))
    whole = Recording.concatenate(list(stream.as_read()))
    begun: list[int] = []

    def noted(rows: int, first: int) -> Iterator[tuple[Recording | None, int]]:
        begun.append(first)
        assert long.stream.read_from is not None
        return long.stream.read_from(rows, first)

    for start in np.linspace(25.0, 75.0, 41):
        part = replace(long.stream, read_from=noted).within(30.0 if start > 30.0 else start, 79.0).within(start, start + 4.0)
        inside = (whole.time >= start) & (whole.time < start + 4.0)
        found = part.read()
        np.testing.assert_array_equal(found.time, whole.time[inside])
        np.testing.assert_array_equal(found.torque, whole.torque[inside])
        assert 1000.0 * start - 25_000 < begun[-1] < 1000.0 * start  # a piece of 16,384 rows, and rows that may come late
        assert len(part.index) <= 2
    assert len(begun) == 41


def test_long_logs_stream_by_themselves_and_say_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.run.logs.LONG_BYTES", 1000)
    monkeypatch.setattr(long_logs, "WINDOW_VALUES", 4 * 1100)
    run = dynid.identify(ARM, folder / "one.parquet", replace(FIXED, split=0.5))
    assert run.streams
    monkeypatch.setattr(long_logs, "WINDOW_VALUES", 4 * 500)
    monkeypatch.setattr(long_logs, "LEAST_WINDOW_S", 5.0)
    dynid.write_urdf(ARM, folder / "arm.urdf")
    run = dynid.identify(folder / "arm.urdf", folder / "one.parquet", FIXED)
    assert any(note.startswith("read piece by piece") for note in run.notes)
    assert run.windows[0].startswith("one.parquet, ")
    dynid.save_run(run, folder / "run")
    loaded = dynid.load_run(folder / "run", with_samples=True)
    assert loaded.windows == run.windows
