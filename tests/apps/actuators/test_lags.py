"""Lags against closed forms and SciPy's own simulation, and mechanisms that follow as they do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynid.apps.actuators.comparison import roll_out
from dynid.apps.actuators.lags import Lags, _followed, fitted_lags, lagging_models
from dynid.apps.actuators.model import ActuatorLog, ActuatorModel, ActuatorProblem, unknowns_of
from dynid.signals.commands import Command, PositionControl
from position_logs import small_arm


def lagging_log(order: int, time_s: float, damping: float, delay: float, bias: float, joints: int = 1) -> ActuatorLog:
    t = np.arange(0.0, 12.0, 0.01)
    u = np.column_stack([0.4 * np.sin(2.1 * t + j) + 0.2 * np.sign(np.sin(0.9 * t + j)) for j in range(joints)])
    command = Command(t, u)
    fine = np.arange(0.0, 12.0, 0.001)
    target = command.at(fine, np.full(joints, delay)) + bias
    q = np.empty_like(target)
    for j in range(joints):

        def rate(when: float, x: np.ndarray, j: int = j) -> list[float]:
            aim = target[min(int(when / 0.001 + 1e-6), len(fine) - 1), j]
            if order == 1:
                return [(aim - x[0]) / time_s, 0.0]
            return [x[1], (aim - x[0]) / time_s**2 - 2.0 * damping / time_s * x[1]]

        q[:, j] = solve_ivp(rate, (0.0, fine[-1]), [u[0, j], 0.0], t_eval=fine, max_step=0.002).y[0]
    return ActuatorLog(
        "simulated",
        t,
        q[::10],
        command,
        PositionControl(np.full(joints, 50.0), np.full(joints, 2.0), np.full(joints, np.inf)),
    )


def test_a_step_of_second_order_is_the_closed_form() -> None:
    t = np.arange(0.0, 1.0, 0.01)
    w, z = 20.0, 0.4
    found = _followed(np.ones(len(t)), 0.0, 0.0, 0.01, 1.0 / w, z)
    wd = w * np.sqrt(1.0 - z**2)
    assert found == pytest.approx(1.0 - np.exp(-z * w * t) * (np.cos(wd * t) + z * w / wd * np.sin(wd * t)), abs=1e-9)
    kicked = _followed(np.zeros(len(t)), 0.0, 1.0, 0.01, 1.0 / w, z)
    assert kicked == pytest.approx(np.exp(-z * w * t) * np.sin(wd * t) / wd, abs=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_the_lag_of_a_simulated_joint_is_found(order: int) -> None:
    log = lagging_log(order, 0.05, 0.7, 0.033, 0.02)
    found = fitted_lags([log])[order]
    assert found.delay_s[0] == pytest.approx(0.033, abs=0.002)
    assert found.time_s[0] == pytest.approx(0.05, rel=0.05)
    assert found.bias[0] == pytest.approx(0.02, abs=1e-3)
    assert found.roll_out(log).rms[0] < 2e-3


def test_a_mechanism_made_of_lags_moves_as_they_do() -> None:
    """Without weight, kp, rotor and damping of the start answer a command by the lag itself."""
    robot = small_arm().with_effects(())
    robot = replace(robot, gravity=np.zeros(3))
    n = robot.n_joints
    t = np.arange(0.0, 4.0, 0.005)
    u = np.column_stack([0.1 * np.sin(3.0 * t + j) for j in range(n)])
    log = ActuatorLog("made", t, u, Command(t, u), PositionControl(np.ones(n), np.ones(n), np.full(n, np.inf)))
    problem = ActuatorProblem(robot, (log,), unknowns_of(n, gains=("kp", "kd")))
    lag = Lags(2, np.full(n, 0.04), np.full(n, 0.8), np.full(n, 0.02), np.zeros(n))
    starts = lagging_models(problem, ActuatorModel.described(robot), (lag,))
    stiff = starts[-1]
    assert roll_out(stiff, log).simulated == pytest.approx(lag.roll_out(log).simulated, abs=3e-3)
    assert stiff.values["kp"][0] == pytest.approx(64.0 * starts[0].values["kp"][0])
