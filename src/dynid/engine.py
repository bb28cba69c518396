"""How many threads BLAS uses.

Many small matrix products, one after another or in several threads of ours, are slowed down by BLAS threads that wait for one
another: a design of a motion by a factor of ten.

Memory that was freed, given back to the system.

Allocators keep what a step has freed for the next one. Steps of a run need it in other sizes, so that what each has freed would add up.

Progress of long work: functions report their steps to a callback of the caller.

Where work runs: this process, threads, processes, or the workers of a Dask cluster.

    engine = engine_from("threads:4")
    regression = build_regression(robot, samples, map_over=engine.map)

Work is a function and a list of items (chunks of a log, starts of a search, replicas of a bootstrap). ``map`` yields the
results in the order of the items, as they become ready, so whoever takes them one by one keeps what is done when the user
interrupts; ``completed`` yields them, with their number, in the order in which they are done, so that none waits for a slow
one before it. An item that fails stops the rest; the error says which item it was.

The compiled kernels release the GIL, so threads serve whatever spends its time there; Python-heavy work wants processes.
These start fresh (spawn), because Numba's threading layers and BLAS do not survive a fork; the function and the items travel
to them, so the function must be one that a fresh process can import by name.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias, TypeVar

from dynid.errors import InputError, UnknownNameError


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, products run in the thread that asks for them; afterwards everything is as it was."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


MUCH = 400 << 20
"""Bytes of this process from which looking for what can be given back is worth the time."""
GROWN = 64 << 20
"""Bytes by which it must have grown since then: looking through all objects takes a tenth of a second."""
_left = 0


def give_back(much: int = MUCH) -> None:
    """Give freed memory back, where the allocators can: Arrow's, if it is loaded, and that of the GNU C library.

    Nothing is done in a process that has less than ``much``, that has hardly grown since the last time, or on systems that do
    not say how much it has.
    """
    global _left
    resident = _resident()
    _left = min(_left, resident)
    if resident < max(much, _left + GROWN):
        return
    gc.collect()
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
    if trim is not None:
        trim(0)
    _left = _resident()


def _resident() -> int:
    """Bytes of this process in memory; zero where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


Tell: TypeAlias = Callable[[str], None]
"""Called with a short text before each step."""


def silent(text: str) -> None:
    """Ignore progress."""


Item = TypeVar("Item")
Result = TypeVar("Result")
Progress: TypeAlias = Callable[[int, int], None]
"""Told after every item: how many are done, and of how many."""
ENGINES = ("serial", "threads", "processes", "dask")


class Engine(ABC):
    """Runs one function over many items."""

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """How many items run at a time."""

    @abstractmethod
    def results(
        self, function: Callable[[Item], Result], items: list[Item], progress: Progress, stop: Event, *, in_order: bool
    ) -> Iterator[tuple[int, Result]]:
        """Number and result of every item, in their order or as they are done."""

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], progress: Progress | None = None
    ) -> Iterator[Result]:
        """``function`` of every item, in their order; nothing runs until the first result is asked for."""
        for _, result in self.results(function, list(items), progress or _untold, Event(), in_order=True):
            yield result

    def completed(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
        stop: Event | None = None,
    ) -> Iterator[tuple[int, Result]]:
        """Number and result of every item, as they are done.

        ``stop`` is set as soon as no more is wanted (an interrupt, an error), before the wait for what still runs in other
        threads: a function that looks at it ends sooner.
        """
        return self.results(function, list(items), progress or _untold, stop or Event(), in_order=False)


def _untold(done: int, count: int) -> None:
    """Nobody asks how far it is."""


@dataclass(frozen=True)
class Serial(Engine):
    """One item after another, here."""

    @property
    def n_workers(self) -> int:
        return 1

    def results(
        self, function: Callable[[Item], Result], items: list[Item], progress: Progress, stop: Event, *, in_order: bool
    ) -> Iterator[tuple[int, Result]]:
        for index, item in enumerate(items):
            with _naming_item(index, len(items)):
                result = function(item)
            progress(index + 1, len(items))
            yield index, result


@dataclass(frozen=True)
class _Workers(Engine):
    """Several items at a time, given to workers that hand back futures."""

    n: int = 0
    """Workers; 0 stands for one per core this process may use."""

    def __post_init__(self) -> None:
        if self.n < 0:
            raise InputError(f"{type(self).__name__} has {self.n} workers, expected 1 or more, or 0 for one per core")

    @property
    def n_workers(self) -> int:
        return self.n or usable_cores()

    @abstractmethod
    def open_workers(self, count: int) -> Any:
        """The workers, for so many items."""

    def n_ahead(self, count: int) -> int:
        """Items that the workers are given at a time: enough to keep them busy, not so many that results pile up."""
        return 2 * self.n_workers

    def submit(self, workers: Any, function: Callable[[Any], Any], item: Any) -> Any:
        """One item as a future."""
        return workers.submit(function, item)

    def wait_for_one(self, workers: Any, futures: list[Any]) -> Collection[Any]:
        """Those of some futures that are done, once one is."""
        return wait(futures, return_when=FIRST_COMPLETED).done

    def result_of(self, future: Any) -> Any:
        """What became of an item that is done."""
        return future.result()

    def close_workers(self, workers: Any, futures: list[Any]) -> None:
        """After the last item, an error, an interrupt, or a caller who wants no more."""
        workers.shutdown(wait=True, cancel_futures=True)

    def results(
        self, function: Callable[[Item], Result], items: list[Item], progress: Progress, stop: Event, *, in_order: bool
    ) -> Iterator[tuple[int, Result]]:
        if not items:
            return
        workers, ahead = self.open_workers(len(items)), iter(enumerate(items))
        running: dict[int, Any] = {}
        done = 0
        try:
            while done < len(items):
                for index, item in islice(ahead, self.n_ahead(len(items)) - len(running)):
                    running[index] = self.submit(workers, function, item)
                awaited = dict([min(running.items())]) if in_order else running
                finished = self.wait_for_one(workers, list(awaited.values()))
                ready = [index for index, future in awaited.items() if future in finished]
                del awaited, finished  # workers give up what nobody holds any more, and do not make it again
                for index in ready:
                    with _naming_item(index, len(items)):
                        result = self.result_of(running[index])
                    del running[index]
                    done += 1
                    progress(done, len(items))
                    yield index, result
        finally:
            stop.set()
            self.close_workers(workers, list(running.values()))


class Threads(_Workers):
    """Threads of this process: nothing is copied; good for work inside compiled kernels."""

    def open_workers(self, count: int) -> Executor:
        return ThreadPoolExecutor(min(self.n_workers, count), thread_name_prefix="dynid")


class Processes(_Workers):
    """Fresh processes: good for work in Python; each pays for starting and importing."""

    def open_workers(self, count: int) -> Executor:
        n_workers = min(self.n_workers, count)
        return ProcessPoolExecutor(n_workers, mp_context=get_context("spawn"), initializer=_begin_process)

    def submit(self, workers: Any, function: Callable[[Any], Any], item: Any) -> Any:
        with _interrupts_held():  # this is where a worker starts
            return workers.submit(function, item)


@dataclass(frozen=True)
class Dask(_Workers):
    """Workers of a Dask cluster: work goes where they are, results come back; a worker that dies changes nothing.

    Without an address a cluster of single-thread processes is started on this machine, one per core or ``n``, and ended with
    this process.
    """

    n: int = field(default=0, kw_only=True)
    address: str | None = None

    @property
    def n_workers(self) -> int:
        return len(self.open_workers(0).nthreads()) if self.address else self.n or usable_cores()

    def open_workers(self, count: int) -> Any:
        from dynid.engine_dask import connected

        return connected(self.address, 0 if self.address else self.n_workers)

    def n_ahead(self, count: int) -> int:
        return count  # the scheduler keeps what waits

    def submit(self, workers: Any, function: Callable[[Any], Any], item: Any) -> Any:
        return workers.submit(function, item, pure=False)

    def wait_for_one(self, workers: Any, futures: list[Any]) -> Collection[Any]:
        from dynid.engine_dask import done_of

        return done_of(workers, futures)

    def result_of(self, future: Any) -> Any:
        from dynid.engine_dask import lost

        try:
            return future.result()
        except Exception as error:
            if (what := lost(error)) is not None:
                raise InputError(f"engine 'dask': {what}") from None
            raise

    def close_workers(self, workers: Any, futures: list[Any]) -> None:
        from dynid.engine_dask import dropped

        dropped(workers, futures)


def engine_from(choice: str | int | Engine | None = None) -> Engine:
    """An engine from what a user wrote: ``serial``, ``threads``, ``processes:4``, ``dask``, ``dask:tcp://host:8786``, a number of
    threads; serial without."""
    if isinstance(choice, Engine):
        return choice
    if choice is None:
        return Serial()
    kind, separator, count = str(choice).strip().partition(":")
    kind = kind.lower()
    if kind == "dask":
        if separator and not count:
            raise InputError(f"engine '{choice}' has no address, expected one as in 'dask:tcp://host:8786', or 'dask' alone")
        return Dask(n=int(count)) if count.isdigit() else Dask(count or None)
    if not separator and kind.lstrip("+-").isdigit():
        kind, count = "threads", kind
    if kind not in ENGINES:
        raise UnknownNameError("engine", kind, ENGINES)
    if (separator or count) and not count.lstrip("+-").isdigit():
        raise InputError(f"engine '{choice}' has '{count}' workers, expected a number, as in '{kind}:4'")
    n = int(count) if count else 0
    if kind == "serial":
        if n not in (0, 1):
            raise InputError(f"engine '{choice}' has {n} workers, a serial one has 1; use 'threads:{n}'")
        return Serial()
    if kind == "processes":
        return Processes(n)
    return Serial() if n == 1 else Threads(n)


def usable_cores() -> int:
    """Cores that this process may run on, which in a container are often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold the interrupt back, here and in a process started meanwhile until it is ready to end in silence."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start lets interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_process() -> None:
    """What a fresh process does first."""
    # The interrupt key reaches the workers too: they end at once and in silence, the answer is given by the caller.
    # Where a shell has turned it off for a job in the background, it stays off.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # The workers are the parallelism; BLAS, when it is loaded later, is not to add its own.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")


@contextmanager
def _naming_item(index: int, count: int) -> Iterator[None]:
    """Say which item failed, without changing what kind of error it is."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in item {index} of {count}")
        raise
