"""Criteria: their values from singular values, their gradients against central differences, their limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.criteria import (
    Criterion,
    Mix,
    PivotedCondition,
    Scaling,
    SpectralCriterion,
    condition_number,
    criterion_from,
    of_scaled_columns,
)
from messages import facts

CONDITION, LOGDET, SMALLEST = (SpectralCriterion(name) for name in ("condition", "logdet", "smallest"))
TRACE, FROBENIUS = criterion_from("trace"), criterion_from("frobenius")


@dataclass(frozen=True)
class ScaledColumns(Criterion):
    """A criterion of the regressor with columns of length one, as a design judges it that was asked to."""

    criterion: Criterion

    def of_regressor(self, W):
        return of_scaled_columns(self.criterion, W)


ALL = [
    LOGDET,
    SpectralCriterion("logdet", ridge=0.1),
    TRACE,
    SMALLEST,
    SpectralCriterion("smallest", 4.0),
    CONDITION,
    SpectralCriterion("condition", 4.0),
    FROBENIUS,
    PivotedCondition(),
    Scaling(),
    Scaling(power=8.0),
    Mix(((1.0, SpectralCriterion("condition", 8.0)), (0.5, LOGDET))),
    Mix(((2.0, FROBENIUS), (0.1, Scaling(4.0))), ratios=True),
    ScaledColumns(SpectralCriterion("condition", 4.0)),
    ScaledColumns(PivotedCondition()),
]


def regressor(seed=0, rows=12, columns=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)) * np.geomspace(1.0, 10.0, columns)


@pytest.mark.parametrize("criterion", ALL, ids=repr)
def test_gradients(criterion):
    W, h = regressor(), 1e-6
    _, gradient = criterion.of_regressor(W)
    expected = np.empty_like(W)
    for place in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[place] = h
        expected[place] = (criterion.value(W + step) - criterion.value(W - step)) / (2.0 * h)
    np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=1e-8 * np.abs(expected).max() + 1e-9)


def test_values_from_singular_values():
    W = regressor(1)
    s = np.linalg.svd(W, compute_uv=False)
    A = W.T @ W
    assert LOGDET.value(W) == pytest.approx(-np.log(s).mean())
    assert TRACE.value(W) == pytest.approx(0.5 * np.log(np.trace(np.linalg.inv(A))))
    assert SMALLEST.value(W) == pytest.approx(-np.log(s[-1]))
    assert CONDITION.value(W) == pytest.approx(np.log(np.linalg.cond(W)))
    assert 2.0 * FROBENIUS.value(W) == pytest.approx(np.log(np.linalg.cond(A, "fro")))
    size = np.abs(W)
    assert Scaling().value(W) == pytest.approx(np.log(size.max() / size.min()))
    assert condition_number(W) == pytest.approx(np.linalg.cond(W))
    assert condition_number(W, scaled=True) == pytest.approx(np.linalg.cond(W / np.linalg.norm(W, axis=0)))


def test_powers_bound_the_condition_number_from_above():
    W = regressor(2)
    values = [SpectralCriterion("condition", power).value(W) for power in (1.0, 2.0, 8.0, 64.0, 1000.0)]
    assert values[0] > values[1] > values[2]
    assert values[2] >= values[3] >= values[4] >= CONDITION.value(W) - 1e-12
    assert values[-1] == pytest.approx(CONDITION.value(W), abs=2e-3)


def test_scaling_leaves_out_zeros_and_column_scaling_ignores_units():
    W = regressor(3)
    W[2, 1] = 0.0
    size = np.abs(W[W != 0.0])
    assert np.exp(Scaling().value(W)) == pytest.approx(size.max() / size.min())
    units = np.array([1.0, 1e-3, 10.0, 5.0, 100.0])
    scaled = ScaledColumns(CONDITION)
    assert scaled.value(W * units) == pytest.approx(scaled.value(W))


def test_a_blind_motion_has_finite_values():
    W = regressor(4)
    W[:, 2] = W[:, 1]
    for criterion in (SpectralCriterion("logdet", ridge=1e-6), SpectralCriterion("condition", 2.0), SMALLEST):
        value, gradient = criterion.of_regressor(W)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
    assert condition_number(W) > 1e15


def test_names():
    assert criterion_from("condition", power=4.0) == SpectralCriterion("condition", 4.0)
    assert criterion_from("condition+0.5*logdet", power=8.0) == Mix(
        ((1.0, SpectralCriterion("condition", 8.0)), (0.5, LOGDET))
    )
    assert criterion_from(TRACE) == TRACE
    with pytest.raises(InputError, match=facts("condition", "logdet", "volume")):
        criterion_from("volume")
    with pytest.raises(InputError, match="weight 'much', expected a number"):
        criterion_from("much*logdet")
    with pytest.raises(InputError, match="-1, expected zero"):
        Mix(((-1.0, LOGDET),))
