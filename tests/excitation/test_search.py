"""Whole designs on small robots: better than random, inside every limit, the same from the same seed, in time."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.excitation import search
from dynid.excitation.criteria import criterion_from
from dynid.excitation.design_problem import DesignProblem
from dynid.excitation.excitation_result import base_regressor
from dynid.excitation.gradient import torque_gradient
from dynid.excitation.limits import limits_of, margins_of
from dynid.excitation.search import search_excitation, stages_for
from dynid.excitation.shapes import BSplineShape, FourierShape, random_fourier
from dynid.model.effects.dry_friction import LoadCoulomb
from dynid.regression.base import reduce_to_base
from messages import facts
from problems import demo_arm, planar_2r, random_tree
from simulated_clock import SimulatedClock

SHAPE = FourierShape(6.0, 3)


def arm():
    """Three joints of the built-in arm."""
    return demo_arm().only(["shoulder_yaw", "shoulder_pitch", "elbow"])


@pytest.fixture(scope="module")
def robot():
    return arm()


@pytest.fixture(scope="module")
def found(robot):
    return search_excitation(
        robot, shape=SHAPE, starts=3, seed=1, rest=True, periods=2, engine="serial", limits=limits_of(robot)
    )


def random_conditions(robot, base, shape, n=20):
    motions = [random_fourier(robot, shape.period_s, shape.harmonics, seed=s, fraction=1.0) for s in range(n)]
    return np.array([np.linalg.cond(base_regressor(robot, base, motion)) for motion in motions])


def test_a_design_beats_random_motions(robot, found):
    assert found.condition_number < 0.5 * np.median(random_conditions(robot, found.base, SHAPE))
    assert found.condition_number == pytest.approx(
        np.linalg.cond(base_regressor(robot, found.base, found.trajectory)), rel=1e-9
    )
    assert found.singular_values[0] / found.singular_values[-1] == pytest.approx(found.condition_number)
    W = base_regressor(robot, found.base, found.trajectory)
    assert found.trace_of_inverse == pytest.approx(np.sqrt(np.trace(np.linalg.inv(W.T @ W))), rel=1e-6)
    assert found.condition_number_scaled == pytest.approx(np.linalg.cond(W / np.linalg.norm(W, axis=0)), rel=1e-9)


def test_every_margin_holds_on_a_fine_grid(robot, found):
    assert found.margins.n_times >= 10 * len(SHAPE.limit_times()[0])
    fine = margins_of(robot, found.playable, found.limits, 50_000)
    assert fine.smallest >= 0.0
    for name in ("position", "velocity", "acceleration", "torque"):
        assert getattr(found.margins, name) == pytest.approx(getattr(fine, name), abs=2e-3)
    used = [margin for name, margin in found.margins.items() if name != "torque"]
    assert min(used) < 0.02  # a design that leaves room everywhere is not at its best


def test_what_is_played_starts_and_ends_at_rest(found):
    _, v, a = found.playable.evaluate([0.0, found.playable.duration_s])
    np.testing.assert_allclose(v, 0.0, atol=1e-9)
    np.testing.assert_allclose(a, 0.0, atol=1e-8)
    assert found.playable.duration_s > 2 * SHAPE.period_s


def test_the_same_seed_gives_the_same_motion(robot, found):
    again = search_excitation(
        robot, found.base, SHAPE, starts=3, seed=1, rest=True, periods=2, engine="threads:2", limits=limits_of(robot)
    )
    other = search_excitation(
        robot, found.base, SHAPE, starts=3, seed=2, engine="serial", limits=limits_of(robot), rest=False
    )
    np.testing.assert_allclose(again.trajectory.a, found.trajectory.a, atol=1e-12)
    np.testing.assert_allclose(again.trajectory.b, found.trajectory.b, atol=1e-12)
    assert again.condition_number == pytest.approx(found.condition_number, rel=1e-9)
    assert not np.allclose(other.trajectory.offset, again.trajectory.offset)
    assert again.starts == pytest.approx(found.starts)


@pytest.mark.slow
def test_time_budget_is_kept_and_noted(monkeypatch):
    robot = demo_arm()
    clock = SimulatedClock(monkeypatch, 0.004)  # a step of the search
    found = search_excitation(
        robot, None, FourierShape(10.0, 5), starts=50, seconds=3.0, engine="serial", limits=limits_of(robot), rest=False
    )
    assert clock.now_s < 3.1
    assert found.seconds < 3.1
    assert any("cut the search off" in note for note in found.notes)
    assert found.margins.smallest >= 0.0
    assert found.condition_number < 1000.0


def test_the_first_start_goes_on_after_its_share_of_the_time_but_not_after_the_budget(robot, monkeypatch):
    problem = DesignProblem.of(robot, reduce_to_base(robot), SHAPE, limits_of(robot))
    drawn = search.Candidate(0, problem.random_start(np.random.default_rng(0)), np.inf, np.inf, None)
    clock = SimulatedClock(monkeypatch, 0.1)

    def improved(latest_s):
        began_s = clock.now_s
        found = search._improved(problem, drawn, stages_for("condition")[:3], began_s, began_s + latest_s)
        assert found.cut_off
        return found, clock.now_s - began_s

    (still, _), (some, some_s), (most, most_s) = (improved(latest_s) for latest_s in (-1.0, 1.0, np.inf))
    np.testing.assert_array_equal(still.x, drawn.x)
    assert 1.0 < some_s < 2.0
    assert 3.0 < most_s < 6.0  # thirty steps, and those that were tried and did not pay
    assert most.condition < some.condition < still.condition


@pytest.mark.parametrize("seed", [0, 1])
def test_the_shortest_budget_still_beats_random_motions_and_does_not_depend_on_the_clock(robot, seed):
    motions = [
        search_excitation(
            robot, None, SHAPE, starts=5, seconds=seconds, seed=seed, engine="serial", limits=limits_of(robot), rest=False
        )
        for seconds in (1e-4, 1e-3)
    ]
    assert motions[0].condition_number < 0.5 * np.median(random_conditions(robot, motions[0].base, SHAPE))
    np.testing.assert_array_equal(motions[0].trajectory.a, motions[1].trajectory.a)
    assert not any("no better than a random one" in note for note in motions[0].notes)


def test_a_motion_that_is_no_better_than_random_ones_is_said_to_be(robot):
    problem = DesignProblem.of(robot, reduce_to_base(robot), SHAPE, limits_of(robot))
    others = [problem.measured_condition(problem.random_start(np.random.default_rng([3, k, 1]))) for k in range(5)]
    told = search.beside_random(problem, 3, 1.01 * max(others))
    assert told is not None
    said = facts(f"{1.01 * max(others):.4g}", f"{min(others):.4g}", f"{max(others):.4g}", "5 random motions", "--seconds")
    assert re.search(said, told)
    assert search.beside_random(problem, 3, 0.99 * min(others)) is None


def test_time_is_kept_for_proofs_that_take_long_and_fail(robot, monkeypatch):
    """Each proof takes 0.4 s and the first four find the torque limit violated: the budget holds and so does the motion."""
    proofs, n_proof_times = [], 10 * len(SHAPE.limit_times()[0])
    clock = SimulatedClock(monkeypatch, 0.004)

    def slow(measured, trajectory, limits, n_times):
        clock.sleep(0.4 * n_times / n_proof_times)
        found = margins_of(measured, trajectory, limits, n_times)
        if n_times < n_proof_times:
            return found
        proofs.append(n_times)
        return replace(found, torque=-0.01) if len(proofs) <= 4 else found

    for module in ("excitation_result", "design_problem", "search"):
        monkeypatch.setattr(f"dynid.excitation.{module}.margins_of", slow)
    found = search_excitation(
        robot, None, SHAPE, starts=40, seconds=4.0, engine="serial", limits=limits_of(robot), rest=False
    )
    assert clock.now_s < 5.0
    assert len(proofs) > 4
    assert found.margins.smallest >= 0.0


def test_compilation_is_noted_and_not_counted(robot, monkeypatch):
    calls = []
    clock = SimulatedClock(monkeypatch, 0.004)

    def first_slow(*arguments):
        if not calls:
            clock.sleep(20.0)
        calls.append(1)
        return torque_gradient(*arguments)

    monkeypatch.setattr(search, "torque_gradient", first_slow)
    found = search_excitation(
        robot, None, SHAPE, starts=1, seconds=2.0, engine="serial", limits=limits_of(robot), rest=False
    )
    assert found.seconds < 2.1
    assert found.seconds == pytest.approx(clock.now_s - 20.0, abs=0.1)
    assert any("20 s of first-use compilation" in note for note in found.notes)


def test_torque_limits_bind_and_hold(robot):
    base = reduce_to_base(robot)
    free = search_excitation(robot, base, SHAPE, starts=1, engine="serial", limits=limits_of(robot), rest=False)
    peak = np.abs(inverse_dynamics(robot, *free.trajectory.evaluate(free.trajectory.grid(3000)))).max(axis=0)
    weak = replace(robot, joints=tuple(replace(j, tau_max=0.8 * p) for j, p in zip(robot.joints, peak, strict=True)))
    assert margins_of(weak, free.trajectory, limits_of(weak)).torque < 0.0
    held = search_excitation(weak, base, SHAPE, starts=2, engine="serial", limits=limits_of(weak), rest=False)
    assert 0.0 <= held.margins.torque < 0.1
    assert held.margins.smallest >= 0.0


@pytest.mark.slow
def test_jerk_and_tool_speed_limits_hold(robot):
    limits = limits_of(robot, jerk=20.0, tool_speed=0.7)
    found = search_excitation(robot, None, SHAPE, limits=limits, starts=2, rest=True, engine="serial")
    assert found.margins.jerk >= 0.0
    assert found.margins.tool_speed >= 0.0
    assert min(found.margins.jerk, found.margins.tool_speed) < 0.05


@pytest.mark.parametrize("shape", [BSplineShape(6.0, 7), FourierShape(6.0, 4, at_rest=True)], ids=repr)
def test_other_shapes(robot, shape):
    found = search_excitation(robot, None, shape, starts=2, engine="serial", limits=limits_of(robot), rest=False)
    assert found.margins.smallest >= 0.0
    _, v, _ = found.playable.evaluate([0.0, found.playable.duration_s])
    np.testing.assert_allclose(v, 0.0, atol=1e-9)
    assert found.condition_number < 60.0


@pytest.mark.slow
def test_criteria_differ_in_what_they_make_good(robot):
    base = reduce_to_base(robot)
    by = {
        name: search_excitation(
            robot, base, SHAPE, criterion=name, starts=2, engine="serial", limits=limits_of(robot), rest=False
        )
        for name in ("condition", "trace", "condition+0.5*logdet")
    }
    assert by["condition"].condition_number < by["trace"].condition_number
    assert by["trace"].trace_of_inverse < by["condition"].trace_of_inverse
    assert by["condition+0.5*logdet"].margins.smallest >= 0.0
    scaled = search_excitation(
        robot, base, SHAPE, scaled=True, starts=2, engine="serial", limits=limits_of(robot), rest=False
    )
    assert scaled.condition_number_scaled < by["condition"].condition_number_scaled
    custom = search_excitation(
        robot, base, SHAPE, criterion=criterion_from("trace"), starts=2, engine="serial", limits=limits_of(robot), rest=False
    )
    assert custom.trace_of_inverse == pytest.approx(by["trace"].trace_of_inverse, rel=1e-6)


def test_expected_noise_weighs_the_rows(robot):
    problem = DesignProblem.of(robot, reduce_to_base(robot), SHAPE, limits_of(robot), torque_noise=[1.0, 2.0, 4.0])
    plain = DesignProblem.of(robot, reduce_to_base(robot), SHAPE, limits_of(robot))
    Y = np.ones((len(problem.bases[0]), 3, len(robot.parameters)))
    ratio = problem.base_columns(Y) / plain.base_columns(Y)
    np.testing.assert_allclose(ratio.reshape(-1, 3, ratio.shape[1])[:, :, 0], [[1.0, 0.5, 0.25]] * len(Y))


def test_stages_start_with_a_ridge_and_end_sharp():
    stages = stages_for("condition")
    assert stages[0].criterion.ridge > 0.0
    powers = [stage.criterion.power for stage in stages[1:]]
    assert powers == sorted(powers)
    assert all(a.mu > b.mu for a, b in pairwise(stages))


def test_refusals(robot):
    with pytest.raises(InputError, match="floats"):
        search_excitation(random_tree(0, floating=True), limits=limits_of(robot))
    with pytest.raises(InputError, match="time budget is 0 s"):
        search_excitation(robot, seconds=0.0, limits=limits_of(robot), rest=False)
    with pytest.raises(InputError, match="0 starts"):
        search_excitation(robot, starts=0, limits=limits_of(robot), rest=False)
    with pytest.raises(InputError, match="must be of the same robot and effects"):
        search_excitation(robot, reduce_to_base(planar_2r()), SHAPE, limits=limits_of(robot), rest=False)
    rubbing = planar_2r([LoadCoulomb()])
    with pytest.raises(InputError, match="load_coulomb"):
        search_excitation(rubbing, reduce_to_base(rubbing), SHAPE, limits=limits_of(rubbing))
    with pytest.raises(InputError, match="unknown criterion 'beauty'"):
        search_excitation(robot, None, SHAPE, criterion="beauty", limits=limits_of(robot), rest=False)
    with pytest.raises(InputError, match="torque noise is 0, expected a positive number"):
        search_excitation(robot, None, SHAPE, torque_noise=0.0, limits=limits_of(robot), rest=False)
    crawling = limits_of(robot, acceleration=1e-9)
    with pytest.raises(InputError, match=facts("base parameters", "condition number", "--period")):
        search_excitation(robot, None, SHAPE, starts=1, engine="serial", limits=crawling, rest=False)
    feeble = replace(robot, joints=tuple(replace(joint, tau_max=1e-3) for joint in robot.joints))
    with pytest.raises(InputError, match=facts("100", "motion", "limit")):
        search_excitation(feeble, None, SHAPE, starts=1, engine="serial", limits=limits_of(feeble), rest=False)
