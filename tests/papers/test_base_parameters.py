"""Published base parameters: Sousa and Cortesao 2014 (WAM), Gaz and others 2019 (Panda), Gautier and Khalil 1992, UR10e."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states
from dynid.dynamics.regressors import energy_regressor, torque_regressor
from dynid.io.robots.dh import robot_from_table
from dynid.io.robots.read import DEFAULT_EFFECTS, chosen_effects
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.channels import independent_columns
from dynid.regression.energy_rows import energy_regression
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples
from published import (
    columns,
    combination_matrix,
    combinations,
    fourier,
    gaz_name,
    khalil_name,
    published_robot,
    sousa_name,
    tables,
    wam_motion,
)

RIGHT = math.pi / 2


def dh_robot(name, convention, rows, effects=DEFAULT_EFFECTS, gravity=-9.81):
    """A robot from its rows of ``a, alpha, d``, all joints revolute."""
    joints = [
        {"name": f"joint{i + 1}", "type": "revolute", "a": a, "alpha": alpha, "d": d} for i, (a, alpha, d) in enumerate(rows)
    ]
    table = {"name": name, "gravity": [0.0, 0.0, gravity], "dh_convention": convention, "joint": joints}
    return robot_from_table(table).with_effects(chosen_effects(effects))


def assert_same_combinations(base, K, tolerance):
    """Every published row is one of ours and every one of ours is published."""
    assert K.shape == base.K.shape
    matches = (np.abs(base.K[:, None] - K[None]).max(axis=2) <= tolerance).astype(int)
    unmatched = [base.expression(i) for i in np.flatnonzero(matches.sum(axis=1) != 1)]
    assert not unmatched
    assert (matches.sum(axis=0) == 1).all()


# Barrett WAM --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wam():
    return published_robot("wam7", DEFAULT_EFFECTS)


@pytest.fixture(scope="module")
def wam_regressor(wam):
    """One period of 20 s at 100 Hz with the printed two-decimal coefficients."""
    return torque_regressor(wam, *wam_motion(np.arange(2000) / 100.0)).reshape(-1, 98)


def test_wam_combinations_of_table_3(wam):
    rows = combinations(tables("sousa2014")["combinations"])
    assert len(rows) == 69
    base = reduce_to_base(wam)
    assert (base.n_parameters, base.n_base) == (98, 69)
    assert_same_combinations(base, combination_matrix(rows, wam.parameters.names, sousa_name), 1e-12)
    # in the order of the table but for Ia_1 and Ia_2, which are grouped with an inertia
    leading = [sousa_name(next(iter(row))) for row in rows]
    leading[0], leading[7] = "Iyy1", "Iyy2"
    assert list(base.names) == leading


def test_wam_condition_number_of_table_5(wam, wam_regressor):
    base = reduce_to_base(wam)
    W = wam_regressor @ base.lift
    assert np.linalg.cond(W) == pytest.approx(96.7, abs=0.3)
    assert np.linalg.cond(W / np.linalg.norm(W, axis=0)) == pytest.approx(18.3, abs=0.05)


def test_wam_condition_number_depends_on_the_grouping(wam, wam_regressor):
    other = reduce_to_base(wam, order=wam.parameters.names)
    assert other.n_base == 69
    assert np.linalg.cond(wam_regressor @ other.lift) == pytest.approx(21_643, rel=1e-3)


def test_wam_condition_number_from_the_triangle(wam, wam_regressor):
    """The small triangle has the singular values of the 14,000 x 69 regressor."""
    t = np.arange(2000) / 100.0
    samples = Samples(t, *wam_motion(t), torque=np.ones((2000, 7)))
    base = reduce_to_base(wam)
    R = build_regression(wam, samples).triangle(base)[:, :-1]
    singular = np.linalg.svd(wam_regressor @ base.lift, compute_uv=False)
    np.testing.assert_allclose(np.linalg.svd(R, compute_uv=False), singular, rtol=1e-10)


def test_wam_links_have_the_cad_column_of_table_6(wam):
    """The file's bodies were computed from these values: every legible digit comes back through the combinations of Table 3."""
    table = tables("sousa2014")
    cad = columns(table["table_6"])[0]
    K = combination_matrix(combinations(table["combinations"]), wam.parameters.names, sousa_name)
    values = BaseReduction.from_matrix(K, wam.parameters.names).base_values(wam.parameters)  # no rotors, no friction
    legible = np.isfinite(cad)
    assert legible.sum() == 24
    np.testing.assert_allclose(values[legible], cad[legible], rtol=5e-5)


# Values of the other three columns are of the recorded motion; what they say of each other is in test_sousa_wam.py.


# Franka Emika Panda ---------------------------------------------------------------------------------------


def test_panda_combinations_of_table_iii():
    """(Table III prints ``m3`` twice in the second row; the regressor has it once.)"""
    panda = published_robot("panda")
    rows = combinations(tables("gaz2019")["table_3"]["combinations"])
    assert len(rows) == 43
    base = reduce_to_base(panda)
    assert (base.n_parameters, base.n_base) == (70, 43)
    assert_same_combinations(base, combination_matrix(rows, panda.parameters.names, gaz_name), 1e-12)


def test_panda_friction_and_rotors_add_their_own():
    """Three friction columns a joint, and rotors at all joints but the first two, which a link's inertia hides."""
    assert reduce_to_base(published_robot("panda", "viscous,coulomb,offset")).n_base == 43 + 21
    assert reduce_to_base(published_robot("panda", "armature")).n_base == 43 + 5


# Gautier and Khalil -----------------------------------------------------------------------------------------

# The fifteen base parameters of Table 6; R marks those regrouped with others.
GAUTIER_KHALIL_VALUES = {
    name: row[0] for name, row in tables("gautier_khalil1992")["table_6"].items() if isinstance(row, list)
}


@pytest.fixture(scope="module")
def three_joint_arm():
    return published_robot("gautier_khalil_3r")


def test_gautier_khalil_arm_from_torque(three_joint_arm):
    base = reduce_to_base(three_joint_arm)
    assert base.n_base == 15
    assert base.names == tuple(khalil_name(name) for name in GAUTIER_KHALIL_VALUES)
    grouped = {name for name, row in zip(base.names, base.K, strict=True) if np.count_nonzero(row) > 1}
    assert grouped == {khalil_name(name) for name in GAUTIER_KHALIL_VALUES if "R" in name}
    # closed-form regrouping for d3 = 0.5, r3 = 0.2
    assert base.expression(base.index("Izz1")) == "Izz1 + Iyy2 + 0.29 m3 + 0.4 mz3 + Iyy3"
    assert base.expression(base.index("Ixx2")) == "Ixx2 - Iyy2 - 0.25 m3"
    assert base.expression(base.index("Ixz2")) == "Ixz2 - 0.1 m3 - 0.5 mz3"
    assert base.expression(base.index("mx2")) == "mx2 + 0.5 m3"


def test_gautier_khalil_arm_from_energy(three_joint_arm):
    base = reduce_to_base(three_joint_arm)
    q, v, _, _ = random_states(three_joint_arm, 200)
    h = energy_regressor(three_joint_arm, q, v)
    found = independent_columns(h[1:] - h[:-1], three_joint_arm.parameters.grouping())
    np.testing.assert_array_equal(found.kept, base.independent)
    np.testing.assert_allclose(found.K, base.K, rtol=0, atol=1e-12)


def test_gautier_khalil_values_come_back_from_the_energy_model(three_joint_arm):
    """Equations (7)-(10): work over intervals against differences of energy."""
    values = {khalil_name(name): value for name, value in GAUTIER_KHALIL_VALUES.items()}
    robot = three_joint_arm.with_parameters(values)
    base = reduce_to_base(robot)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-0.6, 0.6, (2, 3, 4))
    t = np.arange(40_001) / 2000.0
    q, v, acceleration = fourier(a, b, rng.uniform(-1.0, 1.0, 3), t, rate=1.3)
    samples = Samples(t, q, v, acceleration, torque=inverse_dynamics(robot, q, v, acceleration))
    R = energy_regression(robot, samples).triangle(base)
    beta, _, rank, _ = np.linalg.lstsq(R[:, :-1], R[:, -1])
    assert rank == 15
    np.testing.assert_allclose(beta, list(GAUTIER_KHALIL_VALUES.values()), rtol=0, atol=1e-4)


# UR10e --------------------------------------------------------------------------------------------------------

# The maker's table: a, alpha, d; standard.
UR10E = [
    (0.0, RIGHT, 0.1807),
    (-0.6127, 0.0, 0.0),
    (-0.57155, 0.0, 0.0),
    (0.0, RIGHT, 0.17415),
    (0.0, -RIGHT, 0.11985),
    (0.0, 0.0, 0.11655),
]


@pytest.mark.parametrize(
    ("effects", "standard", "base"), [("armature", 66, 40), ("none", 60, 36), (DEFAULT_EFFECTS, 84, 58)]
)
def test_ur10e_counts(effects, standard, base):
    found = reduce_to_base(dh_robot("ur10e", "standard", UR10E, effects))
    assert (found.n_parameters, found.n_base) == (standard, base)
