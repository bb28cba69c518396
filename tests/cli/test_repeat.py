"""The command that a run prints to repeat it: typed as it stands it gives the same numbers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench import PLAIN, Bench
from cli_program import app
from dynid.dynamics.simulate import simulate
from dynid.errors import InputError
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.io.logs.read import write_recording
from dynid.pipeline.folder import load_result
from dynid.pipeline.report import report_page
from dynid.pipeline.run_file import read_run_file

QUICK = ("--cutoff-hz", "12", "--friction", "linear")
"""Most runs need no search for the cut-off and for friction to show that they can be repeated."""


def dynid(*words: object) -> Any:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def values(result: Any) -> dict[str, float]:
    return {one["name"]: one["value"] for one in result["base"]}


def repeated(result: Any, folder: Path) -> None:
    """Run the command that the run printed and compare its numbers with those of the run."""
    stored = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    program, *words = shlex.split(stored["command"])
    assert program == "dynid"
    again = dynid(*words, "-o", folder.parent / "again", "--export", "json", "--json")
    assert values(again) == pytest.approx(values(result), rel=1e-12)
    assert again["method"] == result["method"]
    assert again["friction"] == result["friction"]
    for name in ("relative_error", "relative_error_raw"):
        for part in ("identification", "validation"):  # without unseen data the second is None
            known = result[name][part]
            assert again[name][part] == (known if known is None else pytest.approx(known, rel=1e-12)), (name, part)
    assert again["rows"]["kind"] == result["rows"]["kind"]
    other = json.loads((folder.parent / "again" / "run.json").read_text(encoding="utf-8"))
    # a mesh may be written as run/../box.obj: from another folder it is another path of the same file
    assert {**other["settings"], "constraints": {}} == {**stored["settings"], "constraints": {}}
    assert list(other["settings"]["constraints"]) == list(stored["settings"]["constraints"])
    assert other["filter"] == stored["filter"]


@pytest.mark.parametrize(
    "flags",
    [
        (),
        (*QUICK, "--prior-strength", "2"),
        (*QUICK, "--rows", "energy", "--method", "ols"),
        ("--rows", "polynomial", "--window", "0.084", "--method", "ols", *QUICK),
        pytest.param(("--filter", "savgol:21,2", "--method", "wls", "--friction", "linear"), marks=pytest.mark.slow),
        (
            "--cutoff-hz",
            "12",
            "--gravity=0.1,0,-9.8",
            "--effects",
            "viscous,coulomb",
            "--dead-zone",
            "0.05",
            "--method",
            "ols",
        ),
        ("--cutoff-hz", "12", "--friction", "sigmoid", "--from", "0.5", "--to", "5.5", "--max-rows", "700"),
        pytest.param(
            (
                *QUICK,
                "--velocity",
                "position",
                "--filter-on",
                "signals",
                "--torque-cutoff-hz",
                "20",
                "--filter-order",
                "3",
                "--method",
                "recursive",
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda flags: " ".join(flags) or "default",
)
def test_flags(bench: Bench, tmp_path: Path, flags: tuple[str, ...]) -> None:
    folder = tmp_path / "run"
    repeated(dynid("identify", bench.urdf, bench.log, *flags, "-o", folder, "--export", "json", "--json"), folder)


def test_unseen_logs_and_the_report(bench: Bench, tmp_path: Path) -> None:
    """The report shows the very command that is stored with the run."""
    folder = tmp_path / "run"
    flags = ("--validate", bench.other_log, "--method", "ols", *QUICK)
    result = dynid("identify", bench.urdf, bench.log, *flags, "-o", folder, "--export", "json", "--json")
    assert result["relative_error"]["validation"] is not None
    repeated(result, folder)
    command = json.loads((folder / "run.json").read_text(encoding="utf-8"))["command"]
    for page in ((folder / "report.html").read_text(encoding="utf-8"), report_page(load_result(folder))):
        assert command in page


def test_kept_bodies_and_a_split(bench: Bench, tmp_path: Path) -> None:
    first = tmp_path / "first"
    dynid("identify", bench.urdf, bench.log, *QUICK, "-o", first, "--export", "json", "--json")
    folder = tmp_path / "run"
    flags = ("--fix-bodies", first, "--split", "0.65", "--friction", "sigmoid")
    result = dynid("identify", bench.urdf, bench.other_log, *flags, "-o", folder, "--export", "json", "--json")
    assert result["relative_error"]["validation"] is not None
    repeated(result, folder)


def test_constraints_of_a_run_file(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No flag gives a table, so the command names the run file in the folder; a mesh is found from there, too."""
    monkeypatch.chdir(tmp_path)
    corners = [f"v {x} {y} {z}" for x in (-0.3, 0.3) for y in (-0.3, 0.3) for z in (-0.3, 0.3)]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "box.obj").write_text("\n".join(corners) + "\n", encoding="utf-8")
    (tmp_path / "files" / "dynid.toml").write_text(
        f'robot = "{bench.urdf}"\nlogs = ["{bench.log}"]\n[model]\nfriction = "linear"\n[rows]\ncutoff_hz = 12.0\n'
        "[[constraints.mass]]\nlink = 2\nlower = 4.0\nupper = 4.5\n"
        '[[constraints.com_hull]]\nlink = 3\nmesh = "box.obj"\n',
        encoding="utf-8",
    )
    folder = Path("run")
    result = dynid("identify", "--config", "files/dynid.toml", "-o", folder, "--export", "json", "--json")
    assert 4.0 - 1e-6 <= load_result(folder).estimate.standard["m2"] <= 4.5 + 1e-6
    repeated(result, folder)


def test_locked_joints_and_named_columns(tmp_path: Path) -> None:
    """A log of three joints without names in its columns, of a robot with seven, one of them locked away from neutral."""
    from dynid.io.robots.urdf_write import write_urdf

    whole = demo_robot()
    write_urdf(whole, tmp_path / "arm.urdf")
    moving = list(whole.joint_names[:3])
    arm = whole.only(moving)
    motion = random_fourier(arm, 6.0, 4, seed=4).samples(200.0)
    log = write_recording(simulate(arm, motion, rate_hz=200.0, seed=4).recording, tmp_path / "log.csv")
    folder = tmp_path / "run"
    flags = ("--joints", ",".join(moving), "--lock", f"{whole.joint_names[5]}=0.3", "--method", "ols", *QUICK)
    result = dynid("identify", tmp_path / "arm.urdf", log, *flags, "-o", folder, "--export", "json", "--json")
    assert load_result(folder).robot.joint_names == tuple(moving)
    repeated(result, folder)


def test_a_file_of_intervals_is_found_from_the_run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "files").mkdir()
    place = tmp_path / "files" / "dynid.toml"
    for written, meant in (
        ('"knots.json"', str(tmp_path / "files" / "knots.json")),
        ('"auto"', "auto"),
        ('"0.2"', "0.2"),
        ("0.2", "0.2"),
    ):
        place.write_text(f"[rows]\nintervals = {written}\n", encoding="utf-8")
        assert read_run_file(place).settings({}).intervals == meant


def test_a_run_file_takes_another_log_for_its_robot(bench: Bench, tmp_path: Path) -> None:
    """The first word is a log then, not a robot, and nothing of it is a force/torque sensor's."""
    file = tmp_path / "dynid.toml"
    assert CliRunner().invoke(app, ["init", str(bench.urdf), str(bench.log), "-o", str(file)]).exit_code == 0
    words = ["identify", "--config", str(file), str(bench.other_log), "-o", str(tmp_path / "run"), *map(str, PLAIN)]
    done = CliRunner().invoke(app, [*words, "--method", "ols", "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    assert [Path(path).name for path, _ in load_result(tmp_path / "run").logs] == [bench.other_log.name]


@pytest.mark.parametrize("verb", ["identify", "compare"])
def test_robot_and_log_the_wrong_way_round_are_told(verb: str, bench: Bench) -> None:
    with pytest.raises(InputError, match="the robot comes first, then the logs"):
        CliRunner().invoke(app, [verb, str(bench.log), str(bench.urdf)], catch_exceptions=False)
