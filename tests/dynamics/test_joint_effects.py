"""Effects as matrices: their torque and what rotors add to the inertia matrix."""

from __future__ import annotations

import numpy as np

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.joint_effects import effect_gains, rotor_matrix
from dynid.model.effects.effect import Motion
from dynid.model.effects.linear import Armature, Offset, Viscous
from problems import planar_2r, random_motion, random_tree


def test_gains_times_signals_are_the_torque_of_the_effects():
    robot = random_tree(4, 5, effects=[Viscous(), Offset(), Armature()])
    values = {f"{symbol}{j}": 0.1 * j + k for k, symbol in enumerate(("fv", "fo", "Ia")) for j in range(1, 6)}
    robot = robot.with_parameters(values)
    q, v, a = random_motion(robot, 8)
    motion = Motion(q, v, a, np.zeros_like(v))
    torque = sum(effect.signals(motion) @ gain.T for effect, gain in effect_gains(robot))
    expected = inverse_dynamics(robot, q, v, a) - inverse_dynamics(robot, q, v, a, effects=False)
    np.testing.assert_allclose(torque, expected, rtol=0.0, atol=1e-12)


def test_rotors_add_to_the_diagonal_and_friction_does_not():
    robot = planar_2r([Viscous(), Armature()]).with_parameters({"fv1": 5.0, "Ia1": 0.3, "Ia2": 0.7})
    np.testing.assert_array_equal(rotor_matrix(robot), np.diag([0.3, 0.7]))
    assert not rotor_matrix(planar_2r([Viscous()])).any()


def test_only_driven_joints_have_rotors():
    robot = random_tree(2, 4, floating=True, effects=[Armature()])
    robot = robot.with_parameters({name: 0.5 for name in robot.parameters.names if name.startswith("Ia")})
    added = rotor_matrix(robot)
    assert added.shape == (robot.n_dof, robot.n_dof)
    assert not added[:6].any()
    np.testing.assert_array_equal(np.diag(added)[6:], 0.5)
