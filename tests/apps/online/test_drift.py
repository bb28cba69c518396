"""The drift alarm: the rate of false alarms it states, and changes that it finds and names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.apps.online.drift import LEARNED_BLOCKS, DriftChart, parameter_groups
from dynid.apps.online.options import OnlineSettings
from dynid.apps.online.watcher import Watcher
from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.regressors import torque_regressor
from dynid.estimation.estimate import estimate
from dynid.estimation.online import Triangles
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels
from dynid.regression.factor import factorise
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.process import process
from dynid.signals.steps.filters import SavitzkyGolay
from online_streams import small_arm, stream

NOISE = (0.1, 0.3, 0.05)


class Blocks:
    """Blocks of rows at random states, with a fresh motion and fresh noise in each."""

    def __init__(self, robot: Robot, seed: int) -> None:
        q, v, a = random_states_within_limits(robot, 400, seed=seed)
        self._robot, self._rng = robot, np.random.default_rng(seed)
        self._Y = torque_regressor(robot, q, v, a)
        self._channels = torque_channels(robot)

    def make(self, values: np.ndarray, rows: int = 60) -> Triangles:
        made = Triangles([channel.width for channel in self._channels])
        Y = self._Y[self._rng.integers(len(self._Y), size=rows)]
        tau = Y @ values + self._rng.standard_normal((rows, Y.shape[1])) * NOISE
        for d, channel in enumerate(self._channels):
            made.R[d][:] = np.linalg.qr(np.column_stack([Y[:, d, channel.columns], tau[:, d]]), mode="r")
        made.n_times = float(rows)
        return made


@pytest.mark.parametrize("subtract", [True, False], ids=["start", "run"])
def test_rate_of_false_alarms(subtract: bool) -> None:
    robot = small_arm()
    values, n = robot.parameters.values, len(robot.parameters)
    groups = parameter_groups(robot)
    assert len(groups) == 4
    judged = alarms = 0
    for seed in range(12):
        blocks = Blocks(robot, seed)
        # one block in twenty
        chart = DriftChart(robot, block_s=5.0, false_alarms=36.0, subtract_mean=subtract)
        assert chart.probability == pytest.approx(0.05 / 4)
        # a reference that is itself uncertain by as much as its covariance says
        spread = np.zeros(n)
        spread[[column.kind == "friction" for column in robot.parameters.columns]] = 0.005
        chart.set_reference(
            values + spread * np.random.default_rng(seed).standard_normal(n), np.diag(spread**2), np.array(NOISE)
        )
        for k in range(LEARNED_BLOCKS + 25):
            chart.judge(blocks.make(values), float(k))
            if chart.stage == "watching" and k > LEARNED_BLOCKS:
                judged += len(groups)
                alarms += len(chart.alarms())
    expected = 0.05 / 4 * judged
    # 1,150 judgements: 14 expected; charts that learned from few blocks err together, hence twice the spread of independent ones
    assert abs(alarms - expected) < 2.0 * 3.0 * np.sqrt(expected), (alarms, expected)


@pytest.mark.parametrize(
    ("change", "group"),
    [({"fv2": 1.15}, "friction of shoulder_pitch"), ({"fc3": 1.15}, "friction of elbow"), ({"m3": 1.3}, "load on")],
)
def test_finds_and_names_a_change(change: dict[str, float], group: str) -> None:
    robot = small_arm()
    blocks = Blocks(robot, 0)
    chart = DriftChart(robot, subtract_mean=True)
    values = robot.parameters.values
    chart.set_reference(values, np.zeros((len(values), len(values))), np.array(NOISE))
    for k in range(LEARNED_BLOCKS + 3):
        chart.judge(blocks.make(values), 5.0 * k)
    assert chart.alarms() == ()
    assert chart.stage == "watching"
    (name, factor), begin = next(iter(change.items())), 5.0 * (LEARNED_BLOCKS + 3)
    altered = robot.with_parameters({name: factor * robot.parameters[name]}).parameters.values
    chart.judge(blocks.make(altered), begin)
    first = chart.alarms()[0]
    assert first["group"].startswith(group)
    assert first["since"] == begin
    assert first["statistic"] > first["threshold"]
    chart.judge(blocks.make(values), begin + 5.0)
    assert chart.alarms() == ()
    assert chart.n_alarms >= 1


def test_stream_against_a_run_that_is_no_longer_true() -> None:
    arm = small_arm()
    base = reduce_to_base(arm)
    data = factorise(TorqueRows(arm, (process(stream(4.0).recording, [SavitzkyGolay(velocity="position")]),)))
    known = replace(estimate(data, base), covariance=np.zeros((base.n_base,) * 2), residual_rms=np.full(3, 0.05))
    settings = OnlineSettings(block=0.5, every=50.0)
    for robot, expected in ((arm, False), (arm.with_parameters({"fc1": 1.2 * arm.parameters["fc1"]}), True)):
        given = stream(16.0, robot=robot)
        watcher = Watcher(arm, settings=settings, reference=known)
        for line in given.json_lines():
            list(watcher.feed(line))
        last = watcher.finish()
        assert last is not None
        assert last.stage == "watching"
        assert bool(last.alarms) is expected
        if expected:
            assert last.alarms[0]["group"] == "friction of shoulder_yaw"
    assert base.n_base == len(last.answer.names)
