"""Columns in memory, walked in batches."""

from __future__ import annotations

import numpy as np

from dynid.io.logs.table import array_table, checked_arrays

N = 30
TIME = np.arange(N) * 0.01
Q = np.random.default_rng(3).normal(size=(N, 2))


def test_a_table_of_arrays_is_walked_in_batches():
    table = array_table("memory", checked_arrays("here", {"t": TIME, "q": Q}))
    assert (table.n_rows, table.shapes) == (N, {"t": (), "q": (2,)})
    assert [len(batch["q"]) for batch in table.read(["q"], 20, 0)] == [20, 10]
