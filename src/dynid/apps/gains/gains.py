"""Drive gains from logs of motor current with and without a load of known mass.

    K_j i_j = (Y beta)_j                       without the load
    K_j i_j = (Y beta + Y_L phi_L)_j           with it, its mass M known (Gautier and Briot 2014)

Without the known mass all of it could be scaled together; with it every joint that feels the weight of the load has a scale. Several
loads, one to a log, of which only the total mass is known, give the same scale: ``sum_L m_L = M``. Three methods:

* ``tls``: errors in the current alone. The current is predicted, ``i_j = g_j (Y beta + Y_L phi_L)_j`` with ``g = 1/K``, and the sum of
  squares minimised over all of it by Gauss-Newton; each step is a linear regression.
* ``sdp``: the same with every link and the load physically consistent.
* ``ols``: the equations above by least squares, as published for the UR10e. The current is then part of the regressor, and its errors,
  those of the friction model included, make the gains too small and dependent on the filter.

A torque sensor in every joint has a gain too: the same with torque in place of current gives it, 1 where it is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from dynid.apps.gains.options import METHODS
from dynid.apps.gains.problem import DriveGains, GainProblem
from dynid.apps.payload.load_rows import filter_rows, load_columns, regressor_of
from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.paths import log_paths
from dynid.model.frames import Frame, frame_named
from dynid.model.robot import Robot
from dynid.pipeline.data import read_motion_logs
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.signal_filter import Filter, to_samples, velocity_sources, with_dead_zone
from dynid.regression.row_source import Chunk
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples

WANTED = "a motion log with motor current"
BAND_HZ, SIGNAL_BAND_HZ = 5.0, 20.0
"""Band of the rows, and of the motion that they are made of, where no run gives them."""


def identify_gains(
    robot: Robot | IdentificationResult,
    unloaded: Sequence[str | Path],
    loaded: Sequence[str | Path],
    mass: float | None = None,
    *,
    total: float | None = None,
    frame: str | Frame | None = None,
    settings: Settings | None = None,
    method: Literal["tls", "sdp", "ols"] = "tls",
    prior: Sequence[float] | None = None,
    prior_sigma: float = 0.1,
) -> DriveGains:
    """Drive gains from logs with and without a load of known mass.

    Args:
        robot: the robot with its friction, or a run of it, whose robot and filter are used.
        unloaded: logs without the load, with motor current (or joint torque, for gains of torque sensors).
        loaded: logs with it.
        mass: of the load, kg, the same in all loaded logs.
        total: in place of ``mass``, where every loaded log has a load of its own: their masses together, kg.
        frame: frame that carries the load; None for the last link.
        settings: how logs are read and filtered; by default those of the run.
        method: ``tls`` (errors in the current), ``sdp`` (the same with links and load physically consistent) or ``ols``.
        prior: gains of a data sheet, one per joint, which are combined with what the data say.
        prior_sigma: their relative standard deviation.

    Returns:
        one gain per joint, N m per A (or a factor of torque), with its standard deviation and whether the logs show it.

    Examples:
        >>> import dynid
        >>> arm = dynid.demo_robot().only(["shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow"])
        >>> heavy = arm.with_parameters({"m4": arm.parameters["m4"] + 3.0})
        >>> for name, one in (("free", arm), ("loaded", heavy)):
        ...     _ = dynid.write_recording(dynid.demo_recording(one, torque_noise=0.05), f"{name}.csv")
        >>> found = dynid.identify_gains(arm, ["free.csv"], ["loaded.csv"], 3.0)
        >>> [gain.identifiable for gain in found.gains]
        [True, True, True, True]
    """
    run = robot if isinstance(robot, IdentificationResult) else None
    model = robot.robot if isinstance(robot, IdentificationResult) else robot
    known = _known(mass, total, len(loaded))
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    chosen = settings or (Settings() if run is None else run.settings)
    both = [_recordings(model, paths, chosen) for paths in (unloaded, loaded)]
    unit = "N m/A" if both[0][0].current is not None else "N m per unit"
    how = _filter(both[0], chosen) if run is None or run.filter is None else run.filter
    model = with_dead_zone(model, both[0], how, chosen) if run is None else model
    place = frame_named(model, frame)
    n_loads = 1 if total is None else len(both[1])  # one for all loaded logs, or one to each
    carried = [*[None] * len(both[0]), *([0] * len(both[1]) if total is None else range(n_loads))]
    logs = [
        _rows(model, place, to_samples(log, how, chosen.max_rows), how, load, n_loads)
        for log, load in zip((*both[0], *both[1]), carried, strict=True)
    ]
    problem = GainProblem.of(model, place, logs, known, n_loads)
    found = problem.gains(problem.solved(method), unit, method, prior, prior_sigma)
    if method == "ols":
        return replace(
            found,
            notes=(*found.notes, "least squares makes gains too small where the current has errors: compare --method tls"),
        )
    return replace(found, least_squares=problem.gains(problem.solved("ols"), unit, "ols", None, prior_sigma).gains)


def _known(mass: float | None, total: float | None, n_logs: int) -> float:
    """The one mass that is known, kg."""
    if (mass is None) == (total is None):
        given = "neither was" if mass is None else "both were"
        raise InputError(
            f"{given} given of --mass, of one load, and --total, of the loads of all logs, expected one of the two"
        )
    flag, value = ("--mass", mass) if mass is not None else ("--total", total)
    if value is None or not (np.isfinite(value) and value > 0.0):
        raise InputError(f"{flag} is {value:g}, expected the mass of the load, a positive number of kg")
    if mass is None and n_logs < 2:
        raise InputError(
            "--total is the mass of several loads, one to a loaded log, and one such log was given: give --mass"
        )
    return float(value)


def _recordings(robot: Robot, paths: Sequence[str | Path], settings: Settings) -> tuple[Recording, ...]:
    """Logs whose torque is the current as it is, where they have current."""
    if not paths:
        raise InputError("no log was given, expected one without and one with the load")
    plain = replace(settings, drive_gains=(1.0,) * robot.n_joints)
    try:
        found = read_motion_logs(robot, log_paths(paths), plain, WANTED)
    except InputError as error:
        if "current" not in str(error):
            raise
        found = read_motion_logs(robot, log_paths(paths), replace(settings, drive_gains=None), WANTED)
    if found.robot.joint_names != robot.joint_names:
        missing = [name for name in robot.joint_names if name not in found.robot.joint_names]
        raise InputError(f"{paths[0]} lacks joint {', '.join(missing)}, expected all {robot.n_joints}")
    return found.recordings


def _filter(recordings: Sequence[Recording], settings: Settings) -> Filter:
    rate = min(recording.rate_hz for recording in recordings)
    band = BAND_HZ if settings.cutoff_hz == "auto" else float(settings.cutoff_hz)
    signals = SIGNAL_BAND_HZ if settings.signal_band_hz == "auto" else float(settings.signal_band_hz)
    source: Literal["logged", "position"] = "logged" if velocity_sources(recordings, settings)[0] == "logged" else "position"
    if settings.filter_on == "signals":
        return Filter(band, band, settings.filter_order, source)
    signals = min(max(signals, band), 0.4 * rate)
    return Filter(signals, signals, settings.filter_order, source, row_band_hz=band)


def _rows(robot: Robot, place: Frame, samples: Samples, how: Filter, load: int | None, n_loads: int) -> Chunk:
    """Rows of one log, which carries the load of that number or none."""
    assert samples.torque is not None
    Y = regressor_of(robot, samples)
    of_load = np.zeros((*Y.shape[:2], 10 * n_loads))
    if load is not None:
        of_load[:, :, 10 * load : 10 * load + 10] = load_columns(robot, place, Y)[:, :, :10]
    n = 10 * robot.n_joints
    blocks = [np.column_stack([Y[:, j, :n], of_load[:, j], Y[:, j, n:], samples.torque[:, j]]) for j in range(robot.n_dof)]
    return filter_rows(blocks, samples.time, how)
