"""Lag and dead band by their profile: a known curve, and a simulated servo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dynid.apps.actuators.identify import identify_actuators
from dynid.apps.actuators.options import ActuatorSettings
from dynid.apps.actuators.separability import profiled
from dynid.dynamics.position_loop import simulate_commands
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.signals.commands import Command, PositionControl
from dynid.signals.recording import Recording
from position_logs import KD, KP, commands, small_arm, true_model


def curve(truth: float, spread: float, n_rows: int = 1000, inflation: float = 2.0) -> Any:
    """A fit whose likelihood is a parabola: one standard deviation of ``spread`` about ``truth``."""

    def fit(x: float) -> Any:
        rows = n_rows / inflation**2
        rms = np.array([np.exp(0.5 * ((x - truth) / spread) ** 2 / rows)])
        return SimpleNamespace(rms=rms, inflation=inflation)

    return fit


def test_minimum_and_interval_of_a_parabola() -> None:
    found = profiled("lag", curve(0.0063, 0.0004), 1000, lambda text: None)
    assert found.told
    assert found.value == pytest.approx(0.0063, abs=1e-5)
    assert found.low == pytest.approx(0.0063 - 1.96 * 0.0004, abs=1e-4)
    assert found.high == pytest.approx(0.0063 + 1.96 * 0.0004, abs=1e-4)
    assert found.sigma == pytest.approx(0.0004, rel=0.1)
    assert "0.0063" in found.sentence()


def test_what_is_not_told_from_zero_is_said() -> None:
    found = profiled("dead_band", curve(0.001, 0.002), 1000, lambda text: None)
    assert not found.told
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(0.001 + 1.96 * 0.002, rel=0.1)
    assert "not told from zero" in found.sentence()
    endless = profiled("lag", curve(0.0, 1.0), 1000, lambda text: None)
    assert endless.as_json() == {"value": 0.0, "sigma": None, "interval": [0.0, None], "told": False}


@pytest.mark.slow
def test_dead_band_of_a_simulated_servo_is_found(tmp_path: Path) -> None:
    robot = small_arm()
    model, n = true_model(robot), 3
    t, u = commands(n, 4.0, 200.0, 0)
    control = replace(PositionControl(KP, KD), dead_band=0.01)
    motion = simulate_commands(model.robot, model.drives(control), Command(t, u), t, (u[0], np.zeros(n)), step_s=2.5e-4)
    count = 2.0 * np.pi / 2**14
    q = np.round((motion.at_stamps + 0.5 * count * np.random.default_rng(0).normal(size=u.shape)) / count) * count
    bare = robot.with_effects(())
    write_urdf(bare, tmp_path / "arm.urdf")
    write_recording(Recording(t, q, bare.joint_names, reference_position=u), tmp_path / "log.csv")
    settings = ActuatorSettings(kp=tuple(KP), kd=tuple(KD), limit=(1e6,), dead_band="auto")
    run = identify_actuators(tmp_path / "arm.urdf", tmp_path / "log.csv", settings)
    found = run.as_json()["dead_band"]
    assert found["told"]
    assert found["value"] == pytest.approx(0.01, rel=0.02)
    assert found["interval"][0] - 1e-4 < 0.01 < found["interval"][1] + 1e-4
    assert set(run.as_json()["instrumental"]["values"]) >= {"Ia1", "fv2", "fc3"}
