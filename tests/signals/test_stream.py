"""A log in pieces: chunks, parts in time, and what one pass over it shows, whatever the pieces."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.signals.recording import Recording, RecordingSource
from dynid.signals.stream import RecordingStream, survey

T = np.concatenate([np.arange(600), np.arange(640, 1000)]) / 100.0
Q = np.stack([np.sin(T), np.mod(2.5 * T + np.pi, 2.0 * np.pi) - np.pi], axis=1)
LOG = Recording(T, Q, ("a", "b"), torque=np.cos(Q), source=RecordingSource(path="log.csv"))


def streamed(rows: int, log: Recording = LOG, chunk_rows: int = 100) -> RecordingStream:
    """The log in pieces of some rows; three rows are lost between the first two."""

    def pieces(_: int) -> Iterator[tuple[Recording | None, int]]:
        for start in range(0, log.n_samples, rows):
            yield log.cut(start, start + rows), 3 if start == rows else 0

    return RecordingStream(log.joint_names, log.quantities, log.source, chunk_rows, pieces)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_pieces_change_neither_chunks_nor_the_log(rows: int) -> None:
    stream = streamed(rows)
    assert [chunk.n_samples for chunk in stream] == [100] * 9 + [60]
    np.testing.assert_array_equal(stream.read().position, Q)
    np.testing.assert_array_equal(np.concatenate([piece.time for piece in stream.as_read()]), T)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_one_pass_shows_gaps_turns_ranges_and_what_was_dropped(rows: int) -> None:
    found = survey(streamed(rows))
    assert (found.n_rows, found.start_s, found.end_s) == (len(T), T[0], T[-1])
    assert found.n_dropped == (3 if rows < len(T) else 0)
    assert found.gaps == ((5.99, 6.4),)
    assert found.wrapped == (2,)
    assert found.step_s == pytest.approx(0.01)
    assert found.period_s == pytest.approx(0.01)
    assert found.torque_seen
    np.testing.assert_array_equal(found.lowest, Q.min(axis=0))
    np.testing.assert_array_equal(found.highest, Q.max(axis=0))
    assert "2 parts" in found.notes(("a", "b"))[0]
    assert [one.code for one in found.findings()][-1] == "gaps"


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_a_part_in_time_is_half_open(rows: int) -> None:
    part = streamed(rows).within(1.0, 2.0).within(1.5)
    np.testing.assert_array_equal(part.read().time, T[(T >= 1.5) & (T < 2.0)])
    with pytest.raises(InputError, match=r"no sample between 6\.05 s and 6\.2 s"):
        streamed(rows).within(6.05, 6.2).read()


def test_a_single_row_is_no_log() -> None:
    with pytest.raises(InputError, match="1 rows are left"):
        survey(streamed(10, LOG.cut(0, 1)))
    with pytest.raises(InputError, match="chunk_rows is 0"):
        streamed(1, chunk_rows=0)
