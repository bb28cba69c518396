"""Channels: the families of rows that are kept apart, and the few columns each of them really has.

Rows of joint ``j`` see only the links it carries, and of those columns many are zero or combinations of others in *every*
state: the mass of the last link never enters the last joint, say. So a channel keeps its own independent columns alone,

    W_j = W_j[:, columns] expansion,

which is exact and halves the work of triangularising.

Which columns of a matrix are independent, decided in a given order of preference.

Walking through the columns of ``W`` in order, a column is kept if it is independent of those kept before it. The others are
combinations of the kept ones, so ``W = W[:, kept] K``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TypeAlias

import numpy as np
import scipy.linalg

from dynid.arrays import Array, IntArray, freeze, frozen_view
from dynid.dynamics.inverse_dynamics import random_states
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.structure import structure_of
from dynid.model.robot import Robot


class Channel:
    """One family of rows, such as the torque of one joint.

    Args:
        name: of the family.
        columns: indices of its independent columns.
        expansion: matrix from those columns to all columns.

    Examples:
        >>> import dynid
        >>> from dynid.regression.channels import Channel
        >>> robot = dynid.demo_robot()
        >>> channel = dynid.build_regression(robot, dynid.demo_samples()).factors[6].channel
        >>> isinstance(channel, Channel), channel.width < len(robot.parameters)
        (True, True)
    """

    def __init__(self, name: str, columns: IntArray, expansion: Array) -> None:
        self.name, self.columns = name, columns
        self._n = expansion.shape[1]
        filled = np.flatnonzero(expansion.any(axis=0))
        others = np.setdiff1d(filled, columns)
        self._picks = np.array_equal(expansion[:, columns], np.eye(len(columns)))
        # of a long chain the matrices of all joints are large and mostly zero: what is neither zero nor a choice is kept
        self._others = others if self._picks else filled
        self._combination = freeze(expansion[:, self._others])

    @property
    def expansion(self) -> Array:
        """``(own columns, all columns)``."""
        found = np.zeros((self.width, self._n))
        if self._picks:
            found[np.arange(self.width), self.columns] = 1.0
        found[:, self._others] = self._combination
        return frozen_view(found)

    def values(self, parameters: Array) -> Array:
        """``expansion @ parameters``, the values of the own columns."""
        own = self._combination @ parameters[self._others]
        return np.asarray(parameters[self.columns] + own if self._picks else own)

    @property
    def width(self) -> int:
        return len(self.columns)

    def matches(self, other: Channel) -> bool:
        """Whether factors of the two can be merged."""
        return self is other or (
            self.name == other.name
            and np.array_equal(self.columns, other.columns)
            and np.allclose(self.expansion, other.expansion, rtol=1e-9, atol=1e-12)
        )


def full_channel(name: str, n_parameters: int) -> Channel:
    """A channel that keeps every column.

    Args:
        name: of the family of rows.
        n_parameters: number of columns.

    Examples:
        >>> import dynid
        >>> from dynid.regression.channels import full_channel
        >>> full_channel("force", 3).width
        3
    """
    return Channel(name, freeze(range(n_parameters), dtype=np.int64), freeze(np.eye(n_parameters)))


def torque_channels(robot: Robot) -> tuple[Channel, ...]:
    """One channel per torque; found once for all robots of one structure."""
    return structure_of(robot).once(find_torque_channels)


def find_torque_channels(robot: Robot) -> tuple[Channel, ...]:
    """The independent columns of every torque, from its rows at random states."""
    order = robot.parameters.grouping()
    # more states than any torque has columns: its bodies' ten each, and the effects that act on it
    if robot.loops:  # any motor may move any body
        n_states = len(robot.parameters) + 40
    else:
        carried = 10 * np.bincount(robot.tree.support, minlength=robot.n_dof)
        n_states = int((carried + np.count_nonzero(robot.effect_incidence, axis=1)).max()) + 40
    states = random_states(robot, n_states, seed=1)
    seen, rows = _seen_rows(robot, states)
    place_of = np.argsort(order)  # place of every column in the order of preference
    channels = []
    for name, own, Y in zip(robot.dof_names, seen, rows, strict=True):
        found = independent_columns(Y, freeze(np.argsort(place_of[own]), dtype=np.int64))
        kept = np.sort(found.kept)
        expansion = np.zeros((len(kept), len(robot.parameters)))
        expansion[:, own] = found.K[np.argsort(found.kept)]
        channels.append(Channel(name, freeze(own[kept], np.int64), expansion))
    return tuple(channels)


_STATES_AT_ONCE = 128


def _seen_rows(robot: Robot, states: Sequence[Array]) -> tuple[list[IntArray], list[Array]]:
    """Columns of each torque that are not zero, and its rows over these at as many states as it needs and 40 more.

    A long chain has many columns, of which every joint sees a part: they are made at a few states at a time.
    """

    def made() -> Iterator[tuple[int, Array]]:
        for start in range(0, len(states[0]), _STATES_AT_ONCE):
            yield start, torque_regressor(robot, *(one[start : start + _STATES_AT_ONCE] for one in states))

    filled = reduce(or_, [(Y != 0.0).any(axis=0) for _, Y in made()])
    seen = [np.flatnonzero(own) for own in filled]
    parts: list[list[Array]] = [[] for _ in seen]
    for start, Y in made():
        for d, own in enumerate(seen):
            wanted = len(own) + 40 - start
            if wanted > 0:
                parts[d].append(Y[:wanted, d][:, own])
    return seen, [np.concatenate(own) for own in parts]


ZERO_COLUMN = 1e-12
"""A column below this fraction of the largest one is round-off of an exact zero."""
SPANNED = 1e-8
"""A direction that unit columns show by less than this fraction of the one that they show most is round-off."""
MANY = 200
"""Columns from which the decision is first tried on their products, which is several times faster, and taken where it is clear."""
_CLEAR, _EXACT = 1e-4, 1e-10
"""Part of a unit column outside the span of others that products show beyond doubt, and that of a column which is a combination."""
_BLOCK = 16


@dataclass(frozen=True)
class Independence:
    """``W = W[:, kept] K`` and how clear the decision was."""

    kept: IntArray
    K: Array
    smallest_kept: float
    """Smallest relative part of a kept column outside the span of those before it."""
    largest_dropped: float
    """The same for the dropped ones: round-off, when the decision is clear."""


def triangle_of(W: Array) -> Array:
    """Upper triangle ``R`` with ``R^T R = W^T W``."""
    return np.asarray(np.linalg.qr(W, mode="r"))


def orthonormal_basis(W: Array) -> Array:
    """Of the space of the columns, without directions that are round-off: those below ``SPANNED`` times the largest, over unit columns."""
    if not W.size:
        return np.zeros((len(W), 0))
    size = np.linalg.norm(W, axis=0)
    Q, R = np.linalg.qr(W / np.where(size > 0.0, size, 1.0))
    diagonal = np.abs(np.diag(R))
    if len(diagonal) == W.shape[1] and diagonal.min() > SPANNED * diagonal.max():
        return np.asarray(Q)
    U, s, _ = np.linalg.svd(R, full_matrices=False)
    return np.asarray(Q @ U[:, s > SPANNED * s[0]])


def independent_columns(W: Array, order: IntArray, tolerance: float = 1e-8, usual: Array | None = None) -> Independence:
    """Kept columns in ``order`` and the combinations that give the rest.

    Of a column shorter than ``tolerance`` times its ``usual`` length, where that is known, nothing is kept either.
    """
    many = len(order) >= MANY
    # where there are hardly more rows than columns, products of many take less time than their triangle
    R = triangle_of(W) if W.shape[0] > (2 if many else 1) * W.shape[1] else np.array(W)
    norms = np.linalg.norm(R, axis=0)
    scale = np.where(norms > ZERO_COLUMN * norms.max(initial=0.0), norms, np.inf)
    share = np.ones(len(norms)) if usual is None else np.minimum(norms / np.where(usual > 0.0, usual, norms + 1e-300), 1.0)
    columns = R / scale  # unit columns: the decision does not depend on units; exact zeros stay zero
    found = _by_products(columns, order, tolerance, share) if many else None
    kept, K, smallest, largest = found or _by_columns(columns, order, tolerance, share)
    # round-off is told from a small coefficient between unit columns, where it does not depend on units
    K[np.abs(K) < 1e-10 * np.abs(K).max(axis=0, initial=0.0)] = 0.0
    finite = np.where(np.isfinite(scale), scale, 0.0)
    K = K * finite / finite[kept, None] if kept else K
    K[:, kept] = np.eye(len(kept))
    return Independence(freeze(kept, dtype=np.int64), freeze(K), smallest, largest)


_Decision: TypeAlias = tuple[list[int], Array, float, float]
"""Columns kept, all columns as combinations of these, smallest part kept and largest part dropped."""


def _by_columns(columns: Array, order: IntArray, tolerance: float, share: Array) -> _Decision:
    """Column after column, each orthogonal to those kept before it (Gram-Schmidt)."""
    basis = np.zeros((len(columns), min(columns.shape)))
    kept: list[int] = []
    smallest, largest = 1.0, 0.0
    for column in order:
        x = columns[:, column].copy()
        known = basis[:, : len(kept)]
        for _ in range(2):  # once more, so that what is left is orthogonal to working precision
            x -= known @ (known.T @ x)
        rest = float(np.linalg.norm(x))
        if min(rest, share[column]) > tolerance and len(kept) < basis.shape[1]:
            basis[:, len(kept)] = x / rest
            kept.append(int(column))
            smallest = min(smallest, rest)
        else:
            largest = max(largest, rest * share[column])
    Q = basis[:, : len(kept)]
    triangle = np.triu(Q.T @ columns[:, kept])
    K = scipy.linalg.solve_triangular(triangle, Q.T @ columns) if kept else np.zeros((0, columns.shape[1]))
    return kept, K, smallest, largest


def _by_products(columns: Array, order: IntArray, tolerance: float, share: Array) -> _Decision | None:
    """The same from the products of the columns, by a Cholesky factor of the kept ones; None where these leave a doubt.

    Products hold half of the digits, so a column is kept only where its part outside the others is large, and dropped only where
    the columns themselves confirm that it is a combination of those kept before it.
    """
    X, n = columns[:, order], len(order)
    G = X.T @ X
    L, kept, smallest = np.zeros((n, n)), list[int](), 1.0
    for start in range(0, n, _BLOCK):
        block, k = slice(start, min(start + _BLOCK, n)), len(kept)
        Z = scipy.linalg.solve_triangular(L[:k, :k], G[kept, block], lower=True, check_finite=False) if k else G[:0, block]
        S = G[block, block] - Z.T @ Z  # what is left of the block beside the columns kept before it
        inside: list[Array] = []
        for j in range(len(S)):
            part = float(np.sqrt(max(S[j, j], 0.0)))
            if part <= max(tolerance, _CLEAR) or share[order[start + j]] <= tolerance:
                continue
            inside.append(S[j] / part)
            S -= inside[-1][:, None] * inside[-1]
            L[len(kept), :k] = Z[:, j]
            L[len(kept), k : len(kept) + 1] = [row[j] for row in inside]
            kept.append(start + j)
            smallest = min(smallest, part)
    others = np.setdiff1d(np.arange(n), kept)
    factor = L[: len(kept), : len(kept)], True
    chosen, dependent = X[:, kept], X[:, others]
    C = scipy.linalg.cho_solve(factor, G[np.array(kept, dtype=np.int64)[:, None], others], check_finite=False)
    # once more on what is left, which restores the digits that products lose
    C += scipy.linalg.cho_solve(factor, chosen.T @ (dependent - chosen @ C), check_finite=False)
    rest = np.linalg.norm(dependent - chosen @ C, axis=0)
    before = np.array(kept, dtype=np.int64)[:, None] < others
    if rest.max(initial=0.0) > min(_EXACT, tolerance) or np.abs(C[~before]).max(initial=0.0) > _EXACT:
        return None
    K = np.zeros((len(kept), columns.shape[1]))
    K[:, order[others]] = np.where(before, C, 0.0)
    K[:, order[kept]] = np.eye(len(kept))
    return order[kept].tolist(), K, smallest, float((rest * share[order[others]]).max(initial=0.0))
