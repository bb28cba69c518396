"""A consistent set as blocks is the same set, and one Newton system is solved to round-off."""

from __future__ import annotations

import numpy as np
import pytest

from consistent_problems import KNOWN, fit_of_three_links
from dynid.estimation.consistency.block_program import BlockProgram, RowSystem
from dynid.estimation.consistency.interior_point import start_inside


@pytest.fixture(scope="module", params=["full", "plain"])
def fit(request):
    return fit_of_three_links(0, condition=request.param, constraints=KNOWN)


def test_blocks_bounds_and_rows_say_what_the_cones_say(fit):
    program, consistent = BlockProgram.of(fit.consistent), fit.consistent
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = fit.centre + rng.normal(size=consistent.n)
        kinds = [kind for kind, _ in consistent.cones]
        slacks = dict(zip(range(len(kinds)), consistent.slacks(x), strict=True))
        links = [slacks[i] for i, kind in enumerate(kinds) if kind == "semidefinite"]
        discs = [slacks[i] for i, kind in enumerate(kinds) if kind == "second_order"]
        smallest = np.linalg.eigvalsh(program.blocks(x))[:, 0]
        np.testing.assert_allclose(smallest[: len(links)], links, atol=1e-9)
        np.testing.assert_allclose(smallest[len(links) :], np.minimum(discs, 1.0), atol=1e-9)
        inequalities = [slacks[i] for i, kind in enumerate(kinds) if kind == "nonnegative"]
        assert program.linear(x).min() == pytest.approx(min(inequalities), abs=1e-12)


def test_the_adjoint_is_that_of_blocks_and_rows(fit):
    program, rng = BlockProgram.of(fit.consistent), np.random.default_rng(1)
    x, M = rng.normal(size=program.n), rng.normal(size=program.constant.shape)
    M = M + np.swapaxes(M, 1, 2)
    w = rng.normal(size=len(program.bounded) + len(program.g))
    both = np.vdot(M, program.blocks(x, homogeneous=True)) + w @ program.linear(x, homogeneous=True)
    assert program.adjoint(M, w) @ x == pytest.approx(both, rel=1e-10)


def test_a_newton_step_solves_its_system(fit):
    """``F^T F dx + sym(S^-1 S(dx) Z) + .. - A^T nu`` is the right side, and the equalities hold."""
    program = BlockProgram.of(fit.consistent)
    rows = np.vstack([fit.F, np.diag(np.sqrt(fit.pull))])
    system = RowSystem(program, rows, np.zeros(len(rows)))
    now = start_inside(program, fit.centre, 1.0)
    assert system.factor(now)
    rng = np.random.default_rng(2)
    right, equal = rng.normal(size=program.n), rng.normal(size=len(program.a))
    dx, nu = system.solve(right, equal)
    product = np.linalg.inv(now.S) @ program.blocks(dx, homogeneous=True) @ now.Z
    curved = program.adjoint(
        0.5 * (product + np.swapaxes(product, 1, 2)), now.z / now.s * program.linear(dx, homogeneous=True)
    )
    np.testing.assert_allclose(rows.T @ (rows @ dx) + curved - program.A.T @ nu, right, atol=1e-7)
    np.testing.assert_allclose(program.A @ dx, equal, atol=1e-9)
