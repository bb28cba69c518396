"""The body on a force/torque sensor: motion from joints, from an IMU, offsets, drift, tilt, static logs, known mass, bad logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import InputError
from dynid.io.robots.read import read_robot
from dynid.model.frames import frame_named
from dynid.model.poses import pose_from_numbers
from dynid.pipeline.data import read_sensor_logs
from dynid.pipeline.known_load import known_load
from dynid.pipeline.wrench import identify_sensor_body
from dynid.signals.recording import WrenchRecording
from messages import facts
from sensor_logs import (
    BODY,
    COM,
    OFFSETS,
    Path3,
    moves,
    sensor_log,
    sensor_motion,
    true_wrench,
    write_log,
    write_shoulder,
)

QUIET = 0.1 * np.array([0.5, 0.5, 0.5, 0.03, 0.03, 0.03])
FAST = ("wls", "sdp")


@pytest.fixture(scope="module")
def shoulder(tmp_path_factory: pytest.TempPathFactory):
    return read_robot(write_shoulder(tmp_path_factory.mktemp("shoulder")), "none")


@pytest.fixture(scope="module")
def log() -> WrenchRecording:
    return sensor_log(1.0, 1, noise=QUIET, duration_s=20.0)


@pytest.mark.parametrize("filtered", ["savgol:9,2", "butterworth:12", "rows:10", "polynomial:0.1", "auto"])
def test_finds_body_and_offsets_with_every_filter(shoulder, log, filtered):
    found = identify_sensor_body(log, shoulder, "ft_sensor", filtered=filtered, methods=FAST)
    body = found.best
    assert body.mass == pytest.approx(1.85, rel=5e-3)
    np.testing.assert_allclose(body.com, COM, atol=1e-3)
    np.testing.assert_allclose(body.phi[4:], BODY[4:], atol=0.05 * np.linalg.norm(BODY[4:]))
    np.testing.assert_allclose(found.offsets, OFFSETS, atol=0.05)
    assert body.feasible
    assert body.unknown == ()


def test_without_offsets_the_first_moment_is_wrong(shoulder, log):
    """(3, -2, 1) N of offset: with the six offsets estimated the first moment is right to 1 %, without them it is not."""
    right = identify_sensor_body(log, shoulder, "ft_sensor", filtered="savgol:9,2", methods=FAST).best
    assert np.linalg.norm(right.phi[1:4] - BODY[1:4]) < 0.01 * np.linalg.norm(BODY[1:4])
    wrong = identify_sensor_body(log, shoulder, "ft_sensor", filtered="savgol:9,2", methods=FAST, offsets=False).best
    assert np.linalg.norm(wrong.phi[1:4] - BODY[1:4]) > 0.03 * np.linalg.norm(BODY[1:4])


def test_intervals_cover_the_truth(shoulder):
    """Wrench noise alone: the motion is exact, so that nothing but the noise moves the estimate."""
    inside = []
    for seed in range(12):
        log = sensor_log(1.0, seed, duration_s=10.0, encoder_rad=0.0)
        motion = sensor_motion(moves(1.0, np.random.default_rng(seed), 10.0))
        direct = WrenchRecording(
            log.time,
            log.wrench,
            angular_velocity=motion.omega,
            linear_acceleration=motion.proper,
            angular_acceleration=motion.alpha,
        )
        body = identify_sensor_body(direct, filtered="none", methods=("wls",)).best
        low, high = body.interval().T
        inside.append((low <= BODY) & (high >= BODY))
    assert 0.85 <= np.mean(inside) <= 1.0


@pytest.mark.slow
def test_intervals_of_fast_motion_cover_the_truth(shoulder):
    """Moves of half a second at 100 Hz: differences over three points would bend inertias by 4 %, and hold 80 %."""
    inside = []
    for seed in range(24):
        log = sensor_log(0.5, seed, duration_s=30.0)
        low, high = identify_sensor_body(log, shoulder, "ft_sensor", methods=("wls",)).best.interval().T
        inside.append((low <= BODY) & (high >= BODY))
    assert 0.9 <= np.mean(inside) <= 0.99  # 240 intervals


def test_motion_of_an_imu_elsewhere_on_the_body(shoulder):
    path = moves(1.0, np.random.default_rng(3), 20.0)
    motion = sensor_motion(path)
    pose = pose_from_numbers([0.05, -0.02, 0.08, 0.4, -0.3, 1.1])
    R, p = pose[:3, :3], pose[:3, 3]
    there = motion.proper + np.cross(motion.alpha, p) + np.cross(motion.omega, np.cross(motion.omega, p))
    t = np.arange(len(path.q)) / 100.0
    wrench = true_wrench(motion) + OFFSETS
    log = WrenchRecording(t, wrench, angular_velocity=motion.omega @ R, linear_acceleration=there @ R)
    found = identify_sensor_body(log, imu=pose, filtered="none", methods=FAST)
    assert found.best.mass == pytest.approx(1.85, rel=2e-3)
    np.testing.assert_allclose(found.best.com, COM, atol=1e-3)
    np.testing.assert_allclose(found.offsets, OFFSETS, atol=0.05)


def test_drift_and_tilt_are_found(shoulder):
    g = 9.81 * np.array([0.08, -0.05, -1.0]) / np.linalg.norm([0.08, -0.05, -1.0])
    drift = np.array([0.05, -0.03, 0.04, 0.002, -0.001, 0.003])
    log = sensor_log(1.0, 4, noise=QUIET, duration_s=20.0, gravity=g, drift=drift)
    found = identify_sensor_body(log, shoulder, "ft_sensor", filtered="savgol:9,2", methods=FAST, drift=True, tilt=True)
    np.testing.assert_allclose(found.gravity, g, atol=0.02)
    record = found.as_dict()
    np.testing.assert_allclose(record["drift"], drift, atol=0.01)
    assert found.best.mass == pytest.approx(1.85, rel=5e-3)
    assert any("degrees" in note for note in found.notes)
    level = identify_sensor_body(log, shoulder, "ft_sensor", filtered="savgol:9,2", methods=FAST, drift=True)
    assert found.relative_error < 0.7 * level.relative_error


def test_a_log_at_rest_weighs_and_says_what_it_cannot_know(shoulder):
    poses = np.random.default_rng(5).uniform(-1.0, 1.0, (20, 3))
    q = np.repeat(poses, 20, axis=0)
    motion = sensor_motion(Path3(q, 0 * q, 0 * q))
    t = np.arange(len(q)) / 100.0
    wrench = true_wrench(motion) + OFFSETS + 0.01 * np.random.default_rng(6).normal(size=(len(q), 6))
    still = np.zeros_like(q)
    log = WrenchRecording(t, wrench, angular_velocity=still, linear_acceleration=motion.proper, angular_acceleration=still)
    found = identify_sensor_body(log, filtered="none", methods=FAST)
    assert found.static
    assert found.best.mass == pytest.approx(1.85, rel=5e-3)
    np.testing.assert_allclose(found.best.com, COM, atol=1e-3)
    assert found.best.unknown == ("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    assert found.as_dict()["sigma"][4:] == [None] * 6
    assert any("Ixx" in note and "cannot be known" in note for note in found.notes)


def test_one_pose_cannot_tell_weight_from_offset(shoulder):
    q = np.tile([[0.2, 0.3, -0.4]], (200, 1))
    log = WrenchRecording(
        np.arange(200) / 100.0,
        true_wrench(sensor_motion(Path3(q, 0 * q, 0 * q))) + OFFSETS,
        joint_names=("yaw", "pitch", "roll"),
        position=q,
    )
    found = identify_sensor_body(log, shoulder, "ft_sensor", filtered="none", methods=FAST)
    assert "m" in found.best.unknown


def test_a_known_mass_makes_the_centre_surer(shoulder):
    log = sensor_log(1.0, 7, duration_s=10.0)
    free = identify_sensor_body(log, shoulder, "ft_sensor", filtered="savgol:9,2", methods=FAST).best
    known = known_load(1.85)
    fixed = identify_sensor_body(log, shoulder, "ft_sensor", filtered="savgol:9,2", methods=FAST, constraints=known).best
    assert fixed.mass == pytest.approx(1.85, rel=1e-6)
    assert fixed.sigma[0] == 0.0
    assert np.linalg.norm(fixed.com_sigma) < np.linalg.norm(free.com_sigma)
    assert fixed.com_sigma[2] < 0.9 * free.com_sigma[2]


def test_manifold_has_iterates_and_all_can_exist(shoulder, log):
    found = identify_sensor_body(log, shoulder, "ft_sensor", filtered="savgol:9,2", methods=("ols", "manifold"))
    iterates = found.by("manifold").iterates
    assert len(iterates) > 0
    assert dynid.is_consistent(iterates).all()


SWAPPED = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
CYCLIC = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
MIRRORED = np.diag([1.0, 1.0, -1.0])


def turned(log: WrenchRecording, force: np.ndarray, moment: np.ndarray) -> WrenchRecording:
    return replace(log, wrench=np.hstack([log.force @ force.T, log.moment @ moment.T]))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda log: turned(log, SWAPPED, SWAPPED), ("axes", "the sign is the opposite", "--mapping", '"fy", "fx", "fz"')),
        (lambda log: turned(log, CYCLIC, CYCLIC), ("axes", "exchanged", "--mapping")),
        (lambda log: turned(log, MIRRORED, -MIRRORED), ("axes", "left-handed", '"-fz"')),
        (lambda log: turned(log, -np.eye(3), -np.eye(3)), ("opposite sign", "--flip")),
        (lambda log: turned(log, np.eye(3), SWAPPED), ("moment axes", "--mapping")),
        (lambda log: turned(log, np.eye(3), 1e3 * np.eye(3)), ("N mm", "[units] moment")),
        (lambda log: turned(log, np.eye(3) / 9.80665, np.eye(3)), ("kgf", "[units] force")),
        (lambda log: replace(log, wrench=log.wrench - WEIGHT), ("gravity was compensated", "raw wrench")),
    ],
    ids=["swapped", "cyclic", "mirrored", "sign", "moments", "Nmm", "kgf", "compensated"],
)
def test_bad_logs_get_one_sentence(shoulder, log, spoil, words):
    with pytest.raises(InputError) as refusal:
        identify_sensor_body(spoil(log), shoulder, "ft_sensor", filtered="savgol:9,2", methods=FAST)
    for word in words:
        assert word in str(refusal.value)


_STILL = moves(1.0, np.random.default_rng(1), 20.0)
WEIGHT = true_wrench(sensor_motion(Path3(_STILL.q, 0 * _STILL.q, 0 * _STILL.q)))


def test_the_whole_wrench_in_kgf_needs_the_mass_to_be_noticed(shoulder, log):
    light = replace(log, wrench=log.wrench / 9.80665)
    known = known_load(1.85)
    with pytest.raises(InputError, match=facts("kgf", "1.85", "kgfm")):
        identify_sensor_body(light, shoulder, "ft_sensor", filtered="savgol:9,2", methods=FAST, constraints=known)


def test_remedies_work(shoulder, log, tmp_path: Path):
    """The mapping that a refusal names sets the log right."""
    path = write_log(turned(log, np.eye(3) / 9.80665, 1e3 * np.eye(3)), tmp_path / "units.csv")
    mapping = {"units": {"force": "kgf", "moment": "Nmm"}}
    (read,) = read_sensor_logs([path], shoulder, mapping=mapping)
    np.testing.assert_allclose(read.wrench, log.wrench, rtol=1e-9, atol=1e-9)
    path = write_log(turned(log, MIRRORED, -MIRRORED), tmp_path / "axes.csv")
    columns = ["fx", "fy", "-fz", "-mx", "-my", "mz"]
    (read,) = read_sensor_logs([path], shoulder, mapping={"wrench": columns})
    np.testing.assert_allclose(read.wrench, log.wrench, rtol=1e-9, atol=1e-9)


def test_what_is_missing_is_named(shoulder, log, tmp_path: Path):
    with pytest.raises(InputError, match=facts("angular velocity", "--robot")):
        identify_sensor_body(log)
    with pytest.raises(InputError, match=facts("--filter", "savgol:10,2", "odd")):
        identify_sensor_body(log, shoulder, "ft_sensor", filtered="savgol:10,2")
    with pytest.raises(InputError, match=facts("unknown frame", "hand", "ft_sensor")):
        identify_sensor_body(log, shoulder, "hand")
    path = write_log(log, tmp_path / "log.csv")
    with pytest.raises(InputError, match=facts("angular velocity", "log.csv")):
        identify_sensor_body(read_sensor_logs([path], None))
    assert frame_named(shoulder, "ft_sensor").placement[2, 3] == pytest.approx(0.1)
