"""The functions of a robot before they are written, and what cannot be written."""

import numpy as np
import pytest

import dynid
from dynid.errors import InputError
from dynid.io.code.equations import load_dependent, name_of, robot_functions
from dynid.io.code.languages import function_gap, write_c
from dynid.model.effects.dry_friction import LoadCoulomb
from problems import demo_arm, planar_2r


def test_load_dependent_friction_leaves_out_forward_dynamics(tmp_path):
    robot = planar_2r([LoadCoulomb()]).with_parameters({"flc1": 0.1, "flc2": 0.1})
    functions = robot_functions(robot)
    assert load_dependent(functions)
    assert "forward_dynamics" not in functions
    assert any("forward_dynamics is not written" in note for note in write_c(robot, tmp_path / "arm.c").notes)


def test_a_wrong_function_is_seen():
    robot = demo_arm()
    right = {name: one.shape for name, one in robot_functions(robot).items()}
    assert set(right) >= {"mass_matrix", "coriolis_matrix", "coriolis", "gravity", "friction", "forward_dynamics"}
    assert function_gap(robot, lambda name, given, shape: np.zeros(shape), 5) > 0.1


def test_names_that_every_language_takes():
    assert [name_of(name) for name in ("ur10e", "2r arm", "pan-da/1", "")] == ["ur10e", "robot_2r_arm", "pan_da_1", "robot"]


def test_closed_robots_are_refused(tmp_path):
    robot = dynid.read_robot("examples/robots/four_bar.toml")
    with pytest.raises(InputError, match="closed loops"):
        write_c(robot, tmp_path / "bar.c")
