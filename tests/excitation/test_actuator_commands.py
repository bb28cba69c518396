"""Commands for actuators: within limits, both directions, slow and fast, up to the frequency asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dynid.cli.app import app
from dynid.errors import InputError
from dynid.excitation.actuators import actuator_excitation
from dynid.excitation.limits import limits_of
from dynid.export.urdf import write_urdf
from dynid.robot.builtin import demo_robot
from dynid.robot.model import Robot


@pytest.fixture(scope="module")
def arm() -> Robot:
    robot = demo_robot()
    return robot.only(robot.joint_names[:3])


def test_every_joint_moves_alone_both_ways_within_limits(arm: Robot) -> None:
    limits = limits_of(arm)
    found = actuator_excitation(arm, limits)
    assert all(margin.value >= 0.0 for _, margin in found.margins.items())
    t = np.arange(0.0, found.playable.duration_s, 0.01)
    q, v, _ = found.playable.evaluate(t)
    moving = np.abs(v) > 1e-4
    for j in range(3):
        alone = moving[:, j] & ~np.delete(moving, j, axis=1).any(axis=1)
        assert alone.sum() > 500
        assert v[alone, j].max() > 0.0 > v[alone, j].min()
        slow = np.abs(v[alone, j])
        assert np.quantile(slow, 0.3) < 0.15 * slow.max()  # slow ramps beside fast moves
    assert moving.all(axis=1).any()
    assert np.allclose(q[0], q[-1], atol=1e-6)


def test_chirps_reach_the_frequency_asked_for(arm: Robot) -> None:
    found = actuator_excitation(arm, limits_of(arm, acceleration=[500.0] * 3), top_hz=6.0)
    t = np.arange(0.0, found.playable.duration_s, 0.01)
    power = np.abs(np.fft.rfft(found.playable.derivative(t, 2)[:, 0])) ** 2
    share = np.cumsum(power) / power.sum()
    frequency = np.fft.rfftfreq(len(t), 0.01)
    assert 4.0 < frequency[np.searchsorted(share, 0.9)] < 8.0
    with pytest.raises(InputError, match="top-hz is 50"):
        actuator_excitation(arm, limits_of(arm), top_hz=50.0)


def test_the_verb_writes_commands(arm: Robot, tmp_path: Path) -> None:
    write_urdf(arm, tmp_path / "arm.urdf")
    done = CliRunner().invoke(
        app,
        [
            "excite",
            str(tmp_path / "arm.urdf"),
            "--for",
            "actuators",
            "--rate",
            "200",
            "-o",
            str(tmp_path / "u.csv"),
            "--json",
        ],
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert min(margin for margin in found["margins"].values() if margin is not None) >= 0.0
    header, *rows = (tmp_path / "u.csv").read_text().splitlines()
    assert header.replace('"', "").startswith("t,q1")
    assert len(rows) > 200 * 60
