"""The formulas of joint effects in symbols, one per effect, for code that is written out.

Each rule gives the signals of all columns in the effect's own order; the proof of the exported file compares them with the
effect itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import UnknownNameError
from dynid.export.expressions import Expression, Graph
from dynid.robot.effects import (
    Armature,
    AsymmetricCoulomb,
    Coulomb,
    Coupled,
    Effect,
    LoadCoulomb,
    LoadViscous,
    Offset,
    Sigmoid,
    SmoothCoulomb,
    Stribeck,
    Viscous,
    ViscousPolynomial,
)

Row: TypeAlias = list[Expression]


@dataclass(frozen=True, eq=False)
class SymbolicMotion:
    """Motion of the joints with one degree of freedom, one expression each."""

    graph: Graph
    position: Row
    velocity: Row
    acceleration: Row
    load: Row


def symbolic_signals(effect: Effect, motion: SymbolicMotion) -> Row:
    """Signal of every column of an effect."""
    rule = _RULES.get(type(effect))
    if rule is None:
        raise UnknownNameError("effect to write as code", effect.name, sorted(kind.name for kind in _RULES))
    return rule(effect, motion)


def _per_joint(value: Any, n: int) -> list[float]:
    values: Array = np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))
    return [float(x) for x in values]


def _sign(effect: Any, motion: SymbolicMotion) -> Row:
    """``tanh(v / sqrt(width^2 + (time a)^2))`` or the sharp sign, zero in the dead zone."""
    g, n = motion.graph, len(motion.velocity)
    options = zip(
        motion.velocity,
        motion.acceleration,
        _per_joint(effect.smooth_width, n),
        _per_joint(getattr(effect, "smooth_time_s", 0.0), n),
        _per_joint(effect.dead_zone, n),
        strict=True,
    )
    signs: Row = []
    for v, a, width, time, zone in options:
        sharp = g.call("sign", v)
        if time > 0.0:
            swept = g.multiply(g.constant(time), a)
            scale = g.call("sqrt", g.add(g.constant(width * width), g.multiply(swept, swept)))
            smooth = g.call("tanh", g.divide(v, scale))
            sign = smooth if width > 0.0 else g.select(g.compare("lt", g.zero, scale), smooth, sharp)
        else:
            sign = g.call("tanh", g.divide(v, g.constant(width))) if width > 0.0 else sharp
        if zone > 0.0:
            sign = g.select(g.compare("lt", g.call("fabs", v), g.constant(zone)), g.zero, sign)
        signs.append(sign)
    return signs


def _asymmetric(effect: Any, motion: SymbolicMotion) -> Row:
    g, signs = motion.graph, _sign(effect, motion)
    return [g.call(side, sign, g.zero) for side in ("fmax", "fmin") for sign in signs]


def _polynomial(effect: Any, motion: SymbolicMotion) -> Row:
    g = motion.graph
    signals: Row = []
    for power in effect.powers:
        for v in motion.velocity:
            size, product = g.call("fabs", v), v
            for _ in range(power - 1):
                product = g.multiply(product, size)
            signals.append(product)
    return signals


def _stribeck(effect: Any, motion: SymbolicMotion) -> Row:
    g, n = motion.graph, len(motion.velocity)
    options = zip(
        motion.velocity,
        _sign(effect, motion),
        _per_joint(effect.stribeck_speed, n),
        _per_joint(effect.stribeck_exponent, n),
        strict=True,
    )
    signals: Row = []
    for v, sign, speed, exponent in options:
        x = g.divide(g.call("fabs", v), g.constant(speed))
        power = g.multiply(x, x) if exponent == 2.0 else g.call("pow", x, g.constant(exponent))
        rational = effect.form == "rational"
        fade = g.divide(g.one, g.add(g.one, power)) if rational else g.call("exp", g.negative(power))
        signals.append(g.multiply(fade, sign))
    return signals


def _sigmoid(effect: Any, motion: SymbolicMotion) -> Row:
    g, n = motion.graph, len(motion.velocity)
    half = g.constant(0.5)

    def logistic(x: Expression) -> Expression:
        return g.multiply(half, g.add(g.one, g.call("tanh", g.multiply(half, x))))

    options = zip(motion.velocity, _per_joint(effect.slope, n), _per_joint(effect.shift, n), strict=True)
    return [
        g.subtract(logistic(g.multiply(g.constant(slope), g.add(v, g.constant(shift)))), logistic(g.constant(slope * shift)))
        for v, slope, shift in options
    ]


def _loaded(motion: SymbolicMotion, signals: Row) -> Row:
    g = motion.graph
    return [g.multiply(g.call("fabs", load), signal) for load, signal in zip(motion.load, signals, strict=True)]


def _coupled(effect: Any, motion: SymbolicMotion) -> Row:
    """The inner effect on the motors: ``q_m = B q``, ``load_m = B^-T load``."""
    g = motion.graph

    def mixed(matrix: Array, values: Row) -> Row:
        rows: Row = []
        for coefficients in matrix:
            total = g.zero
            for coefficient, value in zip(coefficients, values, strict=True):
                total = g.add(total, g.multiply(g.constant(float(coefficient)), value))
            rows.append(total)
        return rows

    B = effect.B
    of_motors = SymbolicMotion(
        g,
        mixed(B, motion.position),
        mixed(B, motion.velocity),
        mixed(B, motion.acceleration),
        mixed(np.linalg.inv(B).T, motion.load),
    )
    inner = symbolic_signals(effect.effect, of_motors)
    n = len(motion.velocity)
    motor = np.abs(effect.effect.incidence(n)).argmax(axis=0) + 1
    chosen = range(1, n + 1) if effect.motors is None else effect.motors
    return [signal for signal, number in zip(inner, motor, strict=True) if number in chosen]


_RULES: Mapping[type[Effect], Callable[[Any, SymbolicMotion], Row]] = {
    Viscous: lambda effect, motion: motion.velocity,
    Coulomb: _sign,
    Offset: lambda effect, motion: [motion.graph.one] * len(motion.velocity),
    Armature: lambda effect, motion: motion.acceleration,
    SmoothCoulomb: _sign,
    AsymmetricCoulomb: _asymmetric,
    ViscousPolynomial: _polynomial,
    Stribeck: _stribeck,
    Sigmoid: _sigmoid,
    LoadCoulomb: lambda effect, motion: _loaded(motion, _sign(effect, motion)),
    LoadViscous: lambda effect, motion: _loaded(motion, motion.velocity),
    Coupled: _coupled,
}
