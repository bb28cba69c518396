"""Energy rows: work of the joint torques over intervals against differences of energy (Gautier and Khalil 1992, 7-10).

    y = int_ta^tb v . tau dt = (h(tb) - h(ta)) phi + friction work,    h(q, v) = d(T + U)/d phi            (7-10)

It needs no acceleration. Viscous friction, Coulomb friction, an offset and rotor inertia do the work ``fv int v^2``,
``fc int |v|``, ``fo (q(tb) - q(ta))`` and ``Ia (v(tb)^2 - v(ta)^2) / 2``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_positive, freeze
from dynid.dynamics.closed_chains import tree_motion
from dynid.dynamics.inverse_dynamics import checked_motion, effect_signals, random_states_within_limits, tree_effect_motion
from dynid.dynamics.joint_effects import effect_energy
from dynid.dynamics.regressors import energy_regressor
from dynid.errors import InputError
from dynid.model.robot import Robot
from dynid.regression.channels import Channel, full_channel
from dynid.regression.factor import Regression, factorise
from dynid.regression.row_source import CHUNK_ROWS, Chunk, SampleRows, matrix_rows
from dynid.signals.reversal_history import pieces_with_memory
from dynid.signals.samples import Samples, SampleStream
from dynid.signals.steps.step import uninterrupted_parts


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
        motion = None
        if robot.effects:
            tree = tree_motion(robot, *checked_motion(robot, q, v, samples.acceleration)) if robot.loops.rubbing else None
            signals = effect_signals(robot, q, v, samples.acceleration, samples.load, tree, travel=samples.travel)
            # power of a column: its signal times the speed it acts on
            speed = v @ robot.effect_incidence
            if tree is not None:
                motion = tree_effect_motion(robot, tree)
                speed = speed + motion.velocity[:, len(robot.driven) :] @ robot.passive_incidence
            power = np.hstack([signals * speed, torque_power])
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
            energy, exact = effect_energy(
                robot, q, v, motion
            )  # such as int a v dt = v^2 / 2, so that no acceleration is needed
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


PER_PARAMETER = 10
"""Intervals per parameter where their length is chosen."""
LEAST_SAMPLES = 10
"""Samples that an interval of chosen length has at least: differences over fewer are mostly noise."""
_TYPICAL_STATES = 200


@dataclass(frozen=True)
class EnergyRows(SampleRows):
    """Energy rows: change of energy over an interval equals work. No acceleration is needed, and torque noise is averaged.

    Args:
        robot: the robot, with its effects.
        samples: one set of samples, or one stream of them, per log.
        interval_s: length of the intervals, which follow one another from the start of every uninterrupted part.
        knots_s: ends of the intervals in every log, instead of a length: those of a designed motion.

    Examples:
        >>> import dynid
        >>> from dynid.regression.energy_rows import EnergyRows
        >>> rows = EnergyRows(dynid.demo_robot(), (dynid.demo_samples(),), interval_s=0.5)
        >>> dynid.factorise(rows).n_rows
        19
    """

    kind = "energy"
    samples: tuple[Samples | SampleStream, ...]
    interval_s: float | None = None
    knots_s: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.interval_s is None) == (self.knots_s is None):
            raise InputError("energy rows need either the length of their intervals or the times of their knots")
        check_positive("interval of the energy rows", self.interval_s, "seconds")
        if self.knots_s is not None:
            knots = np.asarray(self.knots_s, dtype=np.float64)
            if knots.ndim != 1 or len(knots) < 2 or not (np.diff(knots) > 0.0).all():
                raise InputError(f"energy rows got {knots.size} knots, expected at least 2 rising times in seconds")
            object.__setattr__(self, "knots_s", tuple(knots.tolist()))

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        return (full_channel("energy", len(self.robot.parameters)),)

    @property
    def timed(self) -> bool:
        """Intervals of one length follow one another; those between knots may not."""
        return self.knots_s is None

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        step = chunk_rows or CHUNK_ROWS
        rows: list[Array] = []
        times: list[float] = []
        found = False
        for log in self.samples:
            for time, row in self._rows(log):
                rows.append(row)
                times.append(time)
                if len(rows) == step:
                    found = True
                    yield Chunk([np.array(rows, order="F")], np.array(times))
                    rows, times = [], []
        if rows:
            found = True
            yield Chunk([np.array(rows, order="F")], np.array(times))
        if not found:
            raise InputError(f"no interval of {self._words} lies within the samples, so there is no energy row")

    def typical_rows(self) -> tuple[Array, ...]:
        """Energy differences between random states, and the work of effects over an interval at random speeds."""
        robot = self.robot
        q, v, a = random_states_within_limits(robot, _TYPICAL_STATES, seed=2)
        h = energy_regressor(robot, q, v)
        rows = [h[1:] - h[:-1]]
        if robot.effects:
            load = None if robot.loops.rubbing else np.ones_like(v)
            speed = v @ robot.effect_incidence + np.ones((len(v), len(robot.passive_incidence))) @ robot.passive_incidence
            power = effect_signals(robot, q, v, a, load) * speed
            rows.append(self._typical_interval_s * power[1:])
        return (np.hstack(rows),)

    @property
    def _typical_interval_s(self) -> float:
        if self.interval_s is not None:
            return self.interval_s
        assert self.knots_s is not None
        return float(np.median(np.diff(self.knots_s)))

    @property
    def _words(self) -> str:
        if self.interval_s is not None:
            return f"{self.interval_s:g} s"
        assert self.knots_s is not None
        return f"the {len(self.knots_s)} knots from {self.knots_s[0]:g} s to {self.knots_s[-1]:g} s"

    def _rows(self, log: Samples | SampleStream) -> Iterator[tuple[float, Array]]:
        """Middle of every interval and ``[W y]`` of it."""
        for period_s, part in uninterrupted_parts(pieces_with_memory(self.robot, log), even=False):
            meter = WorkMeter(self.robot)
            last: tuple[float, Array] | None = None
            due: float | None = None
            for piece in part:
                work = meter.push(piece)
                ends, due = self._ends(piece.time, due, 0.5 * period_s)  # an end may come half a period early
                if not len(ends):
                    continue
                both = np.hstack([energy_regressor(self.robot, piece.position[ends], piece.velocity[ends]), work[ends]])
                for time, state in zip(piece.time[ends].tolist(), both, strict=True):
                    if last is not None:
                        yield 0.5 * (last[0] + time), state - last[1]
                    last = (time, state)

    def _ends(self, time: Array, due: float | None, half: float) -> tuple[Array, float | None]:
        """Samples of a piece at which intervals end, and when the next one is due."""
        if self.knots_s is not None:
            knots = np.asarray(self.knots_s)
            inside = knots[(knots >= time[0] - half) & (knots < time[-1] + half)]
            return np.unique(np.abs(time[None, :] - inside[:, None]).argmin(axis=1)) if len(inside) else np.zeros(
                0, int
            ), None
        assert self.interval_s is not None
        start = float(time[0]) if due is None else due
        wanted = np.arange(start, float(time[-1]) + half, self.interval_s)
        if not len(wanted):
            return np.zeros(0, dtype=int), start
        found = np.searchsorted(time, wanted - half)
        found = found[found < len(time)]
        return np.unique(found), start + len(found) * self.interval_s


def chosen_interval_s(n_parameters: int, durations_s: Sequence[float], periods_s: Sequence[float]) -> float:
    """Length that gives about ten intervals per parameter, but no fewer than ten samples an interval."""
    return max(sum(durations_s) / (PER_PARAMETER * n_parameters), LEAST_SAMPLES * max(periods_s))


def energy_regression(robot: Robot, samples: Samples | Sequence[Samples], intervals: ArrayLike | None = None) -> Regression:
    """Regression of energy differences over intervals of samples; one channel, no joints.

    Args:
        robot: the robot, with its effects.
        samples: one set of samples, or several.
        intervals: pairs of sample indices; None to cut each set into intervals of equal length, ten per parameter, but of at
            least ten samples each.

    Returns:
        one triangle of all intervals, the work in J.

    Examples:
        >>> import dynid
        >>> data = dynid.energy_regression(dynid.demo_robot(), dynid.demo_samples(), [[0, 400], [400, 999]])
        >>> data.n_rows
        2
    """
    sets = [samples] if isinstance(samples, Samples) else list(samples)
    if intervals is not None and len(sets) != 1:
        raise InputError(f"intervals were given for one set of samples, {len(sets)} sets were given")
    if intervals is not None:
        matrix = freeze(energy_matrix(robot, sets[0], intervals))
        return factorise(replace(matrix_rows(robot.parameters, ["energy"], [matrix], kind="energy"), robot=robot))
    shortest = min(len(one) for one in sets)
    if shortest < LEAST_SAMPLES:
        raise InputError(f"{shortest} samples are too few for the energy model, expected at least {LEAST_SAMPLES}")
    periods = [one.duration_s / (len(one) - 1) for one in sets]
    length = chosen_interval_s(len(robot.parameters), [one.duration_s for one in sets], periods)
    return factorise(EnergyRows(robot, tuple(sets), interval_s=length))
