"""Drive gains from the torque and the current that a controller wants, against the gains that made them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from dynid.apps.guide.logged_gains import logged_gains
from shared_data import shared

JOINTS = ("a", "b", "c")
GAINS = np.array([12.0, 9.8, 10.7])


def log_of(path: Path, stem: tuple[str, str], *, still: int | None = None) -> Path:
    rng = np.random.default_rng(0)
    t = np.arange(2000) / 125.0
    q = np.stack([np.sin((1.0 + 0.3 * k) * t) for k in range(3)], axis=1)
    v = np.gradient(q, t, axis=0)
    tau = 20.0 * np.cos(q) + 5.0 * np.gradient(v, t, axis=0)
    current = tau / GAINS + 0.4 * np.sign(v) + 0.2 * v + 0.02 * rng.normal(size=q.shape)
    if still is not None:
        tau[:, still], current[:, still] = 0.0, 0.0
    columns = {"timestamp": t}
    for k in range(3):
        columns |= {f"actual_q_{k}": q[:, k], f"actual_qd_{k}": v[:, k], f"actual_current_{k}": current[:, k] + 0.1}
        columns |= {f"{stem[0]}_{k}": tau[:, k], f"{stem[1]}_{k}": current[:, k]}
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def test_gains_that_made_the_log_are_found(tmp_path: Path) -> None:
    found = logged_gains(log_of(tmp_path / "log.parquet", ("target_moment", "target_current")), JOINTS)
    assert found is not None
    assert found.complete
    assert np.abs(found.values - GAINS).max() < 0.1
    assert (np.abs(found.values - GAINS) < 4.0 * found.sigma).all()


def test_a_joint_without_torque_has_no_gain(tmp_path: Path) -> None:
    found = logged_gains(log_of(tmp_path / "log.parquet", ("target_moment", "target_current"), still=0), JOINTS)
    assert found is not None
    assert np.isnan(found.values[0])
    assert not found.complete


def test_a_log_without_such_columns_has_none(tmp_path: Path) -> None:
    assert logged_gains(log_of(tmp_path / "log.parquet", ("wanted", "asked")), JOINTS) is None


def test_gains_of_a_real_arm_are_those_at_standstill() -> None:
    """Joints 2 to 4 of a UR10e: torque over current while it stands, 11.98, 9.84 and 10.76 N m/A."""
    folder = shared("ur10e_mamedov")
    names = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")
    found = logged_gains(folder / "traj" / "20_02_10_30sec_12harm.parquet", names)
    assert found is not None
    assert found.values[1:4] == pytest.approx([11.98, 9.84, 10.76], rel=0.01)
    assert found.values[4] == pytest.approx(10.76, rel=0.05)
