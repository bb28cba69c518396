"""Compiled loops of the online estimator: choose columns, fold rows into a triangle, decide what it shows, solve for it.

All work is on rows of a C-ordered array, so that the inner loops run along memory without a reduction.
"""

from __future__ import annotations

import numpy as np

from dynid.compiled import njit

_compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})


@_compiled
def choose_columns(flat, shapes, first_entry, source, target, factor, weights, out) -> None:  # type: ignore[no-untyped-def]
    """Blocks ``[W tau]``, given column by column one after the other, over chosen columns into ``out``, which is zero.

    Entry ``e`` of a channel adds ``factor[e]`` times its column ``source[e]`` to column ``target[e]``.
    """
    row, start = 0, 0
    for j in range(len(shapes)):
        n, width = shapes[j, 0], shapes[j, 1]
        for e in range(first_entry[j], first_entry[j + 1]):
            place, column, times = start + source[e] * n, target[e], weights[j] * factor[e]
            for i in range(n):
                out[row + i, column] += times * flat[place + i]
        place = start + (width - 1) * n
        for i in range(n):
            out[row + i, -1] = weights[j] * flat[place + i]
        row += n
        start += n * width


@_compiled
def fold_rows(R, rows, buffer) -> None:  # type: ignore[no-untyped-def]
    """Triangle of ``R`` stacked on ``rows`` into ``R``, one Householder reflection per column; ``rows`` are used up."""
    n, m = R.shape[0], rows.shape[0]
    for j in range(n):
        below = 0.0
        for i in range(m):
            below += rows[i, j] * rows[i, j]
        if below == 0.0:
            continue
        head = R[j, j]
        length = np.sqrt(head * head + below)
        if head > 0.0:
            length = -length
        first = head - length  # v = (first, rows[:, j]), H = 1 - v v^T / c
        c = first * length  # = -|v|^2 / 2
        R[j, j] = length
        for k in range(j + 1, n):
            buffer[k] = first * R[j, k]
        for i in range(m):
            x = rows[i, j]
            if x != 0.0:
                for k in range(j + 1, n):
                    buffer[k] += x * rows[i, k]
        for k in range(j + 1, n):
            buffer[k] /= c
            R[j, k] += first * buffer[k]
        for i in range(m):
            x = rows[i, j]
            if x != 0.0:
                for k in range(j + 1, n):
                    rows[i, k] += x * buffer[k]


@_compiled
def fold_times(triangles, sizes, rows, fade, buffer) -> None:  # type: ignore[no-untyped-def]
    """Rows ``[W y]`` of all channels side by side into the triangles of each, which lie one after the other; one row at a time.

    Before each row the triangles are multiplied by ``fade``; ``buffer`` has two rows of the length of the longest triangle's.
    """
    for t in range(rows.shape[0]):
        start, column = 0, 0
        for j in range(len(sizes)):
            n = sizes[j]
            if fade != 1.0:
                for k in range(start, start + n * n):
                    triangles[k] *= fade
            row = buffer[1, :n]
            for k in range(n):
                row[k] = rows[t, column + k]
            fold_rows(triangles[start : start + n * n].reshape((n, n)), row.reshape((1, n)), buffer[0])
            start += n * n
            column += n


@_compiled
def solve_identified(R, start, bound, relative, T, buffer, flags, values) -> float:  # type: ignore[no-untyped-def]
    """Flags in column order, values of the identified columns with the others at ``start``, and the squared residual.

    Column ``i`` is identified (1) if the square of its part outside the span of the identified ones before it exceeds
    ``bound[i]`` and ``relative^2`` times its own square; otherwise it is dependent (-1) if its own square exceeds the
    bound, and not excited (0) if not. ``T`` is scratch of the shape of ``R``; its last column is the torque that
    ``start`` leaves.
    """
    n = R.shape[0] - 1
    for p in range(n + 1):
        left = R[p, n]
        for k in range(n + 1):
            T[p, k] = R[p, k]
        for k in range(p, n):
            left -= R[p, k] * start[k]
        T[p, n] = left
    rank = 0
    for i in range(n):
        own, rest = 0.0, 0.0
        for p in range(i + 1):
            own += R[p, i] * R[p, i]
        for p in range(rank, i + 1):
            rest += T[p, i] * T[p, i]
        if rest > bound[i] and rest > relative * relative * own:
            flags[i] = 1
            if i > rank:
                _reflect(T, rank, i, n, np.sqrt(rest), buffer)
            rank += 1
        else:
            flags[i] = -1 if own > bound[i] else 0
    residual = 0.0
    for p in range(rank, n + 1):
        residual += T[p, n] * T[p, n]
    p = rank
    for i in range(n - 1, -1, -1):
        values[i] = start[i]
        if flags[i] == 1:
            p -= 1
            step = T[p, n]
            for k in range(i + 1, n):
                if flags[k] == 1:
                    step -= T[p, k] * (values[k] - start[k])
            values[i] = start[i] + step / T[p, i]
    return residual


@_compiled
def _reflect(T, first, last, n, length, buffer) -> None:  # type: ignore[no-untyped-def]
    """Turn rows ``first .. last`` so that column ``last`` has all its length in row ``first``."""
    if T[first, last] > 0.0:
        length = -length
    head = T[first, last] - length
    c = head * length
    T[first, last] = length
    for k in range(last + 1, n + 1):
        buffer[k] = head * T[first, k]
    for p in range(first + 1, last + 1):
        x = T[p, last]
        if x != 0.0:
            for k in range(last + 1, n + 1):
                buffer[k] += x * T[p, k]
    for k in range(last + 1, n + 1):
        buffer[k] /= c
        T[first, k] += head * buffer[k]
    for p in range(first + 1, last + 1):
        x = T[p, last]
        if x != 0.0:
            for k in range(last + 1, n + 1):
                T[p, k] += x * buffer[k]
            T[p, last] = 0.0


@_compiled
def eliminate(K, threshold, M, flags) -> None:  # type: ignore[no-untyped-def]
    """Fig. 1 of Lomakin and Deutscher, lines 8 to 35, as printed: ``M = [K | 1]`` becomes ``[. | K^-1]``.

    Rows and columns of parameters that are not identified are zero in the inverse.
    """
    n = K.shape[0]
    for i in range(n):
        for k in range(n):
            M[i, k] = K[i, k]
            M[i, n + k] = 0.0
        M[i, n + i] = 1.0
    for i in range(n):
        if M[i, i] > threshold:
            flags[i] = 1
            for j in range(i + 1, n):
                factor = M[j, i] / M[i, i]
                if factor != 0.0:
                    for k in range(i, n + i + 1):
                        M[j, k] -= factor * M[i, k]
        else:
            flags[i] = -1 if K[i, i] > threshold else 0
            for k in range(2 * n):
                M[i, k] = 0.0
            for j in range(n):
                M[j, i] = 0.0
    for i in range(n):
        if M[i, i] > 0.0:
            pivot = M[i, i]
            for k in range(i, 2 * n):
                M[i, k] /= pivot
            for j in range(i):
                factor = M[j, i] / M[i, i]
                if factor != 0.0:
                    for k in range(i, 2 * n):
                        M[j, k] -= factor * M[i, k]
