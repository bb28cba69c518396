"""What is found wrong with sensors in the logs of a run, where it was asked for: delay of torque, direction of gravity, zeros, gains and
offsets, and what gears and temperature add. Everything after sees corrected logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dynid.arrays import Array
from dynid.engine import Tell
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.calibration import (
    BACKLASH,
    COMPLIANCE,
    GAIN,
    GEAR_BAND_HZ,
    OFFSET,
    QUANTITIES,
    ZERO,
    Calibrated,
    Sought,
    added_torque,
    find_calibration,
)
from dynid.estimation.friction.selection import choose_friction_model
from dynid.estimation.lag_and_gravity import find_lag_and_gravity
from dynid.model.robot import Robot
from dynid.pipeline.data import delayed, with_rows
from dynid.pipeline.filter_selection import filter_memory_s
from dynid.pipeline.log import Data
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import Filter, to_samples
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.signals.stream import RecordingStream


def with_calibration(
    data: Data, filtered: Filter | None, settings: Settings, progress: Tell
) -> tuple[Data, Settings, tuple[Calibrated, ...] | None]:
    """Data and settings with the errors of sensors undone that were asked for, and what was found; None where nothing was asked."""
    if not settings.calibrate:
        return data, settings, None
    robot = data.known.robot
    sought = _sought(settings, robot)
    if filtered is None:
        raise InputError("--calibrate needs logs of motion, a table of poses was given: leave it out")
    if any(name == GAIN for name, _ in sought):
        _refuse_current(data, settings)
    beyond = [name for name, _ in sought if name not in (ZERO, GAIN, OFFSET)]
    if beyond and not data.logs.in_memory:
        raise InputError(f"--calibrate {beyond[0]} needs logs in memory: give shorter ones (--from, --to) or --stream off")
    progress(f"looking for {', '.join(dict.fromkeys(name for name, _ in sought))}")
    if {COMPLIANCE, BACKLASH} & set(beyond):
        band_hz = min(GEAR_BAND_HZ, filtered.band_hz)  # in which gears are looked for
        filtered = Filter(2.0 * band_hz, 2.0 * band_hz, 4, filtered.velocity, row_band_hz=band_hz)
    windows = data.filtered(filtered, settings.max_rows).known.windows
    found, fit = find_calibration(
        robot,
        windows,
        filtered.row_filter,
        sought,
        with_friction=frictions_before_choice(filtered, settings)[0],
        fixed=settings.constraints.get("fixed", {}),
    )
    values = np.zeros((len(QUANTITIES), robot.n_dof))
    for (name, j), one in zip(sought, found, strict=True):
        if one.undone and one.value is not None:
            values[QUANTITIES.index(name), j] = np.log(one.value) if name == GAIN else one.value
    settings = _with_values(settings, robot, values[QUANTITIES.index(ZERO)], np.exp(values[QUANTITIES.index(GAIN)]))
    return with_rows(data, _Correction(values, fit, filtered)), settings, found


def with_lag_and_gravity(
    data: Data, filtered: Filter | None, settings: Settings, progress: Tell
) -> tuple[Data, Settings, tuple[str, ...]]:
    """Data and settings with the delay of torque and the direction of gravity that were asked for, and what was found."""
    lag, lean = settings.torque_delay == "auto", settings.gravity == "auto"
    if not (lag or lean):
        return data, settings, ()
    if filtered is None:
        raise InputError("--torque-delay auto and --gravity auto need logs of motion, expected numbers for a table of poses")
    progress("looking for the delay of torque and the direction of gravity")
    windows, frictions = (
        data.filtered(filtered, settings.max_rows).known.windows,
        frictions_before_choice(filtered, settings),
    )
    band = filtered.row_filter
    found = find_lag_and_gravity(data.known.robot, windows, band, lag=lag, gravity=lean, with_friction=frictions)
    notes: list[str] = []
    if lag:
        delay_s = found.delay_s
        data, settings = with_rows(data, lambda rows: delayed(rows, delay_s)), replace(settings, torque_delay=delay_s)
        notes.append(found.delay_note())
    if lean:
        x, y, z = (float(value) for value in found.gravity)
        settings = replace(settings, gravity=(x, y, z))
        known, logs = (replace(own, robot=own.robot.with_gravity((x, y, z))) for own in (data.known, data.logs))
        unseen = None if data.unseen is None else replace(data.unseen, robot=data.unseen.robot.with_gravity((x, y, z)))
        data = Data(logs, known, unseen)
        notes.append(found.gravity_note())
    return data, settings, tuple(notes)


def calibration_notes(found: Sequence[Calibrated] | None) -> tuple[str, ...]:
    """What was found in words: first what cannot be seen, then what has no number."""
    geared = any(one.quantity in (COMPLIANCE, BACKLASH) for one in found or ())
    told = tuple(one.note() for one in sorted(found or (), key=lambda one: one.value is not None))
    return (AT_MOTORS, *told) if geared else told


AT_MOTORS = (
    "compliance and backlash are what torques show of links that are not where their motors are: positions are taken as those of the "
    "motors; of positions that are measured at the links neither is seen"
)


def frictions_before_choice(filtered: Filter, settings: Settings) -> list[Callable[[Robot, Sequence[Samples]], Robot]]:
    """Each gives a robot its friction with the numbers inside that fit samples best: smooth, then chosen, where that is asked for."""
    band, memory_s, model = filtered.row_filter, filter_memory_s(filtered), settings.friction_model

    def with_friction(name: str | None, robot: Robot, samples: Sequence[Samples]) -> Robot:
        return choose_friction_model(robot, samples, name, band, memory_s)[0]

    return [partial(with_friction, name) for name in (("smooth", "auto") if model == "auto" else (model,))]


def _sought(settings: Settings, robot: Robot) -> list[Sought]:
    """Quantities and joints that were asked for, each once."""
    if robot.loops or robot.coupling is not None:
        raise InputError(
            f"--calibrate is for open chains without coupled motors, robot '{robot.name}' is none: leave it out"
        )
    if settings.rows != "torque":
        raise InputError(f"--calibrate needs --rows torque, found --rows {settings.rows}")
    made: dict[Sought, None] = {}
    for text in settings.calibrate:
        name, _, joint = text.partition(":")
        if name not in QUANTITIES:
            raise UnknownNameError("quantity of --calibrate", name, QUANTITIES)
        if joint and joint not in robot.joint_names:
            raise UnknownNameError("joint of --calibrate", joint, robot.joint_names)
        if name == OFFSET and settings.friction_model is None and "offset" not in settings.effects:
            raise InputError("--calibrate offset needs the effect offset in the model: add it to --effects")
        made |= {(name, j): None for j, own in enumerate(robot.joint_names) if joint in ("", own)}
    return list(made)


def _refuse_current(data: Data, settings: Settings) -> None:
    """A gain that was found is kept as a drive gain, which would take current for torque where a log has both."""
    for log in data.logs.parts:
        if settings.drive_gains is None and "current" in log.rows.quantities:
            raise InputError(
                f"{log.path} has current beside torque, --calibrate gain needs one of them: name the columns of torque alone in "
                "a mapping file (--mapping), or make torque of current (--drive-gains)"
            )


def _with_values(settings: Settings, robot: Robot, zero: Array, gain: Array) -> Settings:
    """The settings that read a log as it was corrected."""
    zeros = {name: settings.zero.get(name, 0.0) + float(zero[j]) for j, name in enumerate(robot.joint_names)}
    gains = settings.drive_gains
    if (gain != 1.0).any():
        gains = tuple(float(own / factor) for own, factor in zip(gains or np.ones(len(gain)), gain, strict=True))
    return replace(
        settings, calibrate=(), zero={name: value for name, value in zeros.items() if value != 0.0}, drive_gains=gains
    )


@dataclass(frozen=True, eq=False)
class _Correction:
    """Positions from the zeros of the description and torque without its gain, and without what gears and temperature add, of a log in
    memory or while it is read."""

    values: Array
    """Of every quantity and joint; gains by their logarithms."""
    fit: Robot
    filtered: Filter

    def __call__(self, rows: Recording | RecordingStream) -> Recording | RecordingStream:
        if isinstance(rows, Recording):
            return self._of(rows)
        begin = None if rows.read_from is None else partial(self._pieces, rows.read_from)
        return replace(rows, read_pieces=partial(self._pieces, rows.read_pieces), read_from=begin)

    def _pieces(
        self, read: Callable[..., Iterator[tuple[Recording | None, int]]], *place: int
    ) -> Iterator[tuple[Recording | None, int]]:
        for piece, dropped in read(*place):
            yield None if piece is None else self._of(piece), dropped

    def _of(self, recording: Recording) -> Recording:
        zero, gain = self.values[QUANTITIES.index(ZERO)], np.exp(self.values[QUANTITIES.index(GAIN)])
        moved = {
            name: values - zero
            for name in ("position", "reference_position")
            if (values := getattr(recording, name)) is not None
        }
        plain = recording.with_(**moved, torque=np.asarray(recording.torque) / gain)
        beyond = self.values[QUANTITIES.index(COMPLIANCE) :].any()
        return plain.with_(torque=np.asarray(plain.torque) - self._added(plain)) if beyond else plain

    def _added(self, recording: Recording) -> Array:
        """Torque that gears and temperature add, on the clock of the log."""
        samples, part = to_samples(recording, self.filtered, recording.n_samples), recording.source.part
        before_s = 0.0 if part is None else part.start * part.duration_s / max(part.n_rows, 1)
        added = added_torque(samples, self.values, self.fit, float(recording.time[0]) - before_s)
        return np.column_stack([np.interp(recording.time, samples.time, column) for column in added.T])
