"""What follows from joints and effects is found once for all robots that share them."""

import numpy as np

from dynid.dynamics.structure import KEPT, forget_structures, structure_of
from dynid.model.effects.linear import Viscous
from problems import planar_2r


def test_robots_that_differ_in_parameters_share_a_structure():
    robot = planar_2r()
    heavier = robot.with_parameters({"m1": 9.0})
    assert structure_of(heavier) is structure_of(robot)
    assert structure_of(robot.with_gravity([0.0, 0.0, -1.6])) is not structure_of(robot)
    assert structure_of(robot.with_effects([Viscous()])) is not structure_of(robot)


def test_a_function_is_asked_once_for_all_of_them():
    asked = []

    def find(robot):
        asked.append(robot.name)
        return np.arange(robot.n_dof)

    robot = planar_2r()
    first = structure_of(robot).once(find)
    assert structure_of(planar_2r()).once(find) is first
    assert len(asked) == 1


def test_forgotten_structures_are_found_anew_and_only_some_are_kept():
    robot = planar_2r()
    before = structure_of(robot)
    forget_structures()
    assert structure_of(robot) is before  # a robot that was asked keeps its own
    assert structure_of(planar_2r()) is not before
    for k in range(KEPT + 1):
        structure_of(planar_2r().with_gravity([0.0, 0.0, -1.0 - k]))
    assert structure_of(planar_2r().with_gravity([0.0, 0.0, -1.0])) is not before
