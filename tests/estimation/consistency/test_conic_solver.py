"""The conic solver where it breaks off by an error of its own."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sparse

from dynid.estimation.consistency.conic_solver import PANICKED, ConicSolution, solve_conic


class PanicException(BaseException):
    """Named as the class of the solver's panics, which cannot be imported."""


def solve_small(*, quick: bool) -> ConicSolution:
    """Nearest non-negative point to (1, -1)."""
    return solve_conic(
        np.eye(2), np.array([-1.0, 1.0]), sparse.eye(2, format="csc"), np.zeros(2), [("nonnegative", 2)], quick=quick
    )


def panicking(monkeypatch: pytest.MonkeyPatch, times: int, error: BaseException) -> None:
    """Let the first so many solvers break off."""
    left = [times]
    real = clarabel.DefaultSolver

    class Solver:
        def __init__(self, *problem: object) -> None:
            self._real = real(*problem)

        def solve(self) -> object:
            left[0] -= 1
            if left[0] >= 0:
                raise error
            return self._real.solve()

    monkeypatch.setattr(clarabel, "DefaultSolver", Solver)


def test_a_quick_attempt_that_breaks_off_is_followed_by_a_careful_one(monkeypatch: pytest.MonkeyPatch) -> None:
    panicking(monkeypatch, 1, PanicException())
    found = solve_small(quick=True)
    assert found.verdict == "solved"
    np.testing.assert_allclose(found.x, [1.0, 0.0], atol=1e-6)


def test_a_solver_that_breaks_off_has_stalled_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    panicking(monkeypatch, 2, PanicException())
    found = solve_small(quick=True)
    assert (found.verdict, found.status, found.usable) == ("stalled", PANICKED, False)


def test_an_interrupt_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    panicking(monkeypatch, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        solve_small(quick=True)
