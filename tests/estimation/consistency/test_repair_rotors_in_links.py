"""Rotors carried by links: exactly where links can, else as near as a conic program of another package finds, and gravity kept."""

import cvxpy
import numpy as np
import pytest

import closed_robots
import dynid
from dynid.dynamics.inverse_dynamics import inverse_dynamics, mass_matrix, random_states_within_limits
from dynid.dynamics.regressors import torque_regressor
from dynid.estimation.consistency.repair import rotors_in_links
from dynid.model.effects.linear import Armature, Viscous
from dynid.model.inertia import PSEUDO_BASIS, is_consistent
from dynid.model.robot import Robot
from dynid.signals.samples import Samples
from problems import demo_arm, random_tree


def with_rotors(robot: Robot, seed: int = 0) -> Robot:
    """Rotors of a tenth to the whole of what each joint moves."""
    robot = robot.with_effects((Viscous(), Armature()))
    moved = np.diagonal(mass_matrix(robot.with_effects(()), np.zeros((1, robot.n_dof)))[0])
    share = np.random.default_rng(seed).uniform(0.1, 1.0, len(moved))
    values = {f"Ia{k}": float(x) for k, x in enumerate(share * moved, 1)}
    return robot.with_parameters(values | {f"fv{k}": 0.3 for k in range(1, len(moved) + 1)})


def states_of(robot: Robot, n: int = 600, seed: int = 3) -> Samples:
    q, v, a = random_states_within_limits(robot, n, seed)
    return Samples(time=np.arange(float(n)), position=q, velocity=v, acceleration=a)


def least_by_cvxpy(robot: Robot, states: Samples) -> float:
    """Share of torque that lacks of the best consistent links with the same gravity."""
    q, v, a = states.position, states.velocity, states.acceleration
    rigid = robot.with_effects(())
    n = len(rigid.parameters)
    whole = inverse_dynamics(robot, q, v, a)
    size = np.sqrt((whole**2).mean(axis=0))
    rows = (torque_regressor(rigid, q, v, a) / size[:, None]).reshape(-1, n)
    rotors = np.array([robot.parameters[f"Ia{k}"] for k in range(1, robot.n_dof + 1)])
    target = (rotors * a / size).ravel()
    weight = torque_regressor(rigid, q, 0.0 * v, 0.0 * a).reshape(-1, n)
    _, values, directions = np.linalg.svd(weight)
    free = directions[(values > 1e-8 * values[0]).sum() :].T
    z = cvxpy.Variable(free.shape[1])
    phi = rigid.parameters.values + free @ z
    bodies = [sum(phi[10 * k + i] * PSEUDO_BASIS[i] for i in range(10)) >> 0.0 for k in range(n // 10)]
    R = np.linalg.qr(np.column_stack([rows @ free, target]), mode="r") / np.linalg.norm(target)
    misfit = R[:, :-1] @ z - R[:, -1]
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(misfit) + 1e-8 * cvxpy.sum_squares(z)), bodies).solve(solver="CLARABEL")
    return float(np.linalg.norm(misfit.value) * np.linalg.norm(target)) / np.sqrt(target.size)


@pytest.mark.parametrize("seed", range(4))
def test_what_lacks_is_the_least_that_consistent_links_with_the_same_gravity_can_lack(seed):
    robot = with_rotors(random_tree(seed, 3 + seed % 2), seed)
    states = states_of(robot)
    carrying, lacked, lacks = rotors_in_links(robot, [states])
    assert lacks < lacked
    assert lacks == pytest.approx(least_by_cvxpy(robot, states), rel=0.02, abs=1e-3)
    assert np.all(is_consistent(carrying.parameters.inertials))
    still = np.zeros_like(states.velocity)
    held = [inverse_dynamics(one, states.position, still, still, effects=False) for one in (robot, carrying)]
    np.testing.assert_allclose(held[1], held[0], atol=1e-8 * np.abs(held[0]).max(initial=1.0))


def test_figures_told_are_those_of_the_torque():
    robot = with_rotors(demo_arm())
    states = states_of(robot)
    carrying, lacked, lacks = rotors_in_links(robot, [states])
    motion = states.position, states.velocity, states.acceleration
    whole = inverse_dynamics(robot, *motion)
    without = robot.with_parameters({f"Ia{k}": 0.0 for k in range(1, robot.n_dof + 1)})
    for one, told in ((without, lacked), (carrying, lacks)):
        each = ((inverse_dynamics(one, *motion) - whole) ** 2).mean(axis=0) / (whole**2).mean(axis=0)
        assert np.sqrt(each.mean()) == pytest.approx(told, rel=1e-9)
    assert not any(carrying.parameters[f"Ia{k}"] for k in range(1, robot.n_dof + 1))
    assert carrying.parameters["fv1"] == robot.parameters["fv1"]


def table(tmp_path, *joints: str) -> Robot:
    """A chain of joints, each turned by a quarter against the one before it, of bodies that are alike."""
    lines = ['name = "chain"', "gravity = [0.0, 0.0, -9.81]", 'dh_convention = "modified"']
    for k, kind in enumerate(joints, 1):
        lines += ["[[joint]]", f'name = "j{k}"', f'type = "{kind}"', "a = 0.0", "d = 0.0"]
        lines.append(f"alpha = {np.pi / 2 if kind == 'prismatic' or k > 1 else 0.0}")
    (tmp_path / "chain.toml").write_text("\n".join(lines))
    robot = dynid.read_robot(tmp_path / "chain.toml", effects="armature")
    return robot.with_parameters(
        {f"{name}{k}": 2.0 if name == "m" else 0.1 for k in (1, 2) for name in ("m", "Ixx", "Iyy", "Izz")}
    )


def test_the_rotor_of_a_vertical_turn_becomes_inertia(tmp_path):
    robot = table(tmp_path, "revolute", "prismatic").with_parameters({"Ia1": 0.3})
    carrying, _, lacks = rotors_in_links(robot, [states_of(robot)])
    assert lacks < 1e-3
    turned = carrying.parameters["Izz1"] + carrying.parameters["Iyy2"]
    assert turned == pytest.approx(0.1 + 0.1 + 0.3, rel=1e-2)
    assert [carrying.parameters[f"m{k}"] for k in (1, 2)] == pytest.approx([2.0, 2.0], rel=1e-2)


def test_the_rotor_of_a_horizontal_rail_becomes_mass(tmp_path):
    robot = table(tmp_path, "prismatic", "revolute").with_parameters({"Ia1": 3.0})
    carrying, _, lacks = rotors_in_links(robot, [states_of(robot)])
    assert lacks < 1e-2
    assert carrying.parameters["m1"] + carrying.parameters["m2"] == pytest.approx(7.0, rel=1e-2)


def test_nothing_is_carried_without_rotors_or_by_links_that_cannot_be():
    arm = demo_arm()
    assert rotors_in_links(arm.with_effects(()), []) is None
    rotors = with_rotors(arm)
    assert rotors_in_links(rotors.with_parameters({"Ixx3": -1.0}), []) is None


def test_random_states_serve_where_there_is_no_log():
    found = rotors_in_links(with_rotors(demo_arm()), [])
    assert found is not None
    assert found[2] < found[1]


def test_links_of_a_delta_carry_rotors_and_its_empty_carriages_stay_empty():
    delta = dynid.read_robot(closed_robots.FOLDER / "delta_rl5.toml", "viscous,armature")
    q, v, a = closed_robots.feasible_motion(delta, 200)
    states = Samples(time=np.arange(200.0), position=q, velocity=v, acceleration=a)
    carrying, lacked, lacks = rotors_in_links(delta, [states])
    assert lacks < 0.5 * lacked
    empty = ~delta.parameters.inertials.any(axis=1)
    assert empty.any()
    assert not carrying.parameters.inertials[empty].any()
