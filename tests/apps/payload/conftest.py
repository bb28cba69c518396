"""A run of the bench's robot without a load, and a log with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import Bench
from dynid.dynamics.simulate import simulate
from dynid.excitation.shapes import random_fourier
from dynid.io.logs.read import write_recording
from dynid.pipeline.folder import save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from uniform_bodies import LOAD


@pytest.fixture(scope="session")
def loaded_log(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = bench.truth.parameters.values.copy()
    values[30:40] += LOAD
    loaded = bench.truth.with_parameters(bench.truth.parameters.with_values(values))
    motion = random_fourier(loaded, 6.0, 4, seed=5).samples(250.0)
    recording = simulate(loaded, motion, rate_hz=250.0, seed=5).recording
    return Path(write_recording(recording, tmp_path_factory.mktemp("load") / "loaded.parquet"))


@pytest.fixture(scope="session")
def run(bench: Bench):
    return identify(bench.urdf, [bench.log, bench.other_log], Settings(cutoff_hz=15.0, friction="linear"))


@pytest.fixture(scope="session")
def folder(run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_result(run, tmp_path_factory.mktemp("payload") / "run")
