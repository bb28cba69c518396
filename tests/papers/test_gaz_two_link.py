"""The spatial 2R robot of Gaz and others (2019), supplement V: constraints that are nonlinear and conditional.

Link 1 is a cylinder; link 2 a cylinder that ends in a truncated cone. Eight coefficients are known exactly; values of
Table VII, true ones and bounds. Coefficient 6 is printed with 0.8 for ``l2^2 = 0.64``, ``alpha1`` with ``c1y`` for ``c1z``.
"""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.joint_wrench import joint_wrenches
from dynid.estimation.constraints.bodies import CentreOfMassInSphere
from dynid.estimation.constraints.bounds import Bounds
from dynid.estimation.constraints.conditions import Condition
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.estimation.result import Outcome
from dynid.io.robots.dh import robot_from_table
from dynid.model.inertia import is_consistent, mass_com_inertia, phi_from_mass_com_inertia
from dynid.regression.base import BaseReduction, reduce_to_base
from published import gaz_bodies, tables

L1, L2, CONE, R1, R2, R3 = 1.5, 0.8, 0.2, 0.15, 0.08, 0.02
TRUE, P_HAT = (list(gaz_bodies(tables("gaz2019")["table_7"][key])) for key in ("p_real", "p_hat"))
COEFFICIENTS = [
    {"Iyy1": 1, "Iyy2": 1, "m2": -(L2**2)},
    {"Ixx2": 1, "Iyy2": -1, "m2": L2**2},
    {"Ixy2": 1},
    {"Ixz2": 1, "mz2": -L2},
    {"Iyz2": 1},
    {"Izz2": 1, "m2": -(L2**2)},
    {"m2": L2, "mx2": 1},
    {"my2": 1},
]
AXES = ("xx", "xy", "xz", "yy", "yz", "zz")
BOUNDS = Bounds(
    {
        "m1": (0.0, 10.0),
        "m2": (0.0, 5.0),
        "c1y": (-1.42, 0.08),
        "c2x": (-0.8, 0.0),
        "total_mass": (1.0, 15.0),
        **{f"I{i}{ab}": (0.0 if ab[0] == ab[1] else -1.0, 1.0) for i in (1, 2) for ab in AXES},
    }
)


def alpha1(p):
    """Inside the cylinder of link 1, along y."""
    return R1 - np.sqrt(p["c1x"] ** 2 + p["c1z"] ** 2)


def alpha2(p):
    """Inside the cylinder of link 2, along x, or inside its conical end."""
    radius = R2 if p["c2x"] < -CONE else R2 + (R3 - R2) / CONE * (CONE + p["c2x"])
    return radius - np.sqrt(p["c2y"] ** 2 + p["c2z"] ** 2)


def g_com1(p):
    return -min(0.0, alpha1(p))


def g_com2(p):
    return -min(0.0, alpha2(p))


CONDITIONS = (Condition("gCoM1", g_com1), Condition("gCoM2", g_com2))


@pytest.fixture(scope="module")
def robot():
    half = 0.5 * np.pi
    rows = [
        {"name": "joint1", "type": "revolute", "a": 0.0, "alpha": half, "d": L1, "theta_offset": 0.0},
        {"name": "joint2", "type": "revolute", "a": L2, "alpha": 0.0, "d": 0.0, "theta_offset": 0.0},
    ]
    table = {"name": "two_link", "gravity": [0.0, 0.0, -9.81], "dh_convention": "standard", "joint": rows}
    found = robot_from_table(table)
    return found.with_parameters(found.parameters.with_values(np.concatenate(TRUE)))


@pytest.fixture(scope="module")
def base(robot):
    names = robot.parameters.names
    K = np.array([[float(row.get(name, 0.0)) for name in names] for row in COEFFICIENTS])
    return BaseReduction.from_matrix(K, names)


@pytest.fixture(scope="module")
def motion():
    t = np.linspace(0.0, 10.0, 1001)[:, None]
    w, size = np.array([1.3, 2.1]), np.array([1.0, 0.8])
    return size * np.sin(w * t), size * w * np.cos(w * t), -size * w**2 * np.sin(w * t)


OUTSIDE = phi_from_mass_com_inertia(3.0, [-0.1, 0.2, 0.0], np.diag([0.01, 0.04, 0.04]))
"""A link 2 whose centre of mass lies outside it, beyond what a shift along its null space can mend."""


@pytest.fixture(scope="module")
def found(base):
    values = base.base_values(np.concatenate(TRUE))
    options = PenaltyRetrieval(cost="coefficients", bounds=BOUNDS, conditions=CONDITIONS)
    return options.retrieve(base, values)


def test_the_eight_coefficients_are_those_that_motion_shows(robot, base):
    ours = reduce_to_base(robot)
    assert ours.n_base == 8
    outside = base.K - np.linalg.lstsq(ours.K.T, base.K.T, rcond=None)[0].T @ ours.K
    assert np.abs(outside).max() < 1e-10


def test_all_constraints_hold(found):
    assert found.outcome is Outcome.SOLVED
    assert not found.violated
    mass, com, inertia = mass_com_inertia(found.bodies)
    assert 1.0 <= mass.sum() <= 15.0
    assert (mass <= [10.0, 5.0]).all()
    assert np.hypot(com[0, 0], com[0, 2]) <= R1
    x, radius = com[1, 0], np.hypot(com[1, 1], com[1, 2])
    assert radius <= (R2 if x < -CONE else R2 + (R3 - R2) / CONE * (CONE + x))
    assert -1.42 <= com[0, 1] <= 0.08
    assert -0.8 <= x <= 0.0
    assert np.abs(inertia).max() <= 1.0
    assert is_consistent(found.bodies, "full").all()


def test_coefficients_and_torque_are_the_true_ones(robot, base, motion, found):
    truth = base.base_values(np.concatenate(TRUE))
    np.testing.assert_allclose(found.base_values, truth, rtol=0.0, atol=1e-8)
    assert found.cost == pytest.approx(found.lower_bound, abs=1e-16)
    retrieved = robot.with_parameters(robot.parameters.with_values(found.standard))
    np.testing.assert_allclose(inverse_dynamics(retrieved, *motion), inverse_dynamics(robot, *motion), rtol=0.0, atol=1e-6)


def test_joint_forces_are_sane_only_with_feasible_parameters(robot, base, motion, found):
    true_force = np.linalg.norm(joint_wrenches(robot, *motion)[..., :3], axis=-1)
    force = np.linalg.norm(found.joint_wrenches(robot, *motion)[..., :3], axis=-1)
    # the coefficients show most of the mass of link 2; that of link 1 only the total bounds
    ratio = force.max(axis=0) / true_force.max(axis=0)
    assert 0.4 < ratio[0] < 1.0 / 0.4
    assert 0.75 < ratio[1] < 1.25
    # any of the solutions that nothing but the coefficients bounds: same torque, absurd forces
    start = np.random.default_rng(0).normal(scale=1e5, size=20)
    values = base.base_values(np.concatenate(TRUE))
    free = start + base.lift @ (values - base.K @ start)
    loose = robot.with_parameters(robot.parameters.with_values(free))
    torque = inverse_dynamics(robot, *motion)
    np.testing.assert_allclose(inverse_dynamics(loose, *motion), torque, rtol=0.0, atol=1e-5)
    absurd = np.linalg.norm(joint_wrenches(loose, *motion)[..., :3], axis=-1)
    assert (absurd.max(axis=0) > 1e3 * true_force.max(axis=0)).all()


def test_the_printed_set_has_the_true_coefficients_and_forces_of_their_size(robot, base, motion):
    """Table VII: p-hat to its five digits, and 0.77 and 1.21 times the largest true force in the joints."""
    np.testing.assert_allclose(base.base_values(np.concatenate(P_HAT)), base.base_values(np.concatenate(TRUE)), atol=2e-4)
    forces = [
        np.linalg.norm(
            joint_wrenches(robot.with_parameters(robot.parameters.with_values(np.concatenate(phi))), *motion)[..., :3],
            axis=-1,
        ).max(axis=0)
        for phi in (TRUE, P_HAT)
    ]
    np.testing.assert_allclose(forces[1] / forces[0], [0.773, 1.213], atol=2e-3)


@pytest.fixture(scope="module")
def outside(base):
    """Coefficients of a link 2 whose centre of mass is outside it, and what is found from them."""
    values = base.base_values(np.concatenate([TRUE[0], OUTSIDE]))
    return values, PenaltyRetrieval(cost="coefficients", bounds=BOUNDS, conditions=CONDITIONS).retrieve(base, values)


def test_conditions_that_bite(base, outside):
    """The nearest parameters inside lie on the surface of the link."""
    values, found = outside
    assert found.outcome is Outcome.SOLVED
    assert not found.violated
    assert found.details["exact_jacobians"]
    loose = PenaltyRetrieval(cost="coefficients", bounds=BOUNDS).retrieve(base, values)
    assert loose.cost <= found.lower_bound + 1e-12
    _, com, _ = mass_com_inertia(found.bodies)
    assert np.hypot(com[1, 1], com[1, 2]) == pytest.approx(R2, abs=1e-5)
    # my2 is 0.6 kg m, and 5 kg at most are at most 8 cm away from the axis
    assert found.cost == pytest.approx((0.6 - 5.0 * R2) ** 2, rel=1e-4)
    assert found.lower_bound < 1e-6
    # the vocabulary of convex constraints goes along with them
    ball = CentreOfMassInSphere(2, (-0.4, 0.0, 0.0), 0.3)
    inside = PenaltyRetrieval(cost="coefficients", bounds=BOUNDS, conditions=CONDITIONS, constraints=(ball,))
    assert not inside.retrieve(base, values).violated


@pytest.mark.slow
def test_the_papers_recipe_finds_nothing_better(base, outside):
    values, found = outside
    common = {"cost": "coefficients", "bounds": BOUNDS, "conditions": CONDITIONS}
    recipe = PenaltyRetrieval(**common, optimiser="annealing", starts=2, steps=3, iterations=20).retrieve(base, values)
    assert not recipe.violated
    assert found.cost <= 1.001 * recipe.cost
