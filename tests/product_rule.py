"""The product rule (22)-(23) of Lomakin and Deutscher (2020) written out, against which the product rows are checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, frozen_view
from dynid.signals.kernel_filter import FilteredSignal, Rule, apply_offline, sample_kernel
from dynid.signals.polynomial_kernels import Kernel, PolynomialApproximation


def approximate_product(
    first: ArrayLike,
    second: ArrayLike,
    settings: PolynomialApproximation,
    sample_period_s: float,
    derivatives: tuple[int, int] = (0, 0),
    outer: int = 0,
    rule: Rule = "trapezoidal",
    exact: bool = True,
    start_s: float = 0.0,
) -> FilteredSignal:
    """Product rule (22)-(23): ``(x1^(j) x2^(k))^(outer) = sum_i c_i{x1^(j)} P~_i{x2^(k)}``.

    ``derivatives`` is (j, k); every derivative is moved to a kernel by parts. It is the same as filtering the
    product of the derivatives with ``g^(outer)``, for ``x1^(j)`` of degree N* on each window and any ``x2``.
    """
    x1, x2 = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)

    def filtered(x: Array, kernel: Kernel) -> Array:
        return apply_offline(x, sample_kernel(kernel, sample_period_s, rule, exact)).values

    of_first, of_second = derivatives
    terms = [
        filtered(x1, settings.coefficient_kernel(i, of_first)) * filtered(x2, settings.product_kernel(i, of_second, outer))
        for i in range(settings.product_order + 1)
    ]
    g = sample_kernel(settings.kernel(), sample_period_s, rule, exact)
    return FilteredSignal(g.result_time(g.n_dropped, len(terms[0]), start_s), np.sum(terms, axis=0))


@dataclass(frozen=True, eq=False)
class WindowMotion:
    """Motion inside every window at its ``N* + 1`` nodes, for the product rule (22)-(23) of any robot.

    With a momentum regressor ``A(q, v)`` that is linear in ``v``, ``B(q, v)`` and Lagrange polynomials
    ``l_m`` of the nodes:

        integral g dA/dt = integral g' A(q, v) = sum_m A(q_m, u_m),   u_m = integral (g' l_m)' q
        integral g B                           = sum_m b_m B(q_m, v_m),   b_m = integral g l_m

    ``position`` ``q_m``, ``velocity`` ``v_m`` and ``weighted_velocity`` ``u_m`` are ``(rows, nodes, joints)``
    and come from ``q`` alone; only ``A``'s dependence on ``q`` is approximated by a polynomial of degree N*,
    the velocity in it is not. The torque that belongs to a row is ``g * tau``, filtered once.
    """

    time: Array
    position: Array
    velocity: Array
    weighted_velocity: Array
    node_weights: Array

    def __post_init__(self) -> None:
        for name in ("time", "position", "velocity", "weighted_velocity", "node_weights"):
            object.__setattr__(self, name, frozen_view(getattr(self, name)))

    def rows(self, A: ArrayLike, B: ArrayLike) -> Array:
        """``W = sum_m A(q_m, u_m) - b_m B(q_m, v_m)``, both of shape ``(rows, nodes, ...)``."""
        a, b = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
        return np.asarray(a.sum(axis=1) - np.tensordot(b, self.node_weights, axes=(1, 0)))


def window_motion(
    position: ArrayLike,
    settings: PolynomialApproximation,
    sample_period_s: float,
    rule: Rule = "trapezoidal",
    exact: bool = True,
    start_s: float = 0.0,
    every: int = 1,
) -> WindowMotion:
    """Motion at the nodes of every window, or of every ``every``-th one, from positions ``(n, joints)``."""
    q = np.asarray(position, dtype=np.float64)

    def bank(kernels: list[Kernel]) -> Array:
        sampled = [sample_kernel(kernel, sample_period_s, rule, exact) for kernel in kernels]
        return np.stack([apply_offline(q, kernel, start_s).values[::every] for kernel in sampled], axis=1)

    nodes = range(settings.product_order + 1)
    g = sample_kernel(settings.kernel(), sample_period_s, rule, exact)
    return WindowMotion(
        time=g.result_time(g.n_dropped, q.shape[0] - g.n_dropped, start_s)[::every],
        position=bank([settings.node_kernel(m) for m in nodes]),
        velocity=bank([settings.node_kernel(m, derivative=1) for m in nodes]),
        weighted_velocity=bank([settings.node_product_kernel(m, derivative=1, outer=1) for m in nodes]),
        node_weights=settings.node_weights,
    )
