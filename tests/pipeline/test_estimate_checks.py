"""After every method: what is proven of its base values is said, and nothing else."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bench import Bench
from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import torque_regressor
from dynid.estimation.consistency.feasibility import feasibility
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Estimate
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.model.inertia import is_consistent
from dynid.model.robot import Robot
from dynid.pipeline.compare import compare_on
from dynid.pipeline.estimate_checks import NEAREST, check_feasibility, estimate_warnings
from dynid.pipeline.folder import load_result, save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import Regression, build_regression
from dynid.signals.samples import Samples

DRAWS = ((0.02, 0), (0.02, 1), (0.05, 0), (0.05, 1), (0.05, 4), (0.1, 2))
"""Noise of the torque, N m, and seed."""


@cache
def demonstration() -> tuple[Robot, BaseReduction, tuple[Array, ...]]:
    robot = demo_robot()
    t = np.arange(1000) / 100.0
    return robot, reduce_to_base(robot), (t, *random_fourier(robot, 10.0, 5, seed=1).evaluate(t))


def drawn(noise: float, seed: int) -> Regression:
    """The demonstration arm on one motion, with noise on its torque alone."""
    robot, _, (t, q, v, a) = demonstration()
    tau = inverse_dynamics(robot, q, v, a)
    tau = tau + noise * np.random.default_rng(seed).normal(size=tau.shape)
    return build_regression(robot, Samples(time=t, position=q, velocity=v, acceleration=a, torque=tau))


def least_squares(noise: float, seed: int) -> Estimate:
    return estimate(drawn(noise, seed), demonstration()[1], OrdinaryLeastSquares(covariance="classical"))


@pytest.mark.parametrize(("noise", "seed"), DRAWS)
def test_the_gate_says_only_what_is_proven(noise: float, seed: int) -> None:
    robot, base, _ = demonstration()
    result = least_squares(noise, seed)
    found, verdict = check_feasibility(result, robot, Settings(method="ols"))
    notes = " ".join(estimate_warnings(found, robot, None, verdict))
    proven = feasibility(base, result.base_values, robot=robot).decision
    assert verdict.decision == proven
    assert found.base_values.tolist() == result.base_values.tolist()
    assert base.base_values(found.standard) == pytest.approx(result.base_values, abs=1e-9)
    if proven == "feasible":
        assert found.feasible
        assert is_consistent(found.standard.inertials).all()
        described = robot.parameters.inertials[:, 0]
        assert (np.abs(found.standard.inertials[:, 0] - described) < 0.5 * described).all()  # bodies that could be built
        assert "no robot" not in notes
        assert "not physically consistent:" not in notes
    else:
        assert verdict.proven
        assert "no robot" in notes
        assert verdict.in_conflict in notes
        assert "mass matrix positive definite in" in notes


def test_the_draws_have_every_case() -> None:
    """Consistent links at once, consistent links only after a search, and none."""
    robot, _, _ = demonstration()
    kinds = set()
    for noise, seed in DRAWS:
        result = least_squares(noise, seed)
        found, verdict = check_feasibility(result, robot, Settings(method="ols"))
        kinds.add((result.feasible, found.feasible, verdict.proof))
        assert (NEAREST in found.notes) == (found.feasible and not result.feasible)
    assert kinds == {(True, True, "bodies"), (False, True, "certificate"), (False, False, "direction")}


def test_a_certificate_predicts_the_same_torque() -> None:
    robot, _, (_, q, v, a) = demonstration()
    result = least_squares(0.05, 0)
    found, verdict = check_feasibility(result, robot, Settings(method="ols"))
    assert verdict.proof == "certificate"
    Y = torque_regressor(robot, q[::50], v[::50], a[::50])
    before, after = Y @ result.standard.values, Y @ found.standard.values
    assert after == pytest.approx(before, abs=1e-8 * np.abs(before).max())
    kept, same = check_feasibility(result, robot, Settings(method="ols"), keep=True)
    assert kept is result
    assert same.as_dict() == verdict.as_dict()


@pytest.mark.parametrize("condition", ["full", "plain"])
def test_consistent_methods_are_proven_by_their_own_bodies(condition: str) -> None:
    robot, base, _ = demonstration()
    result = estimate(drawn(0.1, 0), base, FeasibleSDP(condition=condition, covariance="classical"))
    found, verdict = check_feasibility(result, robot, Settings(condition=condition))
    assert found is result
    assert (verdict.decision, verdict.proof, verdict.proven) == ("feasible", "bodies", True)
    assert verdict.mass_matrix is not None
    assert verdict.mass_matrix.positive_share == 1.0


def test_a_run_keeps_its_verdict(bench: Bench, tmp_path: Path) -> None:
    run = identify(bench.urdf, bench.log, Settings(method="ols", cutoff_hz=20.0, friction="linear"))
    told = run.summary()["feasibility"]
    assert run.feasibility is not None
    assert (told["decision"], told["proven"]) == (run.feasibility.decision, run.feasibility.proven)
    again = load_result(save_result(run, tmp_path / "run"))
    assert again.feasibility is not None
    assert again.feasibility.as_dict() == told
    for one in compare_on(run, run.settings, ["ols", "sdp"]):
        verdict = one.as_dict()["feasibility"]
        assert verdict["proven"]
        assert verdict["decision"] == ("feasible" if one.method == "sdp" else told["decision"])
