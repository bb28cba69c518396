"""Forms of lines: JSON, CSV, and joint states as ROS 2 prints them."""

from __future__ import annotations

import json

import pytest

from dynid.apps.online.text_lines import CsvLines, JsonLines, MalformedError, RosLines, form_of
from dynid.io.logs.columns import Slot

ROS = "1690000000,250000000,base_link,elbow,wrist,0.5,-0.25,0.1,0.0,1.5,2.5"
"""What ``rosidl_runtime_py.message_to_csv`` prints of a joint state: stamp, frame, names, position, velocity, effort."""


def test_ros_joint_state() -> None:
    form = form_of(ROS)
    assert isinstance(form, RosLines)
    assert form.names == ("elbow", "wrist")
    pick = form.pick([Slot("header.stamp.sec"), Slot("header.stamp.nanosec"), Slot("position", 1), Slot("effort", 0)])
    assert pick(ROS) == [1690000000, 250000000, -0.25, 1.5]


def test_ros_empty_lists_and_other_order() -> None:
    pick = RosLines(("elbow", "wrist")).pick([Slot("position", 0), Slot("effort", 1)])
    # no frame, no velocity: one empty field each, as the printer leaves them
    assert pick("1690000000,0,,elbow,wrist,0.5,-0.25,,1.5,2.5") == [0.5, 2.5]
    assert pick("1690000000,0,,wrist,elbow,-0.25,0.5,,2.5,1.5") == [0.5, 2.5]
    with pytest.raises(MalformedError, match="missing joint"):
        pick("1690000000,0,,gripper,0.1,,0.0")
    with pytest.raises(MalformedError, match="missing column"):
        pick("1690000000,0,,elbow,wrist,0.5,-0.25,,")


@pytest.mark.parametrize("line", ["A message was lost!!!", "\ttotal count change:1", "---", "", "1,2", ROS[:40], ROS + ",7"])
def test_ros_noise_is_malformed(line: str) -> None:
    with pytest.raises(MalformedError):
        RosLines(("elbow", "wrist")).pick([Slot("position", 0)])(line)


def test_csv() -> None:
    form = form_of("t, q1, tau1")
    assert isinstance(form, CsvLines)
    assert form.header == ("t", "q1", "tau1")
    pick = form.pick([Slot("tau1"), Slot("t")])
    assert pick("1690000000123456789, 2, 3e-1") == [0.3, 1690000000123456789]
    for line in ("1,2", "1,2,x", "1,2,3,4"):
        with pytest.raises(MalformedError):
            pick(line)
    again = form.headed("tau1,t,q1")
    assert isinstance(again, CsvLines)
    assert again.header == ("tau1", "t", "q1")
    assert form.headed("1,2,3") is None
    for first in ("1.0,2.0,3.0", "t,t,q1", "log"):
        with pytest.raises(MalformedError, match="header"):
            form_of(first)


def test_json_lists_by_name() -> None:
    first = {"header": {"stamp": {"sec": 1, "nanosec": 2}}, "name": ["elbow", "wrist"], "position": [0.5, -0.25], "ok": True}
    form = form_of(json.dumps(first))
    assert isinstance(form, JsonLines)
    assert form.shapes["header.stamp.sec"] == ()
    assert form.element_names["position"] == ("elbow", "wrist")
    pick = form.pick([Slot("header.stamp.nanosec"), Slot("position", 1)])
    assert pick(json.dumps(first)) == [2, -0.25]
    assert pick(json.dumps(first | {"name": ["wrist", "elbow"], "position": [7.0, 8.0]})) == [2, 7.0]
    for bad in (
        {"name": ["elbow"], "position": [1.0]},
        {"position": [1.0, "2"]},
        {"position": [1.0, None]},
        {"position": 3},
    ):
        with pytest.raises(MalformedError):
            pick(json.dumps(first | bad))
    for line in ("[1, 2]", "{", "nonsense", "[" * 100_000):
        with pytest.raises(MalformedError):
            pick(line)
