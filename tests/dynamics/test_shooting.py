"""Windows against SciPy's integrator on Pinocchio's dynamics, sensitivities against differences of motions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynid.dynamics.forward_dynamics import ForwardDynamics
from dynid.dynamics.friction import smooth_friction
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.shooting import Windows, simulate_windows, window_sensitivities
from dynid.io.demo import demo_robot
from dynid.model.robot import Robot

STEP = 2e-3


def arm() -> Robot:
    return smooth_friction(demo_robot().only(["shoulder_pitch", "elbow"]), 0.05)


def windows(steps: int = 60) -> Windows:
    rng = np.random.default_rng(0)
    start = rng.uniform(-0.5, 0.5, (3, 1, 2))
    torque = np.repeat(rng.uniform(-15.0, 15.0, (3, 1, 2)), steps, axis=1)
    position = np.repeat(start, steps + 1, axis=1)
    return Windows(torque, position, np.zeros_like(position), STEP)


def test_motion_is_that_of_an_integrator_with_error_control() -> None:
    robot, given = arm(), windows()
    q, _ = simulate_windows(robot, given, given.first)
    bodies = robot.with_effects(())
    rotors = robot.parameters.as_dict()
    rotor = np.diag([rotors.get("Ia1", 0.0), rotors.get("Ia2", 0.0)])
    dynamics = ForwardDynamics(bodies)

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        zero = np.zeros((1, 2))
        effects = inverse_dynamics(robot, x[None, :2], x[None, 2:], zero) - inverse_dynamics(
            robot, x[None, :2], x[None, 2:], zero, effects=False
        )
        M = np.linalg.inv(dynamics.mobility(x[:2])) + rotor
        need = dynamics.torque(x[:2], x[2:], np.zeros(2)) + effects[0]
        return np.concatenate([x[2:], np.linalg.solve(M, given.torque[1, 0] - need)])

    found = solve_ivp(rate, (0.0, 60 * STEP), np.concatenate([given.position[1, 0], np.zeros(2)]), rtol=1e-9, atol=1e-11)
    assert q[1, -1] == pytest.approx(found.y[:2, -1], abs=2e-4)


def test_sensitivities_are_differences_of_motions() -> None:
    robot, given = arm(), windows(40)
    motion = simulate_windows(robot, given, given.first)
    S = window_sensitivities(robot, given, motion)
    values = np.array(robot.parameters.values)
    for name in ("m2", "mx1", "Izz2", "fv1", "fc2"):
        k = robot.parameters.index(name)
        step = 1e-4 * max(abs(values[k]), 0.1)
        ends = []
        for sign in (1.0, -1.0):
            moved = values.copy()
            moved[k] += sign * step
            ends.append(simulate_windows(robot.with_parameters(robot.parameters.with_values(moved)), given, given.first)[0])
        difference = (ends[0] - ends[1]) / (2.0 * step)
        assert S[:, :, :, k] == pytest.approx(difference, abs=0.02 * np.abs(difference).max() + 1e-7)
    q0, v0 = given.first
    moved = simulate_windows(robot, given, (q0, v0 + np.array([0.0, 1e-4])))[0]
    assert S[:, :, :, -1] == pytest.approx((moved - motion[0]) / 1e-4, abs=2e-3)


def test_part_keeps_some_windows() -> None:
    assert len(windows().part(slice(0, 2))) == 2
