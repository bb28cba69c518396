"""What a joint effect is: columns of the torque regressor that depend on joint motion alone.

An effect with column signals ``s_c(motion)`` and an incidence matrix ``C`` adds to the joint torque

    tau_d += sum_c C[d, c] s_c(motion) value_c

For an effect that acts on each joint alone ``C`` is the identity. The values are linear and estimated; numbers inside a
signal (a width, a slope) are options of the effect, and those with limits can be searched for.

An effect owns its physics: its formula, the signs of its values, its smoothing, whether it stores energy, and what of it a
simulator's joint can hold. Everything else asks the effect.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.model.effects.mathematics import Mathematics, Value
from dynid.model.joint import Joint
from dynid.model.parameters import Column

Place: TypeAlias = Literal["damping", "friction", "armature"]
"""What the joint of a simulator has a place for: viscous friction, dry friction, rotor inertia."""
PLACES: tuple[Place, ...] = ("damping", "friction", "armature")


@dataclass(frozen=True, eq=False)
class Motion:
    """Joint motion as an effect sees it: ``(samples, joints with one degree of freedom)`` each.

    Inside a formula the fields may also be dual numbers, or the expressions of one joint.

    Args:
        position: rad or m.
        velocity: rad/s or m/s.
        acceleration: rad/s^2 or m/s^2.
        load: torque transmitted by each joint, N m or N, for effects that depend on it.
        travel: signed distance since the last reversal and ways since those before, rad or m, in a last dimension, for effects with a
            memory; without it joints count as sliding.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.model.effects.effect import Motion
        >>> q = v = a = np.ones((3, 2))
        >>> dynid.Viscous().signals(Motion(q, 2.0 * v, a))[0].tolist()
        [2.0, 2.0]
    """

    position: Value
    velocity: Value
    acceleration: Value
    load: Value = None
    travel: Value = None

    def of_joints(self, joints: Sequence[int]) -> Motion:
        """That of some joints, by their place from 0."""
        parts = (self.position, self.velocity, self.acceleration, self.load, self.travel)
        return Motion(*(part if part is None else np.asfortranarray(part[:, joints]) for part in parts))


@dataclass(frozen=True)
class NonlinearParameter:
    """A parameter inside the formula of an effect, such as a width: an option, given once or once per joint.

    Parameters of one ``key`` are one physical quantity of a joint and keep one value across all its effects.

    Args:
        name: name of the dataclass field of the effect.
        unit: unit on a revolute joint; that of a prismatic one follows.
        sign: which values are accepted.
        low: lower limit of the search by a friction fit; without limits the parameter stays as given.
        high: upper limit of the search.
        logarithmic: searched on a logarithmic scale; one that is zero is not in use and then stays zero.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.effect import NonlinearParameter
        >>> NonlinearParameter("width", "rad/s", "positive", low=1e-3, high=1.0).is_bounded
        True
    """

    name: str
    unit: str
    sign: Literal["positive", "nonnegative", "any"] = "nonnegative"
    low: float = -np.inf
    high: float = np.inf
    logarithmic: bool = True
    key: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key or self.name)

    @property
    def is_bounded(self) -> bool:
        """Whether it has limits between which a friction fit searches for it."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    def to_search(self, values: Array) -> Array:
        """Where a search has these values: their logarithms, or themselves; inside the range."""
        kept = np.clip(values, self.low, self.high)
        return np.log(kept) if self.logarithmic else kept

    def from_search(self, place: Array) -> Array:
        """The values at a place of a search."""
        return np.exp(place) if self.logarithmic else place

    def slope(self, values: Array) -> Array:
        """Change of the values with their place in a search."""
        return values if self.logarithmic else np.ones_like(values)


@dataclass(frozen=True)
class EffectValue:
    """A value inside the formula of an effect on one joint, ready for a table."""

    joint: str
    effect: str
    name: str
    """``slope``; of motors ``slopem``."""
    value: float
    unit: str
    found: bool
    """Whether a friction fit searches for it; otherwise it is given, such as a dead zone."""


class Effect(ABC):
    """Base class of all effects: the options of one effect, never its estimated values.

    An effect adds columns to the torque regressor, such as ``tau = fv v``, and a robot carries its effects. Derive from
    :class:`~dynid.model.effects.JointwiseEffect` for an effect that acts on each joint alone, and make it known by
    :func:`~dynid.model.effects.registry.register_effect`.

    Examples:
        >>> import dynid
        >>> issubclass(dynid.Viscous, dynid.Effect)
        True
    """

    name: ClassVar[str]
    needs_load: ClassVar[bool] = False
    """Whether the signals depend on the torque that a joint transmits."""

    @property
    def label(self) -> str:
        """What messages call this very effect; effects of one robot differ in it."""
        return self.name

    # Columns ----------------------------------------------------------------------------------

    @abstractmethod
    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        """The columns for these joints, whose numbers (from 1) are given beside them."""

    @abstractmethod
    def signals(self, motion: Motion) -> Array:
        """Signal of every column, ``(samples, columns)``."""

    @abstractmethod
    def scalar_signals(self, m: Mathematics, motion: Sequence[Motion]) -> list[Value]:
        """Signal of every column over the functions ``m``, from the motion of each joint alone: for generated code."""

    def incidence(self, n_joints: int) -> Array:
        """Which joint's torque each column enters, ``(joints, columns)``."""
        return np.eye(n_joints)

    @property
    def is_friction(self) -> bool:
        """Whether the columns are friction, which the transmitted torque does not count in."""
        return True

    @property
    def loaded(self) -> bool:
        """Whether the signals of this very effect need the transmitted torque."""
        return self.needs_load

    @property
    def remembers(self) -> bool:
        """Whether the signals depend on how far a joint has moved since it last reversed."""
        return False

    @property
    def dry(self) -> bool:
        """Whether it hardly changes with speed but for its sign: then only a joint that reverses tells it from an offset."""
        return False

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Symbols of the columns whose value is never negative in a physical joint."""
        return ()

    def dissipation(self, speeds: Array, load: Array) -> Array:
        """Odd part of every signal, ``(s(v) - s(-v)) / 2``, at speeds ``(speeds, joints)`` of joints that slide under a load.

        Times the values it is the friction that changes with the direction, which takes energy from a joint; the rest is offset.
        """
        both = np.concatenate([speeds, -speeds])
        still = np.zeros_like(both)
        forth, back = np.split(self.signals(Motion(still, both, still, np.broadcast_to(load, both.shape))), 2)
        return np.asarray(0.5 * (forth - back))

    # Derivatives ------------------------------------------------------------------------------

    def searched_parameters(self) -> tuple[NonlinearParameter, ...]:
        """Parameters inside the signals that a search may change."""
        return ()

    def signals_and_derivatives(self, motion: Motion, options: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        """Signals, and their change with each of the options of their own joint, ``(samples, columns)`` each."""
        if options:
            raise InputError(f"effect '{self.name}' has no option '{options[0]}' that could be searched for")
        return self.signals(motion), {}

    def option_values(self, option: str, n_joints: int) -> Array:
        """One value of an option per joint."""
        return per_joint_option(self.name, option, getattr(self, option), n_joints)

    def with_option(self, option: str, values: ArrayLike) -> Effect:
        """The same effect with one value of an option per joint."""
        new: Any = replace(self, **{option: tuple(float(x) for x in np.asarray(values))})  # type: ignore[type-var]
        assert isinstance(new, Effect)
        return new

    def kept(self, joints: Sequence[int]) -> Effect | None:
        """The effect on a robot of which only these joints still move, by their place from 0; None where nothing is left."""
        return self

    def nonlinear_values(self, joints: Sequence[Joint]) -> tuple[tuple[EffectValue, ...], ...]:
        """The parameters inside the formula, joint by joint, with their units."""
        return tuple(() for _ in joints)

    @abstractmethod
    def motion_gradient(self, motion: Motion, weights: Array) -> tuple[Array | None, Array | None, Array | None]:
        """How ``sum weights signals`` changes with the joints' position, velocity and acceleration, ``(samples, joints)`` each.

        It is what the design of a motion needs; None for not at all.
        """

    @property
    @abstractmethod
    def depends_on_acceleration(self) -> bool:
        """Whether a signal changes with the acceleration."""

    # Energy -----------------------------------------------------------------------------------

    def momentum_signals(self, motion: Motion) -> Array | None:
        """``p``, linear in the velocity, with ``dp/dt`` the signals, where there is one: rotor inertia has ``p = v``."""
        return None

    def energy_signals(self, motion: Motion) -> Array | None:
        """``E(q, v)`` whose change is the work of the signals, where there is such a function: a potential or kinetic energy.

        Rotor inertia has ``v^2 / 2``, a constant torque ``q``, a spring ``q^2 / 2``; friction has none, its work depends on the way.
        """
        return None

    # Smoothing --------------------------------------------------------------------------------

    @property
    def is_sharp(self) -> bool:
        """Whether a signal jumps at zero speed."""
        return False

    def smoothed(self, widths: Array, *, at_least: bool = False) -> Effect:
        """The effect without a jump and without a dead zone: as wide (rad/s or m/s per joint) as given where it is sharp.

        With ``at_least`` no joint turns over within less than the width given.
        """
        return self

    def without_memory(self) -> Effect:
        """The effect itself, without what the filters of a signal path add to it."""
        return self

    # Simulators -------------------------------------------------------------------------------

    def simulator_joint(self, values: Array, n_joints: int) -> Mapping[Place, Array]:
        """What a simulator's joint can hold of the effect at these column values: one number per joint and place."""
        return {}

    @property
    def held_in_part(self) -> tuple[str, ...]:
        """Symbols of which :meth:`simulator_joint` holds only the nearest value."""
        return ()

    @property
    def not_held(self) -> tuple[str, ...]:
        """Symbols of which :meth:`simulator_joint` holds nothing."""
        return ()


def per_joint_option(effect: str, option: str, value: Any, n_joints: int) -> Array:
    """An option given once or once per joint, as one number per joint."""
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if len(values) not in (1, n_joints):
        raise InputError(f"effect '{effect}' has {len(values)} values of {option}, the robot has {n_joints} joints")
    return np.broadcast_to(values, (n_joints,)).copy()


def unit_on(joint: Joint, unit: str) -> str:
    """A unit of a turning joint (``N m s/rad``) as it is on this joint (``N s/m`` where it slides)."""
    if joint.kind != "prismatic":
        return unit
    return unit.replace("kg m^2", "kg").replace("N m", "N").replace("rad", "m")
