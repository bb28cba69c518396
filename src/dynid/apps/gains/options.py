"""Every option of ``dynid gains`` that other verbs do not have, written once; flags, help and checks are made from these fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dynid.option_types import (
    Number,
    Numbers,
    Text,
    check_options,
    effects_option,
    option,
    same_option,
)
from dynid.pipeline.options import Settings

METHODS = ("tls", "sdp", "ols")
FILTER = ("velocity", "filter_on", "cutoff_hz", "signal_band_hz", "filter_order", "dead_zone")
"""Options of a run that say how logs are filtered which are not of a run."""


KNOWN = "What is known of loads and gains"
ESTIMATED = "How gains are estimated"


@dataclass(frozen=True)
class GainsSettings:
    """Options of a search for drive gains; the defaults are those of the command line.

    Examples:
        >>> from dynid.apps.gains.options import GainsSettings
        >>> GainsSettings(mass=2.8).method
        'tls'
    """

    # of --mass and --total one is needed: identify_gains refuses a value in the words of its flag
    mass: float | None = option(None, "Mass of the load, the same in all loaded logs.", Number("KG"), group=KNOWN)
    total: float | None = option(
        None,
        "In place of --mass: every loaded log has a load of its own, and this is the mass of all of them together.",
        Number("KG"),
        group=KNOWN,
    )
    frame: str | None = same_option(Settings, "frame", "Frame that carries the load; default: the last link.", group=KNOWN)
    gains_prior: tuple[float, ...] | None = option(
        None, "Gains of a data sheet, N m per A, combined with the data.", Numbers("K1,K2,.."), group=KNOWN
    )
    gains_prior_percent: float = option(
        10.0, "Standard deviation of those gains.", Number("PERCENT", 0.0, open_low=True, unit="percent"), group=KNOWN
    )
    method: Literal["tls", "sdp", "ols"] = option(
        "tls",
        "tls (errors in the current), sdp (the same, links and load consistent) or ols.",
        Text("NAME", choices=METHODS, what="method"),
        group=ESTIMATED,
    )
    effects: tuple[str, ...] = effects_option(group=ESTIMATED)

    def __post_init__(self) -> None:
        check_options(self)
