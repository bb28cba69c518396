"""Logs of a run: read piece by piece they give what they give in memory; parts, windows, standstill at the ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynid
from bench import Bench
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.io.logs.paths import LogPart, log_part, refuse_same
from dynid.io.logs.read import open_recording, read_recording, write_recording
from dynid.pipeline import log as logs_of_runs
from dynid.pipeline.data import read_motion_logs
from dynid.pipeline.folder import save_result
from dynid.pipeline.log import Log, Logs, choose_windows, without_standstill
from dynid.pipeline.options import Settings
from dynid.pipeline.validate import unseen_logs
from dynid.signals.recording import Recording
from dynid.validation.data_check import check_recording
from problems import planar_2r

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


def _in_memory(run: dynid.IdentificationResult) -> bool:
    assert run.data is not None
    assert run.data.known is not None
    return run.data.known.in_memory


def _alike(one: dynid.IdentificationResult, other: dynid.IdentificationResult, tolerance: float = 1e-9) -> None:
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
    [{}, {"split": 0.65}, {"from_s": 2.0, "to_s": 11.0}, {"filter_on": "signals", "signal_band_hz": "auto"}],
    ids=["whole", "split", "from_to", "signals"],
)
def test_a_streamed_log_gives_the_numbers_of_one_in_memory(folder: Path, options: dict[str, object]) -> None:
    settings = replace(FIXED, **options)
    logs = [folder / "one.parquet", folder / "two.csv"]
    runs = [dynid.identify(ARM, logs, replace(settings, stream=when)) for when in ("off", "on")]
    assert [_in_memory(run) for run in runs] == [True, False]
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
    assert not streamed.logs.in_memory
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
    assert unseen[1].n_samples == unseen[0].n_samples
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


def _long(recording: Recording, tmp_path: Path) -> Log:
    dynid.write_recording(recording, tmp_path / "log.parquet")
    stream = open_recording(tmp_path / "log.parquet", recording.joint_names, chunk_rows=500)
    return Log.of(stream)


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
    monkeypatch.setattr(logs_of_runs, "WINDOW_VALUES", 7 * 4000)
    log = dynid.demo_recording(seconds=200.0)
    time = np.array(log.time)
    time[10_000:] += 5.0
    long = _long(log.with_(time=time), tmp_path)
    windows = choose_windows([long])
    assert 2 <= len(windows) <= logs_of_runs.WINDOWS
    assert sum(window.n_samples for window in windows) <= 4100
    assert all(np.diff(window.time).max() < 0.1 for window in windows)
    assert windows[0].time[0] < 60.0 < 140.0 < windows[-1].time[-1]
    assert " s to " in windows[0].place


def test_a_part_of_a_stream_is_read_from_where_it_lies(tmp_path: Path) -> None:
    log = dynid.demo_recording(seconds=60.0)
    long = _long(log, tmp_path)
    part = long.rows.within(31.0, 33.0).read()
    inside = (log.time >= 31.0) & (log.time < 33.0)
    np.testing.assert_array_equal(part.position, log.position[inside])
    with pytest.raises(dynid.InputError, match="no sample between"):
        long.rows.within(100.0, 101.0).read()


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
    stream = open_recording(tmp_path / "log.parquet", ["elbow"])
    long = Log.of(stream)
    whole = Recording.concatenate(list(stream.as_read()))
    begun: list[int] = []

    def noted(rows: int, first: int) -> Iterator[tuple[Recording | None, int]]:
        begun.append(first)
        assert long.rows.read_from is not None
        return long.rows.read_from(rows, first)

    for start in np.linspace(25.0, 75.0, 41):
        part = replace(long.rows, read_from=noted).within(30.0 if start > 30.0 else start, 79.0).within(start, start + 4.0)
        inside = (whole.time >= start) & (whole.time < start + 4.0)
        found = part.read()
        np.testing.assert_array_equal(found.time, whole.time[inside])
        np.testing.assert_array_equal(found.torque, whole.torque[inside])
        assert 1000.0 * start - 25_000 < begun[-1] < 1000.0 * start  # a piece of 16,384 rows, and rows that may come late
        assert len(part.index) <= 2
    assert len(begun) == 41


def test_long_logs_stream_by_themselves_and_say_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.pipeline.data.LONG_BYTES", 1000)
    monkeypatch.setattr(logs_of_runs, "WINDOW_VALUES", 4 * 1100)
    run = dynid.identify(ARM, folder / "one.parquet", replace(FIXED, split=0.5))
    assert not _in_memory(run)
    monkeypatch.setattr(logs_of_runs, "WINDOW_VALUES", 4 * 500)
    monkeypatch.setattr(logs_of_runs, "LEAST_WINDOW_S", 5.0)
    dynid.write_urdf(ARM, folder / "arm.urdf")
    run = dynid.identify(folder / "arm.urdf", folder / "one.parquet", FIXED)
    assert any(note.startswith("read piece by piece") for note in run.notes)
    assert run.windows[0].startswith("one.parquet, ")
    save_result(run, folder / "run")
    loaded = dynid.load_result(folder / "run", with_samples=True)
    assert loaded.windows == run.windows


PARTS = Settings(filter_on="signals", effects=("viscous",), cutoff_hz=8.0, method="wls")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10 s of motion between 3 s and 4 s of standstill."""
    robot = planar_2r()
    t = np.arange(0.0, 17.0, 0.01)
    s = np.clip(t - 3.0, 0.0, 10.0)
    ramp = np.sin(np.pi * s / 10.0) ** 2
    q = np.column_stack([ramp * np.sin(2.0 * s), ramp * np.cos(3.0 * s)])
    v = np.gradient(q, t, axis=0)
    tau = inverse_dynamics(robot, q, v, np.gradient(v, t, axis=0))
    tau = tau + 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    return write_recording(Recording(t, q, robot.joint_names, velocity=v, torque=tau), path, by_name=True)


def read(paths: list[str], settings: Settings = PARTS) -> Logs:
    return read_motion_logs(planar_2r(), [Path(path) for path in paths], settings, "a motion log")


def test_times_of_one_log(log: Path) -> None:
    found = read([f"{log}@4:7.5", f"{log}@8:"])
    ends = [(one.time[0], one.time[-1]) for one in found.recordings]
    np.testing.assert_allclose(ends, [(4.0, 7.5), (8.0, 16.99)])
    assert found.paths == (f"{log}@4:7.5", f"{log}@8:")


def test_standstill_at_the_ends_is_left_out_and_said(log: Path) -> None:
    (kept,) = read([str(log)]).recordings
    assert kept.time[0] == pytest.approx(2.6, abs=0.25)
    assert kept.time[-1] == pytest.approx(13.4, abs=0.25)
    assert any("standstill was left out" in note and "--no-trim" in note for note in read([str(log)]).notes)
    (whole,) = read([str(log)], Settings(trim=False)).recordings
    assert (whole.time[0], whole.time[-1]) == pytest.approx((0.0, 16.99))
    (asked,) = read([str(log)], Settings(from_s=1.0)).recordings
    assert asked.time[0] == 1.0


def test_a_log_that_never_rests_or_never_moves_is_kept_whole() -> None:
    t = np.arange(0.0, 5.0, 0.01)
    for q in (np.sin(t + 0.4)[:, None], 0.0 * t[:, None]):
        whole = Log.of(Recording(t, q, ("j",), torque=q))
        assert without_standstill(whole) == (whole, "")


def test_forms_of_a_part(tmp_path: Path) -> None:
    assert log_part("a.csv@:25") == LogPart(Path("a.csv"), None, 25.0)
    assert log_part("a@b.csv") == LogPart(Path("a@b.csv"))
    odd = tmp_path / "x@1:2"
    odd.write_text("t\n")
    assert log_part(odd) == LogPart(odd)
    for text in ("a.csv@one:2", "a.csv@:", "a.csv@5:2", "a.csv@nan:2"):
        with pytest.raises(InputError, match="expected"):
            log_part(text)


def test_rows_may_be_used_once_only() -> None:
    refuse_same(["a.csv@0:5", "a.csv@5:9"], ["h", "h"])
    refuse_same(["a.csv@5:"], ["h"], seen=[("a.csv@:5", "h")])
    for pair in (("a.csv@0:5", "a.csv@4:9"), ("a.csv", "b.csv"), ("a.csv", "a.csv@4:9")):
        with pytest.raises(InputError, match="same content"):
            refuse_same(pair, ["h", "h"])
    with pytest.raises(InputError, match="identification set"):
        refuse_same(["a.csv"], ["h"], seen=[("a.csv@:5", "h")])


def test_a_run_on_a_part_is_validated_on_another(log: Path) -> None:
    run = dynid.identify(planar_2r(), f"{log}@3:8", PARTS, validate_on=[f"{log}@8:12"])
    assert run.samples[0].time[-1] < 8.0 < run.unseen[0].time[0]
    assert f"{log}@3:8" in run.command()
    again = run.validate([f"{log}@8:12"])
    assert again.relative_error == run.validation.relative_error
    with pytest.raises(InputError, match="same content"):
        run.validate([f"{log}@7:12"])


def test_a_log_of_commands_is_sent_to_the_verb_for_it(bench: Bench, tmp_path: Path) -> None:
    """Legged robots and hobby arms log no torque."""
    log = read_recording(bench.log, bench.truth)
    for stream in ("off", "on"):
        path = write_recording(log.with_(torque=None, reference_position=log.position), tmp_path / "commands.parquet")
        with pytest.raises(InputError, match=r"has no joint torque.*'dynid actuators' finds friction"):
            dynid.identify(bench.urdf, path, Settings(stream=stream))
    finding = check_recording(read_recording(path, bench.truth), bench.truth).find("no_torque")
    assert finding is not None
    assert finding.level == "warning"  # nothing is wrong with such a log
    assert finding.remedy.startswith("use 'dynid actuators'")


def test_a_short_log_is_left_out_and_named(tmp_path: Path) -> None:
    long, short = _log(tmp_path / "long.parquet"), _log(tmp_path / "short.parquet", seconds=1.0)
    found = read_motion_logs(ARM, [short, long], Settings(), "a log").without_short()
    assert found.files == read_motion_logs(ARM, [long], Settings(), "a log").files
    assert len(found.recordings) == len(found.parts) == 1
    assert found.notes[-1].startswith(
        "short.parquet was left out: 100 rows and 0.99 s are too short, expected at least 64 rows and 2 s"
    )
    both = read_motion_logs(ARM, [long, _log(tmp_path / "middle.parquet", seconds=5.0, seed=1)], Settings(), "a log")
    assert len(both.without_short().parts) == 2
    assert len(both.without_short(0.8).parts) == 1  # a fifth of 5 s is too short


def test_logs_that_are_all_too_short_are_refused_in_one_sentence(tmp_path: Path) -> None:
    logs = [_log(tmp_path / f"{k}.parquet", seconds=0.5 * k, seed=k) for k in (1, 2)]
    with pytest.raises(
        InputError, match=r"^all 2 logs are too short, the longest is .*2\.parquet: 100 rows and 0\.99 s, expected"
    ):
        dynid.identify(ARM, logs)
    with pytest.raises(
        InputError, match=r"1\.parquet: 50 rows and 0\.49 s are too short, expected at least 64 rows and 2 s"
    ):
        dynid.identify(ARM, logs[0])
