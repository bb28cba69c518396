"""Fewer points of a long signal with every peak still there: in each stretch of rows the lowest and the highest stay."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, IntArray


def envelope_rows(signals: Array, most: int) -> IntArray:
    """At most about ``most`` rows, ascending: the ends, and of each stretch where any column is lowest and highest."""
    n, columns = signals.shape
    if n <= most:
        return np.arange(n, dtype=np.int64)
    stretches = max(1, (most - 2) // (2 * columns))
    length = -(-n // stretches)
    padded = np.full((stretches * length, columns), np.nan)
    padded[:n] = signals
    blocks = padded.reshape(stretches, length, columns)
    start = (np.arange(stretches) * length)[:, None]
    empty = start[:, 0] >= n
    low = start + np.argmin(np.where(np.isnan(blocks), np.inf, blocks), axis=1)
    high = start + np.argmax(np.where(np.isnan(blocks), -np.inf, blocks), axis=1)
    kept = np.concatenate([low[~empty].ravel(), high[~empty].ravel(), [0, n - 1]])
    return np.unique(kept[kept < n]).astype(np.int64)


def spread_rows(signal: Array, most: int) -> IntArray:
    """At most ``most`` rows that cover the values of a signal evenly in rank, its extremes included."""
    order = np.argsort(signal, kind="stable")
    if len(order) <= most:
        return order.astype(np.int64)
    return order[np.unique(np.linspace(0, len(order) - 1, most).round().astype(np.int64))].astype(np.int64)
