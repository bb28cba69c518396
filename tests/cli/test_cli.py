from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench import Bench
from dynid.cli import main


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def dynid(*arguments: object) -> Done:
    """The program with these arguments, in this process: starting Python anew for each would take most of the time."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    logger = logging.getLogger("dynid")
    kept, before = logger.handlers[:], sys.argv
    logger.handlers.clear()
    sys.argv = ["dynid", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
        logger.handlers[:] = kept
    return Done(int(code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def run_folder(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "run"
    done = dynid("identify", bench.urdf, bench.log, "--validate", bench.other_log, "-o", folder, "--method", "ols", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    for key in (
        "method", "n_samples", "n_base", "condition_number", "condition_number_scaled", "relative_error",
        "relative_error_raw", "rmse", "feasible", "filter", "friction", "seconds",
    ):  # fmt: skip
        assert key in result
    assert set(result["relative_error"]) == {"identification", "validation"}
    return folder


def test_help_of_every_verb_has_an_example() -> None:
    listed = dynid("--help")
    assert listed.returncode == 0
    for verb in ("demo", "identify", "validate", "report", "export", "base", "check", "simulate"):
        assert verb in listed.stdout
        shown = dynid(verb, "--help")
        assert shown.returncode == 0
        assert "Example: dynid" in " ".join(shown.stdout.split())


def test_the_installed_program_answers() -> None:
    done = subprocess.run([sys.executable, "-m", "dynid", "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("dynid ")


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['dynid', '--help']\n"
        "from dynid.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numba', 'pinocchio', 'mujoco', 'polars', 'scipy', 'plotly', 'clarabel', 'numpy'} & set(sys.modules)\n"
        "sys.stderr.write(','.join(sorted(heavy)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""


def test_run_folder_is_complete(run_folder: Path) -> None:
    assert {"run.json", "estimate.json", "estimate.npz", "robot.urdf", "report.html"} <= {
        p.name for p in run_folder.iterdir()
    }


def test_validate(bench: Bench, run_folder: Path) -> None:
    done = dynid("validate", run_folder, bench.other_log, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert len(result["logs"]) == 1
    assert result["logs"][0]["relative_error"] == result["relative_error"]
    assert dynid("validate", run_folder, bench.other_log, "--at-most", "0.5").returncode == 0
    assert dynid("validate", run_folder, bench.other_log, "--at-most", "1e-6").returncode == 1


def test_validating_on_the_identification_log_is_refused(bench: Bench, run_folder: Path) -> None:
    done = dynid("validate", run_folder, bench.log)
    assert done.returncode == 2
    assert "same content" in done.stderr


def test_export_reloads_with_the_same_torque(run_folder: Path, tmp_path: Path) -> None:
    done = dynid("export", run_folder, "--to", "urdf", "--allow-inconsistent", "-o", tmp_path / "models", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["parity"] < 1e-9
    assert Path(result["files"][0]).is_file()


def test_export_to_an_unknown_format_lists_the_known_ones(run_folder: Path) -> None:
    done = dynid("export", run_folder, "--to", "docx")
    assert done.returncode == 2
    assert "unknown export format 'docx'; available: urdf, mjcf, sdf, c, json" in done.stderr


def test_report_can_be_written_again(run_folder: Path, tmp_path: Path) -> None:
    done = dynid("report", run_folder, "-o", tmp_path / "again.html")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "again.html").read_text(encoding="utf-8")
    assert "Base parameters" in text
    assert "Measured and predicted torque" in text


def test_base(bench: Bench) -> None:
    result = json.loads(dynid("base", bench.urdf, "--json").stdout)
    assert result["n_parameters"] == 56
    assert len(result["base"]) == result["n_base"]
    assert set(result["base"][0]) == {"name", "expression"}
    rigid = json.loads(dynid("base", bench.urdf, "--effects", "none", "--json").stdout)
    assert rigid["n_parameters"] == 40


def test_base_with_locked_joint(bench: Bench) -> None:
    result = json.loads(dynid("base", bench.urdf, "--lock", "elbow=0.5", "--json").stdout)
    assert result["n_parameters"] == 42
    assert any("elbow" in note for note in result["notes"])


def test_check_passes_and_fails(bench: Bench, tmp_path: Path) -> None:
    good = dynid("check", bench.urdf, "--json")
    assert good.returncode == 0, good.stderr
    links = json.loads(good.stdout)["links"]
    assert {"name", "mass", "consistent", "triangle_slack", "min_eigenvalue"} <= set(links[0])
    broken = re.sub(r'ixx="[^"]+"', 'ixx="10"', bench.urdf.read_text(encoding="utf-8"), count=1)
    (tmp_path / "broken.urdf").write_text(broken, encoding="utf-8")
    bad = dynid("check", tmp_path / "broken.urdf", "--json")
    assert bad.returncode == 1
    assert json.loads(bad.stdout)["feasible"] is False


def test_simulate_then_identify(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "sim.csv"
    done = dynid("simulate", bench.urdf, bench.motion, "-o", log, "--rate", "200", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] == [str(log)]
    found = dynid("identify", bench.urdf, log, "--cutoff-hz", "15", "-o", tmp_path / "run", "--json")
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("base", "missing.urdf"), "missing.urdf"),
        (("base", "ROBOT", "--effects", "visc"), "unknown effect 'visc'; available: viscous"),
        (("base", "ROBOT", "--lock", "knee=1"), "unknown joint 'knee'"),
        (("base", "ROBOT", "--lock", "knee"), "expected joint=value"),
        (("base", "ROBOT", "--gravity", "1,2"), "expected 3"),
        (("base", "ROBOT", "--gravity", "a,b,c"), "expected numbers"),
        (("identify", "ROBOT", "missing.csv"), "missing.csv"),
        (("identify", "ROBOT", "LOG", "--split", "1.5"), "between 0 and 1"),
        (("identify", "ROBOT", "LOG", "--cutoff-hz", "fast"), "expected numbers"),
        (("identify", "ROBOT", "LOG", "--cutoff-hz", "1e6"), "half the sampling rate"),
        (("identify", "ROBOT", "LOG", "--method", "magic"), "unknown method 'magic'; available:"),
        (("identify", "ROBOT", "LOG", "--velocity", "guess"), "unknown velocity source 'guess'"),
        (("identify", "ROBOT", "LOG", "--from", "100"), "no sample between"),
        (("validate", "missing_run", "LOG"), "run.json"),
        (("simulate", "ROBOT", "missing.csv"), "missing.csv"),
    ],
)
def test_bad_input_gets_one_sentence(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    known = {"ROBOT": bench.urdf, "LOG": bench.log}
    done = dynid(*(known.get(argument, argument) for argument in arguments))
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    sentences = [line for line in done.stderr.splitlines() if line.startswith("dynid: ") and "compiling" not in line]
    assert len(sentences) == 1
    assert list(tmp_path.iterdir()) == [], "nothing is written for bad input"
