"""How the log of a force/torque sensor becomes samples: its filter by name, or the one that predicts held-out wrench best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import InputError
from dynid.estimation.body import estimate_body
from dynid.model.frames import Frame, LinkMotion
from dynid.model.robot import Robot
from dynid.regression.factor import factorise
from dynid.regression.row_filter import BandLimit, FilteredRows
from dynid.regression.wrench_rows import WrenchRows
from dynid.signals.process import process
from dynid.signals.recording import WrenchRecording
from dynid.signals.samples import WrenchSamples
from dynid.signals.steps.clock import Resample
from dynid.signals.steps.filters import Differentiate, LowPass, SavitzkyGolay
from dynid.signals.steps.step import Step

Kind = Literal["none", "savgol", "butterworth", "rows", "polynomial"]
EXPECTED = "auto, none, savgol:WINDOW,ORDER (such as savgol:21,2), butterworth:HZ, rows:HZ or polynomial:SECONDS"
TRIED_HZ = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0)
"""Bands that ``auto`` compares."""
SIGNAL_BANDS = 4.0
"""Motion is low-passed at so many times the band of filtered rows before rows are made of it."""
HELD_OUT = 0.35
"""Share of each log, at its end, that decides on the band."""


@dataclass(frozen=True)
class SensorFilter:
    """A filter of a sensor log: its kind, and the number or numbers that it takes."""

    kind: Kind
    window: int = 0
    order: int = 4
    band_hz: float = 0.0
    window_s: float = 0.0

    def describe(self) -> str:
        return {
            "none": "signals as recorded, central differences",
            "savgol": f"Savitzky-Golay on the motion, window {self.window} rows, order {self.order}, wrench as recorded",
            "butterworth": f"zero-phase Butterworth, order {self.order}, {self.band_hz:g} Hz on motion and wrench",
            "rows": f"rows below {self.band_hz:g} Hz, made of motion below {SIGNAL_BANDS * self.band_hz:g} Hz",
            "polynomial": f"polynomial approximation, window {self.window_s:g} s, on motion and wrench",
        }[self.kind]

    def samples(
        self, recording: WrenchRecording, robot: Robot | None, frame: Frame | None, imu: ArrayLike | None = None
    ) -> tuple[WrenchSamples, LinkMotion | None]:
        """Samples with the motion of the sensor, and that motion where it comes from joints."""
        found = (
            _approximated(recording, self.window_s)
            if self.kind == "polynomial"
            else process(recording, self._steps(recording))
        )
        if robot is not None and recording.position is not None:
            return found.moved_by(robot, frame)
        return (found if imu is None else found.seen_from(imu)), None

    def rows(self, source: WrenchRows) -> WrenchRows | FilteredRows:
        """The rows, filtered where the filter is one of rows."""
        return FilteredRows(source, BandLimit(self.band_hz)) if self.kind == "rows" else source

    def _steps(self, recording: WrenchRecording) -> list[Step]:
        joints = recording.position is not None
        motion = tuple(name for name in ("position", "velocity") if joints and getattr(recording, name) is not None)
        if self.kind == "savgol":
            # as in the paper: least squares needs no smooth wrench; an IMU's acceleration is smoothed, and the wrench beside it
            return [Resample(), SavitzkyGolay(self.window, self.order, "auto", motion if joints else None)]
        if self.kind == "none" and not joints and recording.angular_acceleration is not None:
            return []  # nothing to derive, so no row is lost at the ends
        steps: list[Step] = [] if self.kind == "none" else [Resample()]
        if self.kind == "butterworth":
            steps.append(LowPass(cutoff_hz=self.band_hz, order=self.order))
        elif self.kind == "rows" and SIGNAL_BANDS * self.band_hz < 0.45 * recording.rate_hz:
            steps.append(LowPass(cutoff_hz=SIGNAL_BANDS * self.band_hz, order=self.order, signals=motion or ("velocity",)))
        return [*steps, Differentiate(points=5)]


def sensor_filter(text: str) -> SensorFilter:
    """The filter that a text asks for."""
    kind, _, rest = text.partition(":")
    try:
        if kind == "none" and not rest:
            return SensorFilter("none")
        if kind == "savgol":
            window, order = (int(part) for part in rest.split(","))
            if window % 2 == 1 and 2 <= order < window:
                return SensorFilter("savgol", window, order)
        number = float(rest) if kind in ("butterworth", "rows", "polynomial") else 0.0
    except ValueError:
        number = 0.0
    if np.isfinite(number) and number > 0.0:
        if kind == "polynomial":
            return SensorFilter("polynomial", window_s=number)
        return SensorFilter("rows" if kind == "rows" else "butterworth", band_hz=number)
    raise InputError(
        f"--filter is '{text}', expected {EXPECTED}; a window is an odd number of rows, its order 2 or more below it"
    )


def chosen_sensor_filter(logs: Sequence[WrenchRecording], robot: Robot | None, frame: Frame | None) -> SensorFilter:
    """The Butterworth whose body, found on the first part of each log, predicts the raw wrench of the rest best."""
    rate = min(log.rate_hz for log in logs)
    trials = [(_held_out_error_sensor_signals(logs, robot, frame, band), band) for band in TRIED_HZ if band < 0.2 * rate]
    if not trials:
        raise InputError(
            f"{logs[0].source.path or 'the force/torque recording'} has {rate:.3g} rows a second, too few to filter; give --filter none"
        )
    return SensorFilter("butterworth", band_hz=min(trials)[1])


def _held_out_error_sensor_signals(
    logs: Sequence[WrenchRecording], robot: Robot | None, frame: Frame | None, band_hz: float
) -> float:
    known, unseen = [], []
    for log in logs:
        samples, _ = SensorFilter("butterworth", band_hz=band_hz).samples(log, robot, frame)
        cut = int((1.0 - HELD_OUT) * len(samples))
        known.append(samples[:cut])
        unseen.append(samples[cut:])
    rows = WrenchRows(known)
    found = estimate_body(factorise(rows), ("wls",))[0].estimate
    weights = np.array(found.details["weights"])
    error = 0.0
    for part in unseen:
        assert part.raw_wrench is not None
        Y = rows.regressor(part)
        offset = part.raw_wrench - Y @ found.base_values[:10] - found.base_values[10:16]
        error += float(((weights * offset) ** 2).sum())
    return error


def _approximated(recording: WrenchRecording, window_s: float) -> WrenchSamples:
    """Motion, its derivatives and the wrench through kernels of one delay: no signal is differentiated."""
    from dynid.signals.kernel_filter import approximate_derivatives
    from dynid.signals.polynomial_kernels import PolynomialApproximation

    if recording.position is None:
        raise InputError(
            f"{recording.source.path or 'the force/torque recording'} has no joint positions, which --filter polynomial differentiates"
        )
    even = process(recording, [Resample(), Differentiate(velocity="position")], edge_s=0.0)
    assert even.position is not None
    period = float(np.median(np.diff(even.time)))
    settings = PolynomialApproximation(window_s=window_s)
    if window_s < 6.0 * period:
        raise InputError(
            f"--filter polynomial:{window_s:g} spans {window_s / period:.1f} rows, expected at least 6 ({6 * period:g} s)"
        )
    start = float(even.time[0])
    q, v, a = approximate_derivatives(even.position, settings, period, (0, 1, 2), start_s=start)
    (wrench,) = approximate_derivatives(even.wrench, settings, period, (0,), start_s=start)
    return WrenchSamples(
        q.time, wrench.values, position=q.values, velocity=v.values, acceleration=a.values, source=recording.source
    )
