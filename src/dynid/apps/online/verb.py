"""``dynid watch``: identification while the robot moves."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from dynid.apps.online.options import OnlineSettings
from dynid.cli.console import say, show, show_table
from dynid.cli.schema import AsJson, RobotFile, own_options, takes_options
from dynid.errors import InputError
from dynid.option_types import options_of
from dynid.pipeline.option_groups import MODEL, READING, ROWS
from dynid.pipeline.options import Settings

NOT_HERE = (
    "friction",
    "fix_bodies",
    "from_s",
    "to_s",
    "episode",
    "filter_on",
    "torque_cutoff_hz",
    "torque_delay",
    "filter_order",
    "intervals",
    "max_rows",
)
_WORDS = {1: "identified", 0: "not excited", -1: "dependent"}


@takes_options(options_of(OnlineSettings), options_of(Settings, MODEL, READING, ROWS), without=NOT_HERE)
def watch(
    robot: RobotFile,
    given: dict[str, Any],
    page: Annotated[
        str | None,
        typer.Option(
            "--page",
            metavar="PORT",
            help="Serve a page with live plots on this port of this machine (0: any free one).",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record", metavar="FILE.mcap", help="Write the reports as MCAP, for Foxglove or rerun.", show_default=False
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Identify while rows come in: values, standard deviations, flags, residual and a drift alarm at a chosen rate.

    With --json one JSON object a line. Ctrl-C ends: what waits is used, a last report and checkpoint are written.

    Example: [bold]ros2 topic echo --csv /joint_states | dynid watch arm.urdf --against run --page 8000[/bold]
    """
    from dynid.apps.online.session import Session, make_watcher, warm_up
    from dynid.apps.online.sources import address_of, source_of

    own, rest = own_options(given, OnlineSettings)
    asked, settings = OnlineSettings(**own), Settings(**rest)
    place = None if page is None else address_of(page, "--page", allow_remote=asked.allow_remote)
    watcher = make_watcher(robot, settings, asked)
    source = source_of(
        asked.source,
        sys.stdin.buffer,
        topic=settings.topic,
        follow=asked.follow,
        once=asked.once,
        allow_remote=asked.allow_remote,
    )
    session = Session(watcher, source, lambda text: say(f"dynid: {text}"))
    warm_up(watcher)
    with _stopping(session.stop), _Readers(watcher.robot.name, place, record, json) as readers:
        if hasattr(source, "port"):
            say(
                f"dynid: waiting for a sender on {source.name}"
                + (f" (port {source.port})" if asked.source.endswith(":0") else "")
            )
        last = None
        for report in session.run():
            readers.tell(report)
            last = report
    if last is None:
        bad = watcher.n_malformed
        raise InputError(f"{source.name}: no row was read; {bad} lines were malformed{_reasons(watcher.malformed)}")
    if not json:
        _show_last(last, watcher.malformed)


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and the end of a service stop the watch instead of breaking it off."""
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Readers:
    """Everyone who gets reports: the terminal, the page, the file."""

    def __init__(self, robot: str, place: tuple[str, int] | None, record: Path | None, json: bool) -> None:
        from dynid.apps.online.mcap import REPORT_SCHEMA, REPORT_TOPIC
        from dynid.apps.online.page import Page
        from dynid.io.logs.read import JsonWriter

        self._recorder = None if record is None else JsonWriter(record, REPORT_TOPIC, REPORT_SCHEMA)
        self._page = None if place is None else Page(*place, robot)
        self._told: list[Callable[[Mapping[str, Any]], object]] = [_print_json if json else _print_line]
        if self._page is not None:
            say(f"dynid: the page is at {self._page.url}")
            self._told.append(self._page.publish)
        if (writer := self._recorder) is not None:
            self._told.append(lambda report: writer.write(report["t"], report))

    def __enter__(self) -> _Readers:
        return self

    def tell(self, report: Mapping[str, Any]) -> None:
        """Hand a report to everyone."""
        for told in self._told:
            told(report)

    def __exit__(self, *_: object) -> None:
        if self._page is not None:
            self._page.close()
        if self._recorder is not None:
            self._recorder.close()


def _print_json(report: Mapping[str, Any]) -> None:
    from json import dumps

    sys.stdout.write(dumps(report, allow_nan=False) + "\n")
    sys.stdout.flush()


def _print_line(report: Mapping[str, Any]) -> None:
    """One calm line: enough to see that all is well, or what is not."""
    known = sum(flag == 1 for flag in report["flags"].values())
    alarm = report["alarm"]
    state = (
        f"CHANGED: {', '.join(group['group'] for group in alarm['groups'])}" if alarm else f"drift alarm {report['drift']}"
    )
    bad = f"  malformed {report['malformed']}" if report["malformed"] else ""
    show(
        f"t {report['t']:12.3f} s  identified {known:3d} of {len(report['flags'])}  torque left {report['residual']:9.4g}  "
        f"{state}{bad}"
    )
    sys.stdout.flush()


def _show_last(report: Mapping[str, Any], malformed: Mapping[str, int]) -> None:
    rows = [
        (
            name,
            f"{value:.5g}",
            "-" if report["sigma"][name] is None else f"{1.96 * report['sigma'][name]:.2g}",
            _WORDS[report["flags"][name]],
        )
        for name, value in report["values"].items()
    ]
    show_table(("parameter", "value", "+- 95 %", "state"), rows, text=(0, 3))
    counts = report["counts"]
    show(
        f"{report['rows']} rows read, {counts['repeated']} repeated and {counts['late']} late left out, {counts['gaps']} gaps, "
        f"{counts['jumps_back']} jumps of the clock back, {report['malformed']} lines malformed{_reasons(malformed)}"
    )


def _reasons(malformed: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{n} {reason}' for reason, n in malformed.items())})" if malformed else ""
