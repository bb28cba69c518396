"""Every option of ``dynid simulate``, written once; flags, help and checks are made from these fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynid.run.kinds import Number, Numbers, Whole
from dynid.run.option import check_options, effects_option, gravity_option, lock_option, option, options_of, same_option
from dynid.run.options import DEFAULT_EFFECTS, Fit, Reading

_ONE_OR_ALL = "one or one per joint; default: the description's."


@dataclass(frozen=True)
class Sensed:
    """The log and its noise."""

    rate_hz: float = option(1000.0, "Samples per second of the log.", Number("HZ"), flag="--rate")
    torque_noise: float = option(
        0.01, "Standard deviation of torque noise, as a fraction of each joint's root mean square torque.", Number("SHARE")
    )
    encoder_bits: int = option(19, "Encoder bits per turn; 0 for an exact encoder.", Whole("N"))
    seed: int = same_option(Fit, "seed")


@dataclass(frozen=True)
class Rubbing:
    """Friction and rotors."""

    viscous: tuple[float, ...] | None = option(
        None, f"Viscous friction, N m s/rad or N s/m, {_ONE_OR_ALL}", Numbers("V1,V2,..")
    )
    coulomb: tuple[float, ...] | None = option(None, f"Coulomb friction, N m or N, {_ONE_OR_ALL}", Numbers("C1,C2,.."))
    offset: tuple[float, ...] | None = option(None, f"Offset of the torque, N m or N, {_ONE_OR_ALL}", Numbers("O1,O2,.."))
    armature: tuple[float, ...] | None = option(
        None, f"Rotor inertia at the joint, kg m^2 or kg, {_ONE_OR_ALL}", Numbers("A1,A2,..")
    )


@dataclass(frozen=True)
class Moved:
    """The robot that moves."""

    effects: tuple[str, ...] = effects_option(DEFAULT_EFFECTS)
    gravity: tuple[float, float, float] | None = gravity_option()
    lock: Mapping[str, float] = lock_option()
    joints: tuple[str, ...] | None = same_option(
        Reading,
        "joints",
        "Joints that numbered columns (q1, q2, ..) of the motion belong to, in their order; the others are held.",
    )


GROUPS = (Sensed, Rubbing, Moved)


@dataclass(frozen=True)
class SimulateSettings(Moved, Rubbing, Sensed):
    """Options of a simulated log; the defaults are those of the command line.

    Examples:
        >>> from dynid.run.simulate_options import SimulateSettings
        >>> SimulateSettings(viscous=(1.0,), coulomb=(0.5,)).given_effects()
        {'viscous': 1.0, 'coulomb': 0.5}
    """

    def __post_init__(self) -> None:
        check_options(self)

    def given_effects(self) -> dict[str, Any]:
        """Values of the effects that were given: one number for every joint, or one for each."""
        values = {one.name: getattr(self, one.name) for one in options_of(Rubbing)}
        return {name: value[0] if len(value) == 1 else value for name, value in values.items() if value is not None}
