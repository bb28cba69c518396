"""What adapters read off a robot: points of axes, pitch of screws, effects, mass parts."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.model.effects.linear import Viscous
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.joint import Joint, axis_point, pitch
from dynid.model.robot import effect_value, make_robot, mass_parts
from messages import facts
from problems import planar_2r

AXIS, POINT = np.array([0.0, 0.6, 0.8]), np.array([0.3, 0.8, -0.6])


def joint(linear, angular, kind="revolute"):
    return Joint("j", kind, -1, np.eye(4), np.concatenate([linear, angular]))


def test_the_point_of_the_axis_nearest_to_the_origin():
    found = axis_point(joint(np.cross(POINT, AXIS), AXIS))
    np.testing.assert_allclose(found, POINT, atol=1e-12)  # POINT is perpendicular to AXIS
    assert found @ AXIS == pytest.approx(0.0, abs=1e-12)
    assert not axis_point(joint(AXIS, np.zeros(3), "prismatic")).any()


def test_pitch_of_a_screw_and_of_rounding():
    assert pitch(joint(np.cross(POINT, AXIS) + 0.02 * AXIS, AXIS)) == pytest.approx(0.02)
    assert pitch(joint(np.cross(POINT, AXIS) + 1e-15 * AXIS, AXIS)) == 0.0
    assert pitch(joint(AXIS, np.zeros(3), "prismatic")) == 0.0


def test_value_of_an_effect_or_zero():
    robot = planar_2r([Viscous()]).with_parameters({"fv2": 0.4})
    assert effect_value(robot, "fv", 1) == 0.4
    assert effect_value(robot, "Ia", 1) == 0.0


def test_mass_parts_of_bodies_with_and_without_mass():
    com, tensor = np.array([0.1, 0.2, -0.3]), np.diag([0.01, 0.02, 0.025])
    bodies = [
        phi_from_mass_com_inertia(2.0, com, tensor),
        np.array([0.0, 0, 0, 0, 0.1, 0.01, 0.2, 0.02, 0.03, 0.3]),
        np.array([0.0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0]),
    ]
    spin = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    joints = [Joint(f"j{i}", "revolute", i - 1, np.eye(4), spin) for i in range(3)]
    robot = make_robot("r", joints, bodies, links=["arm", "rotor", "ghost"])
    mass, centre, inertia = mass_parts(robot, 0)
    assert mass == 2.0
    np.testing.assert_allclose(centre, com)
    np.testing.assert_allclose(inertia, tensor, atol=1e-12)
    mass, centre, inertia = mass_parts(robot, 1)
    assert (mass, centre.tolist()) == (0.0, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(inertia, [[0.1, 0.01, 0.02], [0.01, 0.2, 0.03], [0.02, 0.03, 0.3]])
    with pytest.raises(InputError, match=facts("'ghost'", "0.5")):
        mass_parts(robot, 2)
