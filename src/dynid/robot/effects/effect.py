"""What a joint effect is: columns of the torque regressor that depend on joint motion alone.

An effect with column signals ``s_c(motion)`` and an incidence matrix ``C`` adds to the joint torque

    tau_d += sum_c C[d, c] s_c(motion) value_c

For an effect that acts on each joint by itself ``C`` is the identity. The values are linear and estimated; numbers inside a
signal (a width, a slope) are options of the effect, and an effect that can say how its signals change with them lets them be
searched for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.parameters import Column, Kind

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class Motion:
    """Joint motion of a chunk of samples, ``(samples, joints with one degree of freedom)`` each.

    ``load`` is the torque transmitted by each joint, for effects that depend on it.
    """

    position: Array
    velocity: Array
    acceleration: Array
    load: Array | None = None


@dataclass(frozen=True)
class NonlinearOption:
    """An option inside a signal that can be searched for, one value per joint, and where to look for it.

    Options of one ``key`` are one physical quantity of a joint and keep one value across all its effects.
    """

    name: str
    low: float
    high: float
    logarithmic: bool = True
    """Searched on a logarithmic scale: a positive quantity whose size is not known."""
    key: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key or self.name)


class Effect(ABC):
    """Options of one effect; holds no values."""

    name: ClassVar[str]
    needs_load: ClassVar[bool] = False
    """Whether the signals depend on the torque that a joint transmits."""

    @abstractmethod
    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        """The columns for these joints, whose numbers (from 1) are given beside them."""

    @abstractmethod
    def signals(self, motion: Motion) -> Array:
        """Signal of every column, ``(samples, columns)``."""

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

    def nonlinear_options(self) -> tuple[NonlinearOption, ...]:
        """Options inside the signals that a search may change."""
        return ()

    def derivative(self, motion: Motion, option: str) -> Array:
        """``(samples, columns)``: change of every signal with the option of its own joint."""
        raise InputError(f"effect '{self.name}' has no option '{option}' that could be searched for")

    def option_values(self, option: str, n_joints: int) -> Array:
        """One value of an option per joint."""
        return per_joint_option(self.name, option, getattr(self, option), n_joints)

    def with_option(self, option: str, values: ArrayLike) -> Effect:
        """The same effect with one value of an option per joint."""
        new: Any = replace(self, **{option: tuple(float(x) for x in np.asarray(values))})  # type: ignore[type-var]
        assert isinstance(new, Effect)
        return new


class JointwiseEffect(Effect):
    """An effect with one column per joint and symbol, acting on that joint alone."""

    symbol: ClassVar[str]
    kind: ClassVar[Kind] = "friction"

    @abstractmethod
    def unit(self, joint: Joint) -> str:
        """Unit of this effect's value on a joint."""

    @property
    def is_friction(self) -> bool:
        return self.kind == "friction"

    @property
    def symbols(self) -> tuple[str, ...]:
        """The columns of one joint; all joints of the first symbol stand first."""
        return (self.symbol,)

    def unit_of(self, symbol: str, joint: Joint) -> str:
        """Unit of one of several symbols."""
        return self.unit(joint)

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        return tuple(
            Column(symbol, number, self.kind, self.unit_of(symbol, joint), joint.name)
            for symbol in self.symbols
            for number, joint in zip(numbers, joints, strict=True)
        )

    def incidence(self, n_joints: int) -> Array:
        return np.tile(np.eye(n_joints), (1, len(self.symbols)))


def per_joint_option(effect: str, option: str, value: Any, n_joints: int) -> Array:
    """An option given once or once per joint, as one number per joint."""
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if len(values) not in (1, n_joints):
        raise InputError(f"effect '{effect}' has {len(values)} values of {option}, the robot has {n_joints} joints")
    return np.broadcast_to(values, (n_joints,)).copy()


def check_option(effect: object, option: str, *, positive: bool = False) -> None:
    """Refuse an option unless its value, or every one of its values, is a number of the right sign."""
    values = np.atleast_1d(np.asarray(getattr(effect, option), dtype=np.float64))
    if not (np.isfinite(values).all() and ((values > 0.0).all() if positive else (values >= 0.0).all())):
        expected = "positive numbers" if positive else "zero or positive numbers"
        raise InputError(f"{type(effect).__name__} {option} is {getattr(effect, option)}, expected {expected}")


def transmitted(motion: Motion, effect: str) -> Array:
    """The load of a motion; refuses where it is not known."""
    if motion.load is None:
        raise InputError(
            f"effect '{effect}' depends on the torque that each joint transmits, but the samples carry no load; "
            "attach one with samples.with_load(...), such as the rigid-body torque of the current estimate"
        )
    return motion.load


def effect_kinds() -> dict[str, type[Effect]]:
    """Every effect by its name."""
    from dynid.robot import effects as kinds

    listed: tuple[type[Effect], ...] = (
        kinds.Viscous,
        kinds.Coulomb,
        kinds.Offset,
        kinds.Armature,
        kinds.SmoothCoulomb,
        kinds.AsymmetricCoulomb,
        kinds.ViscousPolynomial,
        kinds.Stribeck,
        kinds.Sigmoid,
        kinds.LoadCoulomb,
        kinds.LoadViscous,
        kinds.Coupled,
    )
    return {kind.name: kind for kind in listed}


def effects_from_names(names: Sequence[str] | str) -> tuple[Effect, ...]:
    """Effects by their names: ``"viscous,coulomb,offset,armature"`` or a list; ``"none"`` gives no effect."""
    known = {name: kind for name, kind in effect_kinds().items() if name != "coupled"}
    listed = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    if listed in (["none"], [""], []):
        return ()
    for name in listed:
        if name not in known:
            raise UnknownNameError("effect", name, (*known, "none"))
    return tuple(known[name]() for name in dict.fromkeys(listed))


def effect_to_dict(effect: Effect) -> dict[str, Any]:
    """An effect as plain values: its name and its options."""
    return {"name": effect.name} | {option: _plain(getattr(effect, option)) for option in _options(type(effect))}


def effect_from_dict(record: Mapping[str, Any]) -> Effect:
    """The inverse of :func:`effect_to_dict`."""
    known = effect_kinds()
    if "name" not in record:
        raise InputError(f"an effect is stored without its name: {dict(record)}")
    if record["name"] not in known:
        raise UnknownNameError("effect", str(record["name"]), known)
    kind = known[record["name"]]
    options = _options(kind)
    for option in record:
        if option != "name" and option not in options:
            raise UnknownNameError("option", option, options, f"effect '{kind.name}'")
    made: Any = kind(**{option: _restored(value) for option, value in record.items() if option != "name"})
    assert isinstance(made, Effect)
    return made


def _options(kind: type[Effect]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, Effect):
        return effect_to_dict(value)
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def _restored(value: Any) -> Any:
    if isinstance(value, Mapping):
        return effect_from_dict(value)
    return tuple(_restored(item) for item in value) if isinstance(value, (tuple, list)) else value
