"""The motion of position-controlled joints: its physics against MuJoCo, its order, its derivatives."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynid.apps.actuators.model import ActuatorModel, unknowns_of
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.position_loop import Drives, Unknown, position_sensitivities, simulate_commands
from dynid.io.demo import demo_robot
from dynid.io.robots.mjcf_new import mjcf_text
from dynid.model.robot import Robot
from dynid.signals.commands import Command, PositionControl
from position_logs import KD, KP, commands, position_log, small_arm, true_model
from problems import random_tree


def test_a_frictionless_tree_moves_as_inverse_dynamics_says() -> None:
    robot = random_tree(3, 5)
    t = np.arange(200) / 1000.0
    u = 0.3 * np.sin(8.0 * t)[:, None] * np.ones(5)
    drives = Drives.of(5, kp=50.0, kd=5.0, armature=0.1, width=1.0)
    motion = simulate_commands(robot, drives, Command(t, u), t, (np.zeros(5), np.zeros(5)), step_s=1e-4)
    q, v, h = motion.position, motion.velocity, motion.step_s
    a = (v[2:] - v[:-2]) / (2.0 * h)
    tau = inverse_dynamics(robot, q[1:-1], v[1:-1], a, effects=False) + 0.1 * a
    expected = 50.0 * (motion.command[1:] - q[1:-1]) - 5.0 * v[1:-1]
    smooth = np.abs(np.diff(motion.command, axis=0)).max(axis=1) == 0.0  # away from the steps of the command
    assert np.abs(tau - expected)[smooth].max() < 2e-3 * np.abs(expected).max()


def test_it_agrees_with_mujoco() -> None:
    robot = small_arm()
    n, (t, u) = 3, commands(3, 1.0, 200.0, 4)
    drives = Drives.of(n, kp=KP, kd=KD, armature=0.3, viscous=2.0, width=1.0)
    ours = simulate_commands(robot, drives, Command(t, u), t, (u[0], np.zeros(n)), step_s=2.5e-4, tick_s=2.5e-4).at_stamps
    bare = robot.with_effects(())
    model = mujoco.MjModel.from_xml_string(mjcf_text(bare, limits=False))
    model.opt.timestep, model.opt.integrator = 2.5e-4, mujoco.mjtIntegrator.mjINT_RK4
    model.dof_armature[:], model.dof_damping[:] = 0.3, 2.0
    state = mujoco.MjData(model)
    state.qpos[:] = u[0]
    theirs = [state.qpos.copy()]
    for k in range(len(t) - 1):
        for _ in range(20):
            state.qfrc_applied[:] = KP * (u[k] - state.qpos) - KD * state.qvel
            mujoco.mj_step(model, state)
        theirs.append(state.qpos.copy())
    # an applied torque is held over MuJoCo's step, so the drive here is a digital one of that rate
    assert np.abs(ours - np.array(theirs)).max() < 2e-5


def test_halving_the_step_quarters_the_error() -> None:
    robot = small_arm()
    model = true_model(robot)
    log = position_log(model, seconds=1.0, count=None)
    drives = model.drives(log.control)

    def run(step_s: float) -> np.ndarray:
        return simulate_commands(robot, drives, log.command, log.time, (np.zeros(3), np.zeros(3)), step_s=step_s).at_stamps

    exact = run(1e-4)
    coarse, fine = (np.abs(run(step) - exact).max() for step in (2.5e-3, 1.25e-3))
    assert coarse / fine > 2.5  # friction turns faster than a step at reversals, so not the full four


@pytest.mark.parametrize("symbol", ["Ia", "fv", "fc", "fo", "kp", "kd", "width", "delay", "m", "mx"])
def test_derivatives_are_those_of_finite_differences(symbol: str) -> None:
    robot = small_arm()
    model = true_model(robot)
    log = position_log(model, seconds=1.0, count=None)
    bodies = (2,) if symbol in ("m", "mx") else ()
    unknowns = [u for u in unknowns_of(3, gains=("kp", "kd"), bodies=bodies) if u.symbol == symbol][:2]
    first = (log.position[0], np.zeros(3))

    def run(one: ActuatorModel) -> np.ndarray:
        return simulate_commands(one.robot, one.drives(log.control), log.command, log.time, first, step_s=2e-4).at_stamps

    scaled = [
        type(u)(u.symbol, u.joint, float(getattr(log.control, symbol)[u.joint])) if symbol in ("kp", "kd") else u
        for u in unknowns
    ]
    drives = model.drives(log.control)
    motion = simulate_commands(robot, drives, log.command, log.time, first, step_s=2e-4)
    S = position_sensitivities(robot, drives, log.command, motion, scaled)
    for k, unknown in enumerate(unknowns):
        value = model.value(unknown)
        step = {"delay": 2e-3}.get(symbol, 1e-3 * max(abs(value), 0.1))
        up, down = (run(model.with_values([unknown], np.array([value + s]))) for s in (step, -step))
        expected = (up - down) / (2.0 * step)
        error = np.linalg.norm(S[:, :, k] - expected) / np.linalg.norm(expected)
        assert error < (0.1 if symbol in ("width", "delay") else 0.03), (unknown, error)


def test_a_drive_at_its_limit_gives_no_more() -> None:
    robot = small_arm()
    t = np.arange(100) / 100.0
    u = np.ones((100, 3))
    drives = Drives.of(3, kp=1000.0, kd=10.0, limit=5.0, armature=10.0, width=1.0)
    motion = simulate_commands(
        robot.with_gravity([0.0, 0.0, 0.0]), drives, Command(t, u), t[:20], (np.zeros(3), np.zeros(3))
    )
    assert 0.0 < motion.velocity[:, 0].max() <= 5.0 / 10.0 * 0.2 + 1e-9


def test_control_without_gains_is_refused() -> None:
    from dynid.errors import InputError

    with pytest.raises(InputError, match=r"kp of joint 1 is -1"):
        PositionControl(np.array([-1.0]), np.array([0.0]))


def single_joint() -> tuple[Robot, float]:
    """One joint about a vertical axis, and its inertia: what it does is known in closed form."""
    arm = demo_robot()
    robot = arm.only(arm.joint_names[:1]).with_effects(()).with_gravity([0.0, 0.0, 0.0])
    zero = np.zeros((1, 1))
    return robot, float(inverse_dynamics(robot, zero, zero, zero + 1.0)[0, 0])


def test_a_current_loop_lags_as_its_equation_says() -> None:
    robot, inertia = single_joint()
    kp, kd, lag, rotor = 400.0, 30.0, 0.006, 0.4
    t = np.arange(200) / 200.0
    u = np.where(t < 0.4, 0.2, -0.1)[:, None]
    drives = Drives.of(1, kp=kp, kd=kd, armature=rotor, viscous=4.0, width=1.0, lag_s=lag)
    start = (np.array([0.1]), np.array([0.0]))
    ours = simulate_commands(robot, drives, Command(t, u), t, start, step_s=5e-4).at_stamps[:, 0]

    def motion(time: float, x: np.ndarray) -> list[float]:
        q, v, tau = x
        asked = kp * (u[min(int(time * 200.0 + 1e-9), 199), 0] - q) - kd * v
        return [v, (tau - 4.0 * v) / (inertia + rotor), (asked - tau) / lag]

    exact = solve_ivp(motion, (0.0, t[-1]), [0.1, 0.0, kp * 0.1], t_eval=t, max_step=1e-3, rtol=1e-8).y[0]
    assert np.abs(ours - exact).max() < 2e-4
    without = simulate_commands(robot, drives.with_(lag_s=0.0), Command(t, u), t, start, step_s=5e-4).at_stamps[:, 0]
    assert np.abs(without - exact).max() > 5e-3


def test_a_motor_has_less_torque_the_faster_it_turns() -> None:
    robot, inertia = single_joint()
    rotor, stall, fastest = 0.4, 20.0, 3.0
    t = np.arange(100) / 100.0
    drives = Drives.of(1, kp=1e4, kd=0.0, armature=rotor, width=1.0, stall=stall, no_load_speed=fastest)
    motion = simulate_commands(robot, drives, Command(t, np.full((100, 1), 100.0)), t, (np.zeros(1), np.zeros(1)))
    rate = stall / fastest / (inertia + rotor)
    expected = fastest * (1.0 - np.exp(-rate * (motion.time - motion.time[0])))
    assert np.abs(motion.velocity[:, 0] - expected).max() < 1e-3 * fastest


@pytest.mark.parametrize("symbol", ["fv", "fc", "kp", "kd", "sat", "fl", "fe", "rise", "fading", "mx"])
def test_derivatives_of_voltage_drives_under_load_are_those_of_finite_differences(symbol: str) -> None:
    robot = small_arm()
    log = position_log(true_model(robot), seconds=1.0, count=None)
    volts = np.where(log.time < 0.7, 1.2 - 0.3 * log.time, 0.0)  # switched off in the end
    supply = Command(log.time, np.repeat(volts[:, None], 3, axis=1))
    drives = (
        true_model(robot)
        .drives(log.control)
        .with_(reach=0.04, saturation=1e-3, load=0.15, outer=0.1, rise=0.5, fading=0.4, width=0.1)
    )
    first = (log.position[0], np.zeros(3))
    name = {"fv": "viscous", "fc": "coulomb", "sat": "saturation", "fl": "load", "fe": "outer"}.get(symbol, symbol)

    def run(h: float) -> np.ndarray:
        body, moved = robot.with_parameters({"mx2": robot.parameters["mx2"] + h}), drives
        if symbol != "mx":
            body, moved = robot, drives.with_(**{name: getattr(drives, name) + h * np.eye(3)[1]})
        return simulate_commands(body, moved, log.command, log.time, first, step_s=2e-4, supply=supply).at_stamps

    motion = simulate_commands(robot, drives, log.command, log.time, first, step_s=2e-4, supply=supply)
    found = position_sensitivities(robot, drives, log.command, motion, [Unknown(symbol, 1)])[:, :, 0]
    step = 1e-3 * max(abs(float(getattr(drives, name)[1])) if symbol != "mx" else 1.0, 1e-3)
    expected = (run(step) - run(-step)) / (2.0 * step)
    assert np.linalg.norm(found - expected) < 0.05 * np.linalg.norm(expected)
