"""Pages that state a size of their own: as they are, and with a header that asks for gigabytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError
from dynid.recording.readers.formats.parquet import open_parquet
from dynid.recording.readers.formats.parquet_pages import _columns, _page_sizes, refuse_large_pages
from dynid.recording.readers.log_file import LogFile


def written(path: Path, **options: object) -> Path:
    rng = np.random.default_rng(0)
    table = pa.table({"t": np.arange(50_000) * 1e-3, "q1": rng.normal(size=50_000), "tau1": rng.normal(size=50_000)})
    pq.write_table(table, path, **options)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"use_dictionary": False, "data_page_size": 10_000},
        {"row_group_size": 7_000, "write_statistics": ["t"]},
        {"compression": "none"},
    ],
)
def test_pages_add_up_to_what_the_footer_says(options: dict, tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", **options)
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    known = [group.column(k) for group in groups for k in range(metadata.num_columns)]
    with path.open("rb") as file:
        refuse_large_pages(str(path), file, 0)
        for column, other in zip(_columns(file), known, strict=True):
            assert (column.name, column.packed) == (other.path_in_schema, other.total_compressed_size)
            assert column.unpacked == other.total_uncompressed_size
            sizes = _page_sizes(file, column)
            for whole, stated in zip((column.packed, column.unpacked), zip(*sizes, strict=True), strict=True):
                # the footer counts headers too, a few dozen bytes a page
                assert 0 <= whole - sum(stated) <= 200 * len(sizes)
    assert open_parquet(LogFile(path)).n_rows == 50_000


@pytest.mark.parametrize(("field", "sentence"), [(2, "unpacks to 2147483647 bytes"), (3, "has 2147483647 bytes")])
def test_a_page_that_asks_for_gigabytes_is_refused(field: int, sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", use_dictionary=False, compression="none", row_group_size=10)
    content = path.read_bytes()
    start = pq.read_metadata(path).row_group(0).column(1).data_page_offset
    # the header begins with the kind of page and its sizes: 0x15 before each, zigzag varints of two bytes for 80 numbers or fewer
    first = start + 3 if field == 2 else start + 6
    assert content[start : start + 3] == b"\x15\x00\x15"
    assert content[start + 5] == 0x15
    size = b"\xfe\xff\xff\xff\x0f"  # 2^31 - 1
    path.write_bytes(content[:first] + size + content[first + 2 :])  # what lies behind is not reached
    with pytest.raises(InputError, match=f"a page of column 'q1' says that it {sentence}"):
        open_parquet(LogFile(path))
