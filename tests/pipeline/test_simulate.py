"""A robot on its feet from motion to model: ``excite``, ``simulate`` and ``identify`` by their files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from cli_program import dynid
from legged_robots import QUADRUPED, robot_file

FEET = ("--feet", "FL,FR,HL,HR")


@pytest.fixture(scope="module")
def motion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("feet") / "motion.csv"
    words = ("--motions", "turn,swing", "--period", "6", "--periods", "2", "--rate", "100")
    told = json.loads(dynid("excite", robot_file(QUADRUPED), *FEET, *words, "-o", path, "--json").stdout)
    assert [one["name"] for one in told["motions"]] == ["turn", "swing"]
    assert all(one["inside"] > 0.0 for one in told["motions"])
    return path


def test_a_motion_on_feet_is_simulated_and_identified(motion: Path, tmp_path: Path) -> None:
    robot, log = robot_file(QUADRUPED), tmp_path / "trial.parquet"
    told = dynid(
        "simulate", robot, motion, *FEET, "--rate", "100", "--viscous", "0.01", "--motion-noise", "0", "-o", log, "--json"
    )
    assert json.loads(told.stdout)["n_samples"] == pytest.approx(2400, abs=10)
    names = set(parquet.read_schema(log).names)
    assert {
        "base_qw",
        "imu_az",
        "base_alx",
        "q_FL_HAA",
        "ddq_HR_KFE",
        "tau_FL_KFE",
        "contact_HR_FOOT",
        "FL_FOOT_fz",
    } <= names
    quick = ("--cutoff-hz", "5", "--signal-band-hz", "20", "--foot-radius", "0.015", "--friction", "linear")
    found = json.loads(
        dynid("identify", robot, log, *FEET, *quick, "--split", "0.6", "-o", tmp_path / "run", "--json").stdout
    )
    assert found["rows"]["kind"] == "floating"
    assert found["relative_error"]["validation"] < 0.02


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--feet", "FL,FR,HL,nowhere"), "has no frame 'nowhere' for a foot"),
        (("--feet", "FL,FR", "--flat-feet", "HL,HR"), "--feet and --flat-feet are both given"),
        (("--feet", "FL,FR"), "falls over after"),
        ((*FEET, "--encoder-bits", "2000"), "encoder has 2000 bits, expected 0 (exact) to 40"),
        ((*FEET, "--torque-noise", "-1"), "torque noise is -1, expected zero or a positive share"),
        ((*FEET, "--motion-noise", "-1"), "'motion_noise' is -1.0, expected zero or a positive number"),
    ],
)
def test_what_cannot_be_simulated_is_refused(motion: Path, tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    done = dynid("simulate", robot_file(QUADRUPED), motion, *words, "-o", tmp_path / "x.parquet")
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert not (tmp_path / "x.parquet").exists()


def test_motions_on_feet_are_tables(tmp_path: Path) -> None:
    done = dynid("excite", robot_file(QUADRUPED), *FEET, "-o", tmp_path / "x.script")
    assert done.returncode == 2
    assert "motions on feet are written as tables" in " ".join(done.stderr.split())
