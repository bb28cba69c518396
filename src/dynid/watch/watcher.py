"""One stream from its lines to its answers: decode, bring to a uniform clock, make rows, fold them, solve, judge.

Everything here depends on the lines alone, never on when they came: the same lines give the same digits, whether in one go or stored
and continued in between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.recording.readers.options import ReadOptions
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.channels import torque_channels
from dynid.robot.frames import Frame
from dynid.robot.model import Robot
from dynid.watch.decode import LineDecoder, Row
from dynid.watch.drift import DriftChart, DriftOptions, groups_of
from dynid.watch.grid import ROUNDING, Counts, Grid
from dynid.watch.report import Report
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


class Watcher:
    """Feed it lines; it answers with reports.

    Args:
        robot: the robot; with a ``reference``, the one of the run, with its parameters.
        reading: how columns are found, as for logs.
        options: what to watch.
        reference: what a run knows, for the drift alarm and for weights; None to learn it from the start of the stream.
        where: the source, for messages.

    Examples:
        >>> import dynid, json
        >>> robot, log = dynid.demo_robot(), dynid.demo_recording(seconds=4.0)
        >>> watcher = dynid.Watcher(robot)
        >>> for t, q, tau in zip(log.time.tolist(), log.position.tolist(), log.torque.tolist()):
        ...     for report in watcher.feed(json.dumps({"t": t, "q": q, "tau": tau})):
        ...         flags = report.as_dict()["flags"]
        >>> sorted(set(flags.values()))[-1]
        1
    """

    def __init__(
        self,
        robot: Robot,
        reading: ReadOptions | None = None,
        options: WatchOptions | None = None,
        reference: Reference | None = None,
        *,
        where: str = "stream",
    ) -> None:
        self.options = options or WatchOptions()
        if self.options.load is not None and reference is None:
            raise InputError("a load is what torque has more than a run without it explains: give --against RUN")
        self._decoder = LineDecoder(robot, reading or ReadOptions(), velocity=self.options.rows.logged_velocity, where=where)
        self._asked_joints, self._reference = robot.joint_names, reference
        self.counts = Counts()
        self.notes = self._decoder.notes
        self._flow: _Flow | None = None
        self._skip_until: float | None = None
        self.n_skipped = 0

    @property
    def robot(self) -> Robot:
        """The robot, cut to the joints of the stream once these are known."""
        return self._decoder.robot

    @property
    def reference(self) -> Reference | None:
        """What a run knows."""
        return self._reference

    @property
    def n_malformed(self) -> int:
        """Lines that held no row."""
        return self._decoder.n_malformed

    @property
    def malformed(self) -> Mapping[str, int]:
        """The same by reason."""
        return self._decoder.malformed

    @property
    def last_stamp_s(self) -> float | None:
        """Stamp of the newest row on the sender's clock: where a sender that can do so goes on."""
        return None if self._flow is None else self._flow.grid.last_s + self._decoder.origin_s

    def feed(self, line: str) -> Iterator[Report]:
        """Take one line and give the reports that it completes."""
        rows = self._decoder.decode(line)
        if rows:
            yield from self._take(rows)

    def finish(self) -> Report | None:
        """The stream has ended: use what is left, and report; None where there was nothing to report on.

        Filters are brought to the end of the part, so nothing can be fed after it.
        """
        for _ in self._take(self._decoder.settle()):
            pass
        if self._flow is None:
            return None
        self._flow.end_part()
        return self._report(self._flow)

    def report(self) -> Report | None:
        """What is known now."""
        return None if self._flow is None else self._report(self._flow)

    def _take(self, rows: list[Row]) -> Iterator[Report]:
        if not rows:
            return
        if self._flow is None:
            self._flow = self._begin(rows)
        flow = self._flow
        for row in rows:
            if self._skip_until is not None:
                if row.time <= self._skip_until + ROUNDING * flow.grid.period_s:
                    self.n_skipped += 1
                    continue
                self._skip_until = None
            if flow.take(row):
                yield self._report(flow)

    def _begin(self, rows: list[Row]) -> _Flow:
        stamps = {row.time for row in rows}
        if len(stamps) < 2:
            raise InputError(f"{self._decoder.where}: {len(rows)} rows share one stamp, expected a clock that runs")
        return self._made(Grid.of(rows, self.counts))

    def _made(self, grid: Grid) -> _Flow:
        robot = self._decoder.robot
        if self._reference is not None and robot.joint_names != self._asked_joints:
            missing = [name for name in self._asked_joints if name not in robot.joint_names]
            raise InputError(f"{self._decoder.where} lacks joint {', '.join(missing)}, which was identified in the run")
        return _Flow(robot, self.options, self._reference, grid)

    def _report(self, flow: _Flow) -> Report:
        answer = flow.answer()
        return Report(
            time_s=flow.grid.last_s + self._decoder.origin_s,
            answer=answer,
            joint_names=self._decoder.robot.dof_names,
            alarms=flow.chart.alarms(),
            stage=flow.chart.stage,
            n_alarms=flow.chart.n_alarms,
            n_rows=int(self.counts.rows),
            n_used=flow.n_rows,
            malformed=self.n_malformed,
            counts=replace(self.counts),
        )

    def state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        flow = self._flow
        return {
            "fingerprint": self.options.fingerprint(self._decoder.robot),
            "joints": list(self._decoder.robot.joint_names),
            "decoder": self._decoder.state(),
            "counts": asdict(self.counts),
            "flow": None if flow is None else flow.state(),
        }

    def restore(self, state: Mapping[str, Any], first_line: str | None, *, replayed: bool) -> None:
        """Go on from a state.

        Args:
            state: of an earlier watcher with the same options.
            first_line: the header, where the source goes on after what was read.
            replayed: the sender may send again what was taken: rows up to the last stamp are skipped.
        """
        self._decoder.restore(state["decoder"], first_line)
        if list(self._decoder.robot.joint_names) != state["joints"]:
            self._decoder.robot = self._decoder.robot.only(state["joints"])
        if state["fingerprint"] != self.options.fingerprint(self._decoder.robot):
            raise InputError(
                "the checkpoint was written with another robot or other options; give the same ones, or start anew without --resume"
            )
        for name, value in state["counts"].items():
            setattr(self.counts, name, int(value))
        if state["flow"] is None:
            return
        self._flow = self._made(Grid.restored(state["flow"]["grid"], self.counts))
        self._flow.restore(state["flow"])
        if replayed:
            self._skip_until = self._flow.grid.last_s


class _Flow:
    """Everything after the first rows: grid, rows, triangles, solution, chart."""

    def __init__(self, robot: Robot, options: WatchOptions, reference: Reference | None, grid: Grid) -> None:
        self.grid, self.n_rows = grid, 0
        self._options, self._robot = options, robot
        self._rows: OnlineRows = online_rows(robot, options.rows, grid.period_s)
        channels = torque_channels(robot)
        widths = [channel.width for channel in channels]
        self._remembered = Remembered(options.memory, widths, self._rows.row_period_s)
        self._base: BaseReduction = reduce_to_base(robot)
        self._question: Question = ask_base(robot, options.bounds) if options.load is None else ask_load(robot, options.load)
        self._own = reference is None
        self.chart = DriftChart(
            channels, groups_of(robot), options.drift, subtract_mean=self._own or options.load is not None
        )
        self._weights = np.ones(len(channels))
        if reference is not None:
            self.chart.refer(reference.parameters, reference.covariance, reference.noise)
            self._weights = _relative(1.0 / np.maximum(reference.noise, 1e-12))
        self._identified: BoolArray | None = None
        self._fixed = reference is not None
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
            answer = self.answer()
            covariance = self._question.covariance(self._remembered.triangles(), answer, self._noise())
            lift = self._base.lift
            self.chart.refer(lift @ answer.values, lift @ covariance @ lift.T, answer.residual)

    def _noise(self) -> RowNoise:
        return RowNoise(self._rows.inflation, self.chart.learned_noise())

    def answer(self) -> Answer:
        """Values, standard deviations and flags now."""
        weighted = self._options.weighted and not self._fixed
        weights = self._weights if self._options.weighted else np.ones(len(self._weights))
        answer, self._weights = self._question.solve(
            self._remembered.triangles(), weights, self._identified, weighted=weighted, noise=self._noise()
        )
        self._identified = answer.flags == 1
        return answer

    def state(self) -> dict[str, Any]:
        return {
            "grid": self.grid.state(),
            "n_rows": self.n_rows,
            "rows": self._rows.state(),
            "remembered": self._remembered.state(),
            "chart": self.chart.state(),
            "weights": self._weights.copy(),
            "identified": self._identified,
            "block": self._block.state(),
            "block_begin": self._block_begin,
            "next_report": self._next_report,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.n_rows = int(state["n_rows"])
        self._rows.restore(state["rows"])
        self._remembered.restore(state["remembered"])
        self.chart.restore(state["chart"])
        self._weights = np.array(state["weights"])
        identified = state["identified"]
        self._identified = None if identified is None else np.array(identified, dtype=np.bool_)
        self._block.restore(state["block"])
        self._block_begin, self._next_report = float(state["block_begin"]), float(state["next_report"])


def _relative(weights: Array) -> Array:
    """Weights whose geometric mean is one, which changes no answer."""
    return np.asarray(weights / np.exp(np.log(weights).mean()))
