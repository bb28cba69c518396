"""A watch from its source to its readers: lines in, reports out, checkpoints beside, until the source ends or someone stops it."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.watch.backlog import Backlog, Batch
from dynid.watch.checkpoint import Checkpoints, read_checkpoint
from dynid.watch.due import Due
from dynid.watch.latency import Latency
from dynid.watch.report import Report
from dynid.watch.sources import Source
from dynid.watch.watcher import Pending, Watcher

_POLL_S = 0.1
_SWITCH_S = 5e-4  # the interpreter's turn of a thread: the page must not hold up a row for five milliseconds


@dataclass(frozen=True)
class SessionOptions:
    """Where checkpoints go and how often, s of the wall clock."""

    checkpoint: Path | None = None
    checkpoint_every_s: float = 5.0
    resume: bool = False


@dataclass(frozen=True, eq=False)
class _Stored:
    """A state of the stream for a checkpoint, and where its source was."""

    state: dict[str, Any]
    position: int


@dataclass(frozen=True, eq=False)
class _Ended:
    """No row comes any more, by an error or not."""

    error: Exception | None


class Session:
    """Runs a watch.

    Args:
        watcher: what makes reports of lines.
        source: where lines come from.
        options: checkpoints.
        say: messages to the user, such as that lines come faster than they are used.
    """

    def __init__(self, watcher: Watcher, source: Source, options: SessionOptions, say: Callable[[str], None]) -> None:
        self._watcher, self._source, self._options, self._say = watcher, source, options, say
        self.backlog, self.latency, self.busy = Backlog(), Latency(), Latency()
        self._stopped = threading.Event()
        self._position = 0
        self._said_stalls = self._said_notes = 0
        self._due: Due[Pending | _Stored | _Ended] = Due()
        watcher.before_answer = self._due.settle
        if options.resume and options.checkpoint is None:
            raise InputError("--resume goes on from a checkpoint: give --checkpoint FILE as well")
        if options.checkpoint is not None and not options.checkpoint.parent.is_dir():
            raise InputError(f"cannot write '{options.checkpoint}': there is no folder '{options.checkpoint.parent}'")

    def stop(self) -> None:
        """End soon: use the lines that wait, report, write a checkpoint. Safe to call from a signal handler."""
        self._stopped.set()

    def run(self) -> Iterator[Mapping[str, Any]]:
        """Reports as they come, the last one with ``final`` true."""
        resumed_from = self._resume() if self._options.resume else None
        checkpoints = None if self._options.checkpoint is None else Checkpoints(self._options.checkpoint)
        switch = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        gc.collect()
        gc.freeze()  # what lives now lives to the end: the collector need not look at it again
        self._source.start(self.backlog, self._position, resumed_from)
        rows = threading.Thread(target=self._use_rows, name="rows", daemon=True)
        rows.start()
        try:
            yield from self._reports(checkpoints)
            if self.backlog.error is not None:
                raise self.backlog.error
            if checkpoints is not None:
                checkpoints.put(self._state(self._watcher.state(), self._position))
        finally:
            sys.setswitchinterval(switch)
            self._source.stop()
            self.backlog.close()
            self._due.close()
            rows.join()
            if checkpoints is not None:
                checkpoints.close()
        last = self._watcher.finish()
        if last is not None:
            yield self._record(last, final=True)

    def _reports(self, checkpoints: Checkpoints | None) -> Iterator[Mapping[str, Any]]:
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
                case _Stored(state, position) if checkpoints is not None:
                    checkpoints.put(self._state(self._watcher.with_answers(state), position))
                case _Ended(error):
                    if error is not None:
                        raise error
                    self._speak()
                    return
            if due is not None:
                self._due.done()
            self._speak()

    def _use_rows(self) -> None:
        """The thread of the rows: use every line and hand on what comes due."""
        error = None
        try:
            checkpoint_at = time.monotonic() + self._options.checkpoint_every_s
            while (
                not self._due.closed and not self.backlog.ended and not (self._stopped.is_set() and not self.backlog.waiting)
            ):
                batch = self.backlog.get(_POLL_S)
                if self._stopped.is_set():
                    self._source.stop()
                if batch is not None:
                    self._use(batch)
                if self._options.checkpoint is not None and time.monotonic() >= checkpoint_at:
                    self._due.put(_Stored(self._watcher.stream_state(), self._position))
                    checkpoint_at = time.monotonic() + self._options.checkpoint_every_s
        except Exception as found:  # raised again by the thread that answers
            error = found
        self._due.put(_Ended(error))

    def _use(self, batch: Batch) -> None:
        for line, position in zip(batch.lines, batch.positions, strict=True):
            begun = time.thread_time()
            text = line.decode("utf-8", "replace").strip()
            if text:
                for pending in self._watcher.take(text):
                    self._due.put(pending)
            self._position = position
            self.busy.add(time.thread_time() - begun)
            self.latency.add(time.perf_counter() - batch.arrived_s)

    def _record(self, report: Report, *, final: bool) -> Mapping[str, Any]:
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

    def _state(self, watcher: dict[str, Any], position: int) -> dict[str, Any]:
        return {"position": position, "source": type(self._source).__name__, "watcher": watcher}

    def _resume(self) -> float | None:
        """Go on from the checkpoint; the stamp from which a sender that cannot seek sends again."""
        assert self._options.checkpoint is not None
        state = read_checkpoint(self._options.checkpoint)
        if state["source"] != type(self._source).__name__:
            raise InputError(
                f"the checkpoint is of a watch of another kind of source than {self._source.name}; give the same --from"
            )
        seekable = self._source.seekable
        self._watcher.restore(state["watcher"], self._source.first_line() if seekable else None, replayed=not seekable)
        self._position = int(state["position"]) if seekable else 0
        stamp = self._watcher.last_stamp_s
        if stamp is not None and not seekable:
            self._say(f"rows up to t = {stamp!r} s were taken before; the sender may send again from there")
        return stamp
