"""What a model may lack, each as a few columns over the motion that its rows can be extended by.

torque that is late, in all joints or in one     the rate of the torque that the model predicts
gravity that leans                               the torque of gravity along two directions across it
a motor that also turns with another joint       its friction and rotor inertia on ``v_i + c v_j``
a spring, counterbalance or cable                polynomials and harmonics of the position
ripple of a gear or motor                        sine and cosine of a multiple of the position, found in the residual
a wrong gain of the torque                       the torque that the model predicts
a gear that yields, or has play                  what the bodies' torque changes by where the link is not where the motor is
friction that builds up after a reversal         the way since the last one
a load that was carried for a while              mass and first moment of the last body during a part of the time
temperature                                      torque and friction that change with time
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.friction.rows import Log
from dynid.estimation.held_out import HeldOut
from dynid.model.effects.effect import Effect
from dynid.model.effects.wrapped import OnJoints
from dynid.model.robot import Robot

COUPLED_WITHIN = 2
"""Joints that may share a motor are at most so far apart in the chain."""
WIDTH = 0.02
"""rad/s or m/s over which the sign of a speed turns in the columns below."""
BACKLASH = 0.01
"""rad or m over which torque builds up after a reversal."""
SWINGS_HZ = (3.0, 4.5, 7.0, 10.0, 15.0, 25.0)
"""Frequencies at which a link may swing about the motor behind an elastic gear."""
SWING_DAMPING = 0.3
SMOOTH_HZ = 8.0
"""Band in which torque is taken before it is differentiated twice: above, noise of positions is also in the residual."""
LEAST_YIELD = 1e-3
"""rad by which a gear must yield to its usual torque to be named: less is what noise of positions looks like."""
SMALL = 1e-4
"""rad or m by which links are moved to see what the bodies' torque changes by."""


@dataclass(frozen=True, eq=False)
class ModelExtension:
    """Columns that a model may lack."""

    joints: tuple[int, ...]
    """Joints, from 0, that it is about."""
    cause: str
    option: str | None
    """What adds it on the command line or in a run file; None where nothing does."""
    columns: Mapping[int, Array]
    """Over the rows, for each joint that they enter; their values are common to all of these."""
    nonnegative: tuple[int, ...] = ()
    """Columns that cannot have a negative value in a physical robot."""
    least: float = 0.0
    """Value of the first column below which it explains noise."""


def model_extensions(held: HeldOut, drive_gains: Sequence[float] | None = None) -> Iterator[ModelExtension]:
    """Everything that is tried on a model; ``drive_gains`` are those that torque was made with, None where it was measured."""
    held = held.coarse()
    q, v, a = ([getattr(log.motion, name) for log in held.logs] for name in ("position", "velocity", "acceleration"))
    torque = [_torque(held.robot, log) for log in held.logs]
    yield from _lags(held)
    yield from _gravity(held)
    yield from _couplings(held, v, a)
    yield from _springs(held, q)
    yield from _torque_gains(held, torque, drive_gains)
    yield from _gears(held, torque)
    yield from _ripples(held, q)
    yield from _loads(held)
    yield from _times(held, v)
    if not any(effect.is_sharp for effect in held.robot.effects):  # a sharp sign leaves its own error at reversals
        yield from _backlash(held, q, v)


def _torque(robot: Robot, log: Log, *, effects: bool = True) -> Array:
    """Torque of a robot at every sample of a log, of its driven joints."""
    one = log.samples
    return inverse_dynamics(
        robot, one.position, one.velocity, one.acceleration, one.load, effects=effects, travel=one.travel
    )


def lag_columns(held: HeldOut) -> list[Array]:
    """What torque of a second later lacks, over rows, ``(rows, joints)``."""
    torque = [_torque(held.robot, log) for log in held.logs]
    rates = [-np.gradient(own, log.samples.time, axis=0) for own, log in zip(torque, held.logs, strict=True)]
    return [held.rows(rates, range(held.n_joints))]


def gravity_columns(held: HeldOut, directions: Array) -> list[Array]:
    """Torque of more gravity along each of some directions, over rows, ``(rows, joints)`` each."""
    robot, found = held.robot, []
    plain = [_torque(robot, log, effects=False) for log in held.logs]
    for direction in directions:
        leaning = robot.with_gravity(robot.gravity + direction)
        changes = [_torque(leaning, log, effects=False) - own for log, own in zip(held.logs, plain, strict=True)]
        found.append(held.rows(changes, range(held.n_joints)))
    return found


def _lags(held: HeldOut) -> Iterator[ModelExtension]:
    (made,), n = lag_columns(held), held.n_joints
    words = "torque is logged later or earlier than position"
    yield ModelExtension(
        tuple(range(n)), f"{words} in all joints alike", "--torque-delay auto", {j: made[:, j : j + 1] for j in range(n)}
    )
    for j, joint in enumerate(held.robot.driven_joints):
        yield ModelExtension((j,), f"{words} in {joint.name} alone", None, {j: made[:, j : j + 1]})


def _gravity(held: HeldOut) -> Iterator[ModelExtension]:
    robot = held.robot
    if robot.loops or not robot.gravity.any():
        return
    columns = gravity_columns(held, np.linalg.svd(robot.gravity[None])[2][1:])
    cause = "gravity leans in the base frame: the base is not level, or mounted otherwise than described"
    both = {j: np.column_stack([own[:, j] for own in columns]) for j in range(held.n_joints)}
    yield ModelExtension(tuple(range(held.n_joints)), cause, "--gravity auto", both)


def _gears(held: HeldOut, torque: Sequence[Array]) -> Iterator[ModelExtension]:
    """A gear that yields to the torque it carries: the link is not where the encoder of the motor says.

    Behind an elastic gear the link swings about its motor, by the bodies' torque times a resonance. A gear with play follows no such
    law, but the measured torque tells where it is: that enters the other joints alone, because its noise is also in its own residual.
    """
    robot = held.robot
    if robot.loops or robot.coupling is not None:
        return
    through = [_torque(robot, log, effects=False) for log in held.logs]
    measured = [
        np.asarray(log.samples.torque) - whole + own for log, whole, own in zip(held.logs, torque, through, strict=True)
    ]
    size = np.sqrt(np.mean(np.concatenate(through) ** 2, axis=0))
    for j, joint in enumerate(robot.driven_joints):
        if joint.kind == "prismatic" or size[j] == 0.0:
            continue
        slopes = [_slopes(robot, log, j, own) for log, own in zip(held.logs, through, strict=True)]
        words = f"what the torques would be if the link of {joint.name} were not where its motor is: its gear"
        measured_by = f" (--calibrate compliance:{joint.name} measures it)"
        swung = [_swung(own[:, j] / size[j], log) for log, own in zip(held.logs, through, strict=True)]
        for behind in zip(*swung, strict=True):
            made = held.rows([_displaced(*one) for one in zip(slopes, behind, strict=True)], range(held.n_joints))
            columns = {i: made[:, i : i + 1] for i in range(held.n_joints) if made[:, i].any()}
            yield ModelExtension(
                (j,), f"residuals follow {words} is elastic and winds up{measured_by}", None, columns, least=LEAST_YIELD
            )
        carried = [_swung(own[:, j] / size[j], log, (np.inf,))[0] for log, own in zip(held.logs, measured, strict=True)]
        made = held.rows([_displaced(*one) for one in zip(slopes, carried, strict=True)], range(held.n_joints))
        columns = {i: made[:, i : i + 1] * (i != j) for i in range(held.n_joints) if i == j or made[:, i].any()}
        if len(columns) > 1:
            cause = f"residuals of other joints follow {words} has backlash or is elastic (--calibrate backlash:{joint.name} measures it)"
            yield ModelExtension((j,), cause, None, columns, least=LEAST_YIELD)


_Course: TypeAlias = tuple[Array, Array, Array]
"""A course in time and its first two rates."""


def _period_s(log: Log) -> float:
    return log.samples.duration_s / max(len(log.samples) - 1, 1)


def _slopes(robot: Robot, log: Log, j: int, torque: Array) -> _Course:
    """By what the bodies' torque changes with position, speed and acceleration of a joint."""
    one, found = log.samples, []
    for k in range(3):
        moved = [one.position, one.velocity, one.acceleration]
        moved[k] = moved[k].copy()
        moved[k][:, j] += SMALL
        found.append((inverse_dynamics(robot, *moved, effects=False) - torque) / SMALL)
    return found[0], found[1], found[2]


def _displaced(slopes: _Course, behind: _Course) -> Array:
    """Change of the bodies' torque where a link is behind its motor."""
    return -np.asarray(np.sum([slope * course[:, None] for slope, course in zip(slopes, behind, strict=True)], axis=0))


def _swung(wound: Array, log: Log, swings_hz: Sequence[float] = SWINGS_HZ) -> list[_Course]:
    """How far behind its motor a link is, smoothed, and the rates of it, that swings about it at each of the frequencies."""
    n, period_s = len(wound), _period_s(log)
    pad = min(n - 1, round(1.0 / period_s))
    whole = np.concatenate([2.0 * wound[0] - wound[pad:0:-1], wound, 2.0 * wound[-1] - wound[-2 : -pad - 2 : -1]])
    length = 1 << (len(whole) - 1).bit_length()
    f = np.fft.rfftfreq(length, period_s)
    smoothed = np.fft.rfft(whole, length) * np.exp(-0.5 * (f / SMOOTH_HZ) ** 2)
    found = []
    for swing_hz in swings_hz:
        spectrum = smoothed / (1.0 - (f / swing_hz) ** 2 + 2j * SWING_DAMPING * f / swing_hz)
        course = [np.fft.irfft(spectrum * (2j * np.pi * f) ** k, length)[pad : pad + n] for k in range(3)]
        found.append((course[0], course[1], course[2]))
    return found


def _couplings(held: HeldOut, v: list[Array], a: list[Array]) -> Iterator[ModelExtension]:
    robot = held.robot
    speeds = [(i, j, sign) for i, j in _uncoupled_neighbours(robot) for sign in (1.0, -1.0)]
    if not speeds:
        return
    mixed = [[own[:, i] + sign * own[:, j] for i, j, sign in speeds] for own in v]
    changes = [[own[:, i] + sign * own[:, j] for i, j, sign in speeds] for own in a]
    values = [np.column_stack([*s, *(np.tanh(np.array(s) / WIDTH)), *c]) for s, c in zip(mixed, changes, strict=True)]
    made = held.rows(values, 3 * [i for i, _, _ in speeds])
    plain = all(log.samples.weight is None for log in held.logs)
    other = made if plain else held.rows(values, 3 * [j for _, j, _ in speeds])
    n = len(speeds)
    for k, (i, j, sign) in enumerate(speeds):
        own = [k, n + k, 2 * n + k]
        names = [joint.name for joint in robot.driven_joints]
        yield ModelExtension(
            (j, i),
            f"the residuals of {names[j]} and {names[i]} follow their {'sum' if sign > 0.0 else 'difference'} of speeds: "
            f"the motor of {names[i]} also turns with {names[j]}",
            f'--coupling "{names[i]}:{names[j]}={sign:g}"',
            {i: made[:, own], j: sign * other[:, own]},
            nonnegative=(0, 1, 2),
        )


def _uncoupled_neighbours(robot: Robot) -> list[tuple[int, int]]:
    """Pairs of turning joints near one another that no known coupling ties."""
    known = np.eye(len(robot.driven_joints)) if robot.coupling is None else robot.coupling.B
    turning = [j for j, joint in enumerate(robot.driven_joints) if joint.kind != "prismatic"]
    near = [(i, j) for j, i in combinations(turning, 2) if i - j <= COUPLED_WITHIN]
    return [(i, j) for i, j in near if known[i, j] == known[j, i] == 0.0]


def _springs(held: HeldOut, q: list[Array]) -> Iterator[ModelExtension]:
    robot = held.robot
    taken = _joints_with_springs(robot.effects, held.n_joints)
    for j, joint in enumerate(robot.driven_joints):
        if j in taken or all(np.ptp(own[:, j]) < 1e-3 for own in q):
            continue
        x = held.rows([np.column_stack([own[:, j], own[:, j] ** 3]) for own in q], (j, j))
        where, option = f"the residual of {joint.name} follows its position", f"--spring {joint.name}"
        yield ModelExtension((j,), f"{where}: a spring, or an error of gravity", f"{option}=torsion", {j: x[:, :1]})
        yield ModelExtension((j,), f"{where}: twisted cables", f"{option}=cable", {j: x})
        if joint.kind != "prismatic":
            waves = [np.column_stack([f(k * own[:, j]) for f in (np.sin, np.cos) for k in (1, 2, 3)]) for own in q]
            u = held.rows(waves, 6 * (j,))
            cause = f"the residual of {joint.name} follows the sine and cosine of its position: a counterbalance"
            yield ModelExtension((j,), cause, f"{option}=potential", {j: u})


def _joints_with_springs(effects: Sequence[Effect], n_joints: int) -> set[int]:
    found: set[int] = set()
    for effect in effects:
        inner = effect.effect if isinstance(effect, OnJoints) else effect
        if getattr(inner, "kind", "") == "spring":
            found |= {joint - 1 for joint in effect.joints} if isinstance(effect, OnJoints) else set(range(n_joints))
    return found


def _torque_gains(held: HeldOut, torque: Sequence[Array], drive_gains: Sequence[float] | None) -> Iterator[ModelExtension]:
    predicted = held.rows(torque, range(held.n_joints)).T
    for j, joint in enumerate(held.robot.driven_joints):
        option = None
        if not held.torque[j].any():  # it is not used
            continue
        if drive_gains is not None:
            share = float(predicted[j] @ held.torque[j]) * held.weights[j] / float(held.torque[j] @ held.torque[j])
            gains = [f"{gain * (share if k == j else 1.0):.4g}" for k, gain in enumerate(drive_gains)]
            option = f"--drive-gains {','.join(gains)}"
        cause = (
            f"the torque of {joint.name} does not fit those of the others, as if the gain of its drive or sensor were wrong"
        )
        yield ModelExtension((j,), cause, option, {j: predicted[j][:, None]})


def _times(held: HeldOut, v: list[Array]) -> Iterator[ModelExtension]:
    spans = [(log.samples.time - log.samples.time.mean()) / max(log.samples.duration_s, 1e-9) for log in held.logs]
    for j, joint in enumerate(held.robot.driven_joints):
        columns = held.rows(
            [np.column_stack([t, t * own[:, j], t * np.tanh(own[:, j] / WIDTH)]) for t, own in zip(spans, v, strict=True)],
            3 * (j,),
        )
        cause = (
            f"the residual of {joint.name} changes with time: friction or offset drifts, as with temperature "
            f"(--calibrate temperature:{joint.name} measures it)"
        )
        yield ModelExtension((j,), cause, None, {j: columns})


def _backlash(held: HeldOut, q: list[Array], v: list[Array]) -> Iterator[ModelExtension]:
    after = [reversal_columns(own_q, own_v) for own_q, own_v in zip(q, v, strict=True)]
    made = held.rows(after, range(held.n_joints))
    for j, joint in enumerate(held.robot.driven_joints):
        cause = f"the residual of {joint.name} follows the way since its last reversal: contacts that yield before they slip"
        yield ModelExtension((j,), cause, None, {j: made[:, j : j + 1]})


def reversal_columns(q: Array, v: Array) -> Array:
    """``sign(v) exp(-way since the last reversal / BACKLASH)`` of every joint, ``(samples, joints)``."""
    sign = np.sign(v)
    way = np.concatenate([np.zeros((1, v.shape[1])), np.cumsum(np.abs(np.diff(q, axis=0)), axis=0)])
    turned = np.zeros(v.shape, dtype=bool)
    turned[1:] = sign[1:] * sign[:-1] < 0.0
    rows: IntArray = np.arange(len(v))
    last = np.maximum.accumulate(np.where(turned, rows[:, None], 0), axis=0)
    since = way - np.take_along_axis(way, last, axis=0)
    return np.asarray(np.where(last > 0, sign * np.exp(-since / BACKLASH), 0.0))


WAVES = (5.0, 160.0)
"""Least and largest multiple of a position, per rad or m, of which ripple is sought."""
IN_BAND = 0.7
"""Part of the band of the rows up to which ripple passes that is sought; faster passages are left out of the search."""


def _ripples(held: HeldOut, q: list[Array]) -> Iterator[ModelExtension]:
    """The multiple of each joint's position that its residual follows best."""
    band_hz = getattr(held.logs[0].row_filter, "band_hz", np.inf)
    left = held.residuals()
    at = held.rows(q)
    speed = held.rows([log.motion.velocity for log in held.logs])
    ratios = None if held.robot.coupling is None else held.robot.coupling.gear_ratios
    for j, joint in enumerate(held.robot.driven_joints):
        span = float(np.ptp(at[:, j]))
        least = max(WAVES[0], 2.0 * np.pi / max(span, 1e-9))  # a whole period is seen
        if least >= 0.5 * WAVES[1]:
            continue
        waves = np.arange(least, WAVES[1], 1.0 / span)
        power = _wave_power(
            left[j], at[:, j], 2.0 * np.pi * IN_BAND * band_hz / np.maximum(np.abs(speed[:, j]), 1e-9), waves
        )
        k = float(waves[int(np.argmax(power))])
        u = held.rows([np.column_stack([np.sin(k * own[:, j]), np.cos(k * own[:, j])]) for own in q], (j, j))
        turns = "" if ratios is None else f", {k / abs(ratios[j]):.3g} per turn of its motor"
        cause = f"the residual of {joint.name} has a ripple: a harmonic of its position, {k:.3g} periods per turn{turns}"
        yield ModelExtension((j,), cause, None, {j: u})


def _wave_power(left: Array, at: Array, most: Array, waves: Array) -> Array:
    """How much of a residual each multiple of the position explains, of rows up to whose ``most`` it is slow enough to be seen."""
    turned, step = np.exp(1j * waves[0] * at), np.exp(1j * (waves[1] - waves[0]) * at)
    found = np.zeros(len(waves))
    for i, wave in enumerate(waves):
        seen = wave < most
        count = np.count_nonzero(seen)
        if count > LEAST_SEEN:
            found[i] = abs(np.sum((left * turned)[seen])) ** 2 / count
        turned = turned * step
    return found


LEAST_SEEN = 30
PARTS = 12
"""Parts of the logs between which a load may come or go, before the times are refined."""


def _loads(held: HeldOut) -> Iterator[ModelExtension]:
    """A body at the end of the arm that was there during a part of a log."""
    robot = held.robot
    if robot.loops or robot.floating:
        return
    symbols = ("m", "mx", "my", "mz")
    last = robot.n_bodies
    names = [f"{symbol}{last}" for symbol in symbols]
    if any(name not in robot.parameters.names for name in names):
        return
    columns = []
    plain = [_torque(robot, log, effects=False) for log in held.logs]
    for name in names:
        heavier = robot.with_parameters({name: robot.parameters[name] + 1.0})
        changes = [_torque(heavier, log, effects=False) - own for log, own in zip(held.logs, plain, strict=True)]
        columns.append(held.rows(changes, range(held.n_joints)))
    whole = np.stack(columns, axis=2).transpose(1, 0, 2)  # (joints, rows, 4)
    log_of = np.repeat(np.arange(len(held.logs)), [len(own) for own in held.times])
    time = np.concatenate(held.times)
    found = _carried(held, whole, log_of, time)
    if found is None:
        return
    log, start, end = found
    inside = (log_of == log) & (time >= start) & (time < end)
    cause = (
        f"residuals change at {start:.3g} s and {end:.3g} s as if a load was carried in between"
        if len(held.logs) == 1
        else f"residuals change at {start:.3g} s and {end:.3g} s of log {log + 1} as if a load was carried in between"
    )
    used = [i for i in range(held.n_joints) if whole[i].any()]
    yield ModelExtension(tuple(used), cause, None, {i: whole[i] * inside[:, None] for i in used})


def _carried(held: HeldOut, columns: Array, log_of: IntArray, time: Array) -> tuple[int, float, float] | None:
    """The log and the times between which further columns explain most of the residual."""
    weighted = columns * held.weights[:, None, None]
    flat = held.basis.reshape(-1, held.basis.shape[2])
    left = held.torque - (held.basis @ (flat.T @ held.torque.ravel()))
    best, most = None, 0.0
    for log in range(len(held.logs)):
        own = np.flatnonzero(log_of == log)
        first, end = float(time[own[0]]), float(time[own[-1]])
        h = (end - first) / PARTS
        edges = np.linspace(first, end + 1e-6, PARTS + 1)
        for _ in range(2):
            found = _best_part(
                held.basis[:, own], weighted[:, own], left[:, own], time[own], edges, whole=len(held.logs) > 1
            )
            if found is None:
                break
            fall, a, b = found
            if fall > most:
                best, most = (log, a, b), fall
            edges = np.unique(np.clip([*np.linspace(a - h, a + h, 9), *np.linspace(b - h, b + h, 9)], first, end + 1e-6))
    return best


def _best_part(
    X: Array, C: Array, left: Array, time: Array, edges: Array, *, whole: bool
) -> tuple[float, float, float] | None:
    """The part between two edges over which columns explain most, and by how much the squared error falls."""
    place = np.searchsorted(edges, time, side="right") - 1
    n, m = X.shape[2], C.shape[2]
    sums = np.zeros((len(edges), n + m + 1, m))
    for k in range(len(edges) - 1):
        rows = place == k
        own = C[:, rows].reshape(-1, m)
        beside = np.concatenate([X[:, rows].reshape(-1, n), own, left[:, rows].reshape(-1, 1)], axis=1)
        sums[k + 1] = sums[k] + beside.T @ own
    best, most = None, 0.0
    for i, j in combinations(range(len(edges)), 2):
        if j - i == len(edges) - 1 and not whole:
            continue
        part = sums[j] - sums[i]
        S, g = part[n : n + m] - part[:n].T @ part[:n], part[-1]
        size = np.sqrt(np.maximum(np.diag(part[n : n + m]), 1e-300))
        values, V = np.linalg.eigh(S / np.outer(size, size))
        new = values > 1e-3
        fall = float(((V[:, new].T @ (g / size)) ** 2 / values[new]).sum())
        if fall > most:
            best, most = (fall, float(edges[i]), float(edges[j])), fall
    return best
