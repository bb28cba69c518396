"""One stream from its lines to its answers: decode, bring to a uniform clock, make rows, fold them, solve, judge.

Everything here depends on the lines alone, never on when they came: the same lines give the same digits, whether in one go or stored
and continued in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from dynid.errors import InputError
from dynid.recording.readers.options import ReadOptions
from dynid.robot.model import Robot
from dynid.watch.decode import LineDecoder, Row
from dynid.watch.flow import Flow, Reference, WatchOptions
from dynid.watch.grid import ROUNDING, Counts, Grid
from dynid.watch.report import Report
from dynid.watch.solution import RowNoise
from dynid.watch.triangles import JointTriangles


@dataclass(frozen=True, eq=False)
class Pending:
    """A report that is due: all that it needs of the stream at its time, so that it can be answered while the stream goes on."""

    triangles: JointTriangles
    noise: RowNoise
    report: partial[Report]
    """The report but for its answer."""


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
        self._flow: Flow | None = None
        self._skip_until: float | None = None
        self.n_skipped = 0
        self.before_answer: Callable[[], None] = _nothing_to_wait_for
        """Called where the stream itself needs an answer, which starts from the one before: who answers elsewhere ends that here."""

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
        for pending in self.take(line):
            yield self.answer(pending)

    def take(self, line: str) -> Iterator[Pending]:
        """Take one line and give what :meth:`answer` makes the reports of that it completes; these are to be answered in their order."""
        rows = self._decoder.decode(line)
        if rows:
            yield from self._take(rows)

    def answer(self, pending: Pending) -> Report:
        """Solve for the values at the time of a report."""
        assert self._flow is not None
        return pending.report(answer=self._flow.solver.solve(pending.triangles, pending.noise))

    def finish(self) -> Report | None:
        """The stream has ended: use what is left, and report; None where there was nothing to report on.

        Filters are brought to the end of the part, so nothing can be fed after it.
        """
        for pending in self._take(self._decoder.settle()):
            self.answer(pending)
        if self._flow is None:
            return None
        self._flow.end_part()
        return self.answer(self._pending(self._flow))

    def report(self) -> Report | None:
        """What is known now."""
        return None if self._flow is None else self.answer(self._pending(self._flow))

    def _take(self, rows: list[Row]) -> Iterator[Pending]:
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
                yield self._pending(flow)

    def _begin(self, rows: list[Row]) -> Flow:
        stamps = {row.time for row in rows}
        if len(stamps) < 2:
            raise InputError(f"{self._decoder.where}: {len(rows)} rows share one stamp, expected a clock that runs")
        return self._made(Grid.of(rows, self.counts))

    def _made(self, grid: Grid) -> Flow:
        robot = self._decoder.robot
        if self._reference is not None and robot.joint_names != self._asked_joints:
            missing = [name for name in self._asked_joints if name not in robot.joint_names]
            raise InputError(f"{self._decoder.where} lacks joint {', '.join(missing)}, which was identified in the run")
        return Flow(robot, self.options, self._reference, grid, lambda: self.before_answer())

    def _pending(self, flow: Flow) -> Pending:
        report = partial(
            Report,
            time_s=flow.grid.last_s + self._decoder.origin_s,
            joint_names=self._decoder.robot.dof_names,
            alarms=flow.chart.alarms(),
            stage=flow.chart.stage,
            n_alarms=flow.chart.n_alarms,
            n_rows=int(self.counts.rows),
            n_used=flow.n_rows,
            malformed=self.n_malformed,
            counts=replace(self.counts),
        )
        return Pending(flow.triangles().copy(), flow.noise(), report)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        return self.with_answers(self.stream_state())

    def with_answers(self, state: dict[str, Any]) -> dict[str, Any]:
        """A state of the stream together with what the next answer starts from, after those to all reports before it."""
        if self._flow is not None and state["flow"] is not None:
            state["flow"] |= self._flow.solver.state()
        return state

    def stream_state(self) -> dict[str, Any]:
        """Everything needed to go on but for what :meth:`with_answers` adds."""
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


def _nothing_to_wait_for() -> None:
    """Reports are answered where they come due."""
