"""Drive gains from simulated currents with and without a known load, and from the UR10e pair."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from cli_program import dynid
from dynid.apps.gains.gains import identify_gains
from dynid.apps.payload.load import identify_payload
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.robot import Robot
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.signals.recording import Recording
from messages import facts
from shared_data import shared

TRUE = np.array([9.0, 12.0, 11.0, 8.0])
LOAD = phi_from_mass_com_inertia(3.0, [0.03, -0.02, 0.1], np.diag([0.01, 0.012, 0.008]))


ARM = demo_robot().only(["shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow"])


def current_log(folder: Path, name: str, robot: Robot, seed: int, slower: float = 1.0, noise: float = 0.02) -> Path:
    """A log of motor current with noise; ``slower`` stretches the same motion in time."""
    motion = random_fourier(robot, 8.0, 4, seed=seed).samples(max(250.0, 25.0 * slower))
    v, a = motion.velocity / slower, motion.acceleration / slower**2
    torque = inverse_dynamics(robot, motion.position, v, a)
    current = torque / TRUE + noise * np.random.default_rng(seed).normal(size=torque.shape)
    log = Recording(slower * motion.time, motion.position, robot.joint_names, velocity=v, current=current)
    return Path(write_recording(log, folder / f"{name}.parquet"))


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arm") / "arm.urdf"
    write_urdf(ARM, path)
    return path


@pytest.fixture(scope="module")
def heavy() -> Robot:
    """The arm with 3 kg on its last link."""
    values = ARM.parameters.values.copy()
    values[30:40] += LOAD
    return ARM.with_parameters(ARM.parameters.with_values(values))


@pytest.fixture(scope="module")
def currents(heavy: Robot, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("gains")
    return current_log(folder, "free", ARM, 11), current_log(folder, "loaded", heavy, 12)


@pytest.mark.parametrize("method", ["tls", "sdp"])
def test_gains_are_found(currents, method) -> None:
    """The vertical axis too: the motion is fast enough to feel the load's inertia there."""
    found = identify_gains(ARM, [currents[0]], [currents[1]], 3.0, method=method)
    for gain, true in zip(found.gains, TRUE, strict=True):
        assert gain.identifiable
        assert gain.value == pytest.approx(true, rel=0.02)
        assert abs(gain.value - true) < 4.0 * gain.sigma
    assert found.unit == "N m/A"
    assert found.load[0] == pytest.approx(3.0, rel=1e-6)


def test_a_gain_that_cannot_be_seen_is_named_and_not_invented(heavy: Robot, tmp_path: Path) -> None:
    """Slow motion: a vertical axis feels neither the weight of the load nor its inertia."""
    free, loaded = (current_log(tmp_path, name, robot, 13, 12.0) for name, robot in (("free", ARM), ("loaded", heavy)))
    found = identify_gains(ARM, [free], [loaded], 3.0)
    assert [gain.identifiable for gain in found.gains] == [False, True, True, True]
    assert "shoulder_yaw" in " ".join(found.notes)
    assert not any(name in " ".join(found.notes) for name in ARM.dof_names[1:])
    share = float(re.search(r"makes (\S+) % of its torque", " ".join(found.notes))[1])
    assert 0.0 <= share < 20.0  # what inertia and friction of slow motion leave to it
    assert np.isnan(found.values[0])
    for gain, true in zip(found.gains[1:], TRUE[1:], strict=True):
        assert gain.value == pytest.approx(true, rel=0.05)


def test_noise_makes_gains_of_least_squares_too_small_and_leaves_the_default_right(heavy: Robot, tmp_path: Path) -> None:
    """Ten times the noise: the default predicts the current, least squares has it in the regressor."""
    logs = [
        current_log(tmp_path, name, robot, 20 + k, noise=0.2)
        for k, (name, robot) in enumerate((("free", ARM), ("loaded", heavy)))
    ]
    found = identify_gains(ARM, [logs[0]], [logs[1]], 3.0)
    right = np.array([gain.value for gain in found.gains]) / TRUE - 1.0
    wrong = np.array([gain.value for gain in found.least_squares]) / TRUE - 1.0
    assert (np.abs(right) < 3.0 * np.array([gain.sigma for gain in found.gains]) / TRUE).all()
    beyond = np.abs(wrong) / np.array([gain.sigma for gain in found.least_squares]) * TRUE
    assert beyond.max() > 5.0
    assert wrong.mean() < 2.0 * right.mean() - 0.02


@pytest.mark.parametrize("method", ["tls", "sdp"])
def test_one_known_total_of_two_loads(heavy: Robot, currents, tmp_path: Path, method) -> None:
    """Two loads, 3 and 1.5 kg, of which only the 4.5 kg together are known."""
    values = ARM.parameters.values.copy()
    values[30:40] += 0.5 * LOAD
    light = ARM.with_parameters(ARM.parameters.with_values(values))
    other = current_log(tmp_path, "light", light, 14)
    found = identify_gains(ARM, [currents[0]], [currents[1], other], total=4.5, method=method)
    np.testing.assert_allclose([gain.value for gain in found.gains], TRUE, rtol=0.02)
    np.testing.assert_allclose([load[0] for load in found.loads], [3.0, 1.5], rtol=0.02)
    assert sum(load[0] for load in found.loads) == pytest.approx(4.5, rel=1e-6)


def test_one_mass_is_needed(currents) -> None:
    for words, given in (("both", {"mass": 3.0, "total": 3.0}), ("neither", {}), ("--mass", {"total": 3.0})):
        with pytest.raises(InputError, match=words):
            identify_gains(ARM, [currents[0]], [currents[1]], **given)


def test_data_sheet_values_help_where_data_do_not(currents) -> None:
    found = identify_gains(ARM, [currents[0]], [currents[1]], 3.0, prior=[9.2, 12.5, 10.5, 8.4], prior_sigma=0.05)
    assert (np.array([gain.sigma for gain in found.gains]) < 0.05 * TRUE).all()
    np.testing.assert_allclose([gain.value for gain in found.gains], TRUE, rtol=0.05)
    with pytest.raises(InputError, match=facts("--gains-prior", "2", "4")):
        identify_gains(ARM, [currents[0]], [currents[1]], 3.0, prior=[9.0, 12.0])


def test_torque_sensors_have_gains_too(currents, tmp_path: Path) -> None:
    import polars as pl

    logs = []
    for path in currents:
        table = pl.read_parquet(path)
        names = [name for name in table.columns if name.startswith("i")]
        scaled = table.with_columns([(pl.col(name) * TRUE[k] / 1.1).alias(name) for k, name in enumerate(names)]).rename(
            {name: f"tau{k + 1}" for k, name in enumerate(names)}
        )
        scaled.write_parquet(tmp_path / path.name)
        logs.append(tmp_path / path.name)
    found = identify_gains(ARM, [logs[0]], [logs[1]], 3.0)
    for gain in found.gains[1:]:
        assert gain.value == pytest.approx(1.1, rel=0.05)


def test_by_command(arm, currents) -> None:
    done = dynid("gains", currents[0], currents[1], "--robot", arm, "--mass", 3, "--json")
    assert done.returncode == 0, done.stderr
    gains = json.loads(done.stdout)["gains"]
    assert [set(gain) for gain in gains] == [{"joint", "value", "sigma", "identifiable"}] * 4
    np.testing.assert_allclose([gain["value"] for gain in gains], TRUE, rtol=0.05)
    shown = dynid("gains", currents[0], currents[1], "--robot", arm, "--mass", 3)
    assert "shoulder_yaw" in shown.stdout
    given = dynid("gains", currents[0], currents[1], "--robot", arm, "--mass", 3, "--gains-prior", "9.2,12.5,10.5,8.4")
    assert given.returncode == 0, given.stderr
    assert "combined with given gains" in given.stderr + given.stdout
    refused = dynid("gains", currents[0], currents[1], "--mass", 3)
    assert refused.returncode == 2
    assert "--robot" in refused.stderr
    refused = dynid("gains", currents[0], currents[1], "--robot", arm, "--mass", -1)
    assert refused.returncode == 2
    assert "-1" in refused.stderr


AUTHORS = np.array([10.6956, 8.4566, 9.0029, 9.48, 10.1232])
CONTROLLER = np.array([11.99, 9.82, 10.67, 10.5, 10.75])
"""Slope of the controller's own target torque over its target current in the same logs (columns tau_des, i_des), N m per A."""


@pytest.mark.slow
def test_ur10e_pair() -> None:
    """Least squares repeats the authors' gains; total least squares those that the controller itself uses."""
    from dynid.io.robots.read import read_robot

    folder = shared("ur10e_mamedov")
    robot = read_robot(folder / "robot.urdf", "viscous,coulomb,offset,armature")
    pair = [folder / "traj/20_02_19_14harm50sec.parquet"], [folder / "traj/20_02_19_14harm50secLoad.parquet"]
    settings = Settings(from_s=2.0, to_s=53.0, cutoff_hz=7.0, filter_on="signals")
    found = identify_gains(robot, *pair, 2.805, settings=settings)
    assert [gain.identifiable for gain in found.gains] == [False, True, True, True, True, True]
    np.testing.assert_allclose([gain.value for gain in found.least_squares[1:]], AUTHORS, rtol=0.05)
    np.testing.assert_allclose([gain.value for gain in found.gains[1:]], CONTROLLER, rtol=0.05)


@pytest.mark.slow
def test_ur10e_load_of_another_day() -> None:
    """2.602 kg on a log from which no gain was estimated: the gains of total least squares weigh it right, the published ones do not."""
    folder = shared("ur10e_mamedov")
    masses = {}
    for name, gains in (("tls", (10.75, 12.35, 9.95, 10.34, 10.24, 10.31)), ("authors", (10.0, *AUTHORS))):
        settings = Settings(
            drive_gains=gains, from_s=3.0, to_s=24.0, cutoff_hz=5.0, signal_band_hz=20.0, velocity="logged",
            friction="linear", method="wls",
        )  # fmt: skip
        run = identify(folder / "robot.urdf", folder / "traj/20_02_19_14harm50sec.parquet", settings)
        masses[name] = identify_payload(run, [folder / "traj/20_01_13_load_2600.parquet"])
        if name == "tls":  # the gains are right, so the interval holds without any share of theirs
            for log, true in (("20_02_19_14harm50secLoad", 2.805), ("20_01_13_load_2600", 2.602)):
                load = identify_payload(run, [folder / f"traj/{log}.parquet"], gain_sigma=0.0)
                assert load.mass == pytest.approx(true, rel=0.08)
                low, high = load.interval()[0]
                assert low < true < high
    assert masses["tls"].mass == pytest.approx(2.602, rel=0.03)
    assert masses["authors"].mass < 0.9 * 2.602
    for load in masses.values():  # the interval knows that gains may be off by 10 %
        low, high = load.interval()[0]
        assert low < 2.602 < high
