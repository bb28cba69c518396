"""Vectors that are hard to judge and to correct: far, near the boundary, tiny, huge, with nearly parallel axes.

The stored cases say what is expected. The slow tests ask cvxpy the same, by Clarabel and by SCS, and contradict neither where
they are sure.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import cvxpy
import numpy as np
import pytest

from consistent_problems import linear_problem, noisy_tree, optimum_in_cvxpy, relative_difference
from dynid.errors import InputError
from dynid.estimation.consistency.correction import closest_feasible
from dynid.estimation.consistency.feasibility import feasibility
from dynid.estimation.consistency.fit_problem import solve_whitened
from dynid.estimation.constraints.base import Layout
from dynid.estimation.constraints.bounds import constraints_from_table
from dynid.estimation.linear import parameter_scale
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Outcome
from dynid.model.inertia import PLAIN_BASIS, PSEUDO_BASIS, is_consistent
from dynid.model.parameters import Column, Parameters
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import build_regression
from problems import random_motion, random_tree

HERE = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in HERE.glob("*.json"))
MARGIN = 1e-6


@dataclass(frozen=True)
class Case:
    base: BaseReduction
    values: np.ndarray
    condition: str
    prior: Parameters | None
    decision: str
    distance: float
    constraints: dict[str, list[dict[str, object]]]

    @property
    def options(self) -> dict[str, object]:
        return {
            "condition": self.condition,
            "prior": self.prior,
            "constraints": constraints_from_table(self.constraints),
        }


def case(name: str) -> Case:
    stored = json.loads((HERE / f"{name}.json").read_text())
    K = [[row.get(name, 0.0) for name in stored["names"]] for row in stored["rows"]]
    prior = None
    if "prior" in stored:
        prior = Parameters(tuple(Column(*column) for column in stored["kinds"]), np.array(stored["prior"]))
    expected = stored["expected"]
    base = BaseReduction.from_matrix(K, stored["names"])
    values, constraints = np.array(stored["values"]), stored.get("constraints", {})
    return Case(base, values, stored["condition"], prior, expected["decision"], expected["distance"], constraints)


def distance_in_cvxpy(base, values, condition, prior, solver, constraints=None, **options) -> tuple[str, float]:
    """How the solver says it ended, and the distance of the values it found, written independently."""
    layout = Layout.of(base.parameter_names)
    scale = np.ones(len(layout))
    if prior is not None:
        scale[: base.n_parameters] = parameter_scale(prior)
    x = cvxpy.Variable(len(layout))
    basis = PSEUDO_BASIS if condition == "full" else PLAIN_BASIS
    side = basis.shape[1]
    listed = []
    for slots in layout.slots:
        matrix = sum(x[int(slot)] * basis[k] for k, slot in enumerate(slots))
        listed.append(matrix - MARGIN * np.eye(side) >> 0)
    signed = [i for i, name in enumerate(layout.names) if name[:2] in ("Ia", "fv", "fc")]
    if signed:
        listed.append(x[signed] >= 0.0)
    for kind, boxes in (constraints or {}).items():
        assert kind == "com_box"
        for box in boxes:
            m, *moments = (int(i) for i in layout.link_slots(box["link"])[:4])
            for i, low, high in zip(moments, box["lower"], box["upper"], strict=True):
                mass, moment = x[m] * scale[m], x[i] * scale[i]
                listed += [moment >= low * mass, moment <= high * mass]
    size = float(np.linalg.norm(values))
    E = np.zeros((base.n_base, len(layout)))
    E[:, : base.n_parameters] = base.K * scale[: base.n_parameters]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(E @ x / size - values / size)), listed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program.solve(solver=solver, **options)
        except cvxpy.SolverError:
            return "failed", float("nan")
    return program.status, float("nan") if program.value is None else size * float(program.value)


@pytest.mark.parametrize("name", NAMES)
def test_verdict_and_correction_are_as_stored(name):
    hard = case(name)
    test = feasibility(hard.base, hard.values, **hard.options)
    assert test.decision == hard.decision
    near = closest_feasible(hard.base, hard.values, **hard.options)
    assert near.outcome is Outcome.SOLVED
    assert near.gap <= 1e-6
    size = max(near.length, near.distance)
    assert near.distance == pytest.approx(hard.distance, abs=2e-6 * size)
    assert near.base == pytest.approx(hard.base.base_values(near.standard), rel=1e-12, abs=1e-12 * size)
    after = feasibility(hard.base, near.base, **hard.options)
    assert after.feasible
    if test.decision == "infeasible":
        assert test.certificate @ hard.values < test.bound
        assert test.certificate @ near.base >= test.bound
        assert test.lower_bound <= near.distance
    else:
        assert near.distance == 0.0
        assert is_consistent(test.bodies, hard.condition, allow_empty=True).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_neither_clarabel_nor_scs_is_contradicted(name):
    hard = case(name)
    near = closest_feasible(hard.base, hard.values, **hard.options)
    size = max(near.length, near.distance)
    arguments = (hard.base, hard.values, hard.condition, hard.prior)
    for solver, within, options in ((cvxpy.CLARABEL, 1e-4, {}), (cvxpy.SCS, 1e-2, {"eps": 1e-7, "max_iters": 50_000})):
        status, distance = distance_in_cvxpy(*arguments, solver, hard.constraints, **options)
        if status != "optimal":
            continue
        # a solver may stop a little outside its constraints, so it may be a little nearer; never clearly
        assert distance >= near.lower_bound - within * size, (solver, distance, near.lower_bound)
        if solver == cvxpy.CLARABEL:
            assert near.distance <= distance + 1e-4 * size


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_verdicts_never_contradict_cvxpy_where_it_is_sure(seed):
    """Clearly feasible or infeasible by cvxpy: the same here; and what is proven here is never denied there."""
    rng = np.random.default_rng(seed)
    robot, base, data = noisy_tree(seed, 2 + seed % 4, float(rng.choice([0.1, 1.0, 5.0])))
    beta = OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters).base_values
    condition = "plain" if seed % 3 == 0 else "full"
    found = feasibility(base, beta, condition, prior=robot.parameters)
    status, distance = distance_in_cvxpy(base, beta, condition, robot.parameters, cvxpy.CLARABEL)
    size = float(np.linalg.norm(beta))
    if status == "optimal" and distance > 1e-4 * size:
        assert found.decision == "infeasible"
        assert found.lower_bound <= distance * (1.0 + 1e-4)
    if found.decision == "infeasible" and status == "optimal":
        assert distance > found.lower_bound * (1.0 - 1e-3) - 1e-6 * size
    if found.decision == "feasible" and status == "optimal":
        assert distance < 1e-4 * size


@pytest.mark.slow
def test_sixty_links():
    robot = random_tree(60, 60, kinds=("revolute",))
    base = reduce_to_base(robot)
    beta = base.base_values(robot.parameters)
    assert feasibility(base, beta, prior=robot.parameters).decision == "feasible"
    shaken = beta + 0.02 * np.random.default_rng(0).normal(size=len(beta)) * np.abs(beta)
    near = closest_feasible(base, shaken, prior=robot.parameters)
    assert near.outcome is Outcome.SOLVED
    assert near.gap <= 1e-6
    assert feasibility(base, near.base, prior=robot.parameters).feasible


def test_repeated_rows_of_a_grouping_are_refused():
    base = case("micro").base
    with pytest.raises(InputError, match=f"K has {base.n_base + 1} rows but rank {base.n_base}"):
        BaseReduction.from_matrix(np.vstack([base.K, base.K[:1]]), base.parameter_names)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_estimate_does_not_depend_on_the_unit_of_torque(factor):
    """Torque and bodies a million times smaller or larger: the same fit, scaled."""
    robot, base, data = noisy_tree(3, 3, 3.0, effects=False)
    scaled = robot.with_parameters(robot.parameters.with_values(factor * robot.parameters.values))
    q, v, a = random_motion(robot, 150, 3)
    here = FeasibleSDP(covariance="classical").estimate(data, base, robot.parameters)
    from dynid.dynamics.inverse_dynamics import inverse_dynamics
    from dynid.signals.samples import Samples

    tau = inverse_dynamics(robot, q, v, a) + 3.0 * np.random.default_rng(1003).normal(size=a.shape)
    samples = Samples(time=0.01 * np.arange(150), position=q, velocity=v, acceleration=a, torque=factor * tau)
    there = FeasibleSDP(covariance="classical").estimate(build_regression(scaled, samples), base, scaled.parameters)
    assert there.outcome is Outcome.SOLVED
    assert there.feasible
    assert there.relative_error == pytest.approx(here.relative_error, rel=1e-7)
    assert (np.abs(there.base_values / factor - here.base_values) < 0.02 * here.sigma).all()


def test_data_of_rank_one_leave_the_rest_to_the_prior():
    robot = random_tree(4, 3)
    base = reduce_to_base(robot)
    q, v, a = random_motion(robot, 1, 4)
    from dynid.dynamics.inverse_dynamics import inverse_dynamics
    from dynid.signals.samples import Samples

    one = [np.repeat(part, 40, axis=0) for part in (q, v, a)]
    tau = inverse_dynamics(robot, *one) * 0.5
    samples = Samples(time=0.01 * np.arange(40), position=one[0], velocity=one[1], acceleration=one[2], torque=tau)
    for prior in ("none", "entropic"):
        found = FeasibleSDP(prior=prior, covariance="classical").estimate(
            build_regression(robot, samples), base, robot.parameters
        )
        assert found.outcome is Outcome.RANK_DEFICIENT
        assert found.feasible


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_estimates_of_strong_noise_are_those_of_cvxpy(seed):
    robot, base, data = noisy_tree(seed, 2 + seed % 5, 30.0)
    fit = FeasibleSDP(prior="entropic" if seed % 2 else "none").whiten(linear_problem(robot, base, data))
    x, _, notes, outcome = solve_whitened(fit)
    assert outcome is None
    assert not notes
    assert abs(relative_difference(fit.value(x), optimum_in_cvxpy(fit))) < 1e-6
