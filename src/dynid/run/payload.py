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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.body import BodyEstimate, estimate_body, known_mass
from dynid.estimation.constraints.constraints import Constraint
from dynid.estimation.result import Estimate
from dynid.recording.samples import Samples
from dynid.regression.factor import matrix_regression
from dynid.robot.frames import Frame, frame_named
from dynid.run.load_rows import LoadRows, load_parameters, load_rows
from dynid.run.log_paths import log_paths
from dynid.run.logs import read_motion_logs
from dynid.run.misread import misread_logs
from dynid.run.motion import under_load
from dynid.run.options import Settings
from dynid.run.record import Run
from dynid.run.signals import to_samples

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
    samples, from_current, misread = loaded_samples(run, logs, settings or run.settings)
    spread = (GAIN_SIGMA if from_current else 0.0) if gain_sigma is None else float(gain_sigma)
    if not (np.isfinite(spread) and spread >= 0.0):
        raise InputError(f"uncertainty of the gains is {spread:g}, expected zero or a positive share")
    found = payload_from_samples(run, samples, place, constraints, tool, spread)
    return replace(found, warnings=(*misread, *found.warnings))


def loaded_samples(
    run: Run, logs: Sequence[str | Path], settings: Settings
) -> tuple[tuple[Samples, ...], bool, tuple[str, ...]]:
    """Samples of loaded logs, filtered as the run was, whether their torque is made of motor current, and what was misread."""
    if run.filter is None:
        raise InputError("this run was identified from a table of poses: it has no filter and no friction for a loaded log")
    files = log_paths(logs)
    found = read_motion_logs(run.robot, files, settings, "a motion log with the load", seen=run.logs)
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
    logs = [load_rows(run, one, place, tool) for one in samples]
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


def _with_run(body: BodyEstimate, run: Run, logs: Sequence[LoadRows], mass_known: bool) -> BodyEstimate:
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
