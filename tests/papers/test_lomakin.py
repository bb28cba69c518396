"""Lomakin and Deutscher 2020, Table I: a delta robot by filtered signals, by polynomial approximation, and recursively.

The measurements are not public. What can be checked: the recursion gives the batch values to the last printed digit, the
windows of both filters are equally long, the delay is that of our own approximation, and the size of what a Savitzky-Golay
filter does to friction and inertia.
"""

from __future__ import annotations

import numpy as np
import pytest

from dynid.signals.polynomial_kernels import PolynomialApproximation
from published import tables

TABLES = tables("lomakin2020")
SAVGOL, BATCH, RECURSIVE = np.array(list(TABLES["table_1"].values())).T
NAMES = list(TABLES["table_1"])


def of(symbol: str) -> list[int]:
    return [k for k, name in enumerate(NAMES) if name.rstrip("1234") == symbol]


def test_recursive_least_squares_gives_the_batch_values() -> None:
    assert len(NAMES) == 13
    np.testing.assert_array_equal(RECURSIVE, BATCH)


def test_both_filters_look_at_equally_many_samples() -> None:
    window = TABLES["polynomial_approximation"]["window_s"]
    assert window / TABLES["sample_time_s"] == pytest.approx(TABLES["savitzky_golay"]["window"])


def test_the_printed_delay_tells_the_exponents_that_are_not_printed() -> None:
    """14.7 ms of a window of 44 ms: of all equal whole exponents only alpha = beta = 3 put a zero there."""
    printed = TABLES["polynomial_approximation"]
    fitting = [
        k
        for k in range(1, 12)
        if PolynomialApproximation(
            window_s=printed["window_s"], order=printed["order"], product_order=printed["product_order"], alpha=k, beta=k
        ).delay_s
        == pytest.approx(printed["delay_s"], abs=5e-5)
    ]
    assert fitting == [3]


def test_parameters_that_physics_wants_positive_are() -> None:
    assert (np.array([SAVGOL, BATCH]) > 0.0).all()


def test_filtered_signals_trade_dry_friction_for_viscous_friction_and_lose_inertia() -> None:
    """Savitzky-Golay against polynomial approximation: less dry friction, more viscous, less inertia, at all three drives."""
    change = SAVGOL / BATCH - 1.0
    assert ((change[of("c_fc")] > -0.10) & (change[of("c_fc")] < -0.06)).all()
    assert ((change[of("c_fv")] > 0.10) & (change[of("c_fv")] < 0.17)).all()
    assert ((change[of("J")] > -0.04) & (change[of("J")] < -0.02)).all()
    assert change[of("m")] == pytest.approx(-0.045, abs=1e-3)
