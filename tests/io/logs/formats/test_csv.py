"""Text tables."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.logs.formats.csv import CsvFormat
from dynid.io.logs.read import open_recording, read_recording
from dynid.io.logs.table import MALFORMED, OpenOptions
from log_files import ARM, TAU, N, Q, check, plain, write_csv
from messages import facts


@pytest.mark.parametrize(
    ("delimiter", "decimal"), [(",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","), (" ", "."), ("   ", ".")]
)
def test_separators_and_decimal_signs(tmp_path, delimiter, decimal):
    check(read_recording(write_csv(tmp_path / "log.csv", plain(), delimiter, decimal), ARM))


def test_quoted_names_byte_order_mark_windows_lines_and_comments(tmp_path):
    text = write_csv(tmp_path / "log.csv", plain()).read_text()
    header, rows = text.split("\n", 1)
    quoted = ",".join(f'"{name}"' for name in header.split(","))
    (tmp_path / "a.csv").write_bytes(("\ufeff" + quoted + "\n" + rows).replace("\n", "\r\n").encode())
    check(read_recording(tmp_path / "a.csv", ARM))
    (tmp_path / "b.csv").write_text("# made by a logger\n# on a Tuesday\n" + text)
    check(read_recording(tmp_path / "b.csv", ARM))
    (tmp_path / "c.csv").write_text("% " + text)
    check(read_recording(tmp_path / "c.csv", ARM))
    (tmp_path / "d.csv").write_bytes(("temp \u00b0C," + header + "\n").encode("latin-1") + b"".join(
        b"20.5," + line.encode() + b"\n" for line in rows.splitlines()
    ))  # fmt: skip
    check(read_recording(tmp_path / "d.csv", ARM))
    trailing = "\n".join(line + "," for line in text.splitlines())
    (tmp_path / "e.csv").write_text(trailing)
    check(read_recording(tmp_path / "e.csv", ARM))


def test_a_header_can_be_given(tmp_path):
    header, rows = write_csv(tmp_path / "log.csv", plain()).read_text().split("\n", 1)
    (tmp_path / "bare.csv").write_text(rows)
    with pytest.raises(InputError, match=facts("10", "column")):
        read_recording(tmp_path / "bare.csv", ARM)
    check(read_recording(tmp_path / "bare.csv", ARM, mapping={"header": header.split(",")}))
    with pytest.raises(InputError, match=facts("header", "1", "10", "column")):
        read_recording(tmp_path / "bare.csv", ARM, mapping={"header": ["t"]})


def test_a_last_line_cut_short_is_left_out(tmp_path):
    path = write_csv(tmp_path / "log.csv", plain())
    path.write_text(path.read_text() + "0.5,1.0,2")
    recording = read_recording(path, ARM)
    check(recording)
    assert (recording.source.n_dropped, recording.source.n_rows_in_file) == (1, N + 1)
    (finding,) = recording.source.findings
    assert (finding.code, finding.level) == ("cut_off", "warning")
    assert finding.what == "the last line of the file is cut off (it has 3 of 10 fields) and was left out"


@pytest.mark.parametrize("delimiter", [",", " ", "\t"])
def test_a_last_number_cut_short_is_left_out(tmp_path, delimiter):
    path = write_csv(tmp_path / "log.csv", plain(), delimiter)
    text = path.read_text()
    path.write_text(text[:-1])  # a whole last line may have no end
    check(whole := read_recording(path, ARM))
    assert whole.source.findings == ()
    path.write_text(text[:-9])
    recording = read_recording(path, ARM)
    assert recording.n_samples == N - 1
    np.testing.assert_array_equal(recording.torque, TAU[:-1])
    (finding,) = recording.source.findings
    cut = repr(TAU[-1, -1].item())[:-8]
    assert f"cut off (its last number is '{cut}' and the line has no end)" in finding.what
    stream = open_recording(path, ARM, chunk_rows=7)
    np.testing.assert_array_equal(stream.read().torque, TAU[:-1])
    assert stream.source.findings == recording.source.findings


def test_a_short_last_number_among_short_ones_is_no_cut(tmp_path):
    columns = plain() | {"flag": np.arange(N) % 12}
    path = write_csv(tmp_path / "log.csv", columns)
    path.write_text(path.read_text()[:-1])
    assert read_recording(path, ARM).n_samples == N


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n  \n", "the file is empty"),
        (b"t,q1,q2,q3\n", "holds a header of 4 columns and no rows"),
        (b"t,q1,q2,q3\n\n\n", "holds a header of 4 columns and no rows"),
        (b"t,q1,q2,q3\n0,1,2,3\n1,2,high,4\n", facts("q2", "high", "column")),
        (b"t,q1,q2,q3\n0,1,2,3\n1,2,12:30,4\n", facts("q2", "12:30", "column")),
        (b"t,q1,q2,q3,q1\n0,1,2,3,4\n1,2,3,4,5\n", "column 'q1' appears 2 times"),
        ("t,q1\n0,1\n".encode("utf-16"), "UTF-16"),
        (b"t,q1\x00,\n0,1\n", "zero bytes"),
        (b"t,q1,q2,q3\n0,1,2,3\n", "1 of 1 rows left"),
    ],
)
def test_damaged_text_is_refused(tmp_path, content, message):
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_recording(tmp_path / "log.csv", ARM)


@pytest.mark.parametrize("delimiter", [",", "  "])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_blocks_end_where_lines_end(tmp_path, monkeypatch, delimiter, line_end):
    """Blocks shorter than a line, with malformed lines in several of them."""
    lines = write_csv(tmp_path / "log.csv", plain(), delimiter).read_text().splitlines()
    lines[20:20] = ["0.5", ""]
    lines[33:33] = [delimiter.join("12")]
    (tmp_path / "log.csv").write_bytes(line_end.join(["# by a logger", *lines, ""]).encode())
    whole = read_recording(tmp_path / "log.csv", ARM)
    check(whole)
    assert "2 lines with a wrong number of fields were left out" in whole.source.notes
    monkeypatch.setattr("dynid.io.logs.formats.csv._BLOCK_BYTES", 50)
    table = CsvFormat().open(tmp_path / "log.csv", OpenOptions())
    monkeypatch.setattr("dynid.io.logs.formats.csv._SAMPLE_BYTES", 400)
    batches = list(table.read(["q1", "tau3"], 1, 0))
    assert len(batches) > 30
    np.testing.assert_array_equal(np.concatenate([batch["q1"] for batch in batches]), Q[:, 0])
    np.testing.assert_array_equal(np.concatenate([batch["tau3"] for batch in batches]), TAU[:, 2])
    assert sum(int(batch[MALFORMED][0]) for batch in batches) == 2


def test_a_malformed_line_that_is_no_text_is_counted_and_told_once(tmp_path, capfd):
    lines = write_csv(tmp_path / "log.csv", plain()).read_bytes().splitlines()
    lines[20:20] = [b"\xff\xfe,1"]
    (tmp_path / "log.csv").write_bytes(b"\n".join(lines))
    recording = read_recording(tmp_path / "log.csv", ARM)
    check(recording)
    assert "1 line with a wrong number of fields was left out" in recording.source.notes
    assert capfd.readouterr().err == ""


def test_truth_values_are_ones_and_zeros(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("t,on,off\n0.0,True,false\n0.1,False,true\n0.2,,false\n")
    (batch,) = CsvFormat().open(path, OpenOptions()).read(["on", "off"], 10, 0)
    np.testing.assert_array_equal(batch["on"], [1.0, 0.0, np.nan])
    np.testing.assert_array_equal(batch["off"], [0.0, 1.0, 0.0])
    path.write_text("t,on\n" + "0.0,True\n" * 60 + "0.1,maybe\n")
    with pytest.raises(InputError, match="column 'on' holds 'maybe', expected true or false"):
        list(CsvFormat().open(path, OpenOptions()).read(["on"], 100, 0))


def test_brackets_without_an_end_take_no_time(tmp_path):
    (tmp_path / "x.csv").write_text("[" * 10**6 + ",")
    with pytest.raises(InputError):
        read_recording(tmp_path / "x.csv", ARM)
