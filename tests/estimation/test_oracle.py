"""Reverse engineering against Pinocchio and MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics, mass_matrix
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.oracle import Oracle, reverse_engineer
from dynid.estimation.result import Outcome
from dynid.signals.recording import StaticRecording
from messages import facts
from oracles import mujoco_oracle, pinocchio_oracle
from problems import demo_arm, planar_2r, random_motion, random_tree

ORACLES = {"pinocchio": pinocchio_oracle, "mujoco": mujoco_oracle}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("robot", [demo_arm("none"), random_tree(3), planar_2r()], ids=lambda robot: robot.name)
def test_base_parameters_from_other_libraries(robot, name):
    blank = robot.with_parameters(robot.parameters.with_values(np.zeros(len(robot.parameters))))
    found = reverse_engineer(blank, ORACLES[name](robot), poses=200)
    expected = found.estimate.base.base_values(robot.parameters)
    np.testing.assert_allclose(found.estimate.base_values, expected, atol=1e-8 * np.abs(expected).max())
    assert found.estimate.outcome is Outcome.SOLVED
    assert found.coriolis_gap is not None
    assert found.coriolis_gap < 1e-7
    q, v, a = random_motion(robot, 30, seed=5)
    torque = inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(inverse_dynamics(found.model, q, v, a), torque, atol=1e-7 * np.abs(torque).max())


def test_rotor_inertia_of_a_foreign_model_is_taken_off():
    robot = demo_arm("armature")
    assert robot.parameters["Ia1"] > 0.0
    rigid = robot.with_effects(())
    with_rotors = pinocchio_oracle(robot, pinocchio_model(robot, armature=True))
    np.testing.assert_allclose(
        with_rotors.inertia_at(np.zeros((1, 7))), pinocchio_oracle(rigid).inertia_at(np.zeros((1, 7)))
    )
    found = reverse_engineer(robot, with_rotors, poses=100)
    np.testing.assert_allclose(found.estimate.base_values, found.estimate.base.base_values(rigid.parameters), atol=1e-8)


def test_a_table_and_a_function_say_the_same():
    robot = demo_arm("none")
    oracle = pinocchio_oracle(robot)
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (80, 7))
    table = StaticRecording(
        position=q, inertia=oracle.inertia_at(q), gravity=oracle.gravity_at(q), joint_names=robot.joint_names
    )
    by_table = reverse_engineer(robot, table)
    by_function = reverse_engineer(robot, Oracle("mine", oracle.inertia, oracle.gravity), poses=q)
    np.testing.assert_array_equal(by_table.estimate.base_values, by_function.estimate.base_values)
    assert (by_table.n_poses, by_table.coriolis_gap, by_function.coriolis_gap) == (80, None, None)


def test_one_part_alone_shows_what_it_can():
    robot = demo_arm("none")
    wrong = robot.with_parameters(robot.parameters.with_values(1.5 * robot.parameters.values))
    oracle = pinocchio_oracle(robot)
    q = np.random.default_rng(1).uniform(-2.0, 2.0, (120, 7))
    for part, other in (("inertia", "gravity"), ("gravity", "inertia")):
        found = reverse_engineer(wrong, oracle, parts=[part], poses=q)
        M, g = mass_matrix(found.model, q), inverse_dynamics(found.model, q, 0.0 * q, 0.0 * q)
        truth = {"inertia": (M, oracle.inertia_at(q)), "gravity": (g, oracle.gravity_at(q))}
        np.testing.assert_allclose(*truth[part], atol=1e-8)
        if found.estimate.rank < found.estimate.base.n_base:
            assert found.estimate.outcome is Outcome.RANK_DEFICIENT
            held = np.array(found.estimate.origin) == "prior"
            prior = found.estimate.base.base_values(wrong.parameters)
            np.testing.assert_allclose(found.estimate.base_values[held], prior[held], atol=1e-9)
        else:
            np.testing.assert_allclose(*truth[other], atol=1e-7)
    gravity_alone = reverse_engineer(wrong, Oracle("weights", gravity=oracle.gravity), poses=q)
    assert gravity_alone.estimate.rank < gravity_alone.estimate.base.n_base


def test_a_wrong_oracle_shows_in_its_coriolis_forces():
    robot = demo_arm("none")
    good = pinocchio_oracle(robot)
    lying = Oracle("lying", good.inertia, good.gravity, lambda q, v: 1.1 * np.asarray(good.coriolis(q, v)))
    assert reverse_engineer(robot, lying, poses=100).coriolis_gap == pytest.approx(0.1 / 1.1, rel=1e-5)


def test_bad_oracles_are_refused():
    robot = planar_2r()
    with pytest.raises(InputError, match=r"gives neither M\(q\) nor g\(q\)"):
        Oracle("empty")
    with pytest.raises(InputError, match=facts("flat", "(10, 2)", "(10, 2, 2)", "oracle")):
        reverse_engineer(robot, Oracle("flat", inertia=lambda q: np.ones(2)), poses=10)
    with pytest.raises(InputError, match="NaN or infinite"):
        reverse_engineer(robot, Oracle("broken", gravity=lambda q: np.full(2, np.nan)), poses=10)
    with pytest.raises(InputError, match="gives none of what was asked for: inertia"):
        reverse_engineer(robot, Oracle("weights", gravity=lambda q: np.ones(2)), parts=["inertia"], poses=10)
    with pytest.raises(UnknownNameError, match="unknown part of the dynamics 'mass'"):
        reverse_engineer(robot, pinocchio_oracle(robot), parts=["mass"])
    with pytest.raises(InputError, match=facts("planar_2r", "7", "2")):
        pinocchio_oracle(robot, pinocchio_model(demo_arm("none")))
    with pytest.raises(InputError, match="floating base"):
        reverse_engineer(random_tree(1, floating=True), pinocchio_oracle(robot))
