"""Friction models by name: sets of effects that take the place of viscous, Coulomb and offset.

A model is registered by a function that makes its effects; the numbers inside them are where a search starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dynid.errors import InputError, UnknownNameError
from dynid.robot.effects.coulomb import Coulomb
from dynid.robot.effects.effect import Effect
from dynid.robot.effects.load import LoadCoulomb, LoadViscous
from dynid.robot.effects.offset import Offset
from dynid.robot.effects.sigmoid import Sigmoid
from dynid.robot.effects.smooth_coulomb import SmoothCoulomb
from dynid.robot.effects.stribeck import Stribeck
from dynid.robot.effects.viscous import Viscous
from dynid.robot.effects.viscous_polynomial import ViscousPolynomial

AUTO = "auto"
START_WIDTH = 0.02
START_TIME_S = 0.03
START_DISTANCE = 3e-4


@dataclass(frozen=True)
class FrictionStart:
    """Where the search for the numbers inside a friction model starts.

    Examples:
        >>> import dynid
        >>> dynid.effects.FrictionStart(width=0.05).time_s
        0.03
    """

    width: float = START_WIDTH
    """Of the smooth sign, rad/s or m/s."""
    time_s: float = START_TIME_S
    """Memory of the signal path."""
    dead_zone: float | tuple[float, ...] = 0.0
    """Of a sharp sign, rad/s or m/s."""


ModelMaker: TypeAlias = Callable[[FrictionStart], Sequence[Effect]]


@dataclass(frozen=True)
class _Model:
    make: ModelMaker
    tried: bool


_MODELS: dict[str, _Model] = {}


def register_friction_model(name: str, make: ModelMaker, *, tried: bool = True) -> None:
    """Register a friction model by its name.

    Args:
        name: what ``--friction`` and ``Settings(friction=...)`` call it.
        make: a function from :class:`FrictionStart` to the effects of the model.
        tried: whether ``auto`` tries it, beside the others, on held-out blocks of time.

    Examples:
        >>> import dynid
        >>> dynid.effects.register_friction_model("bare", lambda start: (dynid.Viscous(),), tried=False)
        >>> dynid.effects.friction_effects("bare")
        (Viscous(),)
        >>> dynid.effects.unregister_friction_model("bare")
    """
    if not name or name == AUTO:
        raise InputError(f"a friction model is registered as '{name}', expected a name of its own")
    if not callable(make):
        raise InputError(f"friction model '{name}' is registered with {make!r}, expected a function that makes its effects")
    _MODELS[name] = _Model(make, tried)


def unregister_friction_model(name: str) -> None:
    """Remove a friction model from the register.

    Args:
        name: as it was registered.

    Examples:
        >>> import dynid
        >>> dynid.effects.register_friction_model("bare", lambda start: (dynid.Viscous(),))
        >>> dynid.effects.unregister_friction_model("bare")
        >>> "bare" in dynid.effects.friction_models()
        False
    """
    if name not in _MODELS:
        raise UnknownNameError("friction model", name, _MODELS)
    del _MODELS[name]


def friction_models() -> tuple[str, ...]:
    """Names of all registered friction models.

    Examples:
        >>> import dynid
        >>> dynid.effects.friction_models()[:2]
        ('linear', 'smooth')
    """
    return tuple(_MODELS)


def modelled_effects() -> frozenset[str]:
    """Names of the effects that a friction model takes the place of: those of all models; others stay."""
    return frozenset(effect.name for model in _MODELS.values() for effect in model.make(FrictionStart()))


def tried_friction_models() -> tuple[str, ...]:
    """Names of the friction models among which ``auto`` chooses."""
    return tuple(name for name, model in _MODELS.items() if model.tried)


def friction_choices() -> tuple[str, ...]:
    """What may be asked for: a model, or ``auto``."""
    return (*_MODELS, AUTO)


def friction_effects(
    model: str, *, time_s: float = START_TIME_S, dead_zone: float | tuple[float, ...] = 0.0
) -> tuple[Effect, ...]:
    """The effects of a friction model.

    Args:
        model: name of a registered model.
        time_s: where the search for the time constant of the signal path starts, s.
        dead_zone: of a sharp sign, rad/s or m/s; one value, or one per joint.

    Examples:
        >>> import dynid
        >>> [effect.name for effect in dynid.effects.friction_effects("linear")]
        ['viscous', 'coulomb', 'offset']
    """
    if model not in _MODELS:
        raise UnknownNameError("friction model", model, friction_choices())
    return tuple(_MODELS[model].make(FrictionStart(time_s=time_s, dead_zone=dead_zone)))


def _turn(start: FrictionStart) -> SmoothCoulomb:
    return SmoothCoulomb(smooth_width=start.width, smooth_time_s=start.time_s)


def _loaded(start: FrictionStart) -> tuple[Effect, ...]:
    return _turn(start), LoadCoulomb(smooth_width=start.width, smooth_time_s=start.time_s), LoadViscous(), Offset()


def _held(start: FrictionStart) -> SmoothCoulomb:
    """Coulomb friction of the last direction, which a joint at rest keeps."""
    return SmoothCoulomb(smooth_width=start.width, slide_distance=START_DISTANCE)


def _held_loaded(start: FrictionStart) -> tuple[Effect, ...]:
    loaded = LoadCoulomb(smooth_width=start.width, slide_distance=START_DISTANCE)
    return _held(start), loaded, LoadViscous(), Offset()


def _slow(start: FrictionStart) -> Stribeck:
    return Stribeck(smooth_width=start.width, smooth_time_s=start.time_s)


_BENT = ViscousPolynomial(powers=(2,))

register_friction_model("linear", lambda start: (Viscous(), Coulomb(dead_zone=start.dead_zone), Offset()))
register_friction_model("smooth", lambda start: (Viscous(), _turn(start), Offset()))
register_friction_model("polynomial", lambda start: (Viscous(), _BENT, _turn(start), Offset()))
register_friction_model("sigmoid", lambda start: (Viscous(), Sigmoid(), Offset()))
register_friction_model("stribeck", lambda start: (Viscous(), _turn(start), _slow(start), Offset()))
register_friction_model("load", lambda start: (Viscous(), *_loaded(start)))
register_friction_model("load_polynomial", lambda start: (Viscous(), _BENT, *_loaded(start)))
register_friction_model("presliding", lambda start: (Viscous(), _held(start), Offset()))
register_friction_model("presliding_polynomial", lambda start: (Viscous(), _BENT, _held(start), Offset()))
register_friction_model("presliding_load", lambda start: (Viscous(), _BENT, *_held_loaded(start)))
# Gaz and others (2019), equation 25: the sigmoid alone, three numbers a joint. Auto has it as part of "sigmoid".
register_friction_model("gaz", lambda start: (Sigmoid(),), tried=False)
