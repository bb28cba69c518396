"""Parts of output error that do not depend on what is simulated: a step within bounds, and scores whose rows depend on one another."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from dynid.arrays import Array


def bounded_solution(A: Array, b: Array, low: Array, high: Array) -> Array:
    """``argmin |A x + b|`` within bounds, columns scaled to length one."""
    size = np.linalg.norm(A, axis=0)
    size[size == 0.0] = 1.0
    # a direction that nothing determines is left where it is by this much
    A, b = np.vstack([A / size, 1e-6 * np.eye(len(size))]), np.concatenate([b, np.zeros(len(size))])
    found = scipy.optimize.lsq_linear(A, -b, (np.minimum(low, 0.0) * size - 1e-12, np.maximum(high, 0.0) * size + 1e-12))
    return np.asarray(np.clip(found.x / size, np.minimum(low, 0.0), np.maximum(high, 0.0)))


def add_scores(J: Array, r: Array, lags: int, white: Array, meat: Array) -> None:
    """Add the second moments of the scores, for independent rows and for rows that depend on their neighbours (Bartlett).

    Joints are taken as independent of one another.
    """
    for j in range(r.shape[1]):
        score = J[:, j] * r[:, j, None]
        white += J[:, j].T @ J[:, j] * float(np.mean(r[:, j] ** 2))
        meat += score.T @ score
        for lag in range(1, min(lags, len(r) - 1) + 1):
            cross = score[lag:].T @ score[:-lag]
            meat += (1.0 - lag / (lags + 1.0)) * (cross + cross.T)
