"""Processing steps, one idea a file; :func:`dynid.recording.process.process` composes them. Each is loaded at its first use."""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.recording.steps.decimate": ("Decimate",),
        "dynid.recording.steps.differentiate": ("Differentiate",),
        "dynid.recording.steps.edges": ("DropEdges",),
        "dynid.recording.steps.gaps": ("SplitAtGaps",),
        "dynid.recording.steps.lowpass": ("LowPass",),
        "dynid.recording.steps.median": ("Median",),
        "dynid.recording.steps.period_average": ("PeriodAverage",),
        "dynid.recording.steps.repeated": ("DropRepeated",),
        "dynid.recording.steps.resample": ("Resample",),
        "dynid.recording.steps.savitzky_golay": ("SavitzkyGolay",),
        "dynid.recording.steps.shift": ("Shift",),
        "dynid.recording.steps.spline": ("SmoothingSpline",),
        "dynid.recording.steps.step": ("Step",),
        "dynid.recording.steps.trim": (
            "Trim",
            "TrimToMotion",
        ),
        "dynid.recording.steps.unwrap": ("Unwrap",),
    },
)


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
