"""Zeros of positions, gains and offsets of torque sensors, gears that yield and warm friction, found beside the model, with intervals.

    tau_j = g_j (Y(q - z) phi + f_o + gears(q - z; c, b) + a t friction)_j

``z`` is what the log reads at a joint's zero, ``g`` what a sensor reads for one newton metre, ``f_o`` a constant torque, ``c`` and ``b``
compliance and play of a gear (:mod:`dynid.estimation.gears`), ``a`` the part by which friction changes in a minute from the start of a log
on. Offsets are linear. The others are nearly so: columns such as ``-dY/dq_j phi`` and ``(Y phi)_j`` beside the model give a step,
positions and torques are moved by it, and again, until nothing moves. What a change of other values or of the bodies explains as well has
no number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.gears import gears_of
from dynid.estimation.held_out import BLOCKS, HeldOut
from dynid.estimation.lag_and_gravity import SETTLED, SURE
from dynid.estimation.result import student_quantile
from dynid.model.effects.linear import Offset
from dynid.model.effects.wrapped import OnJoints
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.regression.row_filter import RowFilter
from dynid.signals.samples import Samples

ZERO, GAIN, OFFSET, COMPLIANCE, BACKLASH, TEMPERATURE = QUANTITIES = (
    "zero", "gain", "offset", "compliance", "backlash", "temperature",
)  # fmt: skip
UNITS = (
    dict(zip(QUANTITIES, (" rad", "", " N m", " rad/(N m)", " rad", " per minute"), strict=True))
    | {
        f"{sensor} bias {axis}": unit
        for sensor, unit in (("accelerometer", " m/s^2"), ("gyroscope", " rad/s"))
        for axis in "xyz"
    }
    | {"delay": " s"}
)
Sought: TypeAlias = tuple[str, int]
"""A quantity and the joint, from 0, that it is of."""
FIRST, AGAIN, ROUNDS = 3, 6, 21
"""Steps by ``S`` alone, steps with the same slopes after them, and steps in all."""
LARGEST: Mapping[str, float] = {ZERO: 0.2, GAIN: 0.3, OFFSET: 1.0, COMPLIANCE: 0.01, BACKLASH: 0.01, TEMPERATURE: 1.0}
"""rad or m, logarithm of the gain, usual torque, rad or m under the usual torque, part of friction during a log: a direction with a larger
standard deviation is not seen."""
NEW = 1e-6
"""Part of its square that the model's own columns must leave of a direction of further columns."""
SHARED = 0.01
"""Part of a value that lies along directions which are not seen, from which the value has no number."""
STEP = 1e-4
"""rad or m to either side over which torque is differentiated."""
RIDGE = 1e-11
"""Added to the squares of the model's orthonormal columns in each block, some of which may be zero there."""
GEAR_BAND_HZ = 3.0
"""Band of the rows in which gears are looked for: above, noise of positions, differentiated four times, is taken for their torque."""
APART = 1.5
"""A link behind its gear must swing at so many times the band of the rows."""
SLOW = 0.1
"""Part of its usual speed below which a joint turns round."""
CHANCE = 0.05
"""Chance that any value of a log without errors is taken for one."""


@dataclass(frozen=True)
class Calibrated:
    """One value of a calibration with its 95 % interval, or why it has none."""

    joint: str
    quantity: str
    value: float | None = None
    """A zero in rad or m, a gain as what the sensor reads for one N m, an offset in N m, a compliance in rad/(N m), a play from side to
    side in rad or m, the part by which friction changes in a minute."""
    lower: float | None = None
    upper: float | None = None
    undone: bool = False
    """Whether it differs from none by more than chance, and the log was corrected by it."""
    reason: str = ""

    def note(self) -> str:
        """The value in words."""
        if self.value is None or self.lower is None or self.upper is None:
            return f"{self.quantity} of {self.joint} has no number: {self.reason}"
        unit = UNITS[self.quantity]
        words = f"{self.quantity} of {self.joint} is {self.value:.4g}{unit} (95 %: {self.lower:.4g} to {self.upper:.4g})"
        if self.quantity == OFFSET:
            return words
        if self.quantity == COMPLIANCE and self.upper > 0.0:
            most = f" to {1.0 / self.lower:.4g}" if self.lower > 0.0 else " or more"
            words += f", a stiffness of {1.0 / self.upper:.4g}{most} N m/rad"
        return f"{words}, which was undone" if self.undone else f"{words}: no more than chance, the log was left as it is"


@dataclass(frozen=True, eq=False)
class _Normal:
    """Normal equations of the values beside the model, in units of their sizes: ``S`` and ``rest``, and with each block left out."""

    S: Array
    rest: Array
    lengths: Array
    """Of the columns, before the model explains what it can of them."""
    without: tuple[tuple[Array, Array], ...]
    """``S`` and ``rest`` with each block left out."""
    residual: float
    """Sum of squares that the model leaves of the torque."""
    n_free: int


@dataclass(frozen=True, eq=False)
class _Step:
    values: Array
    covariance: Array
    unseen: Array
    """Projector on the directions that are not seen."""

    @property
    def sigma(self) -> Array:
        return np.sqrt(np.diag(self.covariance))


@dataclass(frozen=True, eq=False)
class _Search:
    """Samples and what is sought in them; ``theta`` are the values, logarithms of gains, in units of ``sizes``."""

    samples: Sequence[Samples]
    row_filter: RowFilter | None
    fitted: Sequence[Sought]
    sizes: Array
    fixed: Mapping[str, float]

    def values(self, theta: Array) -> Array:
        """Values of all joints, ``(quantities, joints)``; of offsets none, which stay in the model."""
        made = np.zeros((len(QUANTITIES), np.asarray(self.samples[0].torque).shape[1]))
        for (name, j), value in zip(self.fitted, theta * self.sizes, strict=True):
            if name != OFFSET:
                made[QUANTITIES.index(name), j] = value
        return made

    def moved(self, theta: Array, known: Robot) -> tuple[Samples, ...]:
        """The samples without errors of these values; gears and temperature act on what is known of bodies and friction."""
        values = self.values(theta)
        return tuple(corrected_samples(one, values, known) for one in self.samples)

    def normal(self, model: Robot, theta: Array, known: Robot) -> _Normal:
        """The normal equations at some values, over a model without what is sought."""
        fixed = {name: value for name, value in self.fixed.items() if name in model.parameters.names}
        held = HeldOut.of(model, self.moved(theta, known), self.row_filter, fixed=fixed)
        if held is None:
            raise InputError("the logs are too short for --calibrate: give longer ones")
        return _normal(held, _columns(held, self.fitted, self.values(theta), known) * self.sizes)

    def fit(self, model: Robot, theta: Array, known: Robot) -> Robot:
        """The model with consistent bodies and friction that fit the samples without errors of these values."""
        if all(name in (ZERO, GAIN, OFFSET) for name, _ in self.fitted):
            return known  # nothing acts on it
        rows = build_regression(model, self.moved(theta, known), row_filter=self.row_filter)
        return model.with_parameters(estimate(rows, reduce_to_base(model)).standard)

    def settled(self, theta: Array, known: Robot) -> _Search:
        """The same without the time in which links cross the play of gears, and without rows of joints that turn round: what a gear changes
        is less than what friction is not known by there."""
        sought = [(name, j) for name, j in self.fitted if name in (COMPLIANCE, BACKLASH)]
        if not sought:
            return self
        joints = [j for name, j in sought if name == BACKLASH]
        play, samples = self.values(theta)[QUANTITIES.index(BACKLASH), joints], []
        for own, one in zip(self.samples, self.moved(theta, known), strict=True):
            kept = np.where(np.abs(one.velocity) > SLOW * np.sqrt(np.mean(one.velocity**2, axis=0)), 1.0, 0.0)
            for rows, gears in gears_of(known, one, joints) if joints else ():
                kept[rows] *= gears.settled(play)[:, None]
            samples.append(own.with_weight(kept))
        return replace(self, samples=samples)

    def slopes(self, model: Robot, theta: Array, at: _Normal, known: Robot, sigma: Array) -> Array:
        """How the right side falls with the values, by differences.

        ``S`` alone takes noise of the model, through which its columns are made, for information on values that rows hardly show.
        """
        J = at.S.copy()
        for k in range(len(theta)):
            if at.lengths[k] == 0.0:
                continue
            further, width = _further(theta, sigma, k)
            J[:, k] = (at.rest - self.normal(model, further, self.fit(model, further, known)).rest) / width
        return J

    def offsets(self, joints: Sequence[int], model: Robot, known: Robot, theta: Array, step: _Step) -> tuple[Array, _Step]:
        """Constant torques beside a model without any, at other values whose own deviations they share, N m."""
        bare, none = _without_offset(model), np.zeros(len(joints))
        fitted = [(OFFSET, j) for j in joints]
        sizes = _sizes(self.samples, fitted)
        own = replace(self, fitted=fitted, sizes=sizes)

        def found(values: Array) -> _Step:
            at = replace(own, samples=self.moved(values, known)).normal(bare, none, known)
            return _step(at, at.S)

        here = found(theta)
        slopes = np.zeros((len(joints), len(theta)))
        for k in np.flatnonzero(np.diag(step.covariance)):
            further, width = _further(theta, step.sigma, int(k))
            slopes[:, k] = (found(further).values - here.values) / width
        return here.values * sizes, replace(here, covariance=here.covariance + slopes @ step.covariance @ slopes.T)


def find_calibration(
    robot: Robot,
    samples: Sequence[Samples],
    row_filter: RowFilter | None,
    sought: Sequence[Sought],
    *,
    with_friction: Callable[[Robot, Sequence[Samples]], Robot],
    fixed: Mapping[str, float] | None = None,
) -> tuple[tuple[Calibrated, ...], Robot]:
    """Values that explain the rows best, all in one fit with the model.

    Args:
        robot: as described, on a fixed base, without closed chains and coupled motors.
        samples: motion and torque.
        row_filter: the filter of the rows.
        sought: quantities and joints.
        with_friction: gives a robot its friction with the numbers inside that fit samples best.
        fixed: parameters of the robot whose values are known, by name.

    Returns:
        what was sought, in its order, each with its interval or with why it has none; the robot as it was fitted beside.
    """
    fitted = [one for one in sought if one[0] != OFFSET]
    if row_filter is None and any(name == BACKLASH for name, _ in sought):
        raise InputError(
            "--calibrate backlash needs rows that are filtered, found filtered signals: leave out the filter's options"
        )
    search = _Search(samples, row_filter, fitted, _sizes(samples, fitted), fixed or {})
    model, fit, theta, step = _settled(search, robot, with_friction)
    known = _told(robot, fitted, theta * search.sizes, step, search.sizes)
    known |= {one: replace(known[one], value=None, reason=why) for one, why in _swinging(search, fit, known).items()}
    joints = [j for name, j in sought if name == OFFSET]
    if joints:
        values, at = search.offsets(joints, model, fit, theta, step)
        known |= _told(robot, [(OFFSET, j) for j in joints], values, at, np.where(at.values != 0.0, values / at.values, 1.0))
    return tuple(known[one] for one in sought), fit


def _swinging(search: _Search, fit: Robot, known: Mapping[Sought, Calibrated]) -> dict[Sought, str]:
    """Compliances with which a link swings within the band of the rows, where the rows may follow one resonance as well as another."""
    band_hz, made = getattr(search.row_filter, "band_hz", np.inf), {}
    for name, j in search.fitted:
        value = known[name, j].value
        if name == COMPLIANCE and value is not None and value > 0.0:
            inertia = max(
                float(gears.slopes[2][:, j, 0].max()) for one in search.samples for _, gears in gears_of(fit, one, [j])
            )
            swing_hz = 1.0 / (2.0 * np.pi * np.sqrt(value * inertia))
            if swing_hz < APART * band_hz:
                made[name, j] = (
                    f"its link would swing at {swing_hz:.2g} Hz, too near to the {band_hz:g} Hz that rows are looked at in"
                )
    return made


def _sizes(samples: Sequence[Samples], fitted: Sequence[Sought]) -> Array:
    """What values are measured in."""
    usual = np.sqrt(np.mean(np.concatenate([np.asarray(one.torque) for one in samples]) ** 2, axis=0))
    usual, minutes = np.maximum(usual, 1e-12), max(one.duration_s for one in samples) / 60.0
    units = {OFFSET: usual, COMPLIANCE: 1.0 / usual, TEMPERATURE: np.full(len(usual), 1.0 / max(minutes, 1e-12))}
    return np.array([LARGEST[name] * (units[name][j] if name in units else 1.0) for name, j in fitted])


def _student() -> float:
    """By how much wider the interval of a value is, whose deviation is known from a few blocks alone."""
    return student_quantile(BLOCKS - 1, 0.975) / SURE


def _told(robot: Robot, fitted: Sequence[Sought], values: Array, at: _Step, sizes: Array) -> dict[Sought, Calibrated]:
    """Every value with its interval, or why it has none."""
    names = [(name, robot.joint_names[j]) for name, j in fitted]
    sure = student_quantile(BLOCKS - 1, 1.0 - CHANCE / (2.0 * max(len(fitted), 1))) / _student()
    made = {}
    for k, (name, joint) in enumerate(names):
        if at.unseen[k, k] > SHARED:
            made[fitted[k]] = Calibrated(joint, name, reason=_reason(names, k, at.unseen))
            continue
        sigma = at.sigma[k] * sizes[k]
        low, value, high = (float(values[k] + side * SURE * sigma) for side in (-1.0, 0.0, 1.0))
        sides = value if name in (COMPLIANCE, BACKLASH) else abs(value)  # a gear that yields the wrong way is something else
        undone = bool(name != OFFSET and sides > sure * sigma)
        if name == GAIN:
            low, value, high = (float(np.exp(number)) for number in (low, value, high))
        made[fitted[k]] = Calibrated(joint, name, value, low, high, undone)
    return made


def corrected_samples(one: Samples, values: Array, known: Robot) -> Samples:
    """Samples with positions from the zero of the description and the torque of a rigid robot whose friction does not change.

    Args:
        one: as the log has them.
        values: of every quantity and joint; gains by their logarithms.
        known: bodies and friction, on which gears and temperature act.
    """
    zero, gain = values[QUANTITIES.index(ZERO)], np.exp(values[QUANTITIES.index(GAIN)])
    moved = replace(one, position=one.position - zero, load=None if one.load is None else one.load / gain)
    return moved.with_torque(np.asarray(one.torque) / gain - added_torque(moved, values, known))


def added_torque(one: Samples, values: Array, known: Robot, start_s: float | None = None) -> Array:
    """Torque that gears and temperature add to that of a robot, ``(samples, joints)``; by default the log starts with the samples."""
    compliance, play, warming = (values[QUANTITIES.index(name)] for name in (COMPLIANCE, BACKLASH, TEMPERATURE))
    made = np.zeros_like(one.velocity)
    if warming.any():
        made += warming * _minutes(one, start_s)[:, None] * _friction(one, known)
    joints = np.flatnonzero((compliance != 0.0) | (play != 0.0))
    if len(joints):
        for rows, gears in gears_of(known, one, joints.tolist()):
            made[rows] += gears.change(compliance[joints], play[joints])
    return made


def _minutes(one: Samples, start_s: float | None = None) -> Array:
    """Time from the start of a log."""
    return np.asarray((one.time - (one.time[0] if start_s is None else start_s)) / 60.0)


def _friction(one: Samples, robot: Robot) -> Array:
    """Torque of friction alone at every sample."""
    bare = robot.with_effects([effect for effect in robot.effects if not effect.is_friction])
    motion = (one.position, one.velocity, one.acceleration, one.load)
    return inverse_dynamics(robot, *motion, travel=one.travel) - inverse_dynamics(bare, *motion, travel=one.travel)


def _further(theta: Array, sigma: Array, k: int) -> tuple[Array, float]:
    """Values with one of them further by a part of its deviation, and by how much."""
    moved, width = theta.copy(), float(np.clip(0.5 * sigma[k], 0.01, 0.2))
    moved[k] += width
    return moved, width


def _settled(
    search: _Search, robot: Robot, with_friction: Callable[[Robot, Sequence[Samples]], Robot]
) -> tuple[Robot, Robot, Array, _Step]:
    """The robot with its friction, the same as fitted, the values, and the last step to them."""
    theta, n, J, known = np.zeros(len(search.fitted)), len(search.fitted), None, robot
    step = _Step(theta, np.zeros((n, n)), np.zeros((n, n)))
    if not n:
        return with_friction(robot, search.samples), robot, theta, step
    whole = search
    for k in range(ROUNDS):
        if k < FIRST:
            model = with_friction(robot, search.moved(theta, known))
        known = search.fit(model, theta, known)
        if k < FIRST:
            search = whole.settled(theta, known)
        at = search.normal(model, theta, known)
        if k >= FIRST and (k - FIRST) % AGAIN == 0:
            J = search.slopes(model, theta, at, known, step.sigma)
        step = _step(at, at.S if J is None else J)
        theta = theta + np.clip(step.values, -1.0, 1.0)
        seen = np.diag(step.unseen) <= SHARED
        if J is not None and (np.abs(step.values[seen]) <= SETTLED * step.sigma[seen]).all():
            return model, known, theta, step
    raise InputError("--calibrate does not settle on these logs: seek fewer values at a time, as zero:JOINT or gain:JOINT")


def _without_offset(robot: Robot) -> Robot:
    inner = [effect.effect if isinstance(effect, OnJoints) else effect for effect in robot.effects]
    return robot.with_effects(
        [own for own, effect in zip(robot.effects, inner, strict=True) if not isinstance(effect, Offset)]
    )


def _columns(held: HeldOut, fitted: Sequence[Sought], values: Array, known: Robot) -> Array:
    """``(joints, rows, values)``: what one more of each value adds to the torque of every joint, weighted like the rows."""
    n, logs = held.n_joints, range(len(held.logs))
    over: dict[Sought, list[Array]] = {}
    for name, j in fitted:
        own = np.arange(n) == j
        if name == ZERO:
            over[name, j] = [(_torque(held, i, j, -STEP) - _torque(held, i, j, STEP)) / (2.0 * STEP) for i in logs]
        elif name == GAIN:
            over[name, j] = [_torque(held, i) * own for i in logs]
        elif name == OFFSET:
            over[name, j] = [np.tile(1.0 * own, (len(log.samples), 1)) for log in held.logs]
        elif name == TEMPERATURE:
            over[name, j] = [_minutes(log.samples)[:, None] * _friction(log.samples, known) * own for log in held.logs]
    geared = [_gear_columns(log.samples, known, fitted, values) for log in held.logs]
    over |= {one: [columns[one] for columns in geared] for one in geared[0]}
    return np.stack([held.weights[:, None] * held.rows(over[one], range(n)).T for one in fitted], axis=2)


def _gear_columns(one: Samples, robot: Robot, fitted: Sequence[Sought], values: Array) -> dict[Sought, Array]:
    """What one more of each compliance and play adds to the torque at every sample."""
    joints = sorted({j for name, j in fitted if name in (COMPLIANCE, BACKLASH)})
    if not joints:
        return {}
    made = np.zeros((2, len(one), robot.n_dof, len(joints)))
    at = [values[QUANTITIES.index(name), joints] for name in (COMPLIANCE, BACKLASH)]
    for rows, gears in gears_of(robot, one, joints):
        made[:, rows] = gears.columns(*at)
    found = {(name, j): made[k, :, :, i] for k, name in enumerate((COMPLIANCE, BACKLASH)) for i, j in enumerate(joints)}
    return {one: columns for one, columns in found.items() if one in fitted}


def _torque(held: HeldOut, log: int, joint: int = 0, further: float = 0.0) -> Array:
    """Torque of the robot at every sample of a log, with one joint a little further."""
    one = held.logs[log].samples
    position = one.position.copy()
    position[:, joint] += further
    return inverse_dynamics(held.robot, position, one.velocity, one.acceleration, one.load, travel=one.travel)


def _normal(held: HeldOut, columns: Array) -> _Normal:
    rank, width = held.basis.shape[2], columns.shape[2]
    grams, rights = [], []
    for block in range(BLOCKS):
        rows = held.block == block
        M = np.concatenate([held.basis[:, rows], columns[:, rows]], axis=2).reshape(-1, rank + width)
        grams.append(M.T @ M)
        rights.append(M.T @ held.torque[:, rows].ravel())
        grams[-1][np.arange(rank), np.arange(rank)] += RIDGE
    G, right = np.sum(grams, axis=0), np.sum(rights, axis=0)
    S, rest = _beside(G, right, rank)
    without = tuple(_beside(G - gram, right - part, rank) for gram, part in zip(grams, rights, strict=True))
    used = held.block >= 0
    explained = float(right[:rank] @ np.linalg.solve(G[:rank, :rank], right[:rank]))
    n_free = int(used.sum()) * int(held.torque.any(axis=1).sum()) - rank - width
    residual = float((held.torque[:, used] ** 2).sum()) - explained
    return _Normal(S, rest, np.sqrt(np.diag(G)[rank:]), without, residual, max(n_free, 1))


def _beside(G: Array, right: Array, rank: int) -> tuple[Array, Array]:
    """Normal matrix and right side of further columns once the model explains what it can."""
    solved = np.linalg.solve(G[:rank, :rank], np.column_stack([G[:rank, rank:], right[:rank]]))
    return G[rank:, rank:] - G[rank:, :rank] @ solved[:, :-1], right[rank:] - G[rank:, :rank] @ solved[:, -1]


def _step(at: _Normal, J: Array) -> _Step:
    """The step to where the right side is zero, along what rows show.

    Deviations are those of rows with independent noise, or what leaving out blocks moves a value by, where that is more: with few blocks
    it is itself uncertain, and its 95 % are Student's.
    """
    scale = np.where(at.lengths > 0.0, at.lengths, 1.0)
    part, U = np.linalg.eigh(at.S / np.outer(scale, scale))
    new = np.linalg.qr((U[:, part > NEW].T * scale).T)[0]  # columns that rounding alone leaves beside the model show nothing
    strength, W = np.linalg.eigh(0.5 * new.T @ (J + J.T) @ new)
    variance = 0.0
    for _ in range(2):  # what is left once the values are found tells which directions are seen
        T = new @ W[:, strength > variance]
        inverse = T @ np.linalg.inv(T.T @ J @ T) @ T.T
        variance = max(at.residual - float(at.rest @ inverse @ at.rest), 0.0) / at.n_free
    covariance = np.asarray(variance * inverse @ at.S @ inverse.T)
    sigma = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values = inverse @ at.rest
    others = np.array([inverse @ (rest - S @ values) for S, rest in at.without]) * BLOCKS / (BLOCKS - 1)
    moved = np.sqrt((BLOCKS - 1) / BLOCKS * np.sum((others - others.mean(axis=0)) ** 2, axis=0))
    wider = np.maximum(moved / sigma * _student(), 1.0)
    return _Step(values, covariance * np.outer(wider, wider), np.eye(len(T)) - T @ T.T)


def _reason(names: Sequence[tuple[str, str]], k: int, unseen: Array) -> str:
    """Why a value has no number, with the others that it cannot be told from."""
    partners = [i for i in range(len(names)) if i != k and abs(unseen[k, i]) > SHARED * unseen[k, k]]
    gains = [i for i, (name, _) in enumerate(names) if name == GAIN]
    if names[k][0] == GAIN and set(gains) <= {k, *partners}:
        return (
            "all gains together cannot be told from all masses; hold one by naming the others alone (gain:JOINT), fix a known "
            "parameter ([constraints] fixed), or weigh the arm with a known load (dynid gains)"
        )
    if partners:
        others = ", ".join(f"{names[i][0]} of {names[i][1]}" for i in partners)
        return f"these rows do not tell it from {others}; seek fewer of them at a time"
    return "no torque of this motion shows it beside masses, centres and friction that are not known either"
