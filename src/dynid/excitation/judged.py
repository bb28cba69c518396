"""A motion judged: singular values of its base regressor, margins of all that will be played, and what scripts read of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from dynid.adapters.blas import one_blas_thread
from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.excitation.criteria import condition_number
from dynid.excitation.limits import Limits, Margins, margins_of
from dynid.excitation.ramps import rest_to_rest
from dynid.excitation.shape import SequenceTrajectory, Trajectory
from dynid.regression.base import BaseReduction
from dynid.regression.torque import torque_regressor
from dynid.robot.model import Robot

MEASURE_HZ = 100.0
"""Rate at which a finished motion is judged."""

BROKEN = 1e-6
"""Share of a limit by which a finished motion may exceed it: rounding."""


@dataclass(frozen=True)
class EnergyModel:
    """The matrix ``W`` of energy differences between optimal points."""

    condition_number: float
    scaling: float
    """``S``: largest over smallest entry that is not zero."""
    n_rows: int
    n_columns: int
    """Base parameters of rigid bodies and rotor inertias."""


@dataclass(frozen=True, eq=False)
class Excitation:
    """A designed motion and its properties.

    Args:
        robot: for which it was designed.
        base: the base parameters.
        limits: the limits that it keeps.
        criterion: what was made small.
        condition_number_scaled: condition number after scaling every column to length one.
        singular_values: of the base regressor.
        margins: smallest fraction of each limit that is left.
        seconds: time spent on the design, s.
        seed: of the random starts.
        model: rows that were designed: ``torque`` or ``energy``.
        notes: sentences for the user.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch"])
        >>> found = dynid.design_excitation(robot, shape=dynid.FourierShape(5.0, 2), seconds=1.0, starts=1, engine="serial")
        >>> isinstance(found, dynid.Excitation), found.condition_number > 1.0
        (True, True)
    """

    robot: Robot
    base: BaseReduction
    trajectory: Trajectory
    """The motion that is judged: one period where it repeats."""
    playable: Trajectory
    """What is to be played: the same with ramps from and to rest, if they were asked for."""
    limits: Limits
    criterion: str
    condition_number: float
    """2-norm, of the base regressor in the default grouping, unscaled, at 100 Hz."""
    condition_number_scaled: float
    singular_values: Array
    trace_of_inverse: float
    """``sqrt(trace((W^T W)^-1))``: standard error of all base parameters together per unit of torque noise."""
    margins: Margins
    seconds: float
    seed: int
    starts: tuple[float, ...] = ()
    """Condition number that each start reached before the best were finished."""
    model: str = "torque"
    energy: EnergyModel | None = None
    """What was designed, for a motion through optimal points."""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What scripts rely on; ``knots`` are the times of the points of a design through points, null for other shapes."""
        judged, more = (self.condition_number, self.base.n_base), {}
        if self.energy is not None:  # what was designed is the matrix of the energy model
            judged = self.energy.condition_number, self.energy.n_columns
            more = {
                "torque_condition_number": self.condition_number,
                "scaling": self.energy.scaling,
                "n_rows": self.energy.n_rows,
            }
        knots = self.playable.point_times_s
        return {
            "condition_number": judged[0],
            "condition_number_scaled": self.condition_number_scaled,
            "criterion": self.criterion,
            "model": self.model,
            "seconds": self.seconds,
            "margins": self.margins.as_json(),
            "n_base": self.base.n_base,
            "n_columns": judged[1],
            "duration_s": self.playable.duration_s,
            "knots": None if knots is None else knots.tolist(),
            "seed": self.seed,
            "notes": list(self.notes),
            **more,
        }

    def in_words(self) -> str:
        """The condition number and of which matrix it is."""
        torque = f"condition number {self.condition_number:.4g} of the torque model ({self.base.n_base} base parameters)"
        if self.energy is None:
            return torque
        return (
            f"condition number {self.energy.condition_number:.4g} of the energy model ({self.energy.n_rows} rows, "
            f"{self.energy.n_columns} base parameters), scaling S {self.energy.scaling:.4g}; {torque}"
        )


def finished_excitation(
    robot: Robot,
    base: BaseReduction,
    trajectory: Trajectory,
    limits: Limits,
    *,
    criterion: str,
    rest: bool,
    periods: int,
    n_times: int,
    began: float,
    seed: int,
    starts: tuple[float, ...] = (),
    notes: Sequence[str] = (),
    **more: Any,
) -> Excitation:
    """A motion judged: singular values of its base regressor and margins of all that will be played."""
    playable: Trajectory = trajectory
    if rest:
        playable = rest_to_rest(robot, trajectory, limits, periods)
        trajectory = next(piece for piece in playable.pieces if isinstance(piece, type(trajectory)))  # begun elsewhere
    elif periods > 1:
        if not trajectory.closed:
            raise InputError(
                f"a motion that ends in another pose than it starts cannot be repeated {periods} times; design it with --rest"
            )
        playable = SequenceTrajectory((trajectory,) * periods)
    with one_blas_thread():
        R = np.asarray(np.linalg.qr(base_regressor(robot, base, trajectory), mode="r"))
        singular = np.linalg.svd(R, compute_uv=False)
        condition_scaled = condition_number(R, scaled=True)  # columns of R are as long as those of W
    share = playable.duration_s / trajectory.duration_s
    margins = margins_of(robot, playable, limits, int(np.ceil(n_times * share)))
    if margins.smallest < -BROKEN:
        name, worst = min(margins.items(), key=lambda item: item[1].value)
        raise InputError(
            f"the motion exceeds the limit of {name.replace('_', ' ')} by {-100.0 * worst.value:.2g} % at {worst.time_s:.3f} s "
            f"({worst.where}); no such motion is written"
        )
    return Excitation(
        robot=robot,
        base=base,
        trajectory=trajectory,
        playable=playable,
        limits=limits,
        criterion=criterion,
        condition_number=float(singular[0] / singular[-1]) if singular[-1] > 0.0 else np.inf,
        condition_number_scaled=condition_scaled,
        singular_values=freeze(singular),
        trace_of_inverse=float(np.sqrt((1.0 / singular**2).sum())) if singular[-1] > 0.0 else np.inf,
        margins=margins,
        seconds=monotonic() - began,
        seed=seed,
        starts=starts,
        notes=tuple(notes),
        **more,
    )


def base_regressor(robot: Robot, base: BaseReduction, trajectory: Trajectory, rate_hz: float = MEASURE_HZ) -> Array:
    """``W``: the base regressor of one run through a motion, its end left out so that a period is counted once."""
    n = max(round(trajectory.duration_s * rate_hz), 200)
    time = np.arange(n) * (trajectory.duration_s / n)
    Y = torque_regressor(robot, *trajectory.evaluate(time))
    flat = Y.reshape(-1, Y.shape[2])
    return flat[:, base.independent] if base.independent is not None else flat @ base.lift
