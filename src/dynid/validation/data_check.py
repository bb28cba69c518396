"""The whole data check: the log by itself, and its torque against the nominal model.

Per joint the recorded torque is explained by what the description predicts and by friction,

    tau(t + lag) = c_g g(q) + c_m (M(q) a + c(q, v)) + f_v v + f_c sign(v) + f_o

Both coefficients near 1 say that log and model mean the same. Gravity without a share in the torque means that it was
taken off already, or, where friction and inertia are missing too, that this is an external torque; a negative
coefficient is a sign; a common factor is amperes or the wrong side of the gearbox. Where this explains the torque badly,
and well once the columns of two joints are exchanged, they are likely the wrong way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.recording.check import check_signals
from dynid.recording.cutoff import first_rows
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.lag import longest_part, smoothing_fraction
from dynid.recording.process import process
from dynid.recording.recording import Recording, RecordingStream
from dynid.recording.samples import Samples
from dynid.recording.steps.differentiate import Differentiate
from dynid.recording.steps.lowpass import LowPass
from dynid.recording.steps.resample import Resample, nominal_period_s
from dynid.regression.base import reduce_to_base
from dynid.regression.torque import inverse_dynamics, torque_regressor
from dynid.robot.effects import Armature, Offset, SmoothCoulomb, Viscous
from dynid.robot.friction import without_friction
from dynid.robot.model import Robot

_LONGEST_LAG_S = 0.1
_ROWS = 4000  # rows that the comparison is made on: a motion has no more to say
_STREAM_ROWS = 1_000_000
_LAGS = 81  # lags that are tried
_NOTICED = 0.2  # share of the torque that nominal gravity must have before its absence is noticed
_FITTED_ROWS = 2000  # rows that a model is fitted to when a lag is to be confirmed
_PAYS = 0.97  # of the residual must be left at most before a shift of the torque is advised
_UNLIKE = 1.6  # factor of torque against the nominal model that is worth a word
_EXCHANGE_ROWS = 800  # rows on which pairs of joints are exchanged
_EXCHANGE_JOINTS = 12  # of more joints only neighbours are tried
_UNEXPLAINED = 0.05  # mean share of torque's variance that is unexplained before joints are exchanged
_EXCHANGE_GAIN = 0.25  # and what an exchange has to leave of it


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


def check_recording(recording: Recording | RecordingStream, robot: Robot | None = None) -> DataCheck:
    """Everything that can be said about a log; with a robot, also against its names, limits and nominal dynamics.

    Of a stream the first million rows are looked at.
    """
    if isinstance(recording, RecordingStream):
        recording = first_rows(recording, _STREAM_ROWS)
    check = check_signals(recording, robot)
    if robot is None or check.find("impossible_value") is not None:
        return check
    return check.merged(check_against_model(recording, robot))


def check_against_model(recording: Recording, robot: Robot) -> DataCheck:
    """Findings on the torque, or the motor current, against the nominal model."""
    recording = longest_part(recording)
    signal = recording.torque if recording.torque is not None else recording.current
    comparable = recording.joint_names == robot.joint_names and not robot.floating and signal is not None
    if not comparable or recording.n_samples < 64 or not np.ptp(recording.position, axis=0).any():
        return DataCheck((), {})
    if not np.any(robot.parameters.inertials):
        return DataCheck(
            (
                Finding(
                    "no_nominal",
                    "note",
                    f"robot '{robot.name}' has no inertials, so torque was not compared with a nominal model",
                    "use a description with masses, such as the manufacturer's URDF, to have sign, unit and lag checked",
                ),
            ),
            {},
        )
    fit = fit_nominal(recording, robot)
    facts: dict[str, Any] = {
        "model_gravity": fit.gravity,
        "model_inertia": fit.inertia,
        "model_gravity_share": fit.gravity_share,
        "model_explained": fit.explained,
        "torque_lag_s": fit.lag_s,
        "torque_lag_common_s": fit.common_lag_s,
        "torque_lag_error_s": fit.lag_error_s,
    }
    amperes = recording.torque is None
    # What exchanged columns do to the coefficients is not worth a word of its own.
    findings = exchanged_joints(recording, robot, fit) or _judged(recording, robot, fit, amperes)
    if amperes:
        with np.errstate(divide="ignore"):
            facts["drive_gain_guess"] = 1.0 / fit.gravity
    return DataCheck(tuple(findings), facts)


def fit_nominal(recording: Recording, robot: Robot) -> ModelFit:
    """Coefficients of the nominal model in the recorded torque (or current), and how late it comes."""
    samples = _smooth_samples(longest_part(recording))
    assert samples.torque is not None
    dt = float(samples.time[-1] - samples.time[0]) / (len(samples) - 1)
    reach = max(1, min(int(np.ceil(_LONGEST_LAG_S / dt)), len(samples) // 8))
    every = max(1, (len(samples) - 2 * reach) // _ROWS)
    rows = np.arange(reach, len(samples) - reach, every)
    q, v, a = samples.position[rows], samples.velocity[rows], samples.acceleration[rows]
    still = np.zeros_like(v)
    # Rotor inertia that the description states is inertia; its friction is left to the fit.
    carried = without_friction(robot)
    gravity = inverse_dynamics(robot, q, still, still, effects=False)
    inertia = inverse_dynamics(carried, q, v, a) - gravity
    shifts = np.unique(np.round(np.linspace(-reach, reach, min(_LAGS, 2 * reach + 1))).astype(np.int64))
    n = samples.torque.shape[1]
    left = np.ones((n, len(shifts)))
    bases, names = [], []
    for j in range(n):
        columns, kept = _columns(gravity[:, j], inertia[:, j], v[:, j])
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
    found, inertia_found, share = coefficients.T
    return ModelFit(found, inertia_found, share, explained, lag_s, common, error)


def exchanged_joints(recording: Recording, robot: Robot, fit: ModelFit) -> list[Finding]:
    """Two joints whose columns, exchanged, let the nominal model explain the torque, where it does not as logged."""
    # Coefficients that are free can also explain a wrong motion, so the nominal masses have to fit better, too. Of
    # amperes that cannot be told.
    if recording.torque is None or recording.n_joints < 2 or np.mean(1.0 - fit.explained) < _UNEXPLAINED:
        return []
    samples = _smooth_samples(longest_part(recording))
    assert samples.torque is not None
    rows = slice(None, None, max(1, len(samples) // _EXCHANGE_ROWS))
    signals = [array[rows] for array in (samples.position, samples.velocity, samples.acceleration, samples.torque)]
    n = recording.n_joints
    pairs = list(combinations(range(n), 2) if n <= _EXCHANGE_JOINTS else pairwise(range(n)))

    def unexplained(order: list[int]) -> tuple[float, float]:
        return _unexplained(robot, *(array[:, order] for array in signals))

    logged, logged_as_is = unexplained(list(range(n)))
    if logged < _UNEXPLAINED:
        return []
    (least, as_is), (i, j) = min((unexplained(_exchange(n, *pair)), pair) for pair in pairs)
    if least > _EXCHANGE_GAIN * logged or as_is > _EXCHANGE_GAIN * logged_as_is:
        return []
    names = (recording.joint_names[i], recording.joint_names[j])
    return [
        Finding(
            "exchanged_joints",
            "error",
            f"the columns of joints {names[0]} and {names[1]} are likely exchanged: {100.0 * logged:.2g} % of the variance of "
            f"torque is unexplained by the nominal model as logged, {100.0 * least:.2g} % with the two the other way round",
            "put them right in the log or with a mapping of columns, or check the order of joints in the description",
            names,
            {"unexplained": logged, "unexplained_exchanged": least},
        )
    ]


def _exchange(n: int, i: int, j: int) -> list[int]:
    order = list(range(n))
    order[i], order[j] = j, i
    return order


def _unexplained(robot: Robot, q: Array, v: Array, a: Array, tau: Array) -> tuple[float, float]:
    """Share of the torque's variance, on average over joints, that is left by the fit of the nominal model and friction;
    and by friction alone after nominal torque is taken off, at most 4 in any joint.
    """
    still = np.zeros_like(v)
    gravity = inverse_dynamics(robot, q, still, still, effects=False)
    inertia = inverse_dynamics(without_friction(robot), q, v, a) - gravity
    nothing = np.zeros(len(q))
    free, as_is = [], []
    for j in range(tau.shape[1]):
        y = tau[:, j] - tau[:, j].mean()
        total = float(y @ y)
        if total == 0.0:
            continue
        rest = y - gravity[:, j] - inertia[:, j]
        rest = rest - rest.mean()
        Q, _ = np.linalg.qr(_columns(gravity[:, j], inertia[:, j], v[:, j])[0])
        F, _ = np.linalg.qr(_columns(nothing, nothing, v[:, j])[0])
        free.append(1.0 - float(np.sum((Q.T @ y) ** 2)) / total)
        as_is.append(min(4.0, (float(rest @ rest) - float(np.sum((F.T @ rest) ** 2))) / total))
    return (float(np.mean(free)), float(np.mean(as_is))) if free else (0.0, 0.0)


def _smooth_samples(recording: Recording) -> Samples:
    """Motion from position alone, so that a late velocity does not hide a late torque; all filtered alike."""
    part = recording
    if part.torque is None:
        part = part.with_(torque=part.current)
    dt = nominal_period_s(part.time)
    fraction = smoothing_fraction(part, dt)
    edge_s = min(0.3, 0.1 * part.duration_s)
    steps = [Resample(period_s=dt), LowPass(cutoff_nyquist=fraction), Differentiate("position")]
    return process(part, steps, edge_s=edge_s)


def _columns(gravity: Array, inertia: Array, v: Array) -> tuple[Array, list[str]]:
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


def _judged(recording: Recording, robot: Robot, fit: ModelFit, amperes: bool) -> list[Finding]:
    findings: list[Finding] = []
    names = np.array(recording.joint_names)
    what = "motor current" if amperes else "torque"
    seen = np.isfinite(fit.gravity)
    values = {"gravity": fit.gravity, "inertia": fit.inertia, "explained": fit.explained}

    def listed(mask: BoolArray) -> tuple[str, ...]:
        return tuple(names[mask].tolist())

    loaded = np.isfinite(fit.gravity_share)
    share = float(np.median(fit.gravity_share[loaded])) if loaded.any() else 1.0
    blank = loaded.any() and float(np.median(fit.explained[loaded])) < 0.3
    if (share < 0.1 or blank) and not amperes:
        if float(np.median(fit.explained)) > 0.5:
            findings.append(
                Finding(
                    "gravity_free",
                    "error",
                    f"gravity makes up {100.0 * share:.0f} % of the torque of the joints it loads, friction and inertia the "
                    "rest: gravity is likely already taken off",
                    "log the measured or commanded joint torque with gravity, or identify with --gravity 0,0,0",
                    listed(loaded),
                    values,
                )
            )
        else:
            findings.append(
                Finding(
                    "external_torque",
                    "error",
                    "torque shows neither gravity nor friction nor inertia: it is likely an estimate of external torque",
                    "log the measured joint torque, not the one that a model was taken off",
                    listed(loaded),
                    values,
                )
            )
        return findings + _torque_lag(recording, robot, fit, what)
    factor = np.where(seen, fit.gravity, fit.inertia)
    wrong = np.isfinite(factor) & (factor < 0.0) & (fit.explained > 0.5)
    if wrong.any():
        findings.append(
            Finding(
                "torque_sign",
                "error",
                f"{what} of joint {', '.join(listed(wrong))} has the opposite sign of the nominal model's",
                "turn its sign, or that of position, in the mapping of columns; or check the direction of gravity",
                listed(wrong),
                values,
            )
        )
    size = np.abs(factor)
    # Rotors that the description does not know make inertia larger than its own: only gravity can show too much torque.
    off = np.isfinite(size) & ((size < 1.0 / _UNLIKE) | (seen & (size > _UNLIKE))) & (fit.explained > 0.5) & (size > 0.0)
    if off.any() and not amperes:
        ratio = float(np.median(1.0 / size[off]))
        guess = (
            "it is likely motor current in ampere or torque at the motor side"
            if ratio > 3.0
            else "it may be in another unit, or the load is not in the description"
        )
        findings.append(
            Finding(
                "torque_scale",
                "error" if ratio > 3.0 else "warning",
                f"torque of joint {', '.join(listed(off))} is {1.0 / ratio:.3g} times the nominal model's: {guess}",
                f"give --drive-gains, or gear ratios in a mapping file (the nominal model suggests about {ratio:.3g})",
                listed(off),
                {**values, "ratio": 1.0 / size},
            )
        )
    if amperes and seen.any():
        guesses = ", ".join(f"{name} {1.0 / c:.3g}" for name, c in zip(names[seen], fit.gravity[seen], strict=True))
        findings.append(
            Finding(
                "drive_gains",
                "note",
                f"against nominal gravity the drive gains would be about {guesses} N m/A",
                "give measured ones with --drive-gains; these are only as good as the nominal masses",
                listed(seen),
                {"gains": 1.0 / fit.gravity[seen]},
            )
        )
    return findings + _torque_lag(recording, robot, fit, what)


def _shift_pays(recording: Recording, robot: Robot, lag_s: float) -> bool:
    """Whether a model fitted to the shifted torque leaves clearly less of it than one fitted to the torque as it is."""
    samples = _smooth_samples(longest_part(recording))
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


def _torque_lag(recording: Recording, robot: Robot, fit: ModelFit, what: str) -> list[Finding]:
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
            f"shift it: Shift({lag:.3g}, signals=('torque',))",
            values={"lag_s": fit.lag_s},
        )
    ]
