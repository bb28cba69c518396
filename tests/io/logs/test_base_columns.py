"""Columns of base and feet by their names."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.logs.base_columns import base_columns, contact_columns, force_columns, moves_base, touching

FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")


def test_quantities_of_the_base_are_found_by_usual_names() -> None:
    names = [
        f"base_{k}" for k in ("x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz", "alx", "aly", "alz")
    ]
    found = base_columns([*names, "Base.Acc.X", "Base.Acc.Y", "Base.Acc.Z", "imu/gyro/x", "imu/gyro/y", "imu/gyro/z"])
    assert found["orientation"] == ("base_qx", "base_qy", "base_qz", "base_qw")
    assert found["acceleration"] == ("Base.Acc.X", "Base.Acc.Y", "Base.Acc.Z")
    assert found["angular_acceleration"] == ("base_alx", "base_aly", "base_alz")
    assert found["imu_angular_velocity"] == ("imu/gyro/x", "imu/gyro/y", "imu/gyro/z")


def test_axes_of_an_imu_may_be_numbered_with_w_first() -> None:
    named = [
        f"imu_state.{what}.{k}" for what, n in (("quaternion", 4), ("gyroscope", 3), ("accelerometer", 3)) for k in range(n)
    ]
    found = base_columns(named)
    assert found["orientation"] == tuple(f"imu_state.quaternion.{k}" for k in (1, 2, 3, 0))
    assert found["imu_angular_velocity"] == tuple(f"imu_state.gyroscope.{k}" for k in range(3))
    assert found["imu_acceleration"] == tuple(f"imu_state.accelerometer.{k}" for k in range(3))


def test_a_base_moves_where_torque_and_its_motion_are_logged() -> None:
    imu = [f"imu_a{k}" for k in "xyz"]
    assert moves_base(["t", "q1", "tau1", *imu])
    assert not moves_base(["t", "q1", *imu])
    assert not moves_base(["t", "q1", "tau1", "base_x", "base_y", "base_z"])


@pytest.mark.parametrize("form", ["contact_{}", "{}_contact", "foot_contact_{}", "contact_state_{}"])
def test_feet_are_named_by_their_frame_or_its_beginning(form: str) -> None:
    short, whole = [form.format(name[:2]) for name in FEET], [form.format(name) for name in FEET]
    assert contact_columns("log", ["t", *short], FEET) == short
    assert contact_columns("log", [*whole, *short], FEET) == whole
    assert contact_columns("log", [f"contact_{k}" for k in range(4)], FEET) == [f"contact_{k}" for k in range(4)]


def test_a_beginning_that_two_feet_share_names_none() -> None:
    with pytest.raises(InputError, match="no column says when foot 'FL_FOOT' touches"):
        contact_columns("log", ["contact_F", "contact_HL", "contact_HR"], FEET)


def test_forces_are_three_columns_or_six() -> None:
    three = [f"sole_f{k}" for k in "xyz"]
    six = [*three, *(f"sole_m{k}" for k in "xyz")]
    assert force_columns("log", three, "sole") == three
    assert force_columns("log", six, "sole") == six
    with pytest.raises(InputError, match="no force is measured at frame 'toe'"):
        force_columns("log", six, "toe")


def test_flags_and_forces_both_say_contact() -> None:
    assert touching(np.array([0.0, 1.0, 1.0]), 1.0).tolist() == [0.0, 1.0, 1.0]
    assert touching(np.array([2.0, 80.0, 100.0]), 100.0).tolist() == [0.0, 1.0, 1.0]
