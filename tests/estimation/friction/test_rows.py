"""Long chains: friction beside bodies that are held, in turn, on windows of the samples; against both at once on a small robot."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.friction import fit, selection
from dynid.estimation.friction import rows as data
from dynid.estimation.friction.fit import _by_squares, fit_model, fit_nonlinear_friction, with_bodies_held
from dynid.estimation.friction.model import FrictionModel
from dynid.estimation.friction.rows import FrictionData, fewer_samples
from dynid.estimation.friction.selection import FrictionChoice, choose_friction, cross_validate
from dynid.io.demo import demo_robot, demo_samples
from dynid.model.effects.dry_friction import SmoothCoulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.robot import Robot
from dynid.regression.row_filter import BandLimit
from dynid.signals.samples import Samples

ROWS = BandLimit(10.0)
WIDTH = 0.05


@lru_cache
def arm() -> tuple[Robot, Samples]:
    """The first joints of the demonstration arm, with friction that turns over 0.05 rad/s and noise on torque."""
    robot = demo_robot([Viscous(), SmoothCoulomb(smooth_width=WIDTH), Offset(), Armature()]).only(
        ["shoulder_yaw", "shoulder_pitch", "elbow"]
    )
    samples = demo_samples(robot, seconds=20.0, rate_hz=200.0)
    torque = inverse_dynamics(robot, samples.position, samples.velocity, samples.acceleration)
    noise = 0.002 * torque.std(axis=0) * np.random.default_rng(0).normal(size=torque.shape)
    return robot, samples.with_torque(torque + noise)


def started(robot: Robot, width: float = 0.02) -> Robot:
    return robot.with_effects([Viscous(), SmoothCoulomb(smooth_width=width), Offset(), Armature()])


def widths(robot: Robot) -> np.ndarray:
    (found,) = [effect for effect in robot.effects if isinstance(effect, SmoothCoulomb)]
    return np.broadcast_to(found.smooth_width, (3,))


def test_inner_numbers_found_in_turn_are_the_true_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, samples = arm()
    together = fit_nonlinear_friction(started(robot), [samples], ROWS)
    monkeypatch.setattr(fit, "LONG_CHAIN", 1)
    in_turn = fit_nonlinear_friction(started(robot), [samples], ROWS)
    np.testing.assert_allclose(widths(together), WIDTH, rtol=0.1)
    np.testing.assert_allclose(widths(in_turn), WIDTH, rtol=0.1)


def test_the_model_chosen_in_turn_is_the_one_chosen_together(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, samples = arm()
    together = choose_friction(robot, [samples], row_filter=ROWS)
    monkeypatch.setattr(fit, "LONG_CHAIN", 1)
    in_turn = choose_friction(robot, [samples], row_filter=ROWS)
    assert in_turn.model == together.model
    assert in_turn.joints == together.joints
    assert [trial.model for trial in in_turn.trials] == [trial.model for trial in together.trials]
    np.testing.assert_allclose(widths(in_turn.robot), widths(together.robot), rtol=0.05)


def test_intervals_found_in_turn_are_those_found_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joints differ in noise by a factor of ten and more: none of them may be judged by that of the others."""
    robot, samples = arm()
    together = choose_friction(robot, [samples], "smooth", row_filter=ROWS)
    monkeypatch.setattr(fit, "LONG_CHAIN", 1)
    in_turn = choose_friction(robot, [samples], "smooth", row_filter=ROWS)
    one, other = (np.array([n.upper - n.lower for n in found.numbers]) for found in (together, in_turn))
    assert one.max() > 4.0 * one.min()  # else nothing is tested
    np.testing.assert_allclose(other, one, rtol=0.05)


def test_a_note_says_where_numbers_were_found_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, samples = arm()
    together = choose_friction(robot, [samples], "smooth", row_filter=ROWS)
    assert (together.in_turn, together.notes()) == (False, ())
    for module in (fit, selection):
        monkeypatch.setattr(module, "LONG_CHAIN", 1)
    in_turn = choose_friction(robot, [samples], "smooth", row_filter=ROWS)
    (note,) = in_turn.notes()
    assert "more than 1 base parameters" in note
    assert "intervals are slightly too narrow" in note
    again = FrictionChoice.from_dict(in_turn.robot, in_turn.as_dict())
    assert again.notes() == in_turn.notes()
    linear = choose_friction(robot, [samples], "linear", row_filter=ROWS)  # has no numbers inside
    assert (linear.in_turn, linear.notes()) == (False, ())


def test_joints_apart_are_what_they_are_together(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, samples = arm()
    held = with_bodies_held(started(robot), FrictionData.of(started(robot), [samples], ROWS))
    apart = FrictionModel(started(robot), held)
    assert apart.apart
    together = FrictionModel(started(robot), held)
    together.__dict__["apart"] = False
    one, other = (fit_model(model, weighted=False) for model in (apart, together))
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-6)
    np.testing.assert_allclose(one.solution.own, other.solution.own, rtol=1e-6, atol=1e-9)
    assert one.solution.cost == pytest.approx(other.solution.cost, rel=1e-9)
    trials = [cross_validate(fitted) for fitted in (one, other)]
    np.testing.assert_allclose(trials[0].squares, trials[1].squares, rtol=1e-6)


def test_bodies_beside_friction_are_those_of_the_robot() -> None:
    robot, samples = arm()
    found = with_bodies_held(robot, FrictionData.of(robot, [samples], ROWS))
    assert found.held
    assert found.n_shared == 0
    friction = FrictionModel(robot, found)
    fitted = fit_model(friction, weighted=False)
    left = np.sqrt(fitted.solution.cost / found.torque.size)
    assert left < 0.01 * np.sqrt((found.measured**2).mean())


def test_windows_are_spread_over_all_samples_and_hold_rows_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, samples = arm()
    assert fewer_samples([samples], ROWS, 1, 10**9)[0] is samples
    assert fewer_samples([samples], None, 1, 1)[0] is samples
    (few,) = fewer_samples([samples], ROWS, width=100, most=12_000)
    whole = FrictionData.of(robot, [samples], ROWS)
    monkeypatch.setattr(data, "fewer_samples", lambda *_: [few])
    part = FrictionData.of(robot, [samples], ROWS)
    assert 60 < len(part.torque) < 240
    assert len(few) < 0.6 * len(samples)
    assert np.ptp(few.time) > 0.9 * samples.duration_s
    assert float(np.diff(part.logs[0].times).max()) < 0.1 * samples.duration_s
    assert part.logs[0].times.size == len(part.torque)
    assert part.columns[0].shape[1] == whole.columns[0].shape[1]
    # windows hold the same statement: the true parameters leave noise alone
    truth = FrictionModel(robot, part.holding(robot.parameters))
    assert np.sqrt(fit_model(truth, weighted=False).solution.cost / part.torque.size) < 0.01 * np.abs(part.measured).max()


def test_normal_equations_have_the_bodies_of_the_whole_solve() -> None:
    robot, samples = arm()
    rows = FrictionData.of(robot, [samples], ROWS)
    model, weights = FrictionModel(robot, rows), np.array([1.0, 2.0, 0.5])
    columns = model.columns(model.start, None, changes=False)
    passive = model.passive_rows(model.start, None)
    whole = model.solve(columns, weights, passive)
    found = _by_squares(model, columns, weights, passive)
    np.testing.assert_allclose(found.shared, whole.shared, atol=1e-5 * np.abs(whole.shared).max())
    np.testing.assert_allclose(found.own, whole.own, atol=1e-5 * np.abs(whole.own).max())


def test_columns_of_some_joints_are_those_of_all() -> None:
    robot, samples = arm()
    model = FrictionModel(robot, FrictionData.of(robot, [samples], ROWS, held=True))
    asked = np.array([False, True, False])
    for coarse in (False, True):
        whole, part = (
            model.columns(model.start, None, coarse=coarse),
            model.columns(model.start, None, coarse=coarse, asked=asked),
        )
        own = model.entering[1]
        assert len(whole) == 1 + len(model.variables)
        np.testing.assert_allclose(part[:, :, own], whole[:, :, own], rtol=1e-13, atol=1e-15)


def test_a_place_with_some_joints_does_not_stand_for_all() -> None:
    robot, samples = arm()
    model = FrictionModel(robot, FrictionData.of(robot, [samples], ROWS, held=True))
    asked = np.array([True, False, False])
    few, _ = model._at(model.start, None, True, asked)
    assert model._at(model.start, None, True, asked)[0] is few
    whole, _ = model._at(model.start, None, True)
    assert whole is not few
    np.testing.assert_allclose(few[0], whole[0], rtol=1e-12, atol=1e-12)
    assert np.linalg.norm(whole[1][:, 0]) > 0.0
