"""``dynid store`` and ``dynid fleet``: triangles of many robots and days, kept, identified again, compared and followed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dynid.cli.console import Stages, check_max_error, percent, say, show, show_failure, show_json, show_table, show_warning
from dynid.cli.help import TwoFloors
from dynid.cli.schema import AsJson, LogFiles, RobotFile, Verbose, takes_options, takes_quiet
from dynid.cli.screen import Screen, fold
from dynid.errors import InputError, TooShortError
from dynid.option_types import options_of
from dynid.pipeline.option_groups import ESTIMATION, MODEL, READING, ROWS, WORK
from dynid.pipeline.options import Settings

if TYPE_CHECKING:
    from dynid.apps.fleet.add import Added
    from dynid.apps.fleet.identify import StoredRobot
    from dynid.apps.fleet.judge import Fleet


store = typer.Typer(
    help="Keep what logs say about robots, day by day, in small triangles, and identify any subset of them again.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

MOST_ALARMS = 9
"""Alarms that a screen shows, two lines each."""
StoreFolder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="STORE", help="Folder that 'dynid store add' made.", show_default=False)
]
Where: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="TEXT",
        help="Rows to use: comparisons of robot, day or conditions, joined by 'and', such as "
        '"robot=R1 and day>=2026-03-01 and tool=B".',
        show_default=False,
    ),
]
Robots: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--robot", metavar="ID", help="Only this robot; repeat for several.", show_default=False),
]
FromDay: TypeAlias = Annotated[
    str | None, typer.Option("--from-day", metavar="DAY", help="First day, such as 2026-03-01.", show_default=False)
]
ToDay: TypeAlias = Annotated[str | None, typer.Option("--to-day", metavar="DAY", help="Last day.", show_default=False)]


RobotId: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--robot-id",
        metavar="ID",
        help="Which robot of this model; default: the name in the description.",
        show_default=False,
    ),
]
Day: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--day",
        metavar="DAY",
        help="Day of the logs, such as 2026-03-01; default: the day at which their files were last changed (UTC).",
        show_default=False,
    ),
]
Conditions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--condition",
        metavar="NAME=VALUE",
        help="What else may matter, such as tool=B; repeat for several.",
        show_default=False,
    ),
]
NamePattern: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="TEXT",
        help="Robot and day from the names of the logs, such as '{robot}_{day}.parquet'; other names in braces are conditions.",
        show_default=False,
    ),
]


@store.command(cls=TwoFloors)
@takes_quiet
@takes_options(
    options_of(Settings, MODEL, ROWS, READING, WORK), without=("from_s", "to_s", "fix_bodies")
)  # --to is the store
def add(
    robot: RobotFile,
    logs: LogFiles,
    to: Annotated[
        Path, typer.Option("--to", metavar="STORE", help="Folder of the store; made if missing.", show_default=False)
    ],
    robot_id: RobotId = None,
    day: Day = None,
    condition: Conditions = None,
    pattern: NamePattern = None,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Add logs to a store: those of one robot and day, or with --pattern of many.

    The first logs of a store decide filter, rows and friction; later ones are made into triangles the same way. A log that
    is in the store already is skipped.

    Example: [bold]dynid store add arm.urdf monday.parquet --to fleet --robot-id R17 --day 2026-03-02[/bold]

    [bold]dynid store add arm.urdf logs/ --to fleet --pattern '{robot}_{day}.parquet'[/bold]
    """
    from dynid.apps.fleet.add import add_to_store, keys_from_names
    from dynid.io.logs.paths import log_paths

    conditions = _conditions(condition or [])
    groups: list[tuple[str | None, str | None, dict[str, str], list[Any]]] = [(robot_id, day, conditions, list(logs))]
    if pattern is not None:
        if robot_id is not None or day is not None:
            raise InputError("--pattern takes robot and day from the names of the logs: leave --robot-id and --day out")
        named = keys_from_names(log_paths(logs), pattern)
        groups = [(own, when, conditions | dict(more), paths) for (own, when, more), paths in named.items()]
    found: list[Added] = []
    short: list[TooShortError] = []
    with Stages(quiet=json) as stages:
        for own, when, conditions_of_log, paths in groups:
            try:
                added = add_to_store(
                    robot, paths, to, robot_id=own, day=when, condition=conditions_of_log, tell=stages.tell, **(given or {})
                )
            except TooShortError as error:  # one short log must not end an addition of many
                short.append(error)
            else:
                found.append(added)
    if not found:
        raise short[0]
    if json:
        records = [one.summary() for one in found]
        left_out = {"additions": records, "too_short": [str(one) for one in short]} if pattern is not None else {}
        show_json(records[0] | left_out)
        return
    if len(found) > FEW_ADDED:
        _show_many(found, to)
    else:
        for one in found:
            _show_added(one)
    for one_short in short[:FEW_ADDED]:
        show_warning(f"left out: {one_short}")
    if len(short) > FEW_ADDED:
        show_warning(f"left out: {len(short) - FEW_ADDED} more logs that are too short (--json)")


FEW_ADDED = 3
"""Additions up to which each is told by itself."""


def _show_many(found: Sequence[Added], store: Path) -> None:
    """Additions of many robots and days on one screen."""
    screen = Screen()
    added, skipped = sum(len(one.logs) for one in found), sum(len(one.skipped) for one in found)
    robots = sorted({one.key.robot for one in found})
    there = f", {skipped} skipped that were there already" if skipped else ""
    made = " (made)" if any(one.made for one in found) else ""
    screen.line(f"{added} logs of {len(robots)} robots added to {store}{made}{there}", "title", most=4)
    rows = []
    for robot in robots:
        days = sorted(one.key.day for one in found if one.key.robot == robot)
        logs = sum(len(one.logs) for one in found if one.key.robot == robot)
        rows.append((robot, str(logs), str(len(set(days))), days[0].isoformat(), days[-1].isoformat()))
    screen.table(("robot", "logs", "days", "first", "last"), rows)
    screen.findings(("warning", text, "") for one in found for text in one.warnings)
    for note in dict.fromkeys(note for one in found for note in one.notes):
        screen.remark(note)
    screen.show("--json")


def _show_added(found: Added) -> None:
    for sentence in found.skipped:
        show(f"skipped: {sentence}")
    for note in found.notes:
        say(f"note: {note}")
    if found.made:
        show(f"made: {found.store}")
    if found.file is not None:
        show(f"added: {', '.join(Path(log).name for log in found.logs)} as {found.key.describe()}")
    for warning in found.warnings:
        show_warning(warning)


@store.command(cls=TwoFloors)
@takes_quiet
@takes_options(options_of(Settings, ESTIMATION, WORK), without=("split", "coefficients", "drop_above"))
def identify(
    store: StoreFolder,
    where: Where = None,
    robot: Robots = None,
    from_day: FromDay = None,
    to_day: ToDay = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Folder to write the run into, for several robots a folder inside it for each.",
            show_default=False,
        ),
    ] = None,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Identify robots from the rows of a store, without the logs.

    Intervals take the colour of the noise from what was stored with the rows. The held-out error is that of each row of the
    store by the estimate from the others.

    Example: [bold]dynid store identify fleet --where "robot=R17 and day>=2026-03-01" -o run[/bold]
    """
    from dynid.apps.fleet.identify import identify_store

    with Stages(quiet=json) as stages:
        found = identify_store(
            store,
            where=where,
            robots=robot or (),
            from_day=from_day,
            to_day=to_day,
            settings=Settings(**(given or {})),
            tell=stages.tell,
        )
        files = [] if output is None else [str(path) for path in found.save(output)]
    if json:
        show_json(found.summary() | {"files": files})
    else:
        _show_robots(found.robots)
        for path in files:
            show(f"written: {path}")
    failed = [one.id for one in found.robots if not one.run.estimate.outcome.usable]
    if failed:
        show_failure(f"no answer for {', '.join(failed)}")
        raise typer.Exit(1)


@store.command(cls=TwoFloors)
@takes_quiet
def remove(
    store: StoreFolder,
    where: Annotated[
        str, typer.Option("--where", metavar="TEXT", help='Rows to remove, such as "robot=R1 and day=2026-03-01".')
    ],
    json: AsJson = False,
) -> None:
    """Remove rows from a store, such as those of a log that was misread; the log can be added again.

    Example: [bold]dynid store remove fleet --where "robot=R17 and day=2026-03-02"[/bold]
    """
    from dynid.apps.fleet.row_query import RowQuery
    from dynid.apps.fleet.store import open_store

    opened, query = open_store(store), RowQuery.of(where)
    named = [name for name, _ in query.by_robot(opened, light=True)]
    removed = opened.remove(named, lambda key: not query.keeps(key))
    if json:
        show_json(
            {
                "removed": [
                    {"robot": key.robot, "day": key.day.isoformat(), "condition": dict(key.condition)} for key in removed
                ]
            }
        )
        return
    for key in removed:
        show(f"removed: {key.describe()}")


@store.command(name="list", cls=TwoFloors)
@takes_quiet
def list_(
    store: StoreFolder,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """Show what a store holds.

    Example: [bold]dynid store list fleet[/bold]
    """
    from dynid.apps.fleet.row_query import RowQuery, list_contents
    from dynid.apps.fleet.store import open_store

    found = list_contents(open_store(store), RowQuery.of(where))
    if json:
        show_json(found)
        return
    rows = [
        (
            one["id"],
            str(one["rows"]),
            str(one["days"]),
            one["first_day"],
            one["last_day"],
            ", ".join(one["conditions"]) or "-",
            f"{one['seconds']:.0f}",
            percent(one["held_out_error"]),
        )
        for one in found["robots"]
    ]
    header = ("robot", "rows", "days", "first", "last", "conditions", "seconds", "held out, median")
    show_table(header, rows, text=(0, 3, 4, 5))
    for line in fold(
        f"{found['robot']}: {', '.join(found['effects']) or 'no effects'}; {found['rows']} rows; {found['filter']}"
    ):
        show(line)


def _show_robots(robots: Sequence[StoredRobot]) -> None:
    """A line for each robot, and its alarms; of a single one its values and notes as well."""
    for one in robots if len(robots) == 1 else ():
        _show_base(one.run.estimate)
        for note in one.run.notes:
            say(f"note: {note}")
    words = {None: "too few days", True: "yes", False: "no"}
    rows = [
        (
            one.id,
            str(len(one.days)),
            percent(one.run.estimate.relative_error),
            percent(one.held_out_error),
            "yes" if one.run.estimate.feasible else "no",
            words[one.alarm],
        )
        for one in robots
    ]
    show_table(("robot", "rows", "error", "held out", "consistent", "alarm"), rows, text=(0, 4, 5))
    for one in robots:
        for change in one.changes or ():
            show(f"alarm: {change.sentence()}")


def _show_base(estimate: Any) -> None:
    interval = estimate.interval()
    rows = [
        (text, f"{value:.5g}", "-" if origin == "prior" else f"{low:.5g} to {high:.5g}", origin)
        for text, value, (low, high), origin in zip(
            estimate.base.expressions(digits=4), estimate.base_values, interval, estimate.origin, strict=True
        )
    ]
    show_table(("base parameter", "value", "95 % interval", "from"), rows, text=(0, 3))


def _conditions(items: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items:
        name, sign, value = (part.strip() for part in item.partition("="))
        if not (name and sign and value):
            raise InputError(f"--condition is '{item}', expected name=value, such as tool=B")
        if name in ("robot", "day"):
            raise InputError(
                f"--condition is '{item}', but '{name}' is given by --{'robot-id' if name == 'robot' else 'day'}"
            )
        if name in found:
            raise InputError(f"--condition {name} was given twice, expected once")
        found[name] = value
    return found


MaxShare: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-error",
        metavar="SHARE",
        help="Exit with 1 if some alarm makes up more than this share of a joint's torque; 0: at any alarm.",
        show_default=False,
    ),
]
MaxChange: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-change",
        metavar="SHARE",
        help="Exit with 1 if some value changed by more than this share of itself, in one change or since the robot's first days, such "
        "as 0.2; 0: at any change. Of an offset or a load: of the joint's torque.",
        show_default=False,
    ),
]
FalseAlarms: TypeAlias = Annotated[
    float,
    typer.Option(
        "--false-alarms", metavar="P", help="Probability of any alarm in a fleet in which nothing differs or changes."
    ),
]


@takes_options(options_of(Settings, WORK))
def fleet(
    store: StoreFolder,
    max_error: MaxShare = None,
    max_change: MaxChange = None,
    false_alarms: FalseAlarms = 0.01,
    where: Where = None,
    robot: Robots = None,
    from_day: FromDay = None,
    to_day: ToDay = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="HTML", help="The page to write.")] = Path("fleet.html"),
    verbose: Verbose = False,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Compare the robots of a store and follow them from day to day: how much they differ, which are outliers, what changed.

    Friction and offset of every joint and a load on the last link are found for each day, while the other parameters of a
    robot are the same on all its days. With a store of several tools or temperatures, --where keeps to one of them.

    Example: [bold]dynid fleet store --max-change 0.2 -o fleet.html[/bold]
    """
    from dynid.apps.fleet.judge import judge_fleet
    from dynid.apps.fleet.section import report_fleet

    check_max_error(max_error, "a share of torque such as 0.05, or 0")
    check_max_error(max_change, "a share of the value such as 0.2, or 0", "--max-change")
    with Stages(quiet=json) as stages:
        found = judge_fleet(
            store,
            where=where,
            robots=robot or (),
            from_day=from_day,
            to_day=to_day,
            false_alarms=false_alarms,
            tell=stages.tell,
            **(given or {}),
        )
        page = report_fleet(found, output)
    if json:
        show_json(found.summary() | {"at_most": max_error, "max_change": max_change, "files": [str(page)]})
    else:
        _show_alarms(found, page, verbose)
    if max_change is not None and len(found.short) == len(found.robots):
        raise InputError(f"--max-change {max_change} cannot be judged: no robot has {found.least_days} days")
    if max_change is not None and found.changes and found.largest_change > max_change:
        show_failure(f"a value changed by {percent(found.largest_change)}, more than the {percent(max_change)} allowed")
        raise typer.Exit(1)
    if max_error is not None and found.exceeds(max_error):
        show_failure(
            f"an alarm makes up {percent(found.largest_share)} of a joint's torque, more than the {percent(max_error)} allowed"
        )
        raise typer.Exit(1)


def _changed(found: Fleet, changed: int) -> tuple[str, str]:
    """How many robots changed, of those that have days enough to tell, and the level of that."""
    judged = len(found.robots) - len(found.short)
    if not judged:
        return f"not judged: no robot has {found.least_days} days, add more with dynid store add", "warning"
    left = f", {len(found.short)} with fewer than {found.least_days} days not judged" if found.short else ""
    if changed:
        return f"{changed} of {judged} robots changed{left}", "error"
    return f"{judged} robots: no change{left}", "good"


def _show_alarms(found: Fleet, page: Path, verbose: bool) -> None:
    """What changed, the largest share of torque first, which robots differ, and where the page is."""
    changed = {one.robot for one in found.changes}
    named = {one.robot for one in found.alarms}
    screen = Screen(whole=verbose)
    beside = f", {len(named - changed)} more differ from the others" if named - changed else ""
    text, level = _changed(found, len(changed))
    screen.line(f"{text} ({found.rows} robot days){beside}", level)
    most = len(found.alarms) if verbose else MOST_ALARMS
    for alarm in found.alarms[:most]:
        screen.line(f"{'alarm' if alarm in found.changes else 'outlier'}: {alarm.sentence()}", "error", most=3)
    if len(found.alarms) > most:
        screen.line(f"{len(found.alarms) - most} more alarms: --verbose")
    for note in found.notes:
        screen.remark(note)
    screen.last(f"false alarms: in at most {percent(found.rate, 1)} of fleets in which nothing differs or changes")
    screen.last(f"written: {page}")
    screen.show()
