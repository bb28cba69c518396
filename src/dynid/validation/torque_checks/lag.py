"""Torque that comes late."""

from __future__ import annotations

import numpy as np

from dynid.recording.finding import Finding
from dynid.recording.lag import longest_part
from dynid.recording.motion import Recording
from dynid.recording.steps.resample import nominal_period_s
from dynid.regression.base import reduce_to_base
from dynid.regression.torque import torque_regressor
from dynid.robot.effects import Armature, Offset, SmoothCoulomb, Viscous
from dynid.robot.model import Robot
from dynid.validation.torque_checks.fit import ModelFit, smooth_samples

_FITTED_ROWS = 2000  # rows that a model is fitted to when a lag is to be confirmed
_PAYS = 0.97  # of the residual must be left at most before a shift of the torque is advised


def torque_lag(recording: Recording, robot: Robot, fit: ModelFit, what: str) -> list[Finding]:
    """Torque, or motor current, that lags or leads the motion by more than the joints disagree on it."""
    lag = fit.common_lag_s
    # Friction before sliding looks like a lag too, so the joints have to agree.
    uncertain = not np.isfinite(lag) or (recording.n_joints > 1 and not abs(lag) > 3.0 * fit.lag_error_s)
    if uncertain or abs(lag) <= max(3e-3, 0.5 * nominal_period_s(recording.time)):
        return []
    if not _shift_pays(recording, robot, lag):  # a nominal model that is off looks like a lag as well
        return []
    error = f" (+-{1e3 * fit.lag_error_s:.1f})" if np.isfinite(fit.lag_error_s) else ""
    return [
        Finding(
            "torque_lag",
            "note",
            f"{what} {'lags' if lag > 0 else 'leads'} position by {1e3 * abs(lag):.1f} ms{error}, judged by the nominal "
            "model with friction",
            f"log torque and position on one clock; in Python: Shift({lag:.3g}, signals=('torque',))",
            values={"lag_s": fit.lag_s},
        )
    ]


def _shift_pays(recording: Recording, robot: Robot, lag_s: float) -> bool:
    """Whether a model fitted to the shifted torque leaves clearly less of it than one fitted to the torque as it is."""
    samples = smooth_samples(longest_part(recording))
    assert samples.torque is not None
    dt = float(samples.time[-1] - samples.time[0]) / (len(samples) - 1)
    late = round(lag_s / dt)
    rows = np.arange(abs(late), len(samples) - abs(late), max(1, len(samples) // _FITTED_ROWS))
    model = robot.with_effects([Viscous(), SmoothCoulomb(), Offset(), Armature()])
    base = reduce_to_base(model)
    Y = torque_regressor(model, samples.position[rows], samples.velocity[rows], samples.acceleration[rows])
    W = Y.reshape(-1, Y.shape[2]) @ base.lift
    left = []
    for shift in (0, late):
        torque = samples.torque[rows + shift]
        size = torque.std(axis=0)
        weight = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)  # every joint counts alike
        scaled = np.tile(weight, len(rows))
        y = torque.ravel() * scaled
        beta, *_ = np.linalg.lstsq(W * scaled[:, None], y, rcond=None)
        left.append(float(np.linalg.norm(y - (W * scaled[:, None]) @ beta) / np.linalg.norm(y)))
    return left[1] < _PAYS * left[0]
