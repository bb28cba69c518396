"""Springs, counterbalances and cables: torque is the slope of energy, geometry that of the points, files and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError, UnknownNameError
from dynid.io.demo import demo_robot, demo_samples
from dynid.io.robots.dh import with_springs
from dynid.io.robots.read import read_robot
from dynid.model.effects import effect_from_dict, effect_to_dict
from dynid.model.effects.effect import Motion
from dynid.model.effects.springs import Cable, PointSpring, Potential, TorsionSpring, spring_geometry
from dynid.model.effects.wrapped import OnJoints
from dynid.model.robot import Robot
from dynid.regression.energy_rows import energy_regression
from messages import facts
from problems import random_tree
from spring_forces import spring_force

BALANCED = Path(__file__).parents[3] / "examples" / "robots" / "counterbalanced.toml"
N = 3
SPRINGS = [
    TorsionSpring(rest_angle=(0.1, -0.2, 0.3)),
    TorsionSpring(rest_angle=0.4, find_rest=True),
    Cable(powers=(1, 3, 5), centre=0.2),
    Potential(harmonics=(1, 3)),
    PointSpring("linear", phase=(0.3, -1.0, 2.0), ratio=(0.3, 0.9, 0.6), length=(0.5, 1.0, 2.0)),
    PointSpring("constant", phase=0.5, ratio=0.7, length=0.4),
    PointSpring("gas", phase=-0.4, ratio=0.5, length=0.6, column=0.5, exponent=1.0),
    PointSpring("gas", phase=-0.4, ratio=0.5, length=0.6, column=0.8, exponent=1.3, action="expands"),
    PointSpring("linear", phase=0.3, ratio=0.5, fit=True),
    PointSpring("gas", phase=-0.4, ratio=0.5, column=(2.0, 3.0, 4.0), fit=True),
]


def motion_at(q: np.ndarray) -> Motion:
    return Motion(q, np.zeros_like(q), np.zeros_like(q))


@pytest.mark.parametrize("effect", SPRINGS, ids=lambda effect: f"{effect.name}-{getattr(effect, 'form', '')}")
def test_torque_is_the_slope_of_the_energy(effect) -> None:
    q = np.random.default_rng(0).uniform(-2.5, 2.5, (40, N))
    h = 1e-5
    slope = (effect.energy_signals(motion_at(q + h)) - effect.energy_signals(motion_at(q - h))) / (2.0 * h)
    np.testing.assert_allclose(effect.signals(motion_at(q)), slope, rtol=1e-6, atol=1e-8)
    assert not effect.is_friction
    assert effect.momentum_signals(motion_at(q)) is None
    assert effect_from_dict(effect_to_dict(effect)) == effect
    kept = effect.kept([0, 2])
    np.testing.assert_allclose(
        kept.signals(motion_at(q[:, [0, 2]])), effect.signals(motion_at(q)).reshape(40, -1, N)[:, :, [0, 2]].reshape(40, -1)
    )


@pytest.mark.parametrize("effect", [one for one in SPRINGS if getattr(one, "fit", False)], ids=lambda effect: effect.form)
def test_derivatives_with_the_geometry(effect) -> None:
    q = np.random.default_rng(1).uniform(-2.5, 2.5, (30, N))
    names = [option.name for option in effect.searched_parameters()]
    assert names == ["phase", "ratio", *(["column"] if effect.form == "gas" else [])]
    slopes = effect.signals_and_derivatives(motion_at(q), names)[1]
    for name in names:
        own, h = effect.option_values(name, N), 1e-6
        low, high = (effect.with_option(name, own + step).signals(motion_at(q)) for step in (-h, h))
        np.testing.assert_allclose(slopes[name], (high - low) / (2.0 * h), rtol=1e-5, atol=1e-7)
    assert effect.settled().searched_parameters() == ()


def test_geometry_is_the_distance_of_the_points() -> None:
    robot = random_tree(3, n_joints=4, kinds=("revolute",))
    rng = np.random.default_rng(2)
    for joint in robot.joints:
        fixed, own = rng.uniform(-0.5, 0.5, (2, 3))
        spring = PointSpring.between(joint, fixed, own, form="linear")
        q = np.linspace(-3.0, 3.0, 25)
        poses = np.array([joint.pose(angle) for angle in q])
        distance = np.linalg.norm(poses[:, :3, :3] @ own + poses[:, :3, 3] - fixed, axis=1)
        found, force = spring_force(spring, np.array([100.0, -20.0]), q)
        np.testing.assert_allclose(found, distance, rtol=1e-9)
        np.testing.assert_allclose(force, 100.0 * distance - 20.0)
    first = robot.joints[0]
    on_axis = np.cross(first.screw[3:], first.screw[:3])
    with pytest.raises(InputError, match=facts("axis", first.name)):
        spring_geometry(first, [0.1, 0.2, 0.3], on_axis)


def test_gas_follows_its_law() -> None:
    spring = PointSpring("gas", phase=0.0, ratio=0.6, length=0.5, column=0.4, exponent=1.3)
    distance, force = spring_force(spring, np.array([800.0]), np.linspace(0.1, 3.0, 9))
    np.testing.assert_allclose(force * (0.4 - (distance - 0.5)) ** 1.3, 800.0 * 0.4**1.3)
    assert force[-1] > force[0]  # compressed as the points move apart


def test_energy_rows_hold_with_springs() -> None:
    robot = demo_robot(effects=[OnJoints(TorsionSpring(), (1,)), OnJoints(PointSpring("linear", 0.3, 0.6), (2,))])
    robot = robot.with_parameters({"ks1": 30.0, "sk2": 90.0, "sf2": -20.0})
    samples = demo_samples(robot, seconds=4.0, rate_hz=1000.0)
    found = energy_regression(robot, samples)
    values = np.concatenate([robot.parameters.values, [-1.0]])
    left = found.channel_matrix(0) @ values
    assert np.linalg.norm(left) < 1e-4 * found.torque_norms[0]
    other = robot.with_parameters({"sk2": 80.0})
    assert np.linalg.norm(found.channel_matrix(0) @ [*other.parameters.values, -1.0]) > 0.005 * found.torque_norms[0]


def test_a_robot_file_states_springs(tmp_path: Path) -> None:
    robot = read_robot(BALANCED)
    assert (robot.parameters["sk2"], robot.parameters["sf2"]) == (8000.0, -2400.0)
    assert robot.parameters.columns[-1].kind == "spring"
    assert read_robot(BALANCED, "none").effects == ()
    q = np.linspace(-1.4, 1.8, 30)[:, None] * np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    balanced, plain = (inverse_dynamics(robot, q, 0 * q, 0 * q, effects=on)[:, 1] for on in (True, False))
    assert np.abs(balanced).max() < 0.6 * np.abs(plain).max()  # it carries a good part of the weight


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ({"joint": 9, "kind": "torsion"}, facts("9", "7")),
        ({"joint": 2, "kind": "rubber"}, "rubber"),
        ({"joint": 2, "kind": "cable", "ratio": 0.3}, "ratio"),
        ({"joint": 2, "kind": "linear", "link_point": [0.1, 0.0, 0.0]}, facts("parent_point")),
        ({"joint": 2, "kind": "linear", "ratio": 1.5, "phase": 0.0}, facts("1.5")),
        ({"joint": 2, "kind": "gas", "force": "much"}, facts("force", "much")),
        ({"joint": 2, "kind": "cable", "powers": [2]}, facts("2", "odd")),
        ({"joint": 2, "kind": "potential", "harmonics": [0]}, facts("0", "12")),
    ],
)
def test_tables_that_mean_nothing_are_refused(table: dict, match: str) -> None:
    with pytest.raises((InputError, UnknownNameError), match=match):
        with_springs(demo_robot(), [table], "test.toml")


def test_tables_make_effects() -> None:
    robot: Robot = with_springs(
        demo_robot(effects="viscous"),
        [
            {"joint": 1, "kind": "torsion", "stiffness": 5.0},
            {"joint": demo_robot().joint_names[1], "kind": "gas", "force": -300.0, "action": "expands"},
            {"joint": 3, "kind": "constant", "phase": 0.1, "ratio": 0.4, "force": 50.0},
            {"joint": 7, "kind": "cable", "powers": [3]},
        ],
        "test.toml",
    )
    assert robot.parameters.names[-5:] == ("ks1", "kr1", "sg2", "sf3", "kccc7")
    assert (robot.parameters["ks1"], robot.parameters["sg2"], robot.parameters["sf3"]) == (5.0, -300.0, 50.0)
    searched = [effect.label for effect in robot.effects if effect.searched_parameters()]
    assert searched == ["point_spring of joints 2"]
    again = with_springs(robot, [{"joint": 1, "kind": "torsion", "rest_angle": 0.2}], "test.toml")
    assert "kr1" not in again.parameters.names
    assert replace(again.effects[-1], joints=(1,)) == OnJoints(TorsionSpring(0.2), (1,))


def test_points_beyond_all_numbers_are_refused() -> None:
    joint = demo_robot().joints[1]
    with pytest.raises(InputError, match="farther apart than numbers reach"):
        spring_geometry(joint, [0.1, 0.0, 0.0], [0.1, 1e300, 1e300])
