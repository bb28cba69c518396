"""A log of a force/torque sensor through the verbs of the main path, with and without a robot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from bench import Bench
from cli_program import app
from dynid.errors import InputError
from dynid.io.logs.read import write_recording
from dynid.model.inertia import is_consistent, pseudo_inertia
from dynid.pipeline.folder import load_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.signals.recording import WrenchRecording
from sensor_logs import BODY, COM, NOISE, OFFSETS, moves, sensor_log, sensor_motion, true_wrench, write_log, write_shoulder

FLAGS = ("--frame", "ft_sensor", "--cutoff-hz", "12", "--filter-on", "signals")


def called(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def dynid(*words: object) -> Any:
    done = called(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*words: object) -> str:
    """The sentence with which a command line is refused."""
    done = called(*words)
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sensor")
    write_shoulder(folder)
    for seed in (1, 2):
        write_log(sensor_log(1.0, seed, noise=0.1 * NOISE, duration_s=15.0), folder / f"log{seed}.csv")
    return folder


@pytest.fixture(scope="module")
def run(place: Path) -> tuple[Path, dict[str, Any]]:
    target = place / "run"
    return target, dynid(
        "identify", place / "shoulder.urdf", place / "log1.csv", *FLAGS, "--validate", place / "log2.csv", "-o", target
    )


def test_identify_finds_the_body(place: Path, run: tuple[Path, dict[str, Any]]) -> None:
    """The true body within its tolerance, under the keys of any run; the same numbers as ``payload --sensor``."""
    _, found = run
    body = found["payload"]
    assert body["mass"] == pytest.approx(BODY[0], rel=2e-3)
    np.testing.assert_allclose(body["com"], COM, atol=1e-3)
    np.testing.assert_allclose(body["offsets"], OFFSETS, atol=0.05)
    assert found["rows"]["kind"] == "wrench"
    assert found["n_base"] == 16
    assert found["relative_error"]["validation"] < 0.01
    assert found["relative_error"]["validation"] < found["relative_error_raw"]["validation"]
    assert {Path(path).name for path in found["files"]} == {"run.json", "report.html", "load.urdf", "load.xml"}
    names = [one["name"] for one in found["intervals"]]
    mass = found["intervals"][names.index("m1")]
    assert mass["lower"] < BODY[0] < mass["upper"]
    flags = ("--robot", place / "shoulder.urdf", "--frame", "ft_sensor", "--filter", "butterworth:12")
    direct = dynid("payload", "--sensor", place / "log1.csv", *flags)
    np.testing.assert_array_equal(direct["phi"], body["phi"])


def test_payload_of_a_part_of_a_log(place: Path) -> None:
    flags = ("--robot", place / "shoulder.urdf", "--frame", "ft_sensor", "--filter", "butterworth:12")
    whole = dynid("payload", "--sensor", place / "log1.csv", *flags)
    cut = dynid("payload", "--sensor", place / "log1.csv", *flags, "--from", 2, "--to", 12)
    named = dynid("payload", "--sensor", f"{place / 'log1.csv'}@2:12", *flags)
    assert cut["phi"] == named["phi"]
    assert cut["phi"] != whole["phi"]
    assert cut["mass"] == pytest.approx(BODY[0], rel=5e-3)


def test_a_loaded_run_is_the_run(run: tuple[Path, dict[str, Any]]) -> None:
    folder, found = run
    again = load_result(folder)
    kept = {name: value for name, value in again.summary().items() if name not in ("payload", "notes")}
    assert json.loads(json.dumps(kept)) == {name: found[name] for name in kept}
    assert again.body is not None
    assert again.body.best.as_dict()["interval"] == found["payload"]["interval"]
    assert not again.body.samples
    made = load_result(folder, with_samples=True).body
    assert made is not None
    assert len(made.samples) == len(made.predictions) == 1


def test_validate_repeats_the_error_on_the_unseen_log(place: Path, run: tuple[Path, dict[str, Any]]) -> None:
    folder, found = run
    told = dynid("validate", folder, place / "log2.csv")
    assert told["relative_error"] == pytest.approx(found["relative_error"]["validation"], rel=1e-9)
    assert len(told["logs"]) == 1
    assert called("validate", folder, place / "log2.csv", "--max-error", "1e-6").exit_code == 1
    assert "same content" in refused("validate", folder, place / "log1.csv")


def test_compare_has_every_method(place: Path) -> None:
    found = dynid("compare", place / "shoulder.urdf", place / "log1.csv", *FLAGS)
    assert [one["method"] for one in found["methods"]] == ["ols", "wls", "sdp", "manifold"]
    for one in found["methods"]:
        assert one["relative_error"]["validation"] < 0.02
        assert one["seconds"] > 0.0


def test_errors_of_every_log_and_method(place: Path, run: tuple[Path, dict[str, Any]]) -> None:
    words = (place / "shoulder.urdf", place / "log1.csv", "--validate", place / "log2.csv", *FLAGS)
    found = dynid("compare", *words)["methods"]
    for one in found:
        assert [(Path(log["log"]).name, log["data"]) for log in one["logs"]] == [
            ("log1.csv", "known"),
            ("log2.csv", "unseen"),
        ]
        assert one["logs"][1]["relative_error"] == one["relative_error"]["validation"]


def test_unweighted_counts_every_row_the_same(place: Path) -> None:
    """A body that least squares finds consistent is the answer of every unweighted method: the constraint holds nothing back."""
    phi = {}
    for flag, weighted in (("--weighted", True), ("--unweighted", False)):
        settings = Settings(frame="ft_sensor", cutoff_hz=12.0, filter_on="signals", weighted=weighted)
        run = identify(place / "shoulder.urdf", [place / "log1.csv"], settings)
        assert run.body is not None
        phi[flag] = {one.method: one.phi for one in run.body.bodies}
    plain = phi["--unweighted"]
    assert np.linalg.eigvalsh(pseudo_inertia(plain["ols"]))[0] > 0.0
    np.testing.assert_allclose(plain["sdp"], plain["ols"], atol=1e-6)
    np.testing.assert_allclose(plain["manifold"], plain["ols"], atol=1e-6)
    assert np.abs(phi["--weighted"]["manifold"] - plain["manifold"]).max() > 1e-5


def test_report_and_export(run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """The page is made again with its wrench; the body is written in every form that a body has, and no other."""
    folder, found = run
    (path,) = dynid("report", folder, "-o", tmp_path / "page.html")["files"]
    page = Path(path).read_text("utf-8")
    for words in ("Prediction", "How to repeat this", "unseen wrench unexplained", "wrench_1", "--frame ft_sensor"):
        assert words in page
    written = dynid("export", folder, "--to", "json,ur,mjcf", "-o", tmp_path / "out")["files"]
    assert [Path(one).name for one in written] == ["load.json", "load_ur.txt", "load.xml"]
    assert json.loads(Path(written[0]).read_text())["mass"] == pytest.approx(found["payload"]["mass"])
    assert "force/torque sensor" in refused("export", folder, "--to", "c")


def test_without_a_robot(tmp_path: Path) -> None:
    """A log with the sensor's own motion needs no robot; the command that repeats the run has none either."""
    motion = sensor_motion(moves(1.0, np.random.default_rng(3), 15.0))
    t = np.arange(len(motion.omega)) / 100.0
    wrench = true_wrench(motion) + OFFSETS + 0.1 * NOISE * np.random.default_rng(4).normal(size=(len(t), 6))
    log = WrenchRecording(
        t, wrench, angular_velocity=motion.omega, linear_acceleration=motion.proper, angular_acceleration=motion.alpha
    )
    write_recording(log, tmp_path / "imu.csv")
    flags = ("--cutoff-hz", "12", "--split", "0.6", "--mass", "1.85")
    found = dynid("identify", tmp_path / "imu.csv", *flags, "-o", tmp_path / "run")
    assert found["payload"]["mass"] == pytest.approx(1.85, rel=1e-6)
    assert is_consistent(np.array(found["payload"]["phi"]))
    np.testing.assert_allclose(found["payload"]["com"], COM, atol=1e-3)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["command"].startswith(f"dynid identify {tmp_path / 'imu.csv'} ")
    again = load_result(tmp_path / "run")
    assert again.body is not None
    assert again.body.best.sigma[0] == 0.0
    assert again.model.parameters["m1"] == pytest.approx(1.85, rel=1e-6)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--friction", "auto"), ("--friction", "force/torque sensor")),
        (("--method", "recursive"), ("recursive", "ols, wls, sdp, manifold")),
        (("--rows", "energy"), ("energy", "force/torque-sensor log")),
        (("--rows", "polynomial"), ("--window",)),
        (("--from", "100"), ("no sample between", "14.99")),
        (("--frame", "nowhere"), ("nowhere",)),
    ],
)
def test_what_means_nothing_for_a_sensor_is_refused(place: Path, flags: tuple[str, ...], words: tuple[str, ...]) -> None:
    told = refused("identify", place / "shoulder.urdf", place / "log1.csv", *flags, "-o", place / "refused")
    for one in words:
        assert one in told
    assert not (place / "refused").exists()


def test_other_verbs_name_the_kind_of_run(place: Path, run: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = run
    assert "force/torque sensor" in refused("compare-runs", folder, folder)


def test_options_of_a_sensor_are_refused_for_joint_torque(bench: Bench, tmp_path: Path) -> None:
    told = refused("identify", bench.urdf, bench.log, "--mass", "2.0", "-o", tmp_path / "run")
    assert "--mass belongs to logs of a force/torque sensor" in told
