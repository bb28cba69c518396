"""Boxes around bodies, against shapes whose corners are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.robots.read import read_robot
from dynid.io.robots.shapes import body_boxes
from problems import inertial_urdf, planar_2r


def urdf(tmp_path: Path, upper: str, tool: str = "") -> Path:
    """An arm whose link carries a fixed tool 0.5 m away."""
    limit = '<limit lower="-1" upper="1" velocity="1" effort="9"/>'
    path = tmp_path / "arm.urdf"
    path.write_text(
        f'<robot name="arm"><link name="base"/><link name="upper">{inertial_urdf(1.0)}{upper}</link>'
        f'<link name="tool">{inertial_urdf(0.5)}{tool}</link>'
        f'<joint name="turn" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>{limit}</joint>'
        '<joint name="hold" type="fixed"><parent link="upper"/><child link="tool"/><origin xyz="0.5 0 0" rpy="0 0 1.5707963267948966"/>'
        "</joint></robot>"
    )
    return path


BAR = '<collision><origin xyz="0.1 0 0"/><geometry><box size="0.2 0.04 0.06"/></geometry></collision>'
BALL = '<collision><origin xyz="0.05 0 0"/><geometry><box size="0.02 0.02 0.02"/></geometry></collision>'


def test_a_box_spans_all_links_of_a_body(tmp_path: Path) -> None:
    robot = read_robot(urdf(tmp_path, BAR, BALL))
    boxes, missing = body_boxes(robot, wider_m=0.0)
    assert boxes.keys() == {"upper"}
    assert missing == {}
    lower, upper = boxes["upper"]
    # the tool's shape is 0.05 along its own x, which is the body's y
    np.testing.assert_allclose(lower, [0.0, -0.02, -0.03], atol=1e-9)
    np.testing.assert_allclose(upper, [0.51, 0.06, 0.03], atol=1e-9)
    np.testing.assert_allclose(body_boxes(robot, wider_m=0.1)[0]["upper"][1], [0.61, 0.16, 0.13], atol=1e-9)


def test_a_body_with_mass_outside_all_shapes_has_no_box(tmp_path: Path) -> None:
    assert body_boxes(read_robot(urdf(tmp_path, BAR))) == ({}, {"upper": "link 'tool' has no shape"})


@pytest.mark.parametrize("shapes", ["", '<collision><geometry><mesh filename="gone.stl"/></geometry></collision>'])
def test_a_robot_without_shapes_says_why(tmp_path: Path, shapes: str) -> None:
    with pytest.raises(InputError, match=r"arm\.urdf"):
        body_boxes(read_robot(urdf(tmp_path, shapes)))
    with pytest.raises(InputError, match="planar_2r"):
        body_boxes(planar_2r())
