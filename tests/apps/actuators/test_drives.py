"""Motors that are driven by voltage: simulated truth by plain Euler steps, what a log must say; torque limits that rows show."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli_program import app
from dynid.apps.actuators.drives import found_limits, motor_constants, with_limits
from dynid.apps.actuators.identify import identify_actuators
from dynid.apps.actuators.model import ActuatorLog, ActuatorProblem, unknowns_of
from dynid.apps.actuators.options import EFFECTS, LOAD, STRIBECK, ActuatorSettings
from dynid.dynamics.position_loop import simulate_commands
from dynid.errors import InputError
from dynid.signals.commands import Command, PositionControl
from position_logs import KD, KP, small_arm, true_model

URDF = """<robot name="pendulum"><link name="base"/><link name="arm"><inertial><origin xyz="0 0 -0.1"/><mass value="0.5"/>
<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="1" type="revolute"><parent link="base"/>
<child link="arm"/><axis xyz="0 1 0"/><limit lower="-7" upper="7" velocity="15" effort="0.01"/></joint></robot>"""
KT, OHM, ROTOR, VISCOUS, COULOMB, LOADED, SATURATED, RISE, FADING = 0.36, 3.2, 2e-3, 2e-3, 0.012, 0.25, 0.6, 0.8, 0.3


def servo_log(path: Path, kp: float, seed: int, *, loaded: float = 0.0, rise: float = 0.0, seconds: float = 4.0) -> Path:
    """A log of a servo in small Euler steps: duty that saturates, a supply that sags, and the drive off in the last second."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * 200)) / 200.0
    f, size, phase = rng.uniform(0.2, 2.0, 4), rng.uniform(0.2, 0.6, 4), rng.uniform(0.0, 6.0, 4)
    u = (size * (np.sin(2.0 * np.pi * np.outer(t, f) + phase) - np.sin(phase))).sum(axis=1)
    volts, enabled = 7.4 - 0.6 * np.sin(0.7 * t) ** 2, (t < seconds - 1.0).astype(float)
    h, q, v, found = 2.5e-4, 0.0, 0.0, []
    for sent, supply, on in zip(u.tolist(), volts.tolist(), enabled.tolist(), strict=True):
        found.append(q)
        for _ in range(20):
            tau = KT / OHM * (min(max(kp * (sent - q), -1.0), 1.0) * supply - KT * v) if on else 0.0
            tau /= 1.0 + SATURATED * (loaded > 0.0) * abs(tau)
            dry = (COULOMB + loaded * abs(tau)) * (1.0 + rise * math.exp(-abs(v) / FADING)) * math.tanh(v / 0.005)
            v += h * (tau - 0.5 * 9.81 * 0.1 * math.sin(q) - VISCOUS * v - dry) / (0.5 * 0.01 + 1e-6 + ROTOR)
            q += h * v
    rows = np.column_stack(
        [t, np.array(found) + 2e-4 * rng.normal(size=len(t)), u, volts, enabled, np.full(len(t), kp / 0.002)]
    )
    np.savetxt(path, rows, delimiter=",", header="t,q1,q_cmd1,volts,enabled,kp", comments="")
    return path


def identified(tmp_path: Path, *, effects: tuple[str, ...] = EFFECTS, **truth: float) -> dict[str, dict[str, float]]:
    (tmp_path / "robot.urdf").write_text(URDF)
    logs = [servo_log(tmp_path / f"{seed}.csv", kp, seed, **truth) for seed, kp in enumerate((0.6, 2.0))]
    settings = ActuatorSettings(motor="voltage", kp_unit=0.002, delay=0.0, command="held", effects=effects)
    run = identify_actuators(tmp_path / "robot.urdf", logs, settings)
    joint: dict[str, dict[str, float]] = run.as_json()["joints"][0]
    return joint


def test_motor_constant_resistance_and_friction_are_recovered(tmp_path: Path) -> None:
    joint = identified(tmp_path)
    truth = {"kt": KT, "resistance": OHM, "coulomb": COULOMB, "armature": ROTOR, "kp": KT / OHM, "kd": KT**2 / OHM}
    for word, value in truth.items():
        assert joint[word]["value"] == pytest.approx(value, rel=0.05), word
    assert joint["viscous"]["value"] == pytest.approx(VISCOUS, abs=1e-3)


def test_friction_that_grows_with_load_is_told_from_torque_per_volt(tmp_path: Path) -> None:
    joint = identified(tmp_path, loaded=LOADED, effects=(*EFFECTS, LOAD))
    assert joint["kp"]["value"] == pytest.approx(KT / OHM, rel=0.05)
    assert joint["load"]["value"] == pytest.approx(LOADED, abs=0.05)
    assert joint["saturation"]["value"] == pytest.approx(SATURATED, abs=0.1)
    assert joint["outer"]["value"] < 0.05


def test_friction_that_rises_towards_rest_is_recovered(tmp_path: Path) -> None:
    joint = identified(tmp_path, loaded=LOADED, rise=RISE, effects=(*EFFECTS, LOAD, STRIBECK))
    assert joint["rise"]["value"] == pytest.approx(RISE, abs=3.0 * joint["rise"]["sigma"] + 0.05)
    assert joint["fading"]["value"] == pytest.approx(FADING, abs=3.0 * joint["fading"]["sigma"] + 0.03)
    assert joint["saturation"]["value"] == pytest.approx(SATURATED, abs=0.15)


@pytest.mark.parametrize(("truth", "further"), [({}, set()), ({"loaded": LOADED}, {"load", "saturation", "outer"})])
def test_effects_are_those_that_predict_the_last_part_of_the_logs(
    tmp_path: Path, truth: dict[str, float], further: set[str]
) -> None:
    joint = identified(tmp_path, effects=("auto",), **truth)
    assert {"load", "saturation", "outer", "rise", "fading"} & joint.keys() == further


def test_a_servo_by_its_name_has_units_and_the_gains_of_its_data_sheet() -> None:
    servo = ActuatorSettings(motor="xl330-m288", duty=0.9).servo
    assert servo is not None
    assert servo.nameplate is not None
    assert (servo.kp_unit, servo.duty) == (pytest.approx(0.0028775, rel=1e-4), 0.9)
    # at rest volts drive the current, without load the induced voltage is that of the supply
    kp, kd = servo.nameplate["kp"], servo.nameplate["kd"]
    assert kd / kp == pytest.approx(5.0 / (103.0 * 2.0 * np.pi / 60.0))
    assert kd / kp**2 == pytest.approx(5.0 / 1.47)
    assert ActuatorSettings().servo is None


def test_deviations_of_kt_and_resistance_are_those_of_draws() -> None:
    spread = np.array([[1e-6, 2e-7], [2e-7, 4e-7]])
    kp, kd = np.random.default_rng(0).multivariate_normal([0.1, 0.04], spread, 200_000).T
    found = motor_constants(0.1, 0.04, spread)
    assert found is not None
    assert found["kt"] == pytest.approx((0.4, float(np.std(kd / kp))), rel=0.02)
    assert found["resistance"] == pytest.approx((4.0, float(np.std(kd / kp**2))), rel=0.02)
    assert motor_constants(0.1, 0.001, spread) is None  # not told from zero


def test_files_that_cannot_hold_a_voltage_are_refused_before_the_logs_are_read(tmp_path: Path) -> None:
    robot = tmp_path / "robot.urdf"
    robot.write_text(URDF)
    log = servo_log(tmp_path / "log.csv", 1.0, 0, seconds=1.5)
    called = CliRunner().invoke(app, ["actuators", str(robot), str(log), "--motor", "voltage", "--export", "mjcf"])
    assert isinstance(called.exception, InputError)
    assert "--export has no file that holds drives of --motor voltage" in str(called.exception)
    assert not list(tmp_path.glob("actuators*"))


def test_screen_and_report_name_the_motor(tmp_path: Path) -> None:
    robot = tmp_path / "robot.urdf"
    robot.write_text(URDF)
    log = servo_log(tmp_path / "log.csv", 1.0, 0, seconds=3.0)
    asked = ["--motor", "voltage", "--kp-unit", "0.002", "--delay", "0", "--report", "-o", str(tmp_path / "out")]
    called = CliRunner().invoke(app, ["actuators", str(robot), str(log), *asked])
    assert called.exit_code == 0, called.output
    assert "motor of joint 1, at the joint: kt 0.3" in called.output
    assert "kp N m/V" in called.output
    assert "kt / R N m/V" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("t,q1,q_cmd1,kp", "no supply voltage, expected a column 'volts', or --supply"),
        ("t,q1,q_cmd1,volts", "no position gain of the firmware, expected a column 'kp', or --kp"),
        ("t,q1,q_cmd1,volts,kp", "expected one gain for the whole log"),
    ],
)
def test_a_log_that_does_not_say_enough_is_refused(tmp_path: Path, columns: str, message: str) -> None:
    (tmp_path / "robot.urdf").write_text(URDF)
    t = np.arange(400) / 200.0
    known = {"t": t, "q1": 0.3 * np.sin(t), "q_cmd1": 0.4 * np.sin(t), "volts": 7.0 + 0.0 * t, "kp": 100.0 + (t > 1.0)}
    np.savetxt(
        tmp_path / "log.csv",
        np.column_stack([known[name] for name in columns.split(",")]),
        delimiter=",",
        header=columns,
        comments="",
    )
    with pytest.raises(InputError, match=message):
        identify_actuators(tmp_path / "robot.urdf", tmp_path / "log.csv", ActuatorSettings(motor="voltage", delay=0.0))


@pytest.mark.parametrize(
    "given", [{"kd": 1.0}, {"method": "linear"}, {"control": "velocity"}, {"stall_torque": (1.0,), "no_load_speed": (1.0,)}]
)
def test_options_that_contradict_a_voltage_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(InputError, match="--motor voltage"):
        ActuatorSettings(motor="voltage", **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="add --motor voltage"):
        ActuatorSettings(supply=7.0)


def stepped(limit: float) -> ActuatorProblem:
    model, n = true_model(small_arm()), 3
    t = np.arange(0.0, 8.0, 0.005)
    u = np.zeros((len(t), n))
    u[:, 0] = 0.9 * np.sign(np.sin(2.0 * np.pi * t / 1.6))
    control = PositionControl(KP, KD, np.array([limit, np.inf, np.inf]))
    motion = simulate_commands(model.robot, model.drives(control), Command(t, u), t, (u[0], np.zeros(n)), step_s=5e-4)
    told = replace(control, limit=np.full(n, np.inf))
    log = ActuatorLog("simulated", t, motion.at_stamps, Command(t, u), told)
    return ActuatorProblem(model.robot, (log,), unknowns_of(n))


def test_the_limit_of_a_saturated_drive_is_found() -> None:
    problem, truth = stepped(40.0), true_model(small_arm())
    found = found_limits(problem, truth)
    assert set(found) == {0}
    assert found[0] == pytest.approx(40.0, rel=0.05)
    (log,) = with_limits(problem.logs, found)
    assert log.control.limit is not None
    assert log.control.limit[0] == found[0]


def test_none_is_found_where_there_is_none() -> None:
    assert found_limits(stepped(np.inf), true_model(small_arm())) == {}


def test_friction_that_is_taken_too_small_is_no_limit() -> None:
    truth = true_model(small_arm())
    slight = replace(truth, values={**truth.values, "fc": 0.2 * truth.values["fc"], "fv": 0.2 * truth.values["fv"]})
    assert found_limits(stepped(np.inf), slight) == {}
