"""Sousa and Cortesao 2014, Table 1: two base parameter vectors of a three-link arm (Yoshida and Khalil 2000).

The LMI margin is the paper's 1e-6, absolute: a grouping without a robot has no link sizes to be relative to.
"""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimation.consistency.correction import closest_feasible
from dynid.estimation.consistency.feasibility import feasibility
from dynid.model.inertia import is_consistent
from dynid.regression.base import BaseReduction

# expression, beta_t1, beta_t2, corrected beta_t2, as printed
ROWS = [
    ({"L1yy": 1, "L2yy": 1, "L3yy": 1, "m3": 1}, 6.4, 6.2, 6.200951),
    ({"L2xx": 1, "L2yy": -1, "m3": -1}, -5.48, -5.48, -5.479049),
    ({"L2xy": 1}, 0.072, 0.072, 0.071966),
    ({"L2xz": 1, "l3z": -1}, -0.087, -0.087, -0.086967),
    ({"L2yz": 1}, 0.051, 0.051, 0.050999),
    ({"L2zz": 1, "m3": 1}, 5.6, 5.6, 5.600000),
    ({"l2x": 1, "m3": 1}, 6.5, 6.5, 6.500000),
    ({"l2y": 1}, -0.00075, -0.00075, -0.000750),
    ({"L3xx": 1, "L3yy": -1}, -0.72, -0.72, -0.719049),
    ({"L3xy": 1}, -0.0098, -0.0098, -0.009819),
    ({"L3xz": 1}, -0.0098, -0.0098, -0.009817),
    ({"L3yz": 1}, -0.00045, -0.00045, -0.000450),
    ({"L3zz": 1}, 0.72, 0.72, 0.720000),
    ({"l3x": 1}, 0.95, 0.95, 0.949999),
    ({"l3y": 1}, 0.015, 0.015, 0.014966),
]
T1, T2, T2_CORRECTED = (np.array([row[i] for row in ROWS]) for i in (1, 2, 3))


@pytest.fixture(scope="module")
def base() -> BaseReduction:
    names = sorted({name for row in ROWS for name in row[0]})
    K = [[float(row[0].get(name, 0.0)) for name in names] for row in ROWS]
    return BaseReduction.from_matrix(K, names)


def test_first_vector_is_feasible_under_the_plain_condition(base):
    found = feasibility(base, T1, condition="plain", margin=1e-6)
    assert found.feasible
    assert found.min_eigenvalue == pytest.approx(0.066, abs=5e-4)
    assert base.base_values(found.certificate) == pytest.approx(T1, abs=1e-9)
    assert is_consistent(found.bodies, "plain", margin=0.9e-6, absolute=True).all()


def test_second_vector_is_not_and_a_direction_proves_it(base):
    found = feasibility(base, T2, condition="plain", margin=1e-6)
    assert not found.feasible
    assert found.min_eigenvalue == pytest.approx(-9.5e-4, abs=1e-5)
    direction = found.certificate
    assert direction @ T2 < found.bound - 1e-3
    assert found.direction_error < 1e-6
    # every feasible vector lies on the other side: the first one, the corrected one, random ones
    assert direction @ T1 >= found.bound
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert direction @ _random_feasible(base, rng) >= found.bound


def test_correction_of_the_second_vector(base):
    found = closest_feasible(base, T2, condition="plain", margin=1e-6)
    assert not found.feasible_before
    assert found.distance == pytest.approx(1.651e-3, abs=1e-5)
    assert found.base == pytest.approx(T2_CORRECTED, abs=5e-6)
    assert np.linalg.norm(found.base - T2) == pytest.approx(found.distance, rel=1e-9)
    # "As expected, beta'_t2 passes the BPFT feasibility test"
    assert feasibility(base, found.base, condition="plain", margin=1e-6).feasible
    assert closest_feasible(base, T1, condition="plain", margin=1e-6).distance == 0.0


@pytest.mark.parametrize(("beta", "distance", "tolerance"), [(T1, 1.9e-4, 5e-6), (T2, 5.64e-2, 5e-5)])
def test_neither_vector_is_feasible_under_the_full_condition(base, beta, distance, tolerance):
    assert not feasibility(base, beta, condition="full", margin=1e-6).feasible
    found = closest_feasible(base, beta, condition="full", margin=1e-6)
    assert found.distance == pytest.approx(distance, abs=tolerance)
    assert feasibility(base, found.base, condition="full", margin=1e-6).feasible
    assert is_consistent(found.bodies, "full").all()


def test_correction_depends_on_the_grouping_and_the_test_does_not(base):
    """Another grouping of the same parameters moves the full-condition correction of t2 from 0.0564 to 0.0691."""
    G = np.eye(15)
    G[0, 1] = G[5, 6] = 1.0
    other = BaseReduction.from_matrix(G @ base.K, base.parameter_names)
    for beta in (T1, T2):
        for condition in ("plain", "full"):
            here = feasibility(base, beta, condition=condition)
            there = feasibility(other, G @ beta, condition=condition)
            assert here.feasible == there.feasible
            assert here.min_eigenvalue == pytest.approx(there.min_eigenvalue, rel=1e-2, abs=1e-6)
    moved = np.linalg.solve(G, closest_feasible(other, G @ T2).base)
    assert np.linalg.norm(moved - closest_feasible(base, T2).base) > 1e-3


def _random_feasible(base: BaseReduction, rng: np.random.Generator) -> np.ndarray:
    """Base values of random consistent bodies, printed names and order."""
    from dynid.model.parameters import canonical_name
    from problems import random_phi

    values = {}
    symbols = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    for number in (1, 2, 3):
        values |= {f"{s}{number}": v for s, v in zip(symbols, random_phi(rng).tolist(), strict=True)}
    return base.base_values([values[canonical_name(name)] for name in base.parameter_names])
