"""Parts of logs: times of one log alone, standstill at the ends, rows that are used twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import Bench
from dynid.errors import InputError
from dynid.recording.motion import Recording
from dynid.recording.readers.read import read_recording
from dynid.recording.write import write_recording
from dynid.regression.torque import inverse_dynamics
from dynid.run.identify import identify
from dynid.run.log_part import LogPart, log_part, refuse_same, without_standstill
from dynid.run.logs import Logs, read_logs
from dynid.run.options import Settings
from dynid.run.unseen import validate_run
from dynid.validation.data_check import check_recording
from problems import planar_2r

FIXED = Settings(signals=True, effects=("viscous",), cutoff_hz=8.0, method="wls")


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


def read(paths: list[str], settings: Settings = FIXED) -> Logs:
    found = read_logs(planar_2r(), [Path(path) for path in paths], settings)
    assert isinstance(found, Logs)
    return found


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
        recording = Recording(t, q, ("j",), torque=q)
        assert without_standstill(recording) == (recording, "")


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
    run = identify(planar_2r(), f"{log}@3:8", FIXED, validate_on=[f"{log}@8:12"])
    assert run.samples[0].time[-1] < 8.0 < run.unseen[0].time[0]
    assert f"{log}@3:8" in run.command()
    again = validate_run(run, [f"{log}@8:12"])
    assert again.relative_error == run.validation.relative_error
    with pytest.raises(InputError, match="same content"):
        validate_run(run, [f"{log}@7:12"])


def test_a_log_of_commands_is_sent_to_the_verb_for_it(bench: Bench, tmp_path: Path) -> None:
    """Legged robots and hobby arms log no torque."""
    log = read_recording(bench.log, bench.truth)
    for stream in ("off", "on"):
        path = write_recording(log.with_(torque=None, reference_position=log.position), tmp_path / "commands.parquet")
        with pytest.raises(InputError, match=r"has no joint torque.*'dynid actuators' finds friction"):
            identify(bench.urdf, path, Settings(stream=stream))
    finding = check_recording(read_recording(path, bench.truth), bench.truth).find("no_torque")
    assert finding is not None
    assert "'dynid actuators'" in finding.fix
