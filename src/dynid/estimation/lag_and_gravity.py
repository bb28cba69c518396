"""Delay of torque and direction of gravity, found beside everything else that the rows show, with their intervals.

Both are nonlinear, but nearly linear: torque that is late by ``d`` lacks ``-d`` times its rate, gravity that leans adds the torque of
two directions across it. Their values are found beside the model, torque and gravity are moved by them, and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import with_transmitted_load
from dynid.errors import InputError
from dynid.estimation.held_out import HeldOut
from dynid.estimation.model_extensions import gravity_columns, lag_columns
from dynid.model.robot import Robot
from dynid.regression.row_filter import RowFilter
from dynid.signals.samples import Samples
from dynid.signals.steps.clock import nominal_period_s

ROUNDS = 6
SETTLED = 0.05
"""Standard deviations below which a further step changes nothing."""
LEAST_SHARE = 0.2
"""Part of a delay that friction fitted beside it leaves to be seen, at least."""
OF_A_PERIOD = 0.05
"""Part of the sampling period that a delay is known to at best, as a standard deviation: dry friction turns between two samples, and where
it does so moves the delay by as much, in all joints alike (measured with known truth, see ``docs/truth.md``)."""
SURE = 1.96
"""Standard deviations on either side in a 95 % interval."""


@dataclass(frozen=True, eq=False)
class LagAndGravity:
    """By how much torque is late, and where gravity points."""

    delay_s: float
    delay_sigma: float
    gravity: Array
    degrees: float
    """By which gravity is turned from the description."""
    degrees_sigma: float

    def delay_note(self) -> str:
        low, high = (1e3 * (self.delay_s + side * SURE * self.delay_sigma) for side in (-1.0, 1.0))
        return (
            f"torque is logged {1e3 * self.delay_s:.3g} ms later than position in all joints alike (95 %: {low:.3g} to {high:.3g} ms), "
            f"which was undone: --torque-delay {self.delay_s:.6g}"
        )

    def gravity_note(self) -> str:
        low, high = (max(self.degrees + side * SURE * self.degrees_sigma, 0.0) for side in (-1.0, 1.0))
        direction = ",".join(f"{value + 0.0:.5g}" for value in self.gravity)
        return (
            f"gravity in the base frame is turned by {self.degrees:.3g} degrees from the description (95 %: {low:.3g} to {high:.3g}), "
            f"which was taken: --gravity={direction}"
        )


def find_lag_and_gravity(
    robot: Robot,
    samples: Sequence[Samples],
    row_filter: RowFilter | None,
    *,
    lag: bool,
    gravity: bool,
    with_friction: Sequence[Callable[[Robot, Sequence[Samples]], Robot]],
) -> LagAndGravity:
    """The delay of all torque and the direction of gravity that explain the rows best; what is not asked for stays.

    Args:
        robot: as described.
        samples: motion and torque.
        row_filter: the filter of the rows.
        lag: whether the delay is sought.
        gravity: whether the direction is.
        with_friction: each gives a robot its friction with the numbers inside that fit samples best; numbers fitted to torque that is
            late would hide a part of the delay. One after the other is taken until values settle: a model with a memory would hide all
            of a long delay, a model without one is biased where friction has one.
    """
    described, size = robot.gravity.copy(), float(np.linalg.norm(robot.gravity))
    if gravity and (not size or robot.loops):
        raise InputError(
            "--gravity auto needs a robot that gravity loads and without closed chains, whose direction rows show"
        )
    delay, sigma = 0.0, np.zeros(3)
    for rubbing in with_friction:
        last: float | None = None
        moved_by, share = 0.0, 1.0
        for _ in range(ROUNDS):
            moved = [_earlier(one, delay) for one in samples]
            step, sigma, across = _step(rubbing(robot, moved), moved, row_filter, lag, gravity)
            settled = bool((np.abs(step) <= SETTLED * sigma).all())
            if last is not None and last != step[0]:  # what friction, fitted in between, hides of each step
                share = float(np.clip((last - step[0]) / moved_by, LEAST_SHARE, 1.0))
            step[0], sigma[0], last = step[0] / share, sigma[0] / share, float(step[0])
            moved_by = float(step[0])
            delay += moved_by
            turned = robot.gravity + step[1:] @ across
            robot = robot.with_gravity(turned * (size / np.linalg.norm(turned))) if gravity else robot
            if settled:
                break
    turn = np.cross(described, robot.gravity)
    angle = float(np.rad2deg(np.arctan2(np.linalg.norm(turn), described @ robot.gravity)))
    spread = float(np.rad2deg(np.sqrt(0.5 * (sigma[1:] ** 2).sum()) / size)) if size else 0.0
    known_to = OF_A_PERIOD * max(nominal_period_s(one.time) for one in samples) if lag else 0.0
    return LagAndGravity(delay, float(np.hypot(sigma[0], known_to)), robot.gravity, angle, spread)


def _step(
    robot: Robot, samples: Sequence[Samples], row_filter: RowFilter | None, lag: bool, gravity: bool
) -> tuple[Array, Array, Array]:
    """Delay and two parts of gravity across it that rows ask for, their deviations, and the directions of the parts ``(2, 3)``."""
    held = HeldOut.of(robot, [with_transmitted_load(robot, one) for one in samples], row_filter)
    if held is None:
        raise InputError(
            "the logs are too short to find --torque-delay auto or --gravity auto: give longer ones, or numbers"
        )
    held = held.coarse()
    across = np.linalg.svd(robot.gravity[None])[2][1:]
    parts = ([lag_columns(held)] if lag else []) + ([gravity_columns(held, across)] if gravity else [])
    columns = {j: np.column_stack([own[:, j] for part in parts for own in part]) for j in range(held.n_joints)}
    found = held.values_of(columns)
    if found is None:
        raise InputError("this motion does not show what --torque-delay auto or --gravity auto ask for: give numbers")
    step, sigma = np.zeros(3), np.zeros(3)
    place = [0] * lag + [1, 2] * gravity
    step[place], sigma[place] = found
    return step, sigma, across


def _earlier(one: Samples, delay_s: float) -> Samples:
    """Samples whose torque is that of a later time."""
    if delay_s == 0.0:
        return one
    torque = np.asarray(one.torque)
    return one.with_torque(np.column_stack([np.interp(one.time + delay_s, one.time, own) for own in torque.T]))
