"""Recordings written to CSV, parquet and npz files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.files import write_atomically
from dynid.recording.motion import Recording
from dynid.recording.poses import StaticRecording
from dynid.recording.quantities import COLUMN_OF_BODY_MOTION, COLUMN_OF_QUANTITY
from dynid.recording.wrench import WrenchRecording


def write_recording(
    recording: Recording | StaticRecording | WrenchRecording,
    path: str | os.PathLike[str],
    *,
    by_name: bool = False,
) -> Path:
    """Write a recording as CSV, parquet or npz by the suffix of the path, completely or not at all.

    Columns are ``t, q1.., dq1.., ddq1.., tau1.., i1..``; those of a pose table ``q1.., M11, M21, M22, .., g1..``.

    Args:
        recording: a motion log, a table of poses or a sensor log.
        path: file to write.
        by_name: name columns by joint, ``q_<joint>``, instead of by number.

    Examples:
        >>> import dynid
        >>> path = dynid.write_recording(dynid.demo_recording(seconds=2.0), "log.csv")
        >>> dynid.read_recording(path, dynid.demo_robot()).n_samples
        200
    """
    target = Path(path)
    columns = _columns_of(recording, by_name)
    suffix = target.suffix.lower()
    if suffix not in (".csv", ".parquet", ".npz"):
        raise InputError(f"cannot write a recording to '{target}': expected the suffix .csv, .parquet or .npz")
    return write_atomically(target, lambda temporary: _write_columns(columns, temporary, suffix))


def _write_columns(columns: Mapping[str, NDArray[Any]], path: Path, suffix: str) -> None:
    if suffix == ".npz":
        np.savez_compressed(path, allow_pickle=False, **columns)
        return
    import pyarrow as pa

    table = pa.table({name: np.ascontiguousarray(values) for name, values in columns.items()})
    if suffix == ".csv":
        import pyarrow.csv as arrow_csv

        arrow_csv.write_csv(table, path, arrow_csv.WriteOptions(quoting_style="needed"))
    else:
        import pyarrow.parquet as arrow_parquet

        arrow_parquet.write_table(table, path, compression="zstd")


def _columns_of(recording: Recording | StaticRecording | WrenchRecording, by_name: bool) -> dict[str, NDArray[Any]]:
    labels = [f"_{name}" for name in recording.joint_names] if by_name else _numbers(recording.n_joints)
    columns: dict[str, NDArray[Any]] = {}
    if isinstance(recording, StaticRecording):
        columns |= _spread("q", recording.position, labels)
        if recording.inertia is not None:
            separator = "" if recording.n_joints < 10 else "_"
            rows, cols = np.tril_indices(recording.n_joints)
            for i, j in zip(rows, cols, strict=True):
                columns[f"M{i + 1}{separator}{j + 1}"] = recording.inertia[:, i, j]
        if recording.gravity is not None:
            columns |= _spread("g", recording.gravity, labels)
        return columns
    columns["t"] = recording.time
    if isinstance(recording, WrenchRecording):
        columns |= _spread("f", recording.force, "xyz") | _spread("m", recording.moment, "xyz")
        for name, column in COLUMN_OF_BODY_MOTION.items():
            if (values := getattr(recording, name)) is not None:
                columns |= _spread(column, values, "xyz")
    for name, column in COLUMN_OF_QUANTITY.items():
        if (values := getattr(recording, name, None)) is not None:
            columns |= _spread(column, values, labels)
    return columns


def _numbers(n: int) -> list[str]:
    return [str(k + 1) for k in range(n)]


def _spread(column: str, values: Array, labels: Sequence[str]) -> dict[str, NDArray[Any]]:
    return {f"{column}{label}": values[:, k] for k, label in enumerate(labels)}
