"""Physical consistency of bodies, and feasibility of base values."""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.estimation.convex.feasibility": ("closest_feasible", "feasibility"),
        "dynid.estimation.convex.repair": ("repair",),
        "dynid.estimation.convex.sdpa": ("write_sdpa",),
        "dynid.inertia": ("consistency", "is_consistent"),
        "dynid.validation.consistency": ("check_model",),
    },
)

__all__ = _OFFERED.names


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
