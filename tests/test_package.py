from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dynid


def test_every_public_name_is_there() -> None:
    for name in dynid.__all__:
        assert getattr(dynid, name) is not None


def test_names_listed_once() -> None:
    assert len(dynid.__all__) == len(set(dynid.__all__))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = dynid.magic


def test_import_loads_nothing_heavy() -> None:
    code = (
        "import sys, dynid; print(*{'numpy', 'scipy', 'numba', 'pinocchio', 'mujoco', 'polars', 'pyarrow', 'plotly', 'clarabel'}"
        " & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""


def test_no_public_name_is_hidden_by_a_module() -> None:
    """Importing a module sets its name on the package, over a function of the same name."""
    modules = {path.stem for path in Path(dynid.__file__).parent.iterdir()}
    assert not modules & set(dynid.__all__)
