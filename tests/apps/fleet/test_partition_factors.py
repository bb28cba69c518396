"""Both parts of a log in time: a part without rows is none, any other refusal is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dynid.apps.fleet.partition_factors import GAP_S, factor_logs, held_out_start
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
    made = factor_logs(source, [cut])
    assert made.fitted is not None
    assert made.held_out is not None
    assert made.fitted.n_samples == np.count_nonzero(time < cut - GAP_S)
    assert made.held_out.n_samples == np.count_nonzero(time >= cut + GAP_S)
    assert made.regression.n_samples == len(time)


@pytest.mark.parametrize(("cut", "empty"), [(-1.0, "fitted"), (100.0, "held_out")])
def test_a_part_without_rows_is_none(cut: float, empty: str) -> None:
    made = factor_logs(rows(), [cut])
    assert getattr(made, empty) is None
    assert made.regression.n_samples == 200


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
