"""Quantiles of Student's distribution, without the second that importing SciPy's statistics takes."""

from __future__ import annotations

import math
from statistics import NormalDist

_LARGE = 400.0
"""Degrees of freedom from which five terms of the expansion about the normal distribution are exact to twelve digits."""


def student_quantile(probability: float, freedom: float) -> float:
    """The ``t`` that Student's distribution with ``freedom`` degrees of freedom stays below with this probability.

    Examples:
        >>> round(student_quantile(0.975, 10.0), 4)
        2.2281
    """
    if probability < 0.5:
        return -student_quantile(1.0 - probability, freedom)
    z = NormalDist().inv_cdf(probability)
    start = _expansion(z, freedom)
    if freedom >= _LARGE:
        return start
    low, high, t = 0.0, math.inf, max(start, z)
    for _ in range(200):
        short = (1.0 - probability) - _upper_tail(t, freedom)
        low, high = (t, high) if short < 0.0 else (low, t)
        new = t - short / _density(t, freedom)
        if not low < new < high:  # Newton's step leaves what is known to hold the answer
            new = 2.0 * t + 1.0 if math.isinf(high) else 0.5 * (low + high)
        if abs(new - t) <= 1e-15 * t:
            return new
        t = new
    return t


def _expansion(z: float, n: float) -> float:
    """Cornish and Fisher's expansion of the quantile in ``1 / n`` (Abramowitz and Stegun 26.7.5)."""
    z2 = z * z
    terms = (
        (z2 + 1.0) / 4.0,
        ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0,
        (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0,
        ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92160.0,
        (((((27.0 * z2 + 339.0) * z2 + 930.0) * z2 - 1782.0) * z2 - 765.0) * z2 + 17955.0) / 368640.0,
    )
    return z * (1.0 + sum(term / n ** (k + 1) for k, term in enumerate(terms)))


def _density(t: float, n: float) -> float:
    size = math.lgamma(0.5 * (n + 1.0)) - math.lgamma(0.5 * n) - 0.5 * math.log(math.pi * n)
    return math.exp(size - 0.5 * (n + 1.0) * math.log1p(t * t / n))


def _upper_tail(t: float, n: float) -> float:
    """Probability of a larger value: half the incomplete beta function at ``n / (n + t^2)``."""
    a, b = 0.5 * n, 0.5
    x, y = n / (n + t * t), t * t / (n + t * t)
    size = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(size + a * math.log(x) + b * math.log(y)) if y > 0.0 else 0.0
    if x < (a + 1.0) / (a + b + 2.0):
        return 0.5 * front * _fraction(a, b, x) / a
    return 0.5 * (1.0 - front * _fraction(b, a, y) / b)


def _fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    found = d
    for m in range(1, 1000):
        for top in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d = 1.0 / (1.0 + top * d)
            c = 1.0 + top / c
            found *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return found
