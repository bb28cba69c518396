"""``dynid excite`` as users type it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dynid.cli.verbs.excite import excite
from dynid.errors import InputError
from dynid.excitation.fourier import read_trajectory
from dynid.robot.builtin import demo_description
from dynid.robot.read import read_robot

LOCKED = ("upper_arm_roll", "forearm_roll", "wrist_pitch", "wrist_roll")
QUICK = ("--period", "5", "--harmonics", "3", "--starts", "2", "--seconds", "20", *(f"--lock={name}=0.3" for name in LOCKED))

app = typer.Typer()
app.command()(excite)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "arm.toml"
    path.write_text(demo_description())
    return path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def robot_of(arm):
    return read_robot(arm, lock=dict.fromkeys(LOCKED, 0.3))


def test_a_motion_and_its_numbers(arm, tmp_path):
    out = tmp_path / "traj.csv"
    record = json.loads(run(arm, "-o", out, "--rate", "200", *QUICK, "--json"))
    assert {"condition_number", "criterion", "seconds", "margins"} <= set(record)
    assert {"position", "velocity", "acceleration", "torque"} <= set(record["margins"])
    assert all(margin >= 0.0 for margin in record["margins"].values())
    assert record["files"] == [str(out)]
    robot = robot_of(arm)
    samples = read_trajectory(out, robot)
    np.testing.assert_allclose(np.diff(samples.time), 0.005, atol=1e-9)
    assert not samples.velocity[0].any()
    low, high = robot.position_limits.T
    assert (samples.position >= low).all()
    assert (samples.position <= high).all()
    assert (np.abs(samples.acceleration) <= robot.limits("ddq_max")).all()
    assert out.read_text().splitlines()[0].replace('"', "").split(",")[:4] == ["t", "q1", "q2", "q3"]


def test_every_file_at_once(arm, tmp_path):
    out = [tmp_path / f"traj.{suffix}" for suffix in ("parquet", "yaml", "json")]
    words = [word for path in out for word in ("-o", path)]
    text = run(
        arm,
        *words,
        *QUICK,
        "--picture",
        tmp_path / "picture.html",
        "--card",
        tmp_path / "card.md",
        "--no-rest",
        "--tool-speed",
        "1.5",
    )
    assert "condition number" in text
    assert "left of tool speed" in text
    for path in (*out, tmp_path / "picture.html", tmp_path / "card.md", tmp_path / "traj_dry_run.parquet"):
        assert path.exists()
        assert f"written: {path}" in text
    slow = read_trajectory(tmp_path / "traj_dry_run.parquet", robot_of(arm))
    assert slow.duration_s == pytest.approx(20.0)


@pytest.mark.parametrize(
    "options",
    [
        ("--shape", "bspline", "--intervals", "6"),
        ("--shape", "sinusoids"),
        ("--shape", "points", "--rows", "40", "--effects", "armature"),
    ],
    ids=lambda options: options[1],
)
def test_other_shapes(arm, tmp_path, options):
    out = tmp_path / "traj.csv"
    record = json.loads(run(arm, "-o", out, "--rate", "100", *QUICK, *options, "--json"))
    samples = read_trajectory(out, robot_of(arm))
    assert min(margin for margin in record["margins"].values() if margin is not None) >= -1e-9
    assert np.isfinite(record["condition_number"])
    np.testing.assert_allclose(samples.velocity[0], 0.0, atol=1e-12)
    assert record["model"] == ("energy" if options[1] == "points" else "torque")


def test_refusals_come_before_the_work(arm, tmp_path):
    for words, message in (
        (("-o", tmp_path / "traj.txt"), "unknown form of a motion file '.txt'"),
        (("-o", tmp_path / "no" / "traj.csv"), "there is no folder"),
        (("--shape", "spiral"), "unknown shape of motion 'spiral'"),
        (("--ground", "0"), "--ground is given without --clearance"),
        (("--clearance", "0.01"), "not read from a URDF file"),
        (("--jerk", "fast"), "--jerk is 'fast', expected numbers"),
    ):
        with pytest.raises(InputError, match=message):
            run(arm, *words, *QUICK)
