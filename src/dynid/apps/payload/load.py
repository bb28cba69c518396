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
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.apps.payload.load_rows import load_parameters, load_rows
from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError
from dynid.estimation.body import BodyEstimate, estimate_body, known_mass
from dynid.estimation.constraints.base import Constraint
from dynid.io.logs.paths import LogInputs, log_paths
from dynid.model.frames import Frame, frame_named
from dynid.pipeline.data import read_motion_logs
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.validate import misread_logs
from dynid.regression.factor import matrix_regression
from dynid.signals.samples import Samples

GAIN_SIGMA = 0.1
"""Relative standard deviation of drive gains of which nothing is said: estimates of one robot's gains differ by that and more."""
LARGE_SHARE = 0.05
"""Share of the torque that may stay unexplained with the load before it is a warning."""
WORSE = 2.0
"""How many times the error of the run the error with the load may be before it is a warning."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Payload(BodyEstimate):
    """A load in the frame that it was asked for: a body, and what it explains of the torque.

    Args:
        frame: where it is.
        relative_error_without: torque error on the loaded logs of the model without the load.
        relative_error_with: the same with it.
        gain_sigma: relative uncertainty of the drive gains that is part of the interval; zero for measured torque.
        warnings: what makes the result doubtful.
        residuals: time, residual without and with the load, ``(rows, joints)``, for each log.
    """

    frame: Frame
    relative_error_without: float
    relative_error_with: float
    gain_sigma: float
    warnings: tuple[str, ...] = ()
    residuals: tuple[tuple[Array, Array, Array], ...] = ()

    @property
    def link(self) -> str:
        """Name of the frame."""
        return self.frame.name

    def as_dict(self) -> dict[str, Any]:
        """What ``dynid payload --json`` prints."""
        return super().as_dict() | {
            "link": self.link,
            "frame": self.link,
            "relative_error": {"without": self.relative_error_without, "with": self.relative_error_with},
            "gain_sigma": self.gain_sigma,
            "warnings": list(self.warnings),
        }


def identify_payload(
    run: IdentificationResult,
    logs: LogInputs,
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
        constraints: what is known of the load, see :func:`dynid.pipeline.known_load.known_load`.
        tool: ten parameters in the same frame of what carries the load and is not in the run either.
        gain_sigma: relative standard deviation of the drive gains; None for 10 % where torque is made of motor current.
        settings: how the logs are read; by default as those of the run were.

    Returns:
        mass in kg, centre of mass in m and inertia in kg m^2 in the frame that carries it, with their standard deviations, and
            whether such a body can exist.

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
    run: IdentificationResult, logs: LogInputs, settings: Settings
) -> tuple[tuple[Samples, ...], bool, tuple[str, ...]]:
    """Samples of loaded logs, filtered as the run was, whether their torque is made of motor current, and what was misread."""
    if run.filter is None:
        raise InputError("this run was identified from a table of poses: it has no filter and no friction for a loaded log")
    files = log_paths(logs)
    found = read_motion_logs(run.robot, files, settings, "a motion log with the load", seen=run.logs)
    samples = found.filtered(run.filter, settings.max_rows).under_load(run.model).windows
    from_current = any(recording.current is not None for recording in found.recordings) or settings.drive_gains is not None
    return samples, from_current, misread_logs(run, found.recordings, loaded=True)


def payload_from_samples(
    run: IdentificationResult,
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
    parts = [matrix_regression(parameters, robot.dof_names, rows.blocks, timed=True) for rows, _ in logs]
    (body,) = estimate_body(reduce(operator.add, parts), ("sdp",), constraints)
    first = 0 if known_mass(constraints) is None else 1  # a known mass stays known
    weights = 1.0 / np.maximum(body.estimate.residual_rms, 1e-12)
    spread = body.covariance + _spread_of_run(run, weights, logs, np.arange(first, len(parameters)))
    spread[first:, first:] += np.outer(body.phi[first:], body.phi[first:]) * gain_sigma**2
    body = replace(body, covariance=freeze(spread))
    values = body.estimate.standard.values
    residuals = tuple(
        (
            np.asarray(rows.time),
            np.column_stack([block[:, -1] for block in rows.blocks]),
            np.column_stack([block[:, -1] - block[:, :-1] @ values for block in rows.blocks]),
        )
        for rows, _ in logs
    )
    total = sum(float((block[:, -1] ** 2).sum()) for _, model in logs for block in model)
    before, after = (float(sum((log[k] ** 2).sum() for log in residuals)) for k in (1, 2))
    without, within = float(np.sqrt(before / total)), float(np.sqrt(after / total))
    return Payload(
        **{one.name: getattr(body, one.name) for one in fields(body)},
        frame=place,
        relative_error_without=without,
        relative_error_with=within,
        gain_sigma=gain_sigma,
        warnings=_warnings(run, body, without, within),
        residuals=residuals,
    )


def _spread_of_run(run: IdentificationResult, weights: Array, logs: Sequence[Any], free: IntArray) -> Array:
    """Share of the covariance that what the run is unsure of has; base values that it never saw are those of its prior."""
    normal, mixed = np.zeros((len(free), len(free))), np.zeros((len(free), run.estimate.base.n_base))
    for rows, models in logs:
        for weight, block, model in zip(weights, rows.blocks, models, strict=True):
            A = weight * block[:, free]
            normal += A.T @ A
            mixed += A.T @ (weight * model[:, :-1])
    scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    into = np.linalg.pinv(normal / np.outer(scale, scale), rcond=1e-10, hermitian=True) @ (mixed / scale[:, None])
    G = np.zeros((10, mixed.shape[1]))
    G[free[free < 10]] = (into / scale[:, None])[free < 10]
    known = np.isfinite(run.estimate.sigma)
    return np.asarray(G[:, known] @ run.estimate.covariance[np.ix_(known, known)] @ G[:, known].T)


def _warnings(run: IdentificationResult, body: BodyEstimate, without: float, within: float) -> tuple[str, ...]:
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
