"""The screen of a run: verdict first, the worst joints, what is not known, the next command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import PLAIN, Bench
from cli_program import dynid


@pytest.fixture(scope="module")
def told(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], str]:
    folder = tmp_path_factory.mktemp("screen") / "run"
    done = dynid("identify", bench.urdf, bench.log, *PLAIN, "--split", "0.6", "-o", folder)
    assert done.returncode == 0, done.stderr
    long = dynid("identify", bench.urdf, bench.log, *PLAIN, "--split", "0.6", "-o", folder, "--table", "--verbose").stdout
    return folder, done.stdout.splitlines(), long


def test_it_is_one_screen_with_the_verdict_first(told: tuple[Path, list[str], str]) -> None:
    folder, lines, _ = told
    verdict = json.loads((folder / "run.json").read_text())["result"]["verdict"]
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith(f"verdict: {verdict['grade']}: ")
    assert lines[1].startswith("torque error: unseen ")
    assert lines[-1].startswith(("next: ", "    "))
    assert any(line == f"report: {folder / 'report.html'}" for line in lines)


def test_the_worst_joint_comes_first(told: tuple[Path, list[str], str]) -> None:
    folder, lines, _ = told
    joints = json.loads((folder / "run.json").read_text())["result"]["verdict"]["joints"]
    worst = sorted(joints, key=lambda one: -one["expected"])
    start = next(k for k, line in enumerate(lines) if line.startswith("joint "))
    shown = [line.split()[0] for line in lines[start + 1 : start + 1 + len(joints)]]
    assert shown == [one["name"] for one in worst][: len(shown)]


def test_everything_else_is_there_where_it_is_asked_for(told: tuple[Path, list[str], str]) -> None:
    folder, lines, long = told
    base = json.loads((folder / "run.json").read_text())["result"]["base"]
    assert not any(line.startswith("base parameter") for line in lines)
    assert "base parameter" in long
    assert base[-1]["expression"].split()[-1] in long
    assert "physically consistent: " in long
    assert long.count("verdict: ") == 1
    assert "more findings: --verbose" not in long
    assert max(map(len, long[long.index("filter: ") :].splitlines())) <= 100
    assert long.splitlines()[-2:] == lines[-2:]


def test_friction_of_a_joint_has_no_offset_in_it(told: tuple[Path, list[str], str]) -> None:
    folder, lines, _ = told
    from dynid.pipeline.folder import load_result

    run = load_result(folder, with_samples=True)
    speed = abs(run.samples[0].velocity).mean(axis=0)
    start = next(k for k, line in enumerate(lines) if line.startswith("joint "))
    rows = {line.split()[0]: line for line in lines[start + 1 : start + 5]}
    values = run.model.parameters
    for j, joint in enumerate(run.robot.driven_joints):
        expected = values[f"fv{j + 1}"] * speed[j] + values[f"fc{j + 1}"]
        shown = next((line for name, line in rows.items() if name == joint.name), None)
        assert shown is None or f"{expected:.3g} N m" in shown
