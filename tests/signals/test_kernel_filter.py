"""Sampled kernels: exactness, offline and online application, and rows of a robot's regression."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from scipy import signal as scipy_signal

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.signals.kernel_filter import (
    FFT_TAPS,
    OnlineFilter,
    OnlineRowFilter,
    RowKernel,
    Rule,
    apply_offline,
    approximate_derivatives,
    sample_kernel,
)
from dynid.signals.polynomial_kernels import PolynomialApproximation
from product_rule import approximate_product, window_motion

PAPER = PolynomialApproximation()
DT = 0.004


def polynomial_signal(degree: int, n: int = 80, seed: int = 0) -> tuple[Array, Polynomial]:
    time = DT * np.arange(n)
    signal = Polynomial(np.random.default_rng(seed).normal(size=degree + 1), domain=[0, time[-1]], window=[-1, 1])
    return time, signal


@pytest.mark.parametrize("rule", ["trapezoidal", "midpoint"])
@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("window_s", [0.044, 0.0467, 0.3])
def test_exact_on_polynomials_up_to_the_order(rule: Rule, k: int, window_s: float) -> None:
    settings = PolynomialApproximation(window_s=window_s)
    kernel = sample_kernel(settings.kernel(k), DT, rule)
    for degree in range(settings.exact_degree + k + 1):
        time, x = polynomial_signal(degree, n=160, seed=degree)
        result = apply_offline(x(time), kernel, start_s=time[0])
        expected = (x.deriv(k) if k else x)(result.time)
        scale = np.abs(kernel.taps).sum()
        np.testing.assert_allclose(result.values, expected, atol=1e-12 * scale)


def test_plain_sampling_is_not_exact_where_the_correction_is() -> None:
    """With the dozen taps of the paper's window the plain rule leaks a constant into the second
    derivative."""
    plain = sample_kernel(PAPER.kernel(2), DT, exact=False)
    corrected = sample_kernel(PAPER.kernel(2), DT)
    assert len(plain.taps) == 12
    assert abs(plain.taps.sum()) * PAPER.window_s**2 > 1.0
    assert abs(corrected.taps.sum()) * PAPER.window_s**2 < 1e-12
    # The correction vanishes as the samples become dense.
    fine = [sample_kernel(PAPER.kernel(2), 0.044 / 4400, exact=exact).taps for exact in (False, True)]
    assert np.linalg.norm(fine[1] - fine[0]) < 1e-3 * np.linalg.norm(fine[0])


def test_the_correction_is_the_smallest() -> None:
    kernel = PAPER.kernel(1)
    plain, corrected = (sample_kernel(kernel, DT, exact=exact).taps for exact in (False, True))
    s = 1 - 2 * np.arange(12) / 11
    weight = kernel.weight(s)
    inner = weight > 0
    delta = (corrected - plain)[inner]
    powers = s[inner] ** np.arange(kernel.exact_degree + 1)[:, None]
    # Stationarity of sum delta^2 / w under the moment conditions: delta / w is a combination of them.
    _, residual, *_ = np.linalg.lstsq(powers.T, delta / weight[inner])
    assert residual[0] < 1e-20 * np.sum((delta / weight[inner]) ** 2) + 1e-24
    assert np.all(corrected[~inner] == 0)


def test_exact_order_one_is_a_weighted_savitzky_golay_filter() -> None:
    """Taps ``w_j poly(s_j)`` right on degree N + 1 are the weighted least-squares polynomial of that
    degree."""
    s = 1 - 2 * np.arange(12) / 11
    weight = (1 - s**2) ** 3
    design = s[:, None] ** np.arange(3)
    row = np.array([1, 1 / 3, 1 / 9]) @ np.linalg.pinv(np.sqrt(weight)[:, None] * design) * np.sqrt(weight)
    np.testing.assert_allclose(sample_kernel(PAPER.kernel(), DT).taps, row, atol=1e-13)


@pytest.mark.parametrize(("rule", "name"), [("trapezoidal", "trapezoidal"), ("midpoint", "mid-point")])
def test_plain_taps_equal_algdiff(rule: Rule, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from AlgDiff import AlgebraicDifferentiator

        settings = PolynomialApproximation(order=2, window_s=0.5, alpha=4.0, beta=5.0)
        dt = 0.5 / 64  # a binary fraction: its number of taps is an unguarded int(T / ts)
        other = AlgebraicDifferentiator(ts=dt, alpha=4.0, beta=5.0, N=2, T=0.5, display=False, corr=False)
        for k in range(3):
            expected = other.discretize(k, method=name)[k][name]
            kernel = sample_kernel(settings.kernel(k), dt, rule, exact=False)
            np.testing.assert_allclose(kernel.taps, expected, atol=1e-12 * np.abs(expected).max())
    shift = {"trapezoidal": 0.0, "midpoint": dt / 2}[rule]
    assert kernel.delay_s == pytest.approx(other.get_delay() - shift, rel=1e-12)


def test_negative_exponents_need_the_midpoint_rule() -> None:
    settings = PolynomialApproximation(order=1, alpha=-0.5, beta=-0.5)
    with pytest.raises(InputError, match="use the midpoint rule"):
        sample_kernel(settings.kernel(), DT)
    kernel = sample_kernel(settings.kernel(), DT, "midpoint")
    time, x = polynomial_signal(2)
    result = apply_offline(x(time), kernel)
    np.testing.assert_allclose(result.values, x(result.time), atol=1e-12)


def test_noise_gain_is_the_variance_of_filtered_noise() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=400_000)
    for k in (0, 1):
        kernel = sample_kernel(PAPER.kernel(k), DT)
        assert np.var(apply_offline(noise, kernel).values) == pytest.approx(kernel.noise_gain, rel=0.02)
    # A window twice as long has half the noise in the signal and an eighth in the first derivative.
    for k, share in ((0, 1 / 2), (1, 1 / 8)):
        fine, longer = (sample_kernel(one.kernel(k), 1e-4).noise_gain for one in (PAPER, PAPER.with_window(0.088)))
        assert longer / fine == pytest.approx(share, rel=1e-2)


def test_frequency_response_of_taps() -> None:
    kernel = sample_kernel(PAPER.kernel(1), DT)
    frequencies = np.array([0.0, 3.0, 40.0, 125.0])
    _, expected = scipy_signal.freqz(kernel.taps, worN=frequencies, fs=1 / DT)
    np.testing.assert_allclose(kernel.frequency_response(frequencies), expected, atol=1e-10)
    fine = sample_kernel(PAPER.kernel(1), 1e-5)
    np.testing.assert_allclose(
        fine.frequency_response(frequencies), PAPER.kernel(1).frequency_response(frequencies), atol=1e-4
    )


@pytest.mark.parametrize("window_s", [0.044, 0.4, 2.0])
@pytest.mark.parametrize("n", [600, 2000])
def test_offline_equals_a_plain_convolution(window_s: float, n: int) -> None:
    kernel = sample_kernel(PolynomialApproximation(window_s=window_s).kernel(1), DT)
    x = 3.0 + np.cumsum(np.random.default_rng(0).normal(size=(n, 4)), axis=0)
    result = apply_offline(x, kernel)
    expected = np.stack([np.convolve(column, kernel.taps, "valid") for column in x.T], axis=1)
    scale = np.abs(kernel.taps).sum() * np.abs(x).max()
    np.testing.assert_allclose(result.values, expected, atol=1e-13 * scale)
    np.testing.assert_allclose(apply_offline(x[:, 1], kernel).values, result.values[:, 1], atol=1e-13 * scale)
    assert len(result.time) == n - kernel.n_dropped
    assert not result.values.flags.writeable
    assert {0.044: False, 0.4: True, 2.0: True}[window_s] == (len(kernel.taps) > FFT_TAPS)


def test_time_stamps_are_those_of_the_signal_less_the_delay() -> None:
    time = 7.0 + DT * np.arange(50)
    for rule in ("trapezoidal", "midpoint"):
        kernel = sample_kernel(PAPER.kernel(), DT, rule)
        result = apply_offline(time, kernel, start_s=7.0)
        # A clock filtered tells its own time.
        np.testing.assert_allclose(result.values, result.time, atol=1e-12)
        np.testing.assert_allclose(result.time, time[kernel.n_dropped :] - kernel.delay_s, atol=1e-12)


@given(
    sizes=st.lists(st.integers(0, 90), min_size=1, max_size=12),
    window_s=st.sampled_from([0.044, 0.4]),
    k=st.integers(0, 2),
)
def test_online_equals_offline_whatever_the_blocks(sizes: list[int], window_s: float, k: int) -> None:
    kernel = sample_kernel(PolynomialApproximation(window_s=window_s).kernel(k), DT)
    n = sum(sizes) + len(kernel.taps)
    x = 2.0 + np.cumsum(0.1 * np.random.default_rng(len(sizes)).normal(size=(n, 3)), axis=0)
    offline = apply_offline(x, kernel, start_s=1.5)
    online = OnlineFilter(kernel, 3, start_s=1.5)
    cuts = np.cumsum(sizes)
    results = [online.push(block) for block in np.split(x, cuts)]
    scale = np.abs(kernel.taps).sum() * np.abs(x).max()
    np.testing.assert_allclose(np.concatenate([r.values for r in results]), offline.values, atol=1e-12 * scale)
    np.testing.assert_array_equal(np.concatenate([r.time for r in results]), offline.time)


def test_online_sample_by_sample() -> None:
    kernel = sample_kernel(PAPER.kernel(1), DT)
    x = np.sin(5 * DT * np.arange(200))[:, None] * np.array([1.0, 2.0])
    online = OnlineFilter(kernel, 2)
    values = []
    for i, sample in enumerate(x):
        result = online.push(sample)
        assert len(result.values) == (i >= kernel.n_dropped)
        values.append(result.values)
    offline = apply_offline(x, kernel).values
    np.testing.assert_allclose(np.concatenate(values), offline, rtol=0, atol=1e-12)


def test_rows_by_parts_equal_the_filtered_derivative() -> None:
    """For A a polynomial of degree N + 2 the rows are exact; for a sine they are off by
    ``sampling_error``."""
    row_kernel = RowKernel.of(PAPER, DT)
    time, A = polynomial_signal(PAPER.order + 2)
    _, B = polynomial_signal(PAPER.order + 1, seed=5)
    W = row_kernel.rows(A(time)[:, None], B(time)[:, None])
    np.testing.assert_allclose(W.values[:, 0], A.deriv()(W.time) - B(W.time), atol=1e-10)
    np.testing.assert_allclose(row_kernel.torque(B(time)).values, B(W.time), atol=1e-12)

    for f in (2.0, 10.0):
        wave = np.exp(2j * np.pi * f * time)
        ideal = row_kernel.torque((2j * np.pi * f * wave).real).values
        got = row_kernel.rows(wave.real, 0 * wave.real).values
        error = np.max(np.abs(got - ideal)) / (2 * np.pi * f * abs(row_kernel.g.frequency_response(f)))
        assert error == pytest.approx(float(row_kernel.sampling_error(f)), rel=0.15)
    assert row_kernel.sampling_error(2.0) < 1e-5
    assert RowKernel.of(PAPER, DT, exact=False).sampling_error(2.0) > 1e-2


def test_rows_online_equal_offline() -> None:
    row_kernel = RowKernel.of(PAPER, DT)
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(2, 300, 5))
    online = OnlineRowFilter(row_kernel, 5)
    results = [online.push(a, b) for a, b in zip(np.split(A, [1, 2, 50]), np.split(B, [1, 2, 50]), strict=True)]
    offline = row_kernel.rows(A, B)
    scale = np.abs(row_kernel.g_dot.taps).sum()
    np.testing.assert_allclose(np.concatenate([r.values for r in results]), offline.values, atol=1e-12 * scale)
    np.testing.assert_array_equal(np.concatenate([r.time for r in results]), offline.time)


@pytest.mark.parametrize("derivatives", [(0, 0), (0, 1), (1, 1), (0, 2), (1, 0)])
def test_product_rule_on_polynomials(derivatives: tuple[int, int]) -> None:
    """The product has degree N + 1 at most, so its approximation is its value."""
    j, k = derivatives
    for degree_1, degree_2 in ((0, 2), (1, 1), (2, 0)):
        time, x1 = polynomial_signal(degree_1 + j, seed=1)
        _, x2 = polynomial_signal(degree_2 + k, seed=2)
        result = approximate_product(x1(time), x2(time), PAPER, DT, derivatives, start_s=0.0)
        expected = (x1.deriv(j) if j else x1)(result.time) * (x2.deriv(k) if k else x2)(result.time)
        np.testing.assert_allclose(result.values, expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


def test_product_rule_equals_filtering_the_product() -> None:
    """x1 of degree N*, x2 any: (22) has no error of its own, only that of sampling, here made small."""
    dt = 0.044 / 440
    time = dt * np.arange(900)
    x1 = 1 + 3 * time - 40 * time**2
    x2, x2_dot = np.sin(60 * time), 60 * np.cos(60 * time)
    for outer in (0, 1):
        for k, factor in ((0, x2), (1, x2_dot)):
            direct = apply_offline(x1 * factor, sample_kernel(PAPER.kernel(outer), dt)).values
            product = approximate_product(x1, x2, PAPER, dt, (0, k), outer=outer).values
            np.testing.assert_allclose(product, direct, atol=1e-5 * np.abs(direct).max())
    # A factor beyond degree N* is where the approximation starts.
    direct = apply_offline(x2 * x2, sample_kernel(PAPER.kernel(), dt)).values
    error = np.abs(approximate_product(x2, x2, PAPER, dt).values - direct).max()
    assert 1e-4 < error < 0.2


# --- a planar two-joint arm in closed form: momentum regressor A, dL/dq regressor B, torque regressor Y ---

PHI = np.array([1.2, 0.3, 0.25, 12.0, 4.0])


def two_joint_arm(q: Array, v: Array) -> tuple[Array, Array]:
    """M11 = phi1 + 2 phi3 c2, M12 = phi2 + phi3 c2, M22 = phi2; V = phi4 sin q1 + phi5 sin(q1 + q2)."""
    c2, s2, v1, v2 = np.cos(q[..., 1]), np.sin(q[..., 1]), v[..., 0], v[..., 1]
    g1, g2, zero = np.cos(q[..., 0]), np.cos(q[..., 0] + q[..., 1]), np.zeros_like(v1)
    A = [[v1, v2, c2 * (2 * v1 + v2), zero, zero], [zero, v1 + v2, c2 * v1, zero, zero]]
    B = [[zero, zero, zero, -g1, -g2], [zero, zero, -s2 * v1 * (v1 + v2), zero, -g2]]
    return tuple(np.moveaxis(np.array(m), (0, 1), (-2, -1)) for m in (A, B))  # type: ignore[return-value]


def torque_regressor(q: Array, v: Array, a: Array) -> Array:
    c2, s2, v1, v2 = np.cos(q[..., 1]), np.sin(q[..., 1]), v[..., 0], v[..., 1]
    a1, a2, zero = a[..., 0], a[..., 1], np.zeros_like(v1)
    g1, g2 = np.cos(q[..., 0]), np.cos(q[..., 0] + q[..., 1])
    Y = [
        [a1, a2, c2 * (2 * a1 + a2) - s2 * v2 * (2 * v1 + v2), g1, g2],
        [zero, a1 + a2, c2 * a1 + s2 * v1 * v1, zero, g2],
    ]
    return np.moveaxis(np.array(Y), (0, 1), (-2, -1))


def motion(dt: float, base_hz: float = 0.5) -> tuple[Array, Array, Array]:
    time = dt * np.arange(round(6 / dt))
    rng = np.random.default_rng(0)
    q, v, a = np.zeros((3, len(time), 2))
    for harmonic in range(1, 6):
        omega = 2 * np.pi * base_hz * harmonic
        c, s = np.cos(omega * time)[:, None], np.sin(omega * time)[:, None]
        cosine, sine = 0.6 / harmonic * rng.normal(size=(2, 2))
        q, v = q + cosine * c + sine * s, v + omega * (sine * c - cosine * s)
        a = a - omega**2 * (cosine * c + sine * s)
    return q, v, a


def equation_error(W: Array, tau: Array) -> float:
    return float(np.linalg.norm(W @ PHI - tau) / np.linalg.norm(tau))


def product_rule_rows(q: Array, settings: PolynomialApproximation, dt: float) -> Array:
    window = window_motion(q, settings, dt)
    A, _ = two_joint_arm(window.position, window.weighted_velocity)
    _, B = two_joint_arm(window.position, window.velocity)
    return window.rows(A, B)


def pointwise_rows(q: Array, settings: PolynomialApproximation, dt: float, exact: bool = True) -> Array:
    q_hat, v_hat = approximate_derivatives(q, settings, dt, exact=exact)
    A, B = (m.reshape(len(m), -1) for m in two_joint_arm(q_hat.values, v_hat.values))
    return RowKernel.of(settings, dt, exact=exact).rows(A, B).values.reshape(-1, 2, 5)


def test_parameters_of_an_arm_from_position_and_torque_alone() -> None:
    q, v, a = motion(DT)
    tau = torque_regressor(q, v, a) @ PHI
    row_kernel = RowKernel.of(PAPER, DT)

    def estimate(W: Array, right: Array) -> Array:
        return np.linalg.lstsq(W.reshape(-1, 5), right.reshape(-1))[0]

    once = row_kernel.torque(tau).values
    twice = row_kernel.torque(once).values
    np.testing.assert_allclose(estimate(product_rule_rows(q, PAPER, DT), once), PHI, rtol=1e-3)
    np.testing.assert_allclose(estimate(pointwise_rows(q, PAPER, DT), twice), PHI, rtol=1e-3)
    # Taps sampled plainly spoil the same estimate: the correction is not a refinement.
    plain = RowKernel.of(PAPER, DT, exact=False)
    right = plain.torque(plain.torque(tau).values).values
    worse = estimate(pointwise_rows(q, PAPER, DT, exact=False), right)
    assert np.max(np.abs(worse / PHI - 1)) > 1e-3


def test_equation_error_of_the_product_rule_vanishes_with_n_star_unlike_the_pointwise_one() -> None:
    dt = 0.001
    q, v, a = motion(dt)
    tau = torque_regressor(q, v, a) @ PHI
    errors = []
    for n_star in (1, 2, 3, 4):
        settings = PolynomialApproximation(product_order=n_star)
        errors.append(equation_error(product_rule_rows(q, settings, dt), RowKernel.of(settings, dt).torque(tau).values))
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[3] < 4e-6
    row_kernel = RowKernel.of(PAPER, dt)
    twice = row_kernel.torque(row_kernel.torque(tau).values).values
    assert equation_error(pointwise_rows(q, PAPER, dt), twice) > 5 * errors[3]


def test_window_motion_at_the_nodes() -> None:
    """q of degree N* + 1 and v of degree N* + 1 are right at the nodes, which are zeros of P_{N*+1}."""
    time, x = polynomial_signal(PAPER.product_order + 1)
    window = window_motion(x(time)[:, None], PAPER, DT, every=3)
    newest = window.time + PAPER.delay_s
    at = newest[:, None] - PAPER.node_delays_s
    np.testing.assert_allclose(window.position[:, :, 0], x(at), atol=1e-12)
    np.testing.assert_allclose(window.velocity[:, :, 0], x.deriv()(at), atol=1e-9)
    np.testing.assert_allclose(window.weighted_velocity.sum(axis=1)[:, 0], x.deriv(2)(window.time), atol=1e-7)
    whole = window_motion(x(time)[:, None], PAPER, DT)
    np.testing.assert_array_equal(window.position, whole.position[::3])
    np.testing.assert_array_equal(window.time, whole.time[::3])


def test_inputs_stay_unchanged() -> None:
    x = np.random.default_rng(0).normal(size=(100, 2))
    before = x.copy()
    apply_offline(x, sample_kernel(PAPER.kernel(), DT))
    OnlineFilter(sample_kernel(PAPER.kernel(), DT), 2).push(x)
    window_motion(x, PAPER, DT)
    np.testing.assert_array_equal(x, before)


def refusals() -> list[tuple[Any, str]]:
    kernel = sample_kernel(PAPER.kernel(), DT)
    x = np.zeros((100, 2))
    return [
        (lambda: sample_kernel(PAPER.kernel(), 0.0), "sample period is 0.0, expected a positive number of seconds"),
        (lambda: sample_kernel(PAPER.kernel(), DT, "simpson"), "unknown quadrature rule 'simpson'"),  # type: ignore[arg-type]
        (lambda: sample_kernel(PAPER.kernel(), 0.05), "window of 0.044 s holds 1 samples"),
        (
            lambda: sample_kernel(PAPER.kernel(2), 0.011),
            "holds 3 samples with weight .* degree 4 needs at least 5",
        ),
        (lambda: apply_offline(x[:5], kernel), "signal has 5 samples, filter g needs at least 12"),
        (lambda: apply_offline(x * np.nan, kernel), "signal holds 200 values that are NaN"),
        (lambda: apply_offline(np.zeros((3, 3, 3)), kernel), "signal has 3 dimensions"),
        (lambda: OnlineFilter(kernel, 0), "online filter has 0 columns"),
        (lambda: OnlineFilter(kernel, 3).push(x), r"shape \(100, 2\), expected \(any, 3\)"),
        (
            lambda: RowKernel.of(PAPER, DT).rows(x, x[:, :1]),
            r"A has shape \(100, 2\) and B has shape \(100, 1\)",
        ),
    ]


@pytest.mark.parametrize(("call", "sentence"), refusals())
def test_bad_input_is_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


def test_gains_and_row_errors_of_the_papers_settings() -> None:
    f = np.geomspace(125.0 * 10.0**-2.5, 125.0, 400)
    gains = [np.abs(PAPER.kernel(k).frequency_response(f) / (2j * np.pi * f) ** k) for k in (0, 1)]
    # By parts: the kernels of a signal and of its derivative have one and the same gain.
    np.testing.assert_allclose(gains[1], gains[0], rtol=1e-9, atol=1e-9)
    taps = [sample_kernel(PAPER.kernel(k), DT) for k in (0, 1)]
    assert [round(kernel.noise_gain, 3) for kernel in taps] == pytest.approx([0.237, 3.72e3], rel=1e-3)
    assert taps[0].delay_s == pytest.approx(0.0147, abs=5e-5)
    low = f[f < 20.0]
    parted = np.abs(taps[1].frequency_response(low) / (2j * np.pi * low) / taps[0].frequency_response(low) - 1.0)
    np.testing.assert_allclose(parted, RowKernel.of(PAPER, DT).sampling_error(low), rtol=1e-9)
