"""Covariance against the scatter of blocks of time, which knows of errors that channels share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array, freeze
from dynid.estimation.result import Estimate
from dynid.regression.row_source import RowSource
from dynid.signals.samples import Samples

BLOCKS = 30
"""Blocks of time of all logs together whose scatter is looked at."""


def widen_by_blocks(found: Estimate, rows: RowSource, samples: Sequence[Samples]) -> tuple[Estimate, tuple[str, ...]]:
    """The estimate with its covariance as large as the scatter of blocks of time asks for.

    Channels of a walking robot share what their rows have wrong: the acceleration of the base, the point that a foot touches. With
    the gradients ``g_b = sum_j w_j^2 X_bj^T r_bj`` of blocks and the normal matrix ``H``, ``H^-1 (sum_b g_b g_b^T) H^-1`` knows of
    that, but is noisy in each value: the middle of its ratios to the covariance is one factor for all values, never below one.
    """
    base, w = found.base, 1.0 / np.where(found.residual_rms > 0.0, found.residual_rms, np.inf)
    bases = [base.regressor(channel.expansion) for channel in rows.channels]
    H, gradients, count = np.zeros((base.n_base, base.n_base)), list[Array](), 0
    for log, one in zip(rows.by_log(), samples, strict=True):
        edges = np.linspace(one.time[0], one.time[-1], max(2, BLOCKS // len(samples)) + 1)[1:-1]
        own = np.zeros((len(edges) + 1, base.n_base))
        for chunk in log.passes():
            assert chunk.time is not None
            place = np.searchsorted(edges, chunk.time)
            for block, X, weight in zip(chunk.blocks, bases, w, strict=True):
                A = weight * block[:, :-1] @ X
                H += A.T @ A
                np.add.at(own, place, A * (weight * block[:, -1] - A @ found.base_values)[:, None])
                count += int(np.count_nonzero(block.any(axis=1)))
        gradients.extend(own)
    seen, g = found.seen, np.array(gradients) - np.mean(gradients, axis=0)
    scatter = g[:, seen] @ np.linalg.pinv(H[np.ix_(seen, seen)], hermitian=True)
    free = len(g) / max(len(g) - 1, 1) * count / max(count - int(np.count_nonzero(seen)), 1)
    sigma = found.sigma[seen]
    ratio = free * (scatter**2).sum(axis=0)[sigma > 0.0] / sigma[sigma > 0.0] ** 2
    factor = float(np.median(ratio)) if len(ratio) else 1.0
    if not (np.isfinite(factor) and factor > 1.0):
        return found, ()
    note = f"intervals are {np.sqrt(factor):.3g} times as wide as each channel by itself would have them: blocks of time scatter so"
    return replace(found, covariance=freeze(factor * found.covariance)), (note,) if factor > 1.05 else ()
