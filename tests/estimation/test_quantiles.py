"""Student's quantiles against SciPy's."""

from __future__ import annotations

import pytest
from scipy.stats import t

from dynid.estimation.quantiles import student_quantile


@pytest.mark.parametrize("freedom", [1.0, 1.5, 2.0, 7.0, 30.0, 399.0, 400.0, 1e4, 1e8])
@pytest.mark.parametrize("probability", [0.025, 0.5, 0.6, 0.9, 0.975, 0.9995])
def test_quantile_equals_scipys(probability: float, freedom: float) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(t.ppf(probability, freedom), rel=1e-11, abs=1e-15)
