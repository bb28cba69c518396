"""Compiled kernels: kept on the disk where there is a place for them, else compiled anew in memory by every process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache as once
from typing import TYPE_CHECKING, Any

import numba
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

if TYPE_CHECKING:
    from numba import njit

    njit_helper = njit
else:

    def njit(*, cache: bool = True, **options: Any) -> Any:
        """``numba.njit`` whose cache is left out where no folder for it can be written, and read without the compiler."""

        def compiled(function: Callable[..., Any]) -> Any:
            if cache:
                try:
                    kernel = numba.njit(cache=True, no_cfunc_wrapper=True, **options)(function)
                except RuntimeError:  # "cannot cache function: no locator available"
                    _say()
                else:
                    if _reads_without_compiler():
                        kernel._cache = _ReadCache(kernel.py_func)
                        kernel._cache.heed(_stamps_of_helpers(function))
                    return kernel
            return numba.njit(**options)(function)

        return compiled

    def njit_helper(**options: Any) -> Any:
        """The same of what kernels alone call: nothing that Python would need to call it is compiled with it."""
        return njit(no_cpython_wrapper=True, **options)


__all__ = ["announced", "is_cached", "njit", "njit_helper"]

_met: set[Any] = set()
"""Kernels that were used in this process, so that their compilation is not announced again."""
_TRIED = ((0, 68),)
"""Versions of Numba whose caches are known to be read without the compiler's tables; others are left as they are."""


def _reads_without_compiler() -> bool:
    return tuple(numba.version_info.short) in _TRIED


class _ReadCache(FunctionCache):
    """Numba's cache of machine code, read without first loading everything that compiling needs.

    Numba declares all functions that it could compile before it reads one that it has compiled: a fifth of a second of every
    command. Machine code needs the memory runtime alone; whoever compiles afterwards still finds the declarations made then.
    """

    def heed(self, stamps: tuple[Any, ...]) -> None:
        """Let the cache be out of date where one of these stamps has changed, not the kernel's own file alone."""
        if stamps:
            file: Any = self._cache_file
            file._source_stamp = (file._source_stamp, *stamps)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel for these types as it was stored; None where it was not."""
        from numba.core.runtime.nrt import rtsys

        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


def _stamps_of_helpers(function: Callable[..., Any]) -> tuple[Any, ...]:
    """Stamps of the other files whose compiled functions a kernel's own file has imported; Numba itself does not look there."""
    imported: Iterable[Any] = (value for value in function.__globals__.values() if isinstance(value, Dispatcher))
    found = {
        value.py_func.__code__.co_filename: value._cache._cache_file._source_stamp
        for value in imported
        if isinstance(value._cache, _ReadCache)
    }
    return tuple(found[name] for name in sorted(found) if name != function.__code__.co_filename)


def announced(kernel: Any) -> Any:
    """The kernel itself, after saying on the log that its first use on this machine compiles it."""
    if kernel not in _met:
        if not is_cached(kernel):
            logging.getLogger("dynid").warning("compiling %s, once on this machine, a few seconds", kernel.py_func.__name__)
        _met.add(kernel)
    return kernel


def is_cached(kernel: Any) -> bool:
    """Whether a kernel was compiled before, in this process or, from the same source, on this machine.

    Numba's own index decides: by the dates of the files a package that was installed anew would count as not compiled for ever.
    """
    if kernel.signatures:
        return True
    file = getattr(kernel._cache, "_cache_file", None)  # none where nothing can be kept
    return file is not None and bool(file._load_index())


@once
def _say() -> None:
    logging.getLogger("dynid").warning(
        "compiled kernels cannot be kept on this machine, so every start compiles them again: set NUMBA_CACHE_DIR to a folder "
        "that can be written"
    )
