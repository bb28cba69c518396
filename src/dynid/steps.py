"""Processing steps: what is done to the signals of a log before they become samples.

Steps are values; :func:`dynid.process` applies them in order:

    >>> import dynid
    >>> steps = [dynid.steps.LowPass(cutoff_hz=8.0), dynid.steps.Differentiate()]
    >>> samples = dynid.process(dynid.demo_recording(seconds=4.0), steps)
    >>> samples.acceleration.shape == samples.torque.shape
    True

A step of your own derives from :class:`Step`.
"""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.recording.steps": (
            "Decimate",
            "Differentiate",
            "DropEdges",
            "DropRepeated",
            "LowPass",
            "Median",
            "PeriodAverage",
            "Resample",
            "SavitzkyGolay",
            "Shift",
            "SmoothingSpline",
            "SplitAtGaps",
            "Step",
            "Trim",
            "TrimToMotion",
            "Unwrap",
        ),
    },
)


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
