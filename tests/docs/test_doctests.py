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
from dynid.estimation.methods.registry import unregister_method
from dynid.io.logs.formats import unregister_format
from dynid.model.effects import unregister_effect
from dynid.pipeline.report import unregister_section
from dynid.pipeline.row_plan import row_kinds
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
def identified_once() -> Callable[..., dynid.IdentificationResult]:
    """``dynid.identify``, which many examples begin with: a run of the same files under the same settings is made once."""
    known: dict[object, dynid.IdentificationResult] = {}
    identify = dynid.identify

    def once(robot: object, logs: object = (), settings: object = None, **others: object) -> dynid.IdentificationResult:
        if others or not (isinstance(robot, str) and isinstance(logs, str)):
            return identify(robot, logs, settings, **others)  # type: ignore[arg-type]
        key = (Path(robot).read_bytes(), Path(logs).read_bytes(), repr(settings))
        if key not in known:
            known[key] = identify(robot, logs, settings)  # type: ignore[arg-type]
        return known[key]

    return once


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, identified_once: Callable[..., dynid.IdentificationResult]
) -> None:
    monkeypatch.chdir(tmp_path)  # examples write their files where they run
    if name != "dynid.pipeline.identify":
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
    missing = {path: undocumented_arguments(value) for path, value in NAMES.items()}
    assert {path: names for path, names in missing.items() if names} == {}


def test_reference_lists_every_public_name_once() -> None:
    text = (REPOSITORY / "docs" / "reference.md").read_text("utf-8")
    listed = [name for names in re.findall(r"<!-- names:(.*?)-->", text, flags=re.DOTALL) for name in names.split()]
    assert sorted(name for name in listed if "." not in name) == sorted(dynid.__all__)
    assert len(listed) == len(set(listed))


def test_every_public_function_says_what_it_takes_and_returns() -> None:
    functions = {path: value for path, value in NAMES.items() if inspect.isfunction(value)}
    for path, value in functions.items():
        text, signature = inspect.getdoc(value) or "", inspect.signature(value)
        assert "Args:" in text or not signature.parameters, path
        assert "Returns:" in text or signature.return_annotation in (None, "None"), path


def test_examples_of_the_design_page_run() -> None:
    text = (REPOSITORY / "docs" / "design.md").read_text("utf-8")
    names: dict[str, object] = {}
    try:
        exec(compile("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)), "design.md", "exec"), names)
        assert "ks7" in names["robot"].parameters.names  # type: ignore[attr-defined]
        assert names["result"].method == "plain"  # type: ignore[attr-defined]
        assert "second" in row_kinds()
    finally:
        unregister_effect("spring")
        unregister_method("plain")
        unregister_format("spaces")
        unregister_section(names["operator_note"])
