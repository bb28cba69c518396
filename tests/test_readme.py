"""The README's Python example and commands, as they stand there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import Bench
from cli_program import dynid

README = Path(__file__).resolve().parent.parent / "README.md"


def test_python_example_runs(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)
    (tmp_path / "arm.urdf").write_bytes(bench.urdf.read_bytes())
    (tmp_path / "run.parquet").write_bytes(bench.log.read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(example, "README", "exec"), names)
    assert (tmp_path / "arm_identified.urdf").is_file()
    # the call, its steps and the command give one answer
    run, result = names["run"], names["result"]
    np.testing.assert_allclose(result.standard.values, run.estimate.standard.values, rtol=1e-9, atol=1e-12)
    done = dynid("identify", "arm.urdf", "run.parquet", "-o", "by_command", "--export", "json", "--json")
    assert done.returncode == 0, done.stderr
    told, called = json.loads(done.stdout), run.summary()
    assert [one["name"] for one in told["base"]] == [one["name"] for one in called["base"]]
    np.testing.assert_array_equal([one["value"] for one in told["base"]], [one["value"] for one in called["base"]])
    assert told["relative_error"] == called["relative_error"]
    assert told["verdict"] == called["verdict"]
    by_hand = json.loads((tmp_path / "run" / "estimate.json").read_text())["parameters"]
    by_command = json.loads((tmp_path / "by_command" / "estimate.json").read_text())["parameters"]
    assert by_hand == by_command


def test_every_verb_and_option_shown_exists() -> None:
    from typer.main import get_command

    from cli_program import app

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
