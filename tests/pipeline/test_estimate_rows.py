"""Rows of logs: filtered samples, signals as recorded, poses; and the estimate from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.engine import Serial, engine_from
from dynid.errors import InputError
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.model.effects import LoadCoulomb
from dynid.pipeline.data import open_logs
from dynid.pipeline.estimate_rows import estimate_rows, row_source
from dynid.pipeline.log import Logs
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import Filter
from dynid.regression.static_rows import StaticRows
from dynid.signals.recording import StaticRecording

ROBOT = dynid.demo_robot(effects=[dynid.Viscous()])
FILTER = Filter(20.0, 8.0, 4, "logged", row_band_hz=8.0)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "log.csv"
    dynid.write_recording(dynid.demo_recording(ROBOT, seconds=8.0), path)
    return path


def logs_of(path: Path, stream: str = "off") -> Logs:
    found = open_logs(ROBOT, [path], dynid.Settings(stream=stream))  # type: ignore[arg-type]
    assert isinstance(found, Logs)
    return found.with_windows().filtered(FILTER, 10**6, still=True)


def test_an_engine_and_a_stream_give_the_same_estimate(log: Path) -> None:
    plan, method = RowPlan("torque", 8.0), OrdinaryLeastSquares()
    whole, regression, logs = estimate_rows(plan, ROBOT, logs_of(log), method, Serial())
    assert logs.samples == logs.windows
    assert regression.n_samples == whole.n_samples
    for stream, engine in (("on", "serial"), ("on", "threads:2"), ("off", "threads:2")):
        other, _, _ = estimate_rows(plan, ROBOT, logs_of(log, stream), method, engine_from(engine))
        np.testing.assert_allclose(other.base_values, whole.base_values, atol=1e-8 * np.abs(whole.base_values).max())


def test_poses_are_one_more_kind_of_rows() -> None:
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (30, 7))
    still, rigid = 0.0 * q, ROBOT.with_effects(())
    poses = StaticRecording(q, ROBOT.joint_names, gravity=dynid.inverse_dynamics(rigid, q, still, still))
    logs = Logs(rigid, (), ("poses.csv",), ("",), poses=poses)
    assert isinstance(row_source(RowPlan("static"), rigid, logs), StaticRows)
    found, _, _ = estimate_rows(RowPlan("static"), rigid, logs, OrdinaryLeastSquares(), engine_from("threads:2"))
    assert found.n_samples == 30
    assert found.relative_error < 1e-9


def test_rows_of_recorded_signals_know_no_load_of_a_stream(log: Path) -> None:
    loaded = ROBOT.with_effects([dynid.Viscous(), LoadCoulomb()])
    with pytest.raises(InputError, match="add --stream off"):
        row_source(RowPlan("polynomial"), loaded, logs_of(log, "on"))
