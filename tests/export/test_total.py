"""The whole torque that a file lacks, against what is known to have no place in it."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.export.simulator_joint import as_held
from dynid.export.total import URDF_PLACES, total_difference
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import PLACES
from problems import demo_arm


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
