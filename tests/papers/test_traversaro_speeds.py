"""Traversaro and others 2016, section IV: a body on a force/torque sensor, identified from motions of five speeds, by the command.

Simulated, with the paper's durations, sampling and Savitzky-Golay windows; noise, offsets and body are stated in ``sensor_logs``.
Slow motion hardly excites the inertia: least squares then returns a body that cannot exist, the others never do, the manifold at
no iterate.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_program import dynid
from dynid.estimation.body import estimate_body
from dynid.io.robots.read import read_robot
from dynid.model.inertia import is_consistent
from dynid.pipeline.wrench import identify_sensor_body
from sensor_logs import BODY, COM, OFFSETS, WINDOWS, sensor_log, write_log, write_shoulder

SLOW, FAST = (10.0, 5.0), (1.0, 0.5)


@pytest.fixture(scope="module")
def urdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shoulder(tmp_path_factory.mktemp("shoulder"))


@pytest.fixture(scope="module")
def by_command(urdf: Path) -> dict[float, dict[str, Any]]:
    """``dynid payload --sensor`` at every speed."""
    found = {}
    for move_s, window in WINDOWS.items():
        log = write_log(sensor_log(move_s), urdf.parent / f"moves_{move_s:g}.csv")
        done = dynid(
            "payload", "--sensor", log, "--robot", urdf, "--frame", "ft_sensor", "--filter", f"savgol:{window},2", "--json"
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found[move_s] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("move_s", list(WINDOWS))
def test_mass_centre_and_offsets_are_found_at_every_speed(by_command, move_s):
    found = by_command[move_s]
    assert found["mass"] == pytest.approx(1.85, rel=5e-3)
    assert np.linalg.norm(np.array(found["com"]) - COM) < 2e-3
    np.testing.assert_allclose(found["offsets"][:3], OFFSETS[:3], atol=0.15)
    np.testing.assert_allclose(found["offsets"][3:], OFFSETS[3:], atol=0.01)
    assert np.linalg.norm(np.array(found["phi"][1:4]) - BODY[1:4]) < 0.01 * np.linalg.norm(BODY[1:4])


@pytest.mark.parametrize("move_s", FAST)
def test_fast_moves_show_the_inertia(by_command, move_s):
    """About the sensor's frame, as Table I prints it."""
    assert np.linalg.norm(np.array(by_command[move_s]["phi"][4:]) - BODY[4:]) < 0.1 * np.linalg.norm(BODY[4:])


def test_the_pattern_of_table_1(by_command):
    """Least squares breaks at slow speeds; what is on the manifold or in the consistent set never does."""
    for move_s, found in by_command.items():
        verdict = {entry["method"]: entry["feasible"] for entry in found["methods"]}
        assert verdict["ols"] == (move_s not in SLOW)
        assert verdict["sdp"]
        assert verdict["manifold"]


@pytest.mark.parametrize("move_s", list(WINDOWS))
def test_every_iterate_of_the_manifold_can_exist(urdf, move_s):
    filtered = f"savgol:{WINDOWS[move_s]},2"
    found = identify_sensor_body(
        sensor_log(move_s), read_robot(urdf, "none"), "ft_sensor", filtered=filtered, methods=("manifold",)
    )
    iterates = found.by("manifold").iterates
    assert len(iterates) >= 2
    assert is_consistent(iterates, "full").all()
    np.testing.assert_array_equal(iterates[-1][0] > 0.0, True)


@pytest.mark.slow
def test_least_squares_breaks_at_slow_speeds_only(urdf):
    """Over ten logs of each speed: most of the slow ones, few of the fast ones."""
    robot = read_robot(urdf, "none")
    broken = {}
    for move_s, window in WINDOWS.items():
        verdicts = []
        for seed in range(10):
            found = identify_sensor_body(
                sensor_log(move_s, seed), robot, "ft_sensor", filtered=f"savgol:{window},2", methods=("ols",)
            )
            verdicts.append(not found.best.feasible)
            if move_s in SLOW:
                assert all(body.feasible for body in estimate_body(found.regression, ("sdp", "manifold")))
        broken[move_s] = np.mean(verdicts)
    assert min(broken[10.0], broken[5.0]) > 0.5
    assert max(broken[2.0], broken[1.0], broken[0.5]) < 0.5


def test_a_sensor_log_goes_the_whole_way(urdf, tmp_path):
    """``data`` looks into it, ``payload`` and ``identify`` identify and report."""
    log = write_log(sensor_log(1.0, duration_s=10.0), tmp_path / "log.csv")
    looked = dynid("data", log, "--robot", urdf, "--frame", "ft_sensor", "--json")
    assert looked.returncode == 0, looked.stderr
    assert json.loads(looked.stdout)["quantities"] == ["wrench", "position"]
    wrong = sensor_log(1.0, duration_s=10.0)
    spoiled = write_log(replace(wrong, wrench=wrong.wrench * [1, 1, 1, 1e3, 1e3, 1e3]), tmp_path / "wrong.csv")
    looked = dynid("data", spoiled, "--robot", urdf, "--frame", "ft_sensor", "--json")
    assert json.loads(looked.stdout)["findings"][0]["code"] == "moment_unit"
    done = dynid(
        "payload", "--sensor", log, "--robot", urdf, "--frame", "ft_sensor", "--filter", "savgol:9,2",
        "--report", tmp_path / "body.html",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Wrench" in (tmp_path / "body.html").read_text("utf-8")
    done = dynid("identify", urdf, log, "--frame", "ft_sensor", "--filter", "savgol:9,2", "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "verdict: good" in done.stdout
    assert "Wrench" in (tmp_path / "run" / "report.html").read_text("utf-8")
