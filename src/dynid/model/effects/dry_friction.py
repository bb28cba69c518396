"""Dry friction: it turns with the sign of the speed, as friction and filters leave that sign.

    sign_w(v, a) = tanh(v / W),    W^2 = width^2 + (time a)^2

``width`` is a property of the joint: friction turns over as the speed passes through zero, not at once. ``time`` is the
memory of the signal path: filtered torque steps over a fixed time, during which the speed changes by ``time a``, so a fast
reversal looks wider over speed than a slow one.

With a ``slide_distance`` the sign turns over a distance of travel instead, as elastic contacts do before they slide (Dahl 1968):

    sign_d(x) = sign(x) (1 - 2 exp(-w_1 / distance) + 2 exp(-w_2 / distance) - ...)

with ``x`` the signed distance since the last reversal, ``w_1 = |x|``, and ``w_k`` the way since the k-th last one. A joint at rest
keeps the friction of its last direction. Where no history is known (a state alone, generated code, a forward simulation) joints count
as sliding, with the smooth sign above. The effects are

    Coulomb      tau = fc sign(v), sharp, with a dead zone or smooth; asymmetric: fcp forwards and -fcn backwards
    Stribeck     tau = fs / (1 + (|v| / vs)^n) sign(v)     rational (Hess and Soom 1990)
                 tau = fs exp(-(|v| / vs)^n) sign(v)       exponential (Bo and Pavelescu 1982)
    sigmoid      tau = fsig (1 / (1 + exp(-slope (v + shift))) - 1 / (1 + exp(-slope shift)))    (Gaz and others 2019, equation 25)
    load         tau = flc |load| sign(v)                  gear teeth and bearings rub in proportion to their load

The two forms of Stribeck friction hardly differ near ``vs``; the rational one has a tail, so that fast motion shows something of it
too. A peak narrower than the turn of the sign would hardly show, and its ``fs`` could be anything: ``vs`` counts as no less than the
width of that turn. The load is not measured apart from friction; it is the torque that the rigid bodies need.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import UnknownNameError
from dynid.model.effects.effect import Effect, Motion, NonlinearParameter
from dynid.model.effects.jointwise import Coefficient, JointwiseEffect
from dynid.model.effects.mathematics import Mathematics, Value

DEAD_ZONE = NonlinearParameter("dead_zone", "rad/s")
WIDTH = NonlinearParameter("smooth_width", "rad/s", low=1e-4, high=1.0)
TIME = NonlinearParameter("smooth_time_s", "s", low=1e-4, high=0.5)
DISTANCE = NonlinearParameter("slide_distance", "rad", low=2e-5, high=0.05)


def turning_sign(m: Mathematics, motion: Motion, width: Value, time: Value, dead_zone: Value) -> Value:
    """``sign_w(v, a)``, the sharp sign where width and time are zero, zero in the dead zone."""
    v = motion.velocity
    W = m.where(time > 0.0, lambda: m.sqrt(width * width + (time * motion.acceleration) ** 2), width)

    def smooth() -> Value:
        return m.tanh(v / W)

    sign = m.where(width > 0.0, smooth, lambda: m.where(W > 0.0, smooth, lambda: m.sign(v)))
    return m.where(dead_zone > 0.0, lambda: m.where(abs(v) < dead_zone, 0.0, sign), sign)


def sliding_sign(m: Mathematics, travel: Value, distance: Value) -> Value:
    """``sign_d(x)`` of the signed distance since the last reversal and the ways since those before it, in the last dimension.

    With the ways ``w_k`` it is Dahl's ``df/dx = (1 - f sign v) / d``: ``f = sign(x) (1 - 2 exp(-w_1 / d) + 2 exp(-w_2 / d) - ..)``.
    """
    ways = abs(travel)
    turned, side = 1.0 - 2.0 * m.exp(-ways[..., 0] / distance), 2.0
    for k in range(1, travel.shape[-1]):
        turned, side = turned + side * m.exp(-ways[..., k] / distance), -side
    return m.sign(travel[..., 0]) * turned


@dataclass(frozen=True)
class TurningEffect(JointwiseEffect):
    """Options of every effect that turns with the sign of the speed and may jump there; a tuple gives one value per joint."""

    dead_zone: float | tuple[float, ...] = 0.0
    smooth_width: float | tuple[float, ...] = 0.02

    @property
    def dry(self) -> bool:
        return True

    @property
    def is_sharp(self) -> bool:
        return not np.any(np.asarray(self.smooth_width) > 0.0)

    def smoothed(self, widths: Array, *, at_least: bool = False) -> Effect:
        own = self.option_values("smooth_width", len(widths))
        new = np.maximum(own, widths) if at_least else np.where(own > 0.0, own, widths)
        return replace(self, smooth_width=tuple(new.tolist()), dead_zone=0.0)


@dataclass(frozen=True)
class SignEffect(TurningEffect):
    """Effects with the smooth sign of this module, whose width and time can be searched for.

    Near zero speed the sign is noise and, when the joint hardly reverses, collinear with the offset. ``dead_zone`` (rad/s or
    m/s) sets the sign to zero for slower motion; ``smooth_width`` (rad/s or m/s) and ``smooth_time_s`` make it smooth; both
    zero is the sharp sign.
    """

    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (DEAD_ZONE, WIDTH, TIME, DISTANCE)
    smooth_time_s: float | tuple[float, ...] = 0.0
    slide_distance: float | tuple[float, ...] = 0.0

    @property
    def remembers(self) -> bool:
        return bool(np.any(np.asarray(self.slide_distance) > 0.0))

    def searched_parameters(self) -> tuple[NonlinearParameter, ...]:
        """Where the sign turns over a distance, its width over speed is not searched for."""
        found = super().searched_parameters()
        return tuple(one for one in found if one.name == DISTANCE.name) if self.remembers else found

    def sign(self, m: Mathematics, motion: Motion, theta: Any) -> Value:
        """The smooth sign of the speed, or that of the last motion."""
        if self.remembers and motion.travel is not None:
            return sliding_sign(m, motion.travel, theta.slide_distance)
        return turning_sign(m, motion, theta.smooth_width, theta.smooth_time_s, theta.dead_zone)

    @property
    def is_sharp(self) -> bool:
        return super().is_sharp and not np.any(np.asarray(self.smooth_time_s) > 0.0)

    def without_memory(self) -> Effect:
        return replace(self, smooth_time_s=0.0)


@dataclass(frozen=True)
class Coulomb(TurningEffect):
    """Coulomb friction, ``tau = fc sign(v)``.

    Near zero speed the measured sign is noise, and in a joint that hardly reverses the column is collinear with the offset.

    Args:
        dead_zone: speed, rad/s or m/s, below which the column is zero; one value, or a tuple with one per joint.
        smooth_width: speed, rad/s or m/s; where positive, ``tanh(v / smooth_width)`` replaces the sign.

    Neither is searched for; :class:`~dynid.model.effects.SmoothCoulomb` has a width that is.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects=[dynid.Viscous(), dynid.Coulomb(dead_zone=0.01)])
        >>> robot.parameters.names[-1]
        'fc7'
    """

    name: ClassVar[str] = "coulomb"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fc", "N m", nonnegative=True, place="friction"),)
    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (DEAD_ZONE, NonlinearParameter("smooth_width", "rad/s"))
    smooth_width: float | tuple[float, ...] = 0.0

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        return (turning_sign(m, motion, theta.smooth_width, 0.0, theta.dead_zone),)


@dataclass(frozen=True)
class SmoothCoulomb(SignEffect):
    """Coulomb friction with the smooth sign of :mod:`dynid.model.effects.dry_friction`, whose width and time a friction fit finds.

    Args:
        dead_zone: speed, rad/s or m/s, below which the column is zero; one value, or a tuple with one per joint.
        smooth_width: speed over which the sign changes, rad/s or m/s.
        smooth_time_s: time constant of the signal path, which delays the change of sign, s.
        slide_distance: travel over which the sign changes after a reversal, rad or m; a joint at rest keeps its friction.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.model.effects.dry_friction import SmoothCoulomb
        >>> robot = dynid.demo_robot(effects=[SmoothCoulomb(smooth_width=0.1)]).with_parameters({"fc1": 2.0})
        >>> still, slow = np.zeros(7), np.array([0.1, 0, 0, 0, 0, 0, 0])
        >>> float(round(np.diff(dynid.inverse_dynamics(robot, [still] * 2, [still, slow], [still] * 2)[:, 0])[0], 3))
        1.523
    """

    name: ClassVar[str] = "smooth_coulomb"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fc", "N m", nonnegative=True, place="friction"),)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        return (self.sign(m, motion, theta),)


@dataclass(frozen=True)
class AsymmetricCoulomb(SignEffect):
    """Coulomb friction that differs by direction: ``tau = fcp max(sign(v), 0) + fcn min(sign(v), 0)``.

    Away from zero speed it equals Coulomb friction with an offset, so it replaces both; one of the two values may be negative
    where the offset is larger than the friction.

    Args:
        dead_zone: speed, rad/s or m/s, below which the columns are zero; one value, or a tuple with one per joint.
        smooth_width: speed over which the sign changes, rad/s or m/s.
        smooth_time_s: time constant of the signal path, s.
        slide_distance: travel over which the sign changes after a reversal, rad or m; a joint at rest keeps its friction.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.dry_friction import AsymmetricCoulomb
        >>> dynid.demo_robot(effects=[AsymmetricCoulomb()]).parameters.names[-1]
        'fcn7'
    """

    name: ClassVar[str] = "asymmetric_coulomb"
    linear: ClassVar[tuple[Coefficient, ...]] = (
        Coefficient("fcp", "N m", place="friction", share=0.5),
        Coefficient("fcn", "N m", place="friction", share=0.5),
    )

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        sign = self.sign(m, motion, theta)
        return m.maximum(sign, 0.0), m.minimum(sign, 0.0)


FORMS = ("rational", "exponential")


@dataclass(frozen=True)
class Stribeck(SignEffect):
    """Additional friction at low speed, beside Coulomb friction: ``tau = fs fade(|v| / stribeck_speed) sign(v)``.

    Every number is one value, or a tuple with one per joint.

    Args:
        dead_zone: speed, rad/s or m/s, below which the column is zero.
        smooth_width: speed over which the sign changes, rad/s or m/s.
        smooth_time_s: time constant of the signal path, s.
        slide_distance: travel over which the sign changes after a reversal, rad or m; a joint at rest keeps its friction.
        stribeck_speed: speed, rad/s or m/s, at which the additional friction has faded; at least ``smooth_width``.
        stribeck_exponent: exponent of the fading.
        form: ``rational`` for ``1 / (1 + x^n)``, ``exponential`` for ``exp(-x^n)``.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.dry_friction import Stribeck
        >>> dynid.demo_robot(effects=[dynid.Coulomb(), Stribeck(stribeck_speed=0.05)]).parameters.names[-1]
        'fs7'
    """

    name: ClassVar[str] = "stribeck"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fs", "N m", nonnegative=True),)
    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (
        *SignEffect.nonlinear,
        NonlinearParameter("stribeck_speed", "rad/s", "positive", low=5e-3, high=5.0),
        NonlinearParameter("stribeck_exponent", "1", "positive"),
    )
    stribeck_speed: float | tuple[float, ...] = 0.1
    stribeck_exponent: float | tuple[float, ...] = 2.0
    form: Literal["rational", "exponential"] = "rational"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in FORMS:
            raise UnknownNameError("form of Stribeck friction", self.form, FORMS)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        speed = m.maximum(theta.stribeck_speed, theta.smooth_width)
        x, n = abs(motion.velocity) / speed, theta.stribeck_exponent
        power = m.where(n == 2.0, lambda: x * x, lambda: x**n)
        fade = 1.0 / (1.0 + power) if self.form == "rational" else m.exp(-power)
        return (fade * self.sign(m, motion, theta),)


@dataclass(frozen=True)
class Sigmoid(JointwiseEffect):
    """Sigmoid friction of Gaz and others (2019), with three numbers per joint: ``fsig`` (linear), ``slope`` and ``shift``.

    It runs from ``-fsig / (1 + exp(-slope shift))`` to ``fsig / (1 + exp(slope shift))``; dry friction of ``fsig / 2`` is nearest.

    Args:
        slope: phi2 of the paper, s/rad; one value, or a tuple with one per joint.
        shift: phi3 of the paper, rad/s; one value, or a tuple with one per joint.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.dry_friction import Sigmoid
        >>> dynid.demo_robot(effects=[Sigmoid(slope=20.0)]).parameters.names[-1]
        'fsig7'
    """

    name: ClassVar[str] = "sigmoid"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fsig", "N m", nonnegative=True, place="friction", share=0.5),)
    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (
        NonlinearParameter("slope", "s/rad", "positive", low=0.5, high=500.0),
        NonlinearParameter("shift", "rad/s", "any", low=-0.5, high=0.5, logarithmic=False),
    )
    slope: float | tuple[float, ...] = 10.0
    shift: float | tuple[float, ...] = 0.0

    @property
    def dry(self) -> bool:
        return True

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        # 1 / (1 + exp(-x)) = (1 + tanh(x / 2)) / 2, which does not overflow
        half = 0.5 * theta.slope
        return (0.5 * (m.tanh(half * (motion.velocity + theta.shift)) - m.tanh(half * theta.shift)),)


@dataclass(frozen=True)
class LoadCoulomb(SignEffect):
    """Coulomb friction proportional to the transmitted torque: ``tau = flc |load| sign(v)``.

    Args:
        dead_zone: speed, rad/s or m/s, below which the column is zero; one value, or a tuple with one per joint.
        smooth_width: speed over which the sign changes, rad/s or m/s.
        smooth_time_s: time constant of the signal path, s.
        slide_distance: travel over which the sign changes after a reversal, rad or m; a joint at rest keeps its friction.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.dry_friction import LoadCoulomb
        >>> dynid.demo_robot(effects=[LoadCoulomb()]).parameters.names[-1]
        'flc7'
    """

    name: ClassVar[str] = "load_coulomb"
    needs_load: ClassVar[bool] = True
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("flc", "1", nonnegative=True),)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        return (abs(motion.load) * self.sign(m, motion, theta),)
