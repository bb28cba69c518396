"""Logs by folder, pattern and URL: the same logs as by their names, and no secret of a URL left anywhere."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from cli_program import dynid as program
from dynid.errors import InputError
from dynid.io.logs.log_file import UrlPath
from dynid.io.logs.paths import log_part, log_paths, names_of
from dynid.io.logs.read import open_recording
from dynid.pipeline.data import unchanged
from dynid.pipeline.run_file import read_run_file, write_run_file
from file_servers import serving
from problems import planar_2r

FIXED = dynid.Settings(
    method="wls", cutoff_hz=8.0, signal_band_hz=20.0, velocity="logged", dead_zone=0.02, friction="linear"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("many")
    (made / "day1" / "below").mkdir(parents=True)
    for seed, name in enumerate(("b.parquet", "a.csv", "below/c.parquet")):
        log = dynid.demo_recording(planar_2r(), seconds=6.0, rate_hz=200.0, seed=seed, torque_noise=0.02)
        dynid.write_recording(log, made / "day1" / name)
    for name in ("readme.md", ".hidden.csv", "_partial.parquet"):
        (made / "day1" / name).write_text("no log")
    dynid.write_urdf(planar_2r(), made / "arm.urdf")
    return made


def _names(paths: list[Path], folder: Path) -> list[str]:
    return [str(path.relative_to(folder / "day1")) for path in paths]


def test_folders_and_patterns_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = folder / "day1"
    assert _names(log_paths(day), folder) == ["a.csv", "b.parquet"]
    assert _names(log_paths(f"{day}/**/*.parquet"), folder) == ["b.parquet", "below/c.parquet"]
    assert _names(log_paths([f"{day}/[ab].*@1:2", day / "below" / "c.parquet"]), folder) == [
        "a.csv@1:2",
        "b.parquet@1:2",
        "below/c.parquet",
    ]
    assert _names(log_paths(f"file://{day}/a.csv"), folder) == ["a.csv"]
    assert _names(log_paths(f"{day}@:3"), folder) == ["a.csv@:3", "b.parquet@:3"]
    monkeypatch.chdir(day)
    assert log_paths("*.csv") == [Path("a.csv")]
    assert names_of([Path("x")] * 9, 2) == "x, x and 7 more"


def test_a_file_whose_name_is_a_pattern_is_that_file(folder: Path, tmp_path: Path) -> None:
    odd = tmp_path / "run[1].csv"
    shutil.copy(folder / "day1" / "a.csv", odd)
    assert log_paths(str(odd)) == [odd]


def test_nothing_found_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no log matches '.*\*\.npz'"):
        log_paths(f"{folder}/day1/*.npz")
    with pytest.raises(InputError, match="log 2 is an empty text"):
        log_paths([str(folder / "day1" / "a.csv"), ""])
    (tmp_path / "deep").mkdir()
    with pytest.raises(InputError, match="is a folder without logs, expected files such as"):
        log_paths(tmp_path)
    shutil.copy(folder / "day1" / "a.csv", tmp_path / "deep" / "a.csv")
    with pytest.raises(InputError, match=r"/\*\*/\*\.csv'"):
        log_paths(tmp_path)


def test_a_folder_that_is_one_log_stays_one(tmp_path: Path) -> None:
    (tmp_path / "metadata.yaml").write_text("rosbag2_bagfile_information: {}\n")
    assert log_paths(tmp_path) == [tmp_path]


def test_times_behind_urls() -> None:
    part = log_part("s3://bucket/a.parquet@10:25")
    assert (str(part.path), part.from_s, part.to_s) == ("s3://bucket/a.parquet", 10.0, 25.0)
    assert isinstance(part.path, UrlPath)
    assert not log_part("https://eve:pw@host:8080/a.csv").named
    signed = log_part("https://eve:pw@host:8080/a.csv?sig=xyz@:25")
    assert isinstance(signed.path, UrlPath)
    assert (signed.path.url, signed.to_s) == ("https://eve:pw@host:8080/a.csv?sig=xyz", 25.0)
    with pytest.raises(InputError, match="ends at 1 s before it starts") as caught:
        log_part("https://host/a.csv?sig=xyz@2:1")
    assert "xyz" not in str(caught.value)


@pytest.mark.parametrize("stream", ["on", "off"])
def test_logs_behind_urls_give_what_they_give_on_disk(folder: Path, stream: str) -> None:
    settings = replace(FIXED, stream=stream)
    local = dynid.identify(planar_2r(), folder / "day1", settings)
    with serving(folder) as served:
        remote = dynid.identify(planar_2r(), [f"{served.url}/day1/[ab].*"], settings)
        path, digest = remote.logs[1]
        assert path == f"{served.url}/day1/b.parquet"
        assert unchanged(UrlPath(path), digest)
    assert not unchanged(UrlPath(path), digest)  # no server answers now
    np.testing.assert_array_equal(remote.estimate.base_values, local.estimate.base_values)
    assert [digest for _, digest in remote.logs] == [digest for _, digest in local.logs]


def test_only_what_is_needed_is_read_of_parquet(folder: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder / "day1" / "b.parquet")
    ballast = np.random.default_rng(0).integers(0, 2**62, size=(400, len(table)))
    for k, column in enumerate(ballast):
        table = table.append_column(f"ballast{k}", pa.array(column))
    parquet.write_table(table, tmp_path / "wide.parquet")
    with serving(tmp_path) as served:
        log = open_recording(f"{served.url}/wide.parquet", planar_2r())
        before = sum(count for _, count in served.requests)
        rows = sum(piece.n_samples for piece in log)
        read = sum(count for _, count in served.requests) - before
    assert rows == len(table)
    assert read < 0.2 * (tmp_path / "wide.parquet").stat().st_size


def test_no_secret_is_printed_or_stored(folder: Path, tmp_path: Path) -> None:
    run, page = tmp_path / "run", tmp_path / "dynid.toml"
    options = ("--method", "wls", "--cutoff-hz", "8", "--velocity", "logged", "--friction", "linear", "--export", "urdf")
    with serving(folder) as served:
        url = served.url.replace("//", "//eve-9371:s3cret-pw@") + "/day1/b.parquet?X-Signature=hush%2Bhush"
        done = program("identify", folder / "arm.urdf", url, *options, "-o", run)
        assert done.returncode == 0, done.stderr
        assert any(user.startswith("Basic ") for user in served.users)
        assert any("X-Signature" in path for path, _ in served.requests)
        twice = program("identify", folder / "arm.urdf", url, folder / "day1" / "b.parquet", *options, "-o", tmp_path / "no")
        gone = program("validate", run, url.replace("b.parquet", "gone.parquet"))
        looked = program("data", url, "--robot", folder / "arm.urdf", "--json")
        begun = program("init", folder / "arm.urdf", url, "-o", page)
    assert twice.returncode == gone.returncode == 2
    assert "has the same content as" in twice.stderr
    assert "gone.parquet: there is no such file" in gone.stderr
    assert looked.returncode == begun.returncode == 0, looked.stderr + begun.stderr
    said = "".join(one.stdout + one.stderr for one in (done, twice, gone, looked, begun))
    kept = [path.read_bytes() for path in [*run.rglob("*"), page] if path.is_file()]
    for secret in ("s3cret-pw", "hush", "X-Signature", "eve-9371"):
        assert secret not in said
        assert not any(secret.encode() in text for text in kept)
    assert f"{served.url}/day1/b.parquet".encode() in (run / "run.json").read_bytes()
    loaded = dynid.load_result(run)  # asks no server
    assert loaded.logs[0][0] == f"{served.url}/day1/b.parquet"
    (log,) = read_run_file(page).logs
    assert str(log) == f"{served.url}/day1/b.parquet"


def test_run_files_name_patterns_and_urls(folder: Path, tmp_path: Path) -> None:
    path = write_run_file(tmp_path / "dynid.toml", folder / "arm.urdf", ["s3://bucket/a.parquet", folder / "day1" / "*.csv"])
    first, second = read_run_file(path).logs
    assert str(first) == "s3://bucket/a.parquet"
    assert log_paths(second) == [folder / "day1" / "a.csv"]


def test_every_verb_takes_patterns(folder: Path, tmp_path: Path) -> None:
    robot, pattern = folder / "arm.urdf", f"{folder}/day1/*.csv"
    looked = program("data", f"{folder}/day1", "--robot", robot)
    assert [line.split(":")[0] for line in looked.stdout.splitlines() if " rows, " in line] == ["a.csv", "b.parquet"]
    added = program("store", "add", robot, pattern, "--to", tmp_path / "store", "--day", "2026-03-01", "--cutoff-hz", "8")
    assert added.returncode == 0, added.stderr
    assert "added: a.csv" in added.stdout
    with serving(folder) as served:
        again = program("store", "add", robot, f"{served.url}/day1/a.csv", "--to", tmp_path / "store", "--day", "2026-03-02")
        undated = program("store", "add", robot, f"{served.url}/day1/a.csv", "--to", tmp_path / "store")
    assert "a.csv is in the store already" in again.stdout
    assert "give --day" in undated.stderr
