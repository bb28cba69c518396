"""Expressions that become code: folded, shared, written in operators."""

from __future__ import annotations

import pytest

from dynid.io.code.expressions import Dialect, Graph, straight_line


def test_expressions_fold_and_are_shared():
    g = Graph()
    x, y = g.input("x"), g.input("y")
    zero, one = g.constant(0.0), g.constant(1.0)
    assert 0.0 * x is zero
    assert x * 1.0 is x
    assert x + y is y + x
    assert x - x is zero
    assert x + -y is x - y
    assert -x * -y is x * y
    assert -1.0 * x is -x
    assert -(x - y) is y - x
    assert g.cos(0.0).value == 1.0
    assert g.where(zero < one, x, y) is x
    assert (one == 1.0).value == 1.0
    assert (one != 1.0).value == 0.0
    assert (zero | one).value == 1.0
    twice = x * y + x * y * x
    assert straight_line({"out": twice}, Dialect()) == ["const double t0 = x * y;", "out = t0 + x * t0;"]
    difference = x - (y - (x + one))
    assert straight_line({"out": difference}, Dialect()) == ["out = x - (y - (1.0 + x));"]


def test_operators_are_those_of_numbers():
    g = Graph()
    x = g.input("x")
    assert 2.0 * x + 1.0 is 1.0 + x * g.constant(2.0)
    assert x**2 is x * x
    assert (g.constant(3.0) - 1.0) / 4.0 is g.constant(0.5)
    assert straight_line({"out": abs(x) ** 0.5}, Dialect()) == ["out = pow(fabs(x), 0.5);"]
    assert straight_line({"out": 2.0**x}, Dialect()) == ["out = pow(2.0, x);"]
    assert straight_line({"out": 1.0 / x}, Dialect()) == ["out = 1.0 / x;"]


def test_an_arm_that_is_known_not_to_be_chosen_is_not_made():
    m = Graph()
    x = m.input("x")
    assert m.where(m.constant(1.0) > 0.0, x, lambda: pytest.fail("made")) is x
    assert straight_line({"out": m.where((x > 0.0) & (x <= 1.0), x, 0.0)}, Dialect()) == [
        "out = (0.0 < x && x <= 1.0) ? x : 0.0;"
    ]
