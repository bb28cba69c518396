"""Fourier motion: derivatives, limits, files, and the published WAM trajectories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.fourier import FourierTrajectory, random_fourier, read_trajectory, write_trajectory
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import Armature, Viscous
from messages import facts
from problems import demo_arm, planar_2r, random_tree


def example(seed=0, joints=3, harmonics=4):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, joints, harmonics))
    return FourierTrajectory(4.0, a, b, rng.normal(size=joints))


def test_series_as_written():
    motion = FourierTrajectory(2.0, [[0.5, 0.0]], [[0.0, -0.3]], [1.0])
    w, t = np.pi, 0.37
    q, dq, ddq = motion.evaluate(t)
    assert q[0, 0] == pytest.approx(1.0 + 0.5 / w * np.sin(w * t) + 0.3 / (2 * w) * np.cos(2 * w * t), abs=1e-15)
    assert dq[0, 0] == pytest.approx(0.5 * np.cos(w * t) - 0.3 * np.sin(2 * w * t), abs=1e-15)
    assert ddq[0, 0] == pytest.approx(-0.5 * w * np.sin(w * t) - 0.6 * w * np.cos(2 * w * t), abs=1e-14)


def test_derivatives_and_period():
    motion, t, h = example(), np.linspace(0.0, 9.0, 50), 1e-4
    q, dq, ddq = motion.evaluate(t)
    (q_after, dq_after, _), (q_before, dq_before, _) = motion.evaluate(t + h), motion.evaluate(t - h)
    np.testing.assert_allclose((q_after - q_before) / (2 * h), dq, atol=1e-6)
    np.testing.assert_allclose((dq_after - dq_before) / (2 * h), ddq, atol=1e-5)
    np.testing.assert_allclose(motion.evaluate(t + 4.0)[0], q, atol=1e-12)


def test_samples_span_whole_periods():
    samples = example().samples(50.0, periods=2)
    assert len(samples) == 401
    assert samples.time[-1] == 8.0
    np.testing.assert_allclose(samples.position[0], samples.position[-1], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_random_motion_uses_the_limits_and_keeps_them(seed):
    robot = demo_arm()
    motion = random_fourier(robot, 10.0, 5, seed, fraction=1.0)
    q, dq, ddq = motion.evaluate(np.linspace(0.0, 10.0, 20001))
    low, high = robot.position_limits.T
    share = [
        np.ptp(q, axis=0) / (high - low),
        np.abs(dq).max(axis=0) / robot.limits("dq_max"),
        np.abs(ddq).max(axis=0) / robot.limits("ddq_max"),
    ]
    assert (q >= low).all()
    assert (q <= high).all()
    assert np.max(share) <= 1.0
    # the bound over all times costs no more than half a percent
    assert (np.max(share, axis=0) > 0.995).all()


def test_random_motion_shrinks_to_torque_limits():
    robot = demo_arm()
    free = random_fourier(robot, 10.0, 5, seed=2)
    peak = np.abs(inverse_dynamics(robot, *free.evaluate(np.linspace(0.0, 10.0, 2000)))).max(axis=0)
    weak = replace(robot, joints=(replace(robot.joints[0], tau_max=0.6 * peak[0]), *robot.joints[1:]))
    kept = random_fourier(weak, 10.0, 5, seed=2)
    tau = np.abs(inverse_dynamics(weak, *kept.evaluate(np.linspace(0.0, 10.0, 2000))))
    assert tau[:, 0].max() <= 0.6 * peak[0]
    np.testing.assert_array_equal(kept.offset, free.offset)
    hopeless = replace(robot, joints=(robot.joints[0], replace(robot.joints[1], tau_max=0.01), *robot.joints[2:]))
    with pytest.raises(InputError, match=facts("shoulder_pitch", "0.01", "joint")):
        random_fourier(hopeless, 10.0, 5, seed=2)


def test_random_motion_at_rest_and_by_seed():
    robot = demo_arm()
    motion = random_fourier(robot, 8.0, 4, seed=1, at_rest=True)
    _, dq, ddq = motion.evaluate([0.0, 8.0])
    np.testing.assert_allclose(dq, 0.0, atol=1e-12)
    np.testing.assert_allclose(ddq, 0.0, atol=1e-12)
    assert np.abs(motion.evaluate(np.linspace(0, 8, 100))[1]).max() > 0.3
    np.testing.assert_array_equal(motion.a, random_fourier(robot, 8.0, 4, seed=1, at_rest=True).a)
    assert not np.array_equal(motion.a, random_fourier(robot, 8.0, 4, seed=2, at_rest=True).a)


def test_continuous_joints_swing_within_one_turn():
    robot = random_tree(1, 6, effects=[Viscous(), Armature()])
    q, dq, _ = random_fourier(robot, 6.0, 3, seed=0).evaluate(np.linspace(0.0, 6.0, 1000))
    assert np.abs(q).max() <= np.pi
    assert (np.abs(dq).max(axis=0) <= robot.limits("dq_max")).all()


def test_refusals():
    robot = planar_2r()
    with pytest.raises(InputError, match="expected at least 2"):
        random_fourier(robot, 5.0, 1, at_rest=True)
    with pytest.raises(InputError, match="floats"):
        random_fourier(random_tree(0, floating=True), 5.0, 3)
    unlimited = replace(robot, joints=(replace(robot.joints[0], dq_max=np.inf), robot.joints[1]))
    with pytest.raises(InputError, match=r"no velocity limit.*shoulder"):
        random_fourier(unlimited, 5.0, 3)
    with pytest.raises(InputError, match="period is -1 s"):
        FourierTrajectory(-1.0, [[1.0]], [[1.0]], [0.0])
    with pytest.raises(InputError, match="0 harmonics"):
        FourierTrajectory(1.0, np.zeros((2, 0)), np.zeros((2, 0)), [0.0, 0.0])
    with pytest.raises(InputError, match=r"shape \(1,\), expected \(2\)"):
        FourierTrajectory(1.0, np.zeros((2, 1)), np.zeros((2, 1)), [0.0])
    with pytest.raises(InputError, match="hold no sample"):
        example().samples(0.01)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_files_give_back_every_digit(tmp_path, suffix):
    robot = planar_2r()
    motion = random_fourier(robot, 3.0, 3).samples(100.0)
    path = write_trajectory(motion, tmp_path / f"motion.{suffix}")
    back = read_trajectory(path, robot)
    for name in ("time", "position", "velocity", "acceleration"):
        np.testing.assert_array_equal(getattr(back, name), getattr(motion, name))
    if suffix == "csv":
        assert path.read_text().splitlines()[0].replace('"', "") == "t,q1,q2,dq1,dq2,ddq1,ddq2"


def test_file_with_positions_only_is_differentiated(tmp_path):
    robot = planar_2r()
    motion = random_fourier(robot, 3.0, 3).samples(200.0)
    path = tmp_path / "positions.csv"
    table = np.column_stack([motion.time, motion.position])
    np.savetxt(path, table, delimiter=",", header="t,q1,q2", comments="", fmt="%.17g")
    back = read_trajectory(path, robot)
    np.testing.assert_allclose(back.velocity, motion.velocity, atol=1e-6)
    np.testing.assert_allclose(back.acceleration, motion.acceleration, atol=1e-3)
    assert sum("spline" in note for note in back.notes) == 2
    short = tmp_path / "short.csv"
    np.savetxt(short, table[:4], delimiter=",", header="t,q1,q2", comments="")
    with pytest.raises(InputError, match="has 4 rows, expected at least 6"):
        read_trajectory(short, robot)
