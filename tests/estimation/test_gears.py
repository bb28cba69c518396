"""Links behind gears that yield: what their torque is, against links that are put where the gear lets them be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import uniform_filter1d

from calibrated_logs import arm
from dynid.dynamics.inverse_dynamics import inverse_dynamics, transmitting
from dynid.estimation.gears import DAMPING, gears_of
from dynid.io.demo import demo_samples
from dynid.signals.samples import Samples

C = np.array([2e-4, 1e-4])
JOINTS = [1, 3]


def behind_gears() -> tuple[Samples, np.ndarray, np.ndarray]:
    """Motion of motors whose links follow a smooth motion, torque of the links, and that of links that stay with their motors."""
    robot, links = transmitting(arm()), demo_samples(arm(), seconds=6.0, rate_hz=200.0, seed=1)
    torque = inverse_dynamics(robot, links.position, links.velocity, links.acceleration)
    t, wound = links.time, np.zeros_like(torque)
    inertia = np.array([2.5, 0.51])
    rate = np.gradient(torque[:, JOINTS], t, axis=0)
    wound[:, JOINTS] = C * (torque[:, JOINTS] + 2.0 * DAMPING * np.sqrt(inertia * C) * rate)
    speed = np.gradient(wound, t, axis=0)
    motors = Samples(
        t, links.position + wound, links.velocity + speed, links.acceleration + np.gradient(speed, t, axis=0), torque
    )
    return motors, torque, inverse_dynamics(robot, motors.position, motors.velocity, motors.acceleration)


def test_torque_behind_gears_that_wind_up() -> None:
    motors, torque, rigid = behind_gears()
    ((rows, gears),) = gears_of(arm(), motors, JOINTS)
    assert rows == slice(0, len(motors))
    inner = slice(200, -200)  # links start and end as the gear lets them
    left = torque - rigid - gears.change(C, np.zeros(2))
    assert np.std(left[inner]) < 0.1 * np.std((torque - rigid)[inner])


@pytest.mark.parametrize("at", [0.0, 0.02])
def test_columns_are_slopes_of_the_change(at: float) -> None:
    motors, _, _ = behind_gears()
    ((_, gears),) = gears_of(arm(), motors, JOINTS)
    none, play, step = np.zeros(2), np.full(2, at), 0.05 * max(at, 0.01)
    by_compliance, by_play = gears.columns(C, none)[0], gears.columns(none, play)[1]
    for i, own in enumerate(np.eye(2)):
        further = (gears.change(C + 1e-6 * own, none) - gears.change(C, none)) / 1e-6
        assert np.std(slow(further - by_compliance[:, :, i])) < 0.03 * np.std(slow(by_compliance[:, :, i]))
        further = (gears.change(none, play + step * own) - gears.change(none, play)) / step
        assert np.std(slow(further - by_play[:, :, i])) < 0.1 * np.std(slow(by_play[:, :, i]))


def slow(torque: np.ndarray) -> np.ndarray:
    """Torque in the band that gears are looked for in, without the start, where links swing as nothing made them."""
    return np.asarray(uniform_filter1d(uniform_filter1d(torque, 60, axis=0), 60, axis=0)[200:-100])


def test_a_link_is_on_the_side_that_it_is_pushed_to() -> None:
    motors, _, _ = behind_gears()
    ((_, gears),) = gears_of(arm(), motors, JOINTS)
    play = np.array([0.01, 0.03])
    kept = gears.settled(play) > 0.0
    assert 0.3 < kept.mean() < 1.0
    crossed = gears._crossed(play)
    np.testing.assert_allclose(crossed[kept], 0.5 * play * np.sign(gears.rigid[kept][:, JOINTS]))


def test_a_gap_in_the_clock_parts_a_log() -> None:
    one = demo_samples(arm(), seconds=2.0, rate_hz=100.0)
    rows = np.r_[0:80, 120:200]
    parts = gears_of(arm(), one[rows], JOINTS)
    assert [part for part, _ in parts] == [slice(0, 80), slice(80, 160)]
