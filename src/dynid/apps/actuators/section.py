"""Actuators drawn: rollouts, their error over the horizon, the response of every joint, and what the data determine.

The page of an actuator identification; it reads the run and computes only what it draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.apps.actuators.comparison import Rollout, error_over_horizon
from dynid.apps.actuators.identify import ActuatorRun
from dynid.apps.actuators.model import SYMBOL_OF
from dynid.apps.actuators.separability import UNDETERMINED
from dynid.arrays import Array
from dynid.files import write_text
from dynid.finding import Finding
from dynid.report.figure import Figure
from dynid.report.page import Folded, Head, Part, Section, Table, Tile, page
from dynid.report.panel import Axis, Curve, Panel, Role, envelope_rows

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


def report_actuators(run: ActuatorRun, path: Path, *, command: str = "", files: Sequence[str] = ()) -> Path:
    """Write the report of an actuator run as one HTML page.

    Args:
        run: the run.
        path: HTML file to write.
        command: the command that made it.
        files: files that were exported.
    """
    sections = [_values(run), _models(run), *_rollouts(run), _separability(run), _repeat(run, command, files)]
    title = f"Actuators of {run.robot.name}"
    asked = len(run.problem.unknowns)
    subtitle = (
        f"{run.robot.n_joints} joints, {asked} unknowns, method {run.settings.method}, identified in {run.seconds:.1f} s"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_text(path, page(title, subtitle, _verdict(run), sections))


def _verdict(run: ActuatorRun) -> Head:
    found, verdict = run.as_json(), run.verdict
    ours, theirs = (one.judged for one in run.compared[:2])
    reasons = [
        Finding(
            "warning", f"{', '.join(g.names)} {'cannot be told apart' if not g.alone else 'is not determined'}", g.experiment
        )
        for g in run.separability.groups
    ]
    reasons += [*verdict.reasons, *(Finding("note", note) for note in run.notes)]
    word = "unseen part" if run.unseen else "part identified on"
    tiles = (
        Tile(
            f"{1e3 * ours:.2f} mrad",
            "rollout error",
            f"description {1e3 * theirs:.2f}",
            "good" if ours < theirs else "warning",
        ),
        Tile(f"{ours / theirs:.2f}", "of the description's error", word),
        Tile(found["best"], "best model", word),
        Tile(f"{1e3 * found['delay_s']['value']:.1f} ms", "delay", f"sigma {1e3 * found['delay_s']['sigma']:.2g} ms"),
        Tile(str(len(run.separability.inseparable)), "inseparable groups"),
    )
    return Head("good" if verdict.grade == "good" else "warning", verdict.sentence, tuple(reasons), tiles)


def _models(run: ActuatorRun) -> Section:
    """Every joint by every model, on unseen time where there is some."""
    last = 1 if run.unseen else 0
    rows = tuple(
        (
            one.name,
            f"{1e3 * one.judged:.2f}",
            *(f"{1e3 * e:.2f}" for e in np.sqrt(np.mean([part.rms**2 for part in one.rollouts[last]], axis=0))),
        )
        for one in run.compared
    )
    header = ("model", "all joints, mrad RMS", *run.robot.joint_names)
    text = (
        "The same commands followed by the identified mechanism, by the description, and by models that know nothing of bodies: the "
        "command itself, and a delayed lag of every joint. Where one of these is as good, the mechanism adds nothing."
    )
    return Section("Against plain models", text, (Table(header, rows, numeric=tuple(range(1, len(header)))),), "Models")


def _values(run: ActuatorRun) -> Section:
    def cell(found: tuple[float, float] | None) -> str:
        return "–" if found is None else f"{found[0]:.4g} ± {1.96 * found[1]:.1g}" if found[1] else f"{found[0]:.4g}"

    gains = ("kp N m/rad", "kd N m s/rad") if run.settings.motor == "torque" else ("kt / R N m/V", "kt² / R N m s/rad")
    units = {"saturation": " 1/(N m)", "fading": " rad/s"}
    further = (f"{word}{units.get(word, '')}" for word in run.words if word not in SYMBOL_OF)
    header = ("joint", "armature kg m²", "viscous N m s/rad", "Coulomb N m", "offset N m", *gains, *further)
    rows = tuple(
        (name, *(cell(run.value(j, symbol)) for symbol in run.words.values()))
        for j, name in enumerate(run.robot.joint_names)
    )
    linear = run.linear.estimate
    other = (run.as_json()["instrumental"] or {"values": {}})["values"]
    beside = tuple(
        (n, f"{v:.4g}", f"{1.96 * s:.1g}", f"{other[n]['value']:.4g}" if n in other else "–")
        for n, v, s in zip(linear.base.names, linear.base_values, linear.sigma, strict=True)
    )
    text = (
        "95 % intervals. A dash: not asked for, not moved, or inseparable from another value. Below, what rows give by least squares "
        "(biased by noise in positions) and with instrumental variables."
    )
    parts: tuple[Part, ...] = (
        Table(header, rows, numeric=tuple(range(1, len(header)))),
        Folded("Other estimates", (Table(("value of", "linear", "± 95 %", "instrumental"), beside, numeric=(1, 2, 3)),)),
    )
    return Section("Values", text, parts)


def _rollouts(run: ActuatorRun) -> list[Section]:
    sections = []
    names = run.robot.joint_names
    for word, ours, theirs in zip(("identification", "validation"), run.rollouts, run.described, strict=True):
        if not ours:
            continue
        errors = tuple(
            (name, f"{1e3 * a:.2f}", f"{1e3 * b:.2f}") for name, a, b in zip(names, ours[0].rms, theirs[0].rms, strict=True)
        )
        parts: tuple[Part, ...] = (
            Table(("joint", "identified, mrad RMS", "description, mrad RMS"), errors, numeric=(1, 2)),
            rollout_figure(names, ours[0], theirs[0], f"actuator_rollout_{word}", f"Rollout, {word}"),
        )
        sections.append(
            Section(
                f"Rollout, {word}", "Before and after: the same commands, the description and the identified joints.", parts
            )
        )
    last = 1 if run.rollouts[1] else 0
    logs = run.unseen if run.unseen else run.problem.logs
    described = type(run.model).described(run.problem.robot)
    horizons = [error_over_horizon(model, logs[:1], tick_s=run.problem.tick_s) for model in (run.model, described)]
    figures: tuple[Part, ...] = (
        horizon_figure(*horizons),
        response_figure(names, run.rollouts[last][0], run.described[last][0]),
    )
    sections.append(Section("Error over the horizon and response", "", figures, "Response"))
    return sections


def _separability(run: ActuatorRun) -> Section:
    groups = tuple((", ".join(g.names), g.determined or "–", g.experiment) for g in run.separability.groups)
    parts: list[Part] = []
    if groups:
        parts.append(Table(("not determined alone", "known", "experiment that would separate it"), groups))
    parts.append(separability_figure(run.problem.names, np.asarray(run.separability.deviation), UNDETERMINED))
    text = (
        "From the Fisher information of the logs, each value in a unit of its own size."
        if groups
        else "Every value is determined by the logs."
    )
    return Section("What cannot be told apart", text, tuple(parts), "Separability")


def _repeat(run: ActuatorRun, command: str, files: Sequence[str]) -> Section:
    parts: list[Part] = [command] if command else []
    if files:
        parts.append(Table(("file",), tuple((name,) for name in files), code=(0,)))
    logs = tuple((log.place,) for log in (*run.problem.logs, *run.unseen))
    parts.append(Table(("log",), logs, code=(0,)))
    if run.notes:
        parts.append(tuple(Finding("note", note) for note in run.notes))
    return Section("How to repeat this", "", tuple(parts), "Repeat")
