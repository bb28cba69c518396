"""Names of columns and joints, and units in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.columns import HasJoints, MissingJointsError
from dynid.io.logs.names import fold, joint_forms, near_name
from dynid.io.logs.read import read_recording
from log_files import ARM, DQ, RNG, TAU, Arm, Held, N, Q, T, by_name, check, numbered, plain, write_csv
from messages import facts

NAMINGS = {
    "numbers from 1": plain(),
    "numbers from 0": {"time": T} | numbered("q", Q, 0) | numbered("qd", DQ, 0) | numbered("effort", TAU, 0),
    "underscores": {"timestamp": T}
    | numbered("pos", Q, 1, "{prefix}_{k}")
    | numbered("vel", DQ, 1, "{prefix}_{k}")
    | numbered("torque", TAU, 1, "{prefix}_{k}"),
    "brackets": {"stamp": T}
    | numbered("q", Q, 0, "{prefix}[{k}]")
    | numbered("dq", DQ, 0, "{prefix}[{k}]")
    | numbered("tau_J", TAU, 0, "{prefix}[{k}]"),
    "joint numbers": {"t": T}
    | numbered("position", Q, 1, "joint{k}_{prefix}")
    | numbered("velocity", DQ, 1, "joint{k}_{prefix}")
    | numbered("effort", TAU, 1, "joint{k}_{prefix}"),
    "axis numbers": {"t": T}
    | numbered("q", Q, 1, "A{k}.{prefix}")
    | numbered("dq", DQ, 1, "A{k}.{prefix}")
    | numbered("torque", TAU, 1, "A{k}.{prefix}"),
    "quantity_joint": by_name("{x}_{short}"),
    "joint.quantity": by_name("{joint}.{x}"),
    "quantity.joint": by_name("{x}.{joint}"),
    "capitals": {name.upper(): values for name, values in by_name("{joint}/{x}").items()},
    "measured": {"t": T}
    | numbered("actual_q", Q, 0, "{prefix}_{k}")
    | numbered("actual_qd", DQ, 0, "{prefix}_{k}")
    | numbered("measured_torque", TAU, 0, "{prefix}_{k}"),
    "zero padded": {"t": T}
    | numbered("q", Q, 1, "{prefix}0{k}")
    | numbered("dq", DQ, 1, "{prefix}0{k}")
    | numbered("tau", TAU, 1, "{prefix}0{k}"),
}


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_usual_names_are_understood(tmp_path, naming, suffix):
    columns = NAMINGS[naming]
    path = tmp_path / f"log{suffix}"
    if suffix == ".csv":
        write_csv(path, columns)
    elif suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        np.savez(path, **columns)
    check(read_recording(path, ARM))


def test_a_robot_is_as_good_as_its_joint_names(tmp_path):
    assert isinstance(Arm(), HasJoints)
    check(read_recording(write_csv(tmp_path / "log.csv", plain()), Arm()))
    with pytest.raises(InputError, match="expected a robot with joints"):
        read_recording(tmp_path / "log.csv", "elbow")


def test_robots_whose_names_are_numbers_keep_their_place(tmp_path):
    """Columns counted from 0 are not mistaken for joints named from 1."""
    columns = {"t": T} | numbered("q", Q, 0, "{prefix}_joint{k}") | numbered("tau", TAU, 0, "{prefix}_joint{k}")
    path = write_csv(tmp_path / "log.csv", columns)
    check(read_recording(path, ("joint1", "joint2", "joint3")), velocity=False)
    check(read_recording(path, ("panda_joint0", "panda_joint1", "panda_joint2")), velocity=False)


def test_one_joint_needs_no_number(tmp_path):
    path = write_csv(tmp_path / "log.csv", {"t": T, "q": Q[:, 0], "dq": DQ[:, 0], "tau": TAU[:, 0]})
    np.testing.assert_array_equal(read_recording(path, ["hinge"]).torque, TAU[:, :1])


def test_commanded_and_external_quantities_are_kept_apart(tmp_path):
    other = RNG.normal(size=(3, N, 3))
    columns = plain() | numbered("q_d", other[0], 0, "{prefix}[{k}]") | numbered("tau_des", other[1])
    columns |= numbered("tau_ext_hat_filtered", other[2], 0, "{prefix}[{k}]")
    recording = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    check(recording)
    np.testing.assert_array_equal(recording.reference_position, other[0])
    np.testing.assert_array_equal(recording.external_torque, other[2])


def misspelt() -> dict[str, np.ndarray]:
    return {name.replace("elbow", "ellbow"): values for name, values in by_name("{x}_{joint}").items()}


def test_a_misspelt_joint_is_named(tmp_path):
    path = write_csv(tmp_path / "log.csv", misspelt())
    with pytest.raises(MissingJointsError, match=facts("q_ellbow_joint", "elbow_joint", "column")) as caught:
        read_recording(path, ARM)
    assert caught.value.misspelt == {"q_ellbow_joint": "elbow_joint"}
    recording = read_recording(path, Held({"elbow_joint": 0.0}))
    (finding,) = recording.source.findings
    assert (finding.code, finding.level, finding.where) == ("misspelt_joint", "warning", ("elbow_joint",))
    assert "column 'q_ellbow_joint' is not used; did you mean joint 'elbow_joint', which has no column" in finding.what
    assert not any("ellbow" in note for note in recording.source.notes)


def test_a_misspelt_torque_is_named(tmp_path):
    columns = {name.replace("tau_elbow", "tau_elbo"): values for name, values in by_name("{x}_{joint}").items()}
    with pytest.raises(InputError, match=facts("elbow_joint", "tau_elbo_joint")):
        read_recording(write_csv(tmp_path / "log.csv", columns), ARM)


@pytest.mark.parametrize(
    ("name", "joints", "near"),
    [
        ("ellbow_joint", ("shoulder", "elbow_joint"), "elbow_joint"),
        ("sholder_pan", ("shoulder_pan_joint", "shoulder_lift_joint"), "shoulder_pan_joint"),
        ("gripper", ("elbow_joint",), None),
        ("joint_a2", ("joint_a1", "joint_a3"), None),
        ("finger_joint1", ("finger_joint2",), None),
        ("left_elbow", ("right_elbow",), None),
    ],
)
def test_near_names(name, joints, near):
    assert near_name(name, joints) == near


def test_an_arm_with_two_sets_of_names_is_read_by_both() -> None:
    """Of SO-101 arms, and only where all joints of one set are there: an elbow alone is no SO-101."""
    lerobot = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
    older = ["Rotation", "Pitch", "Elbow", "Wrist_Pitch", "Wrist_Roll", "Jaw"]
    assert [joint_forms(lerobot)[fold(name)] for name in older] == list(range(6))
    assert [joint_forms(older)[name] for name in lerobot] == list(range(6))
    assert "pitch" not in joint_forms(lerobot[:-1])


def read(path: Path, **options):
    return read_recording(path, Arm(), **options)


@pytest.mark.parametrize(
    ("form", "unit", "scale"),
    [
        ("q{k} [deg]", "position", 180.0 / np.pi),
        ("q{k} (deg)", "position", 180.0 / np.pi),
        ("q{k}[°]", "position", 180.0 / np.pi),
        ("tau_{k} (Nm)", "torque", 1.0),
        ("tau{k} [N m]", "torque", 1.0),
        ("tau{k} [mNm]", "torque", 1e3),
        ("dq{k} [deg/s]", "velocity", 180.0 / np.pi),
        ("dq{k} (rpm)", "velocity", 30.0 / np.pi),
    ],
)
def test_units_in_names_are_read(tmp_path: Path, form: str, unit: str, scale: float) -> None:
    stems = {"position": ("q", Q), "velocity": ("dq", DQ), "torque": ("tau", TAU)}
    columns = {"t": T}
    for quantity, (stem, values) in stems.items():
        if quantity == unit:
            columns |= {form.format(k=k + 1): scale * values[:, k] for k in range(3)}
        else:
            columns |= numbered(stem, values)
    found = read(write_csv(tmp_path / "log.csv", columns, delimiter=";"))
    for quantity, (_, values) in stems.items():
        np.testing.assert_allclose(getattr(found, quantity), values, rtol=1e-12)


def test_time_in_milliseconds_by_its_header(tmp_path: Path) -> None:
    columns = {"time [ms]" if name == "t" else name: 1e3 * v if name == "t" else v for name, v in plain().items()}
    np.testing.assert_allclose(read(write_csv(tmp_path / "log.csv", columns)).time, T, atol=1e-9)


def test_a_joint_in_brackets_is_no_unit(tmp_path: Path) -> None:
    found = read(write_csv(tmp_path / "log.csv", by_name("{x}[{joint}]")))
    np.testing.assert_array_equal(found.position, Q)


def test_a_unit_of_another_quantity_is_refused(tmp_path: Path) -> None:
    columns = {f"{name} [Nm]" if name.startswith("q") else name: v for name, v in plain().items()}
    with pytest.raises(UnknownNameError, match="unit of position"):
        read(write_csv(tmp_path / "log.csv", columns))


def test_the_mapping_has_the_last_word_on_units(tmp_path: Path) -> None:
    columns = {f"{name} [deg]" if name.startswith("q") else name: v for name, v in plain().items()}
    found = read(write_csv(tmp_path / "log.csv", columns), mapping={"units": {"position": "rad"}})
    np.testing.assert_array_equal(found.position, Q)


@pytest.mark.parametrize(
    ("first", "zone"), [("2024-05-17T09:30:00", ""), ("2024-05-17 09:30:00", ""), ("2024-05-17T09:30:00", "Z"),
                        ("2024-05-17T09:30:00", "+02:00")],
)  # fmt: skip
def test_iso_time_stamps_are_read(tmp_path: Path, first: str, zone: str) -> None:
    start = np.datetime64(first.replace(" ", "T"), "us")
    stamps = [str(start + np.timedelta64(round(1e6 * t), "us")) for t in T]
    if " " in first:
        stamps = [stamp.replace("T", " ") for stamp in stamps]
    lines = [",".join(["time", *(name for name in plain() if name != "t")])]
    rows = np.column_stack([values for name, values in plain().items() if name != "t"])
    lines += [",".join([stamp + zone, *map(repr, row.tolist())]) for stamp, row in zip(stamps, rows, strict=True)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    found = read(path)
    np.testing.assert_allclose(found.time - found.time[0], T, atol=1e-6)
    np.testing.assert_array_equal(found.torque, TAU)


def test_a_stamp_that_is_none_is_refused_with_its_column(tmp_path: Path) -> None:
    names = ",".join(["time", *(name for name in plain() if name != "t")])
    rows = [f"2024-05-17T09:30:{k:02d}," + ",".join(["0.1"] * 9) for k in range(55)] + ["yesterday," + ",".join(["0.1"] * 9)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([names, *rows]) + "\n")
    with pytest.raises(InputError, match="column 'time' holds 'yesterday', expected dates"):
        read(path)


def test_signs_of_a_mapping_turn_joints_round(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", plain())
    for sign in ({ARM[1]: -1}, [1, -1, 1]):
        found = read(path, mapping={"sign": sign})
        for values, truth in ((found.position, Q), (found.velocity, DQ), (found.torque, TAU)):
            np.testing.assert_array_equal(values, truth * [1, -1, 1])
    with pytest.raises(InputError, match="expected 1 or -1"):
        read(path, mapping={"sign": [1, 2, 1]})
    with pytest.raises(UnknownNameError, match="elbwo"):
        read(path, mapping={"sign": {"elbwo": -1}})


def test_a_minus_turns_one_column_round(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", plain())
    found = read(path, mapping={"torque": ["tau1", "-tau2", "tau3"]})
    np.testing.assert_array_equal(found.torque, TAU * [1, -1, 1])
    np.testing.assert_array_equal(found.position, Q)
    by_joint = read(path, mapping={"torque": {name: f"{'-' * (k == 0)}tau{k + 1}" for k, name in enumerate(ARM)}})
    np.testing.assert_array_equal(by_joint.torque, TAU * [-1, 1, 1])
    np.testing.assert_array_equal(read(path, mapping={"torque": "-tau{number}"}).torque, -TAU)


@pytest.mark.parametrize("torque", ["M{number}", "M{number} [mNm]", "-M{number} [mNm]"])
def test_a_pattern_may_spell_the_unit_out_or_leave_it(tmp_path: Path, torque: str) -> None:
    """Names of no known kind, such as those of a KUKA trace, given by a mapping as they stand in the header or without the unit."""
    columns = {"Time [ms]": 1e3 * T}
    columns |= {f"A{k + 1} [deg]": np.degrees(Q[:, k]) for k in range(3)} | {
        f"M{k + 1} [mNm]": 1e3 * TAU[:, k] for k in range(3)
    }
    path = write_csv(tmp_path / "log.csv", columns, delimiter=";")
    with pytest.raises(
        InputError, match=r'no position columns .*found Time, A1.*\(--mapping FILE\): position = "A\{number\}"'
    ):
        read(path)
    found = read(path, mapping={"position": "A{number} [deg]", "torque": torque})
    np.testing.assert_allclose(found.position, Q, rtol=1e-12)
    np.testing.assert_allclose(found.torque, -TAU if torque.startswith("-") else TAU, rtol=1e-12)
    np.testing.assert_allclose(found.time, T, rtol=1e-12)
