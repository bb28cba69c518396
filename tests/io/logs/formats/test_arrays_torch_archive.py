"""PyTorch archives, read without running a pickle."""

from __future__ import annotations

import io
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.logs.read import read_recording
from dynid.signals.recording import Recording

JOINTS = ("hip", "thigh", "calf")
T = np.arange(50) / 50.0
Q = np.outer(np.sin(T), [1.0, 0.5, -0.3])
U = Q + 0.1


def motion(path: Path, **options: Any) -> Recording:
    found = read_recording(path, list(JOINTS), **options)
    assert isinstance(found, Recording)
    return found


class Storage:
    def __init__(self, kind: type, values: np.ndarray, key: str) -> None:
        self.kind, self.values, self.key = kind, values, key


class Tensor:
    def __init__(self, storage: Storage, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.parts = storage, shape, strides

    def __reduce__(self):  # type: ignore[no-untyped-def]
        storage, shape, strides = self.parts
        return sys.modules["torch._utils"]._rebuild_tensor_v2, (storage, 0, shape, strides, False, OrderedDict())


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """As much of PyTorch as its archives name; it is not installed."""
    package, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    package.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})  # type: ignore[attr-defined]

    def _rebuild_tensor_v2(*_: Any) -> None:
        raise AssertionError("a pickle was run")

    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", package)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    return package


def write_pt(path: Path, content: Any) -> Path:
    """An archive as torch.save writes it."""
    storages: dict[str, bytes] = {}

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            if not isinstance(value, Storage):
                return None
            storages[value.key] = value.values.astype("<f4").tobytes()
            return ("storage", value.kind, value.key, "cpu", value.values.size)

    text = io.BytesIO()
    Pickler(text, protocol=2).dump(content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chirp/data.pkl", text.getvalue())
        for key, raw in storages.items():
            archive.writestr(f"chirp/data/{key}", raw)
    return path


def test_pace_tensors_are_read_without_running_the_pickle(tmp_path: Path, torch: types.ModuleType) -> None:
    def tensor(values: np.ndarray, key: str, columns: bool = False) -> Tensor:
        stored = values.T if columns else values
        strides = (1, len(values)) if columns else tuple(s // 8 for s in values.astype(float).strides)
        return Tensor(Storage(torch.FloatStorage, np.ascontiguousarray(stored).ravel(), key), values.shape, strides)

    content = {"time": tensor(T, "0"), "dof_pos": tensor(Q, "1"), "des_dof_pos": tensor(U, "2", columns=True)}
    log = motion(write_pt(tmp_path / "chirp_data.pt", content))
    assert log.source.format == "pt"
    assert np.allclose(log.time, T, atol=1e-6)
    assert np.allclose(log.position, Q, atol=1e-6)
    assert log.reference_position is not None
    assert np.allclose(log.reference_position, U, atol=1e-6)


def test_a_pickle_that_would_run_code_is_refused_by_name(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            import os

            return os.mkdir, (str(tmp_path / "ran"),)

    with pytest.raises(InputError, match=r"mkdir.*not run"):
        motion(write_pt(tmp_path / "evil.pt", {"time": Evil()}))
    assert not (tmp_path / "ran").exists()


def test_a_tensor_beyond_its_storage_is_refused(tmp_path: Path, torch: types.ModuleType) -> None:
    long = Tensor(Storage(torch.FloatStorage, np.zeros(4), "0"), (100, 3), (3, 1))
    with pytest.raises(InputError, match="beyond its storage of 4"):
        motion(write_pt(tmp_path / "long.pt", {"dof_pos": long}))


@pytest.mark.parametrize("many", [False, True])
def test_tensors_that_ask_for_more_than_their_file_holds_are_refused(
    many: bool, tmp_path: Path, torch: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Storage(torch.FloatStorage, np.zeros(1000), "0")
    shape, strides = ((1000,), (1,)) if many else ((10**9, 3), (0, 0))
    content = {f"x{k}": Tensor(one, shape, strides) for k in range(400 if many else 1)}
    monkeypatch.setenv("DYNID_MEMORY_GB", "0.002")
    with pytest.raises(InputError, match=r"x\.pt needs .* GiB of memory, expected at most 0\.002 GiB"):
        motion(write_pt(tmp_path / "x.pt", content))


def test_kinds_shapes_and_names_of_tensors(tmp_path: Path, torch: types.ModuleType) -> None:
    def stored(values: np.ndarray, key: str) -> Storage:
        return Storage(torch.FloatStorage, values.ravel(), key)

    content = {
        "time": Tensor(stored(T, "0"), (50, 1), (1, 1)),
        "dof_pos": Tensor(stored(Q, "1"), (50, 3, 1), (3, 1, 1)),
        "des_dof_pos": Tensor(stored(np.append(U, [9.0, 9.0]), "2"), (50, 3), (3, 1)),  # a storage may be longer
        "scalar": Tensor(stored(np.ones(1), "3"), (), ()),
        "none": Tensor(stored(np.ones(1), "4"), (0, 3), (3, 1)),
        "short": Tensor(stored(np.ones(7), "5"), (7,), (1,)),
        "joint_names": [*JOINTS],
        "words": [1, "x"],
        "flags": [True, False, None],
    }
    log = motion(write_pt(tmp_path / "x.pt", content))
    assert log.joint_names == JOINTS
    assert np.allclose(log.position, Q, atol=1e-6)
    assert log.reference_position is not None
    assert np.allclose(log.reference_position, U, atol=1e-6)


@pytest.mark.parametrize(("shape", "strides"), [((4, 1), (1, 1)), ((2, 2), (3, 1)), ((3,), (-1,))])
def test_a_tensor_must_end_inside_its_storage(
    shape: tuple[int, ...], strides: tuple[int, ...], tmp_path: Path, torch: types.ModuleType
) -> None:
    """The first reaches the last number, the second is one beyond it, the third runs backwards."""
    content = {"time": Tensor(Storage(torch.FloatStorage, np.arange(4.0), "0"), shape, strides)}
    if shape == (4, 1):
        with pytest.raises(InputError, match="position"):  # read, but no log
            motion(write_pt(tmp_path / "x.pt", content))
    else:
        with pytest.raises(InputError, match="reaches beyond its storage of 4 numbers"):
            motion(write_pt(tmp_path / "x.pt", content))


def test_a_storage_that_is_cut_off_is_refused(tmp_path: Path, torch: types.ModuleType) -> None:
    whole = write_pt(tmp_path / "x.pt", {"time": Tensor(Storage(torch.FloatStorage, T, "0"), (50,), (1,))})
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(tmp_path / "cut.pt", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name)[:100] if name.endswith("data/0") else old.read(name))
    with pytest.raises(InputError, match="storage 0 has 100 bytes, expected 200"):
        motion(tmp_path / "cut.pt")


NESTED = b")" + b"".join(bytes([ord("q"), k, ord("h"), k]) + b"\x86" for k in range(60))
"""Sixty tuples, each of the one before twice: as many parts as no computer counts."""


@pytest.mark.parametrize(
    ("opcodes", "said"),
    [
        (b"\x80\x02" + NESTED + b"Q.", "cannot be read"),
        (
            b"\x80\x02(X\x07\x00\x00\x00storage" + b"(K\x01" + NESTED + b"tX\x01\x00\x00\x000K\x01K\x01tQ.",
            "a tuple for a name",
        ),
        (b"\x80\x02}" + NESTED + b"K\x01s.", "a tuple for a name"),
        (b"\x80\x04" + NESTED + b"\x8c\x01a\x93.", "a tuple for a name"),
        (b"\x80\x04" + NESTED + b")R.", "cannot be read"),
        (b"\x80\x04" + NESTED + b"(K\x00K\x00(" + b"K\x7f" * 50_000 + b"ttR.", "50000 dimensions, expected at most 8"),
        (b"\x80\x02" + b"(" * 200_000 + b"t" * 200_000 + b".", "holds a tuple"),
    ],
)
def test_a_pickle_that_would_take_for_ever_is_refused_at_once(opcodes: bytes, said: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as archive:
        archive.writestr("x/data.pkl", opcodes)
    with pytest.raises(InputError, match=said):
        motion(tmp_path / "x.pt")
