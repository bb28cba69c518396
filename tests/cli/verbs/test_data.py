"""``dynid data`` on logs with a fault, and how options and refusals name the log they speak of."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from bench import Bench
from cli_program import app
from dynid.errors import InputError
from dynid.io.logs.read import read_recording, write_recording
from dynid.signals.recording import Recording

CSV = Callable[..., Path]


def data(log: Path, robot: Path, *more: str) -> Result:
    return CliRunner().invoke(app, ["data", str(log), "--robot", str(robot), *more])


@pytest.fixture(scope="module")
def recording(bench: Bench) -> Recording:
    read = read_recording(bench.log, bench.truth)
    assert isinstance(read, Recording)
    return read


@pytest.fixture
def csv(recording: Recording, tmp_path: Path) -> CSV:
    """A log with some of its quantities replaced, as CSV."""

    def write(name: str = "log.csv", **changes: object) -> Path:
        return write_recording(recording.with_(**changes), tmp_path / name)

    return write


def test_numbers_that_no_robot_has_are_refused_in_one_sentence(bench: Bench, recording: Recording, csv: CSV) -> None:
    log = csv(position=recording.position * 1e200)
    # A process of its own: what NumPy warns about would stand on stderr.
    command = [sys.executable, "-m", "dynid", "data", str(log), "--robot", str(bench.urdf)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(f"dynid: {log}: column 'q1' (position) holds ")
    assert "in row 1, which no robot shows" in sentence


def test_a_log_too_short_to_identify_from(bench: Bench, recording: Recording, tmp_path: Path) -> None:
    log = write_recording(recording.rows(0, 150), tmp_path / "short.csv")
    shown = data(log, bench.urdf)
    assert shown.exit_code == 0
    assert "error: log of 150 rows and 0.596 s is too short to identify from" in shown.stdout


def test_joints_that_the_log_lacks_can_be_locked_as_the_refusal_says(
    bench: Bench, recording: Recording, tmp_path: Path
) -> None:
    fewer = recording.joint_names[:-1]
    kept = {name: getattr(recording, name)[:, :-1] for name in recording.quantities}
    less = recording.with_(joint_names=fewer, **kept)
    log = write_recording(less, tmp_path / "fewer.csv")
    refused = data(log, bench.urdf)
    assert isinstance(refused.exception, InputError)
    assert "--lock" in str(refused.exception)
    shown = data(log, bench.urdf, "--lock", f"{recording.joint_names[-1]}=0")
    assert shown.exit_code == 0
    assert f"{len(fewer)} joints" in shown.output


def test_rows_left_out_are_told_once(bench: Bench, recording: Recording, tmp_path: Path) -> None:
    log = write_recording(recording, tmp_path / "nan.csv")
    lines = log.read_text().splitlines()
    for k in range(100, 111):
        time, _, rest = lines[k].split(",", 2)
        lines[k] = f"{time},nan,{rest}"
    log.write_text("\n".join(lines) + "\n")
    shown = data(log, bench.urdf).stdout
    assert shown.count("NaN") == 1
    assert "11 rows with NaN were left out (11 of 1501 rows of the file)" in shown
    result = json.loads(data(log, bench.urdf, "--json").stdout)
    assert "11 rows with NaN were left out" in result["notes"]
    assert [finding["code"] for finding in result["findings"]].count("dropped_rows") == 1


def test_a_file_that_breaks_off(bench: Bench, csv: CSV) -> None:
    log = csv()
    text = log.read_text()
    log.write_text(text[: len(text) // 2])
    shown = data(log, bench.urdf).stdout
    assert shown.count("warning: the last line of the file is cut off (") == 1
    assert "wrong number of fields" not in shown


def test_exchanged_columns(bench: Bench, recording: Recording, csv: CSV) -> None:
    order = [0, 3, 2, 1]
    log = csv(**{name: getattr(recording, name)[:, order] for name in recording.quantities})
    shown = data(log, bench.urdf).stdout
    assert "error: the columns of joints shoulder_pitch and elbow are likely exchanged" in shown


def test_arrays_of_different_lengths(bench: Bench, recording: Recording, tmp_path: Path) -> None:
    log = tmp_path / "ragged.npz"
    np.savez(log, t=recording.time, q=recording.position[:-5], tau=recording.torque)
    refused = data(log, bench.urdf).exception
    assert isinstance(refused, InputError)
    assert str(refused).endswith("ragged.npz: array 'q' has 1496 rows and 't' has 1501, expected as many")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "100"), "log1.parquet: no sample between 100 s and its end; the log runs from 0 s to 6 s"),
        (
            ("--split", "0.99", "--cutoff-hz", "5"),
            "the last 16 of its 1501 rows: 0.06 s and 16 rows are too short: nothing is left after dropping 0.3 s",
        ),
        (
            ("--to", "0.5", "--cutoff-hz", "5", "--velocity", "position"),
            "log1.parquet (1501 rows, 6 s), part that bands are tried on, the first 88 of its 1501",
        ),
    ],
)
def test_a_refusal_of_identify_names_the_log_and_its_part(
    bench: Bench, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    command = ["identify", str(bench.urdf), str(bench.log), *options, "-o", str(tmp_path / "run")]
    refused = CliRunner().invoke(app, command).exception
    assert isinstance(refused, InputError)
    assert message in str(refused)


def test_the_next_command_reads_the_log_as_this_one_did(bench: Bench, recording: Recording, csv: CSV) -> None:
    assert recording.torque is not None
    log = csv(torque=None, current=recording.torque / 10.0)
    gains = ",".join(["10.0"] * recording.n_joints)
    shown = data(log, bench.urdf, "--drive-gains", gains).stdout
    assert "next: dynid identify" in shown
    assert f"{bench.urdf} {log} --split 0.65 --drive-gains {gains}" in " ".join(shown.replace("\\\n", " ").split())
