"""Dask's scheduler and workers: connected once, checked once, closed at the end."""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Collection
from functools import lru_cache
from importlib import import_module
from typing import Any

from dynid.errors import InputError

INSTALL = "pip install 'dynid[dask]'"
WAIT_S = 10.0
"""Time in which a scheduler must answer."""
POLL_S = 2.0
"""Time between looks at whether there are still workers."""
SCHEDULER_LOST = "the scheduler was lost while it had work"
_COMPARED = ("dynid", "python", "numpy")
_MEMORY_KEPT = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}
"""Workers of this process keep memory that they will use again. Dask would have it given back at once, and then every large array
is mapped anew and its pages are cleared: two fifths of the CPU time of triangles."""
_NOT_WATCHED = {"distributed.worker.profile.enabled": False}
"""No look at the stack of a worker every 10 ms: nobody sees it, and it takes the core from another worker where they share one."""

_NO_PAGES: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
"""No web pages, which have no password."""


@lru_cache(maxsize=8)
def connected(address: str | None, n_workers: int) -> Any:
    """A client of the scheduler at an address, or of a cluster of ``n_workers`` single-thread processes on this machine."""
    distributed = _distributed()
    try:
        if address is None:
            cluster = _local_cluster(distributed, n_workers)
            atexit.register(cluster.close)
            client = distributed.Client(cluster, timeout=WAIT_S)
        else:
            client = distributed.Client(address, timeout=WAIT_S)  # whoever reaches a given address runs code there, as we do
    except (OSError, TimeoutError, ValueError) as error:
        where = address or "a cluster on this machine"
        raise InputError(f"engine 'dask': no scheduler answers at {where} within {WAIT_S:g} s ({error})") from None
    atexit.register(client.close)
    if not client.nthreads():
        client.close()
        raise InputError(f"engine 'dask': the scheduler at {address} has no worker, expected at least one")
    refuse_other_versions(versions_here(), client.run(versions_here), address or "this machine")
    return client


def _local_cluster(distributed: Any, n_workers: int) -> Any:
    try:  # a key of this process alone: other users of the machine cannot give work to its workers
        security = import_module("distributed.security").Security.temporary()
    except ImportError:
        raise InputError(f"engine 'dask' needs the package 'cryptography' for the keys of its workers: {INSTALL}") from None
    with import_module("dask.config").set(_MEMORY_KEPT | _NO_PAGES):  # read once; a worker that is started again has it too
        return distributed.LocalCluster(
            security=security,
            protocol="tls://",
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            config=_NOT_WATCHED,
        )


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise InputError(f"engine 'dask' needs Dask's scheduler, which is not installed: {INSTALL}") from None


def done_of(client: Any, pending: Collection[Any]) -> list[Any]:
    """Those of some futures that are done, once one is; refuses to wait for workers that do not come back.

    A slow worker is waited for; a lost one's work goes to others by itself. Only where none is left does waiting end.
    """
    distributed, gone_since = _distributed(), None
    while True:
        try:
            return list(distributed.wait(list(pending), timeout=POLL_S, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            pass
        except distributed.client.FuturesCancelledError:
            raise InputError(f"engine 'dask': {SCHEDULER_LOST}") from None
        if client.status == "running" and client.nthreads():
            gone_since = None
            continue
        gone_since = gone_since or time.monotonic()
        if time.monotonic() - gone_since > WAIT_S:
            what = "all workers were lost and none came back" if client.status == "running" else SCHEDULER_LOST
            raise InputError(f"engine 'dask': {what} within {WAIT_S:g} s while there was work")


def dropped(client: Any, futures: list[Any]) -> None:
    """Work that nobody waits for any more is taken back, where there is still somebody to tell."""
    if client.status == "running":
        client.cancel(futures)


def versions_here() -> dict[str, str]:
    """Versions that must be the same where triangles are made and where they are merged."""
    import platform

    import numpy as np

    import dynid

    return {"dynid": dynid.__version__, "python": platform.python_version(), "numpy": np.__version__}


def refuse_other_versions(own: dict[str, str], workers: dict[str, dict[str, str]], where: str) -> None:
    """Workers that run other versions may find other numbers."""
    for worker, theirs in workers.items():
        for name in _COMPARED:
            if theirs.get(name) != own[name]:
                raise InputError(
                    f"engine 'dask': worker {worker} of {where} runs {name} {theirs.get(name)}, this process {own[name]}; "
                    "install the same versions on both"
                )


def lost(error: Exception) -> str | None:
    """What happened to the workers, in words; None for an error of the work itself."""
    distributed = _distributed()
    if isinstance(error, distributed.scheduler.KilledWorker):
        return "a piece of work ended several workers one after the other, most likely for want of memory"
    if isinstance(error, (distributed.client.FutureCancelledError, distributed.comm.core.CommClosedError)):
        return SCHEDULER_LOST
    return None
