"""What is kept of the logs of one robot, day and condition: everything that identification needs, and no row.

Triangles ``R_j`` of ``[W tau]`` for the parameters, the noise ``N_j`` of their columns for uncertainty (both add up over days),
the residual of the day's own fit for the weights of the joints, and the error of a part that was held out.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.weighted import settled_weights
from dynid.estimation.seen import DATA_TOLERANCE
from dynid.estimation.uncertainty import noise_grams
from dynid.fleet.made import Made
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel
from dynid.regression.factor import Factor, Regression


@dataclass(frozen=True)
class Key:
    """Which robot, on which day, under which conditions."""

    robot: str
    day: datetime.date
    condition: Mapping[str, str]

    def __post_init__(self) -> None:
        if not self.robot.strip():
            raise InputError("--robot-id is empty, expected a name such as R17")
        object.__setattr__(self, "condition", MappingProxyType(dict(sorted(self.condition.items()))))

    def __reduce__(self) -> tuple[type[Key], tuple[str, datetime.date, dict[str, str]]]:
        """To another process: a read-only mapping does not travel."""
        return Key, (self.robot, self.day, dict(self.condition))

    def describe(self) -> str:
        conditions = "".join(f", {name}={value}" for name, value in self.condition.items())
        return f"robot {self.robot}, {self.day.isoformat()}{conditions}"


@dataclass(frozen=True, eq=False)
class Entry:
    """One row of a store."""

    key: Key
    logs: tuple[tuple[str, str], ...]
    """Name and hash of every log."""
    rows: tuple[int, ...]
    """Rows of each channel."""
    triangles: tuple[Array, ...]
    noise: tuple[Array, ...]
    """``N_j`` over the own columns of each channel."""
    noise_freedom: float
    residual: Array
    """Sum of squares that the day's own weighted fit leaves of each channel."""
    freedom: Array
    """Rows of each channel less the values that were fitted to them."""
    torque_energy: Array
    """Sum of squares of the torque of each channel."""
    held_out_residual: Array
    """Sum of squares that a fit to the first part of each log leaves of the rest; NaN where a part is too short."""
    held_out_energy: Array
    seconds: float
    low: Array
    high: Array
    speed: Array
    """Lowest and highest position and largest speed of each joint."""

    def factors(self, channels: Sequence[Channel]) -> list[Factor]:
        """The triangles as factors of these channels."""
        return [
            Factor(channel, freeze(triangle[None]), freeze([count], np.int64))
            for channel, triangle, count in zip(channels, self.triangles, self.rows, strict=True)
        ]

    @property
    def held_out_error(self) -> float:
        """Error of the held-out part, all channels together."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.sqrt(self.held_out_residual.sum() / self.held_out_energy.sum()))


def make_entry(key: Key, logs: Sequence[tuple[str, str]], made: Made, base: BaseReduction) -> Entry:
    """What is kept of the rows of some logs, from what was made of them."""
    regression = made.regression
    problem = LinearProblem.of(regression, base, regression.parameters)
    weights, beta, _ = settled_weights(problem)
    grams, noise_freedom = noise_grams(problem, beta, weights)
    rows = problem.rows()
    left, size = _held_out(made, base, weights)
    motion = made.motion
    return Entry(
        key=key,
        logs=tuple(logs),
        rows=tuple(factor.n_rows for factor in regression.factors),
        triangles=tuple(factor.R for factor in regression.factors),
        noise=tuple(freeze(gram) for gram in grams),
        noise_freedom=noise_freedom,
        residual=freeze(problem.residual_norms(beta) ** 2),
        freedom=freeze(np.maximum(rows - problem.seen.rank * rows / max(rows.sum(), 1.0), 1.0)),
        torque_energy=freeze(regression.torque_norms**2),
        held_out_residual=left,
        held_out_energy=size,
        seconds=made.seconds,
        low=freeze(motion.lowest),
        high=freeze(motion.highest),
        speed=freeze(np.maximum(-motion.slowest, motion.fastest)),
    )


def _held_out(made: Made, base: BaseReduction, weights: Array) -> tuple[Array, Array]:
    """Squares left of the last part of every log by a fit to the first, and the squares of its torque."""
    known, unseen = made.known, made.unseen
    if known is None or unseen is None:  # too short for two parts: it is kept without this error
        missing = freeze(np.full(len(weights), np.nan))
        return missing, missing
    stacked = known.stacked(base, weights)
    A, b = stacked[:, :-1], stacked[:, -1]
    size = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    beta = np.linalg.lstsq(A / size, b, rcond=DATA_TOLERANCE)[0] / size
    left = [
        matrix[:, -1] - matrix[:, :-1] @ beta for matrix in (unseen.channel_matrix(j, base) for j in range(len(weights)))
    ]
    return freeze([float(one @ one) for one in left]), freeze(unseen.torque_norms**2)


def merged(entries: Sequence[Entry], channels: Sequence[Channel], parameters: Parameters) -> Regression:
    """All entries as one regression, one block each."""
    if not entries:
        raise InputError("no row of the store was chosen, expected at least one")
    each = [entry.factors(channels) for entry in entries]
    factors = [
        replace(
            own[0],
            blocks=freeze(np.concatenate([one.blocks for one in own])),
            rows=freeze(np.concatenate([one.rows for one in own]), np.int64),
        )
        for own in zip(*each, strict=True)
    ]
    return Regression(parameters, tuple(factors))
