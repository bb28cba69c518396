"""``dynid guide`` from the command line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from bench import Bench
from cli_program import dynid


def test_without_a_user_all_are_listed() -> None:
    told = dynid("guide").stdout
    for user in ("ur", "franka", "ros2", "legged", "servo", "fleet", "sensor", "paper"):
        assert f"dynid guide {user} " in told


def test_commands_have_the_files_in_them(bench: Bench) -> None:
    done = dynid("guide", "ros2", bench.urdf, bench.log)
    assert done.returncode == 0, done.stderr
    told = done.stdout.replace(" \\\n   ", "")  # long commands are broken into lines
    assert f"dynid identify {bench.urdf} {bench.log} --split 0.65 -o run" in told
    record = json.loads(dynid("guide", "ros2", bench.urdf, bench.log, "--json").stdout)
    assert [step["command"] for step in record["steps"]] == [line for line in told.splitlines() if line.startswith("dynid ")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("kuka",), "unknown guide 'kuka'"),
        (("ur", "a.urdf"), "expected ROBOT and LOG"),
        (("ur", "--run"), "--run needs your files"),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], message: str) -> None:
    done = dynid("guide", *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_run_stops_at_the_first_command_that_fails(tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    ran = []

    def failing(words, **_):
        ran.append(words[3])
        return subprocess.CompletedProcess(words, 2 if words[3] == "identify" else 0)

    monkeypatch.setattr(subprocess, "run", failing)
    done = dynid("guide", "ros2", bench.urdf, bench.log, "--run")
    assert done.returncode == 2
    assert ran == ["data", "identify"]
    assert "ended with code 2" in done.stderr


def test_long_commands_are_broken_as_a_shell_takes_them(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with blanks" / ("long" * 12)
    folder.mkdir(parents=True)
    robot = folder / "robot.urdf"
    robot.write_bytes(bench.urdf.read_bytes())
    told = dynid("guide", "legged", robot, bench.log).stdout
    lines = [line for line in told.splitlines() if not line.startswith("#")]
    assert any(line.endswith(" \\") for line in lines)
    commands = "\n".join(lines).replace("\\\n", "").splitlines()
    assert shlex.split(commands[0]) == ["dynid", "check", str(robot)]


def test_lines_of_every_guide_fit_a_terminal() -> None:
    for user in ("legged", "servo", "fleet", "paper"):
        assert max(map(len, dynid("guide", user).stdout.splitlines())) <= 100
