"""A tool's or load's ten parameters: what torque with the load has more than the model without it.

    tau_loaded - tau_model(q, v, a) = Y_F(q, v, a) phi_load + Y_f(q, v) d_friction,

``Y_F`` the columns of the body that carries the load, in the load's frame. The model is that of an earlier run without the load.
Friction changes with load and temperature, so its change is estimated along; rotor inertia does not change. A body that is known
already, such as the tool that holds the load, is taken off first.

Two shares of the covariance do not show in the residual. What the run itself is unsure of, ``C_beta``, goes into the load by the same
least squares: ``G C_beta G^T`` with ``G = [Y_F Y_f]^+ Y_base``. And where torque is motor current times drive gains, a common error of the
gains scales the load as it scales the model: ``(sigma_K / K)^2 phi phi^T``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze, matrix
from dynid.errors import InputError
from dynid.estimation.body import BodyEstimate, estimate_body, known_mass
from dynid.estimation.constraints.constraints import Constraint
from dynid.estimation.online_body import OnlineBody, OnlineBodyState
from dynid.estimation.result import Estimate
from dynid.files import read_json
from dynid.parameters import Parameters, inertial_columns
from dynid.recording.recording import StaticRecording
from dynid.recording.samples import Samples
from dynid.regression.factor import matrix_regression
from dynid.regression.memory import with_memory
from dynid.regression.source import Chunk
from dynid.regression.torque import torque_regressor
from dynid.regression.wrench_rows import GUESS
from dynid.robot.frames import Frame, frame_named
from dynid.robot.model import Robot
from dynid.run.known_load import known_load
from dynid.run.log_part import refuse_same
from dynid.run.log_paths import log_paths
from dynid.run.logs import read_logs
from dynid.run.misread import misread_logs
from dynid.run.motion import under_load
from dynid.run.options import Reading, Settings
from dynid.run.payload_options import PayloadSettings
from dynid.run.record import Run
from dynid.run.signals import Filter, to_samples
from dynid.validation.torque import predict

GAIN_SIGMA = 0.1
"""Relative standard deviation of drive gains of which nothing is said: estimates of one robot's gains differ by that and more."""
LARGE_SHARE = 0.05
"""Share of the torque that may stay unexplained with the load before it is a warning."""
WORSE = 2.0
"""How many times the error of the run the error with the load may be before it is a warning."""


@dataclass(frozen=True, eq=False)
class Payload:
    """A load in the frame that it was asked for.

    Args:
        frame: where it is.
        body: the ten parameters with their uncertainty.
        relative_error_without: torque error on the loaded logs of the model without the load.
        relative_error_with: the same with it.
        gain_sigma: relative uncertainty of the drive gains that is part of the interval; zero for measured torque.
        warnings: what makes the result doubtful.
        residuals: time, residual without and with the load, ``(rows, joints)``, for each log.
    """

    frame: Frame
    body: BodyEstimate
    relative_error_without: float
    relative_error_with: float
    gain_sigma: float
    warnings: tuple[str, ...] = ()
    residuals: tuple[tuple[Array, Array, Array], ...] = ()

    @property
    def link(self) -> str:
        """Name of the frame."""
        return self.frame.name

    @property
    def mass(self) -> float:
        return self.body.mass

    @property
    def com(self) -> Array:
        return self.body.com

    @property
    def inertia(self) -> Array:
        """About the load's own centre of mass, in the frame's axes."""
        return self.body.inertia

    @property
    def sigma(self) -> Array:
        """Standard deviation of the ten parameters ``m mx my mz Ixx Ixy Iyy Ixz Iyz Izz``."""
        return self.body.sigma

    @property
    def phi(self) -> Array:
        return self.body.phi

    @property
    def feasible(self) -> bool:
        return self.body.feasible

    @property
    def estimate(self) -> Estimate:
        return self.body.estimate

    def as_dict(self) -> dict[str, Any]:
        """What ``dynid payload --json`` prints."""
        return self.body.as_dict() | {
            "link": self.link,
            "frame": self.link,
            "relative_error": {"without": self.relative_error_without, "with": self.relative_error_with},
            "gain_sigma": self.gain_sigma,
            "warnings": list(self.warnings),
        }


def identify_payload(
    run: Run,
    logs: Sequence[str | Path],
    link: str | Frame | None = None,
    *,
    constraints: Sequence[Constraint] = (),
    tool: ArrayLike | None = None,
    gain_sigma: float | None = None,
    settings: Settings | None = None,
) -> Payload:
    """The load that a robot carries in some logs, from a run without it.

    Args:
        run: identified without the load.
        logs: logs with the load.
        link: frame that carries it: any link of the description, or a :class:`Frame`; None for the last link.
        constraints: what is known of the load, see :func:`dynid.run.known_load.known_load`.
        tool: ten parameters in the same frame of what carries the load and is not in the run either.
        gain_sigma: relative standard deviation of the drive gains; None for 10 % where torque is made of motor current.
        settings: how the logs are read; by default as those of the run were.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> loaded = dynid.demo_robot()
        >>> loaded = loaded.with_parameters({"m7": loaded.parameters["m7"] + 2.0})
        >>> _ = dynid.write_recording(dynid.demo_recording(loaded, seed=1), "loaded.csv")
        >>> 1.8 < dynid.identify_payload(run, ["loaded.csv"]).mass < 2.2
        True
    """
    place = frame_named(run.robot, link)
    samples, from_current, misread = _loaded_samples(run, logs, settings or run.settings)
    spread = (GAIN_SIGMA if from_current else 0.0) if gain_sigma is None else float(gain_sigma)
    if not (np.isfinite(spread) and spread >= 0.0):
        raise InputError(f"uncertainty of the gains is {spread:g}, expected zero or a positive share")
    found = payload_from_samples(run, samples, place, constraints, tool, spread)
    return replace(found, warnings=(*misread, *found.warnings))


def loads_of(run: Run, logs: Sequence[str | Path], settings: PayloadSettings) -> list[tuple[list[Path], Payload]]:
    """The loads that ``dynid payload RUN LOG...`` finds, each with its logs: one of all of them, or one of each.

    Args:
        run: identified without the load.
        logs: logs with the load: files, folders, patterns, URLs.
        settings: frame, what is known of the load, how the logs are read.
    """
    chosen: dict[str, Any] = {
        "constraints": known_load(settings.mass, settings.shape),
        "tool": _tool(settings.tool),
        "gain_sigma": None if settings.gain_percent is None else settings.gain_percent / 100.0,
        "settings": replace(run.settings, **settings.changed(Reading)),
    }
    paths = log_paths(logs)
    groups = [[log] for log in paths] if settings.each else [paths]
    return [(group, identify_payload(run, group, settings.frame, **chosen)) for group in groups]


def online_loads_of(run: Run, logs: Sequence[str | Path], settings: PayloadSettings) -> Iterator[OnlineBodyState]:
    """The same block by block, as if the logs came in now."""
    reading = replace(run.settings, **settings.changed(Reading))
    return online_payload(run, logs, settings.frame, tool=_tool(settings.tool), settings=reading)


def _tool(path: str | None) -> list[float] | None:
    """Ten parameters of a tool from the JSON that an earlier payload printed."""
    if path is None:
        return None
    phi = read_json(Path(path), "file of --tool").get("phi")
    if not isinstance(phi, list) or len(phi) != 10 or not all(isinstance(value, int | float) for value in phi):
        raise InputError(f"'{path}' has no ten numbers under 'phi', expected what 'dynid payload ... --json' prints")
    return [float(value) for value in phi]


def _loaded_samples(
    run: Run, logs: Sequence[str | Path], settings: Settings
) -> tuple[tuple[Samples, ...], bool, tuple[str, ...]]:
    """Samples of loaded logs, filtered as the run was, whether their torque is made of motor current, and what was misread."""
    if run.filter is None:
        raise InputError("this run was identified from a table of poses: it has no filter and no friction for a loaded log")
    files = log_paths(logs)
    found = read_logs(run.robot, files, settings)
    if isinstance(found, StaticRecording):
        raise InputError(f"{files[0]} is a table of poses, expected a motion log with the load")
    refuse_same(files, found.hashes, seen=run.logs)
    samples = [to_samples(recording, run.filter, settings.max_rows) for recording in found.recordings]
    from_current = any(recording.current is not None for recording in found.recordings) or settings.drive_gains is not None
    return under_load(run, samples), from_current, misread_logs(run, found.recordings, loaded=True)


def payload_from_samples(
    run: Run,
    samples: Sequence[Samples],
    place: Frame | int,
    constraints: Sequence[Constraint] = (),
    tool: ArrayLike | None = None,
    gain_sigma: float = 0.0,
) -> Payload:
    """The same from samples that were filtered as the run was."""
    robot = run.robot
    place = Frame(robot.links[place], place, np.eye(4)) if isinstance(place, int) else place
    parameters = load_parameters(run.robot, place)
    logs = [_rows(run, one, place, tool) for one in samples]
    parts = [matrix_regression(parameters, robot.dof_names, log.rows, timed=True) for log in logs]
    (body,) = estimate_body(reduce(operator.add, parts), ("sdp",), constraints)
    mass_known = known_mass(constraints) is not None
    body = _with_gains(_with_run(body, run, logs, mass_known), gain_sigma, mass_known)
    values = body.estimate.standard.values
    residuals = tuple(
        (
            log.time,
            np.column_stack([block[:, -1] for block in log.rows]),
            np.column_stack([block[:, -1] - block[:, :-1] @ values for block in log.rows]),
        )
        for log in logs
    )
    total = sum(float((log.torque**2).sum()) for log in logs)
    before, after = (float(sum((log[k] ** 2).sum() for log in residuals)) for k in (1, 2))
    without, within = float(np.sqrt(before / total)), float(np.sqrt(after / total))
    return Payload(place, body, without, within, gain_sigma, _warnings(run, body, without, within), residuals)


def online_payload(
    run: Run,
    logs: Sequence[str | Path],
    link: str | Frame | None = None,
    *,
    tool: ArrayLike | None = None,
    block_s: float = 1.0,
    settings: Settings | None = None,
) -> Iterator[OnlineBodyState]:
    """The load block by block, as if the logs came in now; rows are counted by the noise of each joint in the run.

    Args:
        run: identified without the load.
        logs: logs with the load.
        link: frame that carries it.
        tool: ten parameters in the same frame of what is not in the run either.
        block_s: length of a block, s.
        settings: how the logs are read; by default as those of the run were.
    """
    if not (np.isfinite(block_s) and block_s > 0.0):
        raise InputError(f"a block of {block_s:g} s was asked for, expected a positive length")
    place = frame_named(run.robot, link)
    online = OnlineBody(load_parameters(run.robot, place), np.maximum(run.estimate.residual_rms, 1e-9))
    for one in _loaded_samples(run, logs, settings or run.settings)[0]:
        log = _rows(run, one, place, tool)
        period_s = float(np.median(np.diff(log.time)))
        step = max(1, round(block_s / period_s))
        for start in range(0, len(log.time), step):
            part = slice(start, start + step)
            yield online.update_rows([block[part] for block in log.rows], float(log.time[part][-1]))


@dataclass(frozen=True, eq=False)
class _LoadRows:
    """``[Y_F, Y_f, rest]`` of every joint over one log, and its torque, all filtered as the run's rows."""

    time: Array
    rows: tuple[Array, ...]
    torque: Array
    model: tuple[Array, ...]
    """Columns of the run's base parameters."""


def load_parameters(robot: Robot, place: Frame) -> Parameters:
    """Ten parameters of the load and the change of every friction coefficient."""
    changes = tuple(column for column in robot.parameters.columns if column.kind == "friction")
    return Parameters(
        (*inertial_columns(1, place.name), *changes), np.concatenate([np.array(GUESS), np.zeros(len(changes))])
    )


def _rows(run: Run, one: Samples, place: Frame, tool: ArrayLike | None) -> _LoadRows:
    robot = run.robot
    one = with_memory(robot, one)
    assert one.torque is not None
    held = np.zeros(10) if tool is None else matrix("tool", tool, (10,))
    friction = [i for i, column in enumerate(robot.parameters.columns) if column.kind == "friction"]
    Y = torque_regressor(robot, one.position, one.velocity, one.acceleration, one.load, travel=one.travel)
    of_load = Y[:, :, 10 * place.body : 10 * place.body + 10] @ place.into_body
    rest = one.torque - predict(robot, run.estimate.standard, one) - of_load @ held
    n, lift = robot.n_dof, run.estimate.base.lift
    blocks = [np.column_stack([of_load[:, j], Y[:, j, friction], rest[:, j]]) for j in range(n)]
    model = [Y[:, j] @ lift for j in range(n)]
    *rows, beside = _filtered([*blocks, *model, np.column_stack([one.torque, one.time])], one.time, run.filter)
    return _LoadRows(beside[:, -1], tuple(rows[:n]), beside[:, :-1], tuple(rows[n:]))


def _with_run(body: BodyEstimate, run: Run, logs: Sequence[_LoadRows], mass_known: bool) -> BodyEstimate:
    """The covariance with the share of what the run is unsure of; base values that it never saw are those of its prior."""
    free = np.arange(1 if mass_known else 0, logs[0].rows[0].shape[1] - 1)
    weights = 1.0 / np.maximum(body.estimate.residual_rms, 1e-12)
    normal, mixed = np.zeros((len(free), len(free))), np.zeros((len(free), run.estimate.base.n_base))
    for log in logs:
        for weight, rows, model in zip(weights, log.rows, log.model, strict=True):
            A = weight * rows[:, free]
            normal += A.T @ A
            mixed += A.T @ (weight * model)
    scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    into = np.linalg.pinv(normal / np.outer(scale, scale), rcond=1e-10, hermitian=True) @ (mixed / scale[:, None])
    G = np.zeros((10, mixed.shape[1]))
    G[free[free < 10]] = (into / scale[:, None])[free < 10]
    known = np.isfinite(run.estimate.sigma)
    share = G[:, known] @ run.estimate.covariance[np.ix_(known, known)] @ G[:, known].T
    return replace(body, covariance=freeze(body.covariance + share))


def _with_gains(body: BodyEstimate, gain_sigma: float, mass_known: bool) -> BodyEstimate:
    """The covariance with the share of the drive gains; a known mass stays known."""
    if gain_sigma == 0.0:
        return body
    scaled = np.outer(body.phi, body.phi) * gain_sigma**2
    if mass_known:
        scaled[0, :] = scaled[:, 0] = 0.0
    return replace(body, covariance=freeze(body.covariance + scaled))


def _warnings(run: Run, body: BodyEstimate, without: float, within: float) -> tuple[str, ...]:
    """What makes a load doubtful: torque that it leaves unexplained, or that it does not explain at all."""
    found = []
    own = run.identification.relative_error if run.identification is not None else run.estimate.relative_error
    if within > LARGE_SHARE or within > WORSE * own:
        cause = (
            "the load may be on another frame (--frame), or the robot has changed since the run"
            if within > WORSE * own
            else "the model without the load is hardly better: identify it again before the load is trusted"
        )
        found.append(
            f"with the load {100.0 * within:.1f} % of the torque stay unexplained, {100.0 * own:.1f} % in the run itself: {cause}"
        )
    sigma = float(body.sigma[0])
    if not np.isfinite(sigma):
        found.append(
            "the mass is not determined: any explains the torque of these logs alike; give it by --mass, or choose the frame "
            "that carries the load by --frame"
        )
    elif body.mass < 2.0 * sigma or without < 1.05 * within:
        found.append(
            f"no load can be told from noise: {body.mass:.3g} +- {1.96 * sigma:.2g} kg, the torque error falls from "
            f"{100.0 * without:.2f} to {100.0 * within:.2f} %"
        )
    return tuple(found)


def _filtered(blocks: list[Array], time: Array, filtered: Filter | None) -> list[Array]:
    """Rows as the run's rows were filtered; as they are where its signals were."""
    row_filter = None if filtered is None else filtered.row_filter
    if row_filter is None:
        return blocks
    chunks = list(row_filter.over(iter([Chunk([np.asfortranarray(block) for block in blocks], time)])))
    return [np.concatenate(parts) for parts in zip(*(chunk.blocks for chunk in chunks), strict=True)]
