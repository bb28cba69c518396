"""The sidecar holds what robot formats cannot, digit by digit."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.simulate import exact_motion
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.excitation.shapes import random_fourier
from dynid.io.robots.read import read_robot
from dynid.model.effects.dry_friction import AsymmetricCoulomb, LoadCoulomb
from dynid.model.effects.linear import Armature, Viscous
from dynid.model.links import links_of
from dynid.pipeline.robot_json import read_parameters, robot_from_sidecar, sidecar_parity, write_parameters
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from messages import facts
from problems import demo_arm, planar_2r, random_motion


@pytest.fixture(scope="module")
def found():
    robot = planar_2r([Viscous(), AsymmetricCoulomb(smooth_width=0.03), Armature()])
    robot = robot.with_parameters({"fv1": 0.3, "fcp1": 0.5, "fcn1": 0.7, "Ia1": 0.1, "fv2": 0.2, "fcp2": 0.1, "fcn2": 0.4})
    samples = exact_motion(robot, random_fourier(robot, 4.0, 4, seed=1).samples(50.0))
    return robot, estimate(build_regression(robot, samples), reduce_to_base(robot), OrdinaryLeastSquares())


def test_everything_comes_back(tmp_path, found):
    robot, result = found
    identified = robot.with_parameters(result.standard)
    written = write_parameters(identified, tmp_path / "arm.json", result)
    assert [path.name for path in written.companions] == ["arm.npz"]
    again = read_parameters(written.path)
    assert dict(again.parameters) == identified.parameters.as_dict()
    assert again.effects == robot.effects
    assert tuple(again.base_values) == result.base.names
    assert list(again.base_values.values()) == result.base_values.tolist()
    np.testing.assert_array_equal(again.covariance, result.covariance)
    np.testing.assert_array_equal(again.K, result.base.K)
    assert again.units["fcp1"] == "N m"
    assert sidecar_parity(identified, written.path) < 1e-9
    other = identified.with_parameters({"fcn1": 0.8})
    assert sidecar_parity(other, written.path) > 1e-4


def test_rounded_angles_of_a_description_do_not_make_a_file_wrong(tmp_path):
    """A right angle written as 1.5708 sets parameters apart by millionths, which the base neglects: in memory as in the file."""
    body = (
        '<inertial><origin xyz="0.1 0.02 0.03"/><mass value="2"/>'
        '<inertia ixx="0.1" iyy="0.12" izz="0.09" ixy="0.01" ixz="0.02" iyz="0.01"/></inertial>'
    )
    links = "".join(f'<link name="l{k}">{body}</link>' for k in range(4))
    joints = "".join(
        f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/><axis xyz="0 0 1"/>'
        f'<origin xyz="0.2 0 0.1" rpy="{rpy}"/><limit lower="-2" upper="2" velocity="2" effort="50"/></joint>'
        for k, rpy in ((1, "0.00001 0 0"), (2, "1.5708 0 0"), (3, "3.1416 0 0"))
    )
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm">{links}{joints}</robot>')
    robot = read_robot(tmp_path / "arm.urdf", "viscous")
    samples = exact_motion(robot, random_fourier(robot, 4.0, 4, seed=1).samples(50.0))
    result = estimate(build_regression(robot, samples), reduce_to_base(robot), OrdinaryLeastSquares())
    identified = robot.with_parameters(result.standard)
    written = write_parameters(identified, tmp_path / "arm.json", result)
    assert any("torque of the base parameters differs" in note for note in written.notes)
    assert sidecar_parity(identified, written.path) < 1e-9
    record = json.loads(written.path.read_text())
    record["estimate"]["base"][3]["value"] *= 1.0 + 1e-6
    written.path.write_text(json.dumps(record))
    assert sidecar_parity(identified, written.path) > 1e-9


def test_without_an_estimate_there_are_no_arrays(tmp_path):
    robot = demo_arm()
    written = write_parameters(robot, tmp_path / "demo.json")
    assert written.companions == ()
    assert sidecar_parity(robot, written.path) == 0.0
    assert read_parameters(written.path).covariance.size == 0


def test_load_dependent_friction_is_compared_with_its_load(tmp_path):
    robot = planar_2r([LoadCoulomb()]).with_parameters({"flc1": 0.05, "flc2": 0.1})
    assert sidecar_parity(robot, write_parameters(robot, tmp_path / "arm.json").path) == 0.0


def test_inconsistent_links_are_named(tmp_path):
    written = write_parameters(planar_2r().with_parameters({"Iyy1": -1.0}), tmp_path / "arm.json")
    assert written.notes == ("links upper are not physically consistent",)


def test_the_robot_comes_back_whole(tmp_path):
    robot = demo_arm().lock({demo_arm().joint_names[-1]: 0.4})
    again = robot_from_sidecar(write_parameters(robot, tmp_path / "arm.json").path)
    assert again.parameters.as_dict() == robot.parameters.as_dict()
    assert (again.links, again.effects, again.source.format) == (robot.links, robot.effects, "parameters")
    for ours, theirs in zip(robot.joints, again.joints, strict=True):
        assert (ours.name, ours.kind, ours.parent, ours.nominal) == (theirs.name, theirs.kind, theirs.parent, theirs.nominal)
        for limit in ("q_min", "q_max", "dq_max", "ddq_max", "tau_max"):
            assert getattr(ours, limit) == getattr(theirs, limit)
    assert [link.name for link in again.merged] == [link.name for link in robot.merged] != []
    np.testing.assert_array_equal([link.phi for link in links_of(again)], [link.phi for link in links_of(robot)])
    q, v, a = random_motion(robot, 5)
    np.testing.assert_array_equal(inverse_dynamics(again, q, v, a), inverse_dynamics(robot, q, v, a))


def test_a_robot_needs_no_arrays_but_every_parameter(tmp_path, found):
    robot, result = found
    path = write_parameters(robot, tmp_path / "arm.json", result).path
    (tmp_path / "arm.npz").unlink()
    assert robot_from_sidecar(path).parameters.as_dict() == robot.parameters.as_dict()
    record = json.loads(path.read_text())
    damaged = {key: dict(value) if isinstance(value, dict) else value for key, value in record.items()}
    del damaged["parameters"]["m1"]
    path.write_text(json.dumps(damaged))
    with pytest.raises(InputError, match=facts("27", "2", "28", "parameter")):
        robot_from_sidecar(path)
    path.write_text(json.dumps(record | {"parameters": record["parameters"] | {"m1": None}}))
    with pytest.raises(InputError, match="is damaged"):
        robot_from_sidecar(path)
    del record["joints"][1]["parent"]
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match="is damaged: it lacks or misstates 'parent'"):
        robot_from_sidecar(path)


def test_damaged_files_get_a_sentence(tmp_path, found):
    robot, result = found
    path = write_parameters(robot, tmp_path / "arm.json", result).path
    record = json.loads(path.read_text())
    (tmp_path / "arm.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"arm\.npz': cannot be read as arrays"):
        read_parameters(path)
    path.write_text(json.dumps(record | {"format": "other"}))
    with pytest.raises(InputError, match="format 'other', expected"):
        read_parameters(path)
    del record["joints"]
    path.write_text(json.dumps({key: value for key, value in record.items() if key != "estimate"}))
    with pytest.raises(InputError, match="is damaged: it lacks or misstates 'joints'"):
        read_parameters(path)
    with pytest.raises(InputError, match=r"expected the suffix \.json"):
        write_parameters(robot, tmp_path / "arm.txt")
    with pytest.raises(InputError, match=facts("demo_arm", "28", "98", "parameter")):
        write_parameters(demo_arm(), tmp_path / "demo.json", result)
