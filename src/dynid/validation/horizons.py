"""Error of a free run over growing horizons, of the identified model beside its description.

From a measured state the measured torque drives the model; the error is the root mean square of position over joints and time up to
the horizon. Errors of torque grow twice integrated, so one horizon alone says little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.recording.samples import Samples
from dynid.robot.model import Robot
from dynid.validation.replay import MOST_WINDOWS, RunawayError, replay

HORIZONS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class HorizonError:
    """Root mean square of position over joints and time up to a horizon, rad or m; None where a model ran away."""

    horizon_s: float
    identified: float | None
    description: float | None

    def as_dict(self) -> dict[str, Any]:
        return {"horizon_s": self.horizon_s, "identified": self.identified, "description": self.description}


def error_over_horizons(
    identified: Robot, description: Robot, samples: Samples, most_windows: int = MOST_WINDOWS
) -> tuple[HorizonError, ...]:
    """Both models from the same measured states, over every horizon that fits into the samples."""
    steps = np.diff(samples.time)
    fitting = [h for h in HORIZONS_S if h <= 0.5 * samples.duration_s and h >= float(np.median(steps))]
    if not fitting:
        raise InputError(f"samples last {samples.duration_s:.3g} s, too short for a free run of {HORIZONS_S[0]:g} s")
    return tuple(
        HorizonError(h, *(_error(robot, samples, h, most_windows) for robot in (identified, description))) for h in fitting
    )


def _error(robot: Robot, samples: Samples, horizon_s: float, most_windows: int) -> float | None:
    try:
        found = replay(robot, samples, window_s=horizon_s, most_windows=most_windows)
    except RunawayError:
        return None
    return float(np.sqrt(((found.position - found.measured)[:, 1:] ** 2).mean()))
