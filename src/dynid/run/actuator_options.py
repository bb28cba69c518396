"""Every option of ``dynid actuators``, written once; flags, help and the stored settings are made from these fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dynid.errors import InputError
from dynid.run.kinds import Choice, Kind, Names, Number, Numbers, Switch, number_of, refusal
from dynid.run.option import check_options, gravity_option, lock_option, option
from dynid.run.options import Reading

EFFECTS = ("armature", "viscous", "coulomb", "offset")
EXPORTS = ("mjcf", "isaac", "newton", "urdf", "json")
METHODS = ("output-error", "iv", "linear")


@dataclass(frozen=True)
class Gains(Kind):
    """Gains: one number for all joints or one per joint; logs with gains of their own separated by ``/``; ``auto`` if not known."""

    def parse(self, text: Any, flag: str) -> Any:
        if str(text).strip() == "auto":
            return "auto"
        expected = "numbers separated by commas (joints) and / (logs), or 'auto'"
        return tuple(tuple(number_of(x, flag, expected) for x in log.split(",")) for log in str(text).split("/"))

    def check(self, value: Any, name: str) -> Any:
        if value == "auto":
            return value
        if isinstance(value, int | float):
            value = ((float(value),),)
        if value and all(isinstance(x, int | float) for x in value):
            value = (tuple(value),)
        if not (_filled(value) and all(_filled(log) and _all_gains(log) for log in value)):
            raise refusal(name, value, "gains of zero or more, one or one per joint, or 'auto'")
        return tuple(tuple(float(x) for x in log) for log in value)

    def text(self, value: Any) -> str:
        return value if isinstance(value, str) else "/".join(",".join(repr(x) for x in log) for log in value)


def _filled(value: Any) -> bool:
    return isinstance(value, tuple | list) and bool(value)


def _all_gains(values: Sequence[Any]) -> bool:
    return all(isinstance(x, int | float) and x >= 0.0 for x in values)


@dataclass(frozen=True)
class Control:
    """What is known of the controller."""

    kp: tuple[tuple[float, ...], ...] | str = option(
        "auto",
        "Position gain of the drives, N m/rad or N/m: one, or one per joint (20,20,30), logs apart by / (20/40); auto: not known.",
        Gains("K"),
    )
    kd: tuple[tuple[float, ...], ...] | str = option(
        "auto", "Velocity gain, N m s/rad or N s/m, given like --kp.", Gains("K")
    )
    control: Literal["position", "velocity"] = option(
        "position",
        "What the drives are sent: positions (q_cmd), or speeds (dq_cmd), which they follow with the velocity gain alone.",
        Choice("WHAT", ("position", "velocity"), what="kind of command"),
    )
    gains: Literal["known", "scale"] = option(
        "known",
        "Whether the gains given are true (known), or right up to one unknown factor per joint (scale): two logs with different "
        "gains then separate gains from friction.",
        Choice("WHICH", ("known", "scale"), what="knowledge of gains"),
    )
    delay: float | str = option(
        "auto",
        "Delay from the stamp of a command to its effect, s; auto: found, one for all joints; joint: found for every joint.",
        Number("SECONDS", 0.0, words_taken=("auto", "joint"), unit="s"),
    )
    command: Literal["held", "linear"] = option(
        "held",
        "Between two stamps a command is held (digital interface) or linear (the drive interpolates).",
        Choice("HOW", ("held", "linear"), what="interpolation of commands"),
    )
    control_hz: float | None = option(
        None,
        "Rate of a digital controller that holds its torque from tick to tick, Hz; default: the drive acts at every instant.",
        Number("HZ", 0.0, open_low=True, unit="Hz"),
        example=200.0,
    )
    limit: tuple[float, ...] | None = option(
        None,
        "Largest torque of the drives, one or one per joint; default: that of the description.",
        Numbers("T1,T2,.."),
        example=(23.7,),
    )
    stall_torque: tuple[float, ...] | None = option(
        None,
        "Torque of the motors at rest, at the joint, one or one per joint; it falls to zero at --no-load-speed.",
        Numbers("T1,T2,.."),
        example=(35.0,),
    )
    no_load_speed: tuple[float, ...] | None = option(
        None,
        "Speed at which the motors have no torque left, at the joint, one or one per joint, rad/s or m/s.",
        Numbers("V1,V2,.."),
        example=(30.0,),
    )
    lag: float | Literal["auto"] = option(
        0.0,
        "Time constant of the current loop: the torque follows what the controller asks for by a first-order lag, s; auto: the one that "
        "leaves least of the positions, with its interval, where the logs tell it from zero.",
        Number("SECONDS", 0.0, words_taken=("auto",), unit="s"),
    )
    dead_band: float | Literal["auto"] = option(
        0.0,
        "Error of position within which the drive does nothing, rad or m (hobby servos); auto: found as the lag is.",
        Number("RAD", 0.0, words_taken=("auto",)),
    )
    command_rate: bool = option(
        False, "The drive damps the speed relative to that of the command, not the speed itself.", Switch()
    )


@dataclass(frozen=True)
class Asked:
    """What is identified, and how."""

    effects: tuple[str, ...] = option(EFFECTS, "Values asked of every joint.", Names("NAMES"))
    hold: tuple[str, ...] = option(
        ("all",),
        "Bodies held at the description: all, none, or links and joints by a part of their names; the others are freed.",
        Names("NAMES"),
    )
    free: tuple[str, ...] = option(
        (),
        "Bodies that are identified too, by a part of the link's or joint's name; the description is their prior.",
        Names("NAMES"),
        example=("thigh",),
    )
    method: Literal["output-error", "iv", "linear"] = option(
        "output-error",
        "Final estimate: output-error (simulated positions), iv (instrumental variables) or linear (rows alone); the linear one is "
        "always reported beside it.",
        Choice("NAME", METHODS, what="method"),
    )
    window: float = option(2.0, "Length of the windows that output error simulates, s.", Number("SECONDS", 0.1, unit="s"))
    split: float | None = option(
        None,
        "Identify on this share of each log, from its start; roll out the rest.",
        Number("SHARE", 0.0, 1.0, open_low=True, open_high=True),
        example=0.65,
    )
    gravity: tuple[float, float, float] | None = gravity_option()
    lock: Mapping[str, float] = lock_option()


@dataclass(frozen=True)
class ActuatorSettings(Asked, Control, Reading):
    """Options of an actuator identification; the defaults are those of the command line.

    Examples:
        >>> import dynid
        >>> dynid.ActuatorSettings(kp=20.0, kd=1.5).kp
        ((20.0,),)
    """

    def __post_init__(self) -> None:
        check_options(self)
        for name in self.effects:
            if name not in EFFECTS:
                raise InputError(f"--effects has '{name}', expected some of {', '.join(EFFECTS)}")
        if (self.stall_torque is None) != (self.no_load_speed is None):
            raise InputError("--stall-torque and --no-load-speed belong together, expected both or none")
        if self.control == "velocity" and (self.command_rate or self.dead_band):
            raise InputError("--control velocity has no error of position: leave out --dead-band and --command-rate")
        asked = [flag for flag, value in (("--lag", self.lag), ("--dead-band", self.dead_band)) if value == "auto"]
        if asked and self.method != "output-error":
            raise InputError(f"{asked[0]} auto is found by output error: leave out --method {self.method}, or give a number")
        if self.gains == "scale" and "auto" in (self.kd, self.kd if self.control == "velocity" else self.kp):
            raise InputError("--gains scale needs --kp and --kd: the numbers that the true gains are multiples of")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
