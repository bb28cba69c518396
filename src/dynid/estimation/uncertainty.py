"""How sure an estimate is: classical, corrected for the colour of the residual, or by resampling time blocks.

All three are of the form ``B M B`` with ``B = (sum_j w_j^2 A_j^T A_j)^-1``.

* *classical* (Sousa and Cortesao 2014, 81-83): every row has its own independent noise, ``M = sum_j w_j^4 sigma_j^2
  A_j^T A_j``. On filtered data it is far too small: neighbouring rows then share one noise.
* *corrected*: the noise of joint ``j`` is stationary with a spectrum ``S_j(f)``, so that ``M = sum_j w_j^4 sum_f
  S_j(f) G_j(f)`` where ``G_j(f)`` is the part of ``A_j^T A_j`` at frequency ``f``. The spectrum comes from the
  residual, band by band,

      S_j(f) = |r_j(f)|^2 / (n_j(f) - h_j(f)),      h_j(f) = w_j^2 trace(B G_j(f)),

  where ``n_j`` counts real numbers in the band and ``h_j`` those that the fit has used up. Noise that a filter
  removed counts neither in ``S`` nor as information. One band over everything is the classical formula.
* *bootstrap*: time blocks are given random weights (Rubin 1981) and the fit is repeated on the stored triangles. It assumes
  nothing about the noise within a block or between joints, but needs a good number of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.linear import LinearProblem
from dynid.estimation.residuals import (
    CELLS_PER_OCTAVE,
    OCTAVES,
    Spectrum,
    cell_starts,
    channel_coefficients,
    channel_groups,
    residual_blocks,
    spectra_of,
    stretches,
)
from dynid.regression.factor import Regression
from dynid.regression.row_source import ALL

CovarianceKind: TypeAlias = Literal["classical", "corrected", "bootstrap"]
Influence: TypeAlias = Callable[[int, Array], Array]
"""What stands for the noise of each row, from the channel's index and the residuals; for least squares these themselves."""

LEAST_FREEDOM = 12.0
"""Bands are widened until at least this many real numbers are left in each after the fit."""
LEAST_BLOCKS = 8
REPLICAS = 400
LEAST_FREE = 0.05
"""Least share of a direction that must come from other blocks; below it a block decides alone and hides its noise."""


def check_kind(kind: str) -> None:
    """Refuse an unknown kind of covariance."""
    if kind not in get_args(CovarianceKind):
        raise UnknownNameError("covariance", kind, get_args(CovarianceKind))


def uncertainty(
    problem: LinearProblem,
    beta: Array,
    weights: Array,
    sigma: Array,
    kind: CovarianceKind,
    influence: Influence | None = None,
) -> tuple[Array, dict[str, Any]]:
    """Covariance of a weighted least-squares solution, and how it was found with the classical one beside it.

    ``weights`` are those of the channels in the fit and ``sigma`` the classical noise of each. Rows without an order in time
    (poses, energy differences, stored triangles) have no spectrum: there *corrected* is the classical formula.
    """
    classical = problem.covariance(weights, sigma)
    beside = {"classical_sigma": np.sqrt(np.diag(classical)).tolist()}
    if kind == "bootstrap":
        covariance, n_blocks = _bootstrap(problem, weights)
        return covariance, {**beside, "covariance": kind, "degrees_of_freedom": n_blocks - 1}
    if kind == "classical" or not problem.regression.timed or problem.seen.rank == 0:
        return classical, {**beside, "covariance": "classical"}
    inverse = problem.inverse_triangle(weights)
    spectra = _residual_spectra(problem, beta, influence)
    covariance, freedom = _coloured(problem, spectra, weights, inverse, inverse)
    return covariance, {**beside, "covariance": kind, "degrees_of_freedom": freedom}


def channel_noise(problem: LinearProblem, coefficients: tuple[Array, ...], influence: Influence) -> Array:
    """Standard deviation of what stands for the noise in each channel, one pass over the rows."""
    square, rows = np.zeros(len(coefficients)), problem.rows()
    for blocks in residual_blocks(problem.regression, coefficients):
        square += [float((influence(j, r) ** 2).sum()) for j, r in enumerate(blocks)]
    spent = problem.seen.rank * rows / max(rows.sum(), 1.0)
    return np.asarray(np.sqrt(square / np.maximum(rows - spent, 1.0)))


# Corrected ----------------------------------------------------------------------------------------


def coloured_covariance(
    problem: LinearProblem, rows: Iterable[list[Array]], weights: Array, whiten: Array, left: Array
) -> tuple[Array, float]:
    """``left (sum_j w_j^4 sum_f S_j(f) whiten^T G_j(f) whiten) left^T`` and its degrees of freedom.

    ``rows`` are stretches ``[x noise]`` of every channel and ``whiten`` turns the weighted normal matrix of ``x`` into the
    identity; for least squares both ``whiten`` and ``left`` are the inverse of its triangle.
    """
    return _coloured(problem, _spectra(problem, rows, ALL), weights, whiten, left)


def _coloured(
    problem: LinearProblem, spectra: Iterable[Spectrum], weights: Array, whiten: Array, left: Array
) -> tuple[Array, float]:
    mask = problem.seen.mask
    channels = [factor.channel for factor in problem.regression.factors]
    rank = problem.seen.rank
    meat, uncertain = np.zeros((rank, rank)), np.zeros(rank)
    # In the channel's own columns, which are far fewer than base parameters for most channels of a long chain: with
    # E = w_j x whiten the whitened part of a band is E^T G E, and its trace that of G E E^T.
    # Its columns begin with those of its own link, so that with a triangle of ``whiten`` E begins with zeros, too.
    for spectrum, channel, w in zip(spectra, channels, weights, strict=True):
        x = problem.base.regressor(channel.expansion)[:, mask]
        first = int(np.argmax(x.any(axis=0)))
        own = slice(0 if whiten[first:, :first].any() else first, None)
        E = w * x[:, first:] @ whiten[first:, own]
        outer = left[:, own] @ E.T
        total = np.zeros((channel.width, channel.width))
        for gram, power, left_over, cells in _bands(spectrum, E @ E.T):
            level = w * w * power / left_over
            total += level * gram
            uncertain += (level * _squares(spectrum, cells, gram, outer)) ** 2 / left_over
        meat[own, own] += E.T @ total @ E
    spread = left @ meat @ left.T
    variance = np.diag(spread)
    # Satterthwaite: the freedom of a sum of estimated variances, that of the middle parameter
    freedom = float(np.median(variance**2 / np.maximum(uncertain, 1e-300))) if variance.any() else float("inf")
    covariance = np.zeros((problem.base.n_base, problem.base.n_base))
    covariance[np.ix_(mask, mask)] = 0.5 * (spread + spread.T)
    return covariance, freedom


def _spectra(problem: LinearProblem, rows: Iterable[list[Array]], channels: slice) -> list[Spectrum]:
    """Power of some channels over their stretches ``[x noise]``."""
    factors = problem.regression.factors[channels]
    spectra = [Spectrum(factor.channel.width, CELLS_PER_OCTAVE * OCTAVES) for factor in factors]
    for blocks in rows:
        cells = cell_starts(len(blocks[0]))
        for spectrum, block in zip(spectra, blocks, strict=True):
            spectrum.add(block, cells)
    return spectra


def noise_grams(problem: LinearProblem, beta: Array, weights: Array) -> tuple[tuple[Array, ...], float]:
    """``N_j = sum_f S_j(f) G_j(f)`` over the own columns of every channel, and the degrees of freedom of the noise.

    This is what *corrected* needs of the rows, in a few numbers that add up over logs: for any weights

        covariance = B (sum_j w_j^4 X_j^T N_j X_j) B,     X_j: from base parameters to the columns of channel j

    Rows without an order in time give the classical ``N_j = sigma_j^2 G_j``.
    """
    regression = problem.regression
    if not regression.timed or problem.seen.rank == 0:
        sigma = problem.noise_sigma(beta, pooled=False)
        squares = [factor.R[:, :-1].T @ factor.R[:, :-1] for factor in regression.factors]
        return tuple(s * s * square for s, square in zip(sigma, squares, strict=True)), float(
            max(regression.n_rows - problem.seen.rank, 1)
        )
    inverse = problem.inverse_triangle(weights)
    mask = problem.seen.mask
    grams, freedom = [], 0.0
    for spectrum, factor, w in zip(_residual_spectra(problem, beta, None), regression.factors, weights, strict=True):
        E = w * problem.base.regressor(factor.channel.expansion)[:, mask] @ inverse
        total: Array = np.zeros((factor.channel.width, factor.channel.width))
        for gram, power, left_over, _ in _bands(spectrum, E @ E.T):
            total = total + power / left_over * gram
            freedom += left_over
        grams.append(total)
    return tuple(grams), freedom


def _residual_spectra(problem: LinearProblem, beta: Array, influence: Influence | None) -> Iterator[Spectrum]:
    """Of one channel after another, from the rows or from what came back of them where they were made elsewhere."""
    regression = problem.regression
    coefficients = channel_coefficients(regression, problem.base, beta)
    if regression.cells is not None and influence is None:
        yield from spectra_of(regression.cells, coefficients)
        return
    for group in channel_groups([factor.channel.width for factor in regression.factors], regression.n_samples):
        yield from _spectra(problem, _residual_rows(regression, coefficients, influence, group), group)


def _residual_rows(
    regression: Regression, coefficients: tuple[Array, ...], influence: Influence | None, channels: slice
) -> Iterator[list[Array]]:
    """Stretches ``[x residual]`` of some channels."""
    for source in regression.logs():
        for blocks in stretches(source, channels):
            for j, (block, c) in enumerate(zip(blocks, coefficients[channels], strict=True), channels.start):
                residual = block[:, -1] - block[:, :-1] @ c
                block[:, -1] = residual if influence is None else influence(j, residual)
            yield blocks


def _bands(spectrum: Spectrum, outer: Array) -> Iterator[tuple[Array, float, float, Sequence[int]]]:
    """Of every band its part of the normal matrix, the power of the residual, the numbers left over in it and its cells.

    Neighbouring cells are joined from low to high until enough numbers are left in each band after the fit, ``n_j(f) - h_j(f)``;
    ``outer`` turns a part of the normal matrix into what the fit has used up.
    """
    left_over = spectrum.count - np.tensordot(spectrum.gram, outer, axes=2)
    bands: list[list[int]] = []
    rest: list[int] = []
    for cell in np.flatnonzero(spectrum.count).tolist():
        rest.append(cell)
        if left_over[rest].sum() >= LEAST_FREEDOM:
            bands.append(rest)
            rest = []
    if rest:  # what is left at the top joins the band below it
        bands.append([*bands.pop(), *rest] if bands else rest)
    for cells in bands:
        yield (
            spectrum.gram[cells].sum(axis=0),
            float(spectrum.power[cells].sum()),
            max(float(left_over[cells].sum()), 1.0),
            cells,
        )


def _squares(spectrum: Spectrum, cells: Sequence[int], gram: Array, outer: Array) -> Array:
    """Diagonal of ``outer gram outer^T``; from parts of ``X`` in ``gram = X X^T`` where these are few columns."""
    thin = [part for cell in cells for part in spectrum.thin[cell] or ()]
    few = all(spectrum.thin[cell] is not None for cell in cells) and 2 * sum(part.shape[1] for part in thin) <= len(gram)
    if not few:
        return np.asarray(np.einsum("ij,ij->i", outer @ gram, outer))
    return np.asarray(sum((((outer @ part) ** 2).sum(axis=1) for part in thin), np.zeros(len(outer))))


# Bootstrap ----------------------------------------------------------------------------------------


def _bootstrap(problem: LinearProblem, weights: Array) -> tuple[Array, int]:
    """Covariance over replicas with exponential weights of the time blocks, mean one."""
    regression, mask = problem.regression, problem.seen.mask
    counts = {len(factor.blocks) for factor in regression.factors}
    n_blocks = regression.n_blocks
    if n_blocks < LEAST_BLOCKS:
        raise InputError(
            f"the data hold {n_blocks} time blocks, the block bootstrap needs at least {LEAST_BLOCKS}; "
            "use the corrected covariance, or record longer (a chain of tens of joints keeps fewer blocks whatever its length)"
        )
    aligned = len(counts) == 1
    inverse = problem.inverse_triangle(weights)
    rank = problem.seen.rank
    grams, moments = [], []
    for j, (factor, w) in enumerate(zip(regression.factors, weights, strict=True)):
        gram = np.zeros((n_blocks, rank, rank))
        moment = np.zeros((n_blocks, rank))
        for k, triangle in enumerate(factor.blocks):
            block = w * regression.channel_matrix(j, problem.base, triangle)
            Q = block[:, :-1][:, mask] @ inverse
            y = block[:, -1] - block[:, :-1][:, ~mask] @ problem.held[~mask]
            gram[k], moment[k] = Q.T @ Q, Q.T @ y
        grams.append(gram)
        moments.append(moment)
    if aligned:  # a time block is drawn for all joints together, so that what they share in it stays together
        grams, moments = [np.sum(grams, axis=0)], [np.sum(moments, axis=0)]
    fit = np.sum(moments, axis=(0, 1))  # whitened: all blocks together have the identity for their normal matrix
    moments = [_unfitted(gram, moment, fit) for gram, moment in zip(grams, moments, strict=True)]
    draws = np.random.default_rng(0).exponential(size=(REPLICAS, len(grams), n_blocks))
    G = np.tensordot(draws, np.array(grams), 2)
    m = np.tensordot(draws, np.array(moments), 2)
    whitened = np.linalg.solve(G, m[..., None])[..., 0]
    values = whitened @ inverse.T
    covariance = np.zeros((problem.base.n_base, problem.base.n_base))
    covariance[np.ix_(mask, mask)] = np.cov(values, rowvar=False).reshape(rank, rank)
    return covariance, n_blocks


def _unfitted(gram: Array, moment: Array, fit: Array) -> Array:
    """Moments of every block with its residual made as large as its noise.

    A block pulls the fit towards itself: with the whitened part ``H`` of the normal matrix its residual moment has only
    ``1 - H`` of the variance of its noise (Bell and McCaffrey 2002), so it is multiplied by ``(1 - H)^-1/2``.
    """
    values, vectors = np.linalg.eigh(gram)
    grow = 1.0 / np.sqrt(np.clip(1.0 - values, LEAST_FREE, 1.0))
    residual = moment - gram @ fit
    along = np.einsum("bij,bi->bj", vectors, residual)
    return np.asarray(gram @ fit + np.einsum("bij,bj->bi", vectors, grow * along))
