"""Free runs over growing horizons: the truth stays near, a wrong description does not."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.model.effects.linear import Viscous
from dynid.signals.samples import Samples
from dynid.validation import free_run
from dynid.validation.replay import HORIZONS_S, error_over_horizons, replay
from problems import planar_2r


def motion(robot: dynid.Robot, seconds: float = 5.0, step_s: float = 0.005) -> Samples:
    time = np.arange(0.0, seconds, step_s)
    w = np.array([2.0, 3.1])
    q, v, a = 0.3 * np.sin(np.outer(time, w)), 0.3 * w * np.cos(np.outer(time, w)), -0.3 * w**2 * np.sin(np.outer(time, w))
    return Samples(time=time, position=q, velocity=v, acceleration=a, torque=inverse_dynamics(robot, q, v, a))


def test_the_truth_follows_and_a_wrong_description_strays():
    truth = planar_2r([Viscous()]).with_parameters({"fv1": 2.0, "fv2": 1.0})
    wrong = truth.with_parameters(truth.parameters.with_values(1.2 * truth.parameters.values))
    found = error_over_horizons(truth, wrong, motion(truth))
    assert [one.horizon_s for one in found] == list(HORIZONS_S)
    assert max(one.identified for one in found) < 1e-3
    strayed = [one.description for one in found]
    assert strayed == sorted(strayed)
    assert strayed[-1] > 50.0 * found[-1].identified


def test_horizons_longer_than_the_samples_are_left_out():
    truth = planar_2r([Viscous()])
    assert [one.horizon_s for one in error_over_horizons(truth, truth, motion(truth, 1.0))] == [0.05, 0.1, 0.2]
    with pytest.raises(InputError, match="too short for a free run"):
        error_over_horizons(truth, truth, motion(truth, 0.05))


def test_every_horizon_is_the_beginning_of_one_free_run():
    truth = planar_2r([Viscous()]).with_parameters({"fv1": 2.0, "fv2": 1.0})
    wrong = truth.with_parameters(truth.parameters.with_values(1.1 * truth.parameters.values))
    samples = motion(truth)
    found = error_over_horizons(truth, wrong, samples)
    whole = replay(wrong, samples, window_s=HORIZONS_S[-1])
    for one in found:
        n = round(one.horizon_s / 0.005)
        error = (whole.position - whole.measured)[:, 1 : n + 1]
        assert one.description == pytest.approx(np.sqrt((error**2).mean()), rel=1e-12)


def test_a_model_that_runs_away_has_the_horizons_before_that():
    """A joint with negative friction gains speed without end: it follows for a while, then no more."""
    truth = planar_2r([Viscous()]).with_parameters({"fv1": 2.0, "fv2": 1.0})
    driven = truth.with_parameters({"fv1": -20.0, "fv2": -20.0})
    found = error_over_horizons(truth, driven, motion(truth))
    assert [one.horizon_s for one in found] == list(HORIZONS_S)
    strayed = [one.description for one in found]
    lost = strayed.index(None)
    assert lost > 0
    assert strayed[lost:] == [None] * (len(strayed) - lost)
    assert all(one.identified is not None for one in found)


def test_a_model_that_runs_away_is_not_followed_further(monkeypatch):
    driven = planar_2r([Viscous()]).with_parameters({"fv1": -2000.0, "fv2": -2000.0})
    steps = []

    def counted(robot, q, v, torque, step_s):
        steps.append(torque.shape[1] - 1)
        return own(robot, q, v, torque, step_s)

    own = free_run._run_own
    monkeypatch.setattr(free_run, "_run_own", counted)
    monkeypatch.setattr(free_run, "_mujoco", lambda robot, engine: (None, ()))
    found = error_over_horizons(driven, driven, motion(planar_2r([Viscous()])))
    assert all(one.identified is None for one in found)
    assert steps == [round(HORIZONS_S[0] / 0.005)] * 2


def test_a_description_without_masses_has_no_errors_beside_the_identified_ones():
    truth = planar_2r([Viscous()]).with_parameters({"fv1": 2.0, "fv2": 1.0})
    empty = truth.with_parameters(truth.parameters.with_values(0.0 * truth.parameters.values))
    found = error_over_horizons(truth, empty, motion(truth))
    assert [one.horizon_s for one in found] == list(HORIZONS_S)
    assert all(one.identified < 1e-3 and one.description is None for one in found)
    assert {one.texts()[1] for one in found} == {"no masses"}


def test_dense_samples_are_thinned_and_give_nearly_the_same_errors():
    truth = planar_2r([Viscous()]).with_parameters({"fv1": 2.0, "fv2": 1.0})
    wrong = truth.with_parameters(truth.parameters.with_values(1.1 * truth.parameters.values))
    coarse, dense = (error_over_horizons(truth, wrong, motion(truth, step_s=step_s)) for step_s in (0.002, 0.0005))
    for one, other in zip(coarse, dense, strict=True):
        assert one.description == pytest.approx(other.description, rel=0.01)
