"""A step within bounds against SciPy, and scores of independent rows against their plain sum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dynid.estimation.shooting import add_scores, bounded_solution


def test_the_step_is_the_bounded_minimum() -> None:
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(20, 3)), rng.normal(size=20)
    low, high = np.full(3, -0.05), np.full(3, 0.2)
    found = bounded_solution(A, b, low, high)
    other = minimize(lambda x: np.sum((A @ x + b) ** 2), np.zeros(3), bounds=list(zip(low, high, strict=True)), tol=1e-14)
    assert found == pytest.approx(other.x, abs=1e-4)


def test_rows_that_repeat_count_once() -> None:
    """Errors that stay the same for five rows hold a fifth of the information."""
    rng = np.random.default_rng(2)
    r = np.repeat(rng.normal(size=400), 5)[:, None]
    J = np.ones((2000, 1, 1))
    white, meat = np.zeros((2, 1, 1))
    add_scores(J, r, 10, white, meat)
    assert meat[0, 0] / white[0, 0] == pytest.approx(4.3, rel=0.25)
