"""Pinocchio's recursions over a tree, one state per call: what a simulation integrates and a controller feeds forward.

Each function takes a model of :func:`dynid.adapters.pinocchio.pinocchio_model` and returns a function with working memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from dynid.arrays import Array

OfState: TypeAlias = Callable[[Array, Array, Array], Array]


def forward_dynamics(model: Any) -> OfState:
    """``a(q, v, tau)`` by the articulated-body algorithm, rotor inertias included."""
    import pinocchio as pin

    working, aba = model.createData(), pin.aba

    def acceleration(q: Array, v: Array, tau: Array) -> Array:
        a: Array = aba(model, working, q, v, tau)
        return a

    return acceleration


def inverse_dynamics(model: Any) -> OfState:
    """``tau(q, v, a)`` by the recursive Newton-Euler algorithm."""
    import pinocchio as pin

    working, rnea = model.createData(), pin.rnea

    def torque(q: Array, v: Array, a: Array) -> Array:
        tau: Array = rnea(model, working, q, v, a)
        return tau

    return torque


def gravity_torque(model: Any) -> Callable[[Array], Array]:
    """``g(q)``."""
    import pinocchio as pin

    working = model.createData()

    def torque(q: Array) -> Array:
        g: Array = pin.computeGeneralizedGravity(model, working, q)
        return g

    return torque


def mobility(model: Any) -> Callable[[Array], Array]:
    """``M(q)^-1`` with rotor inertia."""
    import pinocchio as pin

    working = model.createData()

    def inverse(q: Array) -> Array:
        upper: Array = np.triu(pin.computeMinverse(model, working, q))
        return upper + np.triu(upper, 1).T

    return inverse
