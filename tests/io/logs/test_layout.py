"""What a user, a mapping and a preset say of a log, and which of them wins."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.layout import PRESETS, Layout, ReadOptions
from dynid.io.logs.read import open_recording, read_recording
from dynid.signals.recording import WrenchRecording
from log_files import ARM, CURRENT, DQ, TAU, N, Q, T, check, numbered, plain, write_csv
from messages import facts


def test_keywords_and_options_are_the_same(tmp_path):
    path = write_csv(tmp_path / "log.csv", plain())
    options = ReadOptions(units={"position": "deg"}, ignore=("velocity",))
    recording = read_recording(path, ARM, options)
    np.testing.assert_allclose(recording.position, np.deg2rad(Q))
    assert recording.quantities == ("position", "torque")
    np.testing.assert_array_equal(open_recording(path, ARM, options, chunk_rows=7).read().position, recording.position)
    check(read_recording(path, ARM, ReadOptions()))
    again = read_recording(path, ARM, ReadOptions(ignore=("velocity",)), units={"position": "deg"})
    np.testing.assert_array_equal(again.position, recording.position)
    with pytest.raises(TypeError, match="topics"):
        read_recording(path, ARM, topics="/a")


def test_options_win_over_the_mapping_and_the_mapping_over_the_preset():
    layout = ReadOptions(
        mapping={"preset": "rtde", "units": {"position": "deg", "current": "mA"}, "drive_gains": [1.0], "topic": "/a"},
        units={"position": "rev"},
        topic="/b",
    ).layout()
    assert layout.preset == "rtde"
    assert layout.units == {"time": "s", "position": "rev", "velocity": "rad/s", "current": "mA"}
    assert (layout.drive_gains, layout.topic) == ((1.0,), "/b")


def test_a_layout_is_completed_by_another():
    first = Layout(units={"position": "deg"}, gear_ratios={"elbow": 50}, time=("t",))
    second = Layout(units={"position": "rad", "torque": "Nm"}, gear_ratios={"wrist": 10}, time=("stamp",), topic="/a")
    joined = first.over(second)
    assert joined.units == {"position": "deg", "torque": "Nm"}  # tables by quantity are joined
    assert (joined.gear_ratios, joined.time, joined.topic) == ({"elbow": 50}, ("t",), "/a")  # anything else is one value
    assert first.over(Layout()) == first == Layout().over(first)


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


def test_mapping_in_its_forms(tmp_path):
    columns = {"clock": T * 1e3, "first": Q[:, 0], "second": Q[:, 1], "third": Q[:, 2]}
    columns |= numbered("load", TAU, 1, "drive{k}.{prefix}") | {"a": DQ[:, 0], "b": DQ[:, 1], "c": DQ[:, 2]}
    path = write_csv(tmp_path / "log.csv", columns)
    mapping = {
        "time": "clock",
        "position": ["first", "second", "third"],
        "velocity": {"elbow_joint": "c", "shoulder_pan_joint": "a", "shoulder_lift_joint": "b"},
        "torque": "drive{number}.load",
        "units": {"time": "ms"},
    }
    check(read_recording(path, ARM, mapping=mapping))
    (tmp_path / "map.json").write_text(json.dumps(mapping))
    check(read_recording(path, ARM, mapping=tmp_path / "map.json"))
    (tmp_path / "map.toml").write_text(
        'time = "clock"\ntorque = "drive{number}.load"\n[units]\ntime = "ms"\n'
        '[rename]\nfirst = "q1"\nsecond = "q2"\nthird = "q3"\na = "dq1"\nb = "dq2"\nc = "dq3"\n'
    )
    check(read_recording(path, ARM, mapping=tmp_path / "map.toml"))


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"positions": "q"}, facts("time", "position", "positions", "mapping")),
        ({"position": ["q1", "q2"]}, facts("2", "3", "position")),
        ({"position": ["q1", "q2", "q9"]}, "unknown position column 'q9'"),
        ({"torque": {"wrist": "tau1"}}, "unknown joint 'wrist'"),
        ({"torque": "load{number}"}, facts("load{number}", "column", "mapping")),
        ({"time": "clock"}, "unknown time column 'clock'"),
        ({"time": 3}, facts("time", "3", "text or a list")),
        ({"units": "deg"}, "'units': 'deg', expected a table"),
        ({"rename": {"x": "q1"}}, "unknown column 'x'"),
        ({"rename": {"q1": "q2"}}, "renames two columns to the same name"),
        ({"side": {"torque": "gear"}}, "unknown side of the gearbox 'gear'"),
        ({"gear_ratios": [1.0]}, "1 gear ratios given, robot has 3 joints"),
        ({"preset": "fanuc"}, facts("libfranka", "rtde", "fri", "joint_states", "fanuc", "preset")),
        ("missing.toml", facts("missing.toml", "mapping")),
        ("mapping.yaml", "a mapping file ends in .toml or .json"),
    ],
)
def test_wrong_mappings_are_refused(tmp_path, mapping, message):
    with pytest.raises(InputError, match=message):
        read_recording(write_csv(tmp_path / "log.csv", plain()), ARM, mapping=mapping)


def test_preset_libfranka(tmp_path):
    arm = tuple(f"fr3_joint{k}" for k in range(1, 8))
    q, q_d, dq, dq_d, tau, tau_ext, commanded = np.random.default_rng(0).normal(size=(7, 20, 7))
    q = 1e-3 * q  # rows are a millisecond apart
    columns = {"time": np.arange(20) + 7731, "success_rate": np.ones(20)}
    for name, values in {
        "state.q": q, "state.q_d": q_d, "state.dq": dq, "state.dq_d": dq_d, "state.tau_J": tau,
        "state.tau_ext_hat_filtered": tau_ext, "cmd.q_d": commanded, "cmd.tau_J_d": commanded,
    }.items():  # fmt: skip
        columns |= numbered(name, values, 0, "{prefix}[{k}]")
    path = write_csv(tmp_path / "log.csv", columns)
    for preset in ("libfranka", None):
        recording = read_recording(path, arm, preset=preset)
        np.testing.assert_allclose(recording.time, 7.731 + np.arange(20) * 1e-3)
        np.testing.assert_array_equal(recording.position, q)
        np.testing.assert_array_equal(recording.velocity, dq)
        np.testing.assert_array_equal(recording.torque, tau)
        np.testing.assert_array_equal(recording.external_torque, tau_ext)
        np.testing.assert_array_equal(recording.reference_position, q_d)
    assert recording.source.preset is None
    # The older header has blanks after its commas and other names for the first two columns.
    text = path.read_text().replace("time,success_rate,", "duration, success rate, ", 1).replace("state.", "")
    path.write_text(text.replace("],", "], "))
    old = read_recording(path, arm, preset="libfranka")
    np.testing.assert_array_equal(old.torque, tau)
    assert old.source.preset == "libfranka"


def test_preset_rtde_with_blanks_between(tmp_path):
    columns = {"timestamp": 532.0 + T} | numbered("actual_q", Q, 0, "{prefix}_{k}")
    columns |= numbered("actual_qd", DQ, 0, "{prefix}_{k}") | numbered("actual_current", CURRENT, 0, "{prefix}_{k}")
    columns |= numbered("target_q", Q + 1, 0, "{prefix}_{k}") | numbered("target_moment", TAU, 0, "{prefix}_{k}")
    columns |= {f"actual_TCP_force_{k}": T for k in range(6)}
    path = write_csv(tmp_path / "log.csv", columns, delimiter=" ")
    for preset in ("rtde", None):
        recording = read_recording(path, ARM, preset=preset, drive_gains=[2.0, 3.0, 4.0])
        np.testing.assert_array_equal(recording.velocity, DQ)
        np.testing.assert_allclose(recording.torque, CURRENT * [2.0, 3.0, 4.0])
        np.testing.assert_array_equal(recording.reference_position, Q + 1)
    sensor = read_recording(path, ARM, kind="wrench")
    assert isinstance(sensor, WrenchRecording)
    np.testing.assert_array_equal(sensor.position, Q)


def test_preset_fri(tmp_path):
    ns = np.arange(N, dtype=np.int64) * 8_000_000
    columns = {"time_stamp_sec": 1_700_000_000 + ns // 10**9, "time_stamp_nano_sec": ns % 10**9}
    columns |= numbered("measured_joint_position", Q, 0, "{prefix}_{k}")
    columns |= numbered("measured_torque", TAU, 0, "{prefix}_{k}")
    columns |= numbered("external_torque", TAU - 1, 0, "{prefix}_{k}")
    path = write_csv(tmp_path / "log.csv", columns)
    for preset in ("fri", None):
        recording = read_recording(path, ARM, preset=preset)
        check(recording, velocity=False)
        np.testing.assert_array_equal(recording.external_torque, TAU - 1)


def test_a_preset_that_does_not_fit_says_what_it_expects(tmp_path):
    path = write_csv(tmp_path / "log.csv", plain())
    with pytest.raises(InputError, match=facts("rtde", "actual_q", "q1", "preset")):
        read_recording(path, ARM, preset="rtde")
    with pytest.raises(UnknownNameError, match="unknown preset 'abb'"):
        read_recording(path, ARM, preset="abb")


def test_every_preset_names_units_and_sides():
    for preset in PRESETS.values():
        assert "position" in preset.patterns
        assert set(preset.units) - {"time"} <= set(preset.patterns)
        assert set(preset.side) <= set(preset.patterns)
