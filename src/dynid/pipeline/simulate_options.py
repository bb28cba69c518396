"""Every option of ``dynid simulate``, written once; flags, help and checks are made from these fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynid.option_types import (
    Number,
    Numbers,
    check_options,
    effects_option,
    gravity_option,
    lock_option,
    option,
    options_of,
    same_option,
)
from dynid.pipeline.options import Settings

_ONE_OR_ALL = "one or one per joint; default: the description's."


LOG = "The log and its noise"
FRICTION = "Friction and rotors"
ROBOT = "The robot that moves"
FEET = "A robot on its feet"


@dataclass(frozen=True)
class SimulateSettings:
    """Options of a simulated log; the defaults are those of the command line.

    Examples:
        >>> from dynid.pipeline.simulate_options import SimulateSettings
        >>> SimulateSettings(viscous=(1.0,), coulomb=(0.5,)).given_effects()
        {'viscous': 1.0, 'coulomb': 0.5}
    """

    rate_hz: float = option(1000.0, "Samples per second of the log.", Number("HZ"), flag="--rate", group=LOG)
    torque_noise: float = option(
        0.01,
        "Standard deviation of torque noise, as a fraction of each joint's root mean square torque.",
        Number("SHARE"),
        group=LOG,
    )
    encoder_bits: int = option(19, "Encoder bits per turn; 0 for an exact encoder.", Number("N", whole=True), group=LOG)
    seed: int = same_option(Settings, "seed", group=LOG)
    viscous: tuple[float, ...] | None = option(
        None, f"Viscous friction, N m s/rad or N s/m, {_ONE_OR_ALL}", Numbers("V1,V2,.."), group=FRICTION
    )
    coulomb: tuple[float, ...] | None = option(
        None, f"Coulomb friction, N m or N, {_ONE_OR_ALL}", Numbers("C1,C2,.."), group=FRICTION
    )
    offset: tuple[float, ...] | None = option(
        None, f"Offset of the torque, N m or N, {_ONE_OR_ALL}", Numbers("O1,O2,.."), group=FRICTION
    )
    armature: tuple[float, ...] | None = option(
        None, f"Rotor inertia at the joint, kg m^2 or kg, {_ONE_OR_ALL}", Numbers("A1,A2,.."), group=FRICTION
    )
    effects: tuple[str, ...] = effects_option(group=ROBOT)
    gravity: tuple[float, float, float] | None = gravity_option(group=ROBOT)
    lock: Mapping[str, float] = lock_option(group=ROBOT)
    joints: tuple[str, ...] | None = same_option(
        Settings,
        "joints",
        "Joints that numbered columns (q1, q2, ..) of the motion belong to, in their order; the others are held.",
        group=ROBOT,
    )

    feet: tuple[str, ...] = same_option(
        Settings,
        "feet",
        "Frames of point feet on which a robot on a floating base stands or walks; the log holds its base, an IMU, and the feet.",
        group=FEET,
    )
    flat_feet: tuple[str, ...] = same_option(
        Settings, "flat_feet", "Frames of flat feet on which the robot stands or walks.", group=FEET
    )
    foot_radius: float = option(0.015, "Radius of round feet, m.", Number("R", 0.0, open_low=True, unit="m"), group=FEET)
    motion_noise: float = option(
        1.0,
        "Noise of base, IMU and joints on feet: 1 for a usual one (0.5 mm, 0.2 mrad, 5 mm/s, 5 mrad/s, 0.05 m/s^2), 0 for none, with "
        "accelerations logged as well.",
        Number("SCALE", 0.0),
        group=FEET,
    )

    def __post_init__(self) -> None:
        check_options(self)

    def given_effects(self) -> dict[str, Any]:
        """Values of the effects that were given: one number for every joint, or one for each."""
        values = {one.name: getattr(self, one.name) for one in options_of(SimulateSettings, FRICTION)}
        return {name: value[0] if len(value) == 1 else value for name, value in values.items() if value is not None}
