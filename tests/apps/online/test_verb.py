"""``dynid watch`` as it is typed: lines in, JSON lines out; killed and resumed; a load; an MCAP of what it found."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli_program import Done, dynid
from dynid.io.logs.read import write_recording
from dynid.io.robots.read import read_robot
from dynid.io.robots.urdf_write import write_urdf
from online_streams import Stream, stream


class _Input:
    """Standard input of this process, for a program that reads its file descriptor."""

    def __init__(self, path: Path) -> None:
        self.buffer = path.open("rb")


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Stream]:
    folder = tmp_path_factory.mktemp("watch")
    given = stream(6.0)
    write_urdf(given.robot, folder / "arm.urdf")
    (folder / "log.csv").write_text("\n".join(given.csv_lines()) + "\n")
    return folder, given


def watch(monkeypatch: pytest.MonkeyPatch, log: Path, *arguments: object) -> Done:
    given = _Input(log)
    monkeypatch.setattr(sys, "stdin", given)
    try:
        return dynid("watch", *arguments)
    finally:
        given.buffer.close()


def test_lines_of_json(arm: tuple[Path, Stream], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, given = arm
    done = watch(monkeypatch, folder / "log.csv", folder / "arm.urdf", "--json", "--every", "2")
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [round(one["t"], 3) for one in reports] == [2.0, 4.0, 5.995]
    for one in reports:
        assert {"t", "values", "sigma", "flags", "residual", "alarm"} <= set(one)
    assert reports[-1]["rows"] == len(given.recording.time)
    assert reports[-1]["values"]["fv1"] == pytest.approx(given.robot.parameters["fv1"], rel=0.05)


def test_calm_text(arm: tuple[Path, Stream], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, given = arm
    done = watch(monkeypatch, folder / "log.csv", folder / "arm.urdf", "--every", "3")
    assert done.returncode == 0, done.stderr
    assert "identified" in done.stdout
    assert f"{len(given.recording.time)} rows read, 0 repeated and 0 late left out, 0 gaps" in done.stdout


def test_ros_topic_echo(arm: tuple[Path, Stream], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder, given = arm
    rec, names = given.recording, given.robot.joint_names
    lines = ["WARNING: topic [/joint_states] does not appear to be published yet"]
    for t, q, tau in zip(rec.time, rec.position, rec.torque, strict=True):
        sec, nanosec = 1_700_000_000 + int(t), round(1e9 * (t - int(t)))
        lines.append(",".join(map(str, [sec, nanosec, "", *names, *q.tolist(), "", *tau.tolist()])))
    (tmp_path / "echo.csv").write_text("\n".join(lines) + "\n")
    done = watch(monkeypatch, tmp_path / "echo.csv", folder / "arm.urdf", "--json", "--every", "100")
    assert done.returncode == 0, done.stderr
    plain = watch(monkeypatch, folder / "log.csv", folder / "arm.urdf", "--json", "--every", "100")
    found, expected = (json.loads(one.stdout.splitlines()[-1]) for one in (done, plain))
    assert found["malformed"] == 1
    assert found["t"] == pytest.approx(1_700_000_000 + rec.time[-1], abs=1e-5)
    for name, value in expected["values"].items():
        assert found["values"][name] == pytest.approx(value, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "udp://1"], "expected stdin, tcp://127.0.0.1:PORT or mcap:FILE"),
        (["--source", "tcp://0.0.0.0:0"], "--allow-remote"),
        (["--page", "0.0.0.0:0"], "--allow-remote"),
        (["--follow"], "--follow belongs to --source mcap:FILE"),
        (["--forget", "5", "--last", "5"], "both given"),
        (["--payload"], "--against RUN"),
        (["--rows", "energy"], "expected torque or polynomial"),
        (["--resume"], "--checkpoint FILE"),
        (["--checkpoint", "no/such/folder/c.npz"], "there is no folder"),
        (["--source", "mcap:absent.mcap"], "there is no file"),
        (["--cutoff-hz", "900"], "BandLimit"),
    ],
)
def test_refusals(arm: tuple[Path, Stream], monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str) -> None:
    folder, _ = arm
    done = watch(monkeypatch, folder / "log.csv", folder / "arm.urdf", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_recorded_as_mcap(arm: tuple[Path, Stream], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reader = pytest.importorskip("mcap.reader")
    folder, _ = arm
    out = tmp_path / "live.mcap"
    done = watch(monkeypatch, folder / "log.csv", folder / "arm.urdf", "--json", "--every", "2", "--record", out)
    assert done.returncode == 0, done.stderr
    with out.open("rb") as file:
        messages = list(reader.make_reader(file).iter_messages())
    assert [json.loads(message.data) for _, _, message in messages] == [
        json.loads(line) for line in done.stdout.splitlines()
    ]
    schema, channel, message = messages[0]
    assert (schema.encoding, channel.topic, channel.message_encoding) == ("jsonschema", "/dynid/estimate", "json")
    assert message.log_time == 2_000_000_000


@pytest.mark.slow
def test_load_against_a_run(arm: tuple[Path, Stream], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder, given = arm
    log = write_recording(stream(20.0, seed=3).recording, tmp_path / "empty.csv")
    options = ["--method", "wls", "--friction", "linear", "--cutoff-hz", "8", "--velocity", "position"]
    assert dynid("identify", folder / "arm.urdf", log, "-o", tmp_path / "run", *options, "--json").returncode == 0
    arm_of = read_robot(folder / "arm.urdf", "viscous,coulomb,offset,armature")
    loaded = given.robot.with_parameters({"m3": given.robot.parameters["m3"] + 2.0})
    lines = stream(12.0, seed=4, robot=loaded).csv_lines()
    (tmp_path / "loaded.csv").write_text("\n".join(lines) + "\n")
    done = watch(
        monkeypatch, tmp_path / "loaded.csv", folder / "arm.urdf", "--against", tmp_path / "run", "--payload", "--json"
    )
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["values"]["m1"] == pytest.approx(2.0, abs=4.0 * last["sigma"]["m1"] + 0.05)
    assert arm_of.joint_names == given.robot.joint_names


def reports(text: str) -> dict[tuple[float, bool], dict[str, Any]]:
    """Whole lines by their time; the same time twice must say the same."""
    found: dict[tuple[float, bool], dict[str, Any]] = {}
    for line in text.splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue  # cut off by the kill
        for name in ("waiting", "stalls", "latency_ms", "cpu_ms"):
            del one[name]
        assert found.setdefault((one["t"], one["final"]), one) == one
    return found


@pytest.mark.slow
def test_killed_at_random_and_resumed_to_the_same_digits(arm: tuple[Path, Stream], tmp_path: Path) -> None:
    folder, _ = arm
    log, checkpoint = tmp_path / "log.csv", tmp_path / "watch.npz"
    log.write_text("\n".join(stream(120.0).csv_lines()) + "\n")
    command = [sys.executable, "-m", "dynid", "watch", str(folder / "arm.urdf"), "--json", "--every", "2", "--learn", "10"]
    with log.open("rb") as file:
        expected = reports(subprocess.run(command, stdin=file, capture_output=True, text=True, check=True).stdout)
    command += ["--checkpoint", str(checkpoint), "--checkpoint-every", "0.02"]
    dice, text, kills, code = random.Random(0), "", 0, -9
    while code != 0:
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        with log.open("rb") as file:
            resume = ["--resume"] if before else []
            process = subprocess.Popen(command + resume, stdin=file, stdout=subprocess.PIPE, text=True)
            while kills < 5 and process.poll() is None:
                if checkpoint.exists() and checkpoint.stat().st_mtime_ns != before:
                    time.sleep(dice.uniform(0.0, 0.1))
                    process.kill()
                    kills += 1
                    break
                time.sleep(0.002)
            text += process.communicate()[0] + "\n"
            code = process.returncode
        assert code in (0, -9)
    assert kills > 0
    assert reports(text) == expected


def test_help_names_the_sources() -> None:
    done = dynid("watch", "--help-all")
    assert done.returncode == 0
    for flag in ("--source", "--every", "--forget", "--against", "--payload", "--page", "--record", "--resume"):
        assert flag in done.stdout
