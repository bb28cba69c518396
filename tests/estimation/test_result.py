"""What an estimate says about its own values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.result import confidence_interval, student_quantile
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from noisy_logs import exact_log, noisy_log, short_arm


def test_sigma_is_told_in_percent_unless_it_is_far_larger_than_the_value() -> None:
    arm = short_arm()
    base = reduce_to_base(arm)
    found = estimate(
        build_regression(arm, noisy_log(exact_log(), np.array([0.3, 0.6, 0.1]), seed=1)), base, OrdinaryLeastSquares()
    )
    values, origin = found.base_values.copy(), list(found.origin)
    values[0], values[1] = 0.0, 1e-12
    origin[2] = "prior"
    told = replace(found, base_values=values, origin=tuple(origin)).sigma_texts
    assert told[0] == f"± {found.sigma[0]:.2g}"
    assert told[1] == f"± {found.sigma[1]:.2g}"
    assert told[2] == "–"
    assert told[3] == f"{100.0 * found.sigma[3] / abs(values[3]):.2g} %"


@pytest.mark.parametrize("freedom", [1.0, 1.5, 2.0, 7.0, 30.0, 399.0, 1e4, 1e8, np.inf])
@pytest.mark.parametrize("level", [0.2, 0.5, 0.8, 0.95, 0.999])
def test_interval_has_students_quantile(freedom: float, level: float) -> None:
    low, high = confidence_interval(np.array([2.0]), np.array([0.5]), freedom, level)[0]
    half = 0.5 * t.ppf(0.5 + 0.5 * level, freedom)
    assert (low, high) == (pytest.approx(2.0 - half, rel=1e-9), pytest.approx(2.0 + half, rel=1e-9))


@pytest.mark.parametrize("freedom", [1.0, 7.5, 9.99, 10.0, 31.5, 199.0, 200.0, 1234.0, 1e9])
@pytest.mark.parametrize("probability", [0.9, 0.975, 0.9995])
def test_students_quantile_is_that_of_scipy(freedom: float, probability: float) -> None:
    assert student_quantile(freedom, probability) == pytest.approx(t.ppf(probability, freedom), rel=1e-9)


def test_any_number_of_rows_has_a_quantile() -> None:
    assert student_quantile(1e300, 0.975) == pytest.approx(1.959963984540054)
