"""Effects that store energy.

    torsion spring    tau = ks (q - rest), with the rest position given or found
    cable             tau = sum_p k_p (q - centre)^p, odd: cables and hoses that are twisted with a joint
    potential         tau = sum_k us_k sin(k q) + uc_k cos(k q): any counterbalance, cogging, an unbalanced rotor
    point spring      a spring between two points, one on each side of a turning joint

Point springs are counterbalances, gas springs, constant-force springs. The distance of the points, with the joint's axis between them, is

    l(q) = length sqrt(1 - ratio cos(q - phase))

``length`` is the distance at a right angle, ``phase`` the position in which the points are nearest, ``ratio`` twice the product
of their distances from the axis over ``length^2``. A force ``F(l)`` that pulls them together needs the torque ``F(l) dl/dq``:

    linear      F = sk l + sf                 sk the stiffness, sf = -stiffness * free length
    constant    F = sf
    gas         F = sg (column / (column + s (l - length)))^exponent,   s = 1 where the gas expands as l grows, -1 where it is compressed

A gas spring that pushes has a negative ``sg``. From torque alone the geometry shows in ``phase`` and ``ratio``; ``length`` only
turns torques into forces and stays as given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import matrix
from dynid.errors import InputError, UnknownNameError
from dynid.model.effects.effect import Motion, NonlinearParameter
from dynid.model.effects.jointwise import Coefficient, ConservativeEffect, distinct_whole
from dynid.model.effects.mathematics import Mathematics, Value
from dynid.model.joint import Joint

_STIFFNESS = Coefficient("ks", "N m/rad", nonnegative=True)
_AT_ZERO = Coefficient("kr", "N m")


@dataclass(frozen=True)
class TorsionSpring(ConservativeEffect):
    """A spring in a joint, ``tau = ks (q - rest_angle)``.

    Where the rest angle is to be found it is linear too: ``tau = ks q + kr``, with ``rest = -kr / ks``; an offset of the same
    joint cannot be told from ``kr``.

    Args:
        rest_angle: position without torque, rad or m; one value, or a tuple with one per joint.
        find_rest: find the rest position as a coefficient of its own; ``rest_angle`` is then where it is counted from.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.springs import TorsionSpring
        >>> from dynid.model.effects.wrapped import OnJoints
        >>> robot = dynid.demo_robot(effects=[OnJoints(TorsionSpring(rest_angle=0.5), (2,))])
        >>> robot.parameters.names[-1], robot.parameters.units[-1]
        ('ks2', 'N m/rad')
    """

    name: ClassVar[str] = "torsion_spring"
    linear: ClassVar[tuple[Coefficient, ...]] = (_STIFFNESS,)
    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (NonlinearParameter("rest_angle", "rad", "any"),)
    rest_angle: float | tuple[float, ...] = 0.0
    find_rest: bool = False

    def coefficients(self) -> tuple[Coefficient, ...]:
        return (_STIFFNESS, _AT_ZERO) if self.find_rest else (_STIFFNESS,)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        turned = motion.position - theta.rest_angle
        return (turned, 1.0) if self.find_rest else (turned,)

    def potential(self, m: Mathematics, position: Value, theta: Any) -> tuple[Value, ...]:
        turned = position - theta.rest_angle
        return (0.5 * turned * turned, turned) if self.find_rest else (0.5 * turned * turned,)


HIGHEST_POWER = 9


@dataclass(frozen=True)
class Cable(ConservativeEffect):
    """Cable torque, odd about the position in which the cables are not twisted: ``tau = kc x + kccc x^3 + ..``, ``x = q - centre``.

    Args:
        powers: the odd powers that have a column.
        centre: position in which the cables are not twisted, rad or m; one value, or a tuple with one per joint.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.springs import Cable
        >>> from dynid.model.effects.wrapped import OnJoints
        >>> robot = dynid.demo_robot(effects=[OnJoints(Cable(), (7,))])
        >>> robot.parameters.names[-2:]
        ('kc7', 'kccc7')
    """

    name: ClassVar[str] = "cable"
    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (NonlinearParameter("centre", "rad", "any"),)
    powers: tuple[int, ...] = (1, 3)
    centre: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = f"different odd ones from 1 to {HIGHEST_POWER}"
        powers = distinct_whole("cable torque has powers", self.powers, range(1, HIGHEST_POWER + 1, 2), expected)
        object.__setattr__(self, "powers", powers)

    def coefficients(self) -> tuple[Coefficient, ...]:
        return tuple(Coefficient("k" + "c" * power, f"N m/rad^{power}" if power > 1 else "N m/rad") for power in self.powers)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        x = motion.position - theta.centre
        return tuple(x**power for power in self.powers)

    def potential(self, m: Mathematics, position: Value, theta: Any) -> tuple[Value, ...]:
        x = position - theta.centre
        return tuple(x ** (power + 1) / (power + 1) for power in self.powers)


MOST_HARMONICS = 12


@dataclass(frozen=True)
class Potential(ConservativeEffect):
    """Torque of a periodic potential: ``tau = us sin(q) + uc cos(q) + uss sin(2 q) + ucc cos(2 q) + ..``.

    The first harmonic of a joint with a horizontal axis is also what gravity does; what data cannot tell apart is left to the
    base reduction.

    Args:
        harmonics: the harmonics that have columns.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.springs import Potential
        >>> from dynid.model.effects.wrapped import OnJoints
        >>> robot = dynid.demo_robot(effects=[OnJoints(Potential(harmonics=(1, 2)), (2,))])
        >>> robot.parameters.names[-4:]
        ('us2', 'uss2', 'uc2', 'ucc2')
    """

    name: ClassVar[str] = "potential"
    harmonics: tuple[int, ...] = (1, 2, 3)

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = f"different whole numbers from 1 to {MOST_HARMONICS}"
        harmonics = distinct_whole("potential has harmonics", self.harmonics, range(1, MOST_HARMONICS + 1), expected)
        object.__setattr__(self, "harmonics", harmonics)

    def coefficients(self) -> tuple[Coefficient, ...]:
        return tuple(Coefficient("u" + letter * k, "N m") for letter in "sc" for k in self.harmonics)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        q = motion.position
        return (*(m.sin(float(k) * q) for k in self.harmonics), *(m.cos(float(k) * q) for k in self.harmonics))

    def potential(self, m: Mathematics, position: Value, theta: Any) -> tuple[Value, ...]:
        sines = (-m.cos(float(k) * position) / float(k) for k in self.harmonics)
        cosines = (m.sin(float(k) * position) / float(k) for k in self.harmonics)
        return (*sines, *cosines)


Form: TypeAlias = Literal["linear", "constant", "gas"]
FORMS: tuple[Form, ...] = ("linear", "constant", "gas")
ACTIONS = ("expands", "compressed")
LEAST_VOLUME = 0.01
LEAST_RATIO, MOST_RATIO = 0.02, 0.995
_COEFFICIENTS: dict[Form, tuple[Coefficient, ...]] = {
    "linear": (Coefficient("sk", "N/m"), Coefficient("sf", "N")),
    "constant": (Coefficient("sf", "N"),),
    "gas": (Coefficient("sg", "N"),),
}


@dataclass(frozen=True)
class PointSpring(ConservativeEffect):
    """A spring between a point on the link that carries a joint and a point on the link that it moves.

    Every number is one value, or a tuple with one per joint; :meth:`between` finds them from the two points.

    Args:
        form: ``linear``, ``constant`` or ``gas``.
        phase: position of the joint in which the points are nearest, rad.
        ratio: how much their distance changes, between 0 and 1.
        length: their distance at a right angle, m.
        column: length of the gas column at that distance, m (``gas`` alone).
        exponent: polytropic exponent of the gas.
        action: ``compressed`` where the gas is compressed as the distance grows, or ``expands``.
        fit: search for phase and ratio (and the gas column); otherwise the geometry is as given.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.springs import PointSpring
        >>> from dynid.model.effects.wrapped import OnJoints
        >>> spring = PointSpring("linear", phase=0.3, ratio=0.6, length=0.8)
        >>> robot = dynid.demo_robot(effects=[OnJoints(spring, (2,))])
        >>> robot.parameters.names[-2:], robot.parameters.units[-2:]
        (('sk2', 'sf2'), ('N/m', 'N'))
    """

    name: ClassVar[str] = "point_spring"
    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (
        NonlinearParameter("phase", "rad", "any", low=-2.0 * np.pi, high=2.0 * np.pi, logarithmic=False),
        NonlinearParameter("ratio", "1", "positive", low=LEAST_RATIO, high=MOST_RATIO, logarithmic=False),
        NonlinearParameter("length", "m", "positive"),
        NonlinearParameter("column", "m", "positive", low=1e-2, high=1e2),
        NonlinearParameter("exponent", "1", "positive"),
    )
    form: Form = "linear"
    phase: float | tuple[float, ...] = 0.0
    ratio: float | tuple[float, ...] = 0.5
    length: float | tuple[float, ...] = 1.0
    column: float | tuple[float, ...] = 1.0
    exponent: float | tuple[float, ...] = 1.0
    action: Literal["expands", "compressed"] = "compressed"
    fit: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in FORMS:
            raise UnknownNameError("form of a spring between points", self.form, FORMS)
        if self.action not in ACTIONS:
            raise UnknownNameError("action of a gas spring", self.action, ACTIONS)
        if np.any(np.asarray(self.ratio) >= 1.0):
            raise InputError(
                f"ratio of a spring between points is {self.ratio}, expected less than 1: the points would meet"
            )

    @classmethod
    def between(cls, joint: Joint, carrying: ArrayLike, moved: ArrayLike, **options: Any) -> PointSpring:
        """The spring between a point in the frame of the link that carries the joint and one in that of the link it moves."""
        phase, ratio, length = spring_geometry(joint, carrying, moved)
        return cls(phase=phase, ratio=ratio, length=length, **options)

    def coefficients(self) -> tuple[Coefficient, ...]:
        return _COEFFICIENTS[self.form]

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Any, ...]:
        """Units are of the spring itself, whatever the joint."""
        made = super().columns(numbers, joints)
        units = [coefficient.unit for coefficient in self.coefficients() for _ in numbers]
        return tuple(replace(column, unit=unit) for column, unit in zip(made, units, strict=True))

    def searched_parameters(self) -> tuple[NonlinearParameter, ...]:
        if not self.fit:
            return ()
        found = super().searched_parameters()
        return tuple(option for option in found if option.name != "column" or self.form == "gas")

    def settled(self) -> PointSpring:
        """The spring with the geometry that it has now."""
        return replace(self, fit=False)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        turned = motion.position - theta.phase
        lever = 0.5 * theta.ratio * theta.length * m.sin(turned)  # l dl/dq over length
        relative = m.sqrt(1.0 - theta.ratio * m.cos(turned))
        if self.form == "linear":
            return theta.length * lever, lever / relative
        if self.form == "constant":
            return (lever / relative,)
        return (lever / relative * self._expanded(m, theta, relative) ** (-theta.exponent),)

    def potential(self, m: Mathematics, position: Value, theta: Any) -> tuple[Value, ...]:
        distance = theta.length * m.sqrt(1.0 - theta.ratio * m.cos(position - theta.phase))
        if self.form == "linear":
            return 0.5 * distance * distance, distance
        if self.form == "constant":
            return (distance,)
        x, sign = self._expanded(m, theta, distance / theta.length), self._sign
        power = 1.0 - theta.exponent
        safe = m.where(power == 0.0, 1.0, power)
        return (sign * theta.column * m.where(power == 0.0, m.log(x), (x**safe - 1.0) / safe),)

    @property
    def _sign(self) -> float:
        return 1.0 if self.action == "expands" else -1.0

    def _expanded(self, m: Mathematics, theta: Any, relative: Value) -> Value:
        """Volume of the gas over that at the right angle; never below a hundredth, which no piston reaches."""
        return m.maximum(1.0 + self._sign * theta.length * (relative - 1.0) / theta.column, LEAST_VOLUME)


def spring_geometry(joint: Joint, carrying: ArrayLike, moved: ArrayLike) -> tuple[float, float, float]:
    """Phase, ratio and length of the distance between a point that carries a joint and one that it moves, each in its link's frame."""
    if joint.kind not in ("revolute", "continuous"):
        raise InputError(f"joint '{joint.name}' is {joint.kind}, a spring between two points acts on a joint that turns")
    axis = joint.screw[3:]
    centre = np.cross(axis, joint.screw[:3])
    own = matrix(f"point of the spring on the link that joint '{joint.name}' moves", moved, (3,)) - centre
    fixed = matrix(f"point of the spring on the link that carries joint '{joint.name}'", carrying, (3,))
    other = joint.placement[:3, :3].T @ (fixed - joint.placement[:3, 3]) - centre
    (a, a_height), (b, b_height) = ((r - (r @ axis) * axis, float(r @ axis)) for r in (other, own))
    height = a_height - b_height
    with np.errstate(over="ignore"):
        square = float(a @ a + b @ b) + height * height  # not a power, which fails where a product is infinite
    if not np.isfinite(square):
        raise InputError(f"the points of the spring on joint '{joint.name}' are farther apart than numbers reach")
    reach = 2.0 * float(np.linalg.norm(a) * np.linalg.norm(b))
    if reach < 1e-9 * max(square, 1e-300):
        raise InputError(f"a point of the spring lies on the axis of joint '{joint.name}', where its force has no lever")
    if reach >= MOST_RATIO * square:
        raise InputError(
            f"the points of the spring on joint '{joint.name}' meet as it turns, expected a distance between them"
        )
    phase = float(np.arctan2(np.cross(b, a) @ axis, b @ a))
    return phase, reach / square, float(np.sqrt(square))
