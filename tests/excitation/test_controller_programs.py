"""Programs of controllers, read back: points of the design at its times, and how far the curve through them is from it."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.controller_programs import POINT_HZ, program_deviation, read_program, write_trajectory_bag
from dynid.excitation.limits import limits_of
from dynid.excitation.motion_files import write_motion
from dynid.excitation.ramps import rest_to_rest
from dynid.excitation.shapes import random_fourier
from messages import facts
from problems import demo_arm

SIX = ["shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow", "forearm_roll", "wrist_pitch"]


@pytest.fixture(scope="module")
def motion():
    robot = demo_arm().only(SIX)
    return rest_to_rest(robot, random_fourier(robot, 5.0, 3, fraction=0.6), limits_of(robot))


@pytest.mark.parametrize("suffix", [".src", ".mod", ".ls"])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_programs_hold_the_points_of_the_design(tmp_path, motion, suffix, share):
    played = motion.slowed(share) if share < 1.0 else motion
    path = write_motion(played, tmp_path / f"4 motion{suffix}")
    time, points = read_program(path, 6)
    assert len(time) == len(points)
    assert np.diff(time).max() <= 1.0 / POINT_HZ + 1e-9
    assert time[-1] == pytest.approx(played.duration_s, abs=1e-5)
    np.testing.assert_allclose(np.radians(points), played.derivative(time.clip(0, played.duration_s), 0), atol=1e-6)
    assert program_deviation(path, played) < (2e-3 if suffix == ".src" else 0.03) * (1.0 if share == 1.0 else 0.3)


def test_each_program_begins_with_a_slow_move_to_the_start(tmp_path, motion):
    first = np.degrees(motion.derivative([0.0], 0)[0])
    krl, rapid, ls = (write_motion(motion, tmp_path / f"m{suffix}").read_text() for suffix in (".src", ".mod", ".ls"))
    assert krl.index("VEL_PTP, 5") < krl.index(f"PTP {{A1 {first[0]:.9f}") < krl.index("PTP_SPLINE")
    assert f"MoveAbsJ [[{first[0]:.9f}" in rapid.split("v50, fine")[0]
    assert "1:J P[1] 5% FINE" in ls


def test_slides_are_in_millimetres_and_seven_joints_are_refused(tmp_path, motion):
    path = write_motion(motion, tmp_path / "m.mod", prismatic=[True] + [False] * 5)
    _, points = read_program(path, 6)
    assert points[0, 0] == pytest.approx(1000.0 * motion.derivative([0.0], 0)[0, 0], abs=1e-6)
    seven = random_fourier(demo_arm(), 5.0, 2)
    with pytest.raises(InputError, match=facts("m.ls", "6", "7", ".csv")):
        write_motion(seven, tmp_path / "m.ls")
    assert not (tmp_path / "m.ls").exists()


def test_a_bag_holds_the_trajectory_at_the_rate_asked_for(tmp_path, motion):
    reader = pytest.importorskip("mcap_ros2.reader")
    path = write_trajectory_bag(motion, tmp_path / "m.mcap", SIX, 50.0)
    (message,) = [found.ros_msg for found in reader.read_ros2_messages(str(path))]
    assert list(message.joint_names) == SIX
    times = np.array([point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points])
    np.testing.assert_allclose(np.diff(times), 0.02, atol=1e-9)
    np.testing.assert_allclose([point.velocities for point in message.points], motion.evaluate(times)[1], atol=1e-9)
