"""Polynomial approximation of signals on a sliding window: the kernels.

Lomakin and Deutscher (2020), section III. On the window ``[t - T, t]`` a signal ``x`` is projected onto the
polynomials of degree ``N`` in the inner product with the Jacobi weight ``w(s) = (1 - s)^alpha (1 + s)^beta``,
``s = 1 - 2 tau / T`` (12)-(15), and the polynomial is read ``t_d`` ago:

    x_hat(t - t_d) = integral_0^T x(t - tau) g(tau) dtau                                        (16)
    g(tau)     = 2/T w(s) R(s),  R(s) = sum_{i <= N} P_i(s) P_i(p),  p = 1 - 2 t_d / T          (17)-(18)
    g^(k)(tau) = (-1)^k (2/T)^(k+1) (w R)^(k)(s)         kernel of the k-th derivative          (19)-(20)
    g_ci(tau)  = 2/T w(s) P_i(s)                         kernel of the coefficient c_i          (26)-(27)
    g~_i(tau)  = 2/T w(s) P_i(s) R(s)                    kernel of the product rule             (22)-(25)

with orthonormal Jacobi polynomials ``P_i``. With ``p`` at a zero of ``P_{N+1}`` the first neglected term of
the series vanishes there, so that ``g`` is exact on polynomials of degree ``N + 1`` and ``g^(k)`` on degree
``N + 1 + k``.

Every one of these is a weight times a short Jacobi series, and so is its derivative, by Rodrigues' formula:

    kernel(tau) = 2/T  w^(a,b)(s) sum_m d_m P_m^(a,b)(s)
    d/dtau:  (a, b) -> (a - 1, b - 1),   d_n -> d_{n+1} = 2/T sqrt((n + 1)(n + a + b)) d_n

One class, :class:`Kernel`, therefore holds them all. ``k < alpha, beta`` keeps each derivative continuous and
zero at both ends of the window: the boundary terms of the integration by parts vanish.

How the regression (28)-(37) of any robot is composed of these parts, from ``q`` and ``tau`` alone: with
``A(q, v)`` the momentum regressor and ``B(q, v)`` that of dL/dq minus friction, ``tau = (d/dt A - B) phi``.
The outer derivative goes to the kernel by parts, ``integral g dA/dt = integral g' A``, and ``q``, ``v`` enter
in one of two ways:

* by the product rule (22)-(23). It needs ``A = sum_j A_j(q) v_j`` expanded, which is not practical for
  seven joints. With the values of ``A_j(q)`` at the ``N* + 1`` zeros of ``P_{N*+1}`` in place of its
  coefficients, and ``A`` linear in ``v``, it is

      integral g' A(q, v) = sum_m A(q_m, u_m),   q_m = sum_i c_i P_i(node m),   u_m = integral (g' l_m)' q

  with Lagrange polynomials ``l_m``: ``N* + 1`` evaluations of ``A`` and ``B`` per row. Torque is filtered
  once, with ``g``.
* pointwise: ``q_hat = g * q``, ``v_hat = g' * q``, ``tau_hat = g * tau`` share one delay (29)-(31); ``A`` and
  ``B`` are evaluated once per sample (21); then ``W = g' * A - g * B``, and ``tau_hat`` is filtered with
  ``g`` once more. One evaluation per row, with the error of (21): the function of the mean is taken for the
  mean of the function.

The filters themselves are in :mod:`dynid.signals.kernel_filter`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.arrays import Array, check_finite, check_positive, freeze
from dynid.errors import InputError

ComplexArray: TypeAlias = NDArray[np.complex128]
Polynomial: TypeAlias = Callable[[Array], Array]

LARGEST_EXPONENT = 200.0  # above it the normalisation of the Gauss-Jacobi nodes leaves double precision
LARGEST_ORDER = 30
NULL_GAIN = 1e-10  # a gain below it is zero but for rounding


def jacobi_basis(order: int, alpha: float, beta: float, s: ArrayLike) -> Array:
    """Orthonormal Jacobi polynomials ``P_0 .. P_order`` at ``s``; shape ``(order + 1, *s.shape)``."""
    from scipy.special import eval_jacobi, gammaln  # where needed only: most runs have no polynomial rows

    points = np.asarray(s, dtype=np.float64)
    n = np.arange(order + 1, dtype=np.float64).reshape((-1,) + (1,) * points.ndim)
    # log of ``h_n = integral w P_n^2`` of the classical Jacobi polynomials (Szego 4.3.3):
    total = alpha + beta
    # at n = 0 (2n + total + 1) Gamma(n + total + 1) is Gamma(total + 2); each factor alone may be singular.
    m = np.maximum(n, 1.0)
    denominator = np.where(
        n == 0,
        gammaln(total + 2.0),
        np.log(2 * m + total + 1) + gammaln(m + 1) + gammaln(m + total + 1),
    )
    return np.asarray(
        eval_jacobi(n, alpha, beta, points)
        * np.exp(-0.5 * ((total + 1) * np.log(2.0) + gammaln(n + alpha + 1) + gammaln(n + beta + 1) - denominator))
    )


def gauss_jacobi(count: int, alpha: float, beta: float) -> tuple[Array, Array]:
    """Nodes and weights of ``integral_-1^1 w f``, exact for ``f`` of degree below ``2 count``."""
    from scipy.special import roots_jacobi

    # SciPy forms 0/0 for alpha + beta = -1 before it discards it.
    with np.errstate(invalid="ignore", divide="ignore"):
        nodes, weights = roots_jacobi(count, alpha, beta)
    return np.asarray(nodes, dtype=np.float64), np.asarray(weights, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Kernel:
    """``kernel(tau) = 2/T w(s) sum_m d_m P_m(s)`` on ``0 <= tau <= T``, ``s = 1 - 2 tau / T``.

    ``alpha`` and ``beta`` are the kernel's own: those of the settings less ``derivative``. ``exact_degree``
    is the degree of polynomials on which a sampled version has to act as this kernel does; ``delay_s`` is how
    far back in time its result belongs.
    """

    name: str
    coefficients: Array
    alpha: float
    beta: float
    window_s: float
    delay_s: float
    exact_degree: int
    derivative: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", freeze(self.coefficients))

    def weight(self, s: Array) -> Array:
        """``w(s) = (1 - s)^a (1 + s)^b`` inside [-1, 1], zero outside (14)."""
        inside = np.abs(s) <= 1.0
        x = np.where(inside, s, 0.0)
        return np.where(inside, (1.0 - x) ** self.alpha * (1.0 + x) ** self.beta, 0.0)

    def series(self, s: Array) -> Array:
        """``sum_m d_m P_m(s)``, the polynomial part."""
        basis = jacobi_basis(len(self.coefficients) - 1, self.alpha, self.beta, s)
        return np.asarray(np.tensordot(self.coefficients, basis, axes=1))

    def __call__(self, tau: ArrayLike) -> Array:
        """The kernel at times ``tau`` before the end of the window."""
        s = 1.0 - 2.0 * np.asarray(tau, dtype=np.float64) / self.window_s
        return np.asarray(2.0 / self.window_s * self.weight(s) * self.series(np.clip(s, -1.0, 1.0)))

    def differentiated(self, times: int = 1) -> Kernel:
        """Kernel whose result is the ``times``-th further derivative of the signal, (20)."""
        if times < 0:
            raise InputError(f"order of a derivative is 0 or more, found {times}")
        k = self.derivative + times
        if times and min(self.alpha, self.beta) <= times:
            raise InputError(
                f"a derivative of order {k} needs alpha and beta above {k}, "
                f"found alpha = {self.alpha + self.derivative:g} and beta = {self.beta + self.derivative:g}"
            )
        kernel = self
        for _ in range(times):
            n = np.arange(len(kernel.coefficients), dtype=np.float64)
            shifted = 2.0 / kernel.window_s * np.sqrt((n + 1.0) * (n + kernel.alpha + kernel.beta)) * kernel.coefficients
            kernel = replace(
                kernel,
                name=kernel.name + "'",
                coefficients=np.concatenate(([0.0], shifted)),
                alpha=kernel.alpha - 1.0,
                beta=kernel.beta - 1.0,
                exact_degree=kernel.exact_degree + 1,
                derivative=kernel.derivative + 1,
            )
        return kernel

    def multiplied(self, factor: Polynomial, degree: int, name: str) -> Kernel:
        """Kernel ``f(s) kernel(tau)`` for a polynomial ``f`` of at most this degree."""
        total = len(self.coefficients) - 1 + degree
        s, weights = gauss_jacobi(total + 1, self.alpha, self.beta)
        # The quadrature is exact: series, factor and basis together have degree 2 total at most.
        product = jacobi_basis(total, self.alpha, self.beta, s) @ (weights * factor(s) * self.series(s))
        return replace(self, name=name, coefficients=product)

    def moments(self, degree: int) -> Array:
        """``integral kernel(tau) P_m(s(tau)) dtau``, m = 0 .. degree: the coefficients, by orthonormality."""
        values = np.zeros(degree + 1)
        count = min(degree + 1, len(self.coefficients))
        values[:count] = self.coefficients[:count]
        return values

    def frequency_response(self, frequencies_hz: ArrayLike) -> ComplexArray:
        """``G(f) = integral kernel(tau) exp(-i 2 pi f tau) dtau``.

        The ideal of ``g^(k)`` is ``(i 2 pi f)^k exp(-i 2 pi f delay_s)``.
        """
        frequencies = np.asarray(frequencies_hz, dtype=np.float64)
        check_finite("frequencies", frequencies)
        omega = 2.0 * np.pi * frequencies.reshape(-1)
        # exp(-i omega T s / 2) is entire: about omega T / 2 nodes reach rounding.
        oscillation = float(np.max(np.abs(omega), initial=0.0)) * self.window_s / 2.0
        s, weights = gauss_jacobi(len(self.coefficients) + 40 + int(np.ceil(oscillation)), self.alpha, self.beta)
        tau = self.window_s * (1.0 - s) / 2.0
        response = np.exp(-1j * omega[:, None] * tau) @ (weights * self.series(s))
        return np.asarray(response.reshape(frequencies.shape))


@dataclass(frozen=True)
class PolynomialApproximation:
    """Settings of the polynomial approximation operator; the defaults are those of the paper's section VII.

    Args:
        order: degree ``N`` of the approximating polynomial.
        product_order: degree ``N*`` of the factor that the product rule (22) expands.
        window_s: length ``T`` of the window.
        alpha: exponent of the weight at the newest end of the window; a k-th derivative needs ``k < alpha``.
        beta: exponent at the oldest end; a k-th derivative needs ``k < beta``.
        delay_zero: which zero of ``P_{N+1}`` sets the delay, 0 for the shortest delay.
        requested_delay_s: a delay, s, instead of a zero; costs one degree of exactness.

    Examples:
        >>> import dynid
        >>> from dynid.signals.polynomial_kernels import PolynomialApproximation
        >>> PolynomialApproximation(window_s=0.1).order
        1
    """

    order: int = 1
    product_order: int = 2
    window_s: float = 0.044
    alpha: float = 3.0
    beta: float = 3.0
    delay_zero: int = 0
    requested_delay_s: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("order N", self.order), ("product order N*", self.product_order)):
            if not 0 <= value <= LARGEST_ORDER or int(value) != value:
                raise InputError(f"{name} of the polynomial is {value}, expected a whole number from 0 to {LARGEST_ORDER}")
        check_positive("length of the window", self.window_s, "seconds")
        for name, exponent in (("alpha", self.alpha), ("beta", self.beta)):
            if not -1.0 < exponent <= LARGEST_EXPONENT:
                raise InputError(f"{name} is {exponent}, expected above -1 and at most {LARGEST_EXPONENT:g}")
        if not 0 <= self.delay_zero <= self.order:
            raise InputError(
                f"delay_zero is {self.delay_zero}, but the polynomial of degree {self.order + 1} has zeros 0 to {self.order}"
            )
        if self.requested_delay_s is not None and not 0.0 <= self.requested_delay_s <= self.window_s:
            raise InputError(f"delay of {self.requested_delay_s} s lies outside the window of 0 to {self.window_s} s")

    @cached_property
    def evaluation_point(self) -> float:
        """``p`` in [-1, 1] where the polynomial is read; 1 is the newest end of the window."""
        if self.requested_delay_s is not None:
            return 1.0 - 2.0 * self.requested_delay_s / self.window_s
        zeros, _ = gauss_jacobi(self.order + 1, self.alpha, self.beta)
        return float(np.sort(zeros)[::-1][self.delay_zero])

    @property
    def delay_s(self) -> float:
        """``t_d``: the results of every filter belong to this time before the newest sample of the window."""
        return self.window_s * (1.0 - self.evaluation_point) / 2.0

    @property
    def exact_degree(self) -> int:
        """Largest degree that ``g`` reproduces: ``N + 1`` at a zero of ``P_{N+1}``, otherwise ``N``."""
        return self.order + (self.requested_delay_s is None)

    def kernel(self, derivative: int = 0) -> Kernel:
        """``g^(k)``: the signal (18) or its k-th derivative (20), ``delay_s`` ago."""
        p = jacobi_basis(self.order, self.alpha, self.beta, self.evaluation_point)
        return self._kernel("g", p, self.delay_s, self.exact_degree).differentiated(derivative)

    def coefficient_kernel(self, index: int, derivative: int = 0) -> Kernel:
        """Coefficient ``c_i`` of the signal or of its k-th derivative on the window (27); ``i`` up to N*."""
        self._check_index(index)
        unit = np.zeros(index + 1)
        unit[index] = 1.0
        return self._kernel(f"c{index}", unit, 0.0, self.product_order).differentiated(derivative)

    def product_kernel(self, index: int, derivative: int = 0, outer: int = 0) -> Kernel:
        """``g~_i`` (25): ``P_i x`` approximated, ``i`` up to N*.

        With j = ``outer`` and k = ``derivative`` it is the kernel of ``(P_i x^(k))^(j)``: by parts twice,
        ``(g^(j) P_i)^(k)``.
        """
        self._check_index(index)

        def factor(s: Array) -> Array:
            return np.asarray(jacobi_basis(index, self.alpha, self.beta, s)[index])

        outer_kernel = self.kernel(outer)
        return outer_kernel.multiplied(factor, index, f"product{index}").differentiated(derivative)

    @cached_property
    def nodes(self) -> Array:
        """Zeros of ``P_{N*+1}``, newest first: there a polynomial of degree N* is one order better."""
        zeros, _ = gauss_jacobi(self.product_order + 1, self.alpha, self.beta)
        return freeze(np.sort(zeros)[::-1])

    @property
    def node_delays_s(self) -> Array:
        """How long ago each node of the window was."""
        return np.asarray(self.window_s * (1.0 - self.nodes) / 2.0)

    @cached_property
    def node_weights(self) -> Array:
        """``b_m = integral g l_m``; ``integral g f = sum_m b_m f(node m)`` up to degree ``2 N* + 1 - N``."""
        # Moments are against P_0, not against 1.
        constant = float(jacobi_basis(0, self.alpha, self.beta, 0.0)[0])
        return freeze([self.node_product_kernel(m).moments(0)[0] / constant for m in range(self.product_order + 1)])

    def node_kernel(self, node: int, derivative: int = 0) -> Kernel:
        """``sum_i c_i P_i`` at a node: the polynomial of degree N* of the signal or its derivative."""
        self._check_index(node)
        values = jacobi_basis(self.product_order, self.alpha, self.beta, self.nodes[node])
        delay_s = float(self.node_delays_s[node])
        return self._kernel(f"node{node}", values, delay_s, self.product_order + 1).differentiated(derivative)

    def node_product_kernel(self, node: int, derivative: int = 0, outer: int = 0) -> Kernel:
        """:meth:`product_kernel` with the Lagrange polynomial ``l_m`` of the nodes for ``P_i``.

        ``sum_i c_i P~_i{x2} = sum_m x1(node m) integral (g l_m) x2``: the product rule (23) written with
        values of ``x1`` at the nodes instead of its coefficients, which is the same number and needs no
        expansion of ``x1``.
        """
        self._check_index(node)
        others = np.delete(self.nodes, node)
        scale = np.prod(self.nodes[node] - others)

        def factor(s: Array) -> Array:
            return np.asarray(np.prod(s[:, None] - others, axis=1) / scale)

        return self.kernel(outer).multiplied(factor, self.product_order, f"node product{node}").differentiated(derivative)

    def basis(self, tau: ArrayLike) -> Array:
        """``P_i(1 - 2 tau / T)`` for i = 0 .. N*; shape ``(N* + 1, *tau.shape)``."""
        s = 1.0 - 2.0 * np.asarray(tau, dtype=np.float64) / self.window_s
        return jacobi_basis(self.product_order, self.alpha, self.beta, s)

    def with_window(self, window_s: float) -> PolynomialApproximation:
        """The same shape on a window of another length; a requested delay keeps its share of the window."""
        delay = None if self.requested_delay_s is None else self.requested_delay_s * window_s / self.window_s
        return replace(self, window_s=window_s, requested_delay_s=delay)

    def _kernel(self, name: str, coefficients: Array, delay_s: float, exact_degree: int) -> Kernel:
        return Kernel(name, coefficients, self.alpha, self.beta, self.window_s, delay_s, exact_degree)

    def _check_index(self, index: int) -> None:
        if not 0 <= index <= self.product_order:
            raise InputError(f"index of a coefficient is {index}, expected 0 to N* = {self.product_order}")


def null_frequency(
    settings: PolynomialApproximation,
    frequency_hz: float,
    adjust: Literal["exponents", "window"] = "exponents",
    derivative: int = 1,
) -> tuple[PolynomialApproximation, float]:
    """Settings near given ones with ``G(f) = 0`` at one frequency, for ``g`` and each of its derivatives.

    Args:
        settings: where the search starts.
        frequency_hz: the frequency to remove, Hz.
        adjust: ``G(f) = 0`` is two real equations. ``exponents`` solves them for alpha and beta, both kept above ``derivative``;
            the window, and so the attenuation elsewhere, hardly changes. ``window`` changes ``T`` alone. That is enough when the
            kernel is symmetric (alpha = beta and the polynomial evaluated in the middle of the window, such as N = 0), where
            ``G(f) ~ J_{alpha + 1/2}(pi f T) / (pi f T)^(alpha + 1/2)`` for N = 0 has real zeros; for other kernels it gives the
            deepest notch that exists, and the gain is its depth.
        derivative: highest derivative for which the zero must hold.

    Returns:
        the settings, and ``|G|`` at the frequency, below :data:`NULL_GAIN` where it is zero but for rounding.

    Examples:
        >>> import dynid
        >>> from dynid.signals.polynomial_kernels import PolynomialApproximation, null_frequency
        >>> settings, gain = null_frequency(PolynomialApproximation(window_s=0.05), frequency_hz=50.0)
        >>> bool(gain < 1e-6)
        True
    """
    check_positive("frequency to suppress", frequency_hz, "hertz")
    if adjust == "exponents":
        found = _null_by_exponents(settings, frequency_hz, derivative)
    elif adjust == "window":
        found = _null_by_window(settings, frequency_hz)
    else:
        raise InputError(f"unknown way to suppress a frequency '{adjust}'; available: exponents, window")
    gain = float(np.abs(found.kernel().frequency_response(frequency_hz)))
    return found, gain


def _is_symmetric(settings: PolynomialApproximation) -> bool:
    return settings.alpha == settings.beta and abs(settings.evaluation_point) < 1e-12


def _null_by_exponents(settings: PolynomialApproximation, frequency_hz: float, derivative: int) -> PolynomialApproximation:
    from scipy.optimize import root

    floor = float(derivative) if derivative > 0 else -1.0
    # Where both exponents are equal and stay so, the imaginary part is zero already and one unknown is left.
    symmetric = _is_symmetric(settings)

    def at(unknown: Array) -> PolynomialApproximation:
        # exp keeps the exponents above the floor whatever the solver tries, the clip keeps them computable.
        exponents = floor + np.exp(np.clip(unknown, -30.0, np.log(LARGEST_EXPONENT / 2)))
        return replace(settings, alpha=float(exponents[0]), beta=float(exponents[-1]))

    def response(unknown: Array) -> Array:
        trial = at(unknown)
        middle = np.exp(1j * np.pi * frequency_hz * trial.window_s)
        value = complex(trial.kernel().frequency_response(frequency_hz)) * middle
        return np.array([value.real]) if symmetric else np.array([value.real, value.imag])

    first = np.array([settings.alpha, settings.beta])[: 1 if symmetric else 2]
    candidates: list[tuple[float, PolynomialApproximation]] = []
    for shift in (0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 5.0):
        start = np.maximum(first + shift, floor + 0.05)
        solution = root(response, np.log(start - floor), tol=1e-14)
        if np.max(np.abs(response(solution.x))) < NULL_GAIN:
            trial = at(solution.x)
            distance = abs(trial.alpha - settings.alpha) + abs(trial.beta - settings.beta)
            candidates.append((distance, trial))
    if not candidates:
        raise InputError(
            f"no exponents above {floor:g} suppress {frequency_hz:g} Hz exactly with N = {settings.order} "
            f"and a window of {settings.window_s:g} s ({frequency_hz * settings.window_s:.3g} periods); "
            f"a longer window is needed"
        )
    return min(candidates, key=lambda candidate: candidate[0])[1]


def _null_by_window(settings: PolynomialApproximation, frequency_hz: float) -> PolynomialApproximation:
    from scipy.optimize import brentq, minimize_scalar

    unit = settings.with_window(1.0)
    kernel = unit.kernel()
    wanted = frequency_hz * settings.window_s
    # Notches are about one period apart beyond the main lobe, which widens with the exponents and with N.
    reach = 2.0 * wanted + 3.0 + max(settings.alpha, settings.beta) + settings.order
    scan = np.arange(0.02, reach, 0.01)
    values = kernel.frequency_response(scan)
    if _is_symmetric(settings):

        def real_part(periods: float) -> float:
            return float((complex(kernel.frequency_response(periods)) * np.exp(1j * np.pi * periods)).real)

        signed = (values * np.exp(1j * np.pi * scan)).real
        crossings = np.flatnonzero(signed[:-1] * signed[1:] < 0)
        periods = np.array([brentq(real_part, scan[i], scan[i + 1], xtol=1e-15) for i in crossings])
    else:

        def size(periods: float) -> float:
            return float(np.abs(kernel.frequency_response(periods)))

        gain = np.abs(values)
        notches = 1 + np.flatnonzero((gain[1:-1] < gain[:-2]) & (gain[1:-1] <= gain[2:]))
        periods = np.array(
            [
                minimize_scalar(size, bounds=(scan[i - 1], scan[i + 1]), method="bounded", options={"xatol": 1e-9}).x
                for i in notches
            ]
        )
    if not periods.size:
        raise InputError(
            f"the kernel with N = {settings.order}, alpha = {settings.alpha:g}, beta = {settings.beta:g} has "
            f"no notch that another window could put at {frequency_hz:g} Hz; adjust the exponents instead"
        )
    nearest = float(periods[np.argmin(np.abs(periods - wanted))])
    return settings.with_window(nearest / frequency_hz)
