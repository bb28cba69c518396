"""What a fit of mechanisms must beat: each joint follows its command at once, or by a delayed lag of first or second order.

    first order     T q' + q = u(t - d) + b
    second order    q'' / w^2 + 2 z q' / w + q = u(t - d) + b

A lag knows nothing of bodies, so it needs no description; where it rolls out as well as the mechanism, the mechanism explains nothing
that a delay and a time constant do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.signal

from dynid.apps.actuators.comparison import Rollout
from dynid.apps.actuators.model import ActuatorLog, ActuatorModel, ActuatorProblem, first_state
from dynid.arrays import Array, freeze
from dynid.dynamics.inverse_dynamics import inverse_dynamics

NAMES = ("position = command", "first-order lag", "second-order lag")
DELAYS_S = np.arange(0.0, 0.2, 0.02)
"""Delays that the search starts from."""
TIMES_S = (0.005, 0.015, 0.03, 0.06, 0.1, 0.2)
"""Time constants (first order) and reciprocal frequencies (second order) that it starts from."""
DAMPINGS = (0.4, 0.8, 1.5)
REFINED = 60
"""Evaluations of the refinement of one joint."""


@dataclass(frozen=True, eq=False)
class Lags:
    """A delayed lag of every joint.

    Args:
        order: 0 (position = command), 1 or 2.
        time_s: time constant, or the reciprocal of the natural frequency (second order), s, one per joint.
        damping: ratio of damping, second order.
        delay_s: of the command.
        bias: what the joint comes to rest beside its command, rad or m.
    """

    order: int
    time_s: Array
    damping: Array
    delay_s: Array
    bias: Array

    @property
    def name(self) -> str:
        return NAMES[self.order]

    def roll_out(self, log: ActuatorLog) -> Rollout:
        """Follow the commands of a whole log from its first state."""
        sent = log.command.at(log.time, np.zeros(len(self.bias)))
        if self.order == 0:
            return Rollout(log.time, sent, log.position, freeze(sent))
        grid, held, (q, v) = _driven(log, self.delay_s)
        made = np.column_stack(
            [
                np.interp(log.time, grid, _followed(held[:, j] + self.bias[j], q[j], v[j], grid[1] - grid[0], *self._of(j)))
                for j in range(len(self.bias))
            ]
        )
        return Rollout(log.time, sent, log.position, freeze(made))

    def _of(self, j: int) -> tuple[float, float]:
        return float(self.time_s[j]), float(self.damping[j]) if self.order == 2 else 0.0

    def as_json(self) -> dict[str, list[float]]:
        words = ("delay_s", "bias", "time_s", "damping")[: 2 + self.order if self.order else 0]
        return {word: getattr(self, word).tolist() for word in words}


def fitted_lags(logs: Sequence[ActuatorLog]) -> tuple[Lags, Lags, Lags]:
    """The command itself, and the lags of both orders that leave least of the positions of these logs, joint by joint."""
    n = logs[0].position.shape[1]
    zero = freeze(np.zeros(n))
    found = [Lags(0, zero, zero, zero, zero)]
    alone = [[_of_joint(log, j) for log in logs] for j in range(n)]
    for order in (1, 2):
        delay, time_s, damping, bias = np.array([_fitted(one, order) for one in alone]).T
        found.append(Lags(order, freeze(time_s), freeze(damping), freeze(delay), freeze(bias)))
    return found[0], found[1], found[2]


def _of_joint(log: ActuatorLog, j: int) -> ActuatorLog:
    command = replace(log.command, values=log.command.values[:, [j]])
    return replace(log, position=log.position[:, [j]], command=command)


def _driven(log: ActuatorLog, delay_s: Array) -> tuple[Array, Array, tuple[Array, Array]]:
    """An even grid over a log, the mean command of each of its steps, and the first state."""
    h = log.period_s
    grid = log.time[0] + h * np.arange(int(np.ceil((log.time[-1] - log.time[0]) / h - 1e-6)) + 1)
    return grid, log.command.mean(grid + 0.5 * h, h, delay_s), first_state(log)


def _followed(target: Array, q: float, v: float, h: float, time_s: float, damping: float) -> Array:
    """Response to a target that is held over steps of ``h``, from a state; first order where the damping is zero."""
    if damping == 0.0:
        left = float(np.exp(-h / time_s))
        return np.asarray(q + scipy.signal.lfilter([0.0, 1.0 - left], [1.0, -left], target - q))
    w = 1.0 / time_s
    # the step response in closed form over a step, by the matrix exponential of a two by two
    A = np.array([[0.0, 1.0], [-(w**2), -2.0 * damping * w]])
    step = scipy.linalg.expm(A * h)
    gain = np.linalg.solve(A, (step - np.eye(2)) @ np.array([0.0, w**2]))
    trace, det = float(np.trace(step)), float(np.linalg.det(step))
    shape = [1.0, -trace, det]
    # x+ = step x + gain u read at its first row: b1 = gain_0, b2 = step_01 gain_1 - step_11 gain_0
    forced = scipy.signal.lfilter([0.0, gain[0], step[0, 1] * gain[1] - step[1, 1] * gain[0]], shape, target - q)
    kick = np.zeros(len(target))
    kick[0] = v
    return np.asarray(q + forced + scipy.signal.lfilter([0.0, step[0, 1]], shape, kick))


def _fitted(logs: Sequence[ActuatorLog], order: int) -> Array:
    """Delay, time, damping and bias of least squared error for logs of one joint."""
    drawn: dict[float, list[tuple[Array, Array, tuple[Array, Array]]]] = {}

    def error(x: Array) -> Array:
        delay, time_s, bias, damping = float(x[0]), float(np.exp(x[1])), x[2], float(np.exp(x[3])) if order == 2 else 0.0
        if delay not in drawn:
            drawn.clear()
            drawn[delay] = [_driven(log, np.array([delay])) for log in logs]
        parts = [
            np.interp(log.time, grid, _followed(held[:, 0] + bias, q[0], v[0], grid[1] - grid[0], time_s, damping))
            - log.position[:, 0]
            for log, (grid, held, (q, v)) in zip(logs, drawn[delay], strict=True)
        ]
        return np.concatenate(parts)

    size = 2 + order
    low, high = np.array([[0.0, np.log(1e-3), -1.0, np.log(0.1)], [0.3, 0.0, 1.0, np.log(10.0)]])[:, :size]
    trials = []
    for delay, time_s, damping in product(DELAYS_S, TIMES_S, DAMPINGS if order == 2 else (1.0,)):
        start = np.array([delay, np.log(time_s), 0.0, np.log(damping)])[:size]
        missed = error(start)
        start[2] = np.clip(-missed.mean(), low[2], high[2])
        trials.append((float(missed.var()), start))
    start = min(trials, key=lambda one: one[0])[1]
    scale = np.array([0.01, 0.3, 0.01, 0.3])[:size]
    x = scipy.optimize.least_squares(
        error, start, bounds=(low, high), x_scale=scale, diff_step=np.full(size, 1e-4), max_nfev=REFINED
    ).x
    return np.array([x[0], np.exp(x[1]), np.exp(x[3]) if order == 2 else 0.0, x[2]])


STIFFER = (1.0, 4.0, 16.0, 64.0)
"""Gains that are not known are started at what the bodies alone need for the lag's frequency, and at these multiples of it, the rotor
making up for them: all of them move alike, but the stiffer ones sag less under their weight."""
FAST = 3.0
"""Frequency at which a first-order lag is started as a joint of second order, in reciprocals of its time constant."""


def lagging_models(problem: ActuatorProblem, near: ActuatorModel, lags: Sequence[Lags]) -> list[ActuatorModel]:
    """Mechanisms that follow commands as lags do: where a fit starts.

        (M + Ia) w^2 = kp,    kd + fv = 2 z kp / w,    fo = -kp b - g

    Args:
        problem: what is asked; what is known stays.
        near: a model with everything else, such as the linear one.
        lags: of first and second order; that of order 0 gives no model.
    """
    n, robot = problem.robot.n_joints, near.robot
    q = np.concatenate([log.position[:: max(1, len(log.position) // 200)] for log in problem.logs])
    still = np.zeros_like(q)
    weight = inverse_dynamics(robot, q, still, still, effects=False)
    body = np.array(
        [
            np.mean(inverse_dynamics(robot, q, still, still + np.eye(n)[j], effects=False)[:, j] - weight[:, j])
            for j in range(n)
        ]
    )
    stated, given = near.values, problem.logs[0].control
    found = []
    for lag in (one for one in lags if one.order):
        w = 1.0 / lag.time_s if lag.order == 2 else FAST / lag.time_s
        z = lag.damping if lag.order == 2 else np.full(n, 0.5 * FAST)
        for factor in STIFFER if problem.asks("kp") else (1.0,):
            kp = factor * body * w**2 if problem.asks("kp") else stated["kp"] * given.kp
            damping = 2.0 * z * kp / w
            kd = damping if problem.asks("kd") else stated["kd"] * given.kd
            values = {
                "kp": kp / given.kp,
                "kd": kd / np.where(given.kd > 0.0, given.kd, 1.0),
                "Ia": np.maximum(kp / w**2 - body, 0.0),
                "fv": np.maximum(damping - kd, 0.0),
                "fc": np.zeros(n),
                "fo": -kp * lag.bias - weight.mean(axis=0),
                "delay": lag.delay_s if "delay" not in problem.names else np.full(n, np.median(lag.delay_s)),
            }
            asked = {symbol: freeze(value) for symbol, value in values.items() if problem.asks(symbol)}
            found.append(replace(near, values={**stated, **asked}))
    return found
