"""Threads of the loaded BLAS."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from dynid.engine import one_blas_thread


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_one_thread_inside_and_as_before_outside():
    before = blas_threads()
    if not before:
        pytest.skip("no OpenBLAS is loaded")
    with one_blas_thread():
        assert set(blas_threads()) == {1}
        assert np.allclose(np.eye(50) @ np.eye(50), np.eye(50))
        with one_blas_thread():
            assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_restored_after_an_error():
    before = blas_threads()
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert blas_threads() == before
