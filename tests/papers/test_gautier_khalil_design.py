"""Gautier and Khalil 1992: exciting motion of the three-joint arm through optimal points of the energy model."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.excitation.limits import limits_of, margins_of
from dynid.excitation.points import design_points, energy_rows_of
from dynid.regression.base import reduce_to_base
from dynid.robot.read import read_robot
from shared_data import shared

PUBLISHED_X = {  # base parameters of Table 6
    "ZZR1": 5.0186, "XXR2": -2.05, "XY2": 0.7, "XZR2": -1.07, "YZ2": 0.65, "ZZR2": 6.55, "MXR2": 4.3, "MY2": 0.6,
    "XXR3": 0.7634, "XY3": 0.6872, "XZ3": 0.55, "YZ3": -0.6, "ZZ3": 0.9646, "MX3": 0.528, "MY3": 1.14,
}  # fmt: skip


@pytest.fixture(scope="module")
def arm():
    return read_robot(shared("robots/gautier_khalil_3r.toml"), effects="none")


@pytest.fixture(scope="module")
def designs(arm):
    return {rows: design_points(arm, rows, lambda2=0.0, seed=0) for rows in (15, 30)}


def test_condition_numbers_below_those_of_table_2(designs):
    """Published optima: 53 with 15 rows, 11 with 30."""
    assert designs[30].W.shape == (30, 15)
    assert designs[30].condition_number <= 6.0
    assert designs[15].condition_number <= 10.0


@pytest.mark.parametrize("rows", [15, 30])
def test_the_interpolated_motion_respects_every_limit_and_reproduces_W(arm, designs, rows):
    design = designs[rows]
    assert margins_of(arm, design.trajectory, limits_of(arm), 200 * rows).smallest >= -1e-9
    q, v, _ = design.trajectory.evaluate(design.trajectory.knots_s[design.rows()])
    np.testing.assert_array_equal(energy_rows_of(arm, reduce_to_base(arm), q, v), design.W)
    q, v, _ = design.trajectory.evaluate([0.0, design.trajectory.duration_s])
    assert not q.any()
    assert not v.any()


def test_the_first_position_has_no_effect_and_is_random(designs):
    """155 variables for 31 points: the first axis is vertical (23b)."""
    assert designs[30].indifferent == ("joint1",)
    assert designs[30].position[:, 1:].size + designs[30].velocity.size == 155


def test_lambda2_drives_the_scaling(arm, designs):
    """S of about 175 with a condition number of 11 is published; the weight alone decides here."""
    scaled = design_points(arm, 30, lambda2=0.02, seed=0)
    assert scaled.scaling < 1e-3 * designs[30].scaling
    assert scaled.scaling < 1000.0
    assert scaled.condition_number < 20.0


def test_random_sequences_are_as_bad_as_printed(arm):
    """Table 2: means of 28,000 with 15 rows down to 420 with 500; the limits there are not printed, the fall is."""
    base = reduce_to_base(arm)
    rng = np.random.default_rng(0)
    means = {}
    for rows in (15, 30, 200):
        values = []
        for _ in range(10):
            q = rng.uniform(-np.pi, np.pi, (rows + 1, 3))
            v = rng.uniform(-2.0, 2.0, (rows + 1, 3))
            values.append(np.linalg.cond(energy_rows_of(arm, base, q, v)))
        means[rows] = np.mean(values)
    assert means[15] > 5.0 * means[30]
    assert means[30] > 1.2 * means[200]


def test_identification_with_noise_improves_as_in_tables_6_and_7(arm, designs):
    """Standard deviations of the base parameters with noise k = 0.01: a well conditioned W against a random one."""
    base = reduce_to_base(arm)
    rng = np.random.default_rng(1)
    X = np.array(list(PUBLISHED_X.values()))
    random_W = energy_rows_of(arm, base, rng.uniform(-np.pi, np.pi, (31, 3)), rng.uniform(-2.0, 2.0, (31, 3)))
    errors = {}
    for name, W in (("designed", designs[30].W), ("random", random_W)):
        Y = W @ X
        noise = 0.01 / 4.0 * np.abs(Y).max() * rng.normal(size=(200, len(Y)))
        found = np.linalg.lstsq(W, (Y + noise).T, rcond=None)[0].T
        errors[name] = np.linalg.norm(found - X, axis=1).mean() / np.linalg.norm(X)
        assert errors[name] <= np.linalg.cond(W) * np.linalg.norm(noise, axis=1).max() / np.linalg.norm(Y)
    assert errors["designed"] < 0.25 * errors["random"]
