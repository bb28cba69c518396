"""What a processing step is, and how local steps act on a log in chunks.

A step maps pieces of signals to pieces of signals. A *local* step looks only some rows or seconds to either side, its
reach; it is run on windows that overlap by that reach, and each window answers for its own rows, so the size of the
chunks does not change the result. The true ends of a log are the only places where a step sees an end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.signals.signals import SMOOTHED, Signals, Tally, Upstream

HEAD_ROWS = 10_001
"""Rows at the head of a log from which its sampling step is taken, however it is cut into chunks."""


@dataclass(frozen=True)
class Extent:
    """How far something goes along a log, in rows and in seconds."""

    rows: int = 0
    seconds: float = 0.0

    def __or__(self, other: Extent) -> Extent:
        return Extent(max(self.rows, other.rows), max(self.seconds, other.seconds))


class Step(ABC):
    """A processing step: a frozen set of options, and what it makes of signals. All steps are such values.

    A step of your own derives from it and says in ``over`` what becomes of the pieces of a log; the rest has defaults.

    Examples:
        >>> import dynid
        >>> class Doubled(dynid.Step):
        ...     def over(self, upstream, tally):
        ...         for piece in upstream(tally):
        ...             yield piece.updated({"torque": 2.0 * piece.values["torque"]})
        >>> log = dynid.demo_recording(seconds=4.0)
        >>> samples = dynid.process(log, [Doubled(), dynid.Differentiate()], edge_s=0.0)
        >>> bool((samples.torque == 2.0 * log.torque).all())
        True
    """

    makes_uniform_clock: ClassVar[bool] = False
    """Whether the samples that leave the step are equally spaced."""
    gathers: ClassVar[bool] = False
    """Whether the step makes something new of all rows together, so that ends must be in order before it."""

    @property
    def needs_uniform_clock(self) -> bool:
        """Whether the step can only act on equally spaced samples; any clock will do unless a step says otherwise."""
        return False

    def transient(self) -> Extent:
        """How much of either end of the log the step leaves unfit for use; nothing unless a step says so."""
        return Extent()

    @abstractmethod
    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """The step applied to everything that comes from upstream."""


class LocalStep(Step):
    """A step that acts window by window; subclasses say how far they look and what they do with a window."""

    @property
    def head_rows(self) -> int:
        """Rows that must be available before :meth:`planned` is asked."""
        return 2

    def planned(self, head: Signals, tally: Tally) -> LocalStep:
        """The step with everything settled that depends on the head of the log."""
        return self

    @abstractmethod
    def reach(self, head: Signals) -> Extent:
        """How far a row of the result depends on rows before and after it: so many seconds, and rows beyond them."""

    @abstractmethod
    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        """The result for the ``own`` rows of a window; ``starts`` and ``ends`` say where the log itself does."""

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """One pass is enough."""
        return self.along(upstream(tally), tally)

    def along(self, pieces: Iterable[Signals], tally: Tally) -> Iterator[Signals]:
        """Windows of every segment, one after the other."""
        step: LocalStep | None = None
        for _, segment in groupby(pieces, key=lambda piece: piece.segment):
            held, rest = _head(segment, self.head_rows)
            if self.needs_uniform_clock and held.period_s is None:
                raise InputError(f"step {self} needs equally spaced samples; put a Resample step before it")
            # All segments of a log share what was planned at its head, such as the sampling step.
            step = step or self.planned(held, tally)
            for result in step._windows(held, rest, tally):
                if len(result):
                    yield result

    def _windows(self, held: Signals, rest: Iterable[Signals], tally: Tally) -> Iterator[Signals]:
        reach = self.reach(held)
        if held.periodic:
            yield self._wrapped(held, reach, tally)
            return
        own, starts = 0, True
        for piece in rest:
            # Rows of ``held`` before this one have their whole reach behind them; one row is always left.
            by_time = int(np.searchsorted(held.time, held.time[-1] - reach.seconds, side="right")) - 1
            stop = max(0, by_time - max(reach.rows - 1, 0))
            # Windows much shorter than their overlap would do the same work many times.
            if stop - own >= max(reach.rows, 1):
                first = _first_with_context(held, own, reach)
                window, part = held.cut(slice(first, None)), slice(own - first, stop - first)
                yield self.apply(window, part, starts and first == 0, False, tally)
                keep = _first_with_context(held, stop, reach)
                held, own, starts = held.cut(slice(keep, None)), stop - keep, starts and keep == 0
            held = held.joined(piece)
        yield self.apply(held, slice(own, len(held)), starts, True, tally)

    def _wrapped(self, period: Signals, reach: Extent, tally: Tally) -> Signals:
        """One period stands for an endless motion: its neighbours on both sides are itself."""
        if period.period_s is None:
            raise InputError("one period of a motion needs equally spaced samples")
        n = len(period)
        rows = max(reach.rows, int(np.ceil(reach.seconds / period.period_s)))
        index = np.arange(-rows, n + rows)
        window = period.chosen(index % n, time=period.time[0] + index * period.period_s)
        return replace(self.apply(window, slice(rows, rows + n), False, False, tally), first_row=0)


class RowwiseStep(LocalStep):
    """A local step that returns as many rows as it is given, with some quantities replaced."""

    @abstractmethod
    def compute(self, window: Signals, starts: bool, ends: bool) -> dict[str, Array]:
        """New values of some quantities on all rows of the window."""

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        """The own rows of what was computed."""
        return window.updated(self.compute(window, starts, ends)).cut(own)


def chosen_signals(window: Signals, signals: tuple[str, ...] | None, step: object) -> list[str]:
    """The quantities a filter acts on: those named, or of the usual ones all that are there."""
    if signals is None:
        return [name for name in SMOOTHED if name in window.values]
    window.need(signals, step)
    return list(signals)


def checked_signals(signals: tuple[str, ...] | None, step: str) -> None:
    """Refuse names that no quantity has."""
    if isinstance(signals, str):
        raise InputError(f"{step} signals is the text '{signals}', expected a tuple of names")
    for name in signals or ():
        if name not in SMOOTHED:
            raise InputError(f"{step} knows no signal '{name}'; available: {', '.join(SMOOTHED)}")


def side_by_side(window: Signals, names: list[str]) -> Array:
    """Several quantities as one array, so that a filter runs once."""
    return np.concatenate([window.values[name] for name in names], axis=1)


def apart(filtered: Array, window: Signals, names: list[str]) -> dict[str, Array]:
    """The inverse of :func:`side_by_side`."""
    ends = np.cumsum([window.values[name].shape[1] for name in names])
    return dict(zip(names, np.split(filtered, ends[:-1], axis=1), strict=True))


def _head(segment: Iterator[Signals], rows: int) -> tuple[Signals, Iterator[Signals]]:
    """Pieces joined until they hold some rows, and the rest of the segment."""
    held = next(segment)
    while len(held) < rows:
        following = next(segment, None)
        if following is None:
            break
        held = held.joined(following)
    return held, segment


def _first_with_context(held: Signals, row: int, reach: Extent) -> int:
    """First row that the rows from ``row`` on depend on."""
    by_time = int(np.searchsorted(held.time, held.time[row] - reach.seconds, side="left"))
    return max(0, by_time - reach.rows)
