"""What a run was asked to do; stored with it, so that it can be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.methods.registry import METHODS
from dynid.robot.effects import friction_choices
from dynid.robot.read import DEFAULT_EFFECTS

PRIORS = ("auto", "none", "euclidean", "scaled", "entropic")
OPTIMISERS = ("refine", "annealing")
VELOCITIES = ("auto", "logged", "position")


@dataclass(frozen=True)
class Settings:
    """Options of a run; the defaults are those of the command line."""

    effects: tuple[str, ...] = DEFAULT_EFFECTS
    friction: str | None = None
    """A friction model in place of viscous, Coulomb and offset; auto: what predicts held-out blocks of time best."""
    gravity: tuple[float, float, float] | None = None
    lock: Mapping[str, float] = field(default_factory=dict)
    method: str = "sdp"
    constraints: Mapping[str, Any] = field(default_factory=dict)
    """Constraints beyond physical consistency, as a run file has them."""
    prior: str = "auto"
    """What holds the semidefinite estimate where data are silent: none, euclidean, scaled, entropic (see its strength), or
    auto: entropic where the description is consistent, else euclidean."""
    prior_strength: float = 1.0
    """In units of the noise: 1 takes the description to be as uncertain as each parameter's size."""
    bounds: str | None = None
    """Bounds file of a retrieval, CSV or TOML."""
    optimiser: str = "refine"
    """How a retrieval searches: refine (from the convex relaxation) or annealing (Algorithm 1 of Gaz and others)."""
    starts: int = 2
    """Starts of a retrieval."""
    seed: int = 0
    """Of a retrieval's random starts."""
    split: float | None = None
    """Share of each log, from its start, to identify on; the rest validates."""
    velocity: Literal["auto", "logged", "position"] = "auto"
    cutoff_hz: float | Literal["auto"] = "auto"
    torque_cutoff_hz: float | None = None
    """Its own cut-off for torque; by default that of the motion."""
    filter_order: int = 4
    dead_zone: float | Literal["auto"] = "auto"
    """Speed below which Coulomb friction is taken as unknown, rad/s or m/s; auto is three times the velocity noise."""
    from_s: float | None = None
    to_s: float | None = None
    drive_gains: tuple[float, ...] | None = None
    preset: str | None = None
    mapping: str | None = None
    max_rows: int = 50_000
    """Samples kept per log after filtering; a low-passed signal needs no more."""

    def __post_init__(self) -> None:
        _check_types(self)
        object.__setattr__(self, "effects", tuple(self.effects))
        loaded = [name for name in self.effects if name.startswith("load_")]
        if loaded:
            raise InputError(
                f"effect '{loaded[0]}' needs the load of each joint, which is found with the estimate: use --friction load"
            )
        object.__setattr__(self, "lock", dict(self.lock))
        object.__setattr__(self, "constraints", dict(self.constraints))
        if self.method not in METHODS:
            raise UnknownNameError("method", self.method, METHODS)
        if self.friction is not None and self.friction not in friction_choices():
            raise UnknownNameError("friction model", self.friction, friction_choices())
        if self.prior not in PRIORS:
            raise UnknownNameError("prior", self.prior, PRIORS)
        if self.optimiser not in OPTIMISERS:
            raise UnknownNameError("optimiser", self.optimiser, OPTIMISERS)
        if self.starts < 1:
            raise InputError(f"a retrieval has {self.starts} starts, expected at least 1")
        if not self.prior_strength > 0.0:
            raise InputError(f"prior strength is {self.prior_strength:g}, expected a positive number")
        if self.velocity not in VELOCITIES:
            raise UnknownNameError("velocity source", self.velocity, VELOCITIES)
        if self.split is not None and not 0.0 < self.split < 1.0:
            raise InputError(f"split is {self.split:g}, expected a share between 0 and 1")
        for name in ("cutoff_hz", "torque_cutoff_hz"):
            value = getattr(self, name)
            if value not in (None, "auto") and not value > 0.0:
                raise InputError(f"{name} is {value:g} Hz, expected a positive number")
        if not 1 <= self.filter_order <= 12:
            raise InputError(f"filter order is {self.filter_order}, expected 1 to 12")
        if self.dead_zone != "auto" and not self.dead_zone >= 0.0:
            raise InputError(f"dead zone is {self.dead_zone:g}, expected zero or a positive speed")
        if self.max_rows < 100:
            raise InputError(f"max_rows is {self.max_rows}, expected at least 100")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        known = cls.__dataclass_fields__
        for name in values:
            if name not in known:
                raise UnknownNameError("setting", name, known)
        options: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        if isinstance(options.get("effects"), str):
            options["effects"] = tuple(name.strip() for name in options["effects"].split(",") if name.strip() != "none")
        return cls(**options)


_NUMBERS = ("prior_strength", "split", "torque_cutoff_hz", "from_s", "to_s")
_WHOLE = ("starts", "seed", "filter_order", "max_rows")
_TEXTS = ("friction", "method", "prior", "bounds", "optimiser", "velocity", "preset", "mapping")
_NUMBER_OR_AUTO = ("cutoff_hz", "dead_zone")
_TABLES = ("lock", "constraints")


def _check_types(settings: Settings) -> None:
    """Refuse what a run file may hold but no option can: text for a number, a number for a table."""

    def refuse(name: str, expected: str) -> None:
        raise InputError(f"setting '{name}' is {getattr(settings, name)!r}, expected {expected}")

    def is_number(value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    for name in _NUMBERS:
        if getattr(settings, name) is not None and not is_number(getattr(settings, name)):
            refuse(name, "a number")
    for name in _WHOLE:
        if not isinstance(getattr(settings, name), int) or isinstance(getattr(settings, name), bool):
            refuse(name, "a whole number")
    for name in _TEXTS:
        if getattr(settings, name) is not None and not isinstance(getattr(settings, name), str):
            refuse(name, "text")
    for name in _NUMBER_OR_AUTO:
        if getattr(settings, name) != "auto" and not is_number(getattr(settings, name)):
            refuse(name, "a number or 'auto'")
    for name in _TABLES:
        if not isinstance(getattr(settings, name), Mapping):
            refuse(name, "a table")
    if not all(is_number(value) for value in settings.lock.values()):
        refuse("lock", "a table of joints and positions")
    for name, count in (("gravity", 3), ("drive_gains", None)):
        values = getattr(settings, name)
        if values is None:
            continue
        if not isinstance(values, tuple | list) or not all(map(is_number, values)) or count not in (None, len(values)):
            refuse(name, "three numbers" if count else "a list of numbers")
    effects: object = settings.effects
    if not isinstance(effects, tuple | list) or not all(isinstance(name, str) for name in effects):
        refuse("effects", "a list of names")
