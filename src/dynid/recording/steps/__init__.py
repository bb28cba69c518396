"""Processing steps, one idea a file; :func:`dynid.recording.process.process` composes them."""

from dynid.recording.steps.decimate import Decimate
from dynid.recording.steps.differentiate import Differentiate
from dynid.recording.steps.edges import DropEdges
from dynid.recording.steps.gaps import SplitAtGaps
from dynid.recording.steps.lowpass import LowPass
from dynid.recording.steps.median import Median
from dynid.recording.steps.period_average import PeriodAverage
from dynid.recording.steps.repeated import DropRepeated
from dynid.recording.steps.resample import Resample
from dynid.recording.steps.savitzky_golay import SavitzkyGolay
from dynid.recording.steps.shift import Shift
from dynid.recording.steps.spline import SmoothingSpline
from dynid.recording.steps.step import Step
from dynid.recording.steps.trim import Trim, TrimToMotion
from dynid.recording.steps.unwrap import Unwrap

__all__ = [
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
]
