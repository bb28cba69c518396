"""Shapes of links in their bodies' frames, against the numbers of the description."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.robots.read import read_robot
from dynid.io.robots.shapes import link_shapes

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def urdf(folder: Path, shape: str, flange: str = "") -> Path:
    path = folder / "arm.urdf"
    path.write_text(
        f'<robot name="arm"><link name="base">{shape}</link><link name="arm">{INERTIAL}{shape}</link>'
        f'<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint>'
        f'<link name="flange">{flange}</link><joint name="f" type="fixed"><parent link="arm"/><child link="flange"/>'
        f'<origin xyz="0 0 1"/></joint></robot>'
    )
    return path


def stl(path: Path, points: np.ndarray) -> None:
    """A binary STL of triangles ``(n, 3, 3)``."""
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *triangle.ravel(), 0) for triangle in points)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(points)) + body)


def size_of(path: Path) -> tuple[np.ndarray, np.ndarray]:
    (surface,) = link_shapes(read_robot(path))
    assert surface is not None
    return surface.vertices.min(axis=0), surface.vertices.max(axis=0)


def test_a_fixed_link_belongs_to_the_body_that_carries_it(tmp_path: Path) -> None:
    shape = '<collision><origin xyz="0.1 0 0"/><geometry><box size="0.2 0.2 0.2"/></geometry></collision>'
    low, high = size_of(urdf(tmp_path, shape, shape))
    np.testing.assert_allclose(low, [0.0, -0.1, -0.1], atol=1e-12)
    np.testing.assert_allclose(high, [0.2, 0.1, 1.1], atol=1e-12)


def test_visual_shapes_where_there_are_no_collision_shapes(tmp_path: Path) -> None:
    low, high = size_of(urdf(tmp_path, '<visual><geometry><cylinder radius="0.1" length="0.4"/></geometry></visual>'))
    np.testing.assert_allclose(high - low, [0.2, 0.2, 0.4], atol=1e-9)


def test_a_mesh_with_its_scale(tmp_path: Path) -> None:
    corner = np.array([[0.0, 0.0, 0.0], [100.0, 0.0, 0.0], [0.0, 200.0, 0.0], [0.0, 0.0, 300.0]])
    stl(tmp_path / "part.stl", corner[[[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]])
    mesh = '<collision><geometry><mesh filename="file://part.stl" scale="0.001 0.001 0.001"/></geometry></collision>'
    low, high = size_of(urdf(tmp_path, mesh.replace("part.stl", str(tmp_path / "part.stl"))))
    np.testing.assert_allclose(low, 0.0, atol=1e-9)
    np.testing.assert_allclose(high, [0.1, 0.2, 0.3], atol=1e-6)


def test_mjcf_geoms(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="arm"><joint type="hinge" axis="0 0 1"/>'
        '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><geom type="box" size="0.1 0.2 0.3" pos="0 0 1"/>'
        '<body name="tip" pos="0 0 2"><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
        '<geom type="sphere" size="0.5"/></body></body></worldbody></mujoco>'
    )
    low, high = size_of(path)
    np.testing.assert_allclose(low, [-0.5, -0.5, 0.7], atol=1e-9)
    np.testing.assert_allclose(high, [0.5, 0.5, 2.5], atol=1e-9)


def test_a_mesh_that_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.stl")
    mesh = f'<collision><geometry><mesh filename="file://{tmp_path}/pipe.stl"/></geometry></collision>'
    with pytest.raises(InputError, match="not an ordinary file"):
        link_shapes(read_robot(urdf(tmp_path, mesh)))


@pytest.mark.parametrize("corners", [[np.nan] * 9, [np.inf, *range(8)]])
def test_a_mesh_of_no_triangle_is_refused(corners: list[float], tmp_path: Path) -> None:
    stl(tmp_path / "part.stl", np.array([corners]))
    mesh = f'<collision><geometry><mesh filename="file://{tmp_path}/part.stl"/></geometry></collision>'
    with pytest.raises(InputError, match=r"part\.stl' has no triangles of three finite points"):
        link_shapes(read_robot(urdf(tmp_path, mesh)))


def test_without_shapes_the_sentence_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no link shapes"):
        link_shapes(read_robot(urdf(tmp_path, "")))
    mesh = '<collision><geometry><mesh filename="file:///nowhere/part.stl"/></geometry></collision>'
    with pytest.raises(InputError, match=r"part\.stl"):
        link_shapes(read_robot(urdf(tmp_path, mesh)))


def test_sdf_collisions_or_looks(tmp_path: Path) -> None:
    path = tmp_path / "arm.sdf"
    inertial = "<inertial><mass>1</mass></inertial>"
    box = '<{0} name="c"><pose>0 0 1 0 0 0</pose><geometry><box><size>.2 .4 .6</size></box></geometry></{0}>'
    looks = '<visual name="v"><geometry><sphere><radius>5</radius></sphere></geometry></visual>'
    for shapes in (box.format("collision") + looks, box.format("visual")):
        path.write_text(
            f'<sdf version="1.9"><model name="m"><link name="arm"><pose>0 0 3 0 0 0</pose>{inertial}{shapes}</link><joint name="j" '
            'type="continuous"><parent>world</parent><child>arm</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>'
        )
        low, high = size_of(path)
        np.testing.assert_allclose(low, [-0.1, -0.2, 0.7], atol=1e-9)
        np.testing.assert_allclose(high, [0.1, 0.2, 1.3], atol=1e-9)
    path.write_text(path.read_text().replace("<box><size>.2 .4 .6</size></box>", "<mesh><uri>gone.stl</uri></mesh>"))
    with pytest.raises(InputError, match=r"gone\.stl"):
        link_shapes(read_robot(path))
