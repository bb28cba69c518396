"""What a model may lack, each as a few columns over the motion and the option that would add it.

a motor that also turns with another joint    its friction and rotor inertia on ``v_i + c v_j``
a spring, counterbalance or cable             polynomials and harmonics of the position
a wrong gain of the torque                    the torque that the model predicts
temperature                                   torque and friction that change with time
backlash                                      torque that builds up over a short way after every reversal
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.estimation.held_out import HeldOut
from dynid.robot.effects import Effect, OnJoints
from dynid.robot.model import Robot

COUPLED_WITHIN = 2
"""Joints that may share a motor are at most so far apart in the chain."""
WIDTH = 0.02
"""rad/s or m/s over which the sign of a speed turns in the columns below."""
BACKLASH = 0.01
"""rad or m over which torque builds up after a reversal."""


@dataclass(frozen=True, eq=False)
class Addition:
    """Columns that a model may lack."""

    joints: tuple[int, ...]
    """Joints, from 0, whose error it is about."""
    cause: str
    option: str | None
    """What adds it on the command line or in a run file; None where nothing does."""
    columns: Mapping[int, Array]
    """Over the rows, for each joint that they enter; their values are common to all of these."""
    nonnegative: tuple[int, ...] = ()
    """Columns that cannot have a negative value in a physical robot."""


def additions(held: HeldOut, drive_gains: Sequence[float] | None = None) -> Iterator[Addition]:
    """Everything that is tried on a model; ``drive_gains`` are those that torque was made with, None where it was measured."""
    q, v, a = ([getattr(log.motion, name) for log in held.logs] for name in ("position", "velocity", "acceleration"))
    yield from _couplings(held, v, a)
    yield from _springs(held, q)
    yield from _gains(held, drive_gains)
    yield from _times(held, v)
    if not any(effect.is_sharp or effect.remembers for effect in held.robot.effects):
        # a sharp sign leaves its own error at reversals, friction with a memory of them has its column already
        yield from _backlash(held, q, v)


def _couplings(held: HeldOut, v: list[Array], a: list[Array]) -> Iterator[Addition]:
    robot = held.robot
    speeds = [(i, j, sign) for i, j in _uncoupled_neighbours(robot) for sign in (1.0, -1.0)]
    if not speeds:
        return
    mixed = [[own[:, i] + sign * own[:, j] for i, j, sign in speeds] for own in v]
    changes = [[own[:, i] + sign * own[:, j] for i, j, sign in speeds] for own in a]
    made = held.rows(
        [np.column_stack([*s, *(np.tanh(np.array(s) / WIDTH)), *c]) for s, c in zip(mixed, changes, strict=True)]
    )
    n = len(speeds)
    for k, (i, j, sign) in enumerate(speeds):
        columns = made[:, [k, n + k, 2 * n + k]]
        names = robot.joint_names
        yield Addition(
            (j, i),
            f"the residuals of {names[j]} and {names[i]} follow their {'sum' if sign > 0.0 else 'difference'} of speeds: "
            f"the motor of {names[i]} also turns with {names[j]}",
            f'--coupling "{i + 1}:{j + 1}={sign:g}"',
            {i: columns, j: sign * columns},
            nonnegative=(0, 1, 2),
        )


def _uncoupled_neighbours(robot: Robot) -> list[tuple[int, int]]:
    """Pairs of turning joints near one another that no known coupling ties."""
    known = np.eye(len(robot.driven_joints)) if robot.coupling is None else robot.coupling.B
    turning = [j for j, joint in enumerate(robot.driven_joints) if joint.kind != "prismatic"]
    near = [(i, j) for j, i in combinations(turning, 2) if i - j <= COUPLED_WITHIN]
    return [(i, j) for i, j in near if known[i, j] == known[j, i] == 0.0]


def _springs(held: HeldOut, q: list[Array]) -> Iterator[Addition]:
    robot = held.robot
    taken = _joints_with_springs(robot.effects, held.n_joints)
    for j, joint in enumerate(robot.driven_joints):
        if j in taken or all(np.ptp(own[:, j]) < 1e-3 for own in q):
            continue
        x = held.rows([np.column_stack([own[:, j], own[:, j] ** 3]) for own in q])
        where = f"the residual of {joint.name} follows its position"
        yield Addition((j,), f"{where}: a spring, or an error of gravity", f"--spring {j + 1}=torsion", {j: x[:, :1]})
        yield Addition((j,), f"{where}: twisted cables", f"--spring {j + 1}=cable", {j: x})
        if joint.kind != "prismatic":
            u = held.rows([np.column_stack([f(k * own[:, j]) for f in (np.sin, np.cos) for k in (1, 2, 3)]) for own in q])
            cause = f"the residual of {joint.name} follows the sine and cosine of its position: a counterbalance"
            yield Addition((j,), cause, f"--spring {j + 1}=potential", {j: u})


def _joints_with_springs(effects: Sequence[Effect], n_joints: int) -> set[int]:
    found: set[int] = set()
    for effect in effects:
        inner = effect.effect if isinstance(effect, OnJoints) else effect
        if getattr(inner, "kind", "") == "spring":
            found |= {joint - 1 for joint in effect.joints} if isinstance(effect, OnJoints) else set(range(n_joints))
    return found


def _gains(held: HeldOut, drive_gains: Sequence[float] | None) -> Iterator[Addition]:
    predicted = held.predicted()
    for j, joint in enumerate(held.robot.driven_joints):
        option = None
        if drive_gains is not None:
            share = float(predicted[j] @ held.torque[j]) * held.weights[j] / float(held.torque[j] @ held.torque[j])
            gains = [f"{gain * (share if k == j else 1.0):.4g}" for k, gain in enumerate(drive_gains)]
            option = f"--drive-gains {','.join(gains)}"
        cause = f"the residual of {joint.name} follows its torque, as if the gain of its drive or sensor differed from the others"
        yield Addition((j,), cause, option, {j: predicted[j][:, None]})


def _times(held: HeldOut, v: list[Array]) -> Iterator[Addition]:
    spans = [(log.samples.time - log.samples.time.mean()) / max(log.samples.duration_s, 1e-9) for log in held.logs]
    for j, joint in enumerate(held.robot.driven_joints):
        columns = held.rows(
            [np.column_stack([t, t * own[:, j], t * np.tanh(own[:, j] / WIDTH)]) for t, own in zip(spans, v, strict=True)]
        )
        cause = f"the residual of {joint.name} changes with time: friction or offset drifts, as with temperature"
        yield Addition((j,), cause, None, {j: columns})


def _backlash(held: HeldOut, q: list[Array], v: list[Array]) -> Iterator[Addition]:
    after = [reversal_columns(own_q, own_v) for own_q, own_v in zip(q, v, strict=True)]
    made = held.rows(after)
    for j, joint in enumerate(held.robot.driven_joints):
        cause = f"the residual of {joint.name} follows the way since its last reversal: backlash or a gear that winds up"
        yield Addition((j,), cause, "--friction presliding", {j: made[:, j : j + 1]})


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
