"""Every option of ``dynid watch`` that other verbs do not have, written once; flags and help are made from these fields."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.errors import InputError
from dynid.run.kinds import File, Number, Switch, Text
from dynid.run.option import check_options, option, same_option
from dynid.run.options import Fit, Sensor


@dataclass(frozen=True)
class Stream:
    """Where rows come from."""

    source: str = option(
        "stdin",
        "stdin, tcp://127.0.0.1:PORT (dynid listens; senders may come and go), or mcap:FILE. Lines are JSON objects, CSV with a "
        "header, or what 'ros2 topic echo --csv /joint_states' prints.",
        Text("SOURCE"),
        flag="--from",
        example="tcp://127.0.0.1:9000",
    )
    follow: bool = option(False, "Wait at the end of an MCAP file that is still being written.", Switch())
    once: bool = option(False, "End when the first sender on the socket has left.", Switch())
    allow_remote: bool = option(
        False, "Let --from and --page bind to an address that other machines can reach; there is no password.", Switch()
    )


@dataclass(frozen=True)
class Watching:
    """What is kept and when it is reported."""

    every: float = option(1.0, "Time of the stream between two reports, s.", Number("SECONDS", 0.0, open_low=True, unit="s"))
    forget: float | None = option(
        None,
        "Forget: rows of this age count by 1/e, s; default: all rows count alike.",
        Number("SECONDS", 0.0, open_low=True, unit="s"),
        example=60.0,
    )
    last: float | None = option(
        None,
        "Identify from the rows of the last SECONDS alone (a window of ten triangles).",
        Number("SECONDS", 0.0, open_low=True, unit="s"),
        example=60.0,
    )
    bounds: str | None = same_option(
        Fit,
        "bounds",
        "Bounds of parameters by their names, CSV (name, lower, upper) or TOML; values outside are moved to them.",
    )
    weighted: bool = same_option(Fit, "weighted", "Count joints by their own noise.")
    checkpoint: str | None = option(
        None,
        "File that holds all that is known, written whole every few seconds and at the end.",
        File("FILE"),
        example="watch.npz",
    )
    checkpoint_every: float = option(
        5.0, "Time between two checkpoints, s of the wall clock.", Number("SECONDS", 0.0, open_low=True, unit="s")
    )
    resume: bool = option(False, "Go on from the checkpoint.", Switch())
    payload: bool = option(
        False, "Watch the ten parameters of a load; needs --against RUN without it.", Switch(), example=True
    )
    frame: str | None = same_option(Sensor, "frame", "With --payload: frame of the load; default: the last link.")


@dataclass(frozen=True)
class Drift:
    """When a change is an alarm."""

    against: str | None = option(
        None,
        "Run whose values are the reference; its model, friction and band are used. Default: the start of the stream.",
        File("RUN"),
        example="run",
    )
    learn: float = option(
        60.0,
        "Rows that give the reference where there is no run, s; 24 blocks after it the alarm begins to watch.",
        Number("SECONDS", 0.0, open_low=True, unit="s"),
    )
    block: float = option(5.0, "Length of the blocks that are judged, s.", Number("SECONDS", 0.0, open_low=True, unit="s"))
    false_alarms: float = option(
        0.01, "False alarms in an hour that are accepted, all groups together.", Number("RATE", 0.0, open_low=True)
    )


@dataclass(frozen=True)
class WatchSettings(Drift, Watching, Stream):
    """Options of a watch; the defaults are those of the command line.

    Examples:
        >>> from dynid.run.watch_options import WatchSettings
        >>> WatchSettings(forget=30.0).every
        1.0
    """

    def __post_init__(self) -> None:
        check_options(self)
        if self.forget is not None and self.last is not None:
            raise InputError("--forget and --last were both given, expected one of the two")
