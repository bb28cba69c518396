"""The semidefinite program: optimal (against cvxpy), consistent, honest about what it could not do."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

from consistent_problems import linear_problem, noisy_tree, optimum_in_cvxpy, relative_difference
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency.feasibility import feasibility
from dynid.estimation.consistency.fit_problem import solve_whitened
from dynid.estimation.consistency.solve import entropic_divergence
from dynid.estimation.constraints.base import FixedValues, Layout
from dynid.estimation.constraints.bodies import CentreOfMassInBox, CentreOfMassInSphere, EqualLinks, MassBounds, TotalMass
from dynid.estimation.constraints.shapes import DensityInEllipsoid
from dynid.estimation.estimate import estimate
from dynid.estimation.linear import parameter_scale
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.manifold import Manifold
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Outcome
from dynid.model.inertia import is_consistent
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples
from noisy_logs import exact_log, locked, noisy_log, short_arm
from problems import random_motion, random_tree

OLS = OrdinaryLeastSquares(covariance="classical")
SDP = FeasibleSDP(covariance="classical")


@pytest.mark.parametrize("seed", range(20))
def test_optimum_is_that_of_cvxpy(seed):
    """Twenty random robots, noises, conditions and priors; relative objective to 1e-6."""
    noise = (0.5, 2.0, 8.0)[seed % 3]
    prior = ("none", "none", "scaled", "entropic", "euclidean")[seed % 5]
    condition = "plain" if seed % 4 == 3 and prior != "entropic" else "full"
    robot, base, data = noisy_tree(seed, 2 + seed % 4, noise)
    method = FeasibleSDP(prior=prior, condition=condition, regularization=0.0 if seed == 11 else 1e-4)
    fit = method.whiten(linear_problem(robot, base, data))
    x, details, notes, outcome = solve_whitened(fit)
    assert outcome is None
    assert not notes
    reference = optimum_in_cvxpy(fit, condition)
    difference = relative_difference(fit.value(x), reference)
    if details["constraints_active"] or prior != "none":
        assert abs(difference) < 1e-6
    else:  # the unconstrained base values, which nothing beats
        assert fit.chi_square_excess(x) < 1e-9


def test_optimum_under_extra_constraints_is_that_of_cvxpy():
    robot, base, data = noisy_tree(3, 4, 3.0)
    constraints = (
        TotalMass(upper=6.0),
        MassBounds(2, 0.5, 1.5),
        CentreOfMassInBox(1, (-0.05, -0.05, -0.05), (0.05, 0.05, 0.05)),
        CentreOfMassInSphere(3, (0.0, 0.0, 0.0), 0.1),
        DensityInEllipsoid(4, (0.0, 0.0, 0.0), (0.3, 0.3, 0.2)),
        FixedValues({"fv1": 0.5}),
    )
    fit = FeasibleSDP(constraints=constraints).whiten(linear_problem(robot, base, data))
    x, _, _, outcome = solve_whitened(fit)
    assert outcome is None
    from dynid.estimation.constraints.shapes import ellipsoid_functional

    at = robot.parameters.index
    ellipsoid = ellipsoid_functional(np.zeros(3), np.eye(3), np.array([0.3, 0.3, 0.2]))

    def same(phi):
        masses = [phi[at(f"m{k}")] for k in (1, 2, 3, 4)]
        moment = [phi[at(f"m{axis}1")] for axis in "xyz"]
        return [
            sum(masses) <= 6.0,
            masses[1] >= 0.5,
            masses[1] <= 1.5,
            *(cvxpy.abs(h) <= 0.05 * masses[0] for h in moment),
            cvxpy.norm(cvxpy.hstack([phi[at(f"m{axis}3")] for axis in "xyz"])) <= 0.1 * masses[2],
            ellipsoid @ phi[30:40] >= 0.0,
            phi[at("fv1")] == 0.5,
        ]

    assert relative_difference(fit.value(x), optimum_in_cvxpy(fit, constraints=[same])) == pytest.approx(0.0, abs=1e-6)
    found = FeasibleSDP(constraints=constraints, covariance="classical").estimate(data, base, robot.parameters)
    values = found.standard
    assert found.feasible
    assert values["fv1"] == pytest.approx(0.5, abs=1e-7)
    assert values.inertials[:, 0].sum() <= 6.0 + 1e-6
    assert 0.5 - 1e-6 <= values["m2"] <= 1.5 + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_result_is_consistent_where_least_squares_is_not(seed):
    robot, base, data = noisy_tree(seed, 4, 3.0)
    free = OLS.estimate(data, base, robot.parameters)
    found = SDP.estimate(data, base, robot.parameters)
    assert not feasibility(base, free.base_values, prior=robot.parameters).feasible
    assert found.outcome is Outcome.SOLVED
    assert found.feasible
    assert is_consistent(found.standard.inertials, "full").all()
    assert found.base_values == pytest.approx(base.base_values(found.standard), rel=1e-12)
    assert found.relative_error > free.relative_error
    effects = [found.standard[f"{symbol}{k}"] for symbol in ("Ia", "fv", "fc") for k in (1, 2, 3, 4)]
    assert min(effects) >= 0.0
    # nothing was run away to: masses stay of the size of the robot
    assert np.abs(found.standard.inertials[:, 0]).max() < 100.0


@pytest.mark.parametrize("seed", range(4))
def test_feasible_least_squares_is_returned_unchanged(seed):
    robot, base, data = noisy_tree(seed, 4, noise=1e-4)
    free = OLS.estimate(data, base, robot.parameters)
    # a prior that is itself far off, so that completing the base values with it is not consistent
    rng = np.random.default_rng(seed)
    prior = robot.parameters.with_values(robot.parameters.values * rng.uniform(0.3, 1.7, len(robot.parameters)))
    for start in (robot.parameters, prior):
        found = SDP.estimate(data, base, start)
        assert np.array_equal(found.base_values, free.base_values)
        assert found.feasible
        assert not found.details["constraints_active"]


def test_noise_free_data_are_recovered():
    robot, base, data = noisy_tree(7, 5, noise=0.0)
    found = SDP.estimate(data, base, robot.parameters)
    assert found.base_values == pytest.approx(base.base_values(robot.parameters), rel=1e-6, abs=1e-8)
    assert found.feasible


def test_grouping_does_not_matter():
    """FBPE gives the same model under any grouping; BPFT the same verdict."""
    robot, base, data = noisy_tree(2, 4, 3.0)
    order = [name for name in robot.parameters.names if name.startswith("m")]
    other = reduce_to_base(robot, order=order)
    assert other.names != base.names
    here, there = SDP.estimate(data, base, robot.parameters), SDP.estimate(data, other, robot.parameters)
    assert here.relative_error == pytest.approx(there.relative_error, rel=1e-6)
    assert other.base_values(here.standard) == pytest.approx(there.base_values, rel=1e-3, abs=1e-4)


def test_weighted_fit_weighs_joints_by_their_noise():
    robot, base, data = noisy_tree(5, 3, 1.0, effects=False)
    q, v, a = random_motion(robot, 300, 1)
    from dynid.dynamics.inverse_dynamics import inverse_dynamics

    rng = np.random.default_rng(0)
    level = np.array([10.0, 0.1, 0.1])
    tau = inverse_dynamics(robot, q, v, a) + level * rng.normal(size=a.shape)
    samples = Samples(time=0.01 * np.arange(300), position=q, velocity=v, acceleration=a, torque=tau)
    data = build_regression(robot, samples)
    weighted = FeasibleSDP(weighted=True, covariance="classical").estimate(data, base, robot.parameters)
    equal = SDP.estimate(data, base, robot.parameters)
    truth = base.base_values(robot.parameters)
    weights = np.array(weighted.details["weights"])
    assert weights[1] / weights[0] == pytest.approx(100.0, rel=0.3)
    assert np.linalg.norm(weighted.base_values - truth) < np.linalg.norm(equal.base_values - truth)
    assert weighted.feasible


def test_prior_pulls_towards_itself():
    robot, base, data = noisy_tree(1, 4, 3.0)
    truth = robot.parameters
    for kind in ("scaled", "entropic", "euclidean"):
        far, near = (
            FeasibleSDP(prior=kind, strength=strength, covariance="classical").estimate(data, base, truth).standard.inertials
            for strength in (1e-3, 1e6)
        )
        assert np.linalg.norm(near - truth.inertials) < 0.1 * np.linalg.norm(far - truth.inertials)


def test_margin_is_relative_to_the_link_or_absolute():
    robot, base, data = noisy_tree(0, 4, 3.0)
    relative = FeasibleSDP(margin=1e-2, covariance="classical").estimate(data, base, robot.parameters)
    fit = FeasibleSDP(margin=1e-2).whiten(linear_problem(robot, base, data))
    assert fit.consistent.contains(relative.standard.values / fit.consistent.scale, 1e-12)
    absolute = FeasibleSDP(margin=1e-3, absolute=True, covariance="classical").estimate(data, base, robot.parameters)
    assert is_consistent(absolute.standard.inertials, "full", margin=0.999e-3, absolute=True).all()
    assert min(absolute.standard[f"Ia{k}"] for k in (1, 2, 3, 4)) >= 1e-3 - 1e-9


def test_impossible_constraints_are_an_outcome_that_names_them():
    robot, base, data = noisy_tree(0, 4, 1.0)
    method = FeasibleSDP(constraints=(MassBounds(2, lower=5.0), TotalMass(upper=3.0)), covariance="classical")
    found = method.estimate(data, base, robot.parameters)
    assert found.outcome is Outcome.INFEASIBLE
    assert not found.outcome.usable
    text = " ".join(found.notes)
    assert "mass of link 2 >= 5" in text
    assert "total mass <= 3" in text


def test_equal_links_come_out_equal():
    robot, base, data = noisy_tree(4, 3, 0.5)
    found = FeasibleSDP(constraints=(EqualLinks((1, 3)),), covariance="classical").estimate(data, base, robot.parameters)
    assert found.standard.inertials[0] == pytest.approx(found.standard.inertials[2], abs=1e-6)
    assert found.feasible


def test_data_that_show_little_leave_the_rest_near_the_prior():
    """Only one joint moves: unseen parameters stay near the prior and the result is consistent."""
    robot = random_tree(3, 3)
    base = reduce_to_base(robot)
    q, v, a = random_motion(robot, 200, 0)
    q[:, 1:], v[:, 1:], a[:, 1:] = 0.3, 0.0, 0.0
    from dynid.dynamics.inverse_dynamics import inverse_dynamics

    tau = inverse_dynamics(robot, q, v, a) + 0.5 * np.random.default_rng(0).normal(size=a.shape)
    data = build_regression(robot, Samples(time=0.01 * np.arange(200), position=q, velocity=v, acceleration=a, torque=tau))
    found = SDP.estimate(data, base, robot.parameters)
    assert found.outcome is Outcome.RANK_DEFICIENT
    assert found.feasible


def shares_by_hand(found, log, prior, information):
    """``1 - posterior / prior variance`` from every row of the log and the prior's information on the parameters."""
    sigma = found.details["noise_sigma"][0]
    Y = torque_regressor(ARM, log.position, log.velocity, log.acceleration).reshape(-1, len(prior)) / sigma
    K = found.base.K
    posterior = np.diag(K @ np.linalg.inv(Y.T @ Y + information) @ K.T)
    return 1.0 - posterior / np.diag(K @ np.linalg.inv(information) @ K.T)


ARM = short_arm()
ARM_BASE = reduce_to_base(ARM)


@pytest.mark.parametrize("prior", ["scaled", "euclidean", "entropic"])
@pytest.mark.parametrize("method", [FeasibleSDP, Manifold])
def test_origin_follows_the_share_of_the_data(prior, method):
    log = noisy_log(exact_log(), 2.0, seed=1)
    strength = {"scaled": 3.0, "euclidean": 30.0, "entropic": 3.0}[prior]
    options = method(prior=prior, strength=strength, covariance="classical")
    found = estimate(build_regression(ARM, log), ARM_BASE, options)
    scale = parameter_scale(ARM.parameters)
    n = ARM.parameters.n_inertial
    if prior == "entropic":
        # the curvature of the divergence by differences, in scaled coordinates, and the weak pull on the effects
        layout, x0 = Layout.of_parameters(ARM.parameters), ARM.parameters.values / scale
        x = found.standard.values / scale
        h = 1e-4
        steps = h * np.eye(len(x))[:n]
        R = [
            [[entropic_divergence(layout, x + s * a + t * b, x0) for t in (1, -1)] for s in (1, -1)]
            for a in steps
            for b in steps
        ]
        R = np.array(R)
        curvature = (R[:, 0, 0] - R[:, 0, 1] - R[:, 1, 0] + R[:, 1, 1]).reshape(n, n) / (4.0 * h**2)
        information = np.diag(np.full(len(x), 1e-4))
        information[:n, :n] = 0.5 * strength * curvature
        information /= np.outer(scale, scale)
    else:
        information = strength * np.diag(np.ones(len(scale)) if prior == "euclidean" else scale**-2)
    shares = np.array(found.details["share_of_data"])
    np.testing.assert_allclose(shares, shares_by_hand(found, log, ARM.parameters, information), atol=2e-4)
    known = [("data" if s > 0.99 else "prior" if s < 0.01 else "mixed") for s in shares]
    assert list(found.origin) == known
    assert "data" in found.origin
    assert "mixed" in found.origin


def test_origin_goes_from_data_to_prior_with_the_strength():
    data = build_regression(ARM, noisy_log(exact_log(), 2.0, seed=1))
    shares = []
    for strength, allowed in ((1e-9, {"data"}), (1.0, {"data", "mixed"}), (1e10, {"prior", "mixed"})):
        found = estimate(data, ARM_BASE, FeasibleSDP(prior="scaled", strength=strength, covariance="classical"))
        assert set(found.origin) <= allowed
        shares.append(np.array(found.details["share_of_data"]))
    assert (shares[0] > shares[1]).all()
    assert (shares[1] > shares[2]).all()
    assert "share_of_data" not in estimate(data, ARM_BASE, SDP).details


def test_what_is_not_excited_stays_with_the_prior_whatever_its_share():
    data = build_regression(ARM, locked(exact_log(), 1, ARM))
    found = estimate(data, ARM_BASE, FeasibleSDP(prior="entropic", covariance="classical"))
    assert found.origin[ARM_BASE.index("fv2")] == "prior"
    assert found.sigma_percent[ARM_BASE.index("fv2")] == np.inf


@pytest.mark.parametrize("prior", ["none", "scaled", "entropic"])
def test_effects_that_are_not_excited_keep_their_value_to_the_digit(prior):
    """Only a pull holds them in the program, which is weaker than a solver's tolerance."""
    data = build_regression(ARM, noisy_log(locked(exact_log(), 1, ARM), 3.0, seed=2))
    names = ("fv2", "fc2")
    start = ARM.parameters.updated({name: 1.1 * ARM.parameters[name] for name in names})
    found = estimate(data, ARM_BASE, FeasibleSDP(prior=prior, covariance="classical"), start)
    for name in names:
        assert found.origin[ARM_BASE.index(name)] == "prior"
        assert found.standard[name] == pytest.approx(start[name], rel=1e-12)


def test_inputs_are_not_changed_and_twice_is_the_same():
    robot, base, data = noisy_tree(6, 4, 3.0)
    before = [factor.R.copy() for factor in data.factors]
    first, second = SDP.estimate(data, base, robot.parameters), SDP.estimate(data, base, robot.parameters)
    assert np.array_equal(first.base_values, second.base_values)
    assert all(np.array_equal(old, factor.R) for old, factor in zip(before, data.factors, strict=True))


def test_refusals():
    robot, base, data = noisy_tree(0, 2, 1.0)
    with pytest.raises(UnknownNameError, match="unknown prior 'flat'"):
        FeasibleSDP(prior="flat")
    with pytest.raises(InputError, match="strength of the prior is 0"):
        FeasibleSDP(prior="scaled", strength=0.0)
    with pytest.raises(UnknownNameError, match="unknown consistency condition 'semi'"):
        FeasibleSDP(condition="semi").estimate(data, base, robot.parameters)
    bad = robot.parameters.updated({"Ixx1": 1e-6})
    with pytest.raises(InputError, match="1 of 2 links are not: 1"):
        FeasibleSDP(prior="entropic").estimate(data, base, bad)


def test_public_call():
    _, base, data = noisy_tree(0, 3, 3.0)
    found = estimate(data, base, FeasibleSDP())
    assert found.method == "sdp"
    assert found.feasible
    assert (np.linalg.eigvalsh(found.covariance) > -1e-12).all()


# SDPA ---------------------------------------------------------------------------------------------
