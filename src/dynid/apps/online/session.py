"""A watch from its options and its source to its readers: lines in, reports out, checkpoints beside, until the source ends or someone
stops it."""

from __future__ import annotations

import gc
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from dynid.apps.online.checkpoint import check_like, read_checkpoint, remove_leftovers, write_checkpoint
from dynid.apps.online.options import OnlineSettings
from dynid.apps.online.rows import RowOptions
from dynid.apps.online.sources import Backlog, Batch, LineQueue, Source
from dynid.apps.online.watcher import OnlineReport, Pending, Watcher
from dynid.errors import InputError
from dynid.estimation.methods.recursive import read_parameter_bounds
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.frames import frame_named
from dynid.pipeline.data import read_options
from dynid.pipeline.folder import load_robot_result
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import described_robot
from dynid.pipeline.row_plan import approximation
from dynid.pipeline.signal_filter import Filter, savgol_numbers

_POLL_S = 0.1
_SWITCH_S = 5e-4  # the interpreter's turn of a thread: the page must not hold up a row for five milliseconds


DueItem: TypeAlias = Pending | tuple[dict[str, Any], int] | Literal["end"]
"""A report, a state of the stream for a checkpoint with where its source was, or that no row comes any more."""


class Session:
    """Runs a watch.

    Args:
        watcher: what makes reports of lines.
        source: where lines come from.
        say: messages to the user, such as that lines come faster than they are used.
    """

    def __init__(self, watcher: Watcher, source: Source, say: Callable[[str], None]) -> None:
        self._watcher, self._source, self._say = watcher, source, say
        self._settings = watcher.settings
        self._checkpoint = None if self._settings.checkpoint is None else Path(self._settings.checkpoint)
        self.backlog, self.latency, self.busy = LineQueue(), Latency(), Latency()
        self._stopped = threading.Event()
        self._position = 0
        self._failure: Exception | None = None
        self._said_stalls = self._said_notes = 0
        self._due: Backlog[DueItem] = Backlog(MOST_DUE)
        watcher.before_answer = self._due.settle
        if self._checkpoint is not None and not self._checkpoint.parent.is_dir():
            raise InputError(f"cannot write '{self._checkpoint}': there is no folder '{self._checkpoint.parent}'")

    def stop(self) -> None:
        """End soon: use the lines that wait, report, write a checkpoint. Safe to call from a signal handler."""
        self._stopped.set()

    def run(self) -> Iterator[Mapping[str, Any]]:
        """Reports as they come, the last one with ``final`` true."""
        resumed_from = self._resume() if self._settings.resume else None
        if self._checkpoint is not None:
            remove_leftovers(self._checkpoint)
        switch = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        gc.collect()
        gc.freeze()  # what lives now lives to the end: the collector need not look at it again
        self._source.start(self.backlog, self._position, resumed_from)
        rows = threading.Thread(target=self._use_rows, name="rows", daemon=True)
        rows.start()
        try:
            yield from self._reports()
            if self.backlog.error is not None:
                raise self.backlog.error
            self._write(self._watcher.state(), self._position)
        finally:
            sys.setswitchinterval(switch)
            self._source.stop()
            self.backlog.close()
            self._due.close()
            rows.join()
        last = self._watcher.finish()
        if last is not None:
            yield self._record(last, final=True)

    def _reports(self) -> Iterator[Mapping[str, Any]]:
        """Answer what comes due; rows go on being used by a thread of their own, so that none waits for a report."""
        frozen = False
        while True:
            due = self._due.get(_POLL_S)
            match due:
                case Pending():
                    yield self._record(self._watcher.answer(due), final=False)
                    if not frozen:  # what the first answer made lives to the end as well
                        gc.freeze()
                        frozen = True
                case (state, position):
                    self._write(self._watcher.with_answers(state), position)
                case "end":
                    if self._failure is not None:
                        raise self._failure
                    self._speak()
                    return
            if due is not None:
                self._due.done()
            self._speak()

    def _use_rows(self) -> None:
        """The thread of the rows: use every line and hand on what comes due."""
        try:
            checkpoint_at = time.monotonic() + self._settings.checkpoint_every
            while True:
                arrived_s, lines, positions = self.backlog.get(_POLL_S) or Batch(0.0, (), ())
                begun = time.thread_time()
                for line, position in zip(lines, positions, strict=True):
                    text = line.decode("utf-8", "replace").strip()
                    for pending in self._watcher.take(text) if text else ():
                        self._due.put(pending)
                    self._position = position
                    ended = time.thread_time()
                    self.busy.add(ended - begun)
                    self.latency.add(time.perf_counter() - arrived_s)
                    begun = ended
                if self._stopped.is_set():
                    self._source.stop()
                if self._due.closed or (not self.backlog.waiting and (self._stopped.is_set() or self.backlog.ended)):
                    break
                if self._checkpoint is not None and time.monotonic() >= checkpoint_at:
                    self._due.put((self._watcher.stream_state(), self._position))
                    checkpoint_at = time.monotonic() + self._settings.checkpoint_every
        except Exception as found:  # raised again by the thread that answers
            self._failure = found
        self._due.put("end")

    def _record(self, report: OnlineReport, *, final: bool) -> Mapping[str, Any]:
        return report.as_dict() | {
            "final": final,
            "waiting": self.backlog.waiting,
            "stalls": self.backlog.stalls,
            "latency_ms": self.latency.as_dict(),
            "cpu_ms": self.busy.as_dict(),
        }

    def _speak(self) -> None:
        """Say once what is new."""
        for note in self._watcher.notes[self._said_notes :]:
            self._say(f"note: {note}")
        self._said_notes = len(self._watcher.notes)
        if self.backlog.stalls > self._said_stalls:
            if self._said_stalls == 0:
                self._say(
                    f"lines come faster than they are used: {self.backlog.longest} wait and the sender is held back; no line is lost"
                )
            self._said_stalls = self.backlog.stalls

    def _write(self, watcher: dict[str, Any], position: int) -> None:
        """A checkpoint, where one was asked for; rows do not wait for the disk."""
        if self._checkpoint is not None:
            write_checkpoint(self._checkpoint, self._state(watcher, position))

    def _state(self, watcher: dict[str, Any], position: int) -> dict[str, Any]:
        return {"position": position, "source": type(self._source).__name__, "watcher": watcher}

    def _resume(self) -> float | None:
        """Go on from the checkpoint; the stamp from which a sender that cannot seek sends again."""
        assert self._checkpoint is not None
        state = read_checkpoint(self._checkpoint)
        check_like(state, self._state({}, 0) | {"watcher": None}, f"'{self._checkpoint}'")
        if state["source"] != type(self._source).__name__:
            raise InputError(
                f"the checkpoint is of a watch of another kind of source than {self._source.name}; give the same --source"
            )
        seekable = self._source.seekable
        try:
            self._watcher.restore(state["watcher"], self._source.first_line() if seekable else None, replayed=not seekable)
        except (TypeError, ValueError) as error:
            raise InputError(f"'{self._checkpoint}' is no checkpoint of a watch: {error}") from None
        self._position = state["position"] if seekable else 0
        stamp = self._watcher.last_stamp_s
        if stamp is not None and not seekable:
            self._say(f"rows up to t = {stamp!r} s were taken before; the sender may send again from there")
        return stamp


MOST_DUE = 8
"""Reports and states that may wait; then rows wait for answers, as a stream does that is replayed faster than it was recorded."""
_PER_DECADE = 40
_SMALLEST_S = 1e-6
_BINS = 9 * _PER_DECADE


class Latency:
    """A histogram over nine decades from a microsecond, each bin 6 % wide."""

    def __init__(self) -> None:
        self._bins = [0] * _BINS
        self.n = 0
        self.longest_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        place = int(_PER_DECADE * math.log10(max(seconds, _SMALLEST_S) / _SMALLEST_S))
        self._bins[min(place, _BINS - 1)] += 1
        self.n += 1
        self.longest_s = max(self.longest_s, seconds)

    def quantile_s(self, share: float) -> float:
        """Upper end of the bin in which this share is reached; zero where nothing was counted."""
        left = share * self.n
        for place, count in enumerate(self._bins):
            left -= count
            if left <= 0.0 and self.n:
                return float(min(_SMALLEST_S * 10.0 ** ((place + 1) / _PER_DECADE), self.longest_s))
        return 0.0

    def as_dict(self) -> dict[str, float]:
        """Milliseconds."""
        return {
            "median": 1e3 * self.quantile_s(0.5),
            "p999": 1e3 * self.quantile_s(0.999),
            "largest": 1e3 * self.longest_s,
        }


def make_watcher(robot: str | Path, settings: Settings, online: OnlineSettings) -> Watcher:
    """The watcher that the options of ``dynid watch`` ask for."""
    run = None if online.against is None else load_robot_result(online.against)
    model = described_robot(robot, settings)
    if run is None:
        if online.payload:
            raise InputError("--payload watches what torque has more than a run without the load: give --against RUN")
        if online.dead_zone != 0.0:
            zone = (online.dead_zone,) * len(model.driven)
            effects = [replace(one, dead_zone=zone) if isinstance(one, Coulomb) else one for one in model.effects]
            model = model.with_effects(effects)
    else:
        other = [joint for joint in run.model.joint_names if joint not in model.joint_names]
        if other:
            raise InputError(
                f"run '{online.against}' identified joint {', '.join(other)}, which the robot '{model.name}' does not have"
            )
        model = run.model
        if run.estimate.n_samples == 0 or len(run.estimate.residual_rms) != model.n_dof:
            raise InputError(
                f"run '{online.against}' has no residual of joint torque; watch against a run that was identified from logs of motion"
            )
    if online.frame is not None and not online.payload:
        raise InputError("--frame is that of a load: give --payload as well")
    return Watcher(
        model,
        read_options(settings),
        online,
        None if run is None else run.estimate,
        rows=_row_options(settings, None if run is None else run.filter),
        bounds=read_parameter_bounds(online.bounds, model.parameters),
        load=frame_named(model, online.frame) if online.payload else None,
        where=online.source,
    )


def _row_options(settings: Settings, filtered: Filter | None) -> RowOptions:
    """How rows are made: as the options say, and where they leave it open as those of the run were."""
    if settings.rows not in ("torque", "polynomial"):
        raise InputError(f"--rows {settings.rows} cannot be made while rows come in, expected torque or polynomial")
    band = RowOptions.band_hz if filtered is None else filtered.band_hz
    signals = RowOptions.signal_band_hz if filtered is None else max(filtered.cutoff_hz, 4.0 * filtered.band_hz)
    velocity = settings.velocity if settings.velocity != "auto" or filtered is None else filtered.velocity
    window, order = savgol_numbers(settings.filter) or (None, RowOptions.order)
    return RowOptions(
        kind=settings.rows,
        band_hz=band if settings.cutoff_hz == "auto" else float(settings.cutoff_hz),
        window=window,
        order=order,
        signal_band_hz=signals if settings.signal_band_hz == "auto" else float(settings.signal_band_hz),
        logged_velocity=velocity == "logged" and settings.rows == "torque",
        polynomial=approximation(settings),
        composition=settings.composition,
    )


_WARM_ROWS, _WARM_PERIOD_S = 1200, 0.002


def warm_up(made: Watcher) -> None:
    """Compile and load what is used first, before rows count on being answered in time: a short invented stream through another
    watcher of the same robot and options, which is then forgotten."""
    robot = made.robot
    watcher = made.another(where="a rehearsal")
    rng = np.random.default_rng(0)
    phase = rng.uniform(0.0, 6.0, robot.n_dof)
    period_s = min(_WARM_PERIOD_S, made.rows.polynomial.window_s / 20.0)
    for k in range(_WARM_ROWS):
        t = k * period_s
        row = {
            "t": t,
            "q": (0.2 * np.sin(t + phase)).tolist(),
            "dq": (0.2 * np.cos(t + phase)).tolist(),
            "tau": rng.standard_normal(robot.n_dof).tolist(),
        }
        for _ in watcher.feed(dumps(row)):
            pass
    watcher.finish()
    watcher.state()
