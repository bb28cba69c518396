"""Faults put into the core one at a time, and whether the tests notice: ``python tests/mutation/campaign.py --module inertia``.

Every mutant runs in a process of its own, forked from one that has run the tests already; there the code of the module's functions is
exchanged for that of the mutant, so that whoever has imported them has the fault. Nothing is written to the source. Compiled kernels are
instead put in place, as plain Python, before anything of the package is imported. Tests stop at the first failure. A mutant that every
test passes has survived; one that takes far longer than the unchanged module counts as noticed.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FunctionType, ModuleType

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
os.environ.setdefault("CI", "1")  # the same examples of hypothesis every time
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from mutation.operators import mutant_of, places_of  # noqa: E402 - the folder of tests is on the path only now

MODULES = {
    "inertia": (
        "dynid.model.inertia",
        ["tests/model/test_inertia.py"],
    ),
    "factor": ("dynid.regression.factor", ["tests/regression/test_factor.py"]),
    "base": ("dynid.regression.base", ["tests/regression/test_base.py", "tests/regression/test_base_squares.py"]),
    "consistent_set": (
        "dynid.estimation.consistency.consistent_set",
        ["tests/estimation/consistency/test_consistent_set.py"],
    ),
    # tests of whole logs take minutes where loops are not compiled
    "online_kernels": ("dynid.estimation.online_kernels", ["tests/estimation/test_online_kernels.py"]),
    # the seams: what files and other processes meet first
    "files": ("dynid.files", ["tests/test_files.py"]),
    "codec": ("dynid.codec", ["tests/test_codec.py"]),
    "folders": ("dynid.folders", ["tests/test_folders.py"]),
    "arrays": (
        "dynid.io.logs.formats.arrays",
        ["tests/io/logs/formats/test_arrays.py", "tests/io/logs/formats/test_arrays_torch_archive.py"],
    ),
    "manifest": ("dynid.pipeline.manifest", ["tests/pipeline/test_manifest.py"]),
    "run_file": ("dynid.pipeline.run_file", ["tests/pipeline/test_run_file.py"]),
    "entry": ("dynid.apps.fleet.entry", ["tests/apps/fleet/test_entry.py", "tests/apps/fleet/test_store.py"]),
    "checkpoint": ("dynid.apps.online.checkpoint", ["tests/apps/online/test_checkpoint.py"]),
    "sources": ("dynid.apps.online.sources", ["tests/apps/online/test_sources.py", "tests/apps/online/test_session.py"]),
}
"""Module and the tests that must notice, the quickest first."""
_LIBRARIES = ("numpy", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.signal", "numba", "pytest",
              "pinocchio", "mujoco", "clarabel")  # fmt: skip


class Replaced(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module in a text instead of in its file."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != self.name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=str(_file(name)))

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(_file(self.name))
        plain = self.source.replace("from dynid.compiled import njit", "njit = lambda **_: (lambda function: function)")
        exec(compile(plain, module.__file__, "exec"), module.__dict__)


def _file(name: str) -> Path:
    return ROOT / "src" / Path(*name.split(".")).with_suffix(".py")


def exchange(name: str, source: str) -> None:
    """Give the functions of a loaded module the code of another text of it, and its constants the values."""
    old = sys.modules[name]
    new = ModuleType(name)
    new.__file__ = old.__file__
    sys.modules[name] = new  # where dataclasses look their own module up
    exec(compile(source, str(old.__file__), "exec"), new.__dict__)
    sys.modules[name] = old
    for key, value in list(new.__dict__.items()):
        known = old.__dict__.get(key)
        if isinstance(value, type) and getattr(value, "__module__", "") == name:
            for member, given in list(vars(value).items()):
                _exchange_code(vars(known).get(member), given)
        elif not _exchange_code(known, value) and not key.startswith("__") and not isinstance(value, type | ModuleType):
            for module in [one for one in sys.modules.values() if getattr(one, "__dict__", {}).get(key) is known]:
                setattr(module, key, value)


def forget() -> None:
    """Empty every cache of the package, which would answer for the mutant with what the module found before."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "dynid":
            for value in list(vars(module).values()):
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()
    structures = sys.modules.get("dynid.dynamics.structure")
    if structures is not None:
        structures.forget_structures()


def _exchange_code(known: object, given: object) -> bool:
    """Whether both are functions in some dress, and now have the same code."""
    for dress in ("fget", "func", "__func__", "__wrapped__"):
        known, given = getattr(known, dress, known), getattr(given, dress, given)
    if not (isinstance(known, FunctionType) and isinstance(given, FunctionType)) or known.__module__ != given.__module__:
        return isinstance(given, FunctionType)
    if known.__code__.co_freevars == given.__code__.co_freevars:
        known.__code__, known.__defaults__, known.__kwdefaults__ = given.__code__, given.__defaults__, given.__kwdefaults__
    return True


def tried(tests: list[str]) -> int:
    """The code of the first run of tests that fails, 0 where all pass."""
    import pytest

    os.chdir(ROOT)
    for test in tests:  # one file after another: the next is only loaded for a mutant that passed so far
        if code := int(pytest.main(["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", test])):
            return code
    return 0


def silence() -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


def passes(name: str, source: str, tests: list[str], limit_s: float) -> tuple[bool | None, float]:
    """Whether the tests pass with this text of the module, None where they did not end; and the seconds it took."""
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        silence()
        code = 70
        try:
            if name in sys.modules:
                exchange(name, source)
                forget()
            else:
                sys.meta_path.insert(0, Replaced(name, source))
            code = tried(tests)
        finally:
            os._exit(code)
    while time.monotonic() - begun < limit_s:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0, time.monotonic() - begun
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None, time.monotonic() - begun


def run(short: str, out: Path, only: range | None, every: int) -> dict[str, object]:
    """All mutants of one module; a line each in ``out`` as they come, so that a run can be followed and taken up again."""
    name, tests = MODULES[short]
    tests = [test for test in tests if (ROOT / test).exists()]
    source = _file(name).read_text()
    lines = source.splitlines()
    if "njit" not in source:
        assert tried(tests) == 0, f"{short}: the tests fail without a fault"
    good, seconds = passes(name, source, tests, 900.0)
    assert good, f"{short}: the tests fail without a fault"
    sys.stdout.write(f"{short}: the tests take {seconds:.0f} s without a fault\n")
    places = [one for k, one in enumerate(places_of(source)) if k % every == 0 and (not only or one[0] in only)]
    survivors, late = [], 0
    log = (out / f"{short}.jsonl").open("a", buffering=1)
    for k, place in enumerate(places):
        mutant = mutant_of(source, place)
        survived, took = passes(name, mutant.source, tests, 4.0 * seconds + 20.0)
        late += survived is None
        record = {
            "line": mutant.line,
            "what": mutant.what,
            "code": lines[mutant.line - 1].strip(),
            "survived": bool(survived),
        }
        log.write(json.dumps(record | {"seconds": round(took, 1)}) + "\n")
        if survived:
            survivors.append(record)
        sys.stdout.write(f"{short} {k + 1}/{len(places)}: {len(survivors)} survived\n")
        sys.stdout.flush()
    return {"module": name, "mutants": len(places), "survived": survivors, "timed_out": late, "tests": tests}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", default=",".join(MODULES))
    parser.add_argument("--lines", default="", help="only these lines, such as 10:80")
    parser.add_argument("--every", type=int, default=1, help="one mutant of so many")
    parser.add_argument("--out", type=Path, default=Path("mutants"))
    parser.add_argument("--count", action="store_true", help="only count them")
    given = parser.parse_args()
    if unknown := [short for short in given.module.split(",") if short not in MODULES]:
        parser.error(
            f"argument --module: unknown module '{unknown[0]}'; expected some of {', '.join(MODULES)}, separated by commas"
        )
    only = range(*(int(part) for part in given.lines.split(":"))) if given.lines else None
    if given.count:
        for short in given.module.split(","):
            sys.stdout.write(f"{short}: {len(places_of(_file(MODULES[short][0]).read_text()))} mutants\n")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    for library in _LIBRARIES:
        importlib.import_module(library)
    for short in given.module.split(","):
        found = run(short, given.out.resolve(), only, given.every)
        (given.out / f"{short}.json").write_text(json.dumps(found, indent=1))
        sys.stdout.write(f"{short}: {found['mutants']} mutants, {len(found['survived'])} survived\n")  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
