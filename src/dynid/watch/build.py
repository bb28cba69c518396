"""A watcher from the options of the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.errors import InputError
from dynid.estimation.constraints.bounds import read_bounds
from dynid.recording.readers.options import ReadOptions
from dynid.robot.effects import Coulomb
from dynid.robot.frames import frame_named
from dynid.robot.model import Robot
from dynid.run.described import described_robot
from dynid.run.logs import READ_NAMES
from dynid.run.options import Settings
from dynid.run.record import Run
from dynid.run.rows import approximation
from dynid.run.signals import savgol_numbers
from dynid.run.store import load_run
from dynid.run.watch_options import WatchSettings
from dynid.watch.drift import DriftOptions
from dynid.watch.flow import Reference, WatchOptions
from dynid.watch.rows import RowOptions
from dynid.watch.triangles import Memory
from dynid.watch.watcher import Watcher

DEFAULT_BAND_HZ = 8.0
DEFAULT_SIGNAL_BAND_HZ = 40.0


def make_watcher(robot: str | Path, settings: Settings, watch: WatchSettings) -> Watcher:
    """The watcher that the options ask for."""
    run = None if watch.against is None else load_run(watch.against)
    described = described_robot(robot, settings)
    if run is None:
        if watch.payload:
            raise InputError("--payload watches what torque has more than a run without the load: give --against RUN")
        model, reference = _with_dead_zone(described, settings), None
    else:
        model, reference = _of_run(run, described, watch.against or "")
    if watch.frame is not None and not watch.payload:
        raise InputError("--frame is that of a load: give --payload as well")
    options = WatchOptions(
        rows=_row_options(settings, run),
        memory=Memory(watch.last, watch.forget),
        drift=DriftOptions(watch.block, watch.false_alarms),
        every_s=watch.every,
        learn_s=watch.learn,
        weighted=watch.weighted,
        bounds=_bounds(watch.bounds, model),
        load=frame_named(model, watch.frame) if watch.payload else None,
    )
    reading = ReadOptions(**{name: getattr(settings, name) for name in READ_NAMES if name != "episode"})
    return Watcher(model, reading, options, reference, where=watch.source)


def _of_run(run: Run, described: Robot, name: str) -> tuple[Robot, Reference]:
    """The robot of a run with its values, and what the run knows of them."""
    model = run.identified
    if not set(model.joint_names) <= set(described.joint_names):
        other = [joint for joint in model.joint_names if joint not in described.joint_names]
        raise InputError(
            f"run '{name}' identified joint {', '.join(other)}, which the robot '{described.name}' does not have"
        )
    if run.estimate.n_samples == 0 or len(run.estimate.residual_rms) != model.n_dof:
        raise InputError(
            f"run '{name}' has no residual of joint torque; watch against a run that was identified from logs of motion"
        )
    lift = run.estimate.base.lift
    noise = np.asarray(run.estimate.residual_rms)
    return model, Reference(model.parameters.values, lift @ run.estimate.covariance @ lift.T, noise)


def _with_dead_zone(robot: Robot, settings: Settings) -> Robot:
    """Coulomb friction with the dead zone given; none by default, since filtered rows need none."""
    if settings.dead_zone == "auto":
        return robot
    zone = (float(settings.dead_zone),) * len(robot.driven)
    return robot.with_effects(
        [replace(effect, dead_zone=zone) if isinstance(effect, Coulomb) else effect for effect in robot.effects]
    )


def _row_options(settings: Settings, run: Run | None) -> RowOptions:
    if settings.rows not in ("torque", "polynomial"):
        raise InputError(f"--rows {settings.rows} cannot be made while rows come in, expected torque or polynomial")
    filtered = None if run is None else run.filter
    band = DEFAULT_BAND_HZ if filtered is None else filtered.band_hz
    signals = DEFAULT_SIGNAL_BAND_HZ if filtered is None else max(filtered.cutoff_hz, 4.0 * filtered.band_hz)
    velocity = settings.velocity if settings.velocity != "auto" or filtered is None else filtered.velocity
    window = savgol_numbers(settings.filter)
    made = RowOptions(
        kind=settings.rows,
        band_hz=band if settings.cutoff_hz == "auto" else float(settings.cutoff_hz),
        signal_band_hz=signals if settings.signal_band_hz == "auto" else float(settings.signal_band_hz),
        logged_velocity=velocity == "logged" and settings.rows == "torque",
        polynomial=approximation(settings),
        composition=settings.composition,
    )
    return made if window is None else replace(made, window=window[0], order=window[1])


def _bounds(path: str | None, robot: Robot) -> dict[str, tuple[float, float]]:
    if path is None:
        return {}
    found = read_bounds(path).limits
    for name in found:
        robot.parameters.index(name)  # refuses what is no parameter, such as a centre of mass
    return dict(found)
