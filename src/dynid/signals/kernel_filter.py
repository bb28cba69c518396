"""Kernels as filters of sampled signals.

``y(t) = integral_0^T x(t - tau) k(tau) dtau`` becomes ``sum_j h_j x(t - j dt)``.

Sampling a kernel. The window holds the samples ``tau_j = (j + theta) dt`` with weights ``omega_j = dt (1/2 at
an end)``: theta = 0 is the trapezoidal rule, theta = 1/2 the midpoint rule, which takes ``x(t - j dt)`` for
``x(t - tau_j)`` and so delays less by ``dt / 2``. The plain taps ``h_j = omega_j k(tau_j)`` miss the integral
by O(dt^(a + 1)) for a kernel that starts as ``tau^a``: not exact even on constants, and it matters, since
windows of a dozen samples are usual. With ``exact=True`` the taps are corrected by the smallest ``delta`` in
the norm ``sum delta_j^2 / (omega_j w_j)``, ``w`` the weight of the kernel, with

    sum_j (h_j + delta_j) P_m(s_j) = integral k(tau) P_m(s(tau)) dtau          m = 0 .. exact_degree

so that the filter acts on polynomials up to that degree exactly as the kernel does. The norm keeps the ends
of the window small and with them the roll-off; taps with no weight stay zero.

All filters of one setting and sample period have equally many taps, ``L``: their results are aligned. The
first ``L - 1`` samples (the first ``T`` seconds) give no result; result ``i`` belongs to ``start + (L - 1 +
i) dt - delay``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, check_positive, check_shape, freeze, frozen_view
from dynid.errors import InputError
from dynid.signals.polynomial_kernels import ComplexArray, Kernel, PolynomialApproximation, jacobi_basis

Rule: TypeAlias = Literal["trapezoidal", "midpoint"]
RULES: dict[str, float] = {"trapezoidal": 0.0, "midpoint": 0.5}

# Direct sums win below this number of taps, overlap-add with FFT above (measured on 7 and on 640 columns).
FFT_TAPS = 48


@dataclass(frozen=True, eq=False)
class SampledKernel:
    """Taps of a kernel at one sample period; ``delay_s`` is that of the kernel less the shift of the rule."""

    taps: Array
    sample_period_s: float
    delay_s: float
    derivative: int
    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "taps", freeze(self.taps))
        check_shape("taps", self.taps, (None,))
        check_finite("taps", self.taps)

    @property
    def n_dropped(self) -> int:
        """Samples at the start of a signal without a result."""
        return len(self.taps) - 1

    @property
    def noise_gain(self) -> float:
        """``sum h_j^2``: variance of the result over that of white noise on the signal."""
        return float(self.taps @ self.taps)

    def frequency_response(self, frequencies_hz: ArrayLike) -> ComplexArray:
        """``H(f) = sum_j h_j exp(-i 2 pi f j dt)``."""
        frequencies = np.asarray(frequencies_hz, dtype=np.float64)
        turns = frequencies.reshape(-1, 1) * self.sample_period_s * np.arange(len(self.taps))
        return np.asarray((np.exp(-2j * np.pi * turns) @ self.taps).reshape(frequencies.shape))

    def result_time(self, first: int, count: int, start_s: float) -> Array:
        """Times of ``count`` results from the ``first``-th sample of a signal that started at ``start_s``."""
        return np.asarray(start_s + (first + np.arange(count)) * self.sample_period_s - self.delay_s)


def sample_kernel(
    kernel: Kernel,
    sample_period_s: float,
    rule: Rule = "trapezoidal",
    exact: bool = True,
    exact_degree: int | None = None,
) -> SampledKernel:
    """Taps of ``kernel``; with ``exact``, right on polynomials up to ``exact_degree`` (default: its own)."""
    dt, T = sample_period_s, kernel.window_s
    check_positive("sample period", dt, "seconds")
    if rule not in RULES:
        raise InputError(f"unknown quadrature rule '{rule}'; available: {', '.join(RULES)}")
    theta = RULES[rule]
    if theta == 0.0 and min(kernel.alpha, kernel.beta) < 0:
        raise InputError(
            f"the trapezoidal rule needs a kernel that is finite at the ends of its window, alpha and beta "
            f"of 0 or more, found {kernel.alpha:g} and {kernel.beta:g}; use the midpoint rule"
        )
    # A window meant as a whole number of samples may fall short of it by rounding.
    count = int(np.floor(T / dt - theta + 1e-9)) + 1
    if count < 2:
        raise InputError(
            f"window of {T:g} s holds {max(count, 0)} samples at a sample period of {dt:g} s, expected at least 2"
        )
    s = np.clip(1.0 - 2.0 * (np.arange(count) + theta) * dt / T, -1.0, 1.0)
    omega = 2.0 / T * dt * kernel.weight(s)
    omega[np.abs(np.abs(s) - 1.0) < 1e-9] *= 0.5
    taps = omega * kernel.series(s)
    if exact:
        degree = kernel.exact_degree if exact_degree is None else exact_degree
        # ``delta = Omega P^T (P Omega P^T)^-1 (moments - P h)``: smallest in ``sum delta^2 / omega``.
        usable = int(np.count_nonzero(omega > 0))
        if usable < degree + 1:
            raise InputError(
                f"window of {kernel.window_s:g} s holds {usable} samples with weight at a sample period of "
                f"{dt:g} s, filter {kernel.name} exact to degree {degree} needs at least {degree + 1}"
            )
        P = jacobi_basis(degree, kernel.alpha, kernel.beta, s)
        root = np.sqrt(omega)
        # Least-norm solution of (P root) z = moments - P h, delta = root z.
        z, *_ = np.linalg.lstsq(P * root, kernel.moments(degree) - P @ taps)
        taps = taps + np.asarray(root * z)
    return SampledKernel(taps, dt, kernel.delay_s - theta * dt, kernel.derivative, kernel.name)


@dataclass(frozen=True, eq=False)
class FilteredSignal:
    """Results of a filter and the times they belong to."""

    time: Array
    values: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", frozen_view(self.time))
        object.__setattr__(self, "values", frozen_view(self.values))


def _signal(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim not in (1, 2):
        raise InputError(f"{name} has {array.ndim} dimensions, expected samples or samples x columns")
    check_finite(name, array)
    return array


def _convolve(values: Array, taps: Array) -> Array:
    """``y_i = sum_j h_j x_{i + L - 1 - j}`` along the first axis."""
    count = values.shape[0] - len(taps) + 1
    if count <= 0:
        return np.zeros((0, *values.shape[1:]))
    if len(taps) > FFT_TAPS and count > len(taps):
        shaped = taps.reshape((-1,) + (1,) * (values.ndim - 1))
        # The rounding of an FFT is relative to the largest value, but derivatives live on differences.
        level = values.mean(axis=0)
        from scipy.signal import oaconvolve  # a second of import that most verbs do not need

        return np.asarray(oaconvolve(values - level, shaped, mode="valid", axes=0) + level * taps.sum())
    return np.asarray(sliding_window_view(values, len(taps), axis=0) @ taps[::-1])


def apply_offline(signal: ArrayLike, kernel: SampledKernel, start_s: float = 0.0) -> FilteredSignal:
    """Filter a uniformly sampled signal ``(n,)`` or ``(n, k)`` whose first sample is at ``start_s``."""
    values = _signal("signal", signal)
    if values.shape[0] < len(kernel.taps):
        raise InputError(f"signal has {values.shape[0]} samples, filter {kernel.name} needs at least {len(kernel.taps)}")
    result = _convolve(values, kernel.taps)
    return FilteredSignal(kernel.result_time(kernel.n_dropped, len(result), start_s), result)


class OnlineFilter:
    """The same filter fed sample by sample or block by block; the same numbers as :func:`apply_offline`.

    It remembers ``L - 1`` samples. A result is available with the newest sample of its window, so its age is
    ``delay_s``.
    """

    def __init__(self, kernel: SampledKernel, n_columns: int, start_s: float = 0.0) -> None:
        if n_columns < 1:
            raise InputError(f"online filter has {n_columns} columns, expected at least 1")
        self.kernel = kernel
        self.n_columns = n_columns
        self.start_s = start_s
        self._history = np.zeros((0, n_columns))
        self._n_seen = 0

    def push(self, samples: ArrayLike) -> FilteredSignal:
        """Take one sample ``(k,)`` or a block ``(m, k)``, give the results that it completes."""
        block = np.atleast_2d(np.asarray(samples, dtype=np.float64))
        check_shape("samples pushed into the online filter", block, (None, self.n_columns))
        check_finite("samples pushed into the online filter", block)
        held = np.concatenate((self._history, block))
        result = _convolve(held, self.kernel.taps)
        self._n_seen += block.shape[0]
        self._history = held[max(held.shape[0] - self.kernel.n_dropped, 0) :].copy()
        return FilteredSignal(self.kernel.result_time(self._n_seen - len(result), len(result), self.start_s), result)


@dataclass(frozen=True, eq=False)
class RowKernel:
    """The pair ``(g, g')`` that filters rows of ``tau = d/dt A - B`` without a derivative of A.

    ``W = integral g (dA/dt - B) = g' * A - g * B``, torque ``g * tau``. The boundary terms vanish since ``g``
    does at both ends.
    """

    g: SampledKernel
    g_dot: SampledKernel

    def __post_init__(self) -> None:
        if len(self.g.taps) != len(self.g_dot.taps):
            raise InputError(f"g has {len(self.g.taps)} taps and g' has {len(self.g_dot.taps)}, expected equally many")

    @classmethod
    def of(
        cls,
        settings: PolynomialApproximation,
        sample_period_s: float,
        rule: Rule = "trapezoidal",
        exact: bool = True,
    ) -> RowKernel:
        """Taps of ``g`` and ``g'`` at a sample period."""
        g, g_dot = (sample_kernel(settings.kernel(k), sample_period_s, rule, exact) for k in (0, 1))
        return cls(g, g_dot)

    @property
    def delay_s(self) -> float:
        return self.g.delay_s

    @property
    def n_dropped(self) -> int:
        return self.g.n_dropped

    def rows(self, A: ArrayLike, B: ArrayLike, start_s: float = 0.0) -> FilteredSignal:
        """``W = g' * A - g * B`` for uniformly sampled ``(n, k)`` arrays."""
        a, b = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
        if a.shape != b.shape:
            raise InputError(f"A has shape {a.shape} and B has shape {b.shape}, expected the same")
        left, right = apply_offline(a, self.g_dot, start_s), apply_offline(b, self.g, start_s)
        return FilteredSignal(left.time, left.values - right.values)

    def torque(self, tau: ArrayLike, start_s: float = 0.0) -> FilteredSignal:
        """``g * tau``, the right-hand side that belongs to :meth:`rows`."""
        return apply_offline(tau, self.g, start_s)

    def sampling_error(self, frequencies_hz: ArrayLike) -> Array:
        """``|H_g'(f) / (i 2 pi f H_g(f)) - 1|``: the equation error that sampling brings at a frequency."""
        frequencies = np.asarray(frequencies_hz, dtype=np.float64)
        ideal = 2j * np.pi * frequencies * self.g.frequency_response(frequencies)
        return np.asarray(np.abs(self.g_dot.frequency_response(frequencies) / ideal - 1.0))


class OnlineRowFilter:
    """:class:`RowKernel` block by block."""

    def __init__(self, kernel: RowKernel, n_columns: int, start_s: float = 0.0) -> None:
        self._a = OnlineFilter(kernel.g_dot, n_columns, start_s)
        self._b = OnlineFilter(kernel.g, n_columns, start_s)

    def push(self, A: ArrayLike, B: ArrayLike) -> FilteredSignal:
        """Rows that became available with these samples of A and B."""
        a, b = np.atleast_2d(np.asarray(A, dtype=np.float64)), np.atleast_2d(np.asarray(B, dtype=np.float64))
        if a.shape != b.shape:
            raise InputError(f"A has shape {a.shape} and B has shape {b.shape}, expected the same")
        left, right = self._a.push(a), self._b.push(b)
        return FilteredSignal(left.time, left.values - right.values)


def approximate_derivatives(
    signal: ArrayLike,
    settings: PolynomialApproximation,
    sample_period_s: float,
    derivatives: Sequence[int] = (0, 1),
    rule: Rule = "trapezoidal",
    exact: bool = True,
    start_s: float = 0.0,
) -> tuple[FilteredSignal, ...]:
    """``x^(k)(t - t_d)`` for each k asked, all with one delay (29)-(32)."""
    return tuple(
        apply_offline(signal, sample_kernel(settings.kernel(k), sample_period_s, rule, exact), start_s) for k in derivatives
    )
