"""Sousa and Cortesao 2014, section 5.2: feasibility of the estimates printed in Table 6, which needs no recording.

Base values as printed (four digits), plain condition, LMI margin 1e-6, grouping of Table 3. The correction minimises the square
of the distance, and its optimum is printed as u' = 0.00405373. The values are rounded to four digits and the optimum is not
attained, so the last digits are those of a solver; the bound proven here is below, the distance found next to it.
"""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from dynid.estimation.consistency.correction import closest_feasible
from dynid.estimation.consistency.feasibility import feasibility
from dynid.estimation.constraints.bodies import CentreOfMassInBox, TotalMass
from dynid.estimation.result import Outcome
from dynid.regression.base import BaseReduction
from shared_data import shared


@cache
def table() -> tuple[BaseReduction, np.ndarray, np.ndarray]:
    rows = json.loads(shared("tables/sousa2014_table3_table6.json").read_text())["rows"]
    names = sorted({name for row in rows for name in row["terms"]})
    base = BaseReduction.from_matrix([[row["terms"].get(name, 0.0) for name in names] for row in rows], names)
    return base, np.array([row["ols"] for row in rows]), np.array([row["fbpe_ols_extra"] for row in rows])


def extra_constraints() -> tuple[CentreOfMassInBox | TotalMass, ...]:
    limits = json.loads(shared("tables/sousa2014_table7.json").read_text())
    boxes = [
        CentreOfMassInBox(i + 1, tuple(low), tuple(high))
        for i, (low, high) in enumerate(zip(limits["lower"], limits["upper"], strict=True))
    ]
    return (*boxes, TotalMass(upper=limits["max_total_mass_kg"]))


def test_least_squares_is_infeasible_and_its_correction_is_the_printed_one():
    base, ols, _ = table()
    assert feasibility(base, ols, "plain", margin=1e-6).decision == "infeasible"
    found = closest_feasible(base, ols, "plain", margin=1e-6)
    assert found.outcome is Outcome.SOLVED
    assert found.distance**2 == pytest.approx(0.00405373, rel=2e-4)
    assert found.lower_bound**2 <= 0.00405373
    assert found.gap <= 1e-6


def test_the_estimate_with_extra_constraints_is_feasible_under_table_7():
    base, _, constrained = table()
    assert feasibility(base, constrained, "plain", extra_constraints(), margin=1e-6).decision == "feasible"
