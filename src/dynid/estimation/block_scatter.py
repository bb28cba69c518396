"""Covariance against the scatter of rows: blocks of time know of errors that channels share, channels and contacts of those that repeat.

With the gradients ``g_k = sum w_j^2 X^T r`` of groups of rows and the normal matrix ``H``, ``H^-1 (sum_k g_k g_k^T) H^-1`` is a covariance
that no channel by itself knows of. It is noisy in each value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.estimation.result import Estimate
from dynid.regression.row_source import RowSource
from dynid.signals.samples import Samples

BLOCKS, LONG_BLOCKS = 30, 12
"""Blocks of time of all logs together whose scatter is looked at: in the middle of all values, and for each value by itself, for which they
must be longer than a step of the robot."""
EXACT = 1e-4
"""Part of its torque that counts as noise of a channel at least."""
MOST = 100.0
"""Largest ratio of variances that one value has a say with in the factor of all."""


def widen_by_blocks(
    found: Estimate, rows: RowSource, samples: Sequence[Samples], torque: Array, share: float = 1.0
) -> tuple[Estimate, tuple[str, ...]]:
    """The estimate with its covariance as large as the scatter of its rows asks for.

    Channels of a walking robot share what their rows have wrong: the acceleration of the base, the point that a foot touches. Blocks
    of time show it; one factor for all values follows from the middle of their ratios to the covariance. What repeats with every
    step is the same in all blocks, but pulls channels, and samples with other feet on the ground, in other directions. Where they are
    apart on average by more than noise explains, all values get that factor, and each value its own pull on top.

    Consistent links hold an estimate away from its best fit, where all gradients add up to zero. As far as noise explains, that is no
    error of the rows, and they are looked at around the best fit; where links cannot be what rows ask for, it shows what these have wrong.

    No row counts as better known than to a part ``EXACT`` of ``torque``, the root mean square of its channel: logs of a simulation may be
    exact, solvers are not. Rows may be a ``share`` of those that the estimate is from.
    """
    seen, noise = found.seen & (found.sigma > 0.0), np.maximum(found.residual_rms, EXACT * torque)
    H, groups, count = _gradients(found, found.base_values, rows, samples, noise)
    inverse = _inverse(H[np.ix_(seen, seen)])
    if (noise > found.residual_rms).any():
        covariance = np.zeros_like(found.covariance)
        covariance[np.ix_(seen, seen)] = share * inverse
        found = replace(found, covariance=freeze(covariance))
    back = np.zeros(len(seen))
    back[seen] = inverse @ np.sum(groups[1], axis=0)[seen]
    if back.any() and _by_chance(found, back, seen):
        H, groups, count = _gradients(found, found.base_values + back, rows, samples, noise)
    free = count / max(count - int(np.count_nonzero(seen)), 1)
    variance = found.sigma[seen] ** 2 / share
    in_time, *repeated = (_ratios(own[:, seen], inverse, variance, free) for own in groups)
    factor = max(float(np.median(in_time)), 1.0) if len(variance) else 1.0
    repeated = [own / factor for own in repeated]
    pulled = sum((np.maximum(own - 1.0, 0.0) for own in repeated), np.zeros(len(variance)))
    factor *= max(1.0, *(float(np.minimum(own, MOST).mean()) if len(own) else 1.0 for own in repeated))
    scale = np.ones(len(found.sigma))
    scale[seen] = np.sqrt(factor * (1.0 + pulled))
    wider = float(np.median(scale[seen])) if len(variance) else 1.0
    if not wider > 1.0 and not pulled.any():
        return found, ()
    wide = replace(found, covariance=freeze(scale[:, None] * found.covariance * scale))
    note = (
        f"intervals are {wider:.3g} times as wide as noise of each channel by itself would have them: blocks of time, channels, or samples "
        "with other feet on the ground disagree by so much"
    )
    return wide, (note,) if wider > 1.025 else ()


def _ratios(gradients: Array, inverse: Array, variance: Array, free: float) -> Array:
    """Scatter of a kind of groups over the variance, value by value."""
    if len(gradients) < 2 or not len(variance):
        return np.zeros(len(variance))
    own = free * len(gradients) / (len(gradients) - 1) * ((gradients @ inverse) ** 2).sum(axis=0)
    return np.asarray(np.nan_to_num(own / variance, posinf=0.0))


def _inverse(H: Array) -> Array:
    """Of a normal matrix, in units of its own columns."""
    size = np.sqrt(np.diagonal(H))
    size = np.where(size > 0.0, size, np.inf)
    return np.asarray(np.linalg.pinv(H / np.outer(size, size), hermitian=True) / np.outer(size, size))


def step_beside(
    found: Estimate, rows: RowSource, samples: Sequence[Samples], changed: Sequence[RowSource]
) -> tuple[Array, Array, Array]:
    """Values beside the base parameters that rows ask for, and their covariance as the scatter of rows has it.

    Args:
        found: an estimate from the rows.
        rows: the rows.
        samples: their samples.
        changed: the same rows with each of the values changed by its unit.

    Returns:
        the values and their covariance, in these units, and how base values move with them, ``(base values, values)``, each direction
            by one standard deviation.
    """
    H, groups, count = _gradients(found, found.base_values, rows, samples, found.residual_rms, changed, LONG_BLOCKS)
    inverse, n = _inverse(H), len(changed)
    variance = np.diagonal(inverse)
    free = count / max(count - len(H), 1)
    in_time, *repeated = (_ratios(own, inverse, variance, free)[-n:] for own in groups)
    scale = np.maximum(in_time, 1.0)
    scale = np.sqrt(scale + sum((np.maximum(own - scale, 0.0) for own in repeated), np.zeros(n)))
    step = inverse @ np.sum(groups[1], axis=0)
    spread = scale[:, None] * inverse[-n:, -n:] * scale
    sizes, axes = np.linalg.eigh(spread)
    moves = inverse[:-n, -n:] @ np.linalg.pinv(inverse[-n:, -n:], hermitian=True) @ (axes * np.sqrt(np.maximum(sizes, 0.0)))
    return step[-n:], spread, moves


def _by_chance(found: Estimate, step: Array, seen: BoolArray) -> bool:
    """Whether noise explains a step of the estimate: it is no longer than one standard deviation a value, by their covariance."""
    size = found.sigma[seen]
    spread = found.covariance[np.ix_(seen, seen)] / np.outer(size, size)
    length = step[seen] / size @ np.linalg.pinv(spread, hermitian=True) @ (step[seen] / size)
    return bool(length <= np.count_nonzero(seen))


def _gradients(
    found: Estimate,
    values: Array,
    rows: RowSource,
    samples: Sequence[Samples],
    noise: Array,
    changed: Sequence[RowSource] = (),
    blocks: int = BLOCKS,
) -> tuple[Array, list[Array], int]:
    """At base values: the normal matrix, gradients of blocks of time, of channels and of sets of feet on the ground, the number of rows.

    Behind the base parameters stand values that ``changed`` rows have one more of, each by its unit.
    """
    base, w = found.base, 1.0 / np.where(noise > 0.0, noise, np.inf)
    bases = [base.regressor(channel.expansion) for channel in rows.channels]
    left = [np.append(-X @ values, 1.0) for X in bases]
    n, in_time, count = base.n_base + len(changed), list[Array](), 0
    H, channels = np.zeros((n, n)), [np.zeros(n) for _ in bases]
    standing: dict[int, Array] = defaultdict(lambda: np.zeros(n))
    for log, one, *others in zip(rows.by_log(), samples, *(source.by_log() for source in changed), strict=True):
        edges = np.linspace(one.time[0], one.time[-1], max(2, blocks // len(samples)) + 1)[1:-1]
        own = np.zeros((len(edges) + 1, n))
        feet = None if one.contact is None else (one.contact > 0.0) @ 2 ** np.arange(one.contact.shape[1])
        for chunk, *moved in zip(log.passes(), *(other.passes() for other in others), strict=True):
            assert chunk.time is not None
            place = np.searchsorted(edges, chunk.time)
            total = np.zeros((len(chunk.time), n))
            for d, (block, X, weight) in enumerate(zip(chunk.blocks, bases, w, strict=True)):
                residual = block @ left[d]
                beside = [residual - other.blocks[d] @ left[d] for other in moved]
                A = weight * np.column_stack([block[:, :-1] @ X, *beside])
                H += A.T @ A
                gradient = A * (weight * residual)[:, None]
                total += gradient
                channels[d] += gradient.sum(axis=0)
                count += int(np.count_nonzero(block.any(axis=1)))
            np.add.at(own, place, total)
            if feet is not None:
                state = feet[np.clip(np.searchsorted(one.time, chunk.time), 0, len(feet) - 1)]
                for code in np.unique(state):
                    standing[int(code)] += total[state == code].sum(axis=0)
        in_time.extend(own)
    middle = np.mean(in_time, axis=0)
    groups = [one - middle for one in in_time], channels, list(standing.values())
    return H, [np.reshape(own, (-1, n)) for own in groups], count
