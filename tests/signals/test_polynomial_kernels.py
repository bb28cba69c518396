"""Kernels of polynomial approximation against quadrature, closed forms and the AlgDiff package."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from scipy import integrate, special

from dynid.errors import InputError
from dynid.signals.polynomial_kernels import NULL_GAIN, PolynomialApproximation, gauss_jacobi, jacobi_basis, null_frequency
from messages import facts

PAPER = PolynomialApproximation()
SETTINGS = [
    PAPER,
    PolynomialApproximation(order=0, window_s=0.1, alpha=4.0, beta=4.0),
    PolynomialApproximation(order=2, product_order=3, window_s=1.3, alpha=3.5, beta=5.25),
    PolynomialApproximation(order=3, product_order=1, window_s=0.2, alpha=6.0, beta=3.2, delay_zero=2),
    PolynomialApproximation(order=1, window_s=0.5, alpha=4.0, beta=3.3, requested_delay_s=0.1),
]


def integral(function: Any, start: float, end: float) -> float:
    """Adaptive quadrature to 1e-13 of the size of the integrand, which may cancel."""
    size = (end - start) * max(abs(float(function(x))) for x in np.linspace(start, end, 41))
    value, _ = integrate.quad(function, start, end, epsabs=1e-13 * size, epsrel=1e-13, limit=200)
    return float(value)


def test_the_delay_of_the_paper_follows_from_exponents_of_three() -> None:
    # P_2 of (3, 3) has its zeros at +-1/3, so t_d = T (1 - 1/3) / 2.
    assert pytest.approx(0.044 / 3, rel=1e-14) == PAPER.delay_s
    assert round(1e3 * PAPER.delay_s, 1) == 14.7
    assert PolynomialApproximation(delay_zero=1).delay_s == pytest.approx(2 * 0.044 / 3, rel=1e-14)
    for other in (1.0, 2.0, 4.0):
        assert round(1e3 * PolynomialApproximation(alpha=other, beta=other).delay_s, 1) != 14.7


@pytest.mark.parametrize(("alpha", "beta"), [(3.0, 3.0), (0.5, 2.25), (-0.5, -0.5), (-0.3, -0.7), (7.0, 1.0)])
def test_the_basis_is_orthonormal(alpha: float, beta: float) -> None:
    nodes, weights = gauss_jacobi(12, alpha, beta)
    basis = jacobi_basis(8, alpha, beta, nodes)
    np.testing.assert_allclose((basis * weights) @ basis.T, np.eye(9), atol=2e-13)


def test_closed_form_of_order_zero() -> None:
    alpha, beta, T = 2.5, 4.0, 0.3
    settings = PolynomialApproximation(order=0, window_s=T, alpha=alpha, beta=beta)
    tau = np.linspace(0, T, 40)
    # A projection on constants is a weighted mean: the density of a beta distribution on the window.
    density = (tau / T) ** alpha * (1 - tau / T) ** beta / (special.beta(alpha + 1, beta + 1) * T)
    np.testing.assert_allclose(settings.kernel()(tau), density, rtol=1e-12, atol=1e-12)
    assert settings.delay_s == pytest.approx(T * (alpha + 1) / (alpha + beta + 2), rel=1e-13)
    x = tau / T
    slope = (alpha * (1 - x) - beta * x) * x ** (alpha - 1) * (1 - x) ** (beta - 1)
    slope /= special.beta(alpha + 1, beta + 1) * T**2
    np.testing.assert_allclose(settings.kernel(1)(tau), slope, rtol=1e-11, atol=1e-11)


def test_closed_form_of_order_one_with_the_settings_of_the_paper() -> None:
    T = PAPER.window_s
    tau = np.linspace(0, T, 40)
    s = 1 - 2 * tau / T
    # w = (1 - s^2)^3, integral w = 32/35, integral w s^2 = 32/315: R = 35/32 + 315/32 s p with p = 1/3.
    R = 35 / 32 + 105 / 32 * s
    np.testing.assert_allclose(PAPER.kernel()(tau), 2 / T * (1 - s**2) ** 3 * R, rtol=1e-12, atol=1e-12)
    symbolic = Polynomial([1, 0, -1]) ** 3 * Polynomial([35 / 32, 105 / 32])
    for k in (1, 2):
        expected = (-2 / T) ** k * 2 / T * symbolic.deriv(k)(s)
        np.testing.assert_allclose(PAPER.kernel(k)(tau), expected, rtol=1e-11, atol=1e-11 * abs(expected).max())
    for i, coefficients in enumerate(([np.sqrt(35 / 32)], [0.0, np.sqrt(315 / 32)])):
        P_i = Polynomial(coefficients)(s)
        np.testing.assert_allclose(PAPER.coefficient_kernel(i)(tau), 2 / T * (1 - s**2) ** 3 * P_i, atol=1e-11)
        expected = 2 / T * (1 - s**2) ** 3 * P_i * R
        np.testing.assert_allclose(PAPER.product_kernel(i)(tau), expected, rtol=1e-11, atol=1e-11)


def test_kernels_vanish_outside_the_window() -> None:
    for k in range(3):
        assert np.all(PAPER.kernel(k)([-1e-3, 0.0, 0.044, 0.05]) == pytest.approx(0.0, abs=1e-7))
        assert np.all(PAPER.kernel(k)([-1e-3, 0.0441, 10.0]) == 0.0)


@pytest.mark.parametrize("settings", SETTINGS)
def test_operators_equal_the_definitions_by_quadrature(settings: PolynomialApproximation) -> None:
    """(15): coefficients are inner products, the approximation is their series; both by quadrature."""
    T, alpha, beta = settings.window_s, settings.alpha, settings.beta

    def x(tau: Any) -> Any:
        return np.exp(-tau / T) * np.sin(3 * tau / T + 0.4)

    def inner(degree: int) -> float:
        def integrand(s: float) -> float:
            P = float(jacobi_basis(degree, alpha, beta, s)[degree])
            return P * (1 - s) ** alpha * (1 + s) ** beta * float(x(T * (1 - s) / 2))

        return integral(integrand, -1.0, 1.0)

    c = np.array([inner(i) for i in range(max(settings.order, settings.product_order) + 1)])
    for i in range(settings.product_order + 1):
        kernel = settings.coefficient_kernel(i)
        value = integral(lambda tau, kernel=kernel: kernel(tau) * x(tau), 0.0, T)
        assert value == pytest.approx(c[i], rel=1e-12, abs=1e-12)
    P_p = jacobi_basis(settings.order, alpha, beta, settings.evaluation_point)
    whole = settings.kernel()
    value = integral(lambda tau: whole(tau) * x(tau), 0.0, T)
    assert value == pytest.approx(c[: settings.order + 1] @ P_p, rel=1e-12)


@pytest.mark.parametrize("settings", SETTINGS)
def test_by_parts_and_product_kernels_by_quadrature(settings: PolynomialApproximation) -> None:
    T = settings.window_s
    g = settings.kernel()

    def x(tau: Any) -> Any:  # x(t - tau), so that d/dt = -d/dtau
        return np.sin(4 * tau / T + 0.3)

    def x_dot(tau: Any) -> Any:
        return -4 / T * np.cos(4 * tau / T + 0.3)

    g_dot, g_dot_dot = settings.kernel(1), settings.kernel(2)
    left = integral(lambda tau: g_dot(tau) * x(tau), 0.0, T)
    assert left == pytest.approx(integral(lambda tau: g(tau) * x_dot(tau), 0.0, T), rel=1e-11)
    second = integral(lambda tau: g_dot_dot(tau) * x(tau), 0.0, T)
    by_definition = integral(lambda tau: g_dot(tau) * x_dot(tau), 0.0, T)
    assert second == pytest.approx(by_definition, rel=1e-10)
    for i in range(settings.product_order + 1):
        tau = np.linspace(0.01 * T, 0.99 * T, 23)
        P_i = settings.basis(tau)[i]
        for outer in (0, 1):
            expected = P_i * settings.kernel(outer)(tau)
            got = settings.product_kernel(i, outer=outer)(tau)
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())
            product, plain = settings.product_kernel(i, 1, outer), settings.kernel(outer)
            left = integral(lambda tau, product=product: product(tau) * x(tau), 0.0, T)
            right = integral(lambda tau, i=i, plain=plain: plain(tau) * settings.basis(tau)[i] * x_dot(tau), 0.0, T)
            assert left == pytest.approx(right, rel=1e-9, abs=1e-11 / T**outer)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("k", [0, 1, 2])
def test_derivative_kernels_are_exact_on_polynomials_and_no_further(settings: PolynomialApproximation, k: int) -> None:
    kernel = settings.kernel(k)
    T = settings.window_s
    degree = settings.exact_degree + k
    assert kernel.exact_degree == degree

    def error(power: int) -> float:
        signal = Polynomial([0] * power + [1.0])  # in t / T, the newest end of the window at t = 0
        value = integral(lambda tau: kernel(tau) * signal(-tau / T), 0.0, T) * T**k
        return value - float(signal.deriv(k)(-settings.delay_s / T) if k else signal(-settings.delay_s / T))

    errors = [abs(error(power)) for power in range(degree + 2)]
    assert max(errors[:-1]) < 1e-11
    assert errors[-1] > 1e-6


@given(
    order=st.integers(0, 4),
    alpha=st.floats(1.1, 8.0),
    beta=st.floats(1.1, 8.0),
    data=st.data(),
)
def test_moments_of_any_setting(order: int, alpha: float, beta: float, data: st.DataObject) -> None:
    zero = data.draw(st.integers(0, order))
    settings = PolynomialApproximation(order=order, alpha=alpha, beta=beta, delay_zero=zero)
    for k in (0, 1):
        kernel = settings.kernel(k)
        s, weights = gauss_jacobi(order + k + 6, kernel.alpha, kernel.beta)
        for power in range(kernel.exact_degree + 1):
            value = weights @ (kernel.series(s) * s**power)
            signal = Polynomial([0] * power + [1.0])
            slope = signal.deriv(k)(settings.evaluation_point) * (2 / settings.window_s) ** k
            assert value == pytest.approx(slope, rel=1e-9, abs=1e-9 * (2 / settings.window_s) ** k)


def test_node_kernels_are_the_product_rule_in_other_words() -> None:
    settings = SETTINGS[2]
    tau = np.linspace(0, settings.window_s, 31)
    count = settings.product_order + 1
    P_at_nodes = settings.basis(settings.node_delays_s)  # (i, m)
    # A polynomial of degree N* is sum_i c_i P_i and also sum_m x(node m) l_m: P_i = sum_m P_i(node m) l_m.
    for k, outer in ((0, 0), (1, 1)):
        of_nodes = np.stack([settings.node_product_kernel(m, k, outer)(tau) for m in range(count)])
        of_basis = np.stack([settings.product_kernel(i, k, outer)(tau) for i in range(count)])
        np.testing.assert_allclose(P_at_nodes @ of_nodes, of_basis, atol=1e-10 * np.abs(of_basis).max())
        np.testing.assert_allclose(
            of_nodes.sum(axis=0), settings.kernel(k + outer)(tau), atol=1e-10 * np.abs(of_nodes).max()
        )
    s, weights = gauss_jacobi(20, settings.alpha, settings.beta)
    R = settings.kernel().series(s)
    for degree in range(2 * settings.product_order + 2 - settings.order):
        by_nodes = settings.node_weights @ settings.nodes**degree
        assert by_nodes == pytest.approx(weights @ (R * s**degree), rel=1e-11, abs=1e-11)


def algdiff(settings: PolynomialApproximation, dt: float) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its docstrings hold invalid escapes, its constructor warns of aliasing
        from AlgDiff import AlgebraicDifferentiator

        return AlgebraicDifferentiator(
            ts=dt,
            alpha=settings.alpha,
            beta=settings.beta,
            N=settings.order,
            T=settings.window_s,
            display=False,
            corr=False,
        )


@pytest.mark.parametrize(
    "settings",
    [
        PAPER,
        PolynomialApproximation(order=0, window_s=0.1, alpha=4.0, beta=4.0),
        PolynomialApproximation(order=2, window_s=1.3, alpha=3.5, beta=5.25),
    ],
)
def test_equal_to_algdiff(settings: PolynomialApproximation) -> None:
    other = algdiff(settings, settings.window_s / 50)
    tau = np.linspace(0, settings.window_s, 61)
    assert settings.delay_s == pytest.approx(other.get_delay(), rel=1e-12)
    assert settings.exact_degree == other.get_degreeExactness(0)
    for k in range(3):
        expected = other.evalKernelDer(tau.copy(), k)
        np.testing.assert_allclose(settings.kernel(k)(tau), expected, rtol=1e-10, atol=1e-11 * np.abs(expected).max())
    frequencies = np.array([0.1, 0.5, 1.0, 3.0]) / settings.window_s
    amplitude, phase = other.get_ampAndPhaseFilter(2 * np.pi * frequencies)
    response = settings.kernel().frequency_response(frequencies)
    np.testing.assert_allclose(np.abs(response), amplitude, atol=1e-12)
    np.testing.assert_allclose(response / np.abs(response), np.exp(1j * phase), atol=1e-9)


def test_frequency_response_by_quadrature_and_of_a_derivative() -> None:
    settings = SETTINGS[2]
    frequencies = np.array([0.0, 0.7, 5.0, 40.0, 200.0])
    g = settings.kernel()
    response = g.frequency_response(frequencies)
    for f, value in zip(frequencies[:4], response[:4], strict=True):
        real = integral(lambda tau, f=f: g(tau) * np.cos(2 * np.pi * f * tau), 0.0, settings.window_s)
        assert value.real == pytest.approx(real, abs=1e-12)
    assert response[0] == pytest.approx(1.0, abs=1e-13)
    slope = settings.kernel(1).frequency_response(frequencies)
    np.testing.assert_allclose(slope, 2j * np.pi * frequencies * response, atol=1e-11)
    assert settings.kernel().frequency_response(3.0).shape == ()


def test_null_by_the_window_is_a_zero_of_a_bessel_function() -> None:
    settings = PolynomialApproximation(order=0, alpha=3.0, beta=3.0)
    found, gain = null_frequency(settings, 50.0, adjust="window")
    assert gain < NULL_GAIN
    assert found.alpha == 3.0
    x = np.pi * 50.0 * found.window_s
    assert special.jv(3.5, x) == pytest.approx(0.0, abs=1e-12)
    # The next windows up and down with a zero are further away than this one.
    assert abs(found.window_s - settings.window_s) < 0.5 / 50.0
    symmetric = PolynomialApproximation(order=2, alpha=3.0, beta=3.0, delay_zero=1)
    assert null_frequency(symmetric, 120.0, adjust="window")[1] < NULL_GAIN


def test_null_by_the_exponents() -> None:
    found, gain = null_frequency(PAPER, 50.0)
    assert gain < NULL_GAIN
    assert found.window_s == PAPER.window_s
    assert min(found.alpha, found.beta) > 1
    for k in (0, 1):
        response = found.kernel(k).frequency_response(50.0)
        assert abs(response) < 1e-9 * (2 * np.pi * 50.0) ** k
    # It is a notch, not a filter that suppresses everything.
    assert abs(found.kernel().frequency_response(40.0)) > 0.05
    same, gain = null_frequency(PolynomialApproximation(order=0), 50.0)
    assert gain < NULL_GAIN
    assert same.alpha == same.beta


def test_an_asymmetric_kernel_has_a_notch_but_no_null_by_the_window() -> None:
    found, gain = null_frequency(PAPER, 50.0, adjust="window")
    assert gain > NULL_GAIN
    assert 1e-3 < gain < 0.05
    for factor in (0.99, 1.01):
        shifted = found.with_window(factor * found.window_s)
        assert abs(shifted.kernel().frequency_response(50.0)) > gain


def test_a_window_shorter_than_the_period_is_refused_a_null() -> None:
    with pytest.raises(InputError, match=facts("1", "20", "0.88", "period")):
        null_frequency(PAPER, 20.0)
    with pytest.raises(InputError, match="expected a positive number of hertz"):
        null_frequency(PAPER, -1.0)
    with pytest.raises(InputError, match="available: exponents, window"):
        null_frequency(PAPER, 50.0, adjust="order")  # type: ignore[arg-type]


@pytest.mark.parametrize(("alpha", "beta", "k"), [(3.0, 3.0, 3), (1.0, 4.0, 1), (4.0, 1.9, 2), (0.5, 0.5, 1), (2.0, 2.0, 5)])
def test_exponents_too_small_for_the_derivative_are_refused(alpha: float, beta: float, k: int) -> None:
    settings = PolynomialApproximation(alpha=alpha, beta=beta)
    sentence = f"derivative of order {k} needs alpha and beta above {k}, found alpha = {alpha:g} and beta = {beta:g}"
    for make in (
        settings.kernel,
        lambda k: settings.coefficient_kernel(0, k),
        lambda k: settings.product_kernel(1, k),
    ):
        with pytest.raises(InputError, match=sentence):
            make(k)
    largest = max(int(np.ceil(min(alpha, beta))) - 1, 0)
    assert largest < k
    settings.kernel(largest)


def test_derivatives_of_product_and_factor_count_together() -> None:
    PAPER.product_kernel(0, derivative=1, outer=1)
    with pytest.raises(InputError, match="order 3 needs alpha and beta above 3"):
        PAPER.product_kernel(0, derivative=2, outer=1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"order": -1}, "order N of the polynomial is -1"),
        ({"order": 1.5}, r"order N of the polynomial is 1\.5, expected a whole number"),
        ({"product_order": 99}, r"product order N\* of the polynomial is 99"),
        ({"window_s": 0.0}, "length of the window is 0.0"),
        ({"window_s": float("nan")}, "length of the window is nan"),
        ({"alpha": -1.0}, "alpha is -1.0, expected above -1"),
        ({"beta": float("nan")}, "beta is nan"),
        ({"delay_zero": 2}, facts("delay_zero", "2", "0", "1")),
        ({"requested_delay_s": 0.1}, facts("0.1", "0", "0.044", "window")),
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        PolynomialApproximation(**change)


def test_indices_and_negative_derivatives_are_refused() -> None:
    with pytest.raises(InputError, match=facts("3", "0", "2", "coefficient")):
        PAPER.coefficient_kernel(3)
    with pytest.raises(InputError, match=facts("0", "-1", "derivative")):
        PAPER.kernel(-1)
