"""Error of a free run over growing horizons, of the identified model beside its description.

From a measured state the measured torque drives the model; the error is the root mean square of position over joints and time up to
the horizon. Errors of torque grow twice integrated, so one horizon alone says little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.recording.samples import Samples
from dynid.robot.checks import is_simulatable
from dynid.robot.model import Robot
from dynid.validation.free_run import FreeRobot, RunawayError, Windows, check_free_run, even_windows
from dynid.validation.replay import MOST_WINDOWS, windows_for

HORIZONS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
FINEST_STEP_S = 2e-3
"""Samples that follow one another faster are thinned to this: a free run of seconds does not feel it, and takes half the time."""


@dataclass(frozen=True)
class HorizonError:
    """Root mean square of position over joints and time up to a horizon, rad or m; None where a model ran away or cannot run."""

    horizon_s: float
    identified: float | None
    description: float | None
    described: bool = True
    """Whether the description has the masses that a free run needs; a DH table may lack them."""

    def texts(self, scale: float = 1.0) -> tuple[str, str]:
        """Both errors in words."""
        own, other = (
            "runs away" if error is None else f"{scale * error:.3g}" for error in (self.identified, self.description)
        )
        return own, other if self.described else "no masses"

    def as_dict(self) -> dict[str, Any]:
        return {"horizon_s": self.horizon_s, "identified": self.identified, "description": self.description}


def error_over_horizons(
    identified: Robot, description: Robot, samples: Samples, most_windows: int = MOST_WINDOWS
) -> tuple[HorizonError, ...]:
    """Both models from the same measured states, over every horizon that fits into the samples.

    A free run over a horizon goes on where that over the shorter one ended, so every model runs once. A description without
    masses, such as a DH table, has no motion of its own and no errors.
    """
    samples = _thinned(samples)
    steps = np.diff(samples.time)
    fitting = [h for h in HORIZONS_S if h <= 0.5 * samples.duration_s and h >= float(np.median(steps))]
    if not fitting:
        raise InputError(f"samples last {samples.duration_s:.3g} s, too short for a free run of {HORIZONS_S[0]:g} s")
    windows = even_windows(samples, fitting[-1], min(most_windows, windows_for(identified)))
    own = _errors(identified, samples, windows, fitting)
    described = is_simulatable(description)
    other = _errors(description, samples, windows, fitting) if described else [None] * len(fitting)
    return tuple(HorizonError(*one, described) for one in zip(fitting, own, other, strict=True))


def _thinned(samples: Samples) -> Samples:
    """One sample of several where they follow one another faster than a free run needs."""
    if len(samples) < 2:
        return samples
    return samples[:: max(1, round(FINEST_STEP_S / float(np.median(np.diff(samples.time)))))]


def _errors(robot: Robot, samples: Samples, windows: Windows, horizons_s: Sequence[float]) -> list[float | None]:
    """The error over each horizon; None for those at which the robot has run away."""
    check_free_run(robot, samples, horizons_s[-1])
    if samples.torque is None:
        raise InputError("samples hold no torque, so there is nothing to replay")
    free, first = FreeRobot.of(robot), windows.starts
    q, v, done, squares = samples.position[first], samples.velocity[first], 0, 0.0
    errors: list[float | None] = []
    for horizon_s in horizons_s:
        end = windows.shortened(horizon_s).n_steps
        if end > done:  # on from where the last horizon ended; one that runs away is not followed further
            rows = first[:, None] + np.arange(done, end + 1)
            try:
                position, velocity = free.run(q, v, samples.torque[rows], windows.step_s)
            except RunawayError:
                break
            squares += float(((position - samples.position[rows])[:, 1:] ** 2).sum())
            q, v, done = position[:, -1], velocity[:, -1], end
        errors.append(float(np.sqrt(squares / (len(first) * done * samples.position.shape[1]))))
    return [*errors, *[None] * (len(horizons_s) - len(errors))]
