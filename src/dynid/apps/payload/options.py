"""Every option of ``dynid payload``, written once; flags, help and checks are made from these fields."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dynid.errors import InputError
from dynid.option_types import (
    Number,
    Switch,
    Text,
    changed_options,
    check_options,
    flag_of,
    gravity_option,
    misplaced_options,
    option,
    options_of,
    same_option,
)
from dynid.pipeline.option_groups import READING, TORQUE, WRENCH, Reading
from dynid.pipeline.option_groups import SENSOR as OF_RUN_ON_SENSOR
from dynid.pipeline.options import Settings

if TYPE_CHECKING:
    from dynid.pipeline.result import IdentificationResult

CARRIED = "Where the load is, and what is told of it"
SENSOR = "Body on a force/torque sensor"
KNOWN = "What is known of the load"


@dataclass(frozen=True)
class PayloadSettings(Reading):
    """Options of a search for a load; the defaults are those of the command line.

    Examples:
        >>> from dynid.apps.payload.options import PayloadSettings
        >>> PayloadSettings(mass=2.0, gravity="auto").refuse_sensor()
        Traceback (most recent call last):
        ...
        dynid.errors.InputError: --gravity belongs to --sensor LOG; with a run its robot, filter and gravity are used
    """

    frame: str | None = same_option(
        Settings,
        "frame",
        "Frame of the load or sensor: any link of the description, such as tool0; default: a link named as a sensor, else the last link.",
        also=("--link",),
        group=CARRIED,
    )
    online: bool = option(
        False,
        "Go through the log as if it came in now: one line a second, and which values are known yet.",
        Switch(),
        group=CARRIED,
    )
    each: bool = option(False, "Every log has a load of its own.", Switch(), group=CARRIED, only_for=(TORQUE,))
    frame_pose: tuple[float, ...] | None = same_option(Settings, "frame_pose", group=SENSOR, only_for=(WRENCH,))
    imu_pose: tuple[float, ...] | None = same_option(Settings, "imu_pose", group=SENSOR, only_for=(WRENCH,))
    filter: str = option(
        "auto",
        "auto, none, savgol:WINDOW,ORDER, butterworth:HZ, rows:HZ or polynomial:SECONDS.",
        Text("FILTER"),
        group=SENSOR,
        only_for=(WRENCH,),
    )
    drift: bool = same_option(
        Settings, "drift", "Estimate a linear drift of the six offsets.", group=SENSOR, only_for=(WRENCH,)
    )
    flip: bool = same_option(Settings, "flip", group=SENSOR, only_for=(WRENCH,))
    static: bool | None = same_option(
        Settings,
        "static",
        "Use the weight alone, or the whole motion. Default: the weight alone where the sensor hardly turns.",
        group=SENSOR,
        only_for=(WRENCH,),
    )
    gravity: tuple[float, float, float] | Literal["auto"] | None = gravity_option(
        found=True, group=SENSOR, only_for=(WRENCH,)
    )
    mass: float | None = same_option(Settings, "mass", "Known mass.", group=KNOWN)
    shape: str | None = same_option(
        Settings,
        "shape",
        "Shape that the load fills, in its frame: box:X0,Y0,Z0,X1,Y1,Z1, cylinder:X0,Y0,Z0,X1,Y1,Z1,RADIUS or mesh:FILE.",
        group=KNOWN,
    )
    tool: str | None = option(
        None,
        "What holds the load and is not in the run: JSON of an earlier payload in the same frame; it is taken off.",
        Text("FILE", path=True),
        group=KNOWN,
        only_for=(TORQUE,),
    )
    gain_percent: float | None = option(
        None,
        "Standard deviation of the drive gains, part of the interval; default: 10 where torque is made of current.",
        Number("PERCENT", 0.0),
        group=KNOWN,
        only_for=(TORQUE,),
    )

    def __post_init__(self) -> None:
        check_options(self)

    def for_run(self, run: IdentificationResult) -> dict[str, Any]:
        """What a load from joint torque and a run without it is asked with; what means nothing there is refused."""
        from dynid.files import read_json
        from dynid.pipeline.known_load import known_load

        self.refuse_sensor()
        phi = None if self.tool is None else read_json(Path(self.tool), "file of --tool").get("phi")
        known = (
            isinstance(phi, list)
            and len(phi) == 10
            and all(isinstance(value, int | float) and math.isfinite(value) for value in phi)
        )
        if self.tool is not None and not known:
            raise InputError(
                f"'{self.tool}' has no ten numbers under 'phi', expected what 'dynid payload ... --json' prints"
            )
        return {
            "link": self.frame,
            "constraints": known_load(self.mass, self.shape),
            "tool": phi,
            "gain_sigma": None if self.gain_percent is None else self.gain_percent / 100.0,
            "settings": replace(run.settings, **changed_options(self, READING)),
        }

    def refuse_sensor(self) -> None:
        """Refuse what belongs to a sensor."""
        for one in misplaced_options(self, TORQUE, SENSOR):
            raise InputError(f"{flag_of(one)} belongs to --sensor LOG; with a run its robot, filter and gravity are used")

    def for_sensor(self) -> Settings:
        """The options of a run that say the same of the logs of a sensor; what means nothing for them is refused."""
        if misplaced_options(self, WRENCH, CARRIED, KNOWN):
            raise InputError("--tool, --each and --gain-percent belong to a run and its logs, not to --sensor")
        named = {one.name: getattr(self, one.name) for one in options_of(Settings, OF_RUN_ON_SENSOR)}
        filtered: dict[str, Any] = {} if self.filter == "auto" else {"filter": self.filter}
        return Settings(**named, **filtered, gravity=self.gravity, **changed_options(self, READING))
