"""Compiled kernels: kept on the disk where there is a place for them, else compiled anew in memory by every process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache as once
from typing import TYPE_CHECKING, Any

import numba

if TYPE_CHECKING:
    from numba import njit
else:

    def njit(*, cache: bool = True, **options: Any) -> Any:
        """``numba.njit`` whose cache is left out where no folder for it can be written."""

        def compiled(function: Callable[..., Any]) -> Any:
            if cache:
                try:
                    return numba.njit(cache=True, **options)(function)
                except RuntimeError:  # "cannot cache function: no locator available"
                    _say()
            return numba.njit(**options)(function)

        return compiled


__all__ = ["njit"]


@once
def _say() -> None:
    logging.getLogger("dynid").warning(
        "compiled kernels cannot be kept on this machine, so every start compiles them again: set NUMBA_CACHE_DIR to a folder "
        "that can be written"
    )
