"""The written files are judged: a format that lacks something loses torque, and the verdict says so."""

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid.pipeline.file_grades import LOST, grade_files
from dynid.validation.prediction import band_limited

SETTINGS = dynid.Settings(method="sdp", cutoff_hz=20.0, friction="linear", split=0.65)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> dynid.IdentificationResult:
    """The demo arm, which has rotors and offsets."""
    folder = tmp_path_factory.mktemp("graded")
    dynid.write_urdf(dynid.demo_robot(), folder / "arm.urdf")
    return dynid.identify(folder / "arm.urdf", dynid.demo_recording(), SETTINGS)


def test_each_file_is_judged_joint_by_joint_on_unseen_torque(run):
    files = {one.format: one for one in run.verdict.files}
    assert list(files) == ["urdf", "mjcf", "sdf"]
    assert [joint.name for joint in files["mjcf"].joints] == list(run.robot.joint_names)
    # rotors have no place in URDF: it predicts worse than MJCF, which has them
    assert files["urdf"].unseen > files["mjcf"].unseen > run.validation.relative_error
    assert all(joint.drift is not None for joint in files["mjcf"].joints)
    assert max(joint.drift for joint in files["mjcf"].joints) < max(joint.drift for joint in files["urdf"].joints)


def test_error_of_the_urdf_is_that_of_pinocchio(run, tmp_path):
    """Against Pinocchio alone: the saved file, its damping and friction, on the unseen samples in the judged band."""
    run.save(tmp_path / "out", formats=["urdf"])
    model = pin.buildModelFromUrdf(str(next((tmp_path / "out").glob("*_identified.urdf"))))
    data, (samples,) = model.createData(), run.unseen
    states = zip(samples.position, samples.velocity, samples.acceleration, strict=True)
    zone = np.asarray(next(one.dead_zone for one in run.robot.effects if one.name == "coulomb"))
    sign = np.where(np.abs(samples.velocity) < zone, 0.0, np.sign(samples.velocity))
    torque = np.array([pin.rnea(model, data, *one) for one in states])
    torque += model.damping * samples.velocity + model.friction * sign
    judged, predicted = band_limited(samples, torque, run.judged_hz)
    error = np.linalg.norm(judged.torque - predicted, axis=0) / np.linalg.norm(judged.torque, axis=0)
    (urdf,) = [one for one in run.verdict.files if one.format == "urdf"]
    found = np.array([joint.unseen for joint in urdf.joints])
    np.testing.assert_allclose(found, error, rtol=1e-9)


def test_a_file_that_loses_torque_is_not_called_ready(run):
    urdf, *_ = run.verdict.files
    assert max(joint.loss for joint in urdf.joints) > LOST
    assert not urdf.ready
    assert f"not ready to use: {urdf.path}" in run.verdict.sentence
    (reason,) = [one for one in run.verdict.reasons if one.code == "files"]
    assert "rotor inertia" in reason.what
    assert "MJCF" in reason.remedy


def test_grades_are_stored_with_the_run(run, tmp_path):
    again = dynid.load_result(run.save(tmp_path / "out", formats=["mjcf"]))
    assert again.verdict.files == run.verdict.files


def test_a_model_without_rotors_and_offsets_is_ready_in_every_format(tmp_path):
    robot = dynid.demo_robot(effects="viscous,coulomb")
    dynid.write_urdf(robot, tmp_path / "arm.urdf")
    settings = dynid.Settings(method="sdp", cutoff_hz=20.0, effects="viscous,coulomb", split=0.65)
    recording = dynid.demo_recording(robot)
    found = dynid.identify(tmp_path / "arm.urdf", recording, settings)
    assert [one.ready for one in found.verdict.files] == [True, True, True]
    assert "ready to use" in found.verdict.sentence
    assert grade_files(found) == found.verdict.files


def test_files_of_a_model_that_is_not_to_be_used_are_not_called_ready(tmp_path):
    """Torque that has nothing to do with the motion: every file holds the estimate, and none is worth anything."""
    robot = dynid.demo_robot(effects="viscous,coulomb")
    dynid.write_urdf(robot, tmp_path / "arm.urdf")
    recording = dynid.demo_recording(robot)
    log = {"t": recording.time, "q": recording.position, "tau": recording.torque[::-1]}
    settings = dynid.Settings(method="sdp", cutoff_hz=20.0, effects="viscous,coulomb", split=0.65)
    verdict = dynid.identify(tmp_path / "arm.urdf", log, settings).verdict
    assert verdict.grade == "do not use"
    assert [one.ready for one in verdict.files] == [False, False, False]
    assert verdict.sentence.endswith("none of its files is ready to use")
    assert not any(reason.what.startswith("Ready to use") for reason in verdict.reasons)
