"""Fits by rows, compiled fits and cvxpy agree."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

from consistent_problems import KNOWN, fit_of_three_links, optimum_in_cvxpy, relative_difference
from dynid.estimation.consistency.solve import compiled_fit, fit_by_rows
from dynid.estimation.constraints.bodies import TotalMass


def known_in_cvxpy(phi):
    """``KNOWN``, written independently."""
    at = fit_of_three_links(1).consistent.layout.index
    masses = [phi[at(f"m{k}")] for k in (1, 2, 3)]
    centre = cvxpy.norm(phi[at("mx3") : at("mz3") + 1]) <= 0.1 * masses[2]
    return [sum(masses) <= 8.0, masses[1] >= 0.5, masses[1] <= 1.5, centre, phi[at("fv1")] == 0.5]


@pytest.mark.parametrize(("constraints", "in_cvxpy"), [((), ()), (KNOWN, (known_in_cvxpy,))])
@pytest.mark.parametrize("condition", ["full", "plain"])
def test_the_fit_by_rows_reaches_the_optimum_of_cvxpy(condition, constraints, in_cvxpy):
    fit = fit_of_three_links(1, condition=condition, constraints=constraints)
    found = fit_by_rows(fit.consistent, fit.F, fit.centre, fit.pull)
    assert found.verdict == "solved"
    x = fit.centre + found.x
    assert fit.value(x) == pytest.approx(optimum_in_cvxpy(fit, condition, in_cvxpy), rel=1e-5, abs=1e-9)
    assert fit.consistent.contains(x, 1e-7)


@pytest.mark.parametrize("options", [{}, {"condition": "plain"}, {"prior": "entropic"}, {"prior": "scaled"}])
def test_compiled_fits_reach_the_optimum_of_cvxpy(options):
    for seed in range(3):
        fit = fit_of_three_links(seed, **options)
        P = fit.F.T @ fit.F + np.diag(fit.pull)
        found = compiled_fit(fit.consistent, P, fit.centre, fit.freedom, fit.entropic)
        assert found is not None
        x = fit.centre + found.x
        assert fit.consistent.slacks(x).min() > -1e-9
        reference = optimum_in_cvxpy(fit, options.get("condition", "full"))
        assert abs(relative_difference(fit.value(x), reference)) < 1e-7


def test_compiled_fits_leave_other_constraints_to_others():
    fit = fit_of_three_links(0, constraints=(TotalMass(upper=8.0),))
    assert compiled_fit(fit.consistent, fit.F.T @ fit.F, fit.centre, fit.freedom, None) is None


@pytest.mark.parametrize(("constraints", "in_cvxpy"), [((), ()), (KNOWN, (known_in_cvxpy,))])
def test_the_fit_by_rows_knows_the_entropic_prior(constraints, in_cvxpy):
    for seed in range(3):
        fit = fit_of_three_links(seed, constraints=constraints, prior="entropic")
        found = fit_by_rows(fit.consistent, fit.F, fit.centre, fit.pull, fit.entropic)
        assert found.verdict == "solved"
        x = fit.centre + found.x
        assert fit.consistent.contains(x, 1e-7)
        assert abs(relative_difference(fit.value(x), optimum_in_cvxpy(fit, "full", in_cvxpy))) < 1e-7
