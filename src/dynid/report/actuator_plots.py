"""Actuators drawn: rollouts, their error over the horizon, the response of every joint, and what the data determine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.estimation.actuators.rollout import Rollout
from dynid.report.envelope import envelope_rows
from dynid.report.figure import Figure
from dynid.report.panel import Axis, Curve, Panel, Role

MOST_POINTS = 1500


def rollout_figure(names: Sequence[str], ours: Rollout, described: Rollout, name: str, title: str) -> Figure:
    """Command, measured and rolled-out position of every joint."""
    panels = []
    for j, joint in enumerate(names):
        signals = np.column_stack([ours.command[:, j], ours.measured[:, j], ours.simulated[:, j], described.simulated[:, j]])
        rows = envelope_rows(signals, MOST_POINTS)
        t = ours.time[rows]
        panels.append(
            Panel(
                joint,
                Axis("s"),
                Axis("rad"),
                (
                    Curve("command", t, signals[rows, 0], "prior", dashed=True),
                    Curve("description", t, signals[rows, 3], "residual"),
                    Curve("measured", t, signals[rows, 1], "measured"),
                    Curve("identified", t, signals[rows, 2], "predicted"),
                ),
            )
        )
    caption = "The commands of the log drive the model alone from the first measured state; nothing measured corrects it on the way."
    return Figure(name, title, caption, tuple(panels), "strips", 150)


def horizon_figure(ours: Sequence[tuple[float, float]], described: Sequence[tuple[float, float]]) -> Figure:
    """Position error at the end of rollouts of growing length."""
    roles: tuple[tuple[str, Sequence[tuple[float, float]], Role], ...] = (
        ("identified", ours, "predicted"),
        ("description", described, "residual"),
    )
    curves = tuple(
        Curve(word, np.array([t for t, _ in points]), 1e3 * np.array([e for _, e in points]), role, width=2.0)
        for word, points, role in roles
        if points
    )
    panel = Panel("", Axis("length of the rollout, s", log=True), Axis("position error, mrad", low=0.0), curves)
    caption = "Root mean square over joints and starts of the error at the end of a rollout from a measured state."
    return Figure("actuator_horizon", "Error over the horizon", caption, (panel,), "grid", 260, columns=1)


def response_figure(names: Sequence[str], ours: Rollout, described: Rollout) -> Figure:
    """Gain from command to position over frequency: measured, identified, described."""
    panels = []
    for j, joint in enumerate(names):
        curves = []
        roles: tuple[tuple[str, Array, Role], ...] = (
            ("description", described.simulated, "residual"),
            ("measured", ours.measured, "measured"),
            ("identified", ours.simulated, "predicted"),
        )
        for word, signal, role in roles:
            frequency, gain = _gain(ours.time, ours.command[:, j], signal[:, j])
            if len(frequency):
                curves.append(Curve(word, frequency, gain, role))
        if curves:
            panels.append(Panel(joint, Axis("Hz", log=True), Axis("position / command", low=0.0), tuple(curves)))
    caption = (
        "Amplitude of position over that of its command where the command has power; friction makes it depend on their size."
    )
    return Figure("actuator_response", "Response of every joint", caption, tuple(panels))


def _gain(time: Array, command: Array, position: Array) -> tuple[Array, Array]:
    """Amplitude response by averaged cross spectra, where the command has power."""
    from scipy import signal

    period = float(np.median(np.diff(time)))
    length = min(len(time), max(64, round(4.0 / period)))
    if np.ptp(command) < 1e-3:
        return np.empty(0), np.empty(0)
    frequency, cross = signal.csd(command, position, 1.0 / period, nperseg=length)
    _, power = signal.welch(command, 1.0 / period, nperseg=length)
    kept = (frequency > 0.0) & (power > 1e-4 * power.max())
    return frequency[kept], np.abs(cross[kept]) / power[kept]


def separability_figure(names: Sequence[str], deviation: Array, level: float) -> Figure:
    """How well every unknown is determined, in units of its own size."""
    order = np.argsort(deviation)[::-1]
    curve = Curve(
        "deviation",
        np.maximum(deviation[order], 1e-4),
        np.arange(len(order), dtype=float),
        "data",
        "rows",
        texts=tuple(f"{names[k]}: {deviation[k]:.2g}" for k in order),
    )
    panel = Panel(
        "",
        Axis("deviation in units of the value's own size", log=True, low=1e-4, high=1.5),
        Axis(categories=tuple(names[k] for k in order)),
        (curve,),
    )
    caption = f"Small is well determined. Above {level:g} a value is not determined: only a combination of it with others, or nothing."
    return Figure(
        "actuator_separability", "What the data determine", caption, (panel,), "grid", max(240, 14 * len(order)), columns=1
    )
