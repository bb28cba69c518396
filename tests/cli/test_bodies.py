"""Bodies on the terminal."""

from __future__ import annotations

import numpy as np

from dynid.cli.bodies import body_lines, numbers_text
from dynid.estimation.body import estimate_body
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.parameters import INERTIAL_SYMBOLS
from dynid.regression.factor import matrix_regression
from dynid.regression.wrench_rows import wrench_parameters


def test_numbers_stand_in_a_row() -> None:
    assert numbers_text(np.array([1.0, -0.25, 3.14159]), 2) == "1.00, -0.25, 3.14"


def test_mass_centre_and_inertia_with_intervals() -> None:
    rng = np.random.default_rng(0)
    phi = phi_from_mass_com_inertia(2.0, np.array([0.0, 0.0, 0.1]), 0.01 * np.eye(3))
    Y = rng.normal(size=(200, 10))
    rows = np.column_stack([Y, Y @ phi + 1e-4 * rng.normal(size=200)])
    (body,) = estimate_body(matrix_regression(wrench_parameters(offsets=False), ("fx",), [rows]), ("ols",))
    told = "\n".join(body_lines(body))
    assert "mass 2.00" in told
    assert "physically consistent: yes" in told
    assert told.count("inertia about it") == 3
    assert not any(f"not determined by these data: {name}" in told for name in INERTIAL_SYMBOLS)
