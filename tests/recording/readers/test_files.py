"""Files in general: absent, of another kind, truncated."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError
from dynid.recording.readers.read import read_recording
from dynid.recording.recording import Recording, write_recording
from log_files import ARM, TAU, Q, T, plain


def test_files_that_are_no_logs(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_recording(tmp_path / "log.csv", ARM)
    with pytest.raises(InputError, match=r"is a folder without metadata.yaml"):
        read_recording(tmp_path, ARM)
    (tmp_path / "log.docx").write_text("hello")
    with pytest.raises(InputError, match=r"the suffix '.docx' is not that of a log"):
        read_recording(tmp_path / "log.docx", ARM)


def test_content_wins_over_the_suffix_and_the_hash_knows_the_file(tmp_path):
    pq.write_table(pa.table(plain()), tmp_path / "log.csv")
    first = read_recording(tmp_path / "log.csv", ARM)
    assert first.source.format == "parquet"
    (tmp_path / "copy.parquet").write_bytes((tmp_path / "log.csv").read_bytes())
    assert read_recording(tmp_path / "copy.parquet", ARM).source.sha256 == first.source.sha256


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_truncated_files_are_refused(tmp_path, suffix, share):
    recording = Recording(time=T, position=Q, torque=TAU, joint_names=ARM)
    content = write_recording(recording, tmp_path / f"log{suffix}").read_bytes()
    (tmp_path / f"cut{suffix}").write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match="may be truncated") as caught:
        read_recording(tmp_path / f"cut{suffix}", ARM)
    assert "\n" not in str(caught.value)
