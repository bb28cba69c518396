"""Friction models by name: sets of effects that take the place of viscous, Coulomb and offset.

A model is registered by a function that makes its effects; the numbers inside them are where a search starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from dynid.errors import InputError, UnknownNameError
from dynid.model.effects.dry_friction import Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.effect import Effect
from dynid.model.effects.linear import LoadViscous, Offset, Viscous, ViscousPolynomial

AUTO = "auto"
START_WIDTH = 0.02
START_TIME_S = 0.03
START_DISTANCE = 3e-4


@dataclass(frozen=True)
class FrictionStart:
    """Where the search for the numbers inside a friction model starts.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.friction_models import FrictionStart
        >>> FrictionStart(width=0.05).time_s
        0.03
    """

    width: float = START_WIDTH
    """Of the smooth sign, rad/s or m/s."""
    time_s: float = START_TIME_S
    """Memory of the signal path."""
    dead_zone: float | tuple[float, ...] = 0.0
    """Of a sharp sign, rad/s or m/s."""


ModelMaker: TypeAlias = Callable[[FrictionStart], Sequence[Effect]]


_MODELS: dict[str, tuple[ModelMaker, bool]] = {}
"""What makes the effects of every model, and whether ``auto`` tries it."""


def register_friction_model(name: str, make: ModelMaker, *, tried: bool = True) -> Callable[[], None]:
    """Register a friction model by its name.

    Args:
        name: what ``--friction`` and ``Settings(friction=...)`` call it.
        make: a function from :class:`FrictionStart` to the effects of the model.
        tried: whether ``auto`` tries it, beside the others, on held-out blocks of time.

    Returns:
        a function that takes the registration back.

    Examples:
        >>> import dynid
        >>> forget = dynid.register_friction_model("bare", lambda start: (dynid.Viscous(),), tried=False)
        >>> friction_effects("bare")
        (Viscous(),)
        >>> forget()
    """
    if not name or name == AUTO:
        raise InputError(f"a friction model is registered as '{name}', expected a name of its own")
    if not callable(make):
        raise InputError(f"friction model '{name}' is registered with {make!r}, expected a function that makes its effects")
    _MODELS[name] = make, tried
    return partial(unregister_friction_model, name)


def unregister_friction_model(name: str) -> None:
    """Remove a friction model from the register.

    Args:
        name: as it was registered.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.friction_models import friction_models, unregister_friction_model
        >>> _ = dynid.register_friction_model("bare", lambda start: (dynid.Viscous(),))
        >>> unregister_friction_model("bare")
        >>> "bare" in friction_models()
        False
    """
    if name not in _MODELS:
        raise UnknownNameError("friction model", name, _MODELS)
    del _MODELS[name]


def friction_models() -> tuple[str, ...]:
    """Names of all registered friction models.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.friction_models import friction_models
        >>> friction_models()[:2]
        ('linear', 'smooth')
    """
    return tuple(_MODELS)


def modelled_effects() -> frozenset[str]:
    """Names of the effects that a friction model takes the place of: those of all models; others stay."""
    return frozenset(effect.name for make, _ in _MODELS.values() for effect in make(FrictionStart()))


def tried_friction_models() -> tuple[str, ...]:
    """Names of the friction models among which ``auto`` chooses."""
    return tuple(name for name, (_, tried) in _MODELS.items() if tried)


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
        >>> from dynid.model.effects.friction_models import friction_effects
        >>> [effect.name for effect in friction_effects("linear")]
        ['viscous', 'coulomb', 'offset']
    """
    if model not in _MODELS:
        raise UnknownNameError("friction model", model, friction_choices())
    return tuple(_MODELS[model][0](FrictionStart(time_s=time_s, dead_zone=dead_zone)))


def _turning(start: FrictionStart, *, held: bool = False) -> dict[str, Any]:
    """How the sign turns: over speed and time, or, where a joint at rest keeps the friction of its last direction, over travel."""
    over = {"slide_distance": START_DISTANCE} if held else {"smooth_time_s": start.time_s}
    return {"smooth_width": start.width} | over


def _dry(start: FrictionStart, *, held: bool = False) -> tuple[Effect, ...]:
    return (SmoothCoulomb(**_turning(start, held=held)),)


def _loaded(start: FrictionStart, *, held: bool = False) -> tuple[Effect, ...]:
    return *_dry(start, held=held), LoadCoulomb(**_turning(start, held=held)), LoadViscous()


_BENT = ViscousPolynomial(powers=(2,))

register_friction_model("linear", lambda start: (Viscous(), Coulomb(dead_zone=start.dead_zone), Offset()))
register_friction_model("smooth", lambda start: (Viscous(), *_dry(start), Offset()))
register_friction_model("polynomial", lambda start: (Viscous(), _BENT, *_dry(start), Offset()))
register_friction_model("sigmoid", lambda start: (Viscous(), Sigmoid(), Offset()))
register_friction_model("stribeck", lambda start: (Viscous(), *_dry(start), Stribeck(**_turning(start)), Offset()))
register_friction_model("load", lambda start: (Viscous(), *_loaded(start), Offset()))
register_friction_model("load_polynomial", lambda start: (Viscous(), _BENT, *_loaded(start), Offset()))
register_friction_model("presliding", lambda start: (Viscous(), *_dry(start, held=True), Offset()))
register_friction_model("presliding_polynomial", lambda start: (Viscous(), _BENT, *_dry(start, held=True), Offset()))
register_friction_model("presliding_load", lambda start: (Viscous(), _BENT, *_loaded(start, held=True), Offset()))
# Gaz and others (2019), equation 25: the sigmoid alone, three numbers a joint. Auto has it as part of "sigmoid".
register_friction_model("gaz", lambda start: (Sigmoid(),), tried=False)
