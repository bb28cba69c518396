"""The README's Python example and commands, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import Bench

README = Path(__file__).resolve().parent.parent / "README.md"


def test_python_example_runs(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)
    (tmp_path / "arm.urdf").write_bytes(bench.urdf.read_bytes())
    (tmp_path / "run.parquet").write_bytes(bench.log.read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README", "exec"), {})
    assert (tmp_path / "arm_identified.urdf").is_file()


def test_every_verb_and_option_shown_exists() -> None:
    from typer.main import get_command

    from dynid.cli.app import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    lines = re.findall(r"^dynid (.*)$", README.read_text(encoding="utf-8"), flags=re.M)
    assert len(lines) > 3
    for line in lines:
        words = line.split("#")[0].split()
        assert words[0] in commands
        options = {option for parameter in commands[words[0]].params for option in parameter.opts}
        for word in words[1:]:
            if word.startswith("-"):
                assert word in options, f"dynid {words[0]} has no option {word}"


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert len(targets) > 3
    for target in targets:
        assert (README.parent / target).exists(), target
