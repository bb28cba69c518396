"""Options of ``dynid watch``, written once; flags and help are made from these fields."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.errors import InputError
from dynid.option_types import (
    Number,
    Switch,
    Text,
    check_options,
    option,
    same_option,
)
from dynid.pipeline.options import Settings

SOURCE, KEPT, DRIFT = "Where rows come from", "What is kept and when it is reported", "When a change is an alarm"
_SECONDS = Number("SECONDS", 0.0, open_low=True, unit="s")


@dataclass(frozen=True)
class OnlineSettings:
    """Options of a watch; the defaults are those of the command line.

    Examples:
        >>> import dynid
        >>> from dynid.apps.online.options import OnlineSettings
        >>> OnlineSettings(forget=30.0).every
        1.0
    """

    source: str = option(
        "stdin",
        "stdin, tcp://127.0.0.1:PORT (dynid listens; senders may come and go), or mcap:FILE. Lines are JSON objects, CSV with a "
        "header, or what 'ros2 topic echo --csv /joint_states' prints.",
        Text("SOURCE"),
        example="tcp://127.0.0.1:9000",
        group=SOURCE,
    )
    follow: bool = option(False, "Wait at the end of an MCAP file that is still being written.", Switch(), group=SOURCE)
    once: bool = option(False, "End when the first sender on the socket has left.", Switch(), group=SOURCE)
    allow_remote: bool = option(
        False,
        "Let --source and --page bind to an address that other machines can reach; there is no password.",
        Switch(),
        group=SOURCE,
    )
    every: float = option(1.0, "Time of the stream between two reports, s.", _SECONDS, group=KEPT)
    forget: float | None = option(
        None, "Forget: rows of this age count by 1/e, s; default: all rows count alike.", _SECONDS, example=60.0, group=KEPT
    )
    last: float | None = option(
        None,
        "Identify from the rows of the last SECONDS alone (a window of ten triangles).",
        _SECONDS,
        example=60.0,
        group=KEPT,
    )
    bounds: str | None = same_option(
        Settings,
        "bounds",
        "Bounds of parameters by their names, CSV (name, lower, upper) or TOML; values outside are moved to them.",
        group=KEPT,
    )
    dead_zone: float = option(
        0.0,
        "Speed below which the sign of Coulomb friction is taken as unknown, rad/s or m/s; none by default, since rows are "
        "filtered. With --against that of the run is used.",
        Number("SPEED", 0.0, unit="rad/s"),
        group=KEPT,
    )
    weighted: bool = same_option(Settings, "weighted", "Count joints by their own noise.", group=KEPT)
    checkpoint: str | None = option(
        None,
        "File that holds all that is known, written whole every few seconds and at the end.",
        Text("FILE", path=True),
        example="watch.npz",
        group=KEPT,
    )
    checkpoint_every: float = option(5.0, "Time between two checkpoints, s of the wall clock.", _SECONDS, group=KEPT)
    resume: bool = option(False, "Go on from the checkpoint.", Switch(), group=KEPT)
    payload: bool = option(
        False, "Watch the ten parameters of a load; needs --against RUN without it.", Switch(), example=True, group=KEPT
    )
    frame: str | None = same_option(
        Settings, "frame", "With --payload: frame of the load; default: the last link.", group=KEPT
    )
    against: str | None = option(
        None,
        "Run whose values are the reference; its model, friction and band are used. Default: the start of the stream.",
        Text("RUN", path=True),
        example="run",
        group=DRIFT,
    )
    learn: float = option(
        60.0,
        "Rows that give the reference where there is no run, s; 24 blocks after it the alarm begins to watch.",
        _SECONDS,
        group=DRIFT,
    )
    block: float = option(5.0, "Length of the blocks that are judged, s.", _SECONDS, group=DRIFT)
    false_alarms: float = option(
        0.01,
        "False alarms in an hour that are accepted, all groups together.",
        Number("RATE", 0.0, open_low=True),
        group=DRIFT,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.forget is not None and self.last is not None:
            raise InputError("--forget and --last were both given, expected one of the two")
        if self.resume and self.checkpoint is None:
            raise InputError("--resume goes on from a checkpoint: give --checkpoint FILE as well")
