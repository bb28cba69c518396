"""Forward dynamics: the inverse of inverse dynamics, with rotors that turn with several joints."""

from __future__ import annotations

import numpy as np
import pytest

from closed_robots import closed_robot
from dynid.dynamics.forward_dynamics import forward_dynamics, inertia_and_bias
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.io.demo import demo_robot
from dynid.model.effects.linear import Armature
from dynid.model.effects.wrapped import Coupled
from dynid.model.robot import Robot


def coupled_arm(motors: tuple[int, ...]) -> Robot:
    """The demonstration arm with motors that turn with several joints."""
    B = np.eye(7)
    B[6, 5], B[5, 4] = 1.0, -0.5
    robot = demo_robot(effects=[Armature(), Coupled(Armature(), tuple(map(tuple, B.tolist())), motors)])
    return robot.with_parameters({f"Iam{motor}": 0.1 * motor for motor in motors} | {"Ia1": 0.2})


def closed_arm() -> Robot:
    """A five-bar whose second motor turns with both joints."""
    bare = closed_robot("five_bar", "none")
    robot = bare.with_effects([Coupled(Armature(), ((1.0, 0.0), (1.0, 1.0)), (2,))])
    return robot.with_parameters({robot.parameters.names[-1]: 0.3})


@pytest.mark.parametrize("robot", [coupled_arm((7,)), coupled_arm((6, 7)), closed_arm()], ids=["one", "two", "closed"])
def test_acceleration_torque_and_mobility_agree_with_inverse_dynamics(robot: Robot) -> None:
    dynamics, n = forward_dynamics(robot), robot.n_dof
    q = np.linspace(-0.3, 0.4, n) if not robot.loops else robot.loops.start[[robot.body_index(j) for j in robot.joint_names]]
    v, a = np.linspace(0.5, -0.4, n), np.linspace(-1.0, 2.0, n)
    tau, weight = inverse_dynamics(robot, [q, q], [v, 0 * v], [a, 0 * a])
    np.testing.assert_allclose(dynamics.torque(q, v, a), tau, atol=1e-9)
    np.testing.assert_allclose(dynamics.acceleration(q, v, tau), a, atol=1e-8)
    np.testing.assert_allclose(dynamics.gravity(q), weight, atol=1e-9)
    units = inverse_dynamics(robot, np.tile(q, (n, 1)), np.zeros((n, n)), np.eye(n)) - weight
    np.testing.assert_allclose(dynamics.mobility(q) @ units, np.eye(n), atol=1e-8)
    M, bias = inertia_and_bias(robot, q[None], v[None])
    np.testing.assert_allclose(M[0] @ a + bias[0], tau, atol=1e-8)
