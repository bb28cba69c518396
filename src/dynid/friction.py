"""Friction: fitting the numbers inside a friction model, and choosing a model by held-out prediction."""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.estimation.friction.choice": ("choose_friction",),
        "dynid.estimation.friction.fit": ("fit_friction", "with_transmitted_load"),
        "dynid.robot.effects": (
            "friction_effects",
            "friction_models",
            "register_friction_model",
            "unregister_friction_model",
        ),
    },
)

__all__ = _OFFERED.names


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
