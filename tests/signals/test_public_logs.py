"""The public logs read, checked and processed: their clocks, faults and recipes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.dynamics.regressors import torque_regressor
from dynid.excitation.trajectories import FourierTrajectory
from dynid.finding import DataCheck, Finding
from dynid.io.logs.read import read_recording
from dynid.io.robots.read import read_robot
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.robot import Robot
from dynid.signals.checks import check_signals
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.signals.steps.clock import Decimate, Resample
from dynid.signals.steps.filters import Differentiate, LowPass
from shared_data import need, shared

need("panda_gaz/exciting_traj_1.parquet", "ur10e_mamedov/index.csv", "wam7/reference_traj1.parquet")

# Motion --------------------------------------------------------------------------------------------


def test_published_wam_coefficients_give_the_published_reference():
    polars = pytest.importorskip("polars")
    entry = json.loads(shared("wam7/fourier.json").read_text())["trajectories"]["traj1"]
    table = polars.read_parquet(shared("wam7/reference_traj1.parquet"))
    motion = FourierTrajectory(entry["period_s"], entry["a"], entry["b"], entry["q0"])
    start = entry["fourier_start_row"]
    time = table["t"].to_numpy()[start : start + 20000]
    position = table.select([f"q{k}" for k in range(1, 8)]).to_numpy()[start : start + 20000]
    assert isinstance(motion.samples(100.0), Samples)
    np.testing.assert_allclose(motion.evaluate(time - time[0])[0], position, atol=6e-6)


# Checked -----------------------------------------------------------------------------------------


def _found(check: DataCheck, code: str) -> Finding:
    finding = check.find(code)
    assert finding is not None
    return finding


def test_panda_log_is_checked() -> None:
    robot = read_robot(shared("panda_gaz/robot.toml"))
    recording = read_recording(shared("panda_gaz/exciting_traj_1.parquet"), robot)
    assert isinstance(recording, Recording)
    check = check_signals(recording, robot)
    assert set(check.codes) == {"jitter", "repeated_rows", "velocity_lag", "gaps"}
    assert "steps from 0.7 to 8.8 ms" in _found(check, "jitter").what
    assert 0.05 < _found(check, "repeated_rows").values["share"] < 0.065
    lag = check.facts["velocity_lag_typical_s"]
    assert 0.0045 < lag < 0.006
    assert _found(check, "gaps").level == "note"
    assert check.facts["standstill_share"] < 0.01


@pytest.mark.parametrize(
    ("name", "share"), [("20_02_10_30sec_12harm", 0.22), ("20_01_17_ptp_10_points", 0.29), ("20_02_19_14harm50sec", 0.10)]
)
def test_ur10e_logs_are_checked(name: str, share: float) -> None:
    robot = read_robot(shared("ur10e_mamedov/robot.urdf"))
    recording = read_recording(shared(f"ur10e_mamedov/traj/{name}.parquet"), robot)
    assert isinstance(recording, Recording)
    check = check_signals(recording, robot)
    assert 93.0 < check.facts["rate_hz"] < 96.0
    assert "irregular" in _found(check, "jitter").what
    assert _found(check, "standstill").values["share"] == pytest.approx(share, abs=0.02)
    assert "drive gains" in _found(check, "current_only").remedy
    assert check.find("velocity_lag") is None


# Processed ---------------------------------------------------------------------------------------


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
