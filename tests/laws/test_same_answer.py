"""Wherever the work runs, and with however many threads of BLAS, the answer is the same to the bound that ``docs/scale.md`` states."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench import Bench
from dynid.pipeline.folder import load_result

BOUND = 1e-9
"""Relative difference of base values and of the torque error."""
WAYS = {"two threads of BLAS": ("serial", "2"), "threads:2": ("threads:2", "1"), "processes:2": ("processes:2", "1")}


def values(bench: Bench, folder: Path, engine: str, blas: str) -> tuple[np.ndarray, float]:
    """Base values and the torque error of a run in a process of its own."""
    command = [sys.executable, "-m", "dynid", "identify", str(bench.urdf), str(bench.log), "-o", str(folder)]
    command += ["--export", "json", "--cutoff-hz", "10", "--stream", "on", "--engine", engine, "--json"]
    done = subprocess.run(
        command, env=os.environ | {"OPENBLAS_NUM_THREADS": blas}, capture_output=True, text=True, check=True
    )
    return load_result(folder).estimate.base_values, float(json.loads(done.stdout)["relative_error"]["identification"])


@pytest.mark.slow
def test_engines_and_threads_of_blas_differ_by_round_off_alone(bench: Bench, tmp_path: Path) -> None:
    expected, error = values(bench, tmp_path / "plain", "serial", "1")
    size = np.abs(expected).max()
    for what, (engine, blas) in WAYS.items():
        found, own = values(bench, tmp_path / engine.replace(":", "") / blas, engine, blas)
        difference = max(float(np.abs(found - expected).max() / size), abs(own - error) / error)
        assert difference <= BOUND, (what, difference)
