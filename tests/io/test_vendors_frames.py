"""Loads carried into the vendor's own frame, proven by the mass matrix of the robot that carries them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.errors import InputError
from dynid.io.demo import demo_robot
from dynid.io.vendors import vendor_load
from dynid.model.frames import frame_named
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.joint import MergedLink
from dynid.model.robot import Robot
from messages import facts
from problems import random_phi, random_pose


@pytest.fixture(scope="module")
def arm() -> Robot:
    """The demonstration arm with a flange that the vendor knows and a gripper that it does not, both fixed to its last link."""
    from dataclasses import replace

    robot, rng = demo_robot("none"), np.random.default_rng(3)
    last = robot.n_joints - 1
    fixed = tuple(MergedLink(name, last, random_pose(rng, 0.1), np.zeros(10)) for name in ("tool0", "gripper"))
    return replace(robot, merged=fixed)


def mass_matrix(robot: Robot, frame: str, phi: np.ndarray) -> np.ndarray:
    place = frame_named(robot, frame)
    values = robot.parameters.values.copy()
    values[10 * place.body : 10 * place.body + 10] += place.into_body @ phi
    model = pinocchio_model(robot.with_parameters(robot.parameters.with_values(values)))
    return np.array(pin.crba(model, model.createData(), np.full(robot.n_joints, 0.3)))


def test_numbers_are_in_the_vendors_frame(arm):
    phi = random_phi(np.random.default_rng(1))
    found = vendor_load("ur", phi, "gripper", arm)
    assert found.frame == "tool0"
    assert any("gripper" in note and "tool0" in note for note in found.notes)
    fields = found.fields
    xx, yy, zz, xy, xz, yz = fields["inertia"]
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    carried = phi_from_mass_com_inertia(fields["mass"], fields["cog"], tensor)
    right = mass_matrix(arm, "gripper", phi)
    np.testing.assert_allclose(mass_matrix(arm, "tool0", carried), right, atol=1e-9 * np.abs(right).max())
    # the same numbers in the wrong frame are another robot
    assert np.abs(mass_matrix(arm, "gripper", carried) - right).max() > 1e-3 * np.abs(right).max()


def test_a_frame_that_is_the_vendors_stays(arm):
    phi = random_phi(np.random.default_rng(2))
    found = vendor_load("abb", phi, "tool0", arm)
    assert found.frame == "tool0"
    assert found.notes == ()


def test_unknown_forms_and_frames_are_refused(arm):
    phi = random_phi(np.random.default_rng(2))
    with pytest.raises(InputError, match=facts("format", "staubli", "kuka")):
        vendor_load("staubli", phi, "tool0", arm)
    with pytest.raises(InputError, match=facts("frame", "palm", "gripper")):
        vendor_load("ur", phi, "palm", arm)
