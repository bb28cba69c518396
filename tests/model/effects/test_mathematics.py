"""Dual numbers: their slopes against differences, and formulas whose arms are undefined somewhere."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.model.effects.mathematics import ARRAYS, DUALS, Dual, parts

X = np.array([-1.7, -0.4, 0.0, 0.3, 2.0])
FORMULAS = {
    "arithmetic": lambda m, x: 2.0 - x * x / (3.0 + x) + 1.0 / (4.0 - x) - (x - 1.0) * 0.5 + (-x) * x,
    "functions": lambda m, x: m.exp(x) + m.log(3.0 + x) + m.sin(x) * m.cos(2.0 * x) + m.tanh(x) + m.sqrt(2.0 + x),
    "powers": lambda m, x: (x + 3.0) ** 2.5 + 2.0**x + (x + 3.0) ** (x + 1.0) + (x * x + 1.0) ** 3,
    "kinks": lambda m, x: m.maximum(x, 0.1) * m.minimum(x, 0.2) + abs(x - 0.05) + m.sign(x + 0.1) * x,
    "arms": lambda m, x: m.where(x > 0.1, lambda: m.log(x), lambda: m.sqrt(1.0 - x)) + m.where(x < 9.0, x, lambda: 1 / 0),
    "comparisons": lambda m, x: m.where((x >= 0.3) | (x <= -1.0), x * x, 3.0) + m.where((x == 2.0) & (x != 1.0), 1.0, x),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_slopes_are_those_of_the_values(name):
    formula, h = FORMULAS[name], 1e-6
    with np.errstate(all="raise"):
        value, slopes = parts(formula(DUALS, Dual(X, {"x": 1.0})))
        np.testing.assert_allclose(value, formula(ARRAYS, X), rtol=1e-14)
        if name == "comparisons":
            np.testing.assert_allclose(slopes["x"], [2 * -1.7 + 1, 1.0, 1.0, 2 * 0.3 + 1, 4.0])
        else:
            numeric = (formula(ARRAYS, X + h) - formula(ARRAYS, X - h)) / (2.0 * h)
            np.testing.assert_allclose(slopes["x"], numeric, rtol=1e-7, atol=1e-8)


def test_several_quantities_at_once_and_none():
    width = np.array([0.5, 1.0, 2.0])
    value, slopes = parts(DUALS.tanh(Dual(X[:, None], {"v": 1.0}) / Dual(width, {"w": 1.0})))
    bell = 1.0 - value**2
    np.testing.assert_allclose(slopes["v"], bell / width)
    np.testing.assert_allclose(slopes["w"], -bell * X[:, None] / width**2)
    assert isinstance(DUALS.tanh(X), np.ndarray)  # what nothing changes carries no slope


def test_slopes_at_zero_are_finite():
    zero = Dual(np.zeros(2), {"x": 1.0})
    for steep in (DUALS.sqrt(zero), zero**0.5, zero ** np.array([0.5, 1.0])):
        assert np.isfinite(steep.slopes["x"]).all()
    np.testing.assert_array_equal((zero ** np.array([1.0, 2.0])).slopes["x"], [1.0, 0.0])


def test_functions_of_numpy_take_dual_numbers():
    """As a condition on parameters writes them; an array on the left of an operator as well."""

    def formula(x):
        angle = np.arctan2(x, 2.0 + X) + np.hypot(x, 1.0) - np.tan(0.3 * x)
        return X * x + np.float64(2.0) - x / np.exp(x) + np.abs(-x) ** 2 + angle

    value, slopes = parts(formula(Dual(X, {"x": 1.0})))
    np.testing.assert_allclose(value, formula(X), rtol=1e-14)
    h = 1e-6
    np.testing.assert_allclose(slopes["x"], (formula(X + h) - formula(X - h)) / (2.0 * h), rtol=1e-7, atol=1e-8)
    assert (Dual(X, {}) > X).tolist() == [False] * len(X)
    with pytest.raises(TypeError, match="Dual"):
        np.arcsinh(Dual(X, {"x": 1.0}))
