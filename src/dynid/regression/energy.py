"""The energy model of Gautier and Khalil 1992: work of the joint torques against differences of energy.

    y = int_ta^tb v . tau dt = (h(tb) - h(ta)) phi + friction work,    h(q, v) = d(T + U)/d phi            (7-10)

It needs no acceleration. Viscous friction, Coulomb friction, an offset and rotor inertia do the work ``fv int v^2``,
``fc int |v|``, ``fo (q(tb) - q(ta))`` and ``Ia (v(tb)^2 - v(ta)^2) / 2``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.samples import Samples
from dynid.regression.torque import checked_motion, compiled, effect_signals, tree_arrays
from dynid.robot.model import Robot
from dynid.robot.rotors import effect_energy


def kinetic_and_potential(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Regressors of kinetic and potential energy, ``(samples, inertial parameters)`` each."""
    from dynid.regression import kernel

    q, v, _ = checked_motion(robot, q, v, v)
    kinetic = np.empty((len(q), robot.parameters.n_inertial))
    potential = np.empty_like(kinetic)
    compiled(kernel.energy_rows)(q, v, robot.gravity, tree_arrays(robot), kinetic, potential)
    return kinetic, potential


def energy_regressor(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """``h(q, v)`` of the total energy ``h phi``, ``(samples, inertial parameters)``.

    Args:
        robot: its rigid bodies are used, its effects are not.
        q: positions, ``(samples, joints)``.
        v: velocities, ``(samples, joints)``.

    Examples:
        >>> import dynid, numpy as np
        >>> dynid.energy_regressor(dynid.demo_robot(), np.zeros((3, 7)), np.ones((3, 7))).shape
        (3, 70)
    """
    kinetic, potential = kinetic_and_potential(robot, q, v)
    return kinetic + potential


class WorkMeter:
    """Work done since the first sample while samples go by: by every effect per unit of its value, and by the torque."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        n_effects = robot.effect_incidence.shape[1]
        self._total = np.zeros(n_effects + 1)
        self._last: tuple[float, Array] | None = None

    def push(self, samples: Samples) -> Array:
        """``(samples, effect columns + 1)``: trapezoidal integrals up to each sample, exact where energy says it."""
        if samples.torque is None:
            raise InputError("samples hold motion but no torque, so no work can be computed")
        robot, q, v = self._robot, samples.position, samples.velocity
        torque_power = (samples.torque * v).sum(axis=1, keepdims=True)
        if robot.effects:
            signals = effect_signals(robot, q, v, samples.acceleration, samples.load, samples.travel)
            # power of a column: its signal times the speed it acts on
            power = np.hstack([signals * (v @ robot.effect_incidence), torque_power])
        else:
            power = torque_power
        time = samples.time
        if self._last is None:
            before_time, before_power = time[:1], power[:1]
        else:
            before_time, before_power = np.array([self._last[0]]), self._last[1][None]
        steps = 0.5 * np.diff(time, prepend=before_time)[:, None] * (power + np.concatenate([before_power, power[:-1]]))
        work = self._total + np.cumsum(steps, axis=0)
        self._total, self._last = work[-1].copy(), (float(time[-1]), power[-1].copy())
        if robot.effects:
            energy, exact = effect_energy(robot, q, v)  # such as int a v dt = v^2 / 2, so that no acceleration is needed
            work[:, :-1][:, exact] = energy[:, exact]
        return np.asarray(work)


def energy_matrix(robot: Robot, samples: Samples, intervals: ArrayLike) -> Array:
    """``[W y]``, one row per interval, over all parameters of the robot, effects included."""
    pairs = np.asarray(intervals, dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"intervals have shape {pairs.shape}, expected (intervals, 2) of first and last sample")
    if pairs.size and (pairs.min() < 0 or pairs.max() >= len(samples) or (pairs[:, 1] <= pairs[:, 0]).any()):
        raise InputError(f"intervals must be rising pairs of samples 0 to {len(samples) - 1}")
    ends = np.unique(pairs)
    h = energy_regressor(robot, samples.position[ends], samples.velocity[ends])
    both = np.hstack([h, WorkMeter(robot).push(samples)[ends]])
    first, last = np.searchsorted(ends, pairs.T)
    return np.asarray(both[last] - both[first])
