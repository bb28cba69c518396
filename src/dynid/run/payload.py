"""A tool's or load's ten parameters: what torque with the load has more than the model without it.

    tau_loaded - tau_model(q, v, a) = Y_n(q, v, a) phi_load + Y_f(q, v) d_friction,

``Y_n`` the columns of the link that carries the load. The model is that of an earlier run without the load. Friction changes with
load and temperature, so its change is estimated along; rotor inertia does not change.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Estimate
from dynid.inertia import is_consistent, mass_com_inertia
from dynid.parameters import Parameters, inertial_columns
from dynid.recording.recording import StaticRecording
from dynid.recording.samples import Samples
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression, matrix_regression
from dynid.regression.memory import with_memory
from dynid.regression.source import Chunk
from dynid.regression.torque import torque_regressor
from dynid.run.logs import read_logs, refuse_same
from dynid.run.motion import under_load
from dynid.run.record import Run
from dynid.run.signals import Filter, to_samples
from dynid.validation.torque import predict

_GUESS = np.array([1.0, 0.0, 0.0, 0.0, 2e-3, 0.0, 2e-3, 0.0, 0.0, 2e-3])
"""A kilogram of a few centimetres: what is not seen of the load stays near it."""


@dataclass(frozen=True, eq=False)
class Payload:
    """A load in the frame of the link that carries it."""

    link: str
    mass: float
    com: Array
    inertia: Array
    """About the load's own centre of mass, in the link's axes."""
    sigma: Array
    """Standard deviation of the ten parameters ``m mx my mz Ixx Ixy Iyy Ixz Iyz Izz``."""
    phi: Array
    feasible: bool
    relative_error_without: float
    """Torque error on the loaded log of the model without the load."""
    relative_error_with: float
    estimate: Estimate


def identify_payload(run: Run, logs: Sequence[str | Path], link: str | None = None) -> Payload:
    """The load that a robot carries in some logs, from a run without it.

    Args:
        run: identified without the load.
        logs: logs with the load.
        link: link that carries it; None for the last one.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0))
        >>> loaded = dynid.demo_robot()
        >>> loaded = loaded.with_parameters({"m7": loaded.parameters["m7"] + 2.0})
        >>> _ = dynid.write_recording(dynid.demo_recording(loaded, seed=1), "loaded.csv")
        >>> 1.8 < dynid.identify_payload(run, ["loaded.csv"]).mass < 2.2
        True
    """
    if run.filter is None:
        raise InputError("this run was identified from a table of poses: it has no filter and no friction for a loaded log")
    if link is not None and link not in run.robot.links:
        from dynid.errors import UnknownNameError

        raise UnknownNameError("link", link, run.robot.links, f"robot '{run.robot.name}'")
    files = [Path(log) for log in logs]
    found = read_logs(run.robot, files, run.settings)
    if isinstance(found, StaticRecording):
        raise InputError(f"{files[0]} is a table of poses, expected a motion log with the load")
    refuse_same(files, found.hashes, seen=[digest for _, digest in run.logs])
    samples = [to_samples(recording, run.filter, run.settings.max_rows) for recording in found.recordings]
    body = run.robot.n_joints - 1 if link is None else run.robot.links.index(link)
    return payload_from_samples(run, under_load(run, samples), body)


def payload_from_samples(run: Run, samples: Sequence[Samples], body: int) -> Payload:
    """The same from samples that were filtered as the run was."""
    robot = run.robot
    friction = [i for i, column in enumerate(robot.parameters.columns) if column.kind == "friction"]
    columns = [*range(10 * body, 10 * body + 10), *friction]
    changes = tuple(robot.parameters.columns[i] for i in friction)
    guess = np.concatenate([_GUESS, np.zeros(len(friction))])
    parameters = Parameters((*inertial_columns(1, robot.links[body]), *changes), guess)
    parts: list[Regression] = []
    total, before = 0.0, 0.0
    for one in samples:
        one = with_memory(robot, one)
        assert one.torque is not None
        rest = one.torque - predict(robot, run.estimate.standard, one)
        Y = torque_regressor(robot, one.position, one.velocity, one.acceleration, one.load, travel=one.travel)[:, :, columns]
        blocks = [*(np.column_stack([Y[:, j], rest[:, j]]) for j in range(robot.n_dof)), one.torque]
        *rows, torque = _filtered(blocks, one.time, run.filter)
        parts.append(matrix_regression(parameters, robot.dof_names, rows, timed=True))
        total += float((torque**2).sum())
        before += sum(float((block[:, -1] ** 2).sum()) for block in rows)
    regression = reduce(operator.add, parts)
    base = BaseReduction.from_matrix(np.eye(len(parameters)), parameters.names)
    result = estimate(regression, base, FeasibleSDP(weighted=True, effects_positive=False))
    phi = result.standard.values[:10]
    mass, com, inertia = mass_com_inertia(phi)
    left = sum(
        float(np.linalg.norm(matrix[:, -1] - matrix[:, :-1] @ result.standard.values) ** 2)
        for matrix in (regression.channel_matrix(j) for j in range(robot.n_dof))
    )
    return Payload(
        link=robot.links[body],
        mass=float(mass),
        com=freeze(com),
        inertia=freeze(inertia),
        sigma=freeze(result.sigma[:10]),
        phi=freeze(phi),
        feasible=bool(is_consistent(phi)),
        relative_error_without=float(np.sqrt(before / total)),
        relative_error_with=float(np.sqrt(left / total)),
        estimate=result,
    )


def _filtered(blocks: list[Array], time: Array, filtered: Filter | None) -> list[Array]:
    """Rows as the run's rows were filtered; as they are where its signals were."""
    row_filter = None if filtered is None else filtered.row_filter
    if row_filter is None:
        return blocks
    chunks = list(row_filter.over(iter([Chunk([np.asfortranarray(block) for block in blocks], time)])))
    return [np.concatenate(parts) for parts in zip(*(chunk.blocks for chunk in chunks), strict=True)]
