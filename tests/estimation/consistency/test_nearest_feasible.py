"""The nearest feasible values from both sides."""

from __future__ import annotations

from consistent_problems import infeasible_problem
from dynid.estimation.consistency.nearest_feasible import nearest_feasible


def test_both_sides_enclose_the_distance():
    for seed, condition in ((3, "full"), (4, "plain")):
        problem = infeasible_problem(seed, condition)
        consistent = problem.consistent
        found = nearest_feasible(problem)
        assert found.x is not None
        assert consistent.contains(found.x)
        assert 0.0 < found.lower_bound <= found.distance
        assert found.distance - found.lower_bound <= 1e-6 * problem.length
        assert consistent.size(found.x) <= found.largest
