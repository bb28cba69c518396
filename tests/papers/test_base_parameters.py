"""Published base parameters: Sousa and Cortesao 2014 (WAM), Gaz and others 2019 (Panda), Gautier and Khalil 1992, UR10e.

Combinations are written as their authors print them, but for sums over links: ``0.55 m_3:7`` is ``0.55 (m_3 + .. + m_7)``.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dynid.recording.samples import Samples
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.energy_rows import energy_regression, energy_regressor
from dynid.regression.factor import build_regression
from dynid.regression.independence import independent_columns
from dynid.regression.random_states import random_states
from dynid.regression.static import static_matrix
from dynid.regression.torque import inverse_dynamics, torque_regressor
from dynid.robot.dh import robot_from_table
from dynid.robot.read import DEFAULT_EFFECTS, chosen_effects, read_robot
from shared_data import shared

RIGHT = math.pi / 2


def dh_robot(name, convention, rows, effects=DEFAULT_EFFECTS, gravity=-9.81):
    """A robot from its rows of ``a, alpha, d``, all joints revolute."""
    joints = [
        {"name": f"joint{i + 1}", "type": "revolute", "a": a, "alpha": alpha, "d": d} for i, (a, alpha, d) in enumerate(rows)
    ]
    table = {"name": name, "gravity": [0.0, 0.0, gravity], "dh_convention": convention, "joint": joints}
    return robot_from_table(table).with_effects(chosen_effects(effects))


def terms(expression):
    """``{published name: coefficient}`` of a printed combination."""
    found: dict[str, float] = {}
    sign, factor = 1.0, 1.0
    for word in expression.replace("*", " ").split():
        if word in ("+", "-"):
            sign = 1.0 if word == "+" else -1.0
        elif word[0].isdigit():
            factor = float(word)
        else:
            stem, _, last = word.partition(":")
            first = int("".join(letter for letter in stem if letter.isdigit()))
            for link in range(first, int(last or first) + 1):
                found[stem.replace(str(first), str(link))] = sign * factor
            sign, factor = 1.0, 1.0
    return found


def published_matrix(rows, robot, rename):
    K = np.zeros((len(rows), len(robot.parameters)))
    for i, row in enumerate(rows):
        for name, coefficient in row.items():
            K[i, robot.parameters.index(rename(name))] = coefficient
    return K


def assert_same_combinations(base, K, tolerance):
    """Every published row is one of ours and every one of ours is published."""
    assert K.shape == base.K.shape
    matches = (np.abs(base.K[:, None] - K[None]).max(axis=2) <= tolerance).astype(int)
    unmatched = [base.expression(i) for i in np.flatnonzero(matches.sum(axis=1) != 1)]
    assert not unmatched
    assert (matches.sum(axis=0) == 1).all()


# Barrett WAM --------------------------------------------------------------------------------------------

# Table 2: a, alpha, d.
WAM = [
    (0.0, -RIGHT, 0.0),
    (0.0, RIGHT, 0.0),
    (0.045, -RIGHT, 0.55),
    (-0.045, RIGHT, 0.0),
    (0.0, -RIGHT, 0.3),
    (0.0, RIGHT, 0.0),
    (0.0, 0.0, 0.06),
]

# Table 3, beta_1 to beta_69.
WAM_COMBINATIONS = """
Ia_1 + L_1yy + L_2zz | fv_1 | fc_1 | fo_1
L_2xx - L_2zz + L_3zz - 1.1 l_3y + 0.300475 m_3:7 | L_2xy | L_2xz
Ia_2 + L_2yy + L_3zz - 1.1 l_3y + 0.300475 m_3:7 | L_2yz | l_2x | l_2z - l_3y + 0.55 m_3:7 | fv_2 | fc_2 | fo_2
L_3xx - L_3zz + L_4zz + 0.002025 m_3 | L_3xy - 0.045 l_3y | L_3xz
L_3yy + L_4zz - 0.002025 m_3 - 0.00405 m_4:7 | L_3yz | l_3x + 0.045 m_3:7 | l_3z + l_4y | Ia_3 | fv_3 | fc_3 | fo_3
L_4xx - L_4zz + L_5zz - 0.6 l_5y + 0.002025 m_4 + 0.092025 m_5:7 | L_4xy + 0.045 l_4y | L_4xz
L_4yy + L_5zz - 0.6 l_5y - 0.002025 m_4 + 0.087975 m_5:7 | L_4yz | l_4x - 0.045 m_4:7 | l_4z - l_5y + 0.3 m_5:7
Ia_4 | fv_4 | fc_4 | fo_4
L_5xx - L_5zz + L_6zz | L_5xy | L_5xz | L_5yy + L_6zz | L_5yz | l_5x | l_5z + l_6y | Ia_5 | fv_5 | fc_5 | fo_5
L_6xx - L_6zz + L_7yy + 0.12 l_7z + 0.0036 m_7 | L_6xy | L_6xz | L_6yy + L_7yy + 0.12 l_7z + 0.0036 m_7
L_6yz | l_6x | l_6z + l_7z + 0.06 m_7 | Ia_6 | fv_6 | fc_6 | fo_6
L_7xx - L_7yy | L_7xy | L_7xz | L_7yz | L_7zz | l_7x | l_7y | Ia_7 | fv_7 | fc_7 | fo_7
"""

# Table 5: a_1 .. a_5, b_1 .. b_5, q_0 of each joint; equations (78)-(80).
WAM_TRAJECTORY = np.array(
    [
        [0.05, -0.29, 0.48, 0.55, 0.65, 0.19, -0.40, -0.18, 0.63, -0.46, -0.29],
        [0.03, 0.29, -0.23, 0.32, 0.82, 0.09, -0.08, 0.05, -0.02, 0.65, 0.11],
        [-0.07, 0.40, 0.45, 0.40, -0.03, -0.49, 0.32, -0.26, -0.63, 0.06, -0.02],
        [0.14, -0.35, 0.15, 0.11, 0.93, -0.14, 0.06, -0.13, -0.14, -0.03, 1.67],
        [0.21, 0.35, 0.16, -0.02, 0.03, -0.51, 0.14, 0.37, -0.15, -0.17, -2.41],
        [-0.11, 0.28, 0.36, -0.06, 0.33, 0.13, 0.07, 0.67, -0.15, -0.22, 0.20],
        [-0.01, 0.24, 0.37, -0.45, 0.75, 0.24, 0.24, -0.22, -0.50, -0.52, 0.58],
    ]
)


def sousa_name(name):
    """``L_2xy -> Ixy2``, ``l_3y -> my3``, ``fv_1 -> fv1``."""
    symbol, rest = name.split("_")
    return {"L": "I", "l": "m"}.get(symbol, symbol) + rest[1:] + rest[0]


def fourier(a, b, q0, t, rate=0.1 * math.pi):
    """Position, velocity and acceleration of (78)."""
    w = rate * np.arange(1, a.shape[1] + 1)
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return s @ (a / w).T - c @ (b / w).T + q0, c @ a.T + s @ b.T, c @ (b * w).T - s @ (a * w).T


@pytest.fixture(scope="module")
def wam():
    return dh_robot("wam7", "standard", WAM)


@pytest.fixture(scope="module")
def wam_regressor(wam):
    """One period of 20 s at 100 Hz with the printed two-decimal coefficients."""
    a, b, q0 = WAM_TRAJECTORY[:, :5], WAM_TRAJECTORY[:, 5:10], WAM_TRAJECTORY[:, 10]
    return torque_regressor(wam, *fourier(a, b, q0, np.arange(2000) / 100.0)).reshape(-1, 98)


def test_wam_combinations_of_table_3(wam):
    rows = [terms(text) for line in WAM_COMBINATIONS.strip().splitlines() for text in line.split("|")]
    assert len(rows) == 69
    base = reduce_to_base(wam)
    assert (base.n_parameters, base.n_base) == (98, 69)
    assert_same_combinations(base, published_matrix(rows, wam, sousa_name), 1e-12)
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
    a, b, q0 = WAM_TRAJECTORY[:, :5], WAM_TRAJECTORY[:, 5:10], WAM_TRAJECTORY[:, 10]
    t = np.arange(2000) / 100.0
    samples = Samples(t, *fourier(a, b, q0, t), torque=np.ones((2000, 7)))
    base = reduce_to_base(wam)
    R = build_regression(wam, samples).triangle(base)[:, :-1]
    singular = np.linalg.svd(wam_regressor @ base.lift, compute_uv=False)
    np.testing.assert_allclose(np.linalg.svd(R, compute_uv=False), singular, rtol=1e-10)


def test_wam_table_3_and_6_as_published(wam):
    """The published term lists and, with the CAD inertials, the CAD column of Table 6."""
    table = json.loads(shared("tables/sousa2014_table3_table6.json").read_text())["rows"]
    robot = read_robot(shared("robots/wam7.toml"))
    base = reduce_to_base(robot)
    K = published_matrix([row["terms"] for row in table], robot, sousa_name)
    assert_same_combinations(base, K, 1e-12)
    written = BaseReduction.from_matrix(K, robot.parameters.names)
    values = written.base_values(robot.parameters)  # no rotor inertia and no friction in the CAD model
    compared = 0
    for row, value in zip(table, values, strict=True):
        if row["cad"] is not None:
            # CAD masses and centres are printed with eight decimals
            assert value == pytest.approx(row["cad"], abs=2e-8)
            compared += 1
    assert compared == 69 - 7 * 3 - 5  # all but friction and the rotors that stand alone


def test_wam_full_precision_trajectory(wam):
    record = json.loads(shared("wam7/fourier.json").read_text())["trajectories"]["traj1"]
    a, b, q0 = (np.array(record[key]) for key in ("a", "b", "q0"))
    np.testing.assert_array_equal(np.round(np.hstack([a, b, q0[:, None]]), 2), WAM_TRAJECTORY)
    W = torque_regressor(wam, *fourier(a, b, q0, np.arange(2000) / 100.0)).reshape(-1, 98)
    assert np.linalg.cond(W @ reduce_to_base(wam).lift) == pytest.approx(95.8, abs=0.1)


# Franka Emika Panda ---------------------------------------------------------------------------------------

# a, alpha, d; modified.
PANDA = [
    (0.0, 0.0, 0.333),
    (0.0, -RIGHT, 0.0),
    (0.0, RIGHT, 0.316),
    (0.0825, RIGHT, 0.0),
    (-0.0825, -RIGHT, 0.384),
    (0.0, RIGHT, 0.0),
    (0.088, RIGHT, 0.0),
]

# Table III of the supplement, pi_1 to pi_43. (It prints m_3 twice in the second row; the authors' code has it once.)
PANDA_COMBINATIONS = """
J2yy + J1zz | J2xx - J2yy + J3yy + 0.099856 m3 + 0.632 mc3z + 0.10666225 m4:7 | J2xy | J2xz | J2yz
J3yy + J2zz + 0.099856 m3 + 0.632 mc3z + 0.10666225 m4:7
J3xx - J3yy + J4yy - 0.00680625 m4 | J3xy + 0.0825 mc4z | J3xz | J3yz
J4yy + J3zz + 0.00680625 m4 + 0.0136125 m5:7
J4xx - J4yy + J5yy + 0.768 mc5z + 0.14064975 m5:7 | J4xy + 0.03168 m5:7 + 0.0825 mc5z | J4xz | J4yz
J5yy + J4zz + 0.15426225 m5:7 + 0.768 mc5z
J5xx - J5yy + J6yy + 0.007744 m7 | J5xy | J5xz | J5yz | J6yy + J5zz + 0.007744 m7
J6xx - J6yy + J7yy - 0.007744 m7 | J6xy + 0.088 mc7z | J6xz | J6yz | J7yy + J6zz + 0.007744 m7
J7xx - J7yy | J7xy | J7xz | J7yz | J7zz
mc2x | mc2y - 0.316 m3:7 - mc3z | 0.0825 m4:7 + mc3x | mc3y - mc4z
mc4x - 0.0825 m5:7 | 0.384 m5:7 + mc4y + mc5z | mc5x | mc5y - mc6z | 0.088 m7 + mc6x | mc6y - mc7z | mc7x | mc7y
"""


def gaz_name(name):
    """``J2xy -> Ixy2``, ``mc3z -> mz3``."""
    if name.startswith("J"):
        return f"I{name[2:]}{name[1]}"
    return f"m{name[3:]}{name[2]}" if name.startswith("mc") else name


def test_panda_combinations_of_table_iii():
    panda = dh_robot("panda", "modified", PANDA, effects="none", gravity=-9.80665)
    rows = [terms(text) for line in PANDA_COMBINATIONS.strip().splitlines() for text in line.split("|")]
    assert len(rows) == 43
    base = reduce_to_base(panda)
    assert (base.n_parameters, base.n_base) == (70, 43)
    assert_same_combinations(base, published_matrix(rows, panda, gaz_name), 1e-12)


@pytest.mark.parametrize("file", ["panda_gaz/robot.toml", "panda_gaz/robot.urdf"])
def test_panda_published_terms_from_dh_and_from_urdf(file):
    robot = read_robot(shared(file), effects="none")
    rows = json.loads(shared("panda_gaz/expected.json").read_text())["coefficients"]
    base = reduce_to_base(robot)
    assert_same_combinations(base, published_matrix([row["terms"] for row in rows], robot, gaz_name), 1e-9)


def test_panda_friction_and_rotors_add_their_own():
    """Three friction columns a joint, and rotors at all joints but the first two, which a link's inertia hides."""
    assert reduce_to_base(dh_robot("panda", "modified", PANDA, effects="viscous,coulomb,offset")).n_base == 43 + 21
    assert reduce_to_base(dh_robot("panda", "modified", PANDA, effects="armature")).n_base == 43 + 5


def test_panda_reverse_engineering():
    """Condition number 48.9 over 1010 poses, and the seven published digits of the coefficients."""
    import polars

    robot = read_robot(shared("panda_gaz/robot.toml"), effects="none")
    poses = polars.read_parquet(shared("panda_gaz/static_mg.parquet"))
    q, g = (poses.select([f"{x}{i}" for i in range(1, 8)]).to_numpy() for x in "qg")
    M = np.zeros((len(q), 7, 7))
    for i in range(7):
        for j in range(i + 1):
            M[:, i, j] = M[:, j, i] = poses[f"M{i + 1}{j + 1}"].to_numpy()
    stack = static_matrix(robot, q, M, g)
    assert len(stack) == 1010 * (28 + 6)  # gravity of the vertical first joint says nothing
    base = reduce_to_base(robot)
    W, y = stack[:, :-1] @ base.lift, stack[:, -1]
    assert np.linalg.cond(W) == pytest.approx(48.906, abs=0.001)
    beta = np.linalg.lstsq(W, y)[0]
    assert 100.0 * np.linalg.norm(W @ beta - y) / np.linalg.norm(y) == pytest.approx(0.0011, abs=0.0001)
    rows = json.loads(shared("panda_gaz/expected.json").read_text())["coefficients"]
    K = published_matrix([row["terms"] for row in rows], robot, gaz_name)
    in_table_order = (K @ base.lift) @ beta
    compared = [(value, row["pi_RE_7digits"]) for value, row in zip(in_table_order, rows, strict=True)]
    digits = np.array([pair for pair in compared if pair[1] is not None])
    assert len(digits) >= 41
    assert np.abs(digits[:, 0] - digits[:, 1]).max() < 5e-7


# Gautier and Khalil -----------------------------------------------------------------------------------------

# Table 1: d, alpha, r.
GAUTIER_KHALIL = [(0.0, 0.0, 0.0), (0.0, -RIGHT, 0.0), (0.5, 0.0, 0.2)]
# Values of the fifteen base parameters; R marks those regrouped with others.
GAUTIER_KHALIL_VALUES = {
    "ZZR1": 5.0186,
    "XXR2": -2.05,
    "XY2": 0.7,
    "XZR2": -1.07,
    "YZ2": 0.65,
    "ZZR2": 6.55,
    "MXR2": 4.3,
    "MY2": 0.6,
    "XXR3": 0.7634,
    "XY3": 0.6872,
    "XZ3": 0.55,
    "YZ3": -0.6,
    "ZZ3": 0.9646,
    "MX3": 0.528,
    "MY3": 1.14,
}


def khalil_name(name):
    symbol, number = name[:2], name[-1]
    return ("m" + symbol[1].lower() if symbol[0] == "M" else "I" + symbol.lower()) + number


@pytest.fixture(scope="module")
def three_joint_arm():
    return dh_robot("gautier_khalil", "modified", GAUTIER_KHALIL, effects="none")


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


def test_gautier_khalil_geometry_is_the_shared_one(three_joint_arm):
    robot = read_robot(shared("robots/gautier_khalil_3r.toml"), effects="none")
    np.testing.assert_allclose(reduce_to_base(robot).K, reduce_to_base(three_joint_arm).K, atol=1e-12)


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


@pytest.mark.parametrize(("effects", "standard", "base"), [("armature", 66, 40), ("none", 60, 36)])
def test_ur10e_counts_from_its_urdf(effects, standard, base):
    found = reduce_to_base(read_robot(shared("ur10e_mamedov/robot.urdf"), effects=effects))
    assert (found.n_parameters, found.n_base) == (standard, base)
