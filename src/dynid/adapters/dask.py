"""Dask's scheduler and workers: connected once, checked once, closed at the end."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

from dynid.errors import InputError

INSTALL = "pip install 'dynid[dask]'"
WAIT_S = 10.0
"""Time in which a scheduler must answer."""
_COMPARED = ("dynid", "python", "numpy")


@lru_cache(maxsize=8)
def connected(address: str | None, n_workers: int) -> Any:
    """A client of the scheduler at an address, or of a cluster of ``n_workers`` single-thread processes on this machine."""
    distributed = _distributed()
    try:
        if address is None:
            cluster = distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
            atexit.register(cluster.close)
            client = distributed.Client(cluster, timeout=WAIT_S)
        else:
            client = distributed.Client(address, timeout=WAIT_S)
    except (OSError, TimeoutError, ValueError) as error:
        where = address or "a cluster on this machine"
        raise InputError(f"engine 'dask': no scheduler answers at {where} within {WAIT_S:g} s ({error})") from None
    atexit.register(client.close)
    refuse_other_versions(versions_here(), client.run(versions_here), address or "this machine")
    if not client.scheduler_info()["workers"]:
        raise InputError(f"engine 'dask': the scheduler at {address} has no worker, expected at least one")
    return client


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise InputError(f"engine 'dask' needs Dask's scheduler, which is not installed: {INSTALL}") from None


def as_done(futures: list[Any]) -> Iterator[Any]:
    """Futures as they are done."""
    yield from _distributed().as_completed(futures)


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
        return "the scheduler was lost while it had work"
    return None
