"""Units in column names, dates as time stamps, and signs in a mapping."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.recording.readers.read import read_recording
from log_files import ARM, DQ, TAU, Arm, Q, T, by_name, numbered, plain, write_csv


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
