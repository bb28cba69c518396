"""``dynid fleet``: robots of one model compared, and followed from day to day."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.at_most import check_at_most
from dynid.cli.console import Stages, percent, say, show, show_failure, show_json, show_table
from dynid.cli.options import AsJson
from dynid.cli.schema import takes_options
from dynid.cli.verbs.store import FromDay, Robots, StoreFolder, ToDay, Where
from dynid.run.options import Work

if TYPE_CHECKING:
    from dynid.fleet.judge import Fleet


@takes_options(Work)
def fleet(
    store: StoreFolder,
    at_most: Annotated[
        float | None,
        typer.Option(
            "--at-most",
            metavar="SHARE",
            help="Exit with 1 if some alarm makes up more than this share of a joint's torque; 0: at any alarm.",
            show_default=False,
        ),
    ] = None,
    false_alarms: Annotated[
        float,
        typer.Option(
            "--false-alarms", metavar="P", help="Probability of any alarm in a fleet in which nothing differs or changes."
        ),
    ] = 0.01,
    where: Where = None,
    robot: Robots = None,
    from_day: FromDay = None,
    to_day: ToDay = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="HTML", help="The page to write.")] = Path("fleet.html"),
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Compare the robots of a store and follow them from day to day: how much they differ, which are outliers, what changed.

    Friction and offset of every joint and a load on the last link are found for each day, while the other parameters of a
    robot are the same on all its days. With a store of several tools or temperatures, --where keeps to one of them.

    Example: [bold]dynid fleet store --at-most 0.05 -o fleet.html[/bold]
    """
    from dynid.fleet.judge import judge_fleet
    from dynid.report.fleet_report import report_fleet

    check_at_most(at_most, "a share of torque such as 0.05, or 0")
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
        show_json(found.summary() | {"at_most": at_most, "files": [str(page)]})
    else:
        _show_alarms(found)
        show(f"written: {page}")
    if at_most is not None and found.exceeds(at_most):
        show_failure(
            f"an alarm makes up {percent(found.largest_share)} of a joint's torque, more than the {percent(at_most)} allowed"
        )
        raise typer.Exit(1)


def _show_alarms(found: Fleet) -> None:
    """The robots with an alarm, and why."""
    named = {one.robot for one in found.alarms}
    rows = [
        (one.robot, str(len(one.days)), one.days[0].isoformat(), one.days[-1].isoformat(), "yes")
        for one in found.followed
        if one.robot in named
    ]
    for note in found.notes:
        say(f"note: {note}")
    if rows:
        show_table(("robot", "days", "first", "last", "alarm"), rows, text=(0, 2, 3, 4))
    for alarm in found.alarms:
        show(f"{'alarm' if alarm in found.changes else 'outlier'}: {alarm.sentence()}")
    show(
        f"{len(found.robots)} robots, {found.rows} rows: {len(named)} with an alarm; in a fleet without differences or changes "
        f"an alarm is raised with probability {percent(found.rate, 1)} at most"
    )
