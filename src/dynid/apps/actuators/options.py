"""Every option of ``dynid actuators``, written once; flags, help and the stored settings are made from these fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from dynid.errors import InputError
from dynid.option_types import (
    Names,
    Number,
    Numbers,
    Switch,
    Text,
    check_options,
    gravity_option,
    lock_option,
    option,
    same_option,
)
from dynid.pipeline.option_groups import Reading
from dynid.pipeline.options import Settings

EFFECTS = ("armature", "viscous", "coulomb", "offset")
LOAD, STRIBECK = "load", "stribeck"
"""Effects that are asked for by name only: dry friction that grows with the torque that a gear carries, and towards rest."""
AUTO = ("auto",)
"""The four of every joint; of motors that are given a voltage also those further ones that predict the logs better."""
EXPORTS = ("mjcf", "isaac", "newton", "urdf", "json")
METHODS = ("output-error", "iv", "linear")


class Servo(NamedTuple):
    """A motor that is given a share of a voltage, as its firmware and its data sheet have it.

    Args:
        kp_unit: share of the supply per rad for a position gain of one.
        duty: largest share.
        volts: of the data sheet, zero where none is known. amps: current at rest. rpm: speed without load.
    """

    kp_unit: float = 1.0
    duty: float = 1.0
    volts: float = 0.0
    amps: float = 0.0
    rpm: float = 0.0

    @property
    def nameplate(self) -> dict[str, float] | None:
        """``k_t / R`` in N m/V and ``k_t^2 / R`` in N m s/rad of the data sheet, by the symbols of the gains; None where there is none."""
        if self.volts == 0.0:
            return None
        speed = self.rpm * 2.0 * math.pi / 60.0
        return {"kp": self.amps / speed, "kd": self.volts * self.amps / speed**2}


SERVOS = {
    "xl330-m288": Servo(4096 / (2.0 * math.pi) / 256 / 885, 1.0, 5.0, 1.47, 103.0),
    "xl330-m077": Servo(4096 / (2.0 * math.pi) / 256 / 885, 1.0, 5.0, 1.47, 383.0),
    "xl320": Servo(0.0505, 1.0, 7.4, 1.1, 114.0),
    "mx64": Servo(0.158, 0.9625, 12.0, 4.1, 63.0),
    "mx106": Servo(0.158, 0.9625, 12.0, 5.2, 45.0),
    "sts3215": Servo(0.166, 0.97),
}
"""Servos by name. Units of XL330: encoder counts times gain over 256 are steps of the PWM, of which 885 are all; of the others as
Rhoban measured them. The rest is of the makers' data sheets."""
GAINS = Numbers(
    "K",
    separators="/,",
    low=0.0,
    words_taken=("auto",),
    written="numbers separated by commas (joints) and / (logs), or 'auto'",
    expected="gains of zero or more, one or one per joint, or 'auto'",
)
"""Gains: one number for all joints or one per joint; logs with gains of their own separated by ``/``; ``auto`` if not known."""
CONTROL = "What is known of the controller"
ASKED = "What is identified, and how"


@dataclass(frozen=True)
class ActuatorSettings(Reading):
    """Options of an actuator identification; the defaults are those of the command line.

    Examples:
        >>> import dynid
        >>> from dynid.apps.actuators.options import ActuatorSettings
        >>> ActuatorSettings(kp=20.0, kd=1.5).kp
        ((20.0,),)
    """

    kp: tuple[tuple[float, ...], ...] | str = option(
        "auto",
        "Position gain of the drives, N m/rad or N/m: one, or one per joint (20,20,30), logs apart by / (20/40); auto: not known.",
        GAINS,
        group=CONTROL,
    )
    kd: tuple[tuple[float, ...], ...] | str = option(
        "auto", "Velocity gain, N m s/rad or N s/m, given like --kp.", GAINS, group=CONTROL
    )
    control: Literal["position", "velocity"] = option(
        "position",
        "What the drives are sent: positions (q_cmd), or speeds (dq_cmd), which they follow with the velocity gain alone.",
        Text("WHAT", choices=("position", "velocity"), what="kind of command"),
        group=CONTROL,
    )
    motor: str = option(
        "torque",
        "What the drives make of an error of position: a torque, or a voltage (hobby servos); then motor constant and resistance are "
        "found. The name of a servo stands for a voltage with its --kp-unit, --duty and data sheet.",
        Text("WHAT", choices=("torque", "voltage", *SERVOS), what="kind of motor"),
        group=CONTROL,
    )
    kp_unit: float | None = option(
        None,
        "With --motor voltage: share of the supply per rad for a position gain of one in the firmware's units (Dynamixel XL330: 0.002877); "
        "default: that of the servo, or one.",
        Number("DUTY", 0.0, open_low=True),
        example=0.002877,
        group=CONTROL,
    )
    duty: float | None = option(
        None,
        "With --motor voltage: largest share of the supply that the firmware applies; default: that of the servo, or one.",
        Number("SHARE", 0.0, 1.0, open_low=True),
        example=0.97,
        group=CONTROL,
    )
    supply: float | None = option(
        None,
        "With --motor voltage: voltage of the supply; default: the column 'volts' of each log.",
        Number("VOLTS", 0.0, open_low=True),
        example=7.4,
        group=CONTROL,
    )
    gains: Literal["known", "scale"] = option(
        "known",
        "Whether the gains given are true (known), or right up to one unknown factor per joint (scale): two logs with different "
        "gains then separate gains from friction.",
        Text("WHICH", choices=("known", "scale"), what="knowledge of gains"),
        group=CONTROL,
    )
    delay: float | str = option(
        "auto",
        "Delay from the stamp of a command to its effect, s; auto: found, one for all joints; joint: found for every joint.",
        Number("SECONDS", 0.0, words_taken=("auto", "joint"), unit="s"),
        group=CONTROL,
    )
    command: Literal["held", "linear"] = option(
        "held",
        "Between two stamps a command is held (digital interface) or linear (the drive interpolates).",
        Text("HOW", choices=("held", "linear"), what="interpolation of commands"),
        group=CONTROL,
    )
    control_hz: float | None = option(
        None,
        "Rate of a digital controller that holds its torque from tick to tick, Hz; default: the drive acts at every instant.",
        Number("HZ", 0.0, open_low=True, unit="Hz"),
        example=200.0,
        group=CONTROL,
    )
    limit: tuple[float, ...] | None = option(
        None,
        "Largest torque of the drives, one or one per joint; default: that of the description.",
        Numbers("T1,T2,.."),
        example=(23.7,),
        group=CONTROL,
    )
    stall_torque: tuple[float, ...] | None = option(
        None,
        "Torque of the motors at rest, at the joint, one or one per joint; it falls to zero at --no-load-speed.",
        Numbers("T1,T2,.."),
        example=(35.0,),
        group=CONTROL,
    )
    no_load_speed: tuple[float, ...] | None = option(
        None,
        "Speed at which the motors have no torque left, at the joint, one or one per joint, rad/s or m/s.",
        Numbers("V1,V2,.."),
        example=(30.0,),
        group=CONTROL,
    )
    lag: float | Literal["auto"] = option(
        0.0,
        "Time constant of the current loop: the torque follows what the controller asks for by a first-order lag, s; auto: the one that "
        "leaves least of the positions, with its interval, where the logs tell it from zero.",
        Number("SECONDS", 0.0, words_taken=("auto",), unit="s"),
        group=CONTROL,
    )
    dead_band: float | Literal["auto"] = option(
        0.0,
        "Error of position within which the drive does nothing, rad or m (hobby servos); auto: found as the lag is.",
        Number("RAD", 0.0, words_taken=("auto",)),
        group=CONTROL,
    )
    command_rate: bool = option(
        False, "The drive damps the speed relative to that of the command, not the speed itself.", Switch(), group=CONTROL
    )
    effects: tuple[str, ...] = option(
        AUTO,
        "Values asked of every joint: armature, viscous, coulomb, offset; load (motors that saturate, dry friction that grows with "
        "the torque a gear carries), stribeck (dry friction that rises towards rest). auto: the first four; with --motor voltage also "
        "the others where they predict the last part of the logs better.",
        Names("NAMES"),
        group=ASKED,
    )
    hold: tuple[str, ...] = option(
        ("all",),
        "Bodies held at the description: all, none, or links and joints by a part of their names; the others are freed.",
        Names("NAMES"),
        group=ASKED,
    )
    free: tuple[str, ...] = option(
        (),
        "Bodies that are identified too, by a part of the link's or joint's name; the description is their prior.",
        Names("NAMES"),
        example=("thigh",),
        group=ASKED,
    )
    method: Literal["output-error", "iv", "linear"] = option(
        "output-error",
        "Final estimate: output-error (simulated positions), iv (instrumental variables) or linear (rows alone); the linear one is "
        "always reported beside it.",
        Text("NAME", choices=METHODS, what="method"),
        group=ASKED,
    )
    window: float | None = option(
        None,
        "Length of the windows that output error simulates, s; default: 2 s, with --motor voltage 10 s.",
        Number("SECONDS", 0.1, unit="s"),
        example=2.0,
        group=ASKED,
    )
    split: float | None = option(
        None,
        "Identify on this share of each log, from its start; roll out the rest.",
        Number("SHARE", 0.0, 1.0, open_low=True, open_high=True),
        example=0.65,
        group=ASKED,
    )
    symmetric: tuple[str, ...] = same_option(
        Settings,
        "symmetric",
        "Names of the two sides of a robot, as 'FL_* FR_*': joints paired by them have one rotor, friction and gain (offsets stay their "
        "own), freed links are mirror images. Once for each pair of patterns.",
        group=ASKED,
    )
    gravity: tuple[float, float, float] | None = gravity_option(group=ASKED)
    lock: Mapping[str, float] = lock_option(group=ASKED)

    def __post_init__(self) -> None:
        check_options(self)
        for name in () if self.effects == AUTO else self.effects:
            if name not in (*EFFECTS, LOAD, STRIBECK):
                raise InputError(f"--effects has '{name}', expected some of {', '.join((*EFFECTS, LOAD, STRIBECK))}")
        if self.method != "output-error" and ({LOAD, STRIBECK} & set(self.effects) or self.servo):
            raise InputError(
                f"--motor voltage and --effects load and stribeck are found by output error: leave out --method {self.method}"
            )
        if self.servo and (self.control == "velocity" or self.kd != "auto" or self.stall_torque is not None):
            raise InputError(
                "--motor voltage holds positions by a voltage: leave out --control velocity, --kd and --stall-torque"
            )
        if not self.servo and (self.kp_unit, self.duty, self.supply) != (None, None, None):
            raise InputError("--kp-unit, --duty and --supply are of drives that are given a voltage: add --motor voltage")
        if (self.stall_torque is None) != (self.no_load_speed is None):
            raise InputError("--stall-torque and --no-load-speed belong together, expected both or none")
        if self.control == "velocity" and (self.command_rate or self.dead_band):
            raise InputError("--control velocity has no error of position: leave out --dead-band and --command-rate")
        asked = [flag for flag, value in (("--lag", self.lag), ("--dead-band", self.dead_band)) if value == "auto"]
        if asked and self.method != "output-error":
            raise InputError(f"{asked[0]} auto is found by output error: leave out --method {self.method}, or give a number")
        if (
            self.motor == "torque"
            and self.gains == "scale"
            and "auto" in (self.kd, self.kd if self.control == "velocity" else self.kp)
        ):
            raise InputError("--gains scale needs --kp and --kd: the numbers that the true gains are multiples of")

    @property
    def servo(self) -> Servo | None:
        """The motor where it is given a voltage."""
        given = {name: value for name in ("kp_unit", "duty") if (value := getattr(self, name)) is not None}
        return None if self.motor == "torque" else SERVOS.get(self.motor, Servo())._replace(**given)

    @property
    def window_s(self) -> float:
        """Length of the windows, s; long of servos that are driven by voltage.

        Torque per volt and friction that grows with the load shift a motion slowly, which the first states of short windows make up for.
        """
        return self.window if self.window is not None else 10.0 if self.servo else 2.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
