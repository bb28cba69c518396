"""Torque: measured against predicted, what friction explains of it, and what nothing explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, freeze
from dynid.estimation.friction.fit import with_transmitted_load
from dynid.recording.samples import Samples
from dynid.regression.memory import with_memory
from dynid.regression.torque import effect_signals
from dynid.report.envelope import envelope_rows, spread_rows
from dynid.report.figure import Figure
from dynid.report.panel import Axis, Curve, Mark, Panel
from dynid.robot.effects.effect import Motion
from dynid.robot.model import Robot
from dynid.validation.torque import band_limited, predict

_SCATTER_POINTS = 450
_CURVE_POINTS = 161
_BINS = 15


@dataclass(frozen=True, eq=False)
class Predicted:
    """Samples of one log, the torque that the identified robot predicts for them, and its friction part."""

    name: str
    samples: Samples
    prediction: Array
    friction: Array

    @property
    def torque(self) -> Array:
        assert self.samples.torque is not None
        return self.samples.torque

    @property
    def residual(self) -> Array:
        return self.torque - self.prediction


def predicted(name: str, identified: Robot, samples: Samples, band_hz: float | None = None) -> Predicted:
    """A log with its prediction; the load that friction may depend on is the model's own where the samples have none.

    With ``band_hz`` measured torque, prediction and friction are those in a band, as the run judges them.
    """
    if samples.load is None:
        samples = with_transmitted_load(identified, samples)
    samples = with_memory(identified, samples)
    prediction = predict(identified, identified.parameters, samples)
    friction = np.zeros_like(prediction)
    values = _friction_values(identified)
    if values.any():
        signals = effect_signals(
            identified, samples.position, samples.velocity, samples.acceleration, samples.load, samples.travel
        )
        friction = (signals * values) @ identified.effect_incidence.T
    judged, in_band = band_limited(samples, prediction, band_hz)
    _, rubbing = band_limited(samples, friction, band_hz)
    return Predicted(name, judged, freeze(in_band), freeze(rubbing))


def _friction_values(robot: Robot) -> Array:
    """Values of the effect columns, those that are not friction set to zero."""
    start = robot.parameters.n_inertial
    friction = np.array([kind == "friction" for kind in robot.parameters.kinds[start:]], dtype=bool)
    return np.where(friction, robot.parameters.values[start:], 0.0)


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
    without = log.residual + log.friction
    panels = []
    for place, joint in enumerate(robot.driven_joints):
        dof = first + place
        v = log.samples.velocity[:, dof]
        rows = spread_rows(v, _SCATTER_POINTS)
        speeds, torque = friction_curve(robot, place, v, log.samples)
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


def friction_curve(robot: Robot, place: int, velocity: Array, samples: Samples) -> tuple[Array, Array]:
    """Friction torque of one driven joint over its speed, the others at rest, at the load that is typical for it."""
    n = len(robot.driven)
    first = robot.n_dof - n
    low, high = float(velocity.min()), float(velocity.max())
    reach = max(high - low, 1e-9)
    # dense at reversal, where friction bends
    fine = 0.08 * reach * np.linspace(-1.0, 1.0, _CURVE_POINTS) ** 3
    speeds = np.union1d(np.linspace(low, high, _CURVE_POINTS), fine[(fine > low) & (fine < high)])
    v = np.zeros((len(speeds), n))
    v[:, place] = speeds
    rest = np.zeros_like(v)
    load = None
    if samples.load is not None:
        load = np.broadcast_to(np.median(np.abs(samples.load[:, first:]), axis=0), v.shape)
    q = np.broadcast_to(np.median(samples.position[:, first + robot.floating :], axis=0), v.shape)
    signals = np.hstack([effect.signals(Motion(q, v, rest, load)) for effect in robot.effects])
    torque = (signals * _friction_values(robot)) @ robot.effect_incidence.T
    return speeds, torque[:, first + place]


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
