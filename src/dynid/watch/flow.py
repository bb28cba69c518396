"""What becomes of the rows of a stream: the grid of its clock, filtered rows, triangles, answers, and the chart that watches for drift."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.channels import torque_channels
from dynid.robot.frames import Frame
from dynid.robot.model import Robot
from dynid.watch.decode import Row
from dynid.watch.drift import DriftChart, DriftOptions, groups_of
from dynid.watch.grid import ROUNDING, Grid
from dynid.watch.rows import OnlineRows, RowOptions, TimedRow, online_rows
from dynid.watch.solution import Answer, Question, RowNoise, ask_base, ask_load
from dynid.watch.triangles import JointTriangles, Memory, Remembered


@dataclass(frozen=True, eq=False)
class Reference:
    """What a run knows: values of all parameters, their covariance, and the noise of every joint's rows."""

    parameters: Array
    covariance: Array
    noise: Array


@dataclass(frozen=True)
class WatchOptions:
    """What to watch and how.

    Args:
        rows: how rows are made of samples.
        memory: which rows count.
        drift: blocks and threshold of the drift alarm.
        every_s: time between two answers, s of the stream.
        learn_s: without a run, the first seconds of rows give the reference of the drift alarm.
        weighted: count joints by their own noise.
        bounds: limits of parameters by name.
        load: frame of a load to watch, the robot's parameters being those without it.

    Examples:
        >>> import dynid
        >>> dynid.WatchOptions(every_s=0.5).learn_s
        60.0
    """

    rows: RowOptions = field(default_factory=RowOptions)
    memory: Memory = field(default_factory=Memory)
    drift: DriftOptions = field(default_factory=DriftOptions)
    every_s: float = 1.0
    learn_s: float = 60.0
    weighted: bool = True
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    load: Frame | None = None

    def fingerprint(self, robot: Robot) -> str:
        """What a stored stream must agree in to be continued."""
        plain = asdict(replace(self, load=None, every_s=0.0)) | {
            "load": None if self.load is None else [self.load.name, self.load.into_body.tolist()],
            "robot": [robot.parameters.names, robot.parameters.values.tolist(), [repr(effect) for effect in robot.effects]],
        }
        return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


class Solver:
    """Answers one after the other: each starts from the weights and the identified columns of the one before."""

    def __init__(self, question: Question, weights: Array, *, weighted: bool) -> None:
        self.question = question
        self._weights, self._weighted = weights, weighted
        self._identified: BoolArray | None = None

    def solve(self, triangles: JointTriangles, noise: RowNoise) -> Answer:
        """Values, standard deviations and flags."""
        answer, self._weights = self.question.solve(
            triangles, self._weights, self._identified, weighted=self._weighted, noise=noise
        )
        self._identified = answer.flags == 1
        return answer

    def state(self) -> dict[str, Any]:
        return {"weights": self._weights.copy(), "identified": self._identified}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._weights = np.array(state["weights"])
        identified = state["identified"]
        self._identified = None if identified is None else np.array(identified, dtype=np.bool_)


class Flow:
    """Everything after the first rows: grid, rows, triangles, solution, chart."""

    def __init__(
        self,
        robot: Robot,
        options: WatchOptions,
        reference: Reference | None,
        grid: Grid,
        before_answer: Callable[[], None],
    ) -> None:
        self.grid, self.n_rows = grid, 0
        self._before_answer = before_answer
        self._options, self._robot = options, robot
        self._rows: OnlineRows = online_rows(robot, options.rows, grid.period_s)
        channels = torque_channels(robot)
        widths = [channel.width for channel in channels]
        self._remembered = Remembered(options.memory, widths, self._rows.row_period_s)
        self._base: BaseReduction = reduce_to_base(robot)
        question = ask_base(robot, options.bounds) if options.load is None else ask_load(robot, options.load)
        self._own = reference is None
        self.chart = DriftChart(
            channels, groups_of(robot), options.drift, subtract_mean=self._own or options.load is not None
        )
        weights = np.ones(len(channels))
        if reference is not None:
            self.chart.refer(reference.parameters, reference.covariance, reference.noise)
            if options.weighted:
                weights = _relative(1.0 / np.maximum(reference.noise, 1e-12))
        self.solver = Solver(question, weights, weighted=options.weighted and reference is None)
        self._widths = widths
        self._block, self._block_begin = JointTriangles(widths), np.nan
        self._block_rows = max(1, round(options.drift.block_s / self._rows.row_period_s))
        self._next_report = np.nan

    def take(self, row: Row) -> bool:
        """Use one row; whether a report is due."""
        parts = (
            (row.position, row.velocity, row.torque) if self._options.rows.logged_velocity else (row.position, row.torque)
        )
        if any(part is None for part in parts):
            raise InputError("the stream holds no velocity, expected one per joint; or give --velocity position")
        begins, made = self.grid.push(row.time, np.concatenate([part for part in parts if part is not None]))
        if begins:
            self.end_part()
            self._next_report = self._due_after(row.time)
        for time, values in made:
            for one in self._rows.push(time, values):
                self._fold(one)
        if row.time < self._next_report or not made:
            return False
        self._next_report = self._due_after(row.time)
        return True

    def end_part(self) -> None:
        """Rows that the end of a part still gives."""
        for one in self._rows.end():
            self._fold(one)

    def _due_after(self, time: float) -> float:
        every = self._options.every_s
        return float((np.floor(time / every + ROUNDING) + 1.0) * every)

    def _fold(self, row: TimedRow) -> None:
        self.n_rows += 1
        self._remembered.add(row)
        if self._block.empty:
            self._block_begin = row.time
        self._block.add(row)
        if self._block.n_times >= self._block_rows:
            self._close_block(row.time)

    def _close_block(self, time: float) -> None:
        block, self._block = self._block, JointTriangles(self._widths)
        if self.chart.reference is not None:
            self.chart.judge(block, time, float(self._block_begin))
        elif self.n_rows * self._rows.row_period_s >= self._options.learn_s:
            self._before_answer()
            triangles, noise = self.triangles(), self.noise()
            answer = self.solver.solve(triangles, noise)
            covariance = self.solver.question.covariance(triangles, answer, noise)
            lift = self._base.lift
            self.chart.refer(lift @ answer.values, lift @ covariance @ lift.T, answer.residual)

    def triangles(self) -> JointTriangles:
        """Those of the rows that count; do not change them."""
        return self._remembered.triangles()

    def noise(self) -> RowNoise:
        """Of a row, as far as it is known."""
        return RowNoise(self._rows.inflation, self.chart.learned_noise())

    def state(self) -> dict[str, Any]:
        return {
            "grid": self.grid.state(),
            "n_rows": self.n_rows,
            "rows": self._rows.state(),
            "remembered": self._remembered.state(),
            "chart": self.chart.state(),
            "block": self._block.state(),
            "block_begin": self._block_begin,
            "next_report": self._next_report,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.n_rows = int(state["n_rows"])
        self._rows.restore(state["rows"])
        self._remembered.restore(state["remembered"])
        self.chart.restore(state["chart"])
        self.solver.restore(state)
        self._block.restore(state["block"])
        self._block_begin, self._next_report = float(state["block_begin"]), float(state["next_report"])


def _relative(weights: Array) -> Array:
    """Weights whose geometric mean is one, which changes no answer."""
    return np.asarray(weights / np.exp(np.log(weights).mean()))
