"""Recorded torque explained by the nominal model (:class:`ModelFit`), or by any rigid model at all (:class:`RigidFit`).

Per joint, what the description predicts and friction are fitted to the recorded torque,

    tau(t + lag) = c_g g(q) + c_m (M(q) a + c(q, v)) + f_v v + f_c sign(v) + f_o

Both coefficients are near 1 where log and model agree. A counterbalance or spring takes part of the gravity of its axis; beside
harmonics of the joint's own position only that part of gravity counts which other joints change, and its coefficient is near 1
again. So a counterbalanced axis is told from torque in another unit, or without gravity.

The nominal masses may be wrong. A rigid fit does not trust them: base parameters, rotors and friction are fitted to the log. With
``C_j = W_j^T W_j`` and ``c_jk = W_j^T tau_k`` per joint, the best fit of any order and signs of the torque columns is one small
solution; an exchange of two columns changes ``C_j`` of two joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Array, BoolArray, IntArray
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.joint_effects import is_rotor
from dynid.dynamics.regressors import torque_regressor
from dynid.model.effects.dry_friction import SmoothCoulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.signals.measures import longest_part, smoothing_fraction
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.signals.steps.clock import Resample, nominal_period_s
from dynid.signals.steps.filters import Differentiate, LowPass

_LONGEST_LAG_S = 0.1
_ROWS = 4000  # rows that the comparison is made on: more rows of the same motion add nothing
_LAGS = 81  # lags that are tried
_HARMONICS = (1, 2)  # of a joint's own position, which a counterbalance follows
_NEAR_ONE = 1.6  # factor by which a coefficient may differ from 1 to count as nominal
_OPPOSED = 0.5  # cosine between gravity and inertia, and their ratio, from which on a joint swings
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
        angle, prismatic = q[:, j], robot.driven_joints[j].kind == "prismatic"
        # what any counterbalance of the joint follows
        followed = [angle, angle**2] if prismatic else [f(k * angle) for k in _HARMONICS for f in (np.sin, np.cos)]
        own = np.column_stack([bases[j], *(column - column.mean() for column in followed)])
        beside[j] = _coefficients(own, names[j], y - y.mean(), False)[0]
    springs = {column.joint for column in robot.parameters.columns if column.kind == "spring"}
    sprung = np.array([joint.name in springs for joint in robot.driven_joints])  # on these the robot has a spring already
    found[sprung], share[sprung] = beside[sprung], np.nan
    balanced = _nominal(beside) & ~_nominal(found) & ~sprung
    found[balanced], share[balanced] = beside[balanced], np.nan
    return ModelFit(found, inertia_found, share, explained, lag_s, common, error, balanced)


def with_rotors_alone(robot: Robot) -> Robot:
    """The robot without friction and springs."""
    return robot.with_effects([effect for effect in robot.effects if is_rotor(effect)])


def _nominal(coefficient: Array) -> BoolArray:
    with np.errstate(invalid="ignore"):
        return np.asarray((coefficient > 1.0 / _NEAR_ONE) & (coefficient < _NEAR_ONE))


_smooth: WeakKeyDictionary[Recording, Samples] = WeakKeyDictionary()
"""Samples of recordings that are being checked: several checks look at the same."""


def smooth_samples(recording: Recording) -> Samples:
    """Motion from position alone, so that a late velocity does not hide a late torque; all filtered alike."""
    if recording not in _smooth:
        part = recording if recording.torque is not None else recording.with_(torque=recording.current)
        dt = nominal_period_s(part.time)
        filtered = LowPass(cutoff_nyquist=smoothing_fraction(part, dt))
        steps = [Resample(period_s=dt), filtered, Differentiate("position")]
        _smooth[recording] = process(part, steps, edge_s=min(0.3, 0.1 * part.duration_s))
    return _smooth[recording]


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
    noticed = "gravity" in names and alone["gravity"] > max(0.3 * alone.get("inertia", 0.0), _NOTICED * size)
    if loaded and noticed and not _swings(columns, names):
        share = abs(float(beta[names.index("gravity")])) * alone["gravity"] / size
    return found["gravity"], found["inertia"], share


def _swings(columns: Array, names: list[str]) -> bool:
    """Whether gravity and inertia oppose each other, as in a pendulum: it needs little torque, the difference of two large ones."""
    if "inertia" not in names:
        return False
    gravity, inertia = (columns[:, names.index(name)] for name in ("gravity", "inertia"))
    sizes = float(np.linalg.norm(gravity)), float(np.linalg.norm(inertia))
    return sizes[1] > _OPPOSED * sizes[0] and float(gravity @ inertia) < -_OPPOSED * sizes[0] * sizes[1]


def _lowest(values: Array, at: Array) -> tuple[float, float]:
    """Where values are least, between the points by a parabola, and how bent it is; NaN at a border."""
    k = int(np.argmin(values))
    if not 0 < k < len(values) - 1:
        return float("nan"), 0.0
    _, slope, bend = np.linalg.solve(np.vander(at[k - 1 : k + 2] - at[k], 3, increasing=True), values[k - 1 : k + 2])
    return (float(at[k] - 0.5 * slope / bend), float(bend)) if bend > 0.0 else (float(at[k]), 0.0)


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


ROWS = 500
"""Rows that are fitted: more of the same motion add nothing to a decision."""
LEAST_ROWS = 50
"""Rows that are fitted of however many joints."""
_WORK = 3e9  # equations times the square of the parameters: what a fit costs
_RIDGE = 1e-9  # of scaled normal equations, for directions that the motion does not show


def fitted_model(robot: Robot) -> Robot:
    """The robot with the effects that every joint may have."""
    return robot.with_effects([Viscous(), SmoothCoulomb(), Offset(), Armature()])


@dataclass(frozen=True, eq=False)
class RigidFit:
    """Rows of every joint over base parameters, and their normal equations with each joint's torque of mean square 1."""

    rows: Array
    """``(rows, joints, base)``."""
    mixed: Array
    """``(joints, base, joints)``: joint of the rows, column, joint of the torque."""
    size: Array
    """``(joints,)``: root mean square of each torque column."""

    @classmethod
    def of(cls, robot: Robot, q: Array, v: Array, a: Array, torque: Array) -> RigidFit:
        """``robot`` has the effects to be fitted; every joint's torque counts alike."""
        size = np.sqrt(np.mean(torque**2, axis=0))
        tau = torque / np.where(size > 0.0, size, 1.0) / np.sqrt(len(q))
        W = reduce_to_base(robot).regressor(torque_regressor(robot, q, v, a)) / np.sqrt(len(q))
        return cls(W, np.stack([W[:, j].T @ tau for j in range(W.shape[1])]), size)

    @property
    def n_joints(self) -> int:
        return len(self.size)

    @cached_property
    def _gram(self) -> Array:
        """Normal matrix with every joint counted by its own torque."""
        weighted = (self.rows * self._weight(np.arange(self.n_joints))[:, None]).reshape(-1, self.rows.shape[2])
        return np.asarray(weighted.T @ weighted)

    def _weight(self, places: IntArray) -> Array:
        """A joint counts by the torque it has: one over the size of the column at its place."""
        return np.asarray(1.0 / np.where(self.size[places] > 0.0, self.size[places], 1.0))

    def unexplained(self, order: Sequence[int] | None = None, sign: Array | None = None) -> float:
        """Mean share of the torque's square that no parameters explain, with torque columns in another order or with signs."""
        n = self.n_joints
        places = np.arange(n) if order is None else np.asarray(order)
        signs = np.ones(n) if sign is None else sign
        weight, own = self._weight(places), self._weight(np.arange(n))
        A = self._gram.copy()
        for j in np.flatnonzero(places != np.arange(n)):
            A += (weight[j] ** 2 - own[j] ** 2) * (self.rows[:, j].T @ self.rows[:, j])
        b = np.einsum("j,jb->b", weight * signs, self.mixed[np.arange(n), :, places])
        # what is left of columns that cancel is rounding, on the diagonal as beside it
        scale = np.sqrt(np.maximum(np.diag(A), max(1e-24 * float(np.abs(A).max()), 1e-300)))
        A, b = A / np.outer(scale, scale), b / scale
        beta = np.linalg.solve(A + _RIDGE * np.eye(len(b)), b)
        rows = float(np.count_nonzero(self.size)) or 1.0
        return max(0.0, 1.0 - float(2.0 * b @ beta - beta @ A @ beta) / rows)


def few_rows(samples: Samples, robot: Robot) -> tuple[Array, Array, Array, Array]:
    """Position, velocity, acceleration and torque at about ``ROWS`` samples, of a long chain at fewer: each has more equations."""
    assert samples.torque is not None
    most = min(ROWS, int(_WORK / (robot.n_dof * len(robot.parameters) ** 2)))
    rows = slice(None, None, max(1, len(samples) // max(most, LEAST_ROWS)))
    return samples.position[rows], samples.velocity[rows], samples.acceleration[rows], samples.torque[rows]
