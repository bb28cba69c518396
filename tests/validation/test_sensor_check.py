"""A wrench in the axes of another frame, of the opposite sign, or both: what the remedy leads to is the body that hangs there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.robots.read import read_robot
from dynid.model.frames import frame_named
from dynid.model.inertia import change_of_frame
from dynid.model.robot import Robot
from dynid.pipeline.inspect import inspect_any
from dynid.pipeline.wrench import SensorBody, identify_sensor_body, judge_body
from dynid.signals.recording import WrenchRecording
from sensor_logs import BODY, NOISE, OFFSETS, RATE_HZ, URDF, Path3, moves, sensor_log, sensor_motion, true_wrench, write_log

BESIDE = """  <link name="plate"/><link name="hand"/><link name="cover"/>
  <joint name="a" type="fixed"><parent link="ft_sensor"/><child link="plate"/><origin xyz="0.03 0 0.05" rpy="1.5707963 0 0"/></joint>
  <joint name="b" type="fixed"><parent link="ft_sensor"/><child link="hand"/><origin xyz="0 0 0.06" rpy="0 0 0.7853981"/></joint>
  <joint name="c" type="fixed"><parent link="ft_sensor"/><child link="cover"/><origin xyz="0 0.04 0" rpy="0 0 3.14159265"/></joint>
</robot>
"""
FRAMES = ("ft_sensor", "plate", "hand", "cover", "link3")


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    """A shoulder with a sensor and frames beside it, turned and moved."""
    path = tmp_path_factory.mktemp("robot") / "shoulder.urdf"
    path.write_text(URDF.replace("</robot>\n", BESIDE))
    return read_robot(path)


@pytest.fixture(scope="module")
def log() -> WrenchRecording:
    return sensor_log(1.0, duration_s=20.0)


def pose(robot: Robot, frame: str, other: str) -> np.ndarray:
    """Of another frame in a frame."""
    return np.linalg.inv(frame_named(robot, frame).placement) @ frame_named(robot, other).placement


def reported(log: WrenchRecording, robot: Robot, frame: str, sign: float) -> WrenchRecording:
    """What a sensor at a frame reports of the wrench at ``ft_sensor``."""
    X = pose(robot, "ft_sensor", frame)
    R, p, force = X[:3, :3], X[:3, 3], log.wrench[:, :3]
    return replace(log, wrench=sign * np.hstack([force @ R, (log.wrench[:, 3:] - np.cross(p, force)) @ R]))


def followed(log: WrenchRecording, robot: Robot, frame: str) -> tuple[str, SensorBody]:
    """The body after what refusals tell to do was done, and the frame that it is in."""
    for _ in range(3):
        try:
            return frame, identify_sensor_body(log, robot, frame, filtered="savgol:21,2", methods=("wls", "sdp"))
        except InputError as refusal:
            remedy = str(refusal).split("; ")[1]
        frame = named[1] if (named := re.search(r"--frame (\w+)", remedy)) else frame
        log = replace(log, wrench=-log.wrench) if "--flip" in remedy else log
    raise AssertionError(f"still refused: {remedy}")


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("truth", FRAMES)
def test_the_remedy_of_a_turned_and_reversed_wrench_leads_to_its_body(robot, log, truth, sign):
    """Whatever frame was stated; a wrong body is never called good."""
    for stated in FRAMES:
        frame, found = followed(reported(log, robot, truth, sign), robot, stated)
        X = pose(robot, frame, "ft_sensor")
        body = change_of_frame(X[:3, :3], X[:3, 3]) @ BODY
        right = np.linalg.norm(found.best.com - body[1:4] / body[0]) < 0.01 and abs(found.best.mass - body[0]) < 0.05
        grade = judge_body(found, found.relative_error, "known").grade
        assert (grade == "good") == right, (stated, frame)
        assert right or found.findings[0].code == "force_axes"


def test_a_sensor_between_frames_is_told_by_its_angle(robot, log):
    """Axes of no frame: the pose that has them."""
    c, s = np.cos(0.6), np.sin(0.6)
    R = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    turned = replace(log, wrench=-np.hstack([log.force @ R, log.moment @ R]))
    with pytest.raises(InputError, match=r"by 34 degrees; give --frame-pose X,Y,Z,0\.6\d*,\S+ --flip"):
        identify_sensor_body(turned, robot, "ft_sensor", filtered="savgol:21,2", methods=("wls",))


def test_a_motion_about_one_axis_fits_other_axes_as_well(robot):
    """Slow pitching leaves the axis of pitch to the offsets: such a body is not called good."""
    rng = np.random.default_rng(0)
    path = moves(10.0, rng, 40.0)
    only = np.array([0.0, 1.0, 0.0])
    path = Path3(only * path.q, only * path.v, only * path.a)
    t = np.arange(len(path.q)) / RATE_HZ
    wrench = true_wrench(sensor_motion(path)) + OFFSETS + NOISE * rng.normal(size=(len(t), 6))
    lean = WrenchRecording(t, wrench, joint_names=("yaw", "pitch", "roll"), position=path.q)
    found = identify_sensor_body(lean, robot, "ft_sensor", filtered="savgol:21,2", methods=("wls", "sdp"))
    assert "other_axes" in [one.code for one in found.findings]
    assert judge_body(found, found.relative_error, "known").grade != "good"


def test_a_frame_at_another_place_is_told_where_the_motion_does_not_show_it(robot):
    """Poses held for long: moments alone do not tell about which point they are."""
    slow = sensor_log(10.0, duration_s=30.0, noise=5.0 * NOISE)
    found = identify_sensor_body(slow, robot, "ft_sensor", filtered="savgol:21,2", methods=("wls", "sdp"))
    (finding,) = found.findings
    assert (finding.level, finding.code) == ("note", "other_origin")
    assert "link3" in finding.what


def test_data_names_the_frame_too(robot, log, tmp_path: Path):
    path = tmp_path / "shoulder.urdf"
    path.write_text(URDF.replace("</robot>\n", BESIDE))
    table = write_log(log, tmp_path / "log.csv")
    found = inspect_any(table, path, "plate")[1].find("force_axes")
    assert found is not None
    assert found.remedy.startswith("give --frame ft_sensor; if the sensor is at the frame stated, name the columns")
    assert inspect_any(table, path, "ft_sensor")[1].find("force_axes") is None


def test_axes_of_no_frame_are_left_to_a_mapping(robot, log):
    exchanged = replace(log, wrench=log.wrench[:, [1, 0, 2, 4, 3, 5]])
    with pytest.raises(InputError, match=r"the sign is the opposite: .*name the columns in a mapping"):
        identify_sensor_body(exchanged, robot, "ft_sensor", filtered="savgol:21,2", methods=("wls",))
