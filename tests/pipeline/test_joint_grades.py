"""Grades of joints on logs whose truth is known: noise is no fault, physics that the model lacks is one, and so is missing motion."""

from pathlib import Path

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.finding import JointGrade
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb
from dynid.model.effects.linear import Offset, Viscous
from dynid.pipeline.identify import identify
from dynid.pipeline.joint_grades import UNKNOWN, overall_grade
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.signals.recording import Recording
from problems import planar_2r

RATE_HZ, SECONDS = 200.0, 20.0
TRUTH = planar_2r([Viscous(), Coulomb(), Offset()]).with_parameters(
    {"fv1": 0.5, "fv2": 0.3, "fc1": 0.6, "fc2": 0.4, "fo2": 0.2}
)
NOISE = 0.02


def log(motion: str = "rich", seed: int = 0) -> Recording:
    """A log of the robot with white noise of torque."""
    t = np.arange(0.0, SECONDS, 1.0 / RATE_HZ)
    w = 2.0 * np.pi * np.array([[0.21, 0.37, 0.61], [0.29, 0.47, 0.73]])
    size = np.array([[0.5, 0.4, 0.2], [0.6, 0.4, 0.3]]) * (0.001 if motion == "tiny" else 1.0)
    phase = w[..., None] * t
    q, v, a = (
        (size[..., None] * f).sum(axis=1).T
        for f in (np.sin(phase), w[..., None] * np.cos(phase), -(w[..., None] ** 2) * np.sin(phase))
    )
    if motion == "one way":
        q[:, 1], v[:, 1] = q[:, 1] + 2.5 * t, v[:, 1] + 4.0
    if motion == "still":
        q[:, 1], v[:, 1], a[:, 1] = 0.3, 0.0, 0.0
    torque = inverse_dynamics(TRUTH, q, v, a) + NOISE * np.random.default_rng(seed).normal(size=q.shape)
    return Recording(time=t, position=q, velocity=v, torque=torque, joint_names=TRUTH.joint_names)


def run_of(recording: Recording, tmp_path: Path) -> IdentificationResult:
    write_urdf(planar_2r(), tmp_path / "arm.urdf")
    return identify(tmp_path / "arm.urdf", recording, Settings(split=0.65, cutoff_hz=10.0, friction="linear"))


def elbow(run: IdentificationResult) -> JointGrade:
    assert run.verdict is not None
    return next(joint for joint in run.verdict.joints if joint.name == TRUTH.joint_names[1])


def test_noise_alone_is_good_and_its_floor_is_found(tmp_path: Path) -> None:
    run = run_of(log(), tmp_path)
    assert run.verdict is not None
    assert run.verdict.grade == "good"
    floor = NOISE * np.sqrt(2.0 * 10.0 / RATE_HZ)
    assert run.validation is not None
    sizes = np.asarray(run.validation.total.rmse) / run.validation.total.relative_error_per_channel
    for joint, size in zip(run.verdict.joints, sizes, strict=True):
        assert joint.floor == pytest.approx(floor / size, rel=0.2)
        assert joint.unseen is not None
        assert joint.unseen < 1.5 * joint.floor
        assert joint.expected < 0.02


@pytest.mark.parametrize("what", ["steps of torque", "steps of encoder"])
def test_coarse_sensors_are_noise_too(tmp_path: Path, what: str) -> None:
    recording = log()
    if what == "steps of torque":
        recording = recording.with_(torque=0.2 * np.round(np.asarray(recording.torque) / 0.2))
    else:
        step = 2.0 * np.pi / 2**13
        recording = recording.with_(position=step * np.round(recording.position / step), velocity=None)
    run = run_of(recording, tmp_path)
    assert run.verdict is not None
    assert run.verdict.grade == "good", run.verdict.sentence


def test_torque_that_follows_nothing_in_the_model_is_told_of_its_joint(tmp_path: Path) -> None:
    recording = log()
    torque = np.array(recording.torque)
    torque[:, 1] += 0.3 * np.sqrt((torque[:, 1] ** 2).mean()) * np.sqrt(2.0) * np.sin(7.0 * recording.position[:, 1])
    run = run_of(recording.with_(torque=torque), tmp_path)
    assert elbow(run).grade != "good"
    assert elbow(run).expected > 0.15
    assert run.verdict is not None
    assert "elbow" in run.verdict.sentence
    assert run.verdict.joints[0].expected < elbow(run).expected


@pytest.mark.parametrize(("motion", "word"), [("one way", "never reversed"), ("still", "stood still")])
def test_what_the_motion_did_not_show_is_named(tmp_path: Path, motion: str, word: str) -> None:
    run = run_of(log(motion), tmp_path)
    assert elbow(run).grade != "good"
    assert word in elbow(run).reason
    assert run.verdict is not None
    assert run.verdict.grade != "good"


def test_a_joint_that_never_reverses_is_known_where_slow_motion_shows_how_its_friction_turns(tmp_path: Path) -> None:
    truth = planar_2r([Viscous(), SmoothCoulomb(smooth_width=0.3), Offset()]).with_parameters(
        {"fv1": 0.5, "fv2": 0.3, "fc1": 0.6, "fc2": 0.4, "fo2": 0.2}
    )
    recording = log("one way")
    t, q = recording.time, np.array(recording.position)
    v, a = np.array(recording.velocity), np.gradient(np.asarray(recording.velocity), 1.0 / RATE_HZ, axis=0)
    w = 2.0 * np.pi * 0.4
    q[:, 1], v[:, 1], a[:, 1] = 0.52 * t - 0.5 / w * np.cos(w * t), 0.52 + 0.5 * np.sin(w * t), 0.5 * w * np.cos(w * t)
    noise = NOISE * np.random.default_rng(1).normal(size=q.shape)
    slow = recording.with_(position=q, velocity=v, torque=inverse_dynamics(truth, q, v, a) + noise)
    write_urdf(planar_2r(), tmp_path / "arm.urdf")
    run = identify(tmp_path / "arm.urdf", slow, Settings(split=0.65, cutoff_hz=10.0, friction="smooth"))
    back = np.zeros((1, 2)), np.array([[0.0, -0.5]]), np.zeros((1, 2))
    error = abs(run.predict(*back) - inverse_dynamics(truth, *back))[0, 1] / abs(inverse_dynamics(truth, *back))[0, 1]
    assert error < 0.05
    assert elbow(run).grade == "good", elbow(run)


def test_a_robot_that_hardly_moved_is_not_known(tmp_path: Path) -> None:
    run = run_of(log("tiny"), tmp_path)
    assert run.verdict is not None
    assert run.verdict.grade == "do not use"


@pytest.mark.parametrize(
    ("expected", "grade"),
    [
        ((0.01, 0.05, 0.04), "good"),
        ((0.2, 0.04, 0.04), "usable"),
        ((0.2, 0.2, 0.04), "do not use"),
        ((0.6, 0.01, 0.01), "do not use"),
    ],
)
def test_the_worst_joints_decide(expected: tuple[float, ...], grade: str) -> None:
    def one(value: float) -> JointGrade:
        return JointGrade("j", value, 0.0, value, "good" if value <= 0.05 else "usable" if value <= 0.5 else "do not use")

    assert overall_grade([one(value) for value in expected]) == grade


def test_a_joint_whose_torque_was_left_out_is_named_and_spoils_no_other(tmp_path: Path) -> None:
    recording = log()
    write_urdf(planar_2r(), tmp_path / "arm.urdf")
    settings = Settings(split=0.65, cutoff_hz=10.0, friction="linear", ignore_torque=(TRUTH.joint_names[1],))
    run = identify(tmp_path / "arm.urdf", recording, settings)
    assert run.verdict is not None
    shoulder = run.verdict.joints[0]
    assert (elbow(run).unseen, elbow(run).reason) == (None, "its torque was left out")
    assert shoulder.grade == "good"
    assert shoulder.unseen is not None


@pytest.mark.parametrize("channel", ["in another unit", "dead"])
def test_the_error_of_a_joint_left_out_is_the_part_that_its_bodies_do_not_explain(tmp_path: Path, channel: str) -> None:
    recording = log()
    torque = np.array(recording.torque)
    torque[:, 1] = 1000.0 * torque[:, 1] if channel == "in another unit" else 0.01
    write_urdf(planar_2r(), tmp_path / "arm.urdf")
    settings = Settings(split=0.65, cutoff_hz=10.0, friction="linear", ignore_torque=(TRUTH.joint_names[1],))
    run = identify(tmp_path / "arm.urdf", recording.with_(torque=torque), settings)
    if channel == "dead":
        assert elbow(run).expected == UNKNOWN
        return
    v = np.asarray(recording.velocity)[:, 1]
    friction = 0.3 * v + 0.4 * np.sign(v) + 0.2
    whole = np.asarray(recording.torque)[:, 1]
    share = np.sqrt((friction**2).mean() / (whole**2).mean())
    assert elbow(run).expected == pytest.approx(share, rel=0.2)
