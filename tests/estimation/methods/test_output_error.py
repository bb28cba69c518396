"""Output error on a pendulum whose motion is noisy beside its torque, and on an arm whose rows are fine."""

from __future__ import annotations

import numpy as np
import pytest

from dynid import demo_samples, estimate, factorise, reduce_to_base
from dynid.dynamics.friction import smooth_friction
from dynid.dynamics.shooting import Windows, simulate_windows
from dynid.errors import InputError
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.output_error import OutputError, _Search, windows_of
from dynid.io.demo import demo_robot
from dynid.model.robot import Robot
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples

ROD = demo_robot(effects="viscous").only(["shoulder_pitch"])


def swinging(robot: Robot, noise: float) -> Samples:
    """A free swing with small pushes at 200 Hz; derivatives are those of noisy positions, as a log would give them."""
    n, h = 1600, 5e-3
    t = h * np.arange(n + 1)
    torque = 0.3 * np.sign(np.sin(2.1 * t))[:, None]
    still = np.zeros((1, n + 1, 1))
    motion = Windows(torque[None, :-1], still, still, h)
    q, _ = simulate_windows(smooth_friction(robot, 0.02), motion, (np.array([[1.0]]), np.zeros((1, 1))))
    q = q[0] + noise * np.random.default_rng(0).normal(size=q[0].shape)
    v = np.gradient(q, h, axis=0)
    return Samples(t, q, v, np.gradient(v, h, axis=0), torque)


def test_noise_of_the_motion_does_not_shrink_the_answer() -> None:
    robot = ROD
    base = reduce_to_base(robot)
    data = factorise(TorqueRows(robot, (swinging(robot, 1e-3),)))
    truth = base.K @ robot.parameters.values
    wrong = robot.parameters.with_values(0.8 * np.array(robot.parameters.values))
    rows = estimate(data, base, OrdinaryLeastSquares(), wrong)
    found = estimate(data, base, OutputError(), wrong)
    heavy = int(np.argmax(np.abs(truth)))
    assert abs(rows.base_values[heavy] / truth[heavy]) < 0.5
    assert found.base_values[heavy] == pytest.approx(truth[heavy], rel=0.1)
    assert "windows" in found.notes[-1]


def test_the_fit_to_the_rows_stays_where_it_is_fine() -> None:
    robot = demo_robot().only(["shoulder_pitch", "elbow"])
    samples = demo_samples(robot, seconds=5.0)
    assert samples.torque is not None
    noisy = samples.with_torque(samples.torque + 0.2 * np.random.default_rng(1).normal(size=samples.torque.shape))
    base = reduce_to_base(robot)
    found = estimate(factorise(TorqueRows(robot, (noisy,))), base, OutputError())
    assert found.method == "output-error"
    assert found.relative_error < 0.05


def test_windows_hold_the_mean_torque_of_their_steps() -> None:
    samples = swinging(ROD, 0.0)
    (found,) = windows_of([samples], 1.0, 5)
    assert len(found) == 5
    assert found.torque.shape[1] == found.position.shape[1] - 1
    assert np.abs(found.torque).max() <= 0.3 + 1e-12
    with pytest.raises(InputError, match="no log lasts"):
        windows_of([samples[:20]], 10.0, 5)


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match="positive"):
        OutputError(window_s=0.0)


def test_a_step_that_is_taken_back_takes_its_first_states_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise positions, and the deviations that follow from them, are those of no fit."""
    windows = windows_of([swinging(ROD, 1e-3)], 0.8, 60)
    search = _Search(smooth_friction(ROD, 0.02), windows, np.array(ROD.parameters.values))
    x, states, rms = search.x, search.states, search.rms
    errors = iter((1.0, 2.0))
    monkeypatch.setattr(search, "missed", lambda _: next(errors))
    assert search.descend(5, windows)
    assert search.x is x
    assert search.states is states
    assert search.rms.tolist() == rms.tolist()
