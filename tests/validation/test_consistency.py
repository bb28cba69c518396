"""The verdict of `dynid check` on every link, and what it says is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.model.inertia import consistency, phi_from_mass_com_inertia
from dynid.model.joint import Joint
from dynid.model.robot import make_robot
from dynid.validation.consistency import check_model
from problems import demo_arm


def robot_of(*bodies):
    spin = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    joints = [Joint(f"j{i}", "revolute", i - 1, np.eye(4), spin) for i in range(len(bodies))]
    return make_robot("r", joints, list(bodies), links=[f"link{i}" for i in range(len(bodies))])


GOOD = phi_from_mass_com_inertia(2.0, np.array([0.1, 0.0, 0.0]), np.diag([0.01, 0.02, 0.025]))
FLAT = phi_from_mass_com_inertia(2.0, np.zeros(3), np.diag([0.01, 0.02, 0.05]))
NEGATIVE = phi_from_mass_com_inertia(2.0, np.zeros(3), np.diag([-0.01, 0.02, 0.02]))
LIGHT = np.array([-1.0, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1])


def test_a_sound_model():
    found = check_model(demo_arm("none"))
    assert found.feasible
    assert found.inconsistent == ()
    assert len(found.links) >= 7
    assert {link.fault for link in found.links} == {""}


def test_each_fault_is_named_with_its_numbers():
    found = check_model(robot_of(GOOD, FLAT, NEGATIVE, LIGHT))
    assert not found.feasible
    assert found.inconsistent == ("link1", "link2", "link3")
    good, flat, negative, light = found.links
    assert good.consistent
    assert (good.mass, good.fault) == (2.0, "")
    assert flat.triangle_slack == pytest.approx(-0.02)
    for number in ("0.01", "0.02", "0.05"):
        assert number in flat.fault
    assert "-0.01" in negative.fault
    assert "-1 kg" in light.fault


def test_a_frame_without_a_body_is_empty_and_no_fault():
    found = check_model(robot_of(GOOD, np.zeros(10)))
    assert found.feasible
    assert found.links[1].empty
    assert found.links[1].fault == ""


def test_numbers_are_those_of_the_one_definition():
    found = check_model(robot_of(GOOD, FLAT))
    expected = consistency(np.array([GOOD, FLAT]))
    assert [link.triangle_slack for link in found.links] == pytest.approx(expected.triangle_slack.tolist())
    assert [link.min_eigenvalue for link in found.links] == pytest.approx(expected.min_eigenvalue.tolist())
