"""Sections of low-pass filters and their recursion against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from dynid.signals.butterworth import butterworth_poles, butterworth_sections, resting_state, run_sections

ORDERS = [1, 2, 3, 4, 7, 12]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cutoff", [0.01, 0.2, 0.85])
def test_the_design_is_scipys(order: int, cutoff: float) -> None:
    _, ours = signal.sosfreqz(butterworth_sections(order, cutoff), 64)
    _, theirs = signal.sosfreqz(signal.butter(order, cutoff, output="sos"), 64)
    assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    _, poles, _ = signal.butter(order, cutoff, output="zpk")
    assert np.abs(butterworth_poles(order, cutoff)).max() == pytest.approx(np.abs(poles).max(), rel=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_the_recursion_is_scipys(order: int) -> None:
    sections = signal.butter(order, 0.1, output="sos")
    values = np.random.default_rng(order).normal(size=(500, 5)).cumsum(axis=0)
    theirs = signal.sosfilt(sections, values, axis=0)
    assert np.allclose(run_sections(sections, values), theirs, rtol=0.0, atol=1e-10 * np.abs(theirs).max())
    assert np.allclose(resting_state(sections), signal.sosfilt_zi(sections), rtol=1e-9, atol=1e-9)


def test_a_constant_stays_what_it_is_and_the_input_too() -> None:
    values = np.tile([[3.0, -2.0]], (200, 1))
    kept = values.copy()
    found = run_sections(butterworth_sections(4, 0.05), values, values[0])
    assert np.allclose(found, kept, rtol=1e-10)
    assert np.array_equal(values, kept)
