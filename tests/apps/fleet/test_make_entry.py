"""Both parts of a log in time: a part without rows is none, any other refusal is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dynid.apps.fleet.make_entry import GAP_S, factor_logs, held_out_start
from dynid.errors import InputError
from dynid.io.demo import demo_samples
from dynid.regression.row_source import Chunk, WrappedRows
from dynid.regression.torque_rows import TorqueRows
from small_fleet import small_robot


def rows(seconds: float = 2.0) -> TorqueRows:
    robot = small_robot()
    return TorqueRows(robot, (demo_samples(robot, seconds=seconds, rate_hz=100.0),))


def test_rows_are_known_before_the_cut_and_unseen_after_it() -> None:
    source = rows()
    (time,) = (one.time for one in source.samples)
    cut = held_out_start(time[0], time[-1])
    whole, fitted, held_out = factor_logs(source, [cut])
    assert fitted is not None
    assert held_out is not None
    assert fitted.n_samples == np.count_nonzero(time < cut - GAP_S)
    assert held_out.n_samples == np.count_nonzero(time >= cut + GAP_S)
    assert whole.n_samples == len(time)


@pytest.mark.parametrize(("cut", "empty"), [(-1.0, 1), (100.0, 2)])
def test_a_part_without_rows_is_none(cut: float, empty: int) -> None:
    whole, *parts = factor_logs(rows(), [cut])
    assert parts[empty - 1] is None
    assert whole.n_samples == 200


class Failing(WrappedRows):
    """Rows that are refused on the second pass over them."""

    passed = 0

    def with_samples(self, samples: object) -> Failing:
        return replace(self, source=self.source.with_samples(samples))  # type: ignore[arg-type]

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        type(self).passed += 1
        if type(self).passed > 1:
            raise InputError("log.parquet: row group 3 cannot be read")
        return self.source.passes(chunk_rows)


def test_a_log_that_cannot_be_read_is_not_taken_for_an_empty_part() -> None:
    with pytest.raises(InputError, match="row group 3 cannot be read"):
        factor_logs(Failing(rows()), [1.0])
