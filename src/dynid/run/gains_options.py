"""Every option of ``dynid gains`` that other verbs do not have, written once; flags, help and checks are made from these fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dynid.run.kinds import Choice, Number, Numbers
from dynid.run.option import check_options, effects_option, option, same_option
from dynid.run.options import DEFAULT_EFFECTS, Sensor

METHODS = ("tls", "sdp", "ols")
FILTER = ("velocity", "signals", "cutoff_hz", "signal_band_hz", "filter_order", "dead_zone")
"""Options of a run that say how logs are filtered which are not of a run."""


@dataclass(frozen=True)
class KnownLoads:
    """What is known of loads and gains."""

    # of --mass and --total one is needed: identify_gains refuses a value in the words of its flag
    mass: float | None = option(None, "Mass of the load, the same in all loaded logs.", Number("KG"))
    total: float | None = option(
        None,
        "In place of --mass: every loaded log has a load of its own, and this is the mass of all of them together.",
        Number("KG"),
    )
    frame: str | None = same_option(Sensor, "frame", "Frame that carries the load; default: the last link.")
    gains_prior: tuple[float, ...] | None = option(
        None, "Gains of a data sheet, N m per A, combined with the data.", Numbers("K1,K2,..")
    )
    gains_prior_percent: float = option(
        10.0, "Standard deviation of those gains.", Number("PERCENT", 0.0, open_low=True, unit="percent")
    )


@dataclass(frozen=True)
class Estimated:
    """How gains are estimated."""

    method: Literal["tls", "sdp", "ols"] = option(
        "tls",
        "tls (errors in the current), sdp (the same, links and load consistent) or ols.",
        Choice("NAME", METHODS, what="method"),
    )
    effects: tuple[str, ...] = effects_option(DEFAULT_EFFECTS)


GROUPS = (KnownLoads, Estimated)


@dataclass(frozen=True)
class GainsSettings(Estimated, KnownLoads):
    """Options of a search for drive gains; the defaults are those of the command line.

    Examples:
        >>> from dynid.run.gains_options import GainsSettings
        >>> GainsSettings(mass=2.8).method
        'tls'
    """

    def __post_init__(self) -> None:
        check_options(self)
