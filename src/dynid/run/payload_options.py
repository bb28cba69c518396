"""Every option of ``dynid payload``, written once; flags, help and checks are made from these fields."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from dynid.errors import InputError
from dynid.run.kinds import File, Number, Switch, Text
from dynid.run.option import check_options, default_of, flag_of, gravity_option, option, options_of, same_option
from dynid.run.options import Reading, Sensor, Settings


@dataclass(frozen=True)
class OnSensor:
    """Body on a force/torque sensor."""

    frame_pose: tuple[float, ...] | None = same_option(Sensor, "frame_pose")
    imu_pose: tuple[float, ...] | None = same_option(Sensor, "imu_pose")
    filter: str = option(
        "auto", "auto, none, savgol:WINDOW,ORDER, butterworth:HZ, rows:HZ or polynomial:SECONDS.", Text("FILTER")
    )
    drift: bool = same_option(Sensor, "drift", "Estimate a linear drift of the six offsets.")
    tilt: bool = same_option(Sensor, "tilt")
    static: bool | None = same_option(
        Sensor,
        "static",
        "Use the weight alone, or the whole motion. Default: the weight alone where the sensor hardly turns.",
    )
    gravity: tuple[float, float, float] | None = gravity_option()


@dataclass(frozen=True)
class Known:
    """What is known of the load."""

    mass: float | None = same_option(Sensor, "mass", "Known mass.")
    shape: str | None = same_option(
        Sensor,
        "shape",
        "Shape that the load fills, in its frame: box:X0,Y0,Z0,X1,Y1,Z1, cylinder:X0,Y0,Z0,X1,Y1,Z1,RADIUS or mesh:FILE.",
    )
    tool: str | None = option(
        None,
        "What holds the load and is not in the run: JSON of an earlier payload in the same frame; it is taken off.",
        File("FILE"),
    )
    gain_percent: float | None = option(
        None,
        "Standard deviation of the drive gains, part of the interval; default: 10 where torque is made of current.",
        Number("PERCENT", 0.0),
    )


@dataclass(frozen=True)
class Carried:
    """Where the load is, and what is told of it."""

    frame: str | None = same_option(
        Sensor,
        "frame",
        "Frame of the load or sensor: any link of the description, such as tool0; default: the last link.",
        also=("--link",),
    )
    online: bool = option(
        False, "Go through the log as if it came in now: one line a second, and which values are known yet.", Switch()
    )
    each: bool = option(False, "Every log has a load of its own.", Switch())


GROUPS = (Carried, OnSensor, Known, Reading)
OF_A_RUN = ("tool", "gain_percent", "each")
"""Options that mean something only beside a run without the load."""


@dataclass(frozen=True)
class PayloadSettings(Reading, Known, OnSensor, Carried):
    """Options of a search for a load; the defaults are those of the command line.

    Examples:
        >>> from dynid.run.payload_options import PayloadSettings
        >>> PayloadSettings(mass=2.0, tilt=True).for_run()
        Traceback (most recent call last):
        ...
        dynid.errors.InputError: --tilt belongs to --sensor LOG; with a run its robot, filter and gravity are used
    """

    def __post_init__(self) -> None:
        check_options(self)

    def changed(self, *groups: type) -> dict[str, Any]:
        """Those options of some groups that are not the defaults."""
        values = {one.name: (getattr(self, one.name), default_of(one)) for one in options_of(*groups)}
        return {name: value for name, (value, default) in values.items() if value != default}

    def for_run(self) -> None:
        """Refuse what means nothing where the load is found from joint torque and a run without it."""
        for one in fields(OnSensor):
            if one.name in self.changed(OnSensor):
                raise InputError(
                    f"{flag_of(one)} belongs to --sensor LOG; with a run its robot, filter and gravity are used"
                )

    def for_sensor(self) -> Settings:
        """The options of a run that say the same of the logs of a sensor; what means nothing for them is refused."""
        if any(name in self.changed(Known, Carried) for name in OF_A_RUN):
            raise InputError("--tool, --each and --gain-percent belong to a run and its logs, not to --sensor")
        named = {one.name: getattr(self, one.name) for one in fields(Sensor)}
        filtered: dict[str, Any] = {} if self.filter == "auto" else {"filter": self.filter}
        return Settings(**named, **filtered, gravity=self.gravity, **self.changed(Reading))
