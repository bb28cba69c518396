"""The whole torque that a file lacks, against what is known to have no place in it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.io.demo import demo_robot
from dynid.io.robots.simulator_joint import URDF_PLACES, as_format_holds, as_held, nearest_held, total_difference
from dynid.model.effects.dry_friction import SmoothCoulomb, Stribeck
from dynid.model.effects.effect import PLACES, Motion
from dynid.model.effects.linear import Offset, Viscous
from dynid.model.effects.wrapped import Coupled
from dynid.model.robot import Robot
from problems import demo_arm, planar_2r


def test_an_offset_is_all_that_mjcf_lacks_of_linear_friction():
    arm = demo_arm("viscous,coulomb,offset,armature")
    offsets = np.array([0.3, -0.2, 0.1, 0.05, 0.0, -0.01, 0.02])
    arm = arm.with_parameters({f"fo{k + 1}": value for k, value in enumerate(offsets)})
    found = total_difference(arm, PLACES)
    assert [one.joint for one in found] == list(arm.joint_names)
    assert [one.difference for one in found] == pytest.approx(np.abs(offsets), abs=1e-9)


def test_urdf_also_lacks_rotor_inertia():
    arm = demo_arm("viscous,coulomb,armature")
    _, _, a = random_states_within_limits(arm, 400, 0)
    rotors = np.array([arm.parameters[f"Ia{k + 1}"] for k in range(7)])
    found = total_difference(arm, URDF_PLACES)
    assert [one.difference for one in found] == pytest.approx(rotors * np.sqrt((a**2).mean(axis=0)), rel=1e-9)
    assert all(one.difference == pytest.approx(0.0, abs=1e-9) for one in total_difference(arm, PLACES))


def test_friction_that_no_simulator_has_is_counted():
    arm = demo_arm("viscous,stribeck,armature")
    names = [name for name in arm.parameters.names if name.startswith(("fs", "fc"))]
    arm = arm.with_parameters(dict.fromkeys(names, 2.0))
    q, v, a = random_states_within_limits(arm, 400, 0)
    lacking = inverse_dynamics(arm, q, v, a) - inverse_dynamics(as_held(arm), q, v, a)
    found = total_difference(arm, PLACES)
    assert [one.difference for one in found] == pytest.approx(np.sqrt((lacking**2).mean(axis=0)))
    assert max(one.relative for one in found) > 1e-3


def test_formats_that_hold_everything_lack_nothing():
    assert total_difference(demo_arm("viscous,coulomb,offset"), None) == ()


def logged_motion(arm: Robot, n: int = 3000) -> Motion:
    """Slow and fast parts, more often forwards than backwards."""
    q, v, a = random_states_within_limits(arm, n, 3)
    return Motion(q, np.where(v > 0.0, v, 0.3 * v), a)


def test_linear_friction_is_held_as_it_is():
    arm = demo_arm("viscous,coulomb,offset,armature")
    arm = arm.with_parameters({f"fo{k}": 0.4 for k in range(1, 8)})
    held = nearest_held(arm, [logged_motion(arm)])
    for name in held.parameters.names[70:]:
        assert held.parameters[name] == pytest.approx(arm.parameters[name], abs=1e-9), name


def test_coulomb_friction_with_a_smooth_sign_is_held_as_identified():
    """frictionloss of MuJoCo is Coulomb friction: a tanh over slow rows must not move any of it into the damping."""
    arm = demo_robot([Viscous(), SmoothCoulomb(smooth_width=0.05), Offset()])
    arm = arm.with_parameters({f"{s}{k}": x for k in range(1, 8) for s, x in (("fv", 1.0), ("fc", 0.5), ("fo", 0.2))})
    held, told = as_format_holds(arm, (), "MJCF", PLACES)
    assert [held.parameters["fv7"], held.parameters["fc7"]] == [1.0, 0.5]
    assert any("as identified" in note for note in told)


def test_friction_that_no_joint_holds_is_fitted_beside_what_it_holds():
    """Rows that slide, against SciPy's bounded least squares on the whole friction there."""
    arm = demo_robot([Viscous(), SmoothCoulomb(smooth_width=0.02), Stribeck(smooth_width=0.02, stribeck_speed=0.5)])
    arm = arm.with_parameters({f"{s}{k}": x for k in range(1, 8) for s, x in (("fv", 0.4), ("fc", 1.0), ("fs", 2.0))})
    motion = logged_motion(arm)
    held = nearest_held(arm, [motion])
    v = motion.velocity[:, 2][np.abs(motion.velocity[:, 2]) > 0.06]
    sign = np.tanh(v / 0.02)
    torque = 0.4 * v + np.sign(v) + 2.0 * sign / (1.0 + (v / 0.5) ** 2)
    expected = lsq_linear(np.column_stack([v, np.sign(v)]), torque, (0.0, np.inf), tol=1e-14).x
    assert [held.parameters["fv3"], held.parameters["fc3"]] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_nearest_friction_is_that_of_least_squares():
    """A joint that turns for most of its motion, against SciPy's bounded least squares on its friction, offsets apart."""
    arm = demo_robot([Viscous(), SmoothCoulomb(smooth_width=0.9), Stribeck(smooth_width=0.3, stribeck_speed=0.5), Offset()])
    values = {f"{s}{k}": x for k in range(1, 8) for s, x in (("fv", 0.4), ("fc", 1.0), ("fs", 2.0), ("fo", 0.7))}
    arm = arm.with_parameters(values)
    motion = logged_motion(arm)
    held = nearest_held(arm, [motion])
    v = motion.velocity[:, 2]
    sign = np.tanh(v / 0.3)
    torque = 0.4 * v + np.tanh(v / 0.9) + 2.0 * sign / (1.0 + (v / 0.5) ** 2)
    expected = lsq_linear(np.column_stack([v, np.sign(v)]), torque, (0.0, np.inf), tol=1e-14).x
    assert [held.parameters["fv3"], held.parameters["fc3"]] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    whole = total_difference(arm, PLACES)
    nearest = total_difference(arm, PLACES, held)
    assert sum(one.difference**2 for one in nearest) < sum(one.difference**2 for one in whole)


def test_friction_of_coupled_motors_is_held_as_near_as_joints_can():
    robot = planar_2r([Viscous(), Coupled(Viscous(), ((1.0, 0.0), (1.0, 1.0)), motors=(2,))])
    robot = robot.with_parameters({"fv1": 0.5, "fv2": 0.2, "fvm2": 0.3})
    rng = np.random.default_rng(0)
    v = rng.normal(size=(20000, 2))
    held = nearest_held(robot, [Motion(v, v, v)])
    # speeds are independent, so what a motor adds by the other joint's speed is noise to each joint alone
    assert held.parameters["fv1"] == pytest.approx(0.8, abs=0.02)
    assert held.parameters["fv2"] == pytest.approx(0.5, abs=0.02)
