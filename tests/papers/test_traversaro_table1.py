"""Traversaro et al. 2016, Table I: which of the printed bodies can exist.

Ten bodies, identified at five speeds by plain least squares (R10) and on the manifold of fully consistent
bodies (P). The table prints three decimals, and manifold solutions lie on the boundary, so a printed row
stands for a box of bodies: half a unit of the last digit either way. A row is consistent when that box holds
a consistent body.
"""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

from dynid.model.inertia import PSEUDO_BASIS, consistency, is_consistent, reorder
from published import tables

HALF_DIGIT = 0.0005

TABLE = {(speed, kind): values for speed, kind, *values in tables("traversaro2016")["table_1"]}


def printed(row: tuple[str, str]) -> np.ndarray:
    return reorder(TABLE[row], "idyntree")


def most_consistent(row: tuple[str, str], half_width: float) -> np.ndarray:
    """Of the bodies within ``half_width`` of the printed row the one deepest inside the full condition."""
    phi, smallest = cvxpy.Variable(10), cvxpy.Variable()
    P = sum(phi[k] * PSEUDO_BASIS[k] for k in range(10))
    constraints = [P - smallest * np.eye(4) >> 0, cvxpy.abs(phi - printed(row)) <= half_width]
    problem = cvxpy.Problem(cvxpy.Maximize(smallest), constraints)
    problem.solve(solver=cvxpy.CLARABEL)
    assert problem.status == cvxpy.OPTIMAL
    return phi.value


def test_no_printed_row_is_consistent_to_the_last_digit():
    rows = np.array([printed(row) for row in TABLE])
    assert not is_consistent(rows).any()


@pytest.mark.parametrize("speed", ["10s", "5s", "1s", "0.5s"])
def test_manifold_rows_hold_a_consistent_body_within_their_digits(speed):
    body = most_consistent((speed, "P"), 0.999 * HALF_DIGIT)
    assert np.abs(body - printed((speed, "P"))).max() <= HALF_DIGIT
    assert is_consistent(body)


@pytest.mark.parametrize("speed", ["10s", "5s", "2s", "1s", "0.5s"])
def test_least_squares_rows_hold_none(speed):
    """At every speed, by far when slow and by a few units of the last digit when fast."""
    best = most_consistent((speed, "R10"), 1.001 * HALF_DIGIT)
    assert not is_consistent(best)
    # Not a matter of the solver's tolerance either.
    assert consistency(best).triangle_slack < -1e-4


def test_least_squares_rows_come_closer_as_the_motion_gets_faster():
    slack = [float(consistency(printed((s, "R10"))).triangle_slack) for s in ("10s", "5s", "2s", "1s", "0.5s")]
    assert slack == sorted(slack)
    plain = [bool(is_consistent(printed((s, "R10")), "plain")) for s in ("10s", "5s", "2s", "1s", "0.5s")]
    assert plain == [False, False, False, False, True]


def test_printed_manifold_row_at_two_seconds_cannot_be_rounding():
    """Ixx + Izz - Iyy is twice the second moment along y; printed -0.005, of which digits explain 0.0015."""
    phi = dict(zip(("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"), TABLE["2s", "P"][4:], strict=True))
    assert phi["Ixx"] + phi["Izz"] - phi["Iyy"] + 3 * HALF_DIGIT < -0.003
    assert not is_consistent(most_consistent(("2s", "P"), HALF_DIGIT))
