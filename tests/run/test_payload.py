from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import Bench
from dynid.bodies import phi_of_cuboid
from dynid.errors import InputError
from dynid.excitation.fourier import random_fourier
from dynid.recording.recording import write_recording
from dynid.run.identify import identify
from dynid.run.options import Settings
from dynid.run.payload import identify_payload
from dynid.simulation import simulate

LOAD = phi_of_cuboid(2.0, [0.06, 0.05, 0.08], [0.02, -0.03, 0.12], np.eye(3))


@pytest.fixture(scope="module")
def loaded_log(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = bench.truth.parameters.values.copy()
    values[30:40] += LOAD
    loaded = bench.truth.with_parameters(bench.truth.parameters.with_values(values))
    motion = random_fourier(loaded, 6.0, 4, seed=5).samples(250.0)
    recording = simulate(loaded, motion, rate_hz=250.0, seed=5).recording
    return Path(write_recording(recording, tmp_path_factory.mktemp("load") / "loaded.parquet"))


@pytest.fixture(scope="module")
def run(bench: Bench):
    return identify(bench.urdf, [bench.log, bench.other_log], Settings(cutoff_hz=15.0))


def test_finds_the_load(run, loaded_log: Path) -> None:
    load = identify_payload(run, [loaded_log])
    assert load.mass == pytest.approx(2.0, rel=0.05)
    np.testing.assert_allclose(load.com, [0.02, -0.03, 0.12], atol=0.01)
    assert load.feasible
    assert load.relative_error_with < 0.3 * load.relative_error_without
    # neighbouring rows of a log share some of their noise, and sigma knows it
    assert load.estimate.details["covariance"] == "corrected"
    classical = load.estimate.details["classical_sigma"]
    assert load.sigma[0] > classical[0]
    assert abs(load.mass - 2.0) < 5.0 * load.sigma[0]


def test_no_load_weighs_nothing(run, bench: Bench, tmp_path: Path) -> None:
    motion = random_fourier(bench.truth, 6.0, 4, seed=6).samples(250.0)
    log = write_recording(simulate(bench.truth, motion, rate_hz=250.0, seed=6).recording, tmp_path / "free.parquet")
    assert identify_payload(run, [log]).mass < 0.1


def test_bad_input_is_said(run, bench: Bench, loaded_log: Path) -> None:
    with pytest.raises(InputError, match="unknown link 'hand'"):
        identify_payload(run, [loaded_log], "hand")
    with pytest.raises(InputError, match="same content"):
        identify_payload(run, [bench.log])
