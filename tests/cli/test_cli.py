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

import polars as pl
import pyarrow
import pyarrow.compute
import pyarrow.parquet
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


QUICK = ("--cutoff-hz", "12", "--friction", "linear")
"""Most tests need no search for the cut-off and for friction."""


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
    verbs = (
        "demo", "init", "doctor", "data", "base", "check", "repair", "excite", "simulate", "identify", "validate", "compare", "payload",
        "export", "report", "fleet", "store add", "store identify", "store list",
    )  # fmt: skip
    for verb in verbs:
        assert verb.split()[0] in listed.stdout
        shown = dynid(*verb.split(), "--help")
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
    assert dynid("validate", run_folder, bench.other_log, "--max-error", "0.5").returncode == 0
    assert dynid("validate", run_folder, bench.other_log, "--max-error", "1e-6").returncode == 1


def test_forward_validation(bench: Bench, tmp_path: Path) -> None:
    """Identified with a method that keeps bodies physical, exported in two formats, compared with another, replayed."""
    flags = (*QUICK, "--compare", "ols, wls", "--export", "mjcf", "--json")
    done = dynid("identify", bench.urdf, bench.log, "-o", tmp_path / "run", *flags)
    assert done.returncode == 0, done.stderr
    assert [Path(file).suffix for file in json.loads(done.stdout)["files"]] == [".json", ".html", ".xml"]
    stored = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert [item["method"] for item in stored["comparisons"]] == ["ols", "wls"]
    replayed = dynid("validate", tmp_path / "run", bench.other_log, "--replay", "--window", "0.05", "--json")
    assert replayed.returncode == 0, replayed.stderr
    found = json.loads(replayed.stdout)["logs"][0]["replay"]
    assert found["window_s"] == pytest.approx(0.05, abs=0.006)
    assert 0.0 < found["end_effector_position_mean"] < 0.01
    shown = dynid("validate", tmp_path / "run", bench.other_log, "--replay")
    assert "at the end of a window" in shown.stdout
    wrong = dynid("identify", bench.urdf, bench.log, "-o", tmp_path / "other", "--export", "docx")
    assert wrong.returncode == 2
    assert "unknown export format 'docx'" in wrong.stderr
    assert not (tmp_path / "other").exists()


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
    assert "unknown export format 'docx'; available: urdf, mjcf, sdf, c, cpp, python, matlab, json, latex" in done.stderr


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


@pytest.fixture(scope="module")
def simulated(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log by the command line."""
    log = tmp_path_factory.mktemp("simulated") / "sim.csv"
    done = dynid("simulate", bench.urdf, bench.motion, "-o", log, "--rate", "200", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] == [str(log)]
    return log


def test_simulate_then_identify(bench: Bench, simulated: Path, tmp_path: Path) -> None:
    found = dynid("identify", bench.urdf, simulated, *QUICK, "-o", tmp_path / "run", "--json")
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
        (("identify", "ROBOT", "LOG", "--cutoff-hz", "fast"), "--cutoff-hz is 'fast', expected a positive number of Hz"),
        (("identify", "ROBOT", "LOG", "--cutoff-hz", "1e6"), "0.4 of its sampling rate"),
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


def test_data_of_a_log(bench: Bench, tmp_path: Path) -> None:
    result = json.loads(dynid("data", bench.log, "--robot", bench.urdf, "--json").stdout)
    assert result["n_samples"] == 1501
    assert set(result) >= {"rate_hz", "joints", "quantities", "findings", "facts"}
    late = pl.read_parquet(bench.log).with_columns(
        pl.col("t") + 0.3 * pl.col("t").diff().fill_null(0.0) * (pl.int_range(pl.len()) % 2)
    )
    late.write_parquet(tmp_path / "late.parquet")
    findings = json.loads(dynid("data", tmp_path / "late.parquet", "--robot", bench.urdf, "--json").stdout)["findings"]
    assert "jitter" in [finding["code"] for finding in findings]
    for finding in findings:
        assert {"code", "level", "what", "remedy"} <= set(finding)


def test_compare_methods_on_the_same_samples(bench: Bench) -> None:
    done = dynid(
        "compare", bench.urdf, bench.log, "--methods", "ols,wls,sdp", "--cutoff-hz", "10", "--friction", "linear", "--json"
    )
    assert done.returncode == 0, done.stderr
    methods = json.loads(done.stdout)["methods"]
    assert [one["method"] for one in methods] == ["ols", "wls", "sdp"]
    assert set(methods[0]) >= {"method", "relative_error", "feasible", "seconds"}
    by_name = {one["method"]: one for one in methods}
    assert by_name["sdp"]["feasible"] is True
    assert by_name["ols"]["relative_error"]["identification"] <= by_name["sdp"]["relative_error"]["identification"] + 1e-9


def test_repair_of_a_broken_model(bench: Bench, tmp_path: Path) -> None:
    text = bench.urdf.read_text(encoding="utf-8")
    broken = re.sub(r'ixx="[^"]+"', 'ixx="10"', text, count=1)
    (tmp_path / "broken.urdf").write_text(broken, encoding="utf-8")
    done = dynid("repair", tmp_path / "broken.urdf", "-o", tmp_path / "fixed.urdf", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["feasible_before"], result["feasible_after"]) == (False, True)
    assert set(result) >= {"base_kept", "torque_change"}
    assert dynid("check", tmp_path / "fixed.urdf").returncode == 0


def test_run_file_does_what_the_flags_do(bench: Bench, tmp_path: Path) -> None:
    config = tmp_path / "dynid.toml"
    made = dynid("init", bench.urdf, bench.log, "-o", config)
    assert made.returncode == 0, made.stderr
    again = dynid("init", bench.urdf, bench.log, "-o", config)
    assert again.returncode == 2
    assert "--force" in again.stderr
    flags = (*QUICK, "--method", "ols", "--split", "0.6", "--json")
    by_file = dynid("identify", "--config", config, "-o", tmp_path / "one", *flags)
    assert by_file.returncode == 0, by_file.stderr
    by_hand = dynid("identify", bench.urdf, bench.log, "-o", tmp_path / "two", *flags)
    one, two = json.loads(by_file.stdout), json.loads(by_hand.stdout)
    assert one["relative_error"] == two["relative_error"]
    assert one["method"] == "ols"


def test_run_file_with_a_typing_error_is_said(bench: Bench, tmp_path: Path) -> None:
    config = tmp_path / "dynid.toml"
    config.write_text('robot = "arm.urdf"\nlogs = []\n[signals]\ncut_off = 3\n', encoding="utf-8")
    done = dynid("identify", "--config", config)
    assert done.returncode == 2
    assert "unknown setting 'cut_off' in [signals]" in done.stderr
    config.write_text("robot = \n", encoding="utf-8")
    assert "not valid TOML" in dynid("identify", "--config", config).stderr


def test_constraints_of_a_run_file_are_kept(bench: Bench, tmp_path: Path) -> None:
    config = tmp_path / "dynid.toml"
    config.write_text(
        f'robot = "{bench.urdf}"\nlogs = ["{bench.log}"]\n[model]\nfriction = "linear"\n[signals]\ncutoff_hz = 12.0\n'
        "[[constraints.mass]]\nlink = 4\nlower = 7.0\nupper = 8.0\n",
        encoding="utf-8",
    )
    done = dynid("identify", "--config", config, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    stored = json.loads((tmp_path / "run" / "estimate.json").read_text(encoding="utf-8"))
    assert 7.0 - 1e-6 <= stored["parameters"]["m4"] <= 8.0 + 1e-6


def test_payload_of_a_log_without_one(run_folder: Path, simulated: Path) -> None:
    done = dynid("payload", run_folder, simulated, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result) >= {"mass", "com", "inertia", "sigma", "feasible"}
    assert len(result["sigma"]) == 10


def test_doctor_knows_what_is_there() -> None:
    result = json.loads(dynid("doctor", "--json").stdout)
    assert result["healthy"] is True
    assert result["needed"]["numpy"]


def test_logs_without_velocity_are_identified(bench: Bench, tmp_path: Path) -> None:
    """Velocity columns are optional: it is then taken from position."""
    table = pyarrow.parquet.read_table(bench.log)
    bare = table.select([name for name in table.column_names if not name.startswith("dq")])
    assert bare.num_columns < table.num_columns
    pyarrow.parquet.write_table(bare, tmp_path / "bare.parquet")
    for options in (QUICK, (*QUICK, "--velocity", "position")):
        done = dynid("identify", bench.urdf, tmp_path / "bare.parquet", "-o", tmp_path / "run", *options, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["filter"]["velocity"] == "position"
        assert found["relative_error"]["identification"] < 0.05
    asked = dynid("identify", bench.urdf, tmp_path / "bare.parquet", "-o", tmp_path / "run", "--velocity", "logged")
    assert asked.returncode == 2
    assert "no velocity columns" in asked.stderr


def test_a_used_folder_keeps_no_model_of_an_earlier_run(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    flags = (*QUICK, "-o", folder, "--json")
    first = json.loads(dynid("identify", bench.urdf, bench.log, *flags).stdout)
    models = [Path(file) for file in first["files"] if Path(file).suffix in (".urdf", ".xml")]
    assert len(models) == 2
    models[1].write_text(models[1].read_text(encoding="utf-8") + "<!-- my own -->\n", encoding="utf-8")
    second = json.loads(dynid("identify", bench.urdf, bench.log, "--method", "ols", "--export", "json", *flags).stdout)
    assert not [file for file in second["files"] if Path(file).suffix in (".urdf", ".xml")]
    assert not models[0].exists()
    assert models[1].exists()  # changed since: the user's own


def test_bounds_that_nothing_meets_end_with_exit_code_1(bench: Bench, tmp_path: Path) -> None:
    bounds = tmp_path / "bounds.csv"
    bounds.write_text("name,lower,upper\nm1,100,\ntotal_mass,,2\n", encoding="utf-8")
    flags = (*QUICK, "--method", "retrieve", "--bounds", bounds, "-o", tmp_path / "run")
    done = dynid("identify", bench.urdf, bench.log, *flags, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["outcome"] == "infeasible"
    assert not [file for file in found["files"] if file.endswith(".urdf")]
    assert "found no answer" in done.stderr
    bounds.write_text("name,lower,upper\nzz9,1,2\n", encoding="utf-8")
    wrong = dynid("identify", bench.urdf, bench.log, *flags)
    assert wrong.returncode == 2
    assert "bounds.csv' name 'zz9'" in wrong.stderr
    assert "total_mass, m1 .., c1x .." in wrong.stderr


def test_validation_has_a_window_of_its_own(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    flags = (*QUICK, "--method", "ols", "--from", "1", "--to", "4", "-o", folder)
    assert dynid("identify", bench.urdf, bench.log, *flags).returncode == 0
    whole = json.loads(dynid("validate", folder, bench.other_log, "--json").stdout)["logs"][0]
    part = json.loads(dynid("validate", folder, bench.other_log, "--from", "1", "--to", "4", "--json").stdout)["logs"][0]
    assert part["n_samples"] < 0.7 * whole["n_samples"]
    failed = dynid("validate", folder, bench.other_log, "--max-error", "1e-6")
    assert failed.returncode == 1
    assert "more than the 0.00 % allowed" in failed.stderr
    for wrong in ("nan", "-1"):
        assert dynid("validate", folder, bench.other_log, f"--max-error={wrong}").returncode == 2


def test_torque_in_amperes_is_the_first_thing_told(bench: Bench, tmp_path: Path) -> None:
    table = pyarrow.parquet.read_table(bench.log)
    columns = {
        name: pyarrow.compute.multiply(table[name], 0.05) if name.startswith("tau") else table[name]
        for name in table.column_names
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "amperes.parquet")
    done = dynid("identify", bench.urdf, tmp_path / "amperes.parquet", *QUICK, "-o", tmp_path / "run")
    assert done.returncode == 0
    assert done.stdout.startswith("verdict: do not use")
    told = " ".join(done.stdout.split())
    assert "torque of joint" in told
    assert "motor current in ampere" in told


def test_nothing_to_check_is_said(tmp_path: Path) -> None:
    empty = '<robot name="bare"><link name="a"/><link name="b"/>{}</robot>'
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>{}</joint>'
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    (tmp_path / "bare.urdf").write_text(empty.format(joint.format(limit)), encoding="utf-8")
    done = dynid("check", tmp_path / "bare.urdf")
    assert done.returncode == 0
    assert "nothing to check" in done.stdout


def test_floating_base(bench: Bench) -> None:
    fixed = json.loads(dynid("base", bench.urdf, "--effects", "none", "--json").stdout)
    free = json.loads(dynid("base", bench.urdf, "--effects", "none", "--floating", "--json").stdout)
    assert free["n_base"] > fixed["n_base"]


@pytest.mark.parametrize("verb", ["identify", "check", "validate", "compare", "data", "predict", "export", "payload"])
def test_an_empty_argument_is_no_folder(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a path it would be the working folder, whatever lies there."""
    monkeypatch.chdir(tmp_path)
    done = dynid(verb, "robot.urdf", "")
    assert done.returncode == 2
    assert done.stderr == (
        "dynid: argument 3 (behind 'robot.urdf') is empty, expected a file, a folder or a value: is a variable of the shell not set?\n"
    )
    assert not list(tmp_path.iterdir())
