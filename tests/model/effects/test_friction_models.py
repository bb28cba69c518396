"""Friction models by name."""

from __future__ import annotations

import pytest

from dynid.io.demo import demo_robot
from dynid.model.effects.dry_friction import SmoothCoulomb, Stribeck
from dynid.model.effects.friction_models import (
    friction_effects,
    friction_models,
)
from dynid.model.effects.linear import Offset, Viscous, ViscousPolynomial
from dynid.model.friction import with_friction
from dynid.regression.base import reduce_to_base
from problems import random_tree


def test_every_model_column_stays_visible_in_the_base_parameters():
    effects = (Viscous(), ViscousPolynomial((2,)), SmoothCoulomb(smooth_width=1e-3), Stribeck(stribeck_speed=0.01), Offset())
    robot = random_tree(5, n_joints=3, effects=effects)
    assert sum(name[0] == "f" for name in reduce_to_base(robot).names) == 15


@pytest.mark.parametrize("first", friction_models())
@pytest.mark.parametrize("second", ["linear", "stribeck", "load_polynomial"])
def test_a_friction_model_takes_the_place_of_any_other(first: str, second: str) -> None:
    """A robot that a run identified comes back with the friction it was given; another log may ask for another model."""
    robot = with_friction(demo_robot(), friction_effects(first))
    names = [effect.name for effect in with_friction(robot, friction_effects(second)).effects]
    assert names == [*(effect.name for effect in friction_effects(second)), "armature"]
