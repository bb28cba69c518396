"""Geoms of MJCF as solids: which count, on which link, and the floor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

from dynid.errors import InputError
from dynid.io.robots.mjcf_geoms import geom_solids

MODEL = """<mujoco><asset>{asset}</asset><worldbody>
  <geom name="floor" type="plane" size="1 1 1" pos="0 0 -0.1"/>
  <geom name="ramp" type="plane" size="1 1 1" euler="20 0 0"/>
  <geom name="post" type="cylinder" size="0.05 0.4" pos="1 0 0.4"/>
  <body name="table" pos="0 1 0"><geom type="box" size="0.3 0.2 0.1"/></body>
  <body name="arm" pos="0 0 0.2"><joint type="hinge"/>
    <geom type="capsule" size="0.03 0.1"/><geom type="sphere" size="0.2" contype="0" conaffinity="0"/>{geom}
    <body name="tip"><joint type="hinge" axis="1 0 0"/><joint type="hinge" axis="0 1 0"/>
      <geom type="ellipsoid" size="0.1 0.2 0.3" contype="0" conaffinity="0"/></body></body></worldbody>
  <contact><exclude body1="arm" body2="table"/></contact></mujoco>"""


def solids_of(folder: Path, *, looks: bool, asset: str = "", geom: str = ""):
    path = folder / "arm.xml"
    path.write_text(MODEL.format(asset=asset, geom=geom), "utf-8")
    return geom_solids(path, looks=looks)


def test_geoms_that_collide_count_and_others_for_want_of_them(tmp_path: Path) -> None:
    found = solids_of(tmp_path, looks=False)
    kinds = {(solid.link, solid.kind, solid.obstacle) for solid in found.solids}
    assert kinds == {
        ("post", "cylinder", True),
        ("table", "box", True),
        ("arm", "capsule", False),
        ("tip", "ellipsoid", False),
    }
    assert found.floor_m == pytest.approx(-0.1)
    assert found.notes == ("plane 'ramp' is not level and is not kept clear of",)
    assert found.excluded == {frozenset(("arm", "table"))}
    assert found.joined == {frozenset(("tip", "arm"))}  # by two joints at once
    (table,) = [solid for solid in found.solids if solid.link == "table"]
    np.testing.assert_allclose(table.pose[:3, 3], [0.0, 1.0, 0.0])
    np.testing.assert_allclose(table.sizes, [0.3, 0.2, 0.1])


def test_looks_are_all_geoms_of_bodies(tmp_path: Path) -> None:
    found = solids_of(tmp_path, looks=True)
    assert [solid.kind for solid in found.solids if solid.link == "arm"] == ["capsule", "ellipsoid"]
    assert "post" not in {solid.link for solid in found.solids}


def test_a_mesh_that_is_not_there_leaves_its_link_without_shape(tmp_path: Path) -> None:
    mesh = {"asset": '<mesh name="m" file="m.stl"/>', "geom": '<geom type="mesh" mesh="m"/>'}
    found = solids_of(tmp_path, looks=False, **mesh)
    assert "m.stl' of robot file" in found.lacking["arm"]
    assert "arm" not in {solid.link for solid in found.solids}
    with pytest.raises(InputError, match="is not there"):
        solids_of(tmp_path, looks=True, **mesh)
