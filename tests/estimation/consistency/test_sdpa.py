"""SDPA files hold the same programs."""

from __future__ import annotations

from dataclasses import replace

import cvxpy
import numpy as np
import pytest

from consistent_problems import linear_problem, noisy_tree
from dynid.errors import InputError
from dynid.estimation.consistency.correction import closest_feasible
from dynid.estimation.consistency.feasibility import feasibility
from dynid.estimation.consistency.fit_problem import solve_whitened
from dynid.estimation.consistency.sdpa import correction_program, feasibility_program, sdpa_text, write_sdpa
from dynid.estimation.constraints.base import FixedValues
from dynid.estimation.constraints.bodies import CentreOfMassInSphere
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.sdp import FeasibleSDP

OLS = OrdinaryLeastSquares(covariance="classical")


def solved_from_sdpa(text: str) -> float:
    """Read an SDPA file by its rules and solve it: an independent look at what was written."""
    lines = [line for line in text.splitlines() if not line.startswith('"')]
    m, n_blocks = int(lines[0]), int(lines[1])
    sizes = [int(size) for size in lines[2].split()]
    cost = np.array([float(c) for c in lines[3].split()])
    assert len(sizes) == n_blocks
    assert len(cost) == m
    matrices = [np.zeros((m + 1, abs(size), abs(size))) for size in sizes]
    for line in lines[4:]:
        k, block, i, j, value = (float(part) for part in line.split())
        assert i <= j
        matrices[int(block) - 1][int(k), int(i) - 1, int(j) - 1] = value
        matrices[int(block) - 1][int(k), int(j) - 1, int(i) - 1] = value
    y = cvxpy.Variable(m)
    constraints = []
    for size, F in zip(sizes, matrices, strict=True):
        if size < 0:
            diagonal = F[:, np.arange(-size), np.arange(-size)]
            constraints.append(diagonal[1:].T @ y - diagonal[0] >= 0)
        else:
            flat = F.reshape(m + 1, -1)
            constraints.append(cvxpy.reshape(flat[1:].T @ y - flat[0], (size, size), order="C") >> 0)
    program = cvxpy.Problem(cvxpy.Minimize(cost @ y), constraints)
    program.solve(solver=cvxpy.CLARABEL)
    return float(program.value)


def test_sdpa_file_holds_the_same_problem(tmp_path):
    robot, base, data = noisy_tree(0, 2, 3.0, effects=True)
    constraints = (CentreOfMassInSphere(1, (0.0, 0.0, 0.0), 0.05), FixedValues({"fv1": 0.4}))
    fit = FeasibleSDP(constraints=constraints, regularization=1.0).whiten(linear_problem(robot, base, data))
    x, _, _, _ = solve_whitened(fit)
    path = write_sdpa(fit, tmp_path / "fit.dat-s")
    assert solved_from_sdpa(path.read_text()) == pytest.approx(2.0 * fit.value(x), rel=1e-5)
    with pytest.raises(InputError, match="log-determinant"):
        sdpa_text(replace(FeasibleSDP(prior="entropic"), regularization=0.0).whiten(linear_problem(robot, base, data)))


def test_sdpa_files_hold_the_test_and_the_correction(tmp_path):
    """BPFT: the common slack is the depth; BPFC: the squared distance."""
    robot, base, data = noisy_tree(2, 2, 3.0)
    beta = OLS.estimate(data, base, robot.parameters).base_values
    for constraints in ((), (FixedValues({"fv1": 0.4}), CentreOfMassInSphere(1, (0.0, 0.0, 0.0), 0.3))):
        test = feasibility(base, beta, constraints=constraints, prior=robot.parameters)
        program = feasibility_program(base, beta, constraints=constraints, prior=robot.parameters)
        path = write_sdpa(program, tmp_path / "bpft.dat-s")
        assert solved_from_sdpa(path.read_text()) == pytest.approx(-test.depth, rel=1e-4, abs=1e-6)
        near = closest_feasible(base, beta, constraints=constraints, prior=robot.parameters)
        text = sdpa_text(correction_program(base, beta, constraints=constraints, prior=robot.parameters))
        assert solved_from_sdpa(text) == pytest.approx(near.distance**2, rel=1e-3)
