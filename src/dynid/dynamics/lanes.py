"""Lane rows: the values of a quantity in ``LANES`` consecutive samples side by side in one flat workspace ``x``.

The loops over lanes become vector instructions. What LLVM needs for that shapes the helpers: they index with unsigned numbers,
because a signed index may count from the end; they read and write one array at known distances, and few rows per loop, so that a
handful of comparisons shows that nothing written is read (this is why some work is split into two loops). And the number of lanes
is a variable: a loop of known length would be unrolled into scalars first.
"""

from __future__ import annotations

import numpy as np

from dynid.compiled import njit, njit_helper

LANES = 32
"""Samples per block: enough to pay for the comparisons before each loop, few enough for the second-level cache."""

kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
"""Decorator of a kernel that Python calls: serial, without the GIL; parallelism over chunks of samples is the caller's."""

helper = njit_helper(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
"""Decorator of what kernels alone call."""

part = njit_helper(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, inline="always")
"""Decorator of a part of a kernel, written into it before anything is compiled: what calls others and is itself called once."""


@helper
def get(x, row, s):  # type: ignore[no-untyped-def]
    """Three lane rows, lane ``s``."""
    at = row * LANES + s
    return x[np.uint64(at)], x[np.uint64(at + LANES)], x[np.uint64(at + 2 * LANES)]


@helper
def put(x, row, s, first, second, third) -> None:  # type: ignore[no-untyped-def]
    """Three lane rows, lane ``s``."""
    at = row * LANES + s
    x[np.uint64(at)] = first
    x[np.uint64(at + LANES)] = second
    x[np.uint64(at + 2 * LANES)] = third


@helper
def get1(x, row, s):  # type: ignore[no-untyped-def]
    """One lane row, lane ``s``."""
    return x[np.uint64(row * LANES + s)]


@helper
def put1(x, row, s, value) -> None:  # type: ignore[no-untyped-def]
    """One lane row, lane ``s``."""
    x[np.uint64(row * LANES + s)] = value


@helper
def cross(a0, a1, a2, b0, b1, b2):  # type: ignore[no-untyped-def]
    """``a x b``."""
    return a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0


@helper
def turn(x, rotation, s, a0, a1, a2):  # type: ignore[no-untyped-def]
    """``R a``."""
    r0, r1, r2 = get(x, rotation, s)
    r3, r4, r5 = get(x, rotation + 3, s)
    r6, r7, r8 = get(x, rotation + 6, s)
    return r0 * a0 + r1 * a1 + r2 * a2, r3 * a0 + r4 * a1 + r5 * a2, r6 * a0 + r7 * a1 + r8 * a2


@helper
def turn_back(x, rotation, s, a0, a1, a2):  # type: ignore[no-untyped-def]
    """``R^T a``."""
    r0, r1, r2 = get(x, rotation, s)
    r3, r4, r5 = get(x, rotation + 3, s)
    r6, r7, r8 = get(x, rotation + 6, s)
    return r0 * a0 + r3 * a1 + r6 * a2, r1 * a0 + r4 * a1 + r7 * a2, r2 * a0 + r5 * a1 + r8 * a2
