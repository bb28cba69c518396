"""Full disks, closed pipes, folders that cannot be written, names with markup, torque of zero: a sentence, never a traceback."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dynid
from cli_program import dynid as run_dynid
from dynid import files
from dynid.errors import InputError
from dynid.estimation.methods.registry import method_names
from dynid.pipeline.export import write_result
from fuzz.targets import URDF, _identified, text_log, writer

PROGRAM = [sys.executable, "-W", "error", "-m", "dynid"]
MARKED = {"shoulder": "shoulder[/]", "elbow": "[bold]elbow[left]", "upper": "upper[/red]", "lower": "[/]lower:smile:"}


def _motion(seconds: float = 5.0) -> dict[str, np.ndarray]:
    t = np.arange(round(200 * seconds)) * 0.005
    rate = np.array([2.1, 3.3])
    q = np.sin(np.outer(t, rate)) + 0.3 * np.sin(np.outer(t, 2.5 * rate))
    return {"t": t, "q": q, "dq": np.gradient(q, t, axis=0)}


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A robot whose joints and links have names with markup, logs of it, and a run."""
    folder = tmp_path_factory.mktemp("marked")
    text = URDF
    for name, other in MARKED.items():
        text = text.replace(f'"{name}"', f'"{other}"')
    robot = dynid.read_robot(writer("arm[bold].urdf", text)(folder))
    for name, seed in (("log[red].csv", 1), ("other[bold].csv", 2)):
        motion = _motion()
        q, v, t = motion["q"], motion["dq"], motion["t"]
        tau = dynid.inverse_dynamics(robot, q, v, np.gradient(v, t, axis=0))
        tau = tau + 0.01 * np.random.default_rng(seed).normal(size=q.shape)
        names = ("t", *(f"{k}_{one}" for k in ("position", "velocity", "effort") for one in robot.joint_names))
        (folder / name).write_text(text_log(motion | {"tau": tau}, names))
        commanded = {"t": t, "q": q, "dq": v, "command": q + tau / 50.0}
        (folder / "commanded[i].csv").write_text(
            text_log(commanded, (*names[:-2], *(f"q_cmd_{one}" for one in robot.joint_names)))
        )
        (folder / "motion[red].csv").write_text(text_log({k: motion[k] for k in ("t", "q", "dq")}, names[:-2]))
        assert run_dynid("store", "add", folder / "arm[bold].urdf", folder / name, "--to", folder / "store[i]", "--robot-id",
                         f"[bold]R{seed}[/]", "--day", "2026-03-02", "--cutoff-hz", "10").returncode == 0  # fmt: skip
    done = run_dynid(
        "identify",
        folder / "arm[bold].urdf",
        folder / "log[red].csv",
        "--method",
        "wls",
        "--cutoff-hz",
        "10",
        "--friction",
        "linear",
        "-o",
        folder / "run[i]",
    )
    assert done.returncode == 0, done.stderr
    return folder


VERBS = {
    "data": ("data", "log[red].csv", "--robot", "arm[bold].urdf"),
    "base": ("base", "arm[bold].urdf"),
    "check": ("check", "arm[bold].urdf"),
    "check a run": ("check", "run[i]"),
    "repair": ("repair", "arm[bold].urdf", "-o", "good[i].urdf"),
    "init": ("init", "arm[bold].urdf", "log[red].csv", "-o", "run[i].toml"),
    "excite": ("excite", "arm[bold].urdf", "--period", "2", "--harmonics", "2", "--seconds", "1", "-o", "motion[i].csv"),
    "validate": ("validate", "run[i]", "other[bold].csv"),
    "compare": ("compare", "arm[bold].urdf", "log[red].csv", "--methods", "ols,wls", "--cutoff-hz", "10"),
    "compare-runs": ("compare-runs", "run[i]", "run[i]"),
    "export": ("export", "run[i]", "--to", "urdf,mjcf,c,json", "-o", "models[i]", "--allow-inconsistent"),
    "report": ("report", "run[i]"),
    "payload": ("payload", "run[i]", "other[bold].csv", "--link", "[/]lower:smile:"),
    "simulate": ("simulate", "arm[bold].urdf", "motion[red].csv", "--rate", "200", "-o", "simulated[i].csv"),
    "gains": ("gains", "log[red].csv", "other[bold].csv", "--robot", "arm[bold].urdf", "--mass", "0.5"),
    "actuators": ("actuators", "arm[bold].urdf", "commanded[i].csv", "--kp", "50", "--kd", "0", "-o", "actuators[i]"),
    "watch": ("watch", "arm[bold].urdf"),
    "store add": ("store", "add", "arm[bold].urdf", "log[red].csv", "--to", "store[i]", "--robot-id", "[bold]R1[/]"),
    "store identify": ("store", "identify", "store[i]", "-o", "stored[i]"),
    "fleet": ("fleet", "store[i]", "-o", "fleet[i].html"),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_names_with_markup_are_printed_as_they_are(verb: str, marked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(marked)
    with (marked / "log[red].csv").open() as rows:
        monkeypatch.setattr(sys, "stdin", rows)  # what watch reads
        done = run_dynid(*VERBS[verb])
    said = done.stdout + done.stderr
    assert done.returncode in (0, 1), said
    assert "Traceback" not in said
    if verb in ("data", "check", "validate", "excite", "actuators"):
        assert any(name in said.replace("\n", "") for name in MARKED.values()), said
    if verb == "store identify":
        assert "[bold]R1[/]" in said


@pytest.mark.parametrize(
    "words",
    [("check", "[/].urdf"), ("identify", "a[/].urdf", "b[/].csv"), ("base", "--[/]", "x"), ("[/]",), ("data", "[bold]")],
)
def test_refusals_show_markup_as_it_is(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_dynid(*words)
    assert done.returncode == 2
    assert "[" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [("check", "two.urdf"), ("base", "two.urdf", "--json"), ("--help",)])
def test_a_full_disk_is_told_in_one_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    writer("two.urdf", URDF)(tmp_path)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*PROGRAM, *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


def test_a_reader_that_has_seen_enough_ends_the_program_quietly(tmp_path: Path) -> None:
    writer("two.urdf", URDF)(tmp_path)
    # the pipe is closed before the first line is written
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, "base", "two.urdf", "--json"],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_system_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system answers on a read-only one: nothing can be written, and nothing removed either."""
    arm, run = writer("two.urdf", URDF)(tmp_path), _identified()

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    for name in ("write_bytes", "unlink", "mkdir"):
        monkeypatch.setattr(Path, name, refuse)
    with pytest.raises(InputError, match=r"cannot write '.*out\.json': Read-only file system"):
        files.write_json(tmp_path / "out.json", {"a": 1})
    done = run_dynid("repair", arm, "-o", tmp_path / "good.urdf")
    assert done.returncode == 2
    assert "Read-only file system" in done.stderr
    assert "Traceback" not in done.stderr
    with pytest.raises(InputError, match="Read-only file system"):
        write_result(run, tmp_path / "run", formats=["json"])


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log in which no torque was measured."""
    folder = tmp_path_factory.mktemp("silent")
    writer("two.urdf", URDF)(folder)
    motion = _motion()
    (folder / "zero.csv").write_text(text_log(motion | {"tau": np.zeros_like(motion["q"])}))
    half = np.where(motion["t"][:, None] > 2.0, motion["q"], 0.0)
    (folder / "half.csv").write_text(text_log(motion | {"tau": half}))
    return folder


@pytest.mark.parametrize("method", method_names())
def test_torque_of_zero_is_refused_by_every_method(method: str, silent: Path) -> None:
    done = run_dynid("identify", silent / "two.urdf", silent / "zero.csv", "--method", method, "-o", silent / "run")
    assert done.returncode == 2
    assert "zero.csv: the torque of every joint is zero in all 1000 rows, expected measured torque" in done.stderr
    assert not (silent / "run").exists()


def test_torque_of_zero_is_refused_in_streams_and_in_one_part(silent: Path) -> None:
    robot, zero, half = silent / "two.urdf", silent / "zero.csv", silent / "half.csv"
    with pytest.raises(InputError, match=r"zero\.csv: the torque of every joint is zero in all 1000 rows"):
        dynid.identify(robot, zero, dynid.Settings(method="wls", stream="on"))
    with pytest.raises(
        InputError, match=r"the first part of .*half\.csv: the torque of every joint is zero in all \d+ rows"
    ):
        dynid.identify(robot, half, dynid.Settings(method="wls", split=0.35))
    done = run_dynid("compare", robot, zero)
    assert done.returncode == 2
    assert "the torque of every joint is zero" in done.stderr


def test_torque_of_zero_leaves_no_warning_of_a_library(silent: Path) -> None:
    """In a process of its own, where every warning is an error."""
    words = ["identify", "two.urdf", "zero.csv", "-o", "run"]
    done = subprocess.run([*PROGRAM, *words], cwd=silent, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
