"""Files of actuators for simulators: what MuJoCo does with its file, and what the others hold."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path

import mujoco
import numpy as np
import pytest

from dynid.apps.actuators.comparison import roll_out
from dynid.apps.actuators.export import (
    JointActuator,
    roll_out_controls,
    write_actuator_mjcf,
    write_isaac,
    write_newton,
    write_table,
)
from dynid.io.demo import demo_robot
from dynid.io.robots.mjcf_new import mjcf_text
from dynid.io.robots.read import read_robot
from position_logs import KD, KP, position_log, small_arm, true_model

ACTUATORS = tuple(
    JointActuator(name, float(KP[j]), float(KD[j]), 300.0, 0.3, 3.0, 4.0, 0.5 * (j == 0), 0.012)
    for j, name in enumerate(small_arm().joint_names)
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    arm = demo_robot()
    path = tmp_path / "arm.xml"
    path.write_text(mjcf_text(arm.only(arm.joint_names[:3]).with_effects(()), limits=False))
    return path


def test_mujoco_follows_commands_as_dynid_does(source: Path, tmp_path: Path) -> None:
    robot = read_robot(source, "none")
    model = true_model(small_arm())
    log = position_log(model, seconds=3.0, count=None)
    drives = model.drives(log.control)
    actuators = tuple(
        JointActuator(
            name,
            *(
                float(getattr(drives, word)[j])
                for word in ("kp", "kd", "limit", "armature", "viscous", "coulomb", "offset", "delay_s")
            ),
        )
        for j, name in enumerate(robot.joint_names)
    )
    written = write_actuator_mjcf(robot, actuators, tmp_path / "with.xml")
    text = written.path.read_text().replace("<mujoco", "<mujoco", 1)
    fine = tmp_path / "fine.xml"
    fine.write_text(text.replace("<option", '<option timestep="0.0005"', 1))
    names = list(robot.joint_names)
    start = (log.position[0], np.zeros(3))
    errors = []
    for path in (written.path, fine):
        theirs = roll_out_controls(path, names, [f"{n}_position" for n in names], log.command.values, log.time, start)
        errors.append(float(np.sqrt(np.mean((theirs - log.position) ** 2))))
    without = float(np.sqrt(np.mean((roll_out(true_model(small_arm(), delay_s=0.0), log).simulated - log.position) ** 2)))
    assert errors[0] < 0.1 * without  # at 2 ms an implicit step adds h kv to the rotor
    assert errors[1] < 0.5 * errors[0]


def test_the_file_holds_every_number(source: Path, tmp_path: Path) -> None:
    robot = read_robot(source, "none")
    written = write_actuator_mjcf(robot, ACTUATORS, tmp_path / "with.xml")
    model = mujoco.MjModel.from_xml_path(str(written.path))
    assert model.nu == 3
    for one in ACTUATORS:
        joint, actuator = model.joint(one.joint), model.actuator(f"{one.joint}_position")
        dof = int(joint.dofadr[0])
        assert np.isclose(model.dof_armature[dof], one.armature)
        assert np.isclose(model.dof_damping[dof], one.viscous)
        assert np.isclose(model.dof_frictionloss[dof], one.coulomb)
        assert np.allclose(actuator.gainprm[0], one.kp)
        assert np.allclose(actuator.biasprm[:3], [-one.offset, -one.kp, -one.kd])
        assert np.allclose(actuator.forcerange, [-300.0, 300.0])
        assert np.isclose(model.actuator_delay[actuator.id], 0.012)


def test_isaac_and_newton_files_are_python_with_the_values(tmp_path: Path) -> None:
    for write in (write_isaac, write_newton):
        path = write("arm", ACTUATORS, tmp_path / f"{write.__name__}.py")
        tree = ast.parse(path.read_text())
        assigned = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        if write is write_isaac:
            assert ast.literal_eval(assigned["ARMATURE"]) == {one.joint: 0.3 for one in ACTUATORS}
            assert ast.literal_eval(assigned["DELAY_STEPS"]) == (2, 2)  # 12 ms in steps of 5 ms
        else:
            values = ast.literal_eval(assigned["ACTUATORS"])
            assert values[ACTUATORS[0].joint]["target_kd"] == KD[0] + 3.0
            assert values[ACTUATORS[0].joint]["friction"] == 4.0


def test_usd_drives_are_per_degree(tmp_path: Path) -> None:
    path = write_table("arm", ACTUATORS, {}, tmp_path / "actuators.json")
    first = json.loads(path.read_text())["actuators"][0]
    assert math.isclose(first["usd"]["drive:stiffness"], 400.0 * math.pi / 180.0)
    assert first["kp"] == 400.0
