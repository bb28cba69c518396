"""What a processing step is, and how local steps act on a log in chunks.

A step maps pieces of signals to pieces of signals. A *local* step looks only some rows or seconds to either side, its
reach; it is run on windows that overlap by that reach, and each window answers for its own rows, so the size of the
chunks does not change the result. The true ends of a log are the only places where a step sees an end.

Signals on their way from a recording to samples: consecutive rows of named quantities on one clock.

What runs along time (filters, integrals, windows) must not run over a gap: :func:`uninterrupted_parts` cuts pieces of any kind there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.errors import InputError

SMOOTHED: tuple[str, ...] = ("position", "velocity", "acceleration", "torque")
"""What a filter acts on by default, as far as it is there: all alike, so that they keep the same phase."""


@dataclass(frozen=True, eq=False)
class Signals:
    """Rows ``first_row ..`` of one uninterrupted segment, ``values`` by quantity, each (rows, joints).

    ``period_s`` is the step of a uniform clock, None on the clock as logged. ``start_s`` is the time that rows of the
    segment are counted from, wherever this piece lies in it. ``periodic`` rows are one period of a motion: the last is
    followed by the first.
    """

    time: Array
    values: Mapping[str, Array]
    start_s: float
    first_row: int = 0
    segment: int = 0
    period_s: float | None = None
    periodic: bool = False

    def __len__(self) -> int:
        return len(self.time)

    @property
    def end_s(self) -> float:
        """Time of the last row of this piece."""
        return float(self.time[-1])

    def cut(self, rows: slice) -> Signals:
        """Some consecutive rows."""
        start, stop, _ = rows.indices(len(self))
        return replace(
            self,
            time=self.time[start:stop],
            values={name: array[start:stop] for name, array in self.values.items()},
            first_row=self.first_row + start,
        )

    def chosen(self, rows: NDArray[Any], **changes: Any) -> Signals:
        """The rows at some indices or of a mask; the caller says what becomes of the row numbers."""
        values = {name: array[rows] for name, array in self.values.items()}
        return replace(self, **{"time": self.time[rows], "values": values, **changes})

    def updated(self, values: Mapping[str, Array]) -> Signals:
        """Some quantities replaced or added."""
        return replace(self, values={**self.values, **values})

    def joined(self, other: Signals) -> Signals:
        """These rows and the next piece of the same segment."""
        values = {name: np.concatenate([array, other.values[name]]) for name, array in self.values.items()}
        return replace(self, time=np.concatenate([self.time, other.time]), values=values)

    def need(self, names: Sequence[str], step: object) -> None:
        """Refuse in one sentence unless all the named quantities are there."""
        for name in names:
            if name not in self.values:
                held = ", ".join(key for key in self.values if key != "raw_torque")
                raise InputError(f"step {step} acts on '{name}', but at that point the log holds only {held}")


@dataclass
class Tally:
    """What a pass over the data did, for the notes: sentences, and counts of rows by reason."""

    sentences: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def say(self, sentence: str) -> None:
        """Note a sentence once."""
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    def count(self, reason: str, rows: int) -> None:
        """Add rows to a reason; the reason is a sentence with ``{n}`` in the place of the number."""
        if rows:
            self.counts[reason] = self.counts.get(reason, 0) + rows

    @property
    def notes(self) -> tuple[str, ...]:
        """All of it as sentences."""
        return (*self.sentences, *(reason.format(n=rows) for reason, rows in self.counts.items()))


Upstream: TypeAlias = Callable[[Tally], Iterator[Signals]]
"""A pass over signals, in pieces, in order, as often as it is called; what it drops is entered in the tally."""


GAP = 1.5
"""Sample periods from which a step interrupts a log."""
UNEVEN = 0.01
"""Part of the sample period by which a step of an evenly sampled log may differ."""


class Piece(Protocol):
    """Consecutive rows of a log with their times."""

    @property
    def time(self) -> Array | None: ...

    def __len__(self) -> int: ...

    def cut(self, rows: slice) -> Self:
        """Some consecutive rows."""
        ...

    def joined(self, other: Self) -> Self:
        """These rows and those that follow them."""
        ...


P = TypeVar("P", bound=Piece)


def uninterrupted_parts(
    pieces: Iterable[P], *, even: bool = True, remedy: str = "resample the recording first"
) -> Iterator[tuple[float, Iterator[P]]]:
    """Sample period and pieces of every part without a gap; a part must be used up before the next is asked for.

    ``even`` refuses steps that differ.
    """
    flow = _cut_at_gaps(pieces, even, remedy)
    first = next(flow, None)

    def part(begin: P) -> Iterator[P]:
        nonlocal first
        first = None
        yield begin
        for starts, period_s, piece in flow:
            if starts:
                first = (True, period_s, piece)
                return
            yield piece

    while first is not None:
        yield first[1], part(first[2])


def _cut_at_gaps(pieces: Iterable[P], even: bool, remedy: str) -> Iterator[tuple[bool, float, P]]:
    """Pieces without a gap inside, each with the sample period and whether an uninterrupted part starts with it."""
    last_s = period_s = np.nan
    held: P | None = None  # a single first row, from which no period can be told
    for piece in pieces:
        if held is not None:
            piece = held.joined(piece)
        if piece.time is None:
            raise InputError("these rows have no time, so no filter can run along them")
        held = piece if np.isnan(period_s) and len(piece) == 1 else None
        if held is not None or not len(piece):
            continue
        steps = np.diff(piece.time, prepend=last_s)
        if np.isnan(period_s):
            # the mean feels the rounding of the stamps least, the median no gap
            own = steps[1:]
            period_s = float(np.mean(own[own <= GAP * float(np.median(own))]))
        late = steps > GAP * period_s
        if even:
            # Refuse steps other than the sample period; those that are late interrupt the log.
            uneven = ~late & (np.abs(steps - period_s) > UNEVEN * period_s)
            if uneven.any():
                row = int(np.argmax(uneven))
                raise InputError(
                    f"samples are not equally spaced: a step of {1e3 * steps[row]:.6g} ms at {piece.time[row]:.6g} s among "
                    f"steps of {1e3 * period_s:.6g} ms; {remedy}"
                )
        bounds = [0, *(int(row) for row in np.flatnonzero(late) if row > 0), len(piece)]
        for k, (start, stop) in enumerate(pairwise(bounds)):
            starts = k > 0 or bool(np.isnan(last_s)) or bool(late[0])
            yield starts, period_s, piece.cut(slice(start, stop))
        last_s = float(piece.time[-1])
    if held is not None:
        raise InputError("a part of the samples has 1 row, too short for anything that runs along time")


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
