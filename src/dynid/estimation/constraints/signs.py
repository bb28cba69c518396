"""Which columns of effects must not be negative: asked of the effects, in one place."""

from __future__ import annotations

from dynid.robot import effects

CLASSIC = ("Ia", "fv", "fc")
"""Rotor inertia, viscous and Coulomb friction (Sousa 28)."""


def signs_of_effects() -> tuple[str, ...]:
    """Symbols of the columns that every known effect says are not negative, on joints and on coupled motors."""
    ask = getattr(effects, "nonnegative_symbols", None)
    symbols = CLASSIC if ask is None else (*CLASSIC, *(symbol for symbol in ask() if symbol not in CLASSIC))
    return tuple(dict.fromkeys([*symbols, *(f"{symbol}m" for symbol in symbols if not symbol.endswith("m"))]))
