"""A clean log, and what a check finds in one with a known fault."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.finding import DataCheck, Finding
from dynid.signals.recording import Recording

NAMES = ("shoulder", "elbow")


def motion(t: Array) -> tuple[Array, Array]:
    q = np.stack([0.8 * np.sin(2.1 * t), 0.5 * np.cos(1.3 * t) + 0.2 * np.sin(3.0 * t)], axis=1)
    v = np.stack([1.68 * np.cos(2.1 * t), -0.65 * np.sin(1.3 * t) + 0.6 * np.cos(3.0 * t)], axis=1)
    return q, v


def clean(n: int = 5000, rate_hz: float = 250.0, **changes: Any) -> Recording:
    t = np.arange(n) / rate_hz
    q, v = motion(t)
    noise = np.random.default_rng(0).normal(size=(2, n, 2))
    tau = 20.0 * np.cos(q) + 2.0 * np.tanh(v / 0.05) + 0.1 * noise[0]
    recording = Recording(time=t, position=q, velocity=v + 1e-4 * noise[1], torque=tau, joint_names=NAMES)
    return recording.with_(**changes)


def found(check: DataCheck, code: str) -> Finding:
    finding = check.find(code)
    assert finding is not None, f"{code} not among {check.codes}"
    assert finding.what
    assert finding.remedy
    return finding
