"""Motors that drive several joints: the coupling as a value, in files, under locked joints, and in effects and logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.codec import from_record, to_record
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError, UnknownNameError
from dynid.io.demo import demo_robot
from dynid.io.logs.read import open_recording, read_recording, write_recording
from dynid.io.robots.read import read_robot
from dynid.model.coupling import Coupling, coupling_from_table, coupling_from_terms
from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb
from dynid.model.effects.friction_models import friction_effects
from dynid.model.effects.linear import Armature, Viscous
from dynid.model.effects.wrapped import Coupled
from dynid.model.friction import with_coupling, with_friction
from dynid.pipeline.robot_json import robot_from_sidecar, write_parameters
from dynid.signals.recording import Recording
from messages import facts
from problems import random_motion

WRIST = Path(__file__).parents[2] / "examples" / "robots" / "coupled_wrist.toml"
NAMES = ("a", "b", "c")


def test_power_is_the_same_on_both_sides() -> None:
    coupling = Coupling(((1.0, 0.0, 0.0), (0.5, 1.0, 0.0), (0.0, -1.0, 1.0)), gear_ratios=(50.0, -40.0, 30.0))
    v, tau = np.random.default_rng(0).normal(size=(2, 5, 3))
    motors, torques = coupling.at_motors(v), coupling.torque_at_motors(tau)
    np.testing.assert_allclose((motors * torques).sum(axis=1), (v * tau).sum(axis=1))
    np.testing.assert_allclose(coupling.position_at_joints(motors / coupling.ratios), v)
    np.testing.assert_allclose(coupling.torque_at_joints(torques * coupling.ratios), tau)
    assert coupling.coupled_motors == (2, 3)
    assert coupling_from_terms(coupling.terms, NAMES).matrix == coupling.matrix


def test_tables_and_terms_say_the_same() -> None:
    table = {"c:b": 1, "side": "motor", "gear_ratios": [3, -4, 5], "effects": ["viscous"]}
    found = coupling_from_table(table, NAMES, "[coupling]")
    assert found == Coupling(coupling_from_terms(["3:2=1"], NAMES).matrix, (3.0, -4.0, 5.0), "motor", ("viscous",))
    assert from_record(Coupling, to_record(found)) == found


@pytest.mark.parametrize(
    ("terms", "match"),
    [
        (["3:4=1"], facts("4", "3", "a, b, c")),
        (["3=1"], facts("3=1", "MOTOR:JOINT=VALUE")),
        (["3:2=x"], facts("3:2=x")),
        (["1:2=1", "2:1=1"], facts("rank 2")),
    ],
)
def test_terms_that_mean_nothing_are_refused(terms: list[str], match: str) -> None:
    with pytest.raises(InputError, match=match):
        coupling_from_terms(terms, NAMES)
    with pytest.raises(UnknownNameError, match="gears"):
        coupling_from_table({"gears": 1}, NAMES, "[coupling]")


def test_a_robot_file_states_it_with_the_friction_of_the_motor() -> None:
    robot = read_robot(WRIST)
    assert robot.coupling is not None
    assert (robot.coupling.side, robot.coupling.coupled_motors) == ("motor", (6,))
    assert robot.parameters.names[-3:] == ("fvm6", "fcm6", "Iam6")
    assert [robot.parameters[name] for name in ("fvm6", "fcm6", "Iam6")] == [1.6, 2.9, 0.45]
    # the friction model of the joints decides how sharp the motor's is; without friction there is none
    smooth = with_friction(robot, friction_effects("smooth"))
    kinds = [type(effect.effect) for effect in smooth.effects if isinstance(effect, Coupled)]
    assert kinds == [Viscous, SmoothCoulomb, Armature]
    assert not any(isinstance(effect, Coupled) for effect in read_robot(WRIST, "none").effects)


def test_several_effects_of_motors_are_several_effects() -> None:
    B = coupling_from_terms(["7:6=1"], demo_robot().joint_names).matrix
    motors = [Coupled(effect, B, (7,)) for effect in (Viscous(), Coulomb(), Armature())]
    robot = read_robot(WRIST.with_name("counterbalanced.toml"), ["viscous"])
    assert robot.parameters.names[-2:] == ("sk2", "sf2")
    six = coupling_from_terms(["6:5=1"], robot.joint_names).matrix
    chosen = [Viscous(), *(Coupled(one.effect, six, (6,)) for one in motors)]
    assert read_robot(WRIST.with_name("counterbalanced.toml"), chosen).parameters.names[-5:-2] == ("fvm6", "fcm6", "Iam6")
    with pytest.raises(InputError, match=facts("motor viscous", "2")):
        read_robot(WRIST, [motors[0], motors[0]])


def test_locked_joints_leave_the_coupling_of_the_others() -> None:
    robot = read_robot(WRIST).lock({"joint3": 0.4})
    assert robot.coupling is not None
    assert robot.coupling.terms == ("5:4=1",)
    assert robot.coupling.gear_ratios == (120.0, 120.0, -100.0, 80.0, 50.0)
    assert robot.parameters["fvm5"] == 1.6
    assert read_robot(WRIST).lock({"joint6": 0.4}).parameters.names[-1] == "Ia5"
    with pytest.raises(InputError, match=facts("joint 5", "motor")):
        read_robot(WRIST).lock({"joint5": 0.4})


def test_a_log_of_the_motors_is_carried_to_the_joints(tmp_path: Path) -> None:
    robot = read_robot(WRIST)
    coupling = robot.coupling
    assert coupling is not None
    q, v, _ = random_motion(robot, 20, seed=3)
    tau = np.random.default_rng(1).normal(size=q.shape)
    time = 0.01 * np.arange(20)
    motors = Recording(
        time, coupling.at_motors(q), robot.joint_names, velocity=coupling.at_motors(v), torque=coupling.torque_at_motors(tau)
    )
    path = tmp_path / "motors.csv"
    write_recording(motors, path)
    found = read_recording(path, robot)
    assert isinstance(found, Recording)
    assert found.velocity is not None
    assert found.torque is not None
    np.testing.assert_allclose(found.position, q, atol=1e-12)
    np.testing.assert_allclose(found.velocity, v, atol=1e-12)
    np.testing.assert_allclose(found.torque, tau, atol=1e-9)
    assert any("6:5=1" in note for note in found.source.notes)
    pieces = list(open_recording(path, robot, chunk_rows=7))
    np.testing.assert_allclose(np.concatenate([piece.position for piece in pieces]), q, atol=1e-12)
    as_it_is = read_recording(path, robot, side="joint")
    np.testing.assert_allclose(as_it_is.position, motors.position)
    current = read_recording(path, robot, drive_gains=np.abs(coupling.ratios), ignore=("velocity",))
    assert isinstance(current, Recording)
    expected = coupling.torque_at_joints(np.asarray(motors.torque) * coupling.ratios * np.abs(coupling.ratios))
    np.testing.assert_allclose(current.torque, expected, atol=1e-9)
    # by quantity: positions of the joints, torques of the motors
    mixed = read_recording(path, robot, mapping={"side": {"position": "joint", "velocity": "joint"}})
    assert isinstance(mixed, Recording)
    np.testing.assert_allclose(mixed.position, motors.position)
    np.testing.assert_allclose(mixed.torque, tau, atol=1e-9)


def test_parameters_of_motors_survive_a_file(tmp_path: Path) -> None:
    robot = read_robot(WRIST)
    write_parameters(robot, tmp_path / "wrist.json")
    again = robot_from_sidecar(tmp_path / "wrist.json")
    assert again.coupling == robot.coupling
    motion = random_motion(robot, 5, seed=1)
    np.testing.assert_allclose(inverse_dynamics(again, *motion), inverse_dynamics(robot, *motion))


def test_the_coupling_may_be_changed_and_taken_away() -> None:
    robot = read_robot(WRIST)
    other = with_coupling(robot, coupling_from_terms(["5:4=-1"], robot.joint_names))
    assert other.parameters.names[-3:] == ("fvm5", "fcm5", "Iam5")
    assert with_coupling(robot, None).parameters.names[-1] == "Ia6"
    with pytest.raises(InputError, match=facts("3 motors", "6 joints")):
        with_coupling(robot, coupling_from_terms([], NAMES))


URDF = """<robot name="arm">
  <link name="base"/><link name="l1"/><link name="l2"/><link name="l3"/>
  <joint name="j1" type="continuous"><parent link="base"/><child link="l1"/></joint>
  <joint name="j2" type="continuous"><parent link="l1"/><child link="l2"/></joint>
  <joint name="j3" type="continuous"><parent link="l2"/><child link="l3"/></joint>
  {transmissions}
</robot>"""
SIMPLE = """<transmission name="t1"><type>transmission_interface/SimpleTransmission</type><joint name="j1"/>
  <actuator name="m1"><mechanicalReduction>-100</mechanicalReduction></actuator></transmission>"""
DIFFERENTIAL = """<ros2_control name="hw" type="system"><transmission name="t2">
  <plugin>transmission_interface/DifferentialTransmission</plugin>
  <joint name="j2" role="joint1"><mechanical_reduction>2</mechanical_reduction></joint><joint name="j3" role="joint2"/>
  <actuator name="m2" role="actuator1"><mechanical_reduction>50</mechanical_reduction></actuator>
  <actuator name="m3" role="actuator2"><mechanical_reduction>-50</mechanical_reduction></actuator></transmission></ros2_control>"""


def test_transmissions_of_a_urdf(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(URDF.format(transmissions=SIMPLE + DIFFERENTIAL), encoding="utf-8")
    coupling = read_robot(path).coupling
    assert coupling is not None
    assert coupling.gear_ratios == (-100.0, 50.0, -50.0)
    # a1 = n1 (2 q2 + q3), a2 = n2 (2 q2 - q3)
    np.testing.assert_allclose(coupling.at_motors([[0.1, 0.2, 0.3]]), [[-10.0, 35.0, -5.0]])
    path.write_text(URDF.format(transmissions=SIMPLE), encoding="utf-8")
    plain = read_robot(path)
    assert plain.coupling is None
    assert any("j2, j3" in note and "--gear-ratios" in note for note in plain.source.notes)
    strange = SIMPLE.replace("SimpleTransmission", "HandReducer")
    assert strange != SIMPLE
    path.write_text(URDF.format(transmissions="".join(strange.replace("t1", f"s{k}") for k in range(10))), encoding="utf-8")
    (note,) = [note for note in read_robot(path).source.notes if "left out" in note]
    assert "of the type 'HandReducer', which is not known, are left out: s0, s1, s2" in note
    assert note.endswith("s7 and 2 more")
    path.write_text(URDF.format(transmissions=SIMPLE.replace("-100", "0")), encoding="utf-8")
    with pytest.raises(InputError, match=facts("t1", "'0'")):
        read_robot(path)
    path.write_text(
        URDF.format(transmissions=DIFFERENTIAL.replace('<joint name="j3" role="joint2"/>', "")), encoding="utf-8"
    )
    with pytest.raises(InputError, match=facts("t2", "1 joints", "2 actuators")):
        read_robot(path)
