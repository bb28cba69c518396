from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import cvxpy
import numpy as np
import pytest

from consistent_problems import noisy_tree
from dynid.adapters.clarabel import cone_rows, triangle_entries
from dynid.engine import Processes
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.bounds import Bounds, read_bounds
from dynid.estimation.constraints.conditions import Condition, NameAtMost, Reader
from dynid.estimation.constraints.constraints import FixedValues, MassBounds, TotalMass
from dynid.estimation.convex.conic import REACH, ConsistentSet, least_distance, nearest_in
from dynid.estimation.convex.layout import Layout
from dynid.estimation.estimate import estimate
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.registry import METHODS, method_named
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.outcome import Outcome
from dynid.estimation.retrieval import refinement
from dynid.estimation.retrieval.annealing import Penalised, box_jacobian, phi_from_box
from dynid.estimation.retrieval.joint_wrench import joint_wrenches, largest_joint_wrench
from dynid.estimation.retrieval.problem import PULLS_OF_DATA
from dynid.estimation.retrieval.retrieve import PenaltyRetrieval
from dynid.inertia import is_consistent, mass_com_inertia, phi_from_mass_com_inertia
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression, matrix_regression
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics, torque_regressor
from messages import facts
from noisy_logs import exact_log, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
TRUTH = BASE.base_values(ARM.parameters)
LAYOUT = Layout.of_parameters(ARM.parameters)


@pytest.fixture(scope="module")
def regression():
    return build_regression(ARM, noisy_log(exact_log(), 0.5, seed=1))


# Conditions -----------------------------------------------------------------------------------------


def _random_phi(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return ARM.parameters.values * rng.uniform(0.8, 1.2, len(ARM.parameters))


@pytest.mark.parametrize(
    "h",
    [
        lambda p: p["c1x"] ** 2 + 3.0 * p["I2xy"] - p["m3"] / (1.0 + p["Izz1"]),
        lambda p: np.sqrt(p["c2x"] ** 2 + p["c2z"] ** 2) - 0.1,
        lambda p: np.hypot(p["c3y"], p["c3z"]) * np.exp(-p["m2"]) + np.sin(p["fv1"]) * np.cos(p["mx2"]),
        lambda p: -min(0.0, 0.5 - p["m1"]) if p["c1z"] < 10.0 else p["m2"],
        lambda p: [p["I1xx"], abs(p["I1yz"]), 2.0 - p["J2zz"], np.arctan2(p["mc2x"], p["m2"])],
        lambda p: np.log(p.mass(1)) + p.inertia_at_com(2)[0][0] - 1.0 / p.com(3)[2],
        lambda p: np.float64(2.0) * p["m1"] - p["m1"] ** 1.5 + (1.0 - p["m2"]) / p["m3"] + np.tan(p["c1x"]),
    ],
)
def test_jacobians_are_exact(h):
    condition = Condition("h", h)
    phi = _random_phi()
    values, J, exact = condition.derivative(LAYOUT, phi, np.ones(len(LAYOUT)))
    assert exact
    np.testing.assert_allclose(values, condition.values(LAYOUT, phi), rtol=1e-14)
    for i in range(len(phi)):
        step = np.zeros(len(phi))
        step[i] = 1e-6 * max(1.0, abs(phi[i]))
        slope = (condition.values(LAYOUT, phi + step) - condition.values(LAYOUT, phi - step)) / (2.0 * step[i])
        np.testing.assert_allclose(J[:, i], slope, rtol=1e-6, atol=1e-8)


def test_functions_of_plain_numbers_are_differenced():
    condition = Condition("plain", lambda p: math.sqrt(p["m1"]) - 1.0)
    phi = _random_phi()
    _, J, exact = condition.derivative(LAYOUT, phi, np.ones(len(LAYOUT)))
    assert not exact
    assert J[0, LAYOUT.index("m1")] == pytest.approx(0.5 / math.sqrt(phi[0]), rel=1e-7)


def test_errors_inside_a_condition_are_not_hidden():
    def broken(p):
        return p["m1"] + "a"

    with pytest.raises(TypeError):
        Condition("broken", broken).values(LAYOUT, _random_phi())
    with pytest.raises(InputError, match="'nan' returned"):
        Condition("nan", lambda p: float("nan")).values(LAYOUT, _random_phi())
    with pytest.raises(InputError, match="expected a function"):
        Condition("number", 3.0)
    with pytest.raises(InputError, match="2 conditions are named 'same'"):
        PenaltyRetrieval(conditions=(Condition("same", abs), Condition("same", abs)))


def test_names_of_quantities():
    phi = _random_phi()
    mass, com, inertia = mass_com_inertia(phi[:30].reshape(3, 10))
    read = Reader(LAYOUT, phi)
    assert read["c2y"] == read["cy2"] == pytest.approx(com[1, 1])
    assert read["I3xz"] == pytest.approx(inertia[2, 0, 2])
    assert read["I3yy"] == pytest.approx(inertia[2, 1, 1])
    assert read["J2xy"] == read["Ixy2"] == phi[15]
    assert read["mc2z"] == read["mz2"] == phi[13]
    assert read.mass(ARM.joint_names[1]) == mass[1]
    with pytest.raises(UnknownNameError):
        read["c9x"]
    with pytest.raises(UnknownNameError):
        read["weight1"]


# Bounds files ---------------------------------------------------------------------------------------


def test_bounds_become_constraints_and_conditions(tmp_path):
    path = tmp_path / "bounds.toml"
    path.write_text(
        "m1 = [0.5, 4.0]\nc1x = [-0.1, inf]\nI1xx = [0.0, 0.2]\nI1xy = [-0.1, 0.1]\nfv1 = [0.0, 2.0]\n"
        "total_mass = [5.0, 9.0]\n[[constraints.com_sphere]]\nlink = 2\ncentre = [0.0, 0.0, 0.1]\nradius = 0.3\n"
    )
    bounds = read_bounds(path)
    assert {c.kind for c in bounds.convex()} == {"mass", "linear", "total_mass", "com_sphere"}
    assert MassBounds(1, 0.5, 4.0) in bounds.convex()
    assert TotalMass(5.0, 9.0) in bounds.convex()
    # a positive moment of inertia follows from consistency
    assert [c.name for c in bounds.conditions()] == ["I1xx <= 0.2", "I1xy <= 0.1", "I1xy >= -0.1"]
    phi = _random_phi()
    phi[0], phi[1] = 5.0, -1.0
    assert {"m1", "c1x"} <= set(bounds.violated(LAYOUT, phi))
    assert bounds.violated(LAYOUT, phi)["m1"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "link,low,high\nm1,0,1\n", facts("column", "link")),
        ("a.csv", "name,lower,upper\nm1,0\n", facts("2", "3", "bounds")),
        ("a.csv", "name,lower,upper\nm1,zero,1\n", facts("m1", "zero")),
        ("a.csv", "name,lower,upper\nm1,2,1\n", "bounds of 'm1' are 2 and 1"),
        ("a.csv", "name,lower,upper\nm1,0,1\nm1,0,2\n", "bounds of 'm1' stand twice"),
        ("a.toml", "m1 = 3\n", "expected two numbers"),
        ("a.toml", "m1 = [\n", "is not valid TOML"),
        ("a.xlsx", "", "expected .csv or .toml"),
    ],
)
def test_bad_bounds_files_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_bounds(tmp_path / name)


def test_missing_bounds_file_is_named():
    with pytest.raises(InputError, match=r"'nowhere\.csv' cannot be read"):
        read_bounds("nowhere.csv")


def test_bounds_of_links_that_are_not_there(regression):
    for bounds in (Bounds({"I9xx": (0.0, 1.0)}), Bounds({"c9x": (0.0, 1.0)}), Bounds({"weight": (0.0, 1.0)})):
        with pytest.raises(UnknownNameError):
            estimate(regression, BASE, PenaltyRetrieval(bounds=bounds))


# The method -----------------------------------------------------------------------------------------


def test_it_is_the_sdp_where_everything_is_convex(regression):
    known = (MassBounds(2, 0.1, 0.8 * ARM.parameters["m2"]), FixedValues({"Izz3": 0.01}))
    program = estimate(regression, BASE, FeasibleSDP(constraints=known, margin=1e-7))
    found = estimate(regression, BASE, PenaltyRetrieval(constraints=known))
    assert found.outcome is Outcome.SOLVED
    assert found.feasible
    assert found.details["violated"] == {}
    scale = np.linalg.norm(found.residual_rms)
    assert np.linalg.norm(found.residual_rms) <= (1.0 + 1e-5) * np.linalg.norm(program.residual_rms)
    np.testing.assert_allclose(found.residual_rms, program.residual_rms, atol=1e-4 * scale)
    cost = float(np.sum(found.residual_rms**2) * found.n_rows / len(found.residual_rms))
    assert found.details["cost"] == pytest.approx(cost, rel=1e-9)
    assert 0.0 <= found.details["gap"] <= 1e-4 * found.details["cost"]


def test_weighted_coefficients_are_the_one_step_cost(regression):
    """With the classical covariance ``sigma^2 (W^T W)^-1`` both costs differ by a constant and a factor."""
    known = (MassBounds(3, 0.01, 0.5 * ARM.parameters["m3"]), MassBounds(2, 0.01, 1.0))
    options = {"constraints": known, "covariance": "classical"}
    one = estimate(regression, BASE, PenaltyRetrieval(cost="torque", **options))
    two = estimate(regression, BASE, PenaltyRetrieval(cost="coefficients", weighted=True, **options))
    np.testing.assert_allclose(two.base_values, one.base_values, atol=1e-4 * np.abs(one.base_values).max())


def test_a_condition_without_convexity_is_met_and_named(regression):
    def far_from_axis(p):
        return 0.04 - np.sqrt(p["c2x"] ** 2 + p["c2y"] ** 2)

    condition = Condition("far from axis", far_from_axis)
    found = estimate(regression, BASE, PenaltyRetrieval(conditions=(condition,)))
    assert found.details["violated"] == {}
    assert found.feasible
    com = mass_com_inertia(found.standard.inertials)[1][1]
    assert np.hypot(com[0], com[1]) >= 0.04
    impossible = Condition("impossible", lambda p: 1.0 + p["c2x"] ** 2)
    broken = estimate(regression, BASE, PenaltyRetrieval(conditions=(impossible,), starts=2))
    assert broken.outcome is Outcome.STALLED
    assert broken.details["violated"]["impossible"] >= 1.0
    assert any("impossible" in note for note in broken.notes)


def test_constraints_that_contradict_one_another_are_named(regression):
    found = estimate(regression, BASE, PenaltyRetrieval(constraints=(MassBounds(1, 5.0, 6.0), TotalMass(0.1, 2.0))))
    assert found.outcome is Outcome.INFEASIBLE
    assert any("mass" in note for note in found.notes)


def test_coefficients_of_a_true_robot_come_back_exactly():
    found = PenaltyRetrieval().retrieve(BASE, TRUTH, robot=ARM)
    assert found.gap == pytest.approx(0.0, abs=1e-14)
    np.testing.assert_allclose(found.base_values, TRUTH, atol=1e-9)
    assert is_consistent(found.bodies, "full").all()


def test_options_are_checked():
    with pytest.raises(UnknownNameError, match="genetic"):
        PenaltyRetrieval(optimiser="genetic")
    with pytest.raises(UnknownNameError, match="parameters"):
        PenaltyRetrieval(cost="parameters")
    with pytest.raises(InputError, match="starts is 0"):
        PenaltyRetrieval(starts=0)
    with pytest.raises(InputError, match="growth"):
        PenaltyRetrieval(growth=-1.0)
    with pytest.raises(InputError, match="needs the covariance"):
        PenaltyRetrieval(weighted=True).retrieve(BASE, TRUTH, robot=ARM)
    with pytest.raises(InputError, match="takes no bounds"):
        method_named("sdp", bounds="bounds.csv")
    assert "retrieve" in METHODS


# Algorithm 1 ----------------------------------------------------------------------------------------


def _keep(p):
    return p["c2x"] ** 2 - 0.01


def _small_problem(**options):
    limits = {f"m{i}": (0.1, 10.0) for i in (1, 2, 3)}
    limits |= {f"c{i}{axis}": (-0.4, 0.4) for i in (1, 2, 3) for axis in "xyz"}
    rigid = ARM.with_effects(())
    base = reduce_to_base(rigid)
    values = base.base_values(rigid.parameters) * np.random.default_rng(0).uniform(0.9, 1.1, base.n_base)
    method = PenaltyRetrieval(
        cost="coefficients", bounds=Bounds({**limits, "total_mass": (1.0, 20.0)}), conditions=(_keep,), **options
    )
    return method, base, values, rigid


def test_box_coordinates_and_their_derivative():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 1.0, len(LAYOUT))
    rows = p[LAYOUT.slots]
    tensor = np.empty((3, 3, 3))
    for place, (i, j) in enumerate([(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)]):
        tensor[:, i, j] = tensor[:, j, i] = rows[:, 4 + place]
    wanted = phi_from_mass_com_inertia(rows[:, 0], rows[:, 1:4], tensor)
    np.testing.assert_allclose(phi_from_box(LAYOUT, p)[LAYOUT.slots], wanted, atol=1e-14)
    J = box_jacobian(LAYOUT, p)
    for k in range(10):
        up, down = p.copy(), p.copy()
        up[LAYOUT.slots[:, k]] += 1e-6
        down[LAYOUT.slots[:, k]] -= 1e-6
        slope = (phi_from_box(LAYOUT, up) - phi_from_box(LAYOUT, down))[LAYOUT.slots] / 2e-6
        np.testing.assert_allclose(J[:, :, k], slope, atol=1e-8)


def test_gradient_of_the_penalised_cost():
    from scipy.optimize import approx_fprime

    method, base, values, rigid = _small_problem()
    problem = method._problem(
        Layout.of_parameters(rigid.parameters), base, np.eye(base.n_base), values, 0.0, rigid.parameters
    )
    lower, upper = problem.bounds.box(problem.consistent.layout, problem.consistent.scale)
    f = Penalised(problem, lower, upper - lower, 10.0)
    u = np.random.default_rng(1).uniform(0.2, 0.8, len(lower))
    assert f.penalty(u) > 0.0
    numbers = approx_fprime(u, f.value, 1e-7)
    np.testing.assert_allclose(f.gradient(u), numbers, atol=1e-5 * np.abs(numbers).max())


def test_annealing_comes_near_the_lower_bound_and_tells_its_progress():
    method, base, values, rigid = _small_problem(optimiser="annealing", starts=2, steps=2, iterations=3)
    told = []
    found = PenaltyRetrieval(**{**vars(method), "progress": lambda done, of: told.append((done, of))}).retrieve(
        base, values, robot=rigid
    )
    assert told == [(1, 2), (2, 2)]
    assert not found.violated
    best = _small_problem()[0].retrieve(base, values, robot=rigid)
    assert best.lower_bound <= best.cost <= found.cost * (1.0 + 1e-6)
    assert found.cost < best.cost + 0.05 * float(values @ values)


@pytest.mark.slow
def test_the_same_starts_in_other_processes_give_the_same_answer():
    method, base, values, rigid = _small_problem(optimiser="annealing", starts=2, steps=1, iterations=1)
    here = PenaltyRetrieval(**{**vars(method), "conditions": ()})
    elsewhere = PenaltyRetrieval(**{**vars(here), "engine": Processes(2)})
    costs = [options.retrieve(base, values, robot=rigid).cost for options in (here, elsewhere)]
    assert costs[1] == pytest.approx(costs[0], rel=1e-9)


def test_an_interrupt_keeps_the_best_so_far():
    def interrupt(done, of):
        if done == 2:
            raise KeyboardInterrupt

    method, base, values, rigid = _small_problem(optimiser="annealing", starts=5, steps=1, iterations=2, progress=interrupt)
    found = method.retrieve(base, values, robot=rigid)
    assert found.details["interrupted"]
    assert found.details["starts"] == 1
    assert any("interrupted after 1 of 5 starts" in note for note in found.notes)


def _interrupt_after(monkeypatch, calls):
    """The interrupt key at the n-th value of the penalised cost."""
    count, value = itertools.count(1), Penalised.value

    def interrupted(self, u):
        if next(count) == calls:
            raise KeyboardInterrupt
        return value(self, u)

    monkeypatch.setattr(Penalised, "value", interrupted)


def test_an_interrupt_of_the_first_start_leaves_the_relaxation(monkeypatch):
    method, base, values, rigid = _small_problem(optimiser="annealing", starts=5, steps=1, iterations=2)
    method = PenaltyRetrieval(**{**vars(method), "conditions": ()})
    best = PenaltyRetrieval(**{**vars(method), "optimiser": "refine"}).retrieve(base, values, robot=rigid)
    _interrupt_after(monkeypatch, 50)
    found = method.retrieve(base, values, robot=rigid)
    assert found.details["interrupted"]
    assert found.outcome is Outcome.NOT_CONVERGED
    assert not found.violated
    assert found.cost == pytest.approx(best.cost, rel=1e-6)
    assert found.notes == (
        "interrupted after 0 of 5 starts; the result is the optimum of the convex relaxation, which meets every condition",
    )


def test_an_interrupt_of_the_first_start_leaves_its_best_point_where_the_relaxation_does_not_do(monkeypatch):
    method, base, values, rigid = _small_problem(optimiser="annealing", starts=5, steps=1, iterations=2)

    def bent(p):
        return 1.0 - p["c2x"] ** 2 / 0.09  # |c2x| >= 0.3: not convex, and nowhere near the data

    method = PenaltyRetrieval(**{**vars(method), "conditions": (Condition("bent", bent),)})
    _interrupt_after(monkeypatch, 120)
    found = method.retrieve(base, values, robot=rigid)
    assert found.details["interrupted"]
    assert "the best point of the start that was under way" in found.notes[0]
    residual = found.base_values - values
    assert found.cost == pytest.approx(residual @ residual, rel=1e-9)
    # better than where it began, which is a random point of the box
    problem = method._problem(
        Layout.of_parameters(rigid.parameters), base, np.eye(base.n_base), values, 0.0, rigid.parameters
    )
    lower, upper = problem.bounds.box(problem.consistent.layout, problem.consistent.scale)
    u = np.random.default_rng(np.random.SeedSequence(method.seed).spawn(1)[0]).uniform(size=len(lower))
    assert found.cost < problem.cost(Penalised(problem, lower, upper - lower, 0.0).point(u)[1])


def test_an_interrupt_of_a_refinement_leaves_the_point_where_the_conditions_hold(monkeypatch):
    method, base, values, rigid = _small_problem()

    def bent(p):
        return 1.0 - p["c2x"] ** 2 / 0.09

    method = PenaltyRetrieval(**{**vars(method), "conditions": (Condition("bent", bent),)})
    whole = method.retrieve(base, values, robot=rigid)
    descend, count = refinement._descend, itertools.count(1)

    def interrupted(*arguments):
        if next(count) == 2:
            raise KeyboardInterrupt
        return descend(*arguments)

    monkeypatch.setattr(refinement, "_descend", interrupted)
    found = method.retrieve(base, values, robot=rigid)
    assert found.details["interrupted"]
    assert not found.violated
    assert whole.cost <= found.cost


def test_starts_in_any_order_give_the_same_answer():
    method, base, values, rigid = _small_problem(optimiser="annealing", starts=4, steps=1, iterations=1)
    here, there = (
        PenaltyRetrieval(**{**vars(method), "engine": engine}).retrieve(base, values, robot=rigid)
        for engine in ("serial", "threads:3")
    )
    assert there.details["start_costs"] == here.details["start_costs"]
    assert there.cost == here.cost


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the interrupt key is sent as a POSIX signal to the group")
def test_the_interrupt_key_while_other_processes_anneal(tmp_path):
    script = tmp_path / "annealing.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import signal
            import sys
            sys.path.insert(0, {str(Path(__file__).parents[2])!r})
            import numpy as np
            from dynid.estimation.constraints.bounds import Bounds
            from dynid.estimation.retrieval.retrieve import PenaltyRetrieval
            from dynid.regression.base import reduce_to_base
            from noisy_logs import short_arm

            if __name__ == "__main__":
                signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell turns it off for jobs in the background
                robot = short_arm().with_effects(())
                base = reduce_to_base(robot)
                values = base.base_values(robot.parameters) * np.random.default_rng(0).uniform(0.9, 1.1, base.n_base)
                method = PenaltyRetrieval(
                    cost="coefficients", bounds=Bounds({{"m1": (0.1, 10.0)}}), optimiser="annealing", starts=4, steps=100,
                    iterations=10_000, engine="processes:2",
                )
                print("go", flush=True)
                found = method.retrieve(base, values, robot=robot)
                print(found.details["interrupted"], not found.violated, found.gap < 1e-3 * found.cost)
            """
        )
    )
    program = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "go\n"
    time.sleep(4.0)
    os.killpg(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=60)
    assert (out, err, program.returncode) == ("True True True\n", "", 0)


# The lower bound ------------------------------------------------------------------------------------


def optimum_in_cvxpy(consistent: ConsistentSet, G, centre, farthest):
    """``min ||G (x - centre)||^2`` over the set, no further than ``farthest`` from the centre, by cvxpy."""
    d = cvxpy.Variable(consistent.n)
    rows = consistent.M @ d + (consistent.M @ centre + consistent.k)
    listed = [cvxpy.norm(d) <= farthest]
    for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
        part = rows[first : first + cone_rows((kind, size))]
        if kind == "zero":
            listed.append(part == 0.0)
        elif kind == "nonnegative":
            listed.append(part >= 0.0)
        elif kind == "second_order":
            listed.append(cvxpy.norm(part[1:]) <= part[0])
        else:
            row, column, weight = triangle_entries(size)
            matrix = cvxpy.Variable((size, size), symmetric=True)
            listed += [matrix >> 0, cvxpy.multiply(weight, matrix[row, column]) == part]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(G @ d)), listed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at this tolerance cvxpy may call its answer inaccurate
        program.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(program.value)


def _random_problem(seed):
    """Noisy least squares of a random tree, some of it with bounds that bite."""
    robot, base, data = noisy_tree(seed, 2 + seed % 3, 3.0)
    linear = LinearProblem.of(data, base, robot.parameters)
    beta = linear.solve(np.ones(len(linear.channels)))
    known = (MassBounds(1, 0.1, 0.7 * robot.parameters["m1"]), TotalMass(upper=5.0 + seed)) if seed % 2 else ()
    method = PenaltyRetrieval(constraints=known)
    root = np.vstack(linear.channels)[:, :-1]
    layout = Layout.of_parameters(robot.parameters)
    return method._problem(layout, base, root, beta, 1.5, robot.parameters, PULLS_OF_DATA)


@pytest.mark.parametrize("seed", range(8))
def test_the_lower_bound_is_one_and_close(seed):
    problem = _random_problem(seed)
    x, bound, verdict = problem.relaxed()
    assert verdict == "solved"
    best = problem.floor + optimum_in_cvxpy(problem.consistent, problem.G, problem.centre, 0.1 * REACH)
    assert bound <= best * (1.0 + 1e-9)
    assert bound >= best * (1.0 - 1e-3)
    assert best <= problem.cost(x) * (1.0 + 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_any_multipliers_give_a_lower_bound(seed):
    """However poor they are: no solver has to be trusted."""
    problem = _random_problem(seed)
    best = optimum_in_cvxpy(problem.consistent, problem.G, problem.centre, 0.1 * REACH)
    good = nearest_in(problem.consistent, problem.G, problem.centre, pull=1e-10).solution.dual
    rng = np.random.default_rng(seed)
    bounds = []
    for noise in (0.0, 1e-9, 1e-6, 1e-3, 1.0, 100.0):
        dual = good + noise * np.abs(good).max() * rng.normal(size=len(good))
        bounds.append(least_distance(problem.consistent, problem.G, problem.centre, dual))
        assert bounds[-1] <= best * (1.0 + 1e-8)
    assert bounds[0] >= 0.99 * best


# Wrenches -------------------------------------------------------------------------------------------


def test_wrench_along_the_axis_is_the_torque():
    q, v, a = random_states_within_limits(ARM, 50, seed=4)
    wrench = joint_wrenches(ARM, q, v, a)
    along = np.einsum("sjk,jk->sj", wrench, ARM.tree.screw)
    np.testing.assert_allclose(along, inverse_dynamics(ARM, q, v, a, effects=False), atol=1e-10)


def test_wrenches_are_those_of_pinocchio():
    pinocchio = pytest.importorskip("pinocchio")
    from dynid.adapters.pinocchio import pinocchio_model

    model = pinocchio_model(ARM)
    data = model.createData()
    q, v, a = random_states_within_limits(ARM, 5, seed=4)
    wrench = joint_wrenches(ARM, q, v, a)
    for sample in range(5):
        pinocchio.rnea(model, data, q[sample], v[sample], a[sample])
        for joint in range(3):
            np.testing.assert_allclose(wrench[sample, joint], data.f[joint + 1].vector, atol=1e-10)


def test_the_result_states_the_largest_wrench(regression):
    found = estimate(regression, BASE, PenaltyRetrieval())
    stated = found.details["largest_joint_wrench"]
    assert [entry["joint"] for entry in stated] == list(ARM.joint_names)
    log = exact_log()
    true = joint_wrenches(ARM, log.position, log.velocity, log.acceleration)
    force = np.linalg.norm(true[..., :3], axis=-1).max(axis=0)
    ratio = np.array([entry["force"] for entry in stated]) / force
    assert (ratio > 0.1).all()
    assert (ratio < 10.0).all()


def test_rows_without_a_motion_say_that_no_wrench_is_stated():
    q, v, a = random_states_within_limits(ARM, 60, seed=4)
    Y = torque_regressor(ARM, q, v, a).reshape(-1, len(ARM.parameters))
    rows = matrix_regression(ARM.parameters, ["rows"], [np.column_stack([Y, Y @ ARM.parameters.values])])
    found = estimate(rows, BASE, PenaltyRetrieval())
    assert found.details["largest_joint_wrench"] == []
    assert any("come without the robot and its motion" in note for note in found.notes)
    # whoever knows them asks for it: in poses at rest the joints carry the weight
    still = np.zeros_like(q)
    stated = largest_joint_wrench(ARM, [(q, still, still)])
    weight = 9.81 * ARM.parameters.inertials[:, 0].sum()
    assert stated[0]["force"] == pytest.approx(weight, rel=1e-2)
    assert [entry["joint"] for entry in stated] == list(ARM.joint_names)


def test_one_sided_quantities():
    phi = _random_phi()
    read = Reader(LAYOUT, phi)
    assert NameAtMost("m1", 1.0, 2.0)(read) == pytest.approx(phi[0] - 2.0)
    assert NameAtMost("m1", -1.0, -2.0)(read) == pytest.approx(2.0 - phi[0])
