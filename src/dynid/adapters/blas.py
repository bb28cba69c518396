"""How many threads BLAS uses.

Many small matrix products, one after another or in several threads of ours, are slowed down by BLAS threads that wait for one
another: a design of a motion by a factor of ten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
