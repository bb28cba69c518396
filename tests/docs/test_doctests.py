"""Every example in a docstring runs, and every public name has one."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import dynid
from public_names import has_example, public_names, undocumented_arguments

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = public_names()


def modules_with_examples() -> list[str]:
    """Modules whose source holds a prompt; others are not imported."""
    found = [module.name for module in pkgutil.walk_packages(dynid.__path__, "dynid.")]
    return [name for name in found if name != "dynid.__main__" and ">>>" in _source(name)]


def _source(name: str) -> str:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text("utf-8")


def examples_in(module: ModuleType) -> list[doctest.DocTest]:
    return [found for found in doctest.DocTestFinder(exclude_empty=True).find(module) if found.examples]


@pytest.fixture(scope="module")
def identified_once() -> Callable[..., dynid.Run]:
    """``dynid.identify``, which many examples begin with: a run of the same files under the same settings is made once."""
    known: dict[object, dynid.Run] = {}
    identify = dynid.identify

    def once(robot: object, logs: object = (), settings: object = None, **others: object) -> dynid.Run:
        if others or not (isinstance(robot, str) and isinstance(logs, str)):
            return identify(robot, logs, settings, **others)  # type: ignore[arg-type]
        key = (Path(robot).read_bytes(), Path(logs).read_bytes(), repr(settings))
        if key not in known:
            known[key] = identify(robot, logs, settings)  # type: ignore[arg-type]
        return known[key]

    return once


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, identified_once: Callable[..., dynid.Run]
) -> None:
    monkeypatch.chdir(tmp_path)  # examples write their files where they run
    if name != "dynid.run.identify":
        monkeypatch.setattr(dynid, "identify", identified_once)
    examples = examples_in(importlib.import_module(name))
    assert examples, f"{name} has a prompt that is no example"
    for example in examples:
        printed: list[str] = []
        done = doctest.DocTestRunner().run(example, out=printed.append)
        assert done.failed == 0, "".join(printed)


def test_every_public_name_has_an_example() -> None:
    assert [path for path, value in NAMES.items() if not has_example(path, value)] == []


def test_every_argument_of_a_public_name_is_documented() -> None:
    missing = {path: undocumented_arguments(path, value) for path, value in NAMES.items()}
    assert {path: names for path, names in missing.items() if names} == {}


def test_reference_lists_every_public_name_once() -> None:
    text = (REPOSITORY / "docs" / "reference.md").read_text("utf-8")
    listed = [name for names in re.findall(r"<!-- names:(.*?)-->", text, flags=re.DOTALL) for name in names.split()]
    assert sorted(listed) == sorted(path.removeprefix("dynid.") for path in NAMES)


def test_families_hold_their_names_and_load_them_late() -> None:
    for family in dynid.FAMILIES:
        module = importlib.import_module(f"dynid.{family}")
        assert getattr(dynid, family) is module
        assert family in dir(dynid)
        assert module.__all__ == sorted(set(module.__all__))
        assert set(module.__all__) <= set(dir(module))
        for name in module.__all__:
            assert inspect.getdoc(getattr(module, name))
        with pytest.raises(AttributeError, match="no attribute 'magic'"):
            _ = module.magic


def test_examples_of_the_design_page_run() -> None:
    text = (REPOSITORY / "docs" / "design.md").read_text("utf-8")
    names: dict[str, object] = {}
    try:
        exec(compile("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)), "design.md", "exec"), names)
        assert "ks7" in names["robot"].parameters.names  # type: ignore[attr-defined]
        assert names["result"].method == "plain"  # type: ignore[attr-defined]
        assert "second" in dynid.rows.row_kinds()
    finally:
        dynid.effects.unregister("spring")
        dynid.methods.unregister_method("plain")
        dynid.unregister_format("spaces")
        dynid.unregister_section(names["operator_note"])
