"""The energy model of Gautier and Khalil 1992: work of the joint torques against differences of energy.

    y = int_ta^tb v . tau dt = (h(tb) - h(ta)) phi + friction work,    h(q, v) = d(T + U)/d phi            (7-10)

It needs no acceleration. Viscous friction, Coulomb friction, an offset and rotor inertia do the work ``fv int v^2``,
``fc int |v|``, ``fo (q(tb) - q(ta))`` and ``Ia (v(tb)^2 - v(ta)^2) / 2``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.samples import Samples
from dynid.regression.factor import Regression, matrix_regression
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
    """``h(q, v)``: total energy is ``h phi``; ``(samples, inertial parameters)``."""
    kinetic, potential = kinetic_and_potential(robot, q, v)
    return kinetic + potential


def energy_matrix(robot: Robot, samples: Samples, intervals: ArrayLike) -> Array:
    """``[W y]``, one row per interval, over all parameters of the robot, effects included."""
    if samples.torque is None:
        raise InputError("samples hold motion but no torque, so no work can be computed")
    pairs = np.asarray(intervals, dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"intervals have shape {pairs.shape}, expected (intervals, 2) of first and last sample")
    if pairs.size and (pairs.min() < 0 or pairs.max() >= len(samples) or (pairs[:, 1] <= pairs[:, 0]).any()):
        raise InputError(f"intervals must be rising pairs of samples 0 to {len(samples) - 1}")
    first, last = pairs.T
    q, v = samples.position, samples.velocity
    ends = np.unique(pairs)
    h = energy_regressor(robot, q[ends], v[ends])
    place = {int(sample): i for i, sample in enumerate(ends)}
    start, stop = [place[int(i)] for i in first], [place[int(i)] for i in last]
    blocks = [h[stop] - h[start]]
    if robot.effects:
        signals = effect_signals(robot, q, v, samples.acceleration, samples.load)
        power = signals * (v @ robot.effect_incidence)  # power of a column: its signal times the speed it acts on
        work = _running_integral(samples.time, power)
        energy, exact = effect_energy(robot, q, v)  # such as int a v dt = v^2 / 2, so that no acceleration is needed
        work[:, exact] = energy[:, exact]
        blocks.append(work[last] - work[first])
    y = _running_integral(samples.time, (samples.torque * v).sum(axis=1, keepdims=True))
    return np.hstack([*blocks, y[last] - y[first]])


def energy_regression(robot: Robot, samples: Samples | Sequence[Samples], intervals: ArrayLike | None = None) -> Regression:
    """Factor of energy differences over intervals of samples; one channel, no joints.

    ``intervals`` are pairs of sample indices; by default each set of samples is cut into stretches of equal length, as many
    as ten per parameter, but of at least ten samples.
    """
    sets = [samples] if isinstance(samples, Samples) else list(samples)
    if intervals is not None and len(sets) != 1:
        raise InputError(f"intervals were given for one set of samples, {len(sets)} sets were given")
    matrices = []
    for one in sets:
        pairs = default_intervals(len(one), len(robot.parameters)) if intervals is None else intervals
        matrices.append(energy_matrix(robot, one, pairs))
    return matrix_regression(robot.parameters, ["energy"], [np.vstack(matrices)])


def default_intervals(n_samples: int, n_parameters: int) -> Array:
    """Consecutive stretches of at least ten samples, at most ten per parameter."""
    n = min(10 * n_parameters, n_samples // 10)
    if n < 1:
        raise InputError(f"{n_samples} samples are too few for the energy model, expected at least 10")
    ends = np.linspace(0, n_samples - 1, n + 1).astype(np.int64)
    return np.column_stack([ends[:-1], ends[1:]])


def _running_integral(time: Array, values: Array) -> Array:
    """Trapezoidal integral from the first sample to each."""
    steps = 0.5 * np.diff(time)[:, None] * (values[1:] + values[:-1])
    return np.vstack([np.zeros((1, values.shape[1])), np.cumsum(steps, axis=0)])
