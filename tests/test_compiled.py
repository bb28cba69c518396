"""Kernels that were compiled before are read without the compiler; what was not compiled is compiled as ever."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import pytest

from dynid import compiled as adapter

KERNELS = """
import numpy as np
from dynid.compiled import njit


@njit(cache=True, nogil=True)
def inner(x):
    return np.tanh(x) + x ** 0.3


@njit(cache=True, nogil=True)
def sums(x):
    made = np.empty(len(x))
    for i in range(len(x)):
        made[i] = inner(x[i])
    return made
"""

USE = """
import sys
import numpy as np
import kernels

x = np.linspace(0.1, 1.0, 7)
print(kernels.sums(x).sum().hex(), kernels.sums.stats.cache_hits[tuple(kernels.sums.signatures)[0]],
      "numba.np.arraymath" in sys.modules)
if "more" in sys.argv:
    from dynid.compiled import njit

    @njit(cache=False)
    def other(x):
        return 2.0 * x[1]

    print(float(other(x)).hex(), float(2.0 * x[1]).hex(), float(kernels.inner(0.5)).hex())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kernels")
    (place / "kernels.py").write_text(KERNELS)
    (place / "use.py").write_text(textwrap.dedent(USE))
    return place


def run(folder: Path, *arguments: str) -> list[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "use.py", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.skipif(not adapter._reads_without_compiler(), reason="a version of Numba whose cache is left as it is")
def test_kernels_of_the_disk_are_read_without_the_compiler_and_give_the_same_digits(folder: Path) -> None:
    compiled, hits, tables = run(folder)
    assert (hits, tables) == ("0", "True")
    loaded, hits, tables = run(folder)
    assert (hits, tables) == ("1", "False")
    assert loaded == compiled


def test_the_compiler_is_there_after_kernels_were_read(folder: Path) -> None:
    run(folder)
    more = run(folder, "more")
    assert more[3] == more[4]
    assert float.fromhex(more[5]) == pytest.approx(0.5**0.3 + 0.46211715726)


def test_other_versions_keep_their_own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    assert adapter._reads_without_compiler() == (tuple(numba.version_info.short) == (0, 68))
    monkeypatch.setattr(adapter, "_TRIED", ())
    kernel = adapter.njit(cache=True)(adapter._reads_without_compiler)
    assert type(kernel._cache).__name__ == "FunctionCache"


def test_a_kernel_counts_as_compiled_by_its_source_and_not_by_the_date_of_its_file(tmp_path: Path) -> None:
    source = tmp_path / "kernels.py"
    source.write_text(KERNELS.replace("cache=True, nogil=True", "cache=True"))
    (tmp_path / "use.py").write_text(
        "import sys, kernels\nfrom dynid.compiled import is_cached\nprint(is_cached(kernels.inner))\n"
        "if 'call' in sys.argv:\n    kernels.inner(0.5)\n    print(is_cached(kernels.inner))\n"
    )
    assert run(tmp_path) == ["False"]
    assert run(tmp_path, "call") == ["False", "True"]
    later = source.stat().st_mtime + 3600.0
    os.utime(source, (later, later))  # installed anew
    assert run(tmp_path) == ["True"]
    source.write_text(source.read_text().replace("0.3", "0.4"))
    assert run(tmp_path) == ["False"]


def test_a_kernel_is_compiled_again_where_a_helper_in_another_file_has_changed(tmp_path: Path) -> None:
    helpers = tmp_path / "helpers.py"
    helpers.write_text(
        "from dynid.compiled import njit_helper\n@njit_helper(cache=True)\ndef doubled(x):\n    return 2.0 * x\n"
    )
    (tmp_path / "kernels.py").write_text(
        "from dynid.compiled import njit\nfrom helpers import doubled\n@njit(cache=True)\ndef inner(x):\n    return doubled(x)\n"
    )
    (tmp_path / "use.py").write_text("import kernels\nprint(kernels.inner(0.5))\n")
    assert run(tmp_path) == ["1.0"]
    assert run(tmp_path) == ["1.0"]
    helpers.write_text(helpers.read_text().replace("2.0 * x", "20.0 * x"))
    assert run(tmp_path) == ["10.0"]
