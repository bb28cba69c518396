"""The bytes of a description, values of TOML files, and which mesh files may be opened."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.io.robots import description
from dynid.io.robots.description import (
    Description,
    body_parameters,
    check_keys,
    home_of,
    number,
    pose_of,
    read_description,
    vector,
    vetted_mesh,
)
from dynid.model.inertia import mass_com_inertia
from dynid.model.poses import make_pose, rotation_from_rpy


def test_a_file_is_read_once_and_remembered_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_bytes(b"<robot name='a'/>")
    found = read_description(path)
    assert found.root.tag == "robot"
    assert found.where == f"robot file '{path}'"
    assert found.source("urdf").sha256 == hashlib.sha256(found.content).hexdigest()
    with pytest.raises(InputError, match=r"robot file 'arm\.toml' is not UTF-8 text: byte 1 cannot be decoded"):
        _ = Description(Path("arm.toml"), b"a\xff").text


def test_files_that_cannot_be_had_are_refused_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "arm.urdf"
    with pytest.raises(InputError, match=r"arm\.urdf' does not exist"):
        read_description(path)
    path.write_bytes(b" \n")
    with pytest.raises(InputError, match=r"arm\.urdf' is empty"):
        read_description(path)
    with pytest.raises(InputError, match="is not a file"):
        read_description(tmp_path)
    monkeypatch.setattr(description, "LARGEST_FILE_BYTES", 1)
    with pytest.raises(InputError, match="has 2 bytes, expected at most 1"):
        read_description(path)


def test_values_are_checked_and_named() -> None:
    check_keys({"a": 1, "b": 2}, ("a",), ("b",), "table")
    with pytest.raises(InputError, match="table lacks the key 'a'"):
        check_keys({}, ("a",), (), "table")
    with pytest.raises(UnknownNameError, match="key 'c'"):
        check_keys({"a": 1, "c": 2}, ("a",), ("b",), "table")
    for bad in (True, "1", float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"x is .*, expected a"):
            number(bad, "x")
    with pytest.raises(InputError, match="expected three numbers"):
        vector([1.0, 2.0], "x")
    pose = pose_of({"position": [1, 2, 3], "rpy": [0.0, 0.0, np.pi / 2]}, "frame")
    np.testing.assert_allclose(pose @ [1.0, 0.0, 0.0, 1.0], [1.0, 3.0, 3.0, 1.0], atol=1e-15)


def test_parameters_of_a_body_are_those_of_its_pose() -> None:
    R = rotation_from_rpy(0.3, -0.2, 1.0)
    mass, com, inertia = mass_com_inertia(
        body_parameters(2.0, make_pose(R, [0.1, 0.2, 0.3]), (1.0, 0.1, 0.2, 1.5, 0.3, 2.0))
    )
    tensor = np.array([[1.0, 0.1, 0.2], [0.1, 1.5, 0.3], [0.2, 0.3, 2.0]])
    assert mass == pytest.approx(2.0)
    np.testing.assert_allclose(com, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(inertia, R @ tensor @ R.T, atol=1e-14)


def test_only_ordinary_mesh_files_near_the_description_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh, robot = tmp_path / "link.stl", tmp_path / "arm.urdf"
    with pytest.raises(InputError, match="is not there"):
        vetted_mesh(mesh, robot)
    with pytest.raises(InputError, match="is not an ordinary file"):
        vetted_mesh(tmp_path, robot)
    mesh.write_bytes(bytes(10))
    vetted_mesh(mesh, robot)
    monkeypatch.setattr(description, "MOST_MESH_BYTES", 1)
    with pytest.raises(InputError, match="MB, expected at most"):
        vetted_mesh(mesh, robot)
    assert home_of(tmp_path) == tmp_path.parent
    assert home_of(Path("/robots")) == Path("/robots")  # the root of the file system holds everything
