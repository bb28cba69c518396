"""Programs of controllers, read back: points of the design at its times, and how far the curve through them is from it."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.excitation.controller_programs import deviation, read_program, read_set_points, units, write_trajectory_bag
from dynid.excitation.limits import limits_of
from dynid.excitation.motion_files import FORMS, played_deviation, write_motion
from dynid.excitation.ramps import rest_to_rest
from dynid.excitation.shapes import random_fourier
from problems import demo_arm

SIX = ["shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow", "forearm_roll", "wrist_pitch"]
TURNING = [False] * 6


@pytest.fixture(scope="module")
def motion():
    robot = demo_arm().only(SIX)
    return rest_to_rest(robot, random_fourier(robot, 5.0, 3, fraction=0.6), limits_of(robot))


@pytest.mark.parametrize("suffix", [".src", ".mod", ".ls"])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_programs_hold_the_points_of_the_design(tmp_path, motion, suffix, share):
    played = motion.slowed(share) if share < 1.0 else motion
    path = write_motion(played, tmp_path / f"4 motion{suffix}")
    time, points = read_program(path, TURNING)
    assert len(time) == len(points)
    assert np.diff(time).max() <= 1.0 / FORMS[suffix].hz[1] + 1e-9
    assert time[-1] == pytest.approx(played.duration_s, abs=1e-5)
    np.testing.assert_allclose(points, played.derivative(time.clip(0, played.duration_s), 0), atol=1e-6)
    most = (2e-3 if suffix == ".src" else 0.03) * (1.0 if share == 1.0 else 0.3)
    assert 0.0 < played_deviation(path, played, TURNING) < most


def test_each_program_begins_with_a_slow_move_to_the_start(tmp_path, motion):
    first = np.degrees(motion.derivative([0.0], 0)[0])
    krl, rapid, ls = (write_motion(motion, tmp_path / f"m{suffix}").read_text() for suffix in (".src", ".mod", ".ls"))
    places = (tmp_path / "m.dat").read_text()
    assert krl.index("VEL_PTP, 5") < krl.index("PTP XP1\n") < krl.index("PTP_SPLINE")
    assert places.splitlines()[:1] == ["DEFDAT m"]
    assert f"DECL E6AXIS XP1={{A1 {first[0]:.9f}" in places
    assert f"MoveAbsJ [[{first[0]:.9f}" in rapid.split("v50, fine")[0]
    assert "1:J P[1] 5% FINE" in ls


def test_slides_are_in_millimetres(tmp_path, motion):
    sliding = [True] + [False] * 5
    path = write_motion(motion, tmp_path / "m.mod", prismatic=sliding)
    start = motion.derivative([0.0], 0)[0, 0]
    assert f"MoveAbsJ [[{1000.0 * start:.9f}" in path.read_text()
    assert read_program(path, sliding)[1][0, 0] == pytest.approx(start, abs=1e-9)


def test_set_points_are_those_of_the_design_at_the_rate_of_the_controller(tmp_path, motion):
    egm = write_motion(motion, tmp_path / "m.egm.csv", SIX, rate_hz=1000.0)
    assert egm.read_text().splitlines()[0] == "t,j1,j2,j3,j4,j5,j6"
    robot = write_motion(motion, tmp_path / "m.lerobot.csv", SIX, rate_hz=50.0)
    assert robot.read_text().splitlines()[0] == "timestamp," + ",".join(f"{name}.pos" for name in SIX)
    for path, rate_hz in ((egm, 250.0), (robot, 50.0)):
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        np.testing.assert_allclose(np.diff(table[:, 0]), 1.0 / rate_hz, atol=1e-9)
        np.testing.assert_allclose(np.radians(table[:, 1:]), motion.derivative(table[:, 0], 0), atol=1e-9)
        np.testing.assert_allclose(read_set_points(path, units(TURNING))[1], np.radians(table[:, 1:]), atol=1e-12)


def test_goal_positions_are_the_nearest_ticks(tmp_path, motion):
    path = write_motion(motion, tmp_path / "m.dynamixel.csv", SIX, rate_hz=1000.0)
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_allclose(np.diff(table[:, 0]), 0.01, atol=1e-9)
    np.testing.assert_array_equal(table[:, 1:], np.round(table[:, 1:]))
    wrong = (table[:, 1:] - 2048) * 2.0 * np.pi / 4096 - motion.derivative(table[:, 0], 0)
    assert np.abs(wrong).max() <= np.pi / 4096 + 1e-12
    assert np.abs(wrong).max() < played_deviation(path, motion, TURNING) < 2e-3


@pytest.mark.parametrize("name", ["m.yaml", "m.mcap"])
def test_a_joint_trajectory_is_played_to_a_millionth_of_a_radian(tmp_path, motion, name):
    """The joint trajectory controller joins points with accelerations by polynomials of degree 5."""
    pytest.importorskip("mcap_ros2.reader")
    fine = write_motion(motion, tmp_path / name, SIX, rate_hz=200.0)
    assert played_deviation(fine, motion, TURNING) < 1e-6
    rough = write_motion(motion, tmp_path / name, SIX, rate_hz=5.0)
    assert played_deviation(rough, motion, TURNING) > 1e-6


def test_the_deviation_is_that_of_the_curve(motion):
    time = motion.grid(200)
    q, v, a = motion.evaluate(time)
    lines, spline, quintic = (
        deviation(points, motion, joins)
        for joins, points in (("lines", (time, q)), ("spline", (time, q)), ("quintic", (time, q, v, a)))
    )
    step = float(time[1])
    assert lines == pytest.approx(np.abs(a).max() * step**2 / 8.0, rel=0.2)  # of a parabola between two points
    assert quintic < spline < lines
    bent = q.copy()
    bent[100, 3] += 0.5
    assert deviation((time, bent), motion, "lines") == pytest.approx(0.5, abs=0.02)


def test_a_bag_holds_the_trajectory_at_the_rate_asked_for(tmp_path, motion):
    reader = pytest.importorskip("mcap_ros2.reader")
    path = write_trajectory_bag(motion, tmp_path / "m.mcap", SIX, 50.0)
    (message,) = [found.ros_msg for found in reader.read_ros2_messages(str(path))]
    assert list(message.joint_names) == SIX
    times = np.array([point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points])
    np.testing.assert_allclose(np.diff(times), 0.02, atol=1e-9)
    np.testing.assert_allclose([point.velocities for point in message.points], motion.evaluate(times)[1], atol=1e-9)
