from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dynid
from public_names import type_checking_block


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


def test_type_checkers_see_the_names_that_are_offered() -> None:
    """What ``if TYPE_CHECKING`` imports, from where, is what is loaded on demand."""
    front = Path(dynid.__file__).read_text(encoding="utf-8")
    assert type_checking_block(dynid._MODULES) in front, "run python tests/public_names.py"


def test_there_are_no_more_names_than_a_user_can_look_through() -> None:
    assert len(dynid.__all__) <= 120


def test_what_is_offered_stands_where_the_table_says() -> None:
    for name, module in dynid._MODULE_OF.items():
        assert getattr(dynid, name).__module__ == module, name


def test_dir_lists_what_is_offered() -> None:
    assert set(dynid.__all__) < set(dir(dynid))


SAMPLE = """
import dynid
from dynid import identify

run = identify("arm.urdf", "log.csv")
reveal_type(run)
reveal_type(dynid.read_robot)
reveal_type(dynid.LowPass(cutoff_hz=8.0))
dynid.identify("arm.urdf", dynid.demo_recording())
dynid.identify("arm.urdf", 3)
dynid.identifyyy("x")
dynid.LowPas(cutoff_hz=8.0)
dynid.Settings(methd="ols")
"""


@pytest.mark.slow
def test_mypy_sees_types_and_misspelt_names(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(SAMPLE)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path / "cache"), str(sample)],
        capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(dynid.__file__).parents[1])},
    )  # fmt: skip
    lines = [line.removeprefix("sample.py:") for line in done.stdout.splitlines() if line.startswith("sample.py:")]
    told = {int(line.partition(":")[0]): line for line in lines}
    assert done.returncode == 1, done.stderr
    assert 'Revealed type is "dynid.pipeline.result.IdentificationResult"' in told[6]
    assert "-> dynid.model.robot.Robot" in told[7]
    assert "dynid.signals.steps.filters.LowPass" in told[8]
    assert 9 not in told
    assert "incompatible type" in told[10]
    assert 'Module has no attribute "identifyyy"' in told[11]
    assert 'Module has no attribute "LowPas"' in told[12]
    assert 'Unexpected keyword argument "methd"' in told[13]
