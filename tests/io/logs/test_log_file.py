"""Files behind URLs: read in pieces, shown without secrets, refused in one sentence."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynid.errors import InputError
from dynid.io.logs import log_file
from dynid.io.logs.log_file import LogFile, UrlPath, is_url, local_copy, log_path, url_matches, without_secrets
from file_servers import serving

DATA = bytes(range(256)) * 50_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served")
    (made / "data.bin").write_bytes(DATA)
    (made / "runs").mkdir()
    for name in ("b.csv", "a.csv", "notes.md"):
        (made / "runs" / name).write_text("t,q1\n")
    return made


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://eve:s3cret@host:8080/run/a.csv?X-Sig=abc#f", "https://host:8080/run/a.csv"),
        ("https://host/a.csv?sig=abc@10:25", "https://host/a.csv@10:25"),
        ("s3://bucket/run#3.parquet", "s3://bucket/run#3.parquet"),
        ("sftp://eve:pw@host/a.csv@:25", "sftp://host/a.csv@:25"),
        ("abfs://container@account.dfs.core.windows.net/a.csv", "abfs://container@account.dfs.core.windows.net/a.csv"),
        ("simplecache::https://host/a.csv?k=v", "simplecache::https://host/a.csv"),
        ("zip://a.csv::https://eve:pw@host/a.zip?k=v", "zip://a.csv::https://host/a.zip"),
    ],
)
def test_shown_without_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown
    path = UrlPath(url)
    for text in (str(path), repr(path), f"{path}", path.as_posix(), path.name):
        assert not any(secret in text for secret in ("s3cret", "pw", "abc", "k=v"))
    assert pickle.loads(pickle.dumps(path)).url == url  # noqa: S301
    assert path.name == shown.split("::")[0 if "zip" in url else -1].rpartition("/")[2]


def test_what_is_a_url() -> None:
    assert not any(is_url(text) for text in ("log.csv", "/a/log.csv", "C:/log.csv", "a:b/log.csv", "log@1:2"))
    assert is_url("s3://b/k")
    assert is_url("filecache::gs://b/k")
    assert log_path("file:///tmp/a%20b.csv") == Path("/tmp/a b.csv")
    assert log_path("runs/a.csv") == Path("runs/a.csv")
    restored = log_path(Path("s3://bucket/a.csv"))  # pathlib has taken one slash
    assert isinstance(restored, UrlPath)
    assert restored.url == "s3://bucket/a.csv"


@pytest.mark.parametrize("ranges", [True, False])
def test_read_from_any_byte_on(folder: Path, ranges: bool) -> None:
    with serving(folder, ranges=ranges) as served:
        path = UrlPath(f"{served.url}/data.bin")
        assert path.is_file()
        assert not path.is_dir()
        assert path.stat().st_size == len(DATA)
        with path.open("rb") as file:
            assert file.seek(-300, 2) == len(DATA) - 300
            assert file.read() == DATA[-300:]
            file.seek(1_000_001)
            assert file.read(70_000) == DATA[1_000_001:1_070_001]
        sent = [count for _, count in served.requests if count > 0]
        assert bool(sent) == ranges
        assert sum(sent) < len(DATA)
        assert LogFile(path).sha256 == hashlib.sha256(DATA).hexdigest()
        assert local_copy(path).read_bytes() == DATA
        assert not UrlPath(f"{served.url}/other.bin").exists()


def test_patterns_and_folders(folder: Path) -> None:
    with serving(folder) as served:
        assert [one.name for one in url_matches(f"{served.url}/runs/*.csv")] == ["a.csv", "b.csv"]
        found = url_matches(served.url.replace("//", "//eve:pw@") + "/runs/")
        assert {one.name for one in found} >= {"a.csv", "b.csv", "notes.md"}
        assert all("eve:pw@" in one.url and "pw" not in str(one) for one in found)


def test_errors_in_the_middle_are_one_sentence_without_secrets(folder: Path) -> None:
    with serving(folder, fails_after=2) as served:
        path = UrlPath(f"{served.url}/data.bin?token=hush-hush")
        with path.open("rb") as file:
            file.read(10)
            file.seek(9_000_000)
            with pytest.raises(InputError, match=r"data\.bin: cannot be read") as caught:
                file.read(10)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_no_server_no_scheme_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:1/a\.csv: cannot be read"):
        UrlPath("http://eve:pw@127.0.0.1:1/a.csv").exists()
    with pytest.raises(InputError, match=r"xyz://a/b\.csv: cannot be read: Protocol not known"):
        UrlPath("xyz://a/b.csv").exists()

    def absent(name: str) -> None:
        raise ModuleNotFoundError(f"No module named '{name}'")

    monkeypatch.setattr(log_file, "import_module", absent)
    for scheme, extra in (("s3", "s3"), ("gs", "gs"), ("https", "http")):
        with pytest.raises(InputError, match=rf"logs behind {scheme}:// .* pip install 'dynid\[{extra}\]'"):
            UrlPath(f"{scheme}://eve:pw@bucket/a.csv").exists()


@pytest.fixture(scope="module")
def bucket(folder: Path) -> Iterator[str]:
    """A bucket of a simulated S3 on loopback."""
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'dynid[s3]'")
    server_of = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[server]'")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "testing")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    import s3fs

    files = s3fs.S3FileSystem(skip_instance_cache=True)
    files.mkdir("fleet")
    files.put(str(folder) + "/", "fleet/", recursive=True)
    yield "s3://fleet"
    patch.undo()
    server.stop()


def test_objects_of_s3(bucket: str) -> None:
    path = UrlPath(f"{bucket}/data.bin")
    assert path.stat().st_size == len(DATA)
    assert LogFile(path).sha256 == hashlib.sha256(DATA).hexdigest()
    with path.open("rb") as file:
        file.seek(5_000_003)
        assert file.read(100) == DATA[5_000_003:5_000_103]
    assert [one.url for one in url_matches(f"{bucket}/runs/*.csv")] == [f"{bucket}/runs/{name}.csv" for name in "ab"]
    assert len(url_matches(f"{bucket}/runs/")) == 3
    assert UrlPath(f"{bucket}/runs").is_dir()
    assert not UrlPath(f"{bucket}/absent.bin").exists()
    with pytest.raises(InputError, match=r"s3://other-fleet/a\.csv: "):
        UrlPath("s3://other-fleet/a.csv").open("rb")


def test_the_hash_of_a_folder_knows_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    first = LogFile(tmp_path).sha256
    assert first == LogFile(tmp_path).sha256
    (tmp_path / "b").write_text("3")
    changed = LogFile(tmp_path).sha256
    (tmp_path / "b").rename(tmp_path / "c")
    assert len({first, changed, LogFile(tmp_path).sha256}) == 3
