"""Torque: measured against predicted, what friction explains of it, and what nothing explains.

Measured and predicted torque.

Friction over velocity, and the models it was chosen from.

What nothing in the model explains.

Forward validation: the measured torque drives the identified model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.finding import Finding
from dynid.io.robots.simulator_joint import as_held
from dynid.model.effects.effect import Motion
from dynid.model.robot import Robot
from dynid.pipeline.model_files import held_model
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.sections.context import Predicted, Shown
from dynid.pipeline.verdict import percent
from dynid.report.figure import Figure
from dynid.report.page import Folded, Part, Section, Table, Tabs
from dynid.report.panel import Axis, Curve, Mark, Panel, envelope_rows, spread_rows
from dynid.signals.samples import Samples
from dynid.validation.replay import Replay, error_over_horizons, replay

_SCATTER_POINTS = 450
_CURVE_POINTS = 161
_BINS = 15


def torque_units(robot: Robot) -> list[str]:
    """Unit of every torque row."""
    first = ["N", "N", "N", "N m", "N m", "N m"] if robot.floating else []
    return first + ["N" if joint.kind == "prismatic" else "N m" for joint in robot.driven_joints]


def clock(samples: Samples) -> tuple[Array, str]:
    """The log's time, or where that is a date its time since the first sample."""
    if abs(samples.time[0]) < 1e5:
        return samples.time, "time, s"
    return samples.time - samples.time[0], f"time since {samples.time[0]:.3f} s, s"


def torque_figure(robot: Robot, log: Predicted, name: str, most: int) -> Figure:
    """Measured and predicted torque and their difference, one strip per joint on one clock."""
    time, title = clock(log.samples)
    units = torque_units(robot)
    panels = []
    drawn = 0
    for j, joint in enumerate(robot.dof_names):
        measured, residual = log.torque[:, j], log.residual[:, j]
        rows = envelope_rows(np.column_stack([measured, residual]), most)
        drawn = max(drawn, len(rows))
        t = freeze(time[rows])
        panels.append(
            Panel(
                joint,
                Axis(title),
                Axis(units[j]),
                (
                    Curve("measured", t, measured[rows], "measured", width=2.0),
                    Curve("predicted", t, log.prediction[rows, j], "predicted", width=1.2),
                    Curve("difference", t, residual[rows], "residual", width=1.0),
                ),
            )
        )
    fewer = "" if drawn == len(time) else f" Drawn are up to {drawn} of {len(time)} samples, every peak among them."
    caption = (
        f"{log.name}: torque filtered as the run says, the prediction of the identified model, and their difference.{fewer}"
    )
    return Figure(name, f"Measured and predicted torque, {log.name}", caption, tuple(panels), "strips", 96)


def friction_figure(robot: Robot, log: Predicted) -> Figure | None:
    """What is left of the torque without rigid bodies and rotors, over velocity, and the friction curve identified."""
    if not _friction_values(robot).any():
        return None
    units = torque_units(robot)
    first = robot.n_dof - len(robot.driven)
    without, typical = log.residual + log.friction, typical_state(robot, log.samples)
    panels = []
    for place, joint in enumerate(robot.driven_joints):
        dof = first + place
        v = log.samples.velocity[:, dof]
        rows = spread_rows(v, _SCATTER_POINTS)
        speeds, torque = friction_curve(robot, place, v, typical)
        panels.append(
            Panel(
                joint.name,
                Axis(_speed_title(joint.kind)),
                Axis(units[dof]),
                (
                    Curve("measured minus rigid bodies", v[rows], without[rows, dof], "measured", "points", width=3.0),
                    Curve("friction identified", speeds, torque, "predicted", width=2.2),
                ),
            )
        )
    caption = (
        "Points: measured torque without what gravity, inertia and rotors take. Line: the friction identified, "
        "with only this joint moving."
    )
    return Figure("friction", "Friction over velocity", caption, tuple(panels), "grid", 170)


def typical_state(robot: Robot, samples: Samples) -> tuple[Array, Array | None]:
    """Median position and load of the driven joints."""
    first = robot.n_dof - len(robot.driven)
    load = None if samples.load is None else np.median(np.abs(samples.load[:, first:]), axis=0)
    return np.median(samples.position[:, first + robot.floating :], axis=0), load


def friction_curve(robot: Robot, place: int, velocity: Array, typical: tuple[Array, Array | None]) -> tuple[Array, Array]:
    """Friction torque of one driven joint over its speed, the others at rest, at a typical position and load."""
    n = len(robot.driven)
    low, high = float(velocity.min()), float(velocity.max())
    reach = max(high - low, 1e-9)
    # dense at reversal, where friction bends
    fine = 0.08 * reach * np.linspace(-1.0, 1.0, _CURVE_POINTS) ** 3
    speeds = np.union1d(np.linspace(low, high, _CURVE_POINTS), fine[(fine > low) & (fine < high)])
    v = np.zeros((len(speeds), n))
    v[:, place] = speeds
    q, load = (None if one is None else np.broadcast_to(one, v.shape) for one in typical)
    assert q is not None
    signals = np.hstack([effect.signals(Motion(q, v, np.zeros_like(v), load)) for effect in robot.effects])
    torque = (signals * _friction_values(robot)) @ robot.effect_incidence.T
    return speeds, torque[:, robot.n_dof - n + place]


def _friction_values(robot: Robot) -> Array:
    """Values of the effect columns, those that are not friction set to zero."""
    start = robot.parameters.n_inertial
    friction = np.array([kind == "friction" for kind in robot.parameters.kinds[start:]], dtype=bool)
    return np.where(friction, robot.parameters.values[start:], 0.0)


def residual_velocity_figure(robot: Robot, log: Predicted) -> Figure:
    """Residual over velocity with its mean in stretches: a shape left in it is friction that the model lacks."""
    units = torque_units(robot)
    first = robot.n_dof - len(robot.driven)
    panels = []
    for place, joint in enumerate(robot.driven_joints):
        dof = first + place
        v, residual = log.samples.velocity[:, dof], log.residual[:, dof]
        rows = spread_rows(v, _SCATTER_POINTS)
        centre, mean, deviation = binned(v, residual, _BINS)
        panels.append(
            Panel(
                joint.name,
                Axis(_speed_title(joint.kind)),
                Axis(units[dof]),
                (
                    Curve("residual", v[rows], residual[rows], "residual", "points", width=3.0),
                    Curve("mean and deviation", centre, mean, "predicted", "points", width=6.0, spread=deviation),
                ),
            )
        )
    caption = "A shape in the means is friction that the model lacks; a cloud around zero is noise."
    return Figure("residual_velocity", "Residual over velocity", caption, tuple(panels), "grid", 170)


def binned(x: Array, y: Array, bins: int) -> tuple[Array, Array, Array]:
    """Centre, mean and standard deviation of ``y`` in stretches of ``x`` that hold equally many samples."""
    order = np.argsort(x, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size]
    centre = np.array([x[part].mean() for part in parts])
    mean = np.array([y[part].mean() for part in parts])
    deviation = np.array([y[part].std() for part in parts])
    return centre, mean, deviation


def spectrum_figure(robot: Robot, log: Predicted, cutoffs: Sequence[tuple[str, float]]) -> Figure | None:
    """Amplitude spectral density of torque and residual per joint."""
    period = uniform_period(log.samples.time)
    if period is None or len(log.samples) < 64:
        return None
    units = torque_units(robot)
    raw = log.samples.raw_torque
    panels = []
    for j, joint in enumerate(robot.dof_names):
        frequency, torque = amplitude_density(log.torque[:, j], period)
        _, residual = amplitude_density(log.residual[:, j], period)
        curves = [
            Curve("torque", frequency, torque, "measured", width=1.2),
            Curve("residual", frequency, residual, "residual", width=1.6),
        ]
        if raw is not None:
            _, unfiltered = amplitude_density(raw[:, j] - log.prediction[:, j], period)
            curves.insert(1, Curve("residual, raw torque", frequency, unfiltered, "raw", width=1.2))
        top = max(float(torque.max()), float(residual.max()), 1e-12)
        panels.append(
            Panel(
                joint,
                Axis("frequency, Hz", log=True),
                Axis(f"{units[j]} / √Hz", log=True, low=1e-5 * top, high=2.0 * top),
                tuple(curves),
                tuple(Mark("x", value, label) for label, value in cutoffs),
            )
        )
    caption = (
        "Where the residual is as large as the torque, the model explains nothing. Above the cut-off the filter has removed "
        "the torque; what remains there are sharp steps of the prediction."
    )
    return Figure("residual_spectrum", "Spectrum of torque and residual", caption, tuple(panels), "grid", 170)


def autocorrelation_figure(robot: Robot, log: Predicted, longest_s: float) -> Figure | None:
    """Autocorrelation of the residual with the 95 % band of white noise."""
    period = uniform_period(log.samples.time)
    n = len(log.samples)
    if period is None or n < 64:
        return None
    reach = max(8, min(n // 4, round(longest_s / period)))
    band = 1.96 / np.sqrt(n)
    rows = np.unique(np.linspace(0, reach, min(reach + 1, 240)).round().astype(int))
    panels = tuple(
        Panel(
            joint,
            Axis("lag, s"),
            Axis("correlation", low=-1.05, high=1.05),
            (Curve("residual", rows * period, autocorrelation(log.residual[:, j], reach)[rows], "residual", width=1.6),),
            (Mark("y", band, "95 % of white noise", "prior"), Mark("y", -band, "95 % of white noise", "prior")),
        )
        for j, joint in enumerate(robot.dof_names)
    )
    caption = (
        "White noise stays inside the band after lag zero. Filtered signals are correlated over about half a period of the "
        "cut-off by the filter alone; correlation beyond that is dynamics that the model lacks."
    )
    return Figure("residual_autocorrelation", "Autocorrelation of the residual", caption, panels, "grid", 150)


def uniform_period(time: Array) -> float | None:
    """Sampling period of an even clock, None where steps differ."""
    steps = np.diff(time)
    if not steps.size:
        return None
    period = float(np.median(steps))
    return period if np.abs(steps - period).max() < 0.01 * period else None


def amplitude_density(signal: Array, period: float) -> tuple[Array, Array]:
    """Welch's amplitude spectral density without the value at zero."""
    n = min(len(signal), max(256, len(signal) // 8))
    frequency, power = welch(signal, period, n)
    keep = np.unique(np.geomspace(1, len(frequency) - 1, 220).round().astype(int))
    return frequency[keep], np.sqrt(np.maximum(power[keep], 1e-300))


def welch(signal: Array, period: float, n: int) -> tuple[Array, Array]:
    """Frequencies and one-sided power density: the mean over segments of ``n`` rows, half of each in the next, behind a Hann
    window and without their means. SciPy's has the same values, and its package takes longer to import than a run."""
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(n) / n)
    starts = np.arange(0, len(signal) - n + 1, n - n // 2)
    segments = np.lib.stride_tricks.sliding_window_view(signal, n)[starts]
    spectra = np.fft.rfft((segments - segments.mean(axis=1, keepdims=True)) * window, axis=1)
    power = (np.abs(spectra) ** 2).mean(axis=0) * period / (window @ window)
    power[1 : None if n % 2 else -1] *= 2.0
    return np.asarray(np.fft.rfftfreq(n, period)), np.asarray(power)


def autocorrelation(signal: Array, reach: int) -> Array:
    """``r_k / r_0`` for lags 0 to ``reach``; zero for a signal that is constant."""
    x = signal - signal.mean()
    size = 1 << int(np.ceil(np.log2(len(x) + reach + 1)))
    spectrum = np.fft.rfft(x, size)
    r = np.fft.irfft(np.abs(spectrum) ** 2, size)[: reach + 1]
    return np.asarray(r / r[0]) if r[0] > 0.0 else np.zeros(reach + 1)


def independent_samples(signal: Array) -> float:
    """``n / (1 + 2 sum r_k)`` over the lags before the correlation first turns negative: what the samples are worth."""
    r = autocorrelation(signal, len(signal) // 4)
    negative = np.flatnonzero(r <= 0.0)
    last = int(negative[0]) if negative.size else len(r)
    return float(len(signal) / (1.0 + 2.0 * r[1:last].sum()))


def _speed_title(kind: str) -> str:
    return "velocity, m/s" if kind == "prismatic" else "velocity, rad/s"


_TORQUE_POINTS = 24_000  # drawn in all panels together, so that the page stays small


def torque_section(shown: Shown) -> Section | None:
    """Measured and predicted torque."""
    run = shown.run
    if not shown.logs:
        without = "Coefficients have" if run.from_coefficients else "A table of poses has"
        missing = (
            f"{without} no torque over time."
            if run.filter is None
            else "The logs are missing or have changed, so torque cannot be shown; the numbers above are those stored with the run."
        )
        return Section("Measured and predicted torque", missing, short="Torque")
    most = max(200, _TORQUE_POINTS // (len(shown.logs) * run.robot.n_dof))
    figures = []
    for place, log in enumerate(shown.logs):
        name = "torque" if place == 0 else f"torque_{place + 1}"
        figures.append((log.name, torque_figure(run.robot, log, name, most)))
    text = "Drag over a strip to zoom, double-click to see all of it again; a click on the legend hides a curve."
    if shown.left_out:
        text += f" {shown.left_out} more logs are not shown."
    return Section("Measured and predicted torque", text, (_error_table(run), Tabs(tuple(figures))), "Torque")


def _error_table(run: IdentificationResult) -> Table:
    own, unseen = run.identification, run.validation
    header = ["joint", "unit"]
    columns: list[list[str]] = [list(run.robot.dof_names), torque_units(run.robot)]
    for label, error in (("unseen", None if unseen is None else unseen.total), ("own data", own)):
        if error is not None:
            header += [f"RMS error, {label}", f"relative, {label}"]
            columns += [[f"{x:.3g}" for x in error.rmse], [percent(float(x)) for x in error.relative_error_per_channel]]
    return Table(tuple(header), tuple(zip(*columns, strict=True)), numeric=tuple(range(2, len(header))))


def friction_section(shown: Shown) -> Section | None:
    """Friction over velocity, and the models it was chosen from."""
    if shown.judged is None:
        return None
    figure = friction_figure(shown.run.model, shown.judged)
    if figure is None:
        return None
    names = ", ".join(effect.name for effect in shown.run.robot.effects)
    parts: list[Part] = [figure]
    inner = tuple((one.joint, one.name, f"{one.value:.4g}", one.unit, text) for one, text in shown.run.inner_numbers)
    if inner:
        header = ("joint", "number inside friction", "value", "unit", "95 % interval")
        parts.append(Folded("Numbers inside the friction of every joint", (Table(header, inner, numeric=(2,), code=(1,)),)))
    choice = shown.run.friction_choice
    if choice is not None and choice.trials:
        rows = tuple(
            (trial.model, percent(trial.error), str(trial.n_columns), "chosen" if trial.model == choice.model else "")
            for trial in choice.trials
        )
        table = Table(("model", "error on held-out blocks", "columns", ""), rows, numeric=(1, 2))
        parts.append(Folded("Friction models tried", (table,)))
    return Section("Friction", f"Effects in the model: {names}. Shown is {shown.judged.name}.", tuple(parts))


def residual_section(shown: Shown) -> Section | None:
    """What nothing in the model explains."""
    log, run = shown.judged, shown.run
    if log is None:
        return None
    cutoffs = [] if run.filter is None else [("band", run.filter.band_hz)]
    if run.filter is not None and run.filter.cutoff_hz != run.filter.band_hz:
        cutoffs.append(("signals", run.filter.cutoff_hz))
    longest_s = 1.0 if run.filter is None else max(0.5, 5.0 / run.filter.torque_cutoff_hz)
    figures = [("over velocity", residual_velocity_figure(run.robot, log))]
    spectrum = spectrum_figure(run.robot, log, cutoffs)
    correlation = autocorrelation_figure(run.robot, log, longest_s)
    figures += [(label, one) for label, one in (("spectrum", spectrum), ("whiteness", correlation)) if one is not None]
    rows = tuple(
        (
            joint,
            f"{log.residual[:, j].std():.3g}",
            f"{log.residual[:, j].mean():.2g}",
            f"{independent_samples(log.residual[:, j]):.0f}",
        )
        for j, joint in enumerate(run.robot.dof_names)
    )
    table = Table(("joint", "deviation", "mean", f"independent of {len(log.samples)} samples"), rows, numeric=(1, 2, 3))
    text = (
        f"Torque that the model does not explain, of {log.name}. Correlated residuals carry less information than "
        "independent ones: the last column is the number of independent samples."
    )
    return Section("Residual", text, (Tabs(tuple(figures)), Folded("Joint by joint", (table,))))


_OFTEN = 95.0
"""Percentile of the windows that is drawn beside their mean."""


def end_effector_figure(replay: Replay) -> Figure:
    """Error of the end effector in position and orientation over the time since a window began."""
    milliseconds = 1e3 * replay.time
    panels = tuple(
        Panel(
            title,
            Axis("time since the measured state, ms"),
            Axis(unit, low=0.0),
            (
                Curve("mean of the windows", milliseconds, error.mean(axis=0), "predicted"),
                Curve(f"{_OFTEN:g} % stay below", milliseconds, np.percentile(error, _OFTEN, axis=0), "residual"),
            ),
        )
        for title, unit, error in (
            ("position", "mm", 1e3 * replay.end_effector_position),
            ("orientation", "degrees", np.rad2deg(replay.end_effector_orientation)),
        )
    )
    caption = f"Distance and angle between link {replay.frame} as replayed and as measured, over {replay.n_windows} windows."
    return Figure("replay_end_effector", "End effector in free motion of the model", caption, panels, "grid", 240, columns=2)


def drift_figure(robot: Robot, replay: Replay) -> Figure:
    """Root mean square position error of every joint over the time since a window began."""
    milliseconds = 1e3 * replay.time
    error = np.sqrt(((replay.position - replay.measured) ** 2).mean(axis=0))
    panels = []
    for j, joint in enumerate(robot.moving_joints):
        unit, scale = ("mm", 1e3) if joint.kind == "prismatic" else ("mrad", 1e3)
        curve = Curve("drift", milliseconds, scale * error[:, j], "residual")
        panels.append(Panel(joint.name, Axis("ms"), Axis(unit, low=0.0), (curve,)))
    caption = "Root mean square over the windows of replayed less measured position."
    return Figure("replay_drift", "Drift of every joint", caption, tuple(panels))


def energy_figure(replay: Replay) -> Figure:
    """Energy that the model cannot account for, against what went through the joints, window by window."""
    curve = Curve("windows", replay.energy_throughput, replay.energy_residual, "data", "points", width=3.0)
    panel = Panel("", Axis("energy through the joints, J"), Axis("change of energy less work, J"), (curve,))
    caption = (
        f"Energy balance of the measured motion, without integration: {100.0 * replay.energy_error:.3g} % of the energy that went "
        "through the joints is not found again in the bodies and in friction."
    )
    return Figure("replay_energy", "Energy balance", caption, (panel,), "grid", 240, columns=1)


HORIZON_WINDOWS = 4
"""Free runs per horizon: a report must not take longer than the identification."""
_TITLE = "Forward validation"


def replay_section(shown: Shown) -> Section | None:
    """The measured torque drives the identified model; how far it strays from the measured motion."""
    run, log = shown.run, shown.judged
    if log is None:
        return None
    try:
        found = run.replay or replay(run.model, (run.unseen or run.samples)[0])  # torque as the robot had it, in no band
    except InputError as error:
        return Section(_TITLE, f"The motion could not be replayed: {error}.", short="Replay")
    engine = "MuJoCo" if found.engine == "mujoco" else "our own integrator"
    text = (
        f"Measured torque ({log.name}) drives the identified model in {engine}; it is set back to the measured state every "
        f"{1e3 * found.window_s:.0f} ms. At the end of a window the end effector is off by "
        f"{1e3 * found.end_effector_position[:, -1].mean():.3g} mm and "
        f"{np.rad2deg(found.end_effector_orientation[:, -1].mean()):.3g} degrees on average."
    )
    rows = tuple(
        (joint.name, f"{torque:.3g}", unit, f"{1e3 * drift:.3g}", "mm" if joint.kind == "prismatic" else "mrad")
        for joint, torque, unit, drift in zip(
            run.robot.moving_joints, found.torque_error, torque_units(run.robot), found.position_drift, strict=True
        )
    )
    table = Table(("joint", "mean torque error", "", "drift at the end of a window", ""), rows, numeric=(1, 3))
    figures = (
        ("end effector", end_effector_figure(found)),
        ("joints", drift_figure(run.robot, found)),
        ("energy", energy_figure(found)),
    )
    horizons = _horizons(run, (run.unseen or run.samples)[0])
    notes = (tuple(Finding("note", f"{note[:1].upper()}{note[1:]}.") for note in found.notes),) if found.notes else ()
    folded = (Folded("Joint by joint", (table,)), *((horizons,) if horizons is not None else ()))
    return Section(_TITLE, text, (Tabs(figures), *folded, *notes), "Replay")


def _horizons(run: IdentificationResult, samples: Samples) -> Folded | None:
    """Error of a free run over growing horizons beside that of the description, both as a simulator's file holds them.

    None where there is no such file: of closed or floating robots, and of links that no body can be.
    """
    if run.robot.loops or run.robot.floating or not run.consistency.feasible:
        return None
    held, _ = held_model(run, "mjcf", run.model)
    try:
        errors = error_over_horizons(as_held(held), as_held(run.robot), samples, HORIZON_WINDOWS)
    except InputError:  # samples shorter than every horizon, or bodies that no simulator takes: the text above says so
        return None
    rows = tuple((f"{1e3 * one.horizon_s:.0f}", *one.texts()) for one in errors)
    header = ("horizon, ms", "identified, rad or m", "description, rad or m")
    title = (
        "Free run over growing horizons, root mean square of position over joints and time, with friction as MJCF holds it"
    )
    return Folded(title, (Table(header, rows, numeric=(0, 1, 2)),))
