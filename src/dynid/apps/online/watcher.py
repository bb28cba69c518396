"""One stream from its lines to its answers: decode, bring to a uniform clock, make rows, fold them, solve, judge.

Everything here depends on the lines alone, never on when they came: the same lines give the same digits, whether in one go or stored
and continued in between. Samples wait until a block of them is complete, whose length follows from their number alone: NumPy costs per
call, not per sample.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dynid.apps.online.checkpoint import check_like
from dynid.apps.online.decode import ROUNDING, Counts, Grid, LineDecoder, RawRow
from dynid.apps.online.drift import DriftChart
from dynid.apps.online.options import OnlineSettings
from dynid.apps.online.rows import RowOptions, online_rows
from dynid.apps.payload.load_rows import load_columns, load_parameters
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.online import Triangles, relative_weights, robot_estimator
from dynid.estimation.online_estimate import Columns, OnlineEstimate, RowNoise
from dynid.estimation.result import Estimate
from dynid.io.logs.layout import ReadOptions
from dynid.model.frames import Frame
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base

_KEPT = ("forget", "last", "weighted", "learn", "block", "false_alarms")
"""Settings that a stored stream cannot be continued without."""


@dataclass(frozen=True, eq=False)
class OnlineReport:
    """What is known after a row.

    Args:
        time_s: stamp of the newest row, on the sender's clock.
        answer: values, standard deviations and flags.
        joint_names: of the residuals.
        alarms: groups of parameters that have changed.
        stage: of the drift alarm: ``waiting``, ``learning`` or ``watching``.
        n_alarms: alarms so far.
        n_rows: samples read.
        n_used: times of filtered rows in the estimate.
        malformed: lines that held no row.
        counts: what became of the samples.
    """

    time_s: float
    answer: OnlineEstimate
    joint_names: tuple[str, ...]
    alarms: tuple[Mapping[str, Any], ...]
    stage: str
    n_alarms: int
    n_rows: int
    n_used: int
    malformed: int
    counts: Counts

    def as_dict(self) -> dict[str, Any]:
        """One line of ``dynid watch --json``."""
        answer = self.answer
        residual = [] if answer.residual is None else answer.residual.tolist()
        return {
            "t": self.time_s,
            **answer.as_dict(),
            "residual": answer.residual_rms,
            "alarm": None if not self.alarms else dict(self.alarms[0]) | {"groups": list(self.alarms)},
            "clipped": [n for n, out in zip(answer.names, answer.clipped, strict=True) if out],
            "residual_of_joints": dict(zip(self.joint_names, residual, strict=True)),
            "drift": self.stage,
            "alarms": self.n_alarms,
            "rows": self.n_rows,
            "used": self.n_used,
            "malformed": self.malformed,
            "counts": asdict(self.counts),
        }


@dataclass(frozen=True, eq=False)
class Pending:
    """A report that is due: all that it needs of the stream at its time, so that it can be answered while the stream goes on."""

    triangles: Triangles
    noise: RowNoise
    report: partial[OnlineReport]
    """The report but for its answer."""


class Watcher:
    """Feed it lines; it answers with reports.

    Args:
        robot: the robot; with a ``reference``, the one of the run, with its parameters.
        reading: how columns are found, as for logs.
        settings: what is kept, when it is reported, and when a change is an alarm.
        reference: estimate of a run whose parameters the robot has, for the drift alarm and for weights; None to learn it from the start
            of the stream.
        rows: how rows are made of samples.
        bounds: limits of parameters by name.
        load: frame of a load to watch, the robot's parameters being those without it.
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
        settings: OnlineSettings | None = None,
        reference: Estimate | None = None,
        *,
        rows: RowOptions | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        load: Frame | None = None,
        where: str = "stream",
    ) -> None:
        if load is not None and reference is None:
            raise InputError("a load is what torque has more than a run without it explains: give --against RUN")
        self.settings, self.rows = settings or OnlineSettings(), rows or RowOptions()
        self._reference, self._bounds, self._load = reference, dict(bounds or {}), load
        self._decoder = LineDecoder(robot, reading or ReadOptions(), velocity=self.rows.logged_velocity, where=where)
        self._asked_joints = robot.joint_names
        self.counts = Counts()
        self.notes = self._decoder.notes
        self._stream: _Stream | None = None
        self._skip_until: float | None = None
        self.n_skipped = 0
        self.before_answer: Callable[[], None] = lambda: None
        """Called where the stream itself needs an answer, which starts from the one before: who answers elsewhere ends that here."""

    @property
    def robot(self) -> Robot:
        """The robot, cut to the joints of the stream once these are known."""
        return self._decoder.robot

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
        return None if self._stream is None else self._stream.grid.last_s + self._decoder.origin_s

    def another(self, where: str) -> Watcher:
        """A watcher of the same robot and options that has seen nothing."""
        return Watcher(
            self.robot,
            None,
            self.settings,
            self._reference,
            rows=self.rows,
            bounds=self._bounds,
            load=self._load,
            where=where,
        )

    def feed(self, line: str) -> Iterator[OnlineReport]:
        """Take one line and give the reports that it completes."""
        for pending in self.take(line):
            yield self.answer(pending)

    def take(self, line: str) -> list[Pending]:
        """Take one line and give what :meth:`answer` makes the reports of that it completes; these are to be answered in their order."""
        return self._take(self._decoder.decode(line))

    def answer(self, pending: Pending) -> OnlineReport:
        """Solve for the values at the time of a report."""
        assert self._stream is not None
        return pending.report(answer=self._stream.estimator.answer(pending.noise, pending.triangles))

    def finish(self) -> OnlineReport | None:
        """The stream has ended: use what is left, and report; None where there was nothing to report on.

        Filters are brought to the end of the part, so nothing can be fed after it.
        """
        for pending in self._take(self._decoder.settle()):
            self.answer(pending)
        if self._stream is None:
            return None
        self._stream.end_part()
        return self.answer(self._pending(self._stream))

    def report(self) -> OnlineReport | None:
        """What is known now."""
        return None if self._stream is None else self.answer(self._pending(self._stream))

    def _take(self, rows: list[RawRow]) -> list[Pending]:
        due: list[Pending] = []
        for row in rows:
            stream = self._stream
            if stream is None:
                if len({time for time, _ in rows}) < 2:
                    raise InputError(f"{self._decoder.where}: {len(rows)} rows share one stamp, expected a clock that runs")
                stream = self._begin(Grid.of([time for time, _ in rows], self.counts))
            if self._skip_until is not None:
                if row[0] <= self._skip_until + ROUNDING * stream.grid.period_s:
                    self.n_skipped += 1
                    continue
                self._skip_until = None
            if stream.take(*row):
                due.append(self._pending(stream))
        return due

    def _begin(self, grid: Grid) -> _Stream:
        robot = self._decoder.robot
        if self._reference is not None and robot.joint_names != self._asked_joints:
            missing = [name for name in self._asked_joints if name not in robot.joint_names]
            raise InputError(f"{self._decoder.where} lacks joint {', '.join(missing)}, which was identified in the run")
        self._stream = _Stream(self, grid, self._decoder.values, self._reference, self._bounds, self._load)
        return self._stream

    def _pending(self, stream: _Stream) -> Pending:
        report = partial(
            OnlineReport,
            time_s=stream.grid.last_s + self._decoder.origin_s,
            joint_names=self._decoder.robot.dof_names,
            alarms=stream.chart.alarms(),
            stage=stream.chart.stage,
            n_alarms=stream.chart.n_alarms,
            n_rows=int(self.counts.rows),
            n_used=stream.n_used,
            malformed=self.n_malformed,
            counts=replace(self.counts),
        )
        return Pending(stream.estimator.triangles().copy(), stream.noise(), report)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        return self.with_answers(self.stream_state())

    def with_answers(self, state: dict[str, Any]) -> dict[str, Any]:
        """A state of the stream together with what the next answer starts from, after those to all reports before it."""
        if self._stream is not None and state["stream"] is not None:
            state["stream"]["estimator"] |= self._stream.estimator.answer_state()
        return state

    def stream_state(self) -> dict[str, Any]:
        """Everything needed to go on but for what :meth:`with_answers` adds."""
        return {
            "fingerprint": self._fingerprint(),
            "joints": list(self._decoder.robot.joint_names),
            "decoder": self._decoder.state(),
            "counts": asdict(self.counts),
            "stream": None if self._stream is None else self._stream.state(),
        }

    def _fingerprint(self) -> str:
        """What a stored stream must agree in to be continued."""
        robot, load = self._decoder.robot, self._load
        plain = {
            "settings": [getattr(self.settings, name) for name in _KEPT],
            "rows": asdict(self.rows),
            "bounds": self._bounds,
            "load": None if load is None else [load.name, load.into_body.tolist()],
            "robot": [robot.parameters.names, robot.parameters.values.tolist(), [repr(effect) for effect in robot.effects]],
        }
        return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()

    def restore(self, state: Mapping[str, Any], first_line: str | None, *, replayed: bool) -> None:
        """Go on from a state.

        Args:
            state: of an earlier watcher with the same options.
            first_line: the header, where the source goes on after what was read.
            replayed: the sender may send again what was taken: rows up to the last stamp are skipped.
        """
        check_like(state, self.stream_state() | {"joints": [""], "stream": None}, "the checkpoint")
        self._decoder.restore(state["decoder"], first_line)
        if list(self._decoder.robot.joint_names) != state["joints"]:
            self._decoder.robot = self._decoder.robot.only(state["joints"])
        if state["fingerprint"] != self._fingerprint():
            raise InputError(
                "the checkpoint was written with another robot or other options; give the same ones, or start anew without --resume"
            )
        for name, value in state["counts"].items():
            setattr(self.counts, name, value)
        kept = state["stream"]
        if kept is None:
            return
        stream = self._begin(Grid.restored(kept.get("grid") if isinstance(kept, Mapping) else None, self.counts))
        stream.restore(kept)
        if replayed:
            self._skip_until = stream.grid.last_s


class _Stream:
    """Everything after the first rows: the grid of the clock, samples that wait, filtered rows, the estimate, the chart."""

    def __init__(
        self,
        watcher: Watcher,
        grid: Grid,
        values: Callable[[Array], Array],
        reference: Estimate | None,
        bounds: Mapping[str, tuple[float, float]],
        load: Frame | None,
    ) -> None:
        self._watcher, self._settings, robot = watcher, watcher.settings, watcher.robot
        self.grid, self._values = grid, values
        self._rows = online_rows(robot, watcher.rows, grid.period_s)
        self.n_used = 0
        base = reduce_to_base(robot)
        self._lift = base.lift
        noise = None if reference is None else np.maximum(reference.residual_rms, 1e-12)
        kept: dict[str, Any] = {
            "weights": None if noise is None or not self._settings.weighted else relative_weights(1.0 / noise),
            "settle": self._settings.weighted and reference is None,
            "by_channel": True,
            "window_s": self._settings.last,
            "forget_s": self._settings.forget,
            "row_period_s": self._rows.row_period_s,
        }
        columns, full = Columns.of(robot.parameters, base, bounds), None
        if (
            load is not None
        ):  # ten parameters of the load and the change of friction, from torque that the robot does not explain
            columns, full = (
                Columns.of(load_parameters(robot, load)),
                load_columns(robot, load, np.eye(len(robot.parameters))),
            )
            kept |= {"subtracted": True, "tolerance": 1e-4}
        self.estimator = robot_estimator(robot, columns, full, **kept)
        self.chart = DriftChart(
            robot,
            block_s=self._settings.block,
            false_alarms=self._settings.false_alarms,
            subtract_mean=reference is None or load is not None,
        )
        if reference is not None:
            covariance = reference.base.lift @ reference.covariance @ reference.base.lift.T
            self.chart.set_reference(robot.parameters.values, covariance, np.asarray(reference.residual_rms))
        self._block, self._block_begin = Triangles(self.estimator.widths), np.nan
        self._block_rows = max(1, round(self._settings.block / self._rows.row_period_s))
        self._next_report = np.nan
        self._begin_part()

    def _begin_part(self) -> None:
        """Rows that came, the last ones of which are used already, and samples that wait: their times, and the share in each of the row
        at a place, beside the row before it."""
        self._tail = np.empty((0, 0))
        self._raw: list[list[float]] = []
        self._times: list[float] = []
        self._shares: list[float] = []
        self._places: list[int] = []
        self._wanted = self._rows.block_rows

    def take(self, time: float, numbers: list[float]) -> bool:
        """Use one row; whether a report is due."""
        begins, points = self.grid.push(time)
        if begins:
            self.end_part()
            self._next_report = self._due_after(time)
        if points is None:
            return False
        self._raw.append(numbers)
        for at, share in points:
            self._times.append(at)
            self._shares.append(share)
            self._places.append(len(self._tail) + len(self._raw) - 1)
            if len(self._times) == self._wanted:
                self._use_block()
        if time < self._next_report or not points:
            return False
        self._next_report = self._due_after(time)
        return True

    def end_part(self) -> None:
        """Rows that the end of a part still gives."""
        self._use_block()
        for row in self._rows.end():
            self._fold(*row)
        self._begin_part()

    def _due_after(self, time: float) -> float:
        every = self._settings.every
        return float((np.floor(time / every + ROUNDING) + 1.0) * every)

    def _use_block(self) -> None:
        """Samples that wait, each between the row before it and the row after it."""
        if not self._times:
            return
        rows, share, place = self._waiting(), np.array(self._shares)[:, None], np.array(self._places)
        samples = rows[np.maximum(place - 1, 0)] * (1.0 - share) + rows[place] * share
        times = np.array(self._times)
        self._tail, self._raw, self._times, self._shares, self._places = rows[-2:], [], [], [], []
        for row in self._rows.push(times, samples):
            self._fold(*row)
        self._wanted = self._rows.block_rows

    def _waiting(self) -> Array:
        """Rows that samples which wait lie between, at the joints."""
        if not self._raw:
            return self._tail
        rows = self._values(np.array(self._raw))
        return np.concatenate([self._tail, rows]) if len(self._tail) else rows

    def _fold(self, time: float, rows: Array) -> None:
        """The rows of all joints at one time."""
        self.n_used += 1
        self.estimator.add(rows)
        if self._block.n_times == 0.0:
            self._block_begin = time
        self._block.add(rows)
        if self._block.n_times >= self._block_rows:
            self._close_block(time)

    def _close_block(self, time: float) -> None:
        block, self._block = self._block, Triangles(self.estimator.widths)
        if self.chart.reference is not None:
            self.chart.judge(block, float(self._block_begin))
        elif self.n_used * self._rows.row_period_s >= self._settings.learn:
            self._watcher.before_answer()
            noise = self.noise()
            found = self.estimator.answer(noise)
            covariance = self._lift @ self.estimator.covariance(found, noise) @ self._lift.T
            assert found.residual is not None
            self.chart.set_reference(self._lift @ found.values, covariance, found.residual)

    def noise(self) -> RowNoise:
        """Of a row, as far as it is known."""
        return RowNoise(self._rows.inflation, self.chart.learned_noise())

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {
            "grid": self.grid.state(),
            "n_used": self.n_used,
            "rows": self._rows.state(),
            "estimator": self.estimator.state(),
            "chart": self.chart.state(),
            "block": self._block.state(),
            "block_begin": self._block_begin,
            "next_report": self._next_report,
            "waiting": self._waiting(),
            "times": np.array(self._times),
            "shares": np.array(self._shares),
            "places": np.array(self._places, dtype=np.int64),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from these numbers."""
        like = self.state() | {"estimator": self.estimator.state() | self.estimator.answer_state()}
        check_like(state, like, "the checkpoint, stream")
        self.n_used = state["n_used"]
        self._rows.restore(state["rows"])
        self.estimator.restore(state["estimator"])
        self.chart.restore(state["chart"])
        self._block = Triangles.restored(self.estimator.widths, state["block"])
        self._block_begin, self._next_report = state["block_begin"], state["next_report"]
        self._tail = state["waiting"]
        self._times, self._shares, self._places = (state[name].tolist() for name in ("times", "shares", "places"))
        width = (2 + self._watcher.rows.logged_velocity) * self._watcher.robot.n_dof
        if self._tail.shape[1] not in (0, width) or not all(0 <= place < len(self._tail) for place in self._places):
            raise ValueError(
                f"{len(self._places)} samples wait, which do not lie between the {len(self._tail)} rows beside them"
            )
        if not len(self._times) == len(self._shares) == len(self._places):
            raise ValueError("samples wait without their times")
        self._wanted = self._rows.block_rows
