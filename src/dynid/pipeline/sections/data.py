"""Sections about the logs: what was found wrong with them, the motion they hold, and how rows were made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.files import plain
from dynid.finding import DataCheck, Finding
from dynid.model.joint import Joint
from dynid.model.robot import Robot
from dynid.pipeline.filter_selection import JUDGED_HZ
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.sections.context import MOST_LOGS, Shown, name_at
from dynid.pipeline.sections.model import singular_value_figure, trial_figure
from dynid.pipeline.sections.torque import clock
from dynid.pipeline.verdict import percent
from dynid.report.figure import Figure
from dynid.report.page import Folded, Part, Section, Table, Tabs
from dynid.report.panel import Axis, Curve, Mark, Panel, Role, envelope_rows
from dynid.signals.samples import Samples

_MOST_STEPS = 1500  # drawn of one log
_BINS = 61  # odd, so that an even clock falls into the middle one


def step_figure(clocks: Sequence[tuple[str, Array]]) -> Figure | None:
    """Sampling steps of every log: how often each length occurs, and when."""
    panels = []
    for name, time in clocks:
        steps = 1e3 * np.diff(time)
        if len(steps) < 2:
            continue
        centre, count, width = step_histogram(steps)
        even = float(np.ptp(steps)) < 1e-3 * float(steps.max())
        rows = envelope_rows(steps[:, None], _MOST_STEPS)
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


_COVERAGE_POINTS = 1200


def motion_figure(robot: Robot, samples: Samples, quantity: Literal["position", "velocity"], most: int) -> Figure:
    """Position or velocity of every driven joint over time, with its limits where they lie near."""
    time, title = clock(samples)
    signals = _driven(robot, samples, quantity)
    panels = []
    for j, joint in enumerate(robot.driven_joints):
        values = signals[:, j]
        rows = envelope_rows(values[:, None], most)
        panels.append(
            Panel(
                joint.name,
                Axis(title),
                Axis(_unit(joint, quantity)),
                (Curve(quantity, time[rows], values[rows], "data"),),
                tuple(Mark("y", limit, "limit") for limit in near_limits(joint, quantity, values)),
            )
        )
    far = "" if any(panel.marks for panel in panels) else " No limit of the description lies near."
    caption = f"Dashed: limits of the description, where they lie within reach of the motion.{far}"
    return Figure(f"excitation_{quantity}", f"{quantity.capitalize()} of every joint", caption, tuple(panels), "strips", 80)


def coverage_figure(robot: Robot, logs: Sequence[Samples]) -> Figure:
    """Velocity over position: which states the motion visited, inside the limits."""
    panels = []
    q = np.vstack([_driven(robot, samples, "position") for samples in logs])
    v = np.vstack([_driven(robot, samples, "velocity") for samples in logs])
    rows = np.unique(np.linspace(0, len(q) - 1, min(len(q), _COVERAGE_POINTS)).astype(int))
    for j, joint in enumerate(robot.driven_joints):
        marks = [Mark("x", limit, "limit") for limit in near_limits(joint, "position", q[:, j])]
        marks += [Mark("y", limit, "limit") for limit in near_limits(joint, "velocity", v[:, j])]
        panels.append(
            Panel(
                joint.name,
                Axis(f"position, {_unit(joint, 'position')}"),
                Axis(_unit(joint, "velocity")),
                (Curve("visited", q[rows, j], v[rows, j], "data", "points", width=2.4),),
                tuple(marks),
            )
        )
    caption = "A motion that fills its box separates effects of position from effects of speed."
    return Figure("excitation_coverage", "Velocity over position", caption, tuple(panels), "grid", 170)


def near_limits(joint: Joint, quantity: Literal["position", "velocity"], values: Array) -> list[float]:
    """Limits not further away than the motion is wide."""
    limits = (joint.q_min, joint.q_max) if quantity == "position" else (-joint.dq_max, joint.dq_max)
    low, high = float(values.min()), float(values.max())
    reach = max(high - low, 1e-6)
    return [limit for limit in limits if np.isfinite(limit) and low - reach <= limit <= high + reach]


def _driven(robot: Robot, samples: Samples, quantity: Literal["position", "velocity"]) -> Array:
    first = robot.n_dof - len(robot.driven)
    return samples.position[:, first + robot.floating :] if quantity == "position" else samples.velocity[:, first:]


def _unit(joint: Joint, quantity: Literal["position", "velocity"]) -> str:
    length = "m" if joint.kind == "prismatic" else "rad"
    return length if quantity == "position" else f"{length}/s"


def data_section(shown: Shown) -> Section | None:
    """What was found wrong with the logs."""
    run = shown.run
    names = [Path(path).name for path, _ in run.logs]
    parts: list[Part] = []
    for place, check in enumerate(run.checks):
        name, items = name_at(names, place), tuple(_finding_item(finding) for finding in check.findings)
        parts.append(items or (Finding("good", f"Nothing is wrong with {name}."),))
        parts.append(Folded(f"Facts about {name}", (_fact_table(check),)))
    clocks = [(name_at(run.windows or names, i), recording.time) for i, recording in enumerate(run.recordings)]
    lag = next((figure for figure in (lag_figure(check.facts) for check in run.checks) if figure is not None), None)
    parts += [figure for figure in (step_figure(clocks[:MOST_LOGS]), lag) if figure is not None]
    if run.notes:
        parts.append(Folded("Notes of the run", (tuple(Finding("note", note) for note in run.notes),)))
    return Section("Data check", _unchecked(run), tuple(parts), "Data") if parts else None


def _unchecked(run: IdentificationResult) -> str:
    """Why no log was checked; empty where logs were."""
    if run.from_coefficients:
        return "The parameters come from given coefficients; no log was checked."
    if run.filter is None:
        return "A table of poses has no clock and no signals to check."
    return "" if run.checks else "The logs of this run were not checked."


def _finding_item(finding: Finding) -> Finding:
    """The finding as sentences, with the joints that it does not name itself."""
    named = not finding.where or any(name in finding.what for name in finding.where)
    what = finding.what if named else f"{finding.what} ({', '.join(finding.where)})"
    remedy = f"{finding.remedy[:1].upper()}{finding.remedy[1:]}." if finding.remedy else ""
    return Finding(finding.level, f"{what[:1].upper()}{what[1:]}.", remedy)


def _fact_table(check: DataCheck) -> Table:
    rows: list[tuple[str, str]] = []
    for name, value in plain(check.facts).items():
        entries = value.items() if isinstance(value, Mapping) else ((None, value),)
        rows.extend((name.replace("_", " ") + ("" if key is None else f", {key}"), _fact(entry)) for key, entry in entries)
    return Table(("fact", "value"), tuple(rows), code=(1,))


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_fact(entry) for entry in value)
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_MOTION_POINTS = 14_000  # drawn in all panels together, so that the page stays small


def excitation_section(shown: Shown) -> Section | None:
    """The motion on which the model was identified."""
    run = shown.run
    if not run.samples:
        return None
    most = max(200, _MOTION_POINTS // (2 * run.robot.n_dof))
    first = run.samples[0]
    motion = (
        ("position", motion_figure(run.robot, first, "position", most)),
        ("velocity", motion_figure(run.robot, first, "velocity", most)),
        ("velocity over position", coverage_figure(run.robot, run.samples)),
    )
    name = next(iter(run.windows), Path(run.logs[0][0]).name if run.logs else "the first log")
    text = f"The motion of {name}, on which the model was identified, and the conditioning of its regressor."
    parts: list[Part] = [Tabs(motion)]
    if run.regression is not None:
        parts.append(singular_value_figure(run.estimate, run.regression.triangle(run.estimate.base)[:, :-1]))
    return Section("Excitation", text, tuple(parts))


def filtering_section(shown: Shown) -> Section | None:
    """How signals were filtered and rows were made."""
    run = shown.run
    if run.filter is None:
        return None
    text = f"Used: {run.filter.describe()}."
    if not run.trials:
        given = run.settings.cutoff_hz != "auto"
        return Section(
            "Filter",
            f"{text} {'The settings say so.' if given else 'The filters that were tried are not stored with this run.'}",
        )
    if run.filter.row_band_hz is not None:
        tried = tuple(
            (
                f"{trial.filter.cutoff_hz:.4g}",
                f"{trial.filter.band_hz:g}",
                trial.filter.velocity,
                percent(trial.error),
                "chosen" if trial.filter == run.filter else "",
            )
            for trial in run.trials
        )
        header = ("signals below, Hz", "rows below, Hz", "velocity", f"held-out error below {JUDGED_HZ:g} Hz", "")
        reason = (
            " Signals are filtered where the spectrum of position meets its noise, or below; rows where held-out torque is "
            "predicted best."
        )
        return Section("Filter", text + reason, (Table(header, tried, numeric=(0, 1, 3)),))
    trials = [
        (
            "logged velocity" if trial.filter.velocity == "logged" else "velocity from position",
            trial.filter.cutoff_hz,
            trial.error,
        )
        for trial in run.trials
    ]
    if len({cutoff for _, cutoff, _ in trials}) > 1:
        return Section("Filter", text, (trial_figure(trials, run.filter.cutoff_hz),))
    rows = tuple((source, f"{cutoff:g}", percent(error)) for source, cutoff, error in trials)
    table = Table(("velocity", "cut-off, Hz", "held-out error against raw torque"), rows, numeric=(1, 2))
    return Section("Filter", text, (table,))
