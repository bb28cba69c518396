from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cli_program import dynid
from dynid.io.demo import demo_recording
from dynid.io.logs.read import read_recording, write_recording
from dynid.io.robots.read import read_robot
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Offset, Viscous
from fleet_simulation import simulated_fleet
from problems import planar_2r
from small_fleet import Shop, make_shop, small_plan


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("shop"))


def test_add_list_identify(shop: Shop, tmp_path: Path) -> None:
    done = dynid(
        "store", "add", shop.urdf, shop.logs[2], "--to", shop.store.folder, "--robot-id", "B", "--day", "2026-03-04",
        "--condition", "tool=C", "--condition", "temperature=21", "--stream", "on", "--engine", "threads:2", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["condition"] == {"temperature": "21", "tool": "C"}
    assert found["added"] == [str(shop.logs[2])]
    again = dynid("store", "add", shop.urdf, shop.logs[2], "--to", shop.store.folder, "--robot-id", "B")
    assert again.returncode == 0
    assert (
        "log2.parquet is in the store already (robot B, 2026-03-04, temperature=21, tool=C) and was skipped" in again.stdout
    )
    listed = json.loads(dynid("store", "list", shop.store.folder, "--json").stdout)
    assert [(robot["id"], robot["rows"]) for robot in listed["robots"]] == [("A", 2), ("B", 1)]
    assert "tool=C" in dynid("store", "list", shop.store.folder).stdout
    done = dynid("store", "identify", shop.store.folder, "--where", "robot=A", "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    (robot,) = json.loads(done.stdout)["robots"]
    assert robot["id"] == "A"
    assert robot["alarm"] is None
    assert robot["estimate"]["feasible"]
    assert robot["estimate"]["intervals"][0]["lower"] < robot["estimate"]["intervals"][0]["upper"]
    assert (tmp_path / "run" / "run.json").is_file()
    shown = dynid("store", "identify", shop.store.folder, "--robot", "A", "--method", "wls")
    assert "95 % interval" in shown.stdout
    assert "too few days" in shown.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--cutoff-hz", "8"), "was made with --cutoff-hz 15.0, 8.0 was given"),
        (("--condition", "tool"), "--condition is 'tool', expected name=value"),
        (("--condition", "day=1"), "'day' is given by --day"),
        (("--engine", "threads:0x"), "'0x' workers, expected a number"),
        (("--day", "1.3.2026"), "--day is '1.3.2026', expected a day such as 2026-03-01"),
    ],
)
def test_bad_input_is_one_sentence(shop: Shop, words: tuple[str, ...], message: str) -> None:
    before = sorted(shop.store.folder.rglob("*"))
    done = dynid("store", "add", shop.urdf, shop.logs[0], "--to", shop.store.folder, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(shop.store.folder.rglob("*")) == before


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -9.81), (0.0, -9.81, 0.0)], ids=["vertical", "horizontal"])
def test_two_joints_with_shapes(gravity: tuple[float, float, float], tmp_path: Path) -> None:
    """Links are kept in their boxes by name; on a horizontal arm the days of a robot share no value at all."""
    robot = planar_2r().with_gravity(gravity).with_effects([Viscous(), Coulomb(), Offset()])
    urdf, store = tmp_path / "arm.urdf", tmp_path / "store"
    write_urdf(robot, urdf)
    box = '<collision><origin xyz="0.4 0 0"/><geometry><box size="1 0.2 0.2"/></geometry></collision>'
    urdf.write_text(urdf.read_text().replace("</inertial>", f"</inertial>{box}"))
    options = ("--gravity", ",".join(map(str, gravity)), "--cutoff-hz", 15, "--friction", "linear")
    for day in (1, 2, 3):
        log = tmp_path / f"log{day}.parquet"
        write_recording(demo_recording(robot, seconds=6.0, torque_noise=0.01, seed=day), log)
        named = ("--robot-id", "R17", "--day", f"2026-03-0{day}", "--condition", "tool=B", "--json")
        done = dynid("store", "add", urdf, log, "--to", store, *named, *(options if day == 1 else ()))
        assert done.returncode == 0, done.stderr
    done = dynid("store", "identify", store, "--where", "robot=R17 and day>=2026-03-01 and tool=B", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["robots"]
    assert found["estimate"]["relative_error"] < 0.05
    assert found["estimate"]["feasible"]
    done = dynid("fleet", store, "-o", tmp_path / "fleet.html", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["id"] for one in json.loads(done.stdout)["robots"]] == ["R17"]


def test_fleet_exits_with_1_where_a_change_is_too_large(shop: Shop, tmp_path: Path) -> None:
    run = shop.store.run
    for entry in simulated_fleet(run.robot, shop.store.base, small_plan(), seed=1):
        shop.store.add(entry)
    page = tmp_path / "fleet.html"
    done = dynid("fleet", shop.store.folder, "--where", "robot!=A and robot!=B", "-o", page, "--max-error", "0", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert {alarm["robot"] for alarm in found["alarms"]} == {"R003", "R006"}
    assert {robot["id"] for robot in found["robots"] if robot["alarm"]} == {"R003", "R006"}
    assert "more than the 0.00 % allowed" in done.stderr
    assert page.is_file()
    calm = dynid("fleet", shop.store.folder, "--robot", "R001", "--robot", "R002", "-o", page, "--max-error", "0")
    assert calm.returncode == 0, calm.stdout
    assert "robots: no change" in calm.stdout
    assert "in at most 1.0 % of fleets" in calm.stdout
    grown = ("fleet", shop.store.folder, "--where", "robot=R003", "--where", "robot!=A and robot!=B", "-o", page)
    assert dynid(*grown, "--max-change", "0.2").returncode == 1
    assert dynid(*grown, "--max-change", "0.9").returncode == 0
    judged = json.loads(dynid(*grown, "--json").stdout)["robots"]
    again = json.loads(dynid("store", "identify", *grown[1:-2], "--method", "wls", "--json").stdout)["robots"]
    assert [one["changes"] for one in again] == [one["changes"] for one in judged]  # one question, one answer
    shown = dynid(*grown).stdout.splitlines()
    assert shown[0].startswith("2 of 8 robots changed")
    assert len(shown) <= 25
    assert max(map(len, shown)) <= 100
    few = ("fleet", shop.store.folder, "--where", "robot=A", "-o", page)
    assert dynid(*few).stdout.startswith("not judged: no robot has 5 days")
    refused = dynid(*few, "--max-change", "0.2")
    assert refused.returncode == 2
    assert "--max-change 0.2 cannot be judged: no robot has 5 days" in refused.stderr
    wrong = dynid("fleet", shop.store.folder, "--false-alarms", "2", "-o", page)
    assert wrong.returncode == 2
    assert "--false-alarms is 2, expected a probability" in wrong.stderr
    assert "is no store" in dynid("fleet", tmp_path, "-o", page).stderr
    spread = dynid(
        "fleet", shop.store.folder, "--where", "robot!=A and robot!=B", "-o", page, "--engine", "threads:2", "--json"
    )
    assert spread.returncode == 0, spread.stderr
    other = json.loads(spread.stdout)
    assert other["alarms"] == found["alarms"]
    assert other["robots"] == found["robots"]


def test_robot_and_day_from_the_names_of_logs_and_removed_again(shop: Shop, tmp_path: Path) -> None:
    store, logs = tmp_path / "store", tmp_path / "logs"
    logs.mkdir()
    for name, log in zip(
        ("R1_2026-03-02_B.parquet", "R1_20260303_B.parquet", "R2_2026-03-02_C.parquet"), shop.logs, strict=True
    ):
        (logs / name).write_bytes(log.read_bytes())
    words = ("store", "add", shop.urdf, logs, "--to", store, "--pattern", "{robot}_{day}_{tool}.parquet")
    flags = ("--cutoff-hz", 15, "--friction", "linear")
    done = dynid(*words, *flags, "--json")
    assert done.returncode == 0, done.stderr
    added = [(one["robot"], one["day"], one["condition"]["tool"]) for one in json.loads(done.stdout)["additions"]]
    assert sorted(added) == [("R1", "2026-03-02", "B"), ("R1", "2026-03-03", "B"), ("R2", "2026-03-02", "C")]
    gone = dynid("store", "remove", store, "--where", "robot=R1 and day=2026-03-03")
    assert gone.stdout == "removed: robot R1, 2026-03-03, tool=B\n"
    listed = json.loads(dynid("store", "list", store, "--json").stdout)["robots"]
    assert [(one["id"], one["rows"]) for one in listed] == [("R1", 1), ("R2", 1)]
    again = json.loads(dynid(*words, "--json").stdout)
    assert sum(len(one["added"]) for one in again["additions"]) == 1
    for bad, message in (
        ("{robot}.parquet", "expected {day} once"),
        ("{robot}-{day}.parquet", "does not fit --pattern"),
    ):
        refused = dynid("store", "add", shop.urdf, logs, "--to", store, "--pattern", bad)
        assert refused.returncode == 2
        assert message in refused.stderr
    assert dynid("store", "remove", store, "--where", "robot=R9").returncode == 2


def test_many_additions_are_told_on_one_screen(shop: Shop, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for k in range(5):
        name = f"R{k % 2}_2026-03-{k + 1:02d}{shop.logs[0].suffix}"
        (logs / name).write_bytes(shop.logs[k % len(shop.logs)].read_bytes())
    pattern = "{robot}_{day}" + shop.logs[0].suffix
    done = dynid("store", "add", shop.urdf, logs, "--to", tmp_path / "store", "--pattern", pattern, "-q", "--cutoff-hz", 15)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("3 logs of 2 robots added to")  # the other two have the content of the first
    assert "2 skipped that were there already" in " ".join(done.stdout.split())
    assert len(lines) <= 25
    assert any(line.split() == ["R0", "2", "3", "2026-03-01", "2026-03-05"] for line in lines)


def test_a_log_in_degrees_is_added_with_a_warning(shop: Shop, tmp_path: Path) -> None:
    """A store keeps what it was given for years: a unit that was misread must be told at once."""
    robot = read_robot(shop.urdf)
    log = read_recording(shop.logs[2], robot)
    assert log.velocity is not None
    wrong = log.with_(position=np.rad2deg(log.position), velocity=np.rad2deg(log.velocity))
    store = tmp_path / "store"
    good = dynid("store", "add", shop.urdf, shop.logs[0], "--to", store, "--cutoff-hz", 15, "--friction", "linear", "--json")
    assert json.loads(good.stdout)["warnings"] == []
    same = dynid("store", "add", shop.urdf, shop.logs[1], "--to", store, "--json")
    assert json.loads(same.stdout)["warnings"] == []
    done = dynid("store", "add", shop.urdf, write_recording(wrong, tmp_path / "deg.csv"), "--to", store, "--quiet")
    assert done.returncode == 0
    assert "added: deg.csv" in done.stdout
    assert "warning: deg.csv: position of joint" in done.stderr
    assert "likely in degrees" in done.stderr
