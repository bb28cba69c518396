"""Published groupings: formulas that are linear in the parameters, and what is refused of others."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.estimation.constraints.formula import linear_terms
from dynid.regression.base import reduce_to_base
from noisy_logs import short_arm


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Iyy2 + Izz1 - 0.0999 m3", {"Iyy2": 1.0, "Izz1": 1.0, "m3": -0.0999}),
        ("J2yy + J1zz", {"Iyy2": 1.0, "Izz1": 1.0}),
        ("-mc2y - 0.316 (m3 + m4) - mc3z", {"my2": -1.0, "m3": -0.316, "m4": -0.316, "mz3": -1.0}),
        ("0.316 * 0.5 * m3 / 2", {"m3": 0.079}),
        ("2 * (m1 - 3 (m2 - m1) / 4)", {"m1": 3.5, "m2": -1.5}),
        ("m1 + m2 - m1", {"m2": 1.0}),
        ("L_3yy + l3x + XX1", {"Iyy3": 1.0, "mx3": 1.0, "Ixx1": 1.0}),
        ("m1 * 2 + 3 - 3", {"m1": 2.0}),
    ],
)
def test_linear_combinations(text: str, terms: dict[str, float]) -> None:
    assert linear_terms(text) == pytest.approx(terms, rel=1e-14)


def test_expressions_that_base_parameters_print_are_read_back() -> None:
    base = reduce_to_base(short_arm())
    for row, text in enumerate(base.expressions(digits=12)):
        terms = linear_terms(text)
        values = np.array([terms.get(name, 0.0) for name in base.parameter_names])
        np.testing.assert_allclose(values, base.K[row], atol=1e-11)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("m1 * m2", "character 6: it is not linear"),
        ("1 / m1", "not linear"),
        ("m1 / 0", "not linear"),
        ("sqrt(m1)", "character 1: it is not linear"),
        ("m1 ** 2", "not linear"),
        ("m1 > 2", "not linear"),
        ("m1 + 2", "has the constant 2"),
        ("m1 - m1", "nothing is left"),
        ("0", "nothing is left"),
        ("c1x + m1", "'c1x' is no parameter of the regressor"),
        ("m1 + I1xx", "character 6: 'I1xx' is no parameter of the regressor"),
        ("total_mass", "'total_mass' is no parameter"),
    ],
)
def test_what_is_no_combination_is_refused(text: str, fact: str) -> None:
    with pytest.raises(InputError) as refused:
        linear_terms(text)
    assert fact in str(refused.value)
