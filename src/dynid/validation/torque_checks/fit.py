"""Recorded torque explained by the nominal model.

Per joint, what the description predicts and friction are fitted to the recorded torque,

    tau(t + lag) = c_g g(q) + c_m (M(q) a + c(q, v)) + f_v v + f_c sign(v) + f_o

Both coefficients are near 1 where log and model agree. A counterbalance or spring takes part of the gravity of its axis; beside
harmonics of the joint's own position only that part of gravity counts which other joints change, and its coefficient is near 1
again. So a counterbalanced axis is told from torque in another unit, or without gravity.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.recording.lag import longest_part, smoothing_fraction
from dynid.recording.motion import Recording
from dynid.recording.process import process
from dynid.recording.samples import Samples
from dynid.recording.steps.differentiate import Differentiate
from dynid.recording.steps.lowpass import LowPass
from dynid.recording.steps.resample import Resample, nominal_period_s
from dynid.regression.torque import inverse_dynamics
from dynid.robot.model import Robot
from dynid.robot.rotors import is_rotor

_LONGEST_LAG_S = 0.1
_ROWS = 4000  # rows that the comparison is made on: more rows of the same motion add nothing
_LAGS = 81  # lags that are tried
_HARMONICS = (1, 2)  # of a joint's own position, which a counterbalance follows
_NEAR_ONE = 1.6  # factor by which a coefficient may differ from 1 to count as nominal
_NOTICED = 0.2  # share of the torque that nominal gravity must have before its absence is noticed


@dataclass(frozen=True, eq=False)
class ModelFit:
    """Recorded torque explained by the nominal model, per joint.

    ``gravity`` and ``inertia`` are the coefficients ``c_g`` and ``c_m``, NaN where the motion does not show that part;
    ``gravity_share`` is what only gravity explains of the torque, NaN where gravity hardly loads the joint;
    ``explained`` is the share of the torque's variance that the fit explains, ``lag_s`` by how much torque comes late.
    """

    gravity: Array
    inertia: Array
    gravity_share: Array
    explained: Array
    lag_s: Array
    common_lag_s: float
    """The lag of all joints, those weighing most that tell it best; NaN where torque is not explained well enough."""
    lag_error_s: float
    """Standard error of the common lag, from how the joints disagree."""
    balanced: BoolArray
    """Joints that carry nominal gravity beside a torque of their own position, but not without: a counterbalance or spring."""

    def as_values(self) -> dict[str, Array]:
        """The numbers that findings on sign, scale and gravity carry."""
        return {"gravity": self.gravity, "inertia": self.inertia, "explained": self.explained}


def fit_nominal(recording: Recording, robot: Robot) -> ModelFit:
    """Coefficients of the nominal model in the recorded torque (or current), and how late it comes."""
    samples = smooth_samples(longest_part(recording))
    assert samples.torque is not None
    dt = float(samples.time[-1] - samples.time[0]) / (len(samples) - 1)
    reach = max(1, min(int(np.ceil(_LONGEST_LAG_S / dt)), len(samples) // 8))
    every = max(1, (len(samples) - 2 * reach) // _ROWS)
    rows = np.arange(reach, len(samples) - reach, every)
    q, v, a = samples.position[rows], samples.velocity[rows], samples.acceleration[rows]
    still = np.zeros_like(v)
    # Rotor inertia that the description states is inertia; its friction and springs are left to the fit.
    carried = with_rotors_alone(robot)
    gravity = inverse_dynamics(robot, q, still, still, effects=False)
    inertia = inverse_dynamics(carried, q, v, a) - gravity
    shifts = np.unique(np.round(np.linspace(-reach, reach, min(_LAGS, 2 * reach + 1))).astype(np.int64))
    n = samples.torque.shape[1]
    left = np.ones((n, len(shifts)))
    bases, names = [], []
    for j in range(n):
        columns, kept = regressor_columns(gravity[:, j], inertia[:, j], v[:, j])
        Q, _ = np.linalg.qr(columns)
        y = samples.torque[rows[:, None] + shifts, j]
        y = y - y.mean(axis=0)
        total = (y**2).sum(axis=0)
        left[j] = np.where(total > 0.0, 1.0 - ((Q.T @ y) ** 2).sum(axis=0) / np.where(total > 0.0, total, 1.0), 1.0)
        bases.append(columns)
        names.append(kept)
    explained = 1.0 - left.min(axis=1)
    lag_s, weight = np.array([_lowest(np.log(np.maximum(row, 1e-12)), dt * shifts.astype(np.float64)) for row in left]).T
    telling = (explained > 0.5) & np.isfinite(lag_s)
    common, error = _weighted_mean(lag_s[telling], weight[telling])
    late = 0 if np.isnan(common) else round(common / dt)
    gravity_size = gravity.std(axis=0)
    loaded = gravity_size > 0.2 * gravity_size.max(initial=0.0)
    coefficients = np.full((n, 3), np.nan)
    for j in range(n):
        y = samples.torque[rows + late, j]
        coefficients[j] = _coefficients(bases[j], names[j], y - y.mean(), bool(loaded[j]))
    found, inertia_found, share = coefficients.T.copy()
    beside = np.full(n, np.nan)
    for j in np.flatnonzero(loaded).tolist():
        y = samples.torque[rows + late, j]
        own = np.column_stack([bases[j], _own_position(q[:, j], robot.driven_joints[j].kind == "prismatic")])
        beside[j] = _coefficients(own, names[j], y - y.mean(), False)[0]
    sprung = _sprung(robot)
    found[sprung], share[sprung] = beside[sprung], np.nan
    balanced = _nominal(beside) & ~_nominal(found) & ~sprung
    found[balanced], share[balanced] = beside[balanced], np.nan
    return ModelFit(found, inertia_found, share, explained, lag_s, common, error, balanced)


def with_rotors_alone(robot: Robot) -> Robot:
    """The robot without friction and springs."""
    return robot.with_effects([effect for effect in robot.effects if is_rotor(effect)])


def _own_position(q: Array, prismatic: bool) -> Array:
    """Columns that any counterbalance of one joint follows, about their mean."""
    made = [q, q * q] if prismatic else [f(k * q) for k in _HARMONICS for f in (np.sin, np.cos)]
    columns = np.column_stack(made)
    return np.asarray(columns - columns.mean(axis=0))


def _sprung(robot: Robot) -> BoolArray:
    """Joints on which the robot has a spring already."""
    names = {column.joint for column in robot.parameters.columns if column.kind == "spring"}
    return np.array([joint.name in names for joint in robot.driven_joints])


def _nominal(coefficient: Array) -> BoolArray:
    with np.errstate(invalid="ignore"):
        return np.asarray((coefficient > 1.0 / _NEAR_ONE) & (coefficient < _NEAR_ONE))


def chosen_joints(recording: Recording, mask: BoolArray) -> tuple[str, ...]:
    """Names of the joints that a mask chooses."""
    return tuple(np.array(recording.joint_names)[mask].tolist())


_smooth: WeakKeyDictionary[Recording, Samples] = WeakKeyDictionary()
"""Samples of recordings that are being checked: several checks look at the same."""


def smooth_samples(recording: Recording) -> Samples:
    """Motion from position alone, so that a late velocity does not hide a late torque; all filtered alike."""
    if recording not in _smooth:
        _smooth[recording] = _smoothed(recording)
    return _smooth[recording]


def _smoothed(part: Recording) -> Samples:
    if part.torque is None:
        part = part.with_(torque=part.current)
    dt = nominal_period_s(part.time)
    fraction = smoothing_fraction(part, dt)
    edge_s = min(0.3, 0.1 * part.duration_s)
    steps = [Resample(period_s=dt), LowPass(cutoff_nyquist=fraction), Differentiate("position")]
    return process(part, steps, edge_s=edge_s)


def regressor_columns(gravity: Array, inertia: Array, v: Array) -> tuple[Array, list[str]]:
    """The columns that are not constant, each of unit size about its mean."""
    scale = float(np.sqrt(np.mean(v**2))) or 1.0
    candidates = {
        "gravity": gravity,
        "inertia": inertia,
        "viscous": v,
        # as smooth as a filtered reversal is
        "coulomb": np.tanh(v / (0.05 * scale)),
    }
    kept = {name: column - column.mean() for name, column in candidates.items()}
    kept = {name: column for name, column in kept.items() if np.linalg.norm(column) > 1e-9 * np.sqrt(len(column))}
    if not kept:
        return np.zeros((len(v), 1)), []
    return np.stack(list(kept.values()), axis=1), list(kept)


def _coefficients(columns: Array, names: list[str], y: Array, loaded: bool) -> tuple[float, float, float]:
    """Coefficients of gravity and inertia, NaN where smaller than what nothing explains, and the share of gravity."""
    nothing = float("nan")
    if not names or not y.any():
        return nothing, nothing, nothing
    beta, *_ = np.linalg.lstsq(columns, y, rcond=None)
    residual = float(np.linalg.norm(y - columns @ beta))
    alone = {}  # what only this column can explain
    for k, name in enumerate(names):
        others = np.delete(columns, k, axis=1)
        column = columns[:, k]
        if others.shape[1]:
            column = column - others @ np.linalg.lstsq(others, column, rcond=None)[0]
        alone[name] = float(np.linalg.norm(column))
    found = {}
    for name in ("gravity", "inertia"):
        coefficient = float(beta[names.index(name)]) if name in names else nothing
        found[name] = coefficient if abs(coefficient) * alone.get(name, 0.0) > 2.0 * residual else nothing
    share = nothing
    size = float(np.linalg.norm(y))
    # only where nominal gravity would be a good part of this torque can its absence be noticed
    if loaded and "gravity" in names and alone["gravity"] > max(0.3 * alone.get("inertia", 0.0), _NOTICED * size):
        share = abs(float(beta[names.index("gravity")])) * alone["gravity"] / size
    return found["gravity"], found["inertia"], share


def _lowest(values: Array, at: Array) -> tuple[float, float]:
    """Where values are least, between the points by a parabola, and how bent it is; NaN at a border."""
    k = int(np.argmin(values))
    if not 0 < k < len(values) - 1:
        return float("nan"), 0.0
    _, slope, bend = _parabola(at[k - 1 : k + 2] - at[k], values[k - 1 : k + 2])
    return (float(at[k] - 0.5 * slope / bend), float(bend)) if bend > 0.0 else (float(at[k]), 0.0)


def _parabola(x: Array, y: Array) -> tuple[float, float, float]:
    """``y = c_0 + c_1 x + c_2 x^2`` through three points."""
    c = np.linalg.solve(np.vander(x, 3, increasing=True), y)
    return float(c[0]), float(c[1]), float(c[2])


def _weighted_mean(values: Array, weight: Array) -> tuple[float, float]:
    """Mean and its standard error from the scatter; of a single value the error is unknown, NaN."""
    if not values.size or weight.sum() <= 0.0:
        return float("nan"), float("nan")
    w = weight / weight.sum()
    mean = float(w @ values)
    counted = 1.0 / float(w @ w)
    if values.size < 2 or counted <= 1.0:
        return mean, float("nan")
    return mean, float(np.sqrt(w @ (values - mean) ** 2 / (counted - 1.0)))
