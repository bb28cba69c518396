"""Compiled kernels: kept on the disk where there is a place for them, else compiled anew in memory by every process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache as once
from typing import TYPE_CHECKING, Any

import numba
from numba.core.caching import FunctionCache

if TYPE_CHECKING:
    from numba import njit
else:

    def njit(*, cache: bool = True, **options: Any) -> Any:
        """``numba.njit`` whose cache is left out where no folder for it can be written, and read without the compiler."""

        def compiled(function: Callable[..., Any]) -> Any:
            if cache:
                try:
                    kernel = numba.njit(cache=True, **options)(function)
                except RuntimeError:  # "cannot cache function: no locator available"
                    _say()
                else:
                    if _reads_without_compiler():
                        kernel._cache = _ReadCache(kernel.py_func)
                    return kernel
            return numba.njit(**options)(function)

        return compiled


__all__ = ["is_cached", "njit"]

_TRIED = ((0, 68),)
"""Versions of Numba whose caches are known to be read without the compiler's tables; others are left as they are."""


def _reads_without_compiler() -> bool:
    return tuple(numba.version_info.short) in _TRIED


class _ReadCache(FunctionCache):
    """Numba's cache of machine code, read without first loading everything that compiling needs.

    Numba declares all functions that it could compile before it reads one that it has compiled: a fifth of a second of every
    command. Machine code needs the memory runtime alone; whoever compiles afterwards still finds the declarations made then.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel for these types as it was stored; None where it was not."""
        from numba.core.runtime.nrt import rtsys

        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


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
