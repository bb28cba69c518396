"""Friction of a whole robot: put in place of another, left out, read."""

from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb, Stribeck
from dynid.model.effects.linear import Armature, Viscous
from dynid.model.friction import is_searched, searched_values, with_friction, without_friction, without_searched
from problems import planar_2r


def test_a_model_takes_the_place_of_the_one_before():
    robot = planar_2r([Viscous(), Coulomb(), Armature()])
    other = with_friction(robot, [SmoothCoulomb()])
    assert [effect.name for effect in other.effects] == ["smooth_coulomb", "armature"]
    assert [effect.name for effect in without_friction(robot).effects] == ["armature"]
    assert [effect.name for effect in without_searched(robot).effects] == ["armature"]
    assert is_searched(Viscous())
    assert not is_searched(Armature())


def test_values_inside_friction_are_told_once_per_joint():
    found = searched_values(planar_2r([Viscous(), Stribeck()]))
    assert len(found) == len({(one.joint, one.name) for one in found})
    assert {one.joint for one in found} == set(planar_2r().joint_names)
    assert all(one.found for one in found)
    assert searched_values(planar_2r([Viscous()])) == ()
