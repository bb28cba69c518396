"""Energy rows: work of the joint torques over intervals against differences of energy (Gautier and Khalil 1992, 7-10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.parameters import Parameters
from dynid.recording.parts import uninterrupted_parts
from dynid.recording.samples import Samples, SampleStream, joined_samples
from dynid.regression.channels import Channel, full_channel
from dynid.regression.energy import WorkMeter, energy_matrix, energy_regressor
from dynid.regression.factor import Regression, factorise
from dynid.regression.matrix_rows import matrix_rows
from dynid.regression.memory import pieces_with_memory
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.source import CHUNK_ROWS, Chunk, Rows
from dynid.regression.torque import effect_signals
from dynid.robot.effects import Effect
from dynid.robot.model import Robot

PER_PARAMETER = 10
"""Intervals per parameter where their length is chosen."""
LEAST_SAMPLES = 10
"""Samples that an interval of chosen length has at least: differences over fewer are mostly noise."""
_TYPICAL_STATES = 200


@dataclass(frozen=True)
class EnergyRows(Rows):
    """Energy rows: change of energy over an interval equals work. No acceleration is needed, and torque noise is averaged.

    Args:
        robot: the robot, with its effects.
        samples: one set of samples, or one stream of them, per log.
        interval_s: length of the intervals, which follow one another from the start of every uninterrupted part.
        knots_s: ends of the intervals in every log, instead of a length: those of a designed motion.

    Examples:
        >>> import dynid
        >>> rows = dynid.EnergyRows(dynid.demo_robot(), (dynid.demo_samples(),), interval_s=0.5)
        >>> dynid.rows.factorise(rows).n_rows
        19
    """

    kind = "energy"
    robot: Robot
    samples: tuple[Samples | SampleStream, ...]
    interval_s: float | None = None
    knots_s: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", tuple(self.samples))
        if not self.samples:
            raise InputError("a regression needs at least one set of samples")
        if (self.interval_s is None) == (self.knots_s is None):
            raise InputError("energy rows need either the length of their intervals or the times of their knots")
        if self.interval_s is not None and not (np.isfinite(self.interval_s) and self.interval_s > 0.0):
            raise InputError(f"interval of the energy rows is {self.interval_s} s, expected a positive number")
        if self.knots_s is not None:
            knots = np.asarray(self.knots_s, dtype=np.float64)
            if knots.ndim != 1 or len(knots) < 2 or not (np.diff(knots) > 0.0).all():
                raise InputError(f"energy rows got {knots.size} knots, expected at least 2 rising times in seconds")
            object.__setattr__(self, "knots_s", tuple(knots.tolist()))

    @property
    def parameters(self) -> Parameters:
        return self.robot.parameters

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        return (full_channel("energy", len(self.robot.parameters)),)

    @property
    def timed(self) -> bool:
        """Intervals of one length follow one another; those between knots may not."""
        return self.knots_s is None

    def with_samples(self, samples: Sequence[Samples | SampleStream]) -> EnergyRows:
        return replace(self, samples=tuple(samples))

    def with_options(self, *, effects: Sequence[Effect] | None = None, **options: Any) -> EnergyRows:
        """The same samples under other effects or intervals; what is None stays as it is."""
        return replace(self, robot=self.robot if effects is None else self.robot.with_effects(effects), **options)

    def by_log(self) -> tuple[EnergyRows, ...]:
        return tuple(replace(self, samples=(one,)) for one in self.samples)

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
            power = effect_signals(robot, q, v, a, np.ones_like(v)) * (v @ robot.effect_incidence)
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
        for period_s, part in uninterrupted_parts(
            pieces_with_memory(self.robot, log), Samples.__getitem__, joined_samples, even=False
        ):
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
