"""A picture of the data check: the clock's steps, and how late velocity and torque come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.report.envelope import envelope_rows
from dynid.report.figure import Figure
from dynid.report.panel import Axis, Curve, Mark, Panel, Role

_BINS = 61  # odd, so that an even clock falls into the middle one


def step_figure(clocks: Sequence[tuple[str, Array]], number: int = 0, most: int = 1500) -> Figure | None:
    """Sampling steps of every log: how often each length occurs, and when."""
    panels = []
    for name, time in clocks:
        steps = 1e3 * np.diff(time)
        if len(steps) < 2:
            continue
        centre, count, width = step_histogram(steps)
        even = float(np.ptp(steps)) < 1e-3 * float(steps.max())
        rows = envelope_rows(steps[:, None], most)
        median = float(np.median(steps))
        low, high = (0.9 * median, 1.1 * median) if even else (None, None)
        panels.append(
            Panel(
                f"{name}: how often",
                Axis("step, ms", low=low, high=high),
                Axis("rows", log=True, low=0.7),
                (Curve("steps", centre, count, "data", "bars", bar=width),),
                (Mark("x", median, "median", "chosen"),),
            )
        )
        panels.append(
            Panel(
                f"{name}: when",
                Axis("time since the first row, s"),
                Axis("step, ms", low=low, high=high),
                (Curve("steps", (time[1:] - time[0])[rows], steps[rows], "data", width=1.0),),
                (Mark("y", median, "median", "chosen"),),
            )
        )
    if not panels:
        return None
    caption = "A single bar is an even clock. Long steps are rows that are missing, short ones rows that came late."
    return Figure("sampling_steps", "Steps of the logged clock", caption, tuple(panels), "grid", 170, columns=2)


def step_histogram(steps: Array) -> tuple[Array, Array, float]:
    """Middle and number of rows of even bins, and their width; a clock without spread gets one bar amid an axis."""
    low, high = float(steps.min()), float(steps.max())
    if high - low < 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = 0.9 * middle, 1.1 * middle
    count, edges = np.histogram(steps, bins=_BINS, range=(low, high))
    used = count > 0
    return 0.5 * (edges[:-1] + edges[1:])[used], count[used].astype(float), float(edges[1] - edges[0])


def lag_figure(facts: Mapping[str, Any]) -> Figure | None:
    """Lag of logged velocity behind the derivative of position, and of torque behind position, per joint."""
    joints = tuple(str(name) for name in facts.get("joints", ()))
    kinds: tuple[tuple[str, str, Role], ...] = (
        ("velocity_lag_s", "velocity behind dq/dt", "data"),
        ("torque_lag_s", "torque behind position", "predicted"),
    )
    curves = []
    for key, label, role in kinds:
        values = facts.get(key)
        if values is None:
            continue
        lag = 1e3 * np.array([np.nan if value is None else float(value) for value in values])
        if len(lag) == len(joints) and np.isfinite(lag).any():
            curves.append(Curve(label, lag, np.arange(len(lag), dtype=float), role, "points", width=9.0))
    if not curves:
        return None
    marks = [Mark("x", 0.0, "no lag", "prior")]
    common = facts.get("torque_lag_common_s")
    if common is not None and np.isfinite(common):
        marks.append(Mark("x", 1e3 * float(common), "torque, all joints", "predicted"))
    panel = Panel("", Axis("lag, ms"), Axis(categories=joints), tuple(curves), tuple(marks))
    caption = "Velocity is compared with the derivative of position, torque with what the description predicts from it."
    return Figure("lags", "Signals that come late", caption, (panel,), "grid", 190, columns=1)
