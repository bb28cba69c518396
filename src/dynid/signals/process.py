"""From a recording to samples: steps one after the other, on a whole log or chunk by chunk with the same result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import overload
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import check_positive, frozen_view
from dynid.errors import InputError
from dynid.signals.recording import Recording, StaticRecording, WrenchRecording
from dynid.signals.samples import Samples, WrenchSamples, wrench_samples, wrench_signals
from dynid.signals.steps.clock import Resample, Shift
from dynid.signals.steps.cuts import DropEdges
from dynid.signals.steps.step import Extent, Signals, Step, Tally, Upstream
from dynid.signals.stream import RecordingStream

PIECE_ROWS = 16_384
"""Rows of a stream that are processed at a time, however many are read: steps hold a few such pieces each."""


@overload
def process(recording: Recording, steps: Sequence[Step], *, edge_s: float | None = None) -> Samples: ...
@overload
def process(recording: RecordingStream, steps: Sequence[Step], *, edge_s: float | None = None) -> ProcessedStream: ...
@overload
def process(recording: WrenchRecording, steps: Sequence[Step], *, edge_s: float | None = None) -> WrenchSamples: ...


def process(
    recording: Recording | RecordingStream | WrenchRecording, steps: Sequence[Step], *, edge_s: float | None = None
) -> Samples | ProcessedStream | WrenchSamples:
    """Samples of a recording after the steps, in their order; of a stream, samples that are made while they are read.

    Args:
        recording: a log, a stream of one, or a log of a force/torque sensor; there ``torque`` of the steps is the wrench.
        steps: processing steps, see :mod:`dynid.signals.steps`. Steps that need equally spaced samples get a ``Resample`` before them if
            there is none.
        edge_s: time dropped at both ends of every uninterrupted part, s; by default 0.3 s or three filter time constants,
            whichever is longer, and one row where only differences were taken.

    ``raw_torque`` of the samples is the torque as recorded, on the same rows.

    Returns:
        position, velocity, acceleration and torque ``(n, joints)`` on one clock, SI units; of a stream the same, piece by piece.

    Examples:
        >>> import dynid
        >>> steps = [dynid.LowPass(cutoff_hz=8.0), dynid.Differentiate()]
        >>> samples = dynid.process(dynid.demo_recording(seconds=4.0), steps)
        >>> samples.torque.shape == samples.raw_torque.shape
        True
    """
    _refuse_other_kinds(recording)
    chain, delay_s = complete_steps(steps, edge_s), recording.source.torque_delay_s
    if delay_s != 0.0:  # torque is moved to where it belongs once rows are on a uniform clock
        place = next((k + 1 for k, step in enumerate(chain) if isinstance(step, Resample)), len(chain))
        chain = (*chain[:place], Shift(delay_s, signals=("torque",)), *chain[place:])
    if isinstance(recording, RecordingStream):
        return ProcessedStream(recording, chain)
    tally = Tally()
    if isinstance(recording, WrenchRecording):
        with _naming(recording.place):
            signals = _whole_signals(wrench_signals(recording), chain, tally)
            return wrench_samples(recording, signals, (*recording.source.notes, *tally.notes))
    with _naming(recording.place):
        signals, left = _on_uniform_clock(recording, chain, tally)
        signals = _whole_signals(signals, left, tally)
        return _samples(signals, (*recording.source.notes, *tally.notes), recording)


_resampled: WeakKeyDictionary[Recording, tuple[Signals, list[str]]] = WeakKeyDictionary()
"""Recordings on a uniform clock, and what was said of that: a run processes one recording in many ways that all begin so."""


def _on_uniform_clock(recording: Recording, chain: Sequence[Step], tally: Tally) -> tuple[Signals, Sequence[Step]]:
    """The signals of a recording and the steps still to do; the first, where it is the usual resampling, was done once for all."""
    signals = _signals(recording, float(recording.time[0]), 0)
    if not chain or chain[0] != Resample():
        return signals, chain
    if recording not in _resampled:
        own = Tally()
        found = _whole_signals(signals, chain[:1], own)
        shared = {name: frozen_view(values) for name, values in found.values.items()}
        _resampled[recording] = replace(found, values=shared), own.sentences
    found, said = _resampled[recording]
    for sentence in said:
        tally.say(sentence)
    return found, chain[1:]


def _whole_signals(signals: Signals, chain: Sequence[Step], tally: Tally) -> Signals:
    """All rows of a log in memory after the steps."""
    pieces = list(_chained(lambda _: iter([signals]), chain)(tally))
    if not pieces:
        raise InputError("no row is left after the processing steps")
    found = pieces[0]
    for piece in pieces[1:]:
        found = found.joined(piece)
    return found


def _refuse_other_kinds(recording: object) -> None:
    """Pose tables come out of the same reader, so a script may well pass one on to here."""
    if isinstance(recording, (Recording, RecordingStream, WrenchRecording)):
        return
    what = "a table of poses" if isinstance(recording, StaticRecording) else f"a {type(recording).__name__}"
    path = recording.source.path if isinstance(recording, StaticRecording) else ""
    raise InputError(
        f"{path or 'the recording'} is {what}, expected a motion log with joint positions: processing steps filter joint "
        "motion and torque (read_recording(..., kind='motion') refuses other logs)"
    )


@contextmanager
def _naming(log: str) -> Iterator[None]:
    """Refusals of steps, which see signals alone, name the log; those of a reader do already."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(log):
            raise
        raise InputError(f"{log}: {error}") from error


def complete_steps(steps: Sequence[Step], edge_s: float | None = None) -> tuple[Step, ...]:
    """The steps with a resampling where one is needed, and edges dropped once all that spoils them is done."""
    check_positive("edge_s", edge_s, "seconds", or_zero=True)
    chain: list[Step] = []
    lost, place = Extent(), 0
    uniform = periodic = False
    for step in steps:
        if step.needs_uniform_clock and not uniform:
            chain.append(Resample())
        if step.gathers:
            # What is gathered from all rows must not see spoiled ones, and has no ends of its own.
            chain[place:place] = _drop(lost, edge_s)
            lost, periodic = Extent(), True
        chain.append(step)
        uniform = uniform or step.needs_uniform_clock or step.makes_uniform_clock
        if isinstance(step, DropEdges):
            lost, edge_s = Extent(), edge_s or 0.0
        elif not periodic and step.transient() != Extent():
            lost, place = lost | step.transient(), len(chain)
    if not periodic:
        chain[place:place] = _drop(lost, edge_s)
    return tuple(chain)


def _drop(lost: Extent, edge_s: float | None) -> list[Step]:
    extent = lost if edge_s is None else Extent(seconds=edge_s)
    return [] if extent == Extent() else [DropEdges(seconds=extent.seconds, rows=extent.rows)]


@dataclass(frozen=True, eq=False)
class ProcessedStream:
    """Samples of a log too long to hold: every walk reads the log again and yields pieces in order."""

    recording: RecordingStream
    steps: tuple[Step, ...]
    anchor_s: float | None = None
    """Time that a uniform clock counts from, for a part of a log; None for the first stamp."""

    def __iter__(self) -> Iterator[Samples]:
        """Pieces of samples; the last one carries the notes on the whole pass."""
        tally = Tally()
        log = self.recording.source.path or "the recording"
        held: Signals | None = None
        pieces = _chained(self._signals, self.steps)(tally)
        while True:
            with _naming(log):  # not what the caller does with a piece
                piece = next(pieces, None)
                if piece is None:
                    break
                samples = None if held is None else _samples(held, (), self.recording)
            if samples is not None:
                yield samples
            held = piece
        with _naming(log):
            if held is None:
                raise InputError("no row is left after the processing steps")
            last = _samples(held, (*self.recording.source.notes, *tally.notes), self.recording)
        yield last

    def _signals(self, tally: Tally) -> Iterator[Signals]:
        """The log as consecutive pieces."""
        start_s = self.anchor_s
        row = 0
        for part in self.recording.as_read():
            start_s = float(part.time[0]) if start_s is None else start_s
            signals = _signals(part, start_s, row)
            for first in range(0, len(signals), PIECE_ROWS):
                yield signals.cut(slice(first, first + PIECE_ROWS))
            row += part.n_samples


def _chained(source: Upstream, steps: Sequence[Step]) -> Upstream:
    """One step after the other, each over what leaves the one before."""
    for step in steps:
        source = partial(step.over, source)
    return source


def _signals(recording: Recording, start_s: float, first_row: int) -> Signals:
    values = {
        name: array
        for name in ("position", "velocity", "acceleration", "torque")
        if (array := getattr(recording, name)) is not None
    }
    if recording.torque is not None:
        values["raw_torque"] = recording.torque
    return Signals(recording.time, values, start_s, first_row)


def _samples(signals: Signals, notes: tuple[str, ...], recording: Recording | RecordingStream) -> Samples:
    """The samples of a recording; torque that it says is not used has no weight."""
    for name in ("velocity", "acceleration"):
        if name not in signals.values:
            raise InputError(
                f"after the processing steps there is no {name}; add a step that makes it, such as Differentiate()"
            )
    made = Samples(time=signals.time, notes=notes, **dict(signals.values))
    ignored = recording.source.ignored
    if not ignored:
        return made
    used = np.array([0.0 if name in ignored else 1.0 for name in recording.joint_names])
    return made.with_weight(np.broadcast_to(used, (len(made), len(used))))
