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
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
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


def blas_threads() -> tuple[int, ...]:
    """Threads of every BLAS that is loaded."""
    from threadpoolctl import threadpool_info

    return tuple(int(library["num_threads"]) for library in threadpool_info() if library["user_api"] == "blas")


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
    trim = _malloc_trim()
    if trim is not None:
        trim(0)
    _left = _resident()


def _resident() -> int:
    """Bytes of this process in memory; zero where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@lru_cache(maxsize=1)
def _malloc_trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
    return found


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
    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], progress: Progress | None = None
    ) -> Iterator[Result]:
        """``function`` of every item, in their order; nothing runs until the first result is asked for."""

    @abstractmethod
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


@dataclass(frozen=True)
class Serial(Engine):
    """One item after another, here."""

    @property
    def n_workers(self) -> int:
        return 1

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], progress: Progress | None = None
    ) -> Iterator[Result]:
        waiting = list(items)
        for index, item in enumerate(waiting):
            try:
                result = function(item)
            except Exception as error:
                _name_item(error, index, len(waiting))
                raise
            if progress is not None:
                progress(index + 1, len(waiting))
            yield result

    def completed(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
        stop: Event | None = None,
    ) -> Iterator[tuple[int, Result]]:
        yield from enumerate(self.map(function, items, progress))


@dataclass(frozen=True)
class _Pool(Engine):
    """Several items at a time."""

    n: int = 0
    """Workers; 0 stands for one per core this process may use."""

    def __post_init__(self) -> None:
        if self.n < 0:
            raise InputError(f"{type(self).__name__} has {self.n} workers, expected 1 or more, or 0 for one per core")

    @property
    def n_workers(self) -> int:
        return self.n or usable_cores()

    @abstractmethod
    def _executor(self, n_workers: int) -> Executor: ...

    def _submit(self, executor: Executor, function: Callable[[Item], Result], item: Item) -> Future[Result]:
        return executor.submit(function, item)

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], progress: Progress | None = None
    ) -> Iterator[Result]:
        waiting = list(items)
        if not waiting:
            return
        executor = self._executor(min(self.n_workers, len(waiting)))
        try:
            # A few items ahead of the workers: enough to keep them busy, not so many that results pile up.
            ahead = iter(enumerate(waiting))
            running: deque[tuple[int, Future[Result]]] = deque()
            for index, item in ahead:
                running.append((index, self._submit(executor, function, item)))
                if len(running) >= 2 * self.n_workers:
                    break
            while running:
                index, future = running.popleft()
                try:
                    result = future.result()
                except Exception as error:
                    _name_item(error, index, len(waiting))
                    raise
                for following, item in ahead:
                    running.append((following, self._submit(executor, function, item)))
                    break
                if progress is not None:
                    progress(index + 1, len(waiting))
                yield result
        finally:  # after the last item, an error, an interrupt, or a caller who wants no more
            executor.shutdown(wait=True, cancel_futures=True)

    def completed(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
        stop: Event | None = None,
    ) -> Iterator[tuple[int, Result]]:
        waiting = list(items)
        if not waiting:
            return
        executor = self._executor(min(self.n_workers, len(waiting)))
        try:
            ahead = iter(enumerate(waiting))
            running: dict[Future[Result], int] = {}
            for index, item in ahead:
                running[self._submit(executor, function, item)] = index
                if len(running) >= 2 * self.n_workers:
                    break
            done = 0
            while running:
                ready, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(ready, key=running.__getitem__):
                    index = running.pop(future)
                    try:
                        result = future.result()
                    except Exception as error:
                        _name_item(error, index, len(waiting))
                        raise
                    for following, item in ahead:
                        running[self._submit(executor, function, item)] = following
                        break
                    done += 1
                    if progress is not None:
                        progress(done, len(waiting))
                    yield index, result
        finally:
            if stop is not None:
                stop.set()
            executor.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class Threads(_Pool):
    """Threads of this process: nothing is copied; good for work inside compiled kernels."""

    def _executor(self, n_workers: int) -> Executor:
        return ThreadPoolExecutor(n_workers, thread_name_prefix="dynid")


@dataclass(frozen=True)
class Processes(_Pool):
    """Fresh processes: good for work in Python; each pays for starting and importing."""

    def _executor(self, n_workers: int) -> Executor:
        return ProcessPoolExecutor(n_workers, mp_context=get_context("spawn"), initializer=_begin_process)

    def _submit(self, executor: Executor, function: Callable[[Item], Result], item: Item) -> Future[Result]:
        with _interrupts_held():  # this is where a worker starts
            return executor.submit(function, item)


@dataclass(frozen=True)
class Dask(Engine):
    """Workers of a Dask cluster: work goes where they are, results come back; a worker that dies changes nothing.

    Without an address a cluster of single-thread processes is started on this machine, one per core or ``n``, and ended with
    this process.
    """

    address: str | None = None
    n: int = 0

    @property
    def n_workers(self) -> int:
        if self.address is None:
            return self.n or usable_cores()
        return len(self._client().nthreads())

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], progress: Progress | None = None
    ) -> Iterator[Result]:
        from dynid.engine_dask import done_of, dropped

        client, futures = self._submitted(function, items)
        # What nobody holds any more the workers give up, work and result, and do not make again when one of them dies.
        pending, count = deque(futures), len(futures)
        futures.clear()
        try:
            for index in range(count):
                done_of(client, [pending[0]])
                result = self._result(pending[0], index, count)
                pending.popleft()
                if progress is not None:
                    progress(index + 1, count)
                yield result
        finally:
            dropped(client, list(pending))

    def completed(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
        stop: Event | None = None,
    ) -> Iterator[tuple[int, Result]]:
        from dynid.engine_dask import done_of, dropped

        client, futures = self._submitted(function, items)
        pending, count, done = {future.key: (index, future) for index, future in enumerate(futures)}, len(futures), 0
        futures.clear()
        try:
            while pending:
                ready = {one.key for one in done_of(client, [future for _, future in pending.values()])}
                for key in [key for key in pending if key in ready]:
                    index = pending[key][0]
                    result = self._result(pending[key][1], index, count)
                    del pending[key]
                    done += 1
                    if progress is not None:
                        progress(done, count)
                    yield index, result
        finally:
            if stop is not None:
                stop.set()
            dropped(client, [future for _, future in pending.values()])

    def _client(self) -> Any:
        from dynid.engine_dask import connected

        return connected(self.address, 0 if self.address else self.n_workers)

    def _submitted(self, function: Callable[[Item], Result], items: Iterable[Item]) -> tuple[Any, list[Any]]:
        client = self._client()
        return client, [client.submit(function, item, pure=False) for item in items]

    def _result(self, future: Any, index: int, count: int) -> Any:
        from dynid.engine_dask import lost

        try:
            return future.result()
        except Exception as error:
            what = lost(error)
            if what is not None:
                raise InputError(f"engine 'dask': {what}") from None
            _name_item(error, index, count)
            raise


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


def _name_item(error: Exception, index: int, count: int) -> None:
    """Say which item failed, without changing what kind of error it is."""
    error.add_note(f"in item {index} of {count}")
