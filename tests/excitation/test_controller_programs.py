"""Programs of controllers, read back: points of the design at its times, and how far the curve through them is from it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dynid.excitation.controller_programs import (
    NEAR_DEG,
    NEAR_MM,
    deviation,
    read_program,
    read_set_points,
    units,
    write_trajectory_bag,
)
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


def krl_plays(program: str, places: str, at: list[float]) -> bool:
    """Whether a robot whose axes are here would move, by the lines of the program one after another."""
    (first,) = re.findall(r"^DECL E6AXIS XP1=\{(.*)\}$", places, re.MULTILINE)
    start = [float(word.split()[1]) for word in first.split(", ")]
    away = None
    for line in program.splitlines():
        if line == "AWAY = FALSE":
            away = False
        elif line.startswith("AWAY = AWAY OR "):
            j, near = re.fullmatch(r"AWAY = AWAY OR \(ABS\(\$AXIS_ACT\.A(\d) - XP1\.A\1\) > (\S+)\)", line).groups()
            away = away or abs(at[int(j) - 1] - start[int(j) - 1]) > float(near)
        elif line == "IF AWAY THEN" and away:
            assert "\n  HALT\n  RETURN\nENDIF\n" in program
            return False
        elif line.startswith("PTP "):
            return True
    raise AssertionError("nothing is played")


def rapid_plays(program: str, at: list[float]) -> bool:
    """The same of RAPID, whose expressions become Python's."""
    (condition,) = re.findall(r"^    IF (.*) THEN$", program, re.MULTILINE)
    assert (
        program.index("here := CJointT();")
        < program.index("    IF ")
        < program.index("EXIT;")
        < program.index("MoveAbsJ [[")
    )
    terms = [re.fullmatch(r"Abs\(here\.robax\.rax_(\d) - \((\S+)\)\) > (\S+)", term) for term in condition.split(" OR ")]
    return not any(abs(at[int(term[1]) - 1] - float(term[2])) > float(term[3]) for term in terms)


def ls_plays(program: str, at: list[float]) -> bool:
    """The same of LS, played line by line with its registers, jumps and labels."""
    lines = re.findall(r"^ *\d+:(.*);$", program.split("/MN\n")[1].split("/POS")[0], re.MULTILINE)
    assert f"LINE_COUNT\t= {len(lines)};" in program
    k, register = 0, np.nan
    while True:
        line = lines[k].strip()
        jump = None
        if found := re.fullmatch(r"R\[199\]=PR\[99,(\d)\]-\((\S+)\)", line):
            register = at[int(found[1]) - 1] - float(found[2])
        elif found := re.fullmatch(r"IF R\[199\]([<>])\((\S+)\),JMP LBL\[(\d)\]", line):
            jump = found[3] if (register > float(found[2])) == (found[1] == ">") else None
        elif found := re.fullmatch(r"JMP LBL\[(\d)\]", line):
            jump = found[1]
        elif line.startswith("J P[1]"):
            return True
        elif line == "ABORT":
            return False
        k = k + 1 if jump is None else next(i for i, one in enumerate(lines) if one.strip().startswith(f"LBL[{jump}"))


@pytest.mark.parametrize("sliding", [(), (1,)])
def test_programs_move_nothing_unless_the_robot_stands_at_the_start(tmp_path, motion, sliding):
    slides = [j in sliding for j in range(6)]
    start = motion.derivative([0.0], 0)[0] * units(slides)
    texts = [
        write_motion(motion, tmp_path / f"m{suffix}", prismatic=slides).read_text() for suffix in (".src", ".mod", ".ls")
    ]
    places = (tmp_path / "m.dat").read_text()

    def played(at) -> list[bool]:
        here = at.tolist()
        return [krl_plays(texts[0], places, here), rapid_plays(texts[1], here), ls_plays(texts[2], here)]

    near = np.where(slides, NEAR_MM, NEAR_DEG)
    assert all(played(start + 0.99 * near * [1, -1, 1, -1, 1, -1]))
    for j in range(6):
        for side in (1.01, -1.01, 40.0, -40.0):
            assert not any(played(start + side * near * (np.arange(6) == j)))
    assert "VEL_PTP, 5" in texts[0]
    assert "v50, fine" in texts[1]
    assert "J P[1] 5% FINE" in texts[2]


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
