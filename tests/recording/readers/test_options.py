"""Options as one value, and the examples in the docstrings of the readers."""

from __future__ import annotations

import dataclasses
import doctest
import inspect

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.recording.readers import options as options_module
from dynid.recording.readers import read as read_module
from dynid.recording.readers.digest import sha256_of
from dynid.recording.readers.formats import registry
from dynid.recording.readers.joints import joints_of
from dynid.recording.readers.options import ReadOptions
from dynid.recording.readers.read import open_recording, open_with, read_recording, read_with
from log_files import ARM, Held, Q, check, plain, write_csv
from messages import facts


@pytest.mark.parametrize("module", [options_module, read_module, registry], ids=lambda module: module.__name__)
def test_examples_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write their files where they run
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_keywords_and_options_are_the_same(tmp_path):
    keywords = [name for name in inspect.signature(read_recording).parameters if name not in ("path", "robot")]
    assert keywords == [field.name for field in dataclasses.fields(ReadOptions)]
    streamed = [name for name in inspect.signature(open_recording).parameters if name not in ("path", "robot", "chunk_rows")]
    assert streamed == [name for name in keywords if name != "kind"]
    path = write_csv(tmp_path / "log.csv", plain())
    options = ReadOptions(units={"position": "deg"}, ignore=("velocity",))
    recording = read_with(path, ARM, options)
    np.testing.assert_allclose(recording.position, np.deg2rad(Q))
    assert recording.quantities == ("position", "torque")
    np.testing.assert_array_equal(open_with(path, ARM, options, chunk_rows=7).read().position, recording.position)
    check(read_with(path, ARM, ReadOptions()))


def test_options_win_over_the_mapping_and_the_mapping_over_the_preset():
    layout = ReadOptions(
        mapping={"preset": "rtde", "units": {"position": "deg", "current": "mA"}, "drive_gains": [1.0], "topic": "/a"},
        units={"position": "rev"},
        topic="/b",
    ).layout()
    assert layout.preset is not None
    assert layout.preset.name == "rtde"
    assert layout.units == {"time": "s", "position": "rev", "velocity": "rad/s", "current": "mA"}
    assert (layout.drive_gains, layout.open_options.topic) == ([1.0], "/b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "video"}, facts("motion", "static", "wrench", "video")),
        ({"ignore": ("q",)}, "unknown quantity to ignore 'q'"),
        ({"rate_hz": float("nan")}, "rate_hz is nan, expected a positive number"),
        ({"joints": ("a", "a")}, "joint name 'a' appears more than once"),
    ],
)
def test_wrong_options_are_refused_before_any_file_is_opened(options, message):
    with pytest.raises(InputError, match=message):
        ReadOptions(**options)


def test_values_per_joint_for_the_joints_to_read():
    joints = joints_of(Held({"shoulder_lift_joint": 0.5}), None)
    assert joints.names == (ARM[0], ARM[2])
    assert joints.in_order([1, 2, 3]) == [1, 3]
    assert joints.in_order([1, 2]) == [1, 2]
    assert joints.in_order(dict(zip(ARM, "abc", strict=True))) == {ARM[0]: "a", ARM[2]: "c"}
    assert joints.in_order({"wrist": 1}) == {"wrist": 1}  # for the caller to refuse
    assert joints.in_order("deg") == "deg"
    with pytest.raises(InputError, match=facts("shoulder_lift_joint", "shoulder_pan")):
        joints_of(Held({"shoulder_lift_joint": 0.5}), ["shoulder_lift_joint"])
    with pytest.raises(UnknownNameError, match="unknown joint 'wrist'"):
        joints_of(ARM, ["wrist"])


def test_the_hash_of_a_folder_knows_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    first = sha256_of(tmp_path)
    assert first == sha256_of(tmp_path)
    (tmp_path / "b").write_text("3")
    changed = sha256_of(tmp_path)
    (tmp_path / "b").rename(tmp_path / "c")
    assert len({first, changed, sha256_of(tmp_path)}) == 3
