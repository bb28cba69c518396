"""The page of a fleet: alarms, a heat map of robots and parameters, trends over days, and how much robots differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.apps.fleet.changes import Change
from dynid.apps.fleet.judge import Fleet
from dynid.arrays import freeze
from dynid.files import write_text
from dynid.finding import Finding
from dynid.report.figure import Figure
from dynid.report.page import Head, HeatMap, Section, Table, Tile, page
from dynid.report.panel import Axis, Curve, Mark, Panel

MOST_TRENDS = 24
"""Trends that are drawn."""
MOST_NAMED = 6
"""Robots that the headline names."""
FULL_COLOUR = 6.0
"""Standard deviations at which a cell has its full colour."""


def report_fleet(fleet: Fleet, path: str | Path) -> Path:
    """Write the report of a fleet as one HTML page.

    Args:
        fleet: what :func:`dynid.judge_fleet` found.
        path: HTML file to write.

    Examples:
        >>> import dynid
        >>> from dynid.apps.fleet.section import report_fleet
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> _ = dynid.add_to_store(
        ...     "arm.urdf", "log.csv", "store", robot_id="R1", day="2026-03-01", cutoff_hz=20.0, effects="viscous"
        ... )
        >>> report_fleet(dynid.judge_fleet("store"), "fleet.html").name
        'fleet.html'
    """
    target = Path(path)
    days = sorted({day for one in fleet.followed for day in one.days})
    subtitle = f"{len(fleet.robots)} robots, {fleet.rows} robot days, {days[0].isoformat()} to {days[-1].isoformat()}"
    sections = (_alarms(fleet), _robots(fleet), _trends(fleet), _spread(fleet))
    write_text(target, page(f"Fleet of {fleet.name}", subtitle, _verdict(fleet), sections))
    return target


def _verdict(fleet: Fleet) -> Head:
    changed = {change.robot for change in fleet.changes}
    differing = {outlier.robot for outlier in fleet.outliers}
    tiles = (
        Tile(str(len(changed)), "robots with a change", "", "error" if changed else "good"),
        Tile(str(len(differing)), "robots that differ from the fleet", "", "warning" if differing else "good"),
        Tile(f"{100.0 * fleet.rate:g} %", "false alarms at most", "per look at a fleet without differences or changes"),
    )
    reasons = tuple(Finding("note", note) for note in fleet.notes)
    named = sorted(changed | differing)
    if named:
        told = ", ".join(named[:MOST_NAMED]) + (" .." if len(named) > MOST_NAMED else "")
        words = f"{len(named)} of {len(fleet.robots)} robots have an alarm: {told}"
        return Head("error" if changed else "warning", words, reasons, tiles)
    return Head("good", "No robot has an alarm", reasons, tiles)


def _alarms(fleet: Fleet) -> Section:
    changes = tuple(Finding("error", change.sentence(), code="change") for change in fleet.changes)
    outliers = tuple(Finding("warning", outlier.sentence(), code="outlier") for outlier in fleet.outliers)
    text = (
        "A change is reported when it is too large to be chance, corrected for the number of tests. A slow one is dated by its beginning. "
        "An outlier is a robot that differs from the others by more than they differ among themselves."
    )
    return Section("Alarms", text if changes or outliers else "There are none.", ((*changes, *outliers),))


def _robots(fleet: Fleet) -> Section:
    heat = HeatMap(fleet.robots, fleet.base.names, fleet.spread.score, FULL_COLOUR, "standard deviations from the fleet")
    text = (
        "Base parameters of every robot over all its days against the fleet, in standard deviations of spread and measurement "
        f"together: red above, blue below, full colour from {FULL_COLOUR:g} on. An outlier is reported above the threshold of the "
        "alarms, corrected for the number of cells."
    )
    return Section("Robots and parameters", text, (heat,), "Robots")


def _trends(fleet: Fleet) -> Section:
    chosen = _chosen(fleet)
    if not chosen:
        return Section("Trends", "Every robot has one day only.")
    first = min(day for one in fleet.followed for day in one.days)
    panels = []
    for place, p in chosen:
        one = fleet.followed[place]
        m = one.monitored
        t = freeze([(day - first).days for day in one.days])
        scatter = np.nan_to_num(fleet.day_scatter[p])
        spread = freeze(1.96 * np.sqrt(one.variance[:, p] + scatter**2))
        curve = Curve("value of the day", t, one.values[:, p], "data", "points", width=6.0, spread=spread)
        own = [change for change in fleet.changes if change.robot == one.robot and change.parameter == m.names[p]]
        marks = tuple(
            Mark("x", (change.day - first).days - (0.5 if change.until is None else 0.0), _mark_text(change), "bad")
            for change in own
        )
        title = f"{one.robot}: {m.names[p]}"
        panels.append(Panel(title, Axis(f"days since {first.isoformat()}"), Axis(m.units[p]), (curve,), marks))
    caption = (
        "Values of each day with 95 % intervals of measurement and scatter between days together; a line where a change is named. "
        "Values of a load are relative to the mean of all days."
    )
    text = "Values with an alarm, then those that moved most for their scatter."
    return Section("Trends", text, (Figure("trends", "Trends", caption, tuple(panels)),))


def _mark_text(change: Change) -> str:
    size = f"{np.sign(change.difference) * 100.0 * change.relative:+.0f} %" if change.kind == "friction" else "change"
    return size if change.until is None else f"{size}, slowly"


def _chosen(fleet: Fleet) -> list[tuple[int, int]]:
    """Robots and values to draw: those with a change, then those that moved most."""
    places = {one.robot: place for place, one in enumerate(fleet.followed)}
    named = [(places[change.robot], fleet.followed[0].monitored.names.index(change.parameter)) for change in fleet.changes]
    moved = []
    for place, one in enumerate(fleet.followed):
        if len(one.days) > 1:  # range of the values in units of their scatter
            scatter = np.sqrt(np.mean(one.variance, axis=0) + np.nan_to_num(fleet.day_scatter) ** 2)
            ranges = np.ptp(one.values, axis=0) / scatter
            moved += [(float(ranges[p]), place, int(p)) for p in np.flatnonzero(one.monitored.watched)]
    others = [(place, p) for _, place, p in sorted(moved, reverse=True)]
    return list(dict.fromkeys([*named, *others[:6]]))[:MOST_TRENDS]


def _spread(fleet: Fleet) -> Section:
    m = fleet.followed[0].monitored
    daily = dict(zip(m.names, fleet.day_scatter, strict=True))
    rows = []
    for name, text, mean, spread, count in zip(
        fleet.base.names,
        fleet.base.expressions(digits=4),
        fleet.spread.mean,
        fleet.spread.spread,
        fleet.spread.counted,
        strict=True,
    ):
        share = "-"
        if np.isfinite(spread) and mean != 0.0:  # of values near zero it means nothing
            share = "over 100 %" if spread > abs(mean) else f"{100.0 * spread / abs(mean):.2g} %"
        between = f"{daily[name]:.3g}" if name in daily and np.isfinite(daily[name]) else "-"
        rows.append((text, _number(mean), _number(spread), share, between, str(int(count))))
    header = ("base parameter", "fleet", "spread between robots", "of its value", "scatter between days", "robots")
    text = (
        "Spread and scatter are standard deviations beyond what measurement explains; both by medians, so that a few robots that "
        "differ do not count. A robot with little data of its own is drawn to the fleet by them."
    )
    return Section(
        "How much robots differ", text, (Table(header, tuple(rows), numeric=(1, 2, 3, 4, 5), code=(0,)),), "Spread"
    )


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "-"
