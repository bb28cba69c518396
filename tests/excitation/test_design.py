"""Whole designs on small robots: better than random, inside every limit, the same from the same seed, in time."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation import design
from dynid.excitation.bspline import BSplineShape
from dynid.excitation.criteria import ConditionNumber, TraceInverse
from dynid.excitation.design import base_regressor, design_excitation
from dynid.excitation.fourier import FourierShape, random_fourier
from dynid.excitation.gradient import torque_gradient
from dynid.excitation.limits import limits_of, margins_of
from dynid.excitation.problem import DesignProblem
from dynid.excitation.search import stages_for
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import Armature, Coulomb, LoadCoulomb, Offset, Viscous
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
    return design_excitation(robot, shape=SHAPE, starts=3, seed=1, rest=True, periods=2, engine="serial")


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
        assert getattr(found.margins, name).value == pytest.approx(getattr(fine, name).value, abs=2e-3)
    used = [margin.value for name, margin in found.margins.items() if name != "torque"]
    assert min(used) < 0.02  # a design that leaves room everywhere is not at its best


def test_what_is_played_starts_and_ends_at_rest(found):
    _, v, a = found.playable.evaluate([0.0, found.playable.duration_s])
    np.testing.assert_allclose(v, 0.0, atol=1e-9)
    np.testing.assert_allclose(a, 0.0, atol=1e-8)
    assert found.playable.duration_s > 2 * SHAPE.period_s


def test_the_same_seed_gives_the_same_motion(robot, found):
    again = design_excitation(robot, found.base, SHAPE, starts=3, seed=1, rest=True, periods=2, engine="threads:2")
    other = design_excitation(robot, found.base, SHAPE, starts=3, seed=2, engine="serial")
    np.testing.assert_allclose(again.trajectory.a, found.trajectory.a, atol=1e-12)
    np.testing.assert_allclose(again.trajectory.b, found.trajectory.b, atol=1e-12)
    assert again.condition_number == pytest.approx(found.condition_number, rel=1e-9)
    assert not np.allclose(other.trajectory.offset, again.trajectory.offset)
    assert again.starts == pytest.approx(found.starts)


@pytest.mark.slow
def test_time_budget_is_kept_and_noted(monkeypatch):
    robot = demo_arm()
    clock = SimulatedClock(monkeypatch, 0.004)  # a step of the search
    found = design_excitation(robot, None, FourierShape(10.0, 5), starts=50, seconds=3.0, engine="serial")
    assert clock.now_s < 3.1
    assert found.seconds < 3.1
    assert any("cut the search off" in note for note in found.notes)
    assert found.margins.smallest >= 0.0
    assert found.condition_number < 1000.0


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
        return replace(found, torque=replace(found.torque, value=-0.01)) if len(proofs) <= 4 else found

    for module in ("judged", "problem", "search"):
        monkeypatch.setattr(f"dynid.excitation.{module}.margins_of", slow)
    found = design_excitation(robot, None, SHAPE, starts=40, seconds=4.0, engine="serial")
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

    monkeypatch.setattr(design, "torque_gradient", first_slow)
    found = design_excitation(robot, None, SHAPE, starts=1, seconds=2.0, engine="serial")
    assert found.seconds < 2.1
    assert found.seconds == pytest.approx(clock.now_s - 20.0, abs=0.1)
    assert any("20 s of first-use compilation" in note for note in found.notes)


def test_periods_without_ramps(robot):
    base = reduce_to_base(robot)
    found = design_excitation(robot, base, SHAPE, starts=1, periods=3, engine="serial")
    assert found.playable.duration_s == pytest.approx(3 * SHAPE.period_s)
    with pytest.raises(InputError, match="cannot be repeated 2 times"):
        design_excitation(robot, base, BSplineShape(6.0, 7), starts=1, periods=2, engine="serial")


def test_torque_limits_bind_and_hold(robot):
    base = reduce_to_base(robot)
    free = design_excitation(robot, base, SHAPE, starts=1, engine="serial")
    peak = np.abs(inverse_dynamics(robot, *free.trajectory.evaluate(free.trajectory.grid(3000)))).max(axis=0)
    weak = replace(robot, joints=tuple(replace(j, tau_max=0.8 * p) for j, p in zip(robot.joints, peak, strict=True)))
    assert margins_of(weak, free.trajectory, limits_of(weak)).torque.value < 0.0
    held = design_excitation(weak, base, SHAPE, starts=2, engine="serial")
    assert 0.0 <= held.margins.torque.value < 0.1
    assert held.margins.smallest >= 0.0


@pytest.mark.slow
def test_jerk_and_tool_speed_limits_hold(robot):
    limits = limits_of(robot, jerk=20.0, tool_speed=0.7)
    found = design_excitation(robot, None, SHAPE, limits=limits, starts=2, rest=True, engine="serial")
    assert found.margins.jerk.value >= 0.0
    assert found.margins.tool_speed.value >= 0.0
    assert min(found.margins.jerk.value, found.margins.tool_speed.value) < 0.05


@pytest.mark.parametrize("shape", [BSplineShape(6.0, 7), FourierShape(6.0, 4, at_rest=True)], ids=repr)
def test_other_shapes(robot, shape):
    found = design_excitation(robot, None, shape, starts=2, engine="serial")
    assert found.margins.smallest >= 0.0
    _, v, _ = found.playable.evaluate([0.0, found.playable.duration_s])
    np.testing.assert_allclose(v, 0.0, atol=1e-9)
    assert found.condition_number < 60.0


@pytest.mark.slow
def test_criteria_differ_in_what_they_make_good(robot):
    base = reduce_to_base(robot)
    by = {
        name: design_excitation(robot, base, SHAPE, criterion=name, starts=2, engine="serial")
        for name in ("condition", "trace", "condition+0.5*logdet")
    }
    assert by["condition"].condition_number < by["trace"].condition_number
    assert by["trace"].trace_of_inverse < by["condition"].trace_of_inverse
    assert by["condition+0.5*logdet"].margins.smallest >= 0.0
    scaled = design_excitation(robot, base, SHAPE, scaled=True, starts=2, engine="serial")
    assert scaled.condition_number_scaled < by["condition"].condition_number_scaled
    custom = design_excitation(robot, base, SHAPE, criterion=TraceInverse(), starts=2, engine="serial")
    assert custom.trace_of_inverse == pytest.approx(by["trace"].trace_of_inverse, rel=1e-6)


def test_expected_noise_weighs_the_rows(robot):
    problem = DesignProblem.of(robot, reduce_to_base(robot), SHAPE, limits_of(robot), torque_noise=[1.0, 2.0, 4.0])
    plain = DesignProblem.of(robot, reduce_to_base(robot), SHAPE, limits_of(robot))
    Y = np.ones((len(problem.bases[0]), 3, len(robot.parameters)))
    ratio = problem.base_columns(Y) / plain.base_columns(Y)
    np.testing.assert_allclose(ratio.reshape(-1, 3, ratio.shape[1])[:, :, 0], [[1.0, 0.5, 0.25]] * len(Y))


def test_gradient_of_the_whole_problem():
    robot = planar_2r([Viscous(), Coulomb(), Offset(), Armature()])
    robot = replace(robot, joints=tuple(replace(joint, tau_max=100.0) for joint in robot.joints))
    limits = limits_of(robot, tool_speed=20.0)
    for base in (reduce_to_base(robot), BaseReduction.from_matrix(_mixed(reduce_to_base(robot)), robot.parameters.names)):
        problem = DesignProblem.of(robot, base, FourierShape(5.0, 2), limits, scaled=True, torque_noise=[1.0, 0.5])
        x = problem.random_start(np.random.default_rng(0))
        value, gradient = problem.function(x, ConditionNumber(4.0), 0.1)
        assert np.isfinite(value)
        h = 1e-6
        expected = [
            (problem.function(x + s, ConditionNumber(4.0), 0.1)[0] - problem.function(x - s, ConditionNumber(4.0), 0.1)[0])
            / (2.0 * h)
            for s in h * np.eye(len(x))
        ]
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


def _mixed(base):
    """Another grouping, which is no choice of columns."""
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(base.n_base, base.n_base)))
    return Q @ base.K


def test_stages_start_with_a_ridge_and_end_sharp():
    stages = stages_for("condition")
    assert stages[0].criterion.ridge > 0.0
    powers = [stage.criterion.power for stage in stages[1:]]
    assert powers == sorted(powers)
    assert all(a.mu > b.mu for a, b in pairwise(stages))


def test_refusals(robot):
    with pytest.raises(InputError, match="floats"):
        design_excitation(random_tree(0, floating=True))
    with pytest.raises(InputError, match="time budget is 0 s"):
        design_excitation(robot, seconds=0.0)
    with pytest.raises(InputError, match="0 starts"):
        design_excitation(robot, starts=0)
    with pytest.raises(InputError, match="must be of the same robot and effects"):
        design_excitation(robot, reduce_to_base(planar_2r()), SHAPE)
    with pytest.raises(InputError, match="load_coulomb"):
        design_excitation(planar_2r([LoadCoulomb()]), reduce_to_base(planar_2r([LoadCoulomb()])), SHAPE)
    with pytest.raises(InputError, match="unknown criterion 'beauty'"):
        design_excitation(robot, None, SHAPE, criterion="beauty")
    with pytest.raises(InputError, match="expected torque noise is 0"):
        design_excitation(robot, None, SHAPE, torque_noise=0.0)
    feeble = replace(robot, joints=tuple(replace(joint, tau_max=1e-3) for joint in robot.joints))
    with pytest.raises(InputError, match=facts("100", "motion", "limit")):
        design_excitation(feeble, None, SHAPE, starts=1, engine="serial")
