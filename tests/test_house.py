"""The counts of ``benchmarks/house.py`` on a small package whose counts are known, and the sentence of the gate."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "house.py"
FRONT = '''"""A package."""
from late import Offered
FAMILIES = ("family",)
_OFFERED = Offered(__name__, {"pack.room.one": ("told", "untold", "Carrier")}, own=("__version__",))
'''
FAMILY = """from pack.room.one import told
__all__ = ["told", "other"]
def other(x: int) -> None: ...
"""
ONE = '''from dataclasses import dataclass
from typing import NamedTuple
from pack.room.two import helped

@dataclass(frozen=True)
class Carrier:
    """Text."""
    a: int
    """Text of a."""

class Pair(NamedTuple):
    a: int

def told(x: int) -> int:
    """Tell.

    Args:
        x: a number.

    Returns:
        Another.
    """
    return _once(x) + _twice(x) + _twice(helped(x))

def untold(x: int) -> int:
    return x

def _once(x: int) -> int:
    return x

def _twice(x: int) -> int:
    return x
'''


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(SCRIPT.parent)
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def place(tmp_path: Path) -> Path:
    texts = {
        "src/pack/__init__.py": FRONT,
        "src/pack/family.py": FAMILY,
        "src/pack/room/__init__.py": "",
        "src/pack/room/one.py": ONE,
        "src/pack/room/two.py": "def helped(x: int) -> int:\n    return x\n",
        "tests/room/test_one.py": "",
        "tests/test_two.py": "",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_counts_of_a_small_package(house: ModuleType, place: Path) -> None:
    found = house.measure(place / "src", place / "tests")
    expected = {
        "files": 5,
        "lines": sum(len(path.read_text().splitlines()) for path in place.rglob("src/**/*.py")),
        "statements": 24,
        "dataclasses": 2,
        "one_importer": 2,  # room.one by family, room.two by room.one
        "one_call_private": 1,
        "fan_out_over_15": 0,
        "public_names": 5,  # told, untold, Carrier, __version__, other
        "offered_twice": 1,
        "documented_arguments": round(1 / 3, 4),
        "documented_returns": round(2 / 3, 4),
        "documented": round(1 / 3, 4),
        "tested_modules": round(1 / 3, 4),
        "files_over_500": 0,
    }
    assert {key: found[key] for key in expected} == expected


def test_a_count_that_grew_is_named_with_the_remedy(house: ModuleType, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(house, "RECORD", tmp_path / "house.json")
    (tmp_path / "house.json").write_text(json.dumps({"files": 3, "documented": 0.5, "long_files": 1, "path_depth": 9}))
    house.check({"files": 3, "documented": 0.6, "long_files": 7, "path_depth": 20})
    with pytest.raises(SystemExit) as stop:
        house.check({"files": 4, "documented": 0.4, "long_files": 1})
    told = str(stop.value)
    assert "source files (files) grew from 3 to 4" in told
    assert "(documented) fell from 0.5 to 0.4" in told
    assert "python benchmarks/house.py --record" in told


def test_every_count_has_its_label_and_is_recorded(house: ModuleType, place: Path) -> None:
    found = house.measure(place / "src", place / "tests")
    assert set(found) <= set(house.LABELS)
    assert set(found) <= set(json.loads(house.RECORD.read_text()))
    assert {"path_modules", "path_functions", "path_depth"} <= set(json.loads(house.RECORD.read_text()))
