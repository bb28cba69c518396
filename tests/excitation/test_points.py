"""Motion through optimal points: shortest times, and designs on small robots."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dynid.dynamics.regressors import energy_regressor
from dynid.dynamics.simulate import exact_motion
from dynid.errors import InputError
from dynid.excitation.command import design_excitation
from dynid.excitation.criteria import condition_number, scaling_of
from dynid.excitation.limits import limits_of, margins_of
from dynid.excitation.points import design_points
from dynid.excitation.shapes import random_fourier
from dynid.excitation.trajectories import PolynomialTrajectory
from dynid.model.effects.linear import Armature, Viscous
from dynid.regression.base import reduce_to_base
from dynid.regression.energy_rows import energy_matrix
from dynid.signals.steps.filters import EDGE_S
from messages import facts
from problems import demo_arm, planar_2r, random_tree
from simulated_clock import SimulatedClock


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["singular", "pivoted", "frobenius"])
def test_each_measure_of_condition(measure):
    robot = planar_2r()
    design = design_points(robot, 8, measure=measure, lambda2=0.0, seed=1)
    base = reduce_to_base(robot)
    assert design.energy_rows.shape == (8, base.n_base)
    assert np.linalg.cond(design.energy_rows) < 8.0
    assert margins_of(robot, design.trajectory, limits_of(robot), 20_000).smallest >= -1e-9


@pytest.mark.slow
def test_sampled_points_reproduce_the_regressor_exactly():
    robot = planar_2r([Armature()])
    design = design_points(robot, 12, tick_s=0.005)
    steps = design.trajectory.breaks_s / 0.005
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    sampled = design.trajectory.samples(200.0)
    rows = np.round(steps).astype(int)[1:-1]
    q, v = sampled.position[rows], sampled.velocity[rows]
    columns = np.hstack([energy_regressor(robot, q, v), 0.5 * v**2])
    np.testing.assert_allclose(np.diff(reduce_to_base(robot).regressor(columns), axis=0), design.energy_rows, atol=1e-9)


@pytest.mark.slow
def test_rest_points_at_both_ends():
    robot = planar_2r()
    design = design_points(robot, 8, home=[0.3, -0.2])
    q, v, _ = design.trajectory.evaluate([0.0, design.trajectory.duration_s])
    np.testing.assert_allclose(q, [[0.3, -0.2]] * 2, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(v, 0.0, atol=1e-13)


@pytest.mark.slow
def test_positions_without_effect_are_drawn_at_random():
    robot = demo_arm("none").only(["shoulder_yaw", "shoulder_pitch", "elbow"])
    design = design_points(robot, 20, starts=1)
    assert any("positions of shoulder_yaw have no effect" in note for note in design.notes)
    assert len(np.unique(design.trajectory.derivative(design.trajectory.point_times_s, 0)[:, 0])) == 21
    assert margins_of(robot, design.trajectory, limits_of(robot), 20_000).smallest >= -1e-9


def test_an_excitation_of_points():
    robot = planar_2r([Viscous()])
    found = design_points(robot, 10, starts=1, seed=3, iterations=30)
    times = found.trajectory.point_times_s
    assert min(times[0], found.playable.duration_s - times[-1]) > EDGE_S  # what identification drops of a log holds no row
    record = found.as_json()
    assert record["model"] == "energy"
    W = found.energy_rows
    assert record["condition_number"] == condition_number(W)
    assert record["torque_condition_number"] == found.condition_number
    assert record["scaling"] == scaling_of(W)
    n_base = reduce_to_base(robot).n_base  # friction does work between the points, so its columns are designed too
    assert (record["n_rows"], record["n_columns"], record["n_base"]) == (10, n_base, n_base)
    assert found.margins.smallest >= -1e-9
    words = found.in_words()
    assert f"{condition_number(W):.4g} of the energy model (10 rows, {n_base} base parameters)" in words
    assert f"{found.condition_number:.4g} of the torque model ({found.base.n_base} base parameters)" in words


def test_knots_are_the_times_of_the_optimal_points():
    """Energy differences between the knots are the designed matrix, and identify the robot from torque."""
    robot = planar_2r([Armature()])
    rate = 1000.0
    found = design_points(robot, 14, starts=1, tick_s=1.0 / rate, periods=2)
    knots = np.array(found.as_json()["knots"])
    assert len(knots) == 2 * 15
    np.testing.assert_allclose(np.diff(knots)[14], found.playable.duration_s / 2.0 - (knots[14] - knots[0]))
    samples = exact_motion(robot, found.playable.samples(rate))
    at = np.round(knots * rate).astype(int)
    np.testing.assert_allclose(at / rate, knots, atol=1e-9)
    base = reduce_to_base(robot)
    matrix = energy_matrix(robot, samples, np.column_stack([at[:-1], at[1:]]))
    W, y = matrix[:14, base.independent], matrix[:14, -1]
    assert np.linalg.cond(W) == pytest.approx(condition_number(found.energy_rows), rel=1e-6)
    truth = base.K @ robot.parameters.values
    np.testing.assert_allclose(np.linalg.lstsq(W, y)[0], truth, atol=1e-4 * np.abs(truth).max())
    slow = found.playable.slowed(0.5)
    np.testing.assert_allclose(slow.point_times_s, 2.0 * knots)
    assert random_fourier(robot, 4.0, 3).point_times_s is None


@pytest.mark.slow
def test_the_default_weight_keeps_entries_of_one_size():
    """Section 3: bounds by the condition number need a matrix whose entries are of one size."""
    robot = planar_2r()
    weighted, alone = (design_points(robot, 10, starts=1, lambda2=weight).energy_rows for weight in (0.02, 0.0))
    assert scaling_of(weighted) < 50.0
    assert condition_number(weighted) < 5.0
    cost, cost_alone = (condition_number(W) + 0.02 * scaling_of(W) for W in (weighted, alone))
    assert cost < cost_alone


@pytest.mark.parametrize(("joints", "expected"), [(2, 30), (6, None)])
def test_the_number_of_rows_suits_the_robot(joints, expected):
    robot = demo_arm().only(demo_arm().joint_names[:joints])
    design = design_points(robot, iterations=3, starts=1, seed=1)
    n_base = reduce_to_base(robot).n_base
    assert len(design.energy_rows) == (expected or int(np.ceil(1.5 * n_base)))
    assert len(design.energy_rows) >= n_base


def test_time_budget_of_points_is_kept(monkeypatch):
    robot = demo_arm()
    clock = SimulatedClock(monkeypatch, 0.05)  # a step of the search
    design = design_points(robot, 80, starts=50, iterations=2000, seconds=20.0)
    assert clock.now_s < 20.5
    assert design.seconds < 20.5
    assert any("cut the search off" in note for note in design.notes)


def test_refusals():
    robot = planar_2r()
    with pytest.raises(InputError, match=facts("2", "--points", "6")):
        design_points(robot, 2)
    with pytest.raises(InputError, match="unknown measure of condition 'best'"):
        design_points(robot, 10, measure="best")
    with pytest.raises(InputError, match="not both zero"):
        design_points(robot, 10, lambda1=0.0, lambda2=0.0)
    with pytest.raises(InputError, match="lambda2 = nan"):
        design_points(robot, 10, lambda2=np.nan)
    with pytest.raises(InputError, match="0 starts"):
        design_points(robot, 10, starts=0)
    with pytest.raises(InputError, match="no acceleration limit"):
        design_points(replace(robot, joints=tuple(replace(j, ddq_max=np.inf) for j in robot.joints)), 10)
    with pytest.raises(InputError, match="floats"):
        design_points(random_tree(0, floating=True), 30)
    with pytest.raises(InputError, match="do not rise from zero"):
        PolynomialTrajectory.through([0.0, 1.0, 1.0], np.zeros((3, 1)), np.zeros((3, 1)))


def test_the_work_of_friction_counts_in_the_choice_of_points():
    """Condition number with friction, the work integrated by NumPy's trapezoids between the points."""
    robot = planar_2r().with_effects([Viscous()])
    limits = limits_of(robot, acceleration=10.0)
    design = design_points(robot, rows=14, limits=limits, starts=1, iterations=20)
    motion, base = design.trajectory, reduce_to_base(robot)
    points = motion.point_times_s
    work = []
    for start, end in pairwise(points):
        time = np.linspace(start, end, 4001)
        work.append(np.trapezoid(motion.derivative(time, 1) ** 2, time, axis=0))
    h = energy_regressor(robot, *motion.evaluate(points)[:2])
    W = np.hstack([np.diff(h, axis=0), work]) @ base.lift
    assert condition_number(design.energy_rows) == pytest.approx(np.linalg.cond(W), rel=1e-3)


def test_a_robot_without_room_for_points_is_told_which_limit_they_break():
    robot = planar_2r()
    limits = limits_of(robot, torque=0.01, acceleration=20.0)
    with pytest.raises(InputError, match=facts("points", "torque (", "--shape fourier")):
        design_points(robot, limits=limits, starts=1, iterations=2, seconds=2.0)


@pytest.mark.slow
def test_points_of_a_palletiser_lie_where_its_bodies_have_room():
    path = Path(__file__).parents[2] / "examples" / "robots" / "parallelogram_arm.toml"
    found = design_excitation(path, shape="points", seconds=10.0, engine="serial")
    assert found.margins.smallest >= 0.0
    assert found.margins.clearance is not None
    assert found.condition_number < 1e5
