"""Joint effects beside rigid-body dynamics, by their names: friction, rotor inertia and springs, those of other packages too.

An effect of your own is one class and one line. It states what is estimated, which parameters stand inside its formula, and the
formula; a fit with a search for these, derivatives, storage, C source and exports follow.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> import numpy as np
    >>> import dynid
    >>> from dynid.model.effects import unregister_effect
    >>> from dynid.model.effects.friction_models import friction_models, unregister_friction_model
    >>> from dynid.model.effects.effect import NonlinearParameter
    >>> from dynid.model.effects.jointwise import Coefficient, JointwiseEffect
    >>> @dataclass(frozen=True)
    ... class ArcTangent(JointwiseEffect):
    ...     \"\"\"tau = fat x / sqrt(1 + x^2) with x = v / width: dry friction that sets in slowly.\"\"\"
    ...     name: ClassVar[str] = "slow_coulomb"
    ...     linear: ClassVar = (Coefficient("fat", "N m", nonnegative=True, place="friction"),)
    ...     nonlinear: ClassVar = (NonlinearParameter("width", "rad/s", "positive", low=1e-3, high=1.0),)
    ...     width: float | tuple[float, ...] = 0.1
    ...     def formula(self, m, motion, theta):
    ...         x = motion.velocity / theta.width
    ...         return (x / m.sqrt(1.0 + x * x),)
    >>> dynid.register_effect(ArcTangent).name
    'slow_coulomb'

It is then known by its name, in run files and on the command line (``--effects viscous,slow_coulomb``) of a program that has
registered it:

    >>> robot = dynid.demo_robot(effects="viscous,slow_coulomb")
    >>> robot.parameters.names[-2:], robot.parameters.units[-1]
    (('fat6', 'fat7'), 'N m')
    >>> tau = dynid.inverse_dynamics(robot.with_parameters({"fat7": 2.0}), *(np.ones((1, 7)),) * 3)

A friction model, a set of effects that takes the place of viscous, Coulomb and offset, is registered by a function that makes it:

    >>> from dynid.model.effects.linear import Offset, Viscous
    >>> _ = dynid.register_friction_model("slow", lambda start: (Viscous(), ArcTangent(width=start.width), Offset()))
    >>> "slow" in friction_models()
    True
    >>> unregister_effect("slow_coulomb")  # and for the example's sake
    >>> unregister_friction_model("slow")
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

from dynid.errors import InputError, UnknownNameError
from dynid.model.effects.dry_friction import AsymmetricCoulomb, Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.effect import Effect
from dynid.model.effects.linear import Armature, LoadViscous, Offset, Viscous, ViscousPolynomial
from dynid.model.effects.springs import Cable, PointSpring, Potential, TorsionSpring
from dynid.model.effects.wrapped import MOTOR, Coupled, OnJoints
from dynid.model.parameters import GROUPING_SYMBOLS, INERTIAL_SYMBOLS

Kind = TypeVar("Kind", bound=type[Effect])

_KINDS: dict[str, type[Effect]] = {}


def register_effect(kind: Kind) -> Kind:
    """Register an effect by its name; returns the class, so that it can be used as a decorator.

    Args:
        kind: a frozen dataclass that is an :class:`~dynid.model.effects.Effect`, with a name that no other effect has.
            A class that is defined again, as in a notebook, replaces the former one.

    Returns:
        the same class.

    Examples:
        >>> from dataclasses import dataclass
        >>> import dynid
        >>> from dynid.model.effects import unregister_effect
        >>> @dynid.register_effect
        ... @dataclass(frozen=True)
        ... class Spring(dynid.JointwiseEffect):
        ...     '''tau = k q'''
        ...
        ...     name = "spring"
        ...     linear = (dynid.Coefficient("k", "N m/rad"),)
        ...
        ...     def formula(self, m, motion, theta):
        ...         return (motion.position,)
        >>> dynid.demo_robot(effects="viscous,spring").parameters.names[-1]
        'k7'
        >>> unregister_effect("spring")
    """
    name = _checked_name(kind)
    known = _KINDS.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InputError(f"effect '{name}' is registered twice, by {known.__qualname__} and {kind.__qualname__}; rename one")
    for number in getattr(kind, "nonlinear", ()):
        if number.name not in _options(kind):
            raise InputError(
                f"effect '{name}' has a nonlinear parameter '{number.name}' without a dataclass field of that name"
            )
    for coefficient in getattr(kind, "linear", ()):
        if not re.fullmatch("[A-Za-z]+", coefficient.symbol) or coefficient.symbol in INERTIAL_SYMBOLS:
            raise InputError(
                f"effect '{name}' has the symbol '{coefficient.symbol}', expected letters that are no inertial parameter's"
            )
    _KINDS[name] = kind
    return kind


def _checked_name(given: Any) -> str:
    """The name of an effect, whatever a caller may have handed in for one."""
    if not (isinstance(given, type) and issubclass(given, Effect)):
        raise InputError(f"{given!r} is registered as an effect, expected a class derived from JointwiseEffect or Effect")
    name = getattr(given, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name == "none":
        raise InputError(
            f"effect {given.__name__} has the name {name!r}, expected lower-case letters, digits and underscores"
        )
    options = getattr(given, "__dataclass_params__", None)
    if options is None or not options.frozen or "__dataclass_fields__" not in vars(given):
        raise InputError(f"effect '{name}' is not a frozen dataclass; put @dataclass(frozen=True) above {given.__name__}")
    return name


def unregister_effect(name: str) -> None:
    """Remove an effect from the register.

    Args:
        name: as it was registered.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects import unregister_effect
        >>> try:
        ...     unregister_effect("sprung")
        ... except dynid.InputError as error:
        ...     print(str(error)[:23])
        unknown effect 'sprung'
    """
    if name not in _KINDS:
        raise UnknownNameError("effect", name, _KINDS)
    del _KINDS[name]


def nonnegative_symbols() -> tuple[str, ...]:
    """Symbols of all registered effects whose values are never negative in a physical joint, those of motors too."""
    found: dict[str, None] = {}
    for kind in _KINDS.values():
        for coefficient in getattr(kind, "linear", ()):
            if coefficient.nonnegative:
                found |= {coefficient.symbol: None, f"{coefficient.symbol}{MOTOR}": None}
    rank = {symbol: place for place, symbol in enumerate(GROUPING_SYMBOLS)}
    return tuple(sorted(found, key=lambda symbol: rank.get(symbol, len(rank))))


def effects_from_names(names: Sequence[str] | str) -> tuple[Effect, ...]:
    """Effects by their names.

    Args:
        names: a list, or one text such as ``"viscous,coulomb,offset,armature"``; ``"none"`` gives no effect.

    Returns:
        one effect for each name, with its default options.

    Examples:
        >>> import dynid
        >>> dynid.effects_from_names("viscous,offset")
        (Viscous(), Offset())
    """
    known = {name: kind for name, kind in _KINDS.items() if all(map(_has_default, fields(kind)))}  # type: ignore[arg-type]
    listed = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    if listed in (["none"], [""], []):
        return ()
    for name in listed:
        if name not in known:
            raise UnknownNameError("effect", name, (*known, "none"))
    return tuple(known[name]() for name in dict.fromkeys(listed))


def effect_to_dict(effect: Effect) -> dict[str, Any]:
    """An effect as plain values: its name and its options.

    Args:
        effect: any registered effect.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects import effect_to_dict
        >>> from dynid.model.effects.linear import ViscousPolynomial
        >>> effect_to_dict(ViscousPolynomial(powers=(2,)))
        {'name': 'viscous_polynomial', 'powers': [2]}
    """
    return {"name": effect.name} | {option: _plain(getattr(effect, option)) for option in _options(type(effect))}


def effect_from_dict(record: Mapping[str, Any]) -> Effect:
    """The inverse of :func:`effect_to_dict`, for effects that are registered.

    Args:
        record: the name of the effect and its options.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects import effect_from_dict
        >>> effect_from_dict({"name": "viscous_polynomial", "powers": [2]})
        ViscousPolynomial(powers=(2,))
    """
    if "name" not in record:
        raise InputError(f"an effect is stored without its name: {dict(record)}")
    if record["name"] not in _KINDS:
        raise UnknownNameError("effect", str(record["name"]), _KINDS)
    kind = _KINDS[record["name"]]
    options = _options(kind)
    for option in record:
        if option != "name" and option not in options:
            raise UnknownNameError("option", option, options, f"effect '{kind.name}'")
    made: Any = kind(**{option: _restored(value) for option, value in record.items() if option != "name"})
    assert isinstance(made, Effect)
    return made


def _has_default(option: Field[Any]) -> bool:
    return option.default is not MISSING or option.default_factory is not MISSING


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


for _kind in (
    *(Viscous, Coulomb, Offset, Armature, SmoothCoulomb, AsymmetricCoulomb, ViscousPolynomial, Stribeck, Sigmoid),
    *(LoadCoulomb, LoadViscous, TorsionSpring, PointSpring, Potential, Cable, Coupled, OnJoints),
):
    register_effect(_kind)
