"""What a model lacks, found in its residual on blocks of time that it was not fitted to.

A correlation alone proves nothing: every addition is judged by how much it lowers the error on the blocks that were left out
while it was fitted. It is advised where it lowers the error of its joints noticeably, and in nearly every block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimation.additions import Addition, additions
from dynid.estimation.held_out import Added, HeldOut
from dynid.recording.samples import Samples
from dynid.regression.row_filter import RowFilter
from dynid.regression.source import RowSource
from dynid.robot.coupling import Coupling, coupling_from_terms
from dynid.robot.model import Robot
from dynid.robot.motors import with_coupling

LEAST_GAIN = 0.1
"""Part by which the held-out error of its joints must fall for an addition to be advised."""
WORTH = 5e-4
"""Part of the torque of its joints by which the error must fall: less is not worth an option."""
SURE = 2.0
"""Standard errors, over blocks, by which the relative fall of the squared error must differ from zero."""
MOST = 2
"""Additions that are advised."""
CANCELS = 3.0
"""Times that the standard error of its values may be negative where a physical robot has no negative ones."""


@dataclass(frozen=True)
class Advice:
    """One addition that would lower the error on unseen data, for one joint."""

    joint: str
    cause: str
    gain: float
    """Part by which the held-out error of the joint falls."""
    option: str | None
    """What adds it on the command line; None where no option does."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Advice:
        """The inverse of :meth:`as_dict`."""
        return cls(str(record["joint"]), str(record["cause"]), float(record["gain"]), record["option"])


def advice_lines(advice: Sequence[Advice]) -> tuple[str, ...]:
    """One sentence for each addition, with the joints whose held-out error it lowers."""
    lines = []
    for cause in dict.fromkeys(one.cause for one in advice):
        own = [one for one in advice if one.cause == cause]
        falls = " and ".join(f"{100.0 * one.gain:.0f} % on {one.joint}" for one in own)
        remedy = (
            "no option models this; held-out error it would take away:"
            if own[0].option is None
            else (f"add {own[0].option}, which lowers the held-out error by")
        )
        lines.append(f"{cause}; {remedy} {falls}")
    return tuple(lines)


@dataclass(frozen=True, eq=False)
class _Judged:
    """An addition and what it does to the squared error of every block."""

    addition: Addition
    before: Array
    """``(blocks, joints)``, without it."""
    after: Mapping[int, Array]
    """Of every block, for each joint that it is about."""
    fall: float
    """Of all joints and blocks together."""
    size: Array
    """Squared weighted torque of every joint."""

    def gain(self, joints: Sequence[int]) -> float:
        before, after = self.before[:, joints].sum(), sum(float(self.after[j].sum()) for j in joints)
        return 1.0 - float(np.sqrt(after / before)) if before > 0.0 else 0.0

    def convinces(self) -> bool:
        """Whether the error falls noticeably, in every block, by more than blocks differ, and by an amount that matters."""
        own = list(self.addition.joints)
        before, after = self.before[:, own].sum(axis=1), np.sum([self.after[j] for j in own], axis=0)
        # ratios, because one block may have far more error than the others
        falls = -np.log(after / np.maximum(before, 1e-300))
        spread = float(np.std(falls, ddof=1)) / np.sqrt(len(falls))
        errors = [np.sqrt(squares.sum() / self.size[own].sum()) for squares in (before, after)]
        return bool(
            self.gain(own) >= LEAST_GAIN
            and errors[0] - errors[1] >= WORTH
            and falls.mean() > SURE * spread
            and (falls > 0.0).all()
            and self.fall > 0.0
        )


def advise(
    robot: Robot,
    samples: Sequence[Samples],
    row_filter: RowFilter | None = None,
    *,
    motor_side: bool = False,
    drive_gains: Sequence[float] | None = None,
    known: Sequence[RowSource] = (),
) -> tuple[Advice, ...]:
    """The one or two additions that would lower the error on unseen data most; none where nothing would noticeably.

    Args:
        robot: with the effects that were identified and their inner numbers.
        samples: the samples identified on, with the load where an effect needs it.
        row_filter: the filter of the rows; None where the samples themselves were filtered.
        motor_side: whether the log was measured at the motors, so that a coupling also changes what the joints did.
        drive_gains: those that torque was made of current with; None where it was measured.
        known: the sources of the fit: rows that they made of the same samples are not made again.
    """
    held = HeldOut.of(robot, samples, row_filter, known)
    if held is None:
        return ()
    if motor_side:
        coupled = _coupled_motors(held, samples, row_filter)
        if coupled:
            return coupled
    found: list[Advice] = []
    tried = list(additions(held, drive_gains))
    for _ in range(MOST):
        best = _best(held, tried)
        if best is None:
            break
        found.extend(_told(held.robot, best))
        held = held.with_columns(best.addition.columns)
        # what is left on the same joints may be that the addition is not quite the right one
        tried = [one for one in tried if not set(one.joints) & set(best.addition.joints)]
    return tuple(found)


def _best(held: HeldOut, tried: Sequence[Addition]) -> _Judged | None:
    plain, added = held.with_each([one.columns for one in tried])
    before, size = held.squares(plain), (held.torque**2).sum(axis=1)
    convincing = []
    for addition, found in zip(tried, added, strict=True):
        if found is None:
            continue
        judged = _Judged(addition, before, found.own, float(before.sum() - found.total.sum()), size)
        if judged.convinces() and not _impossible(held, addition, found):
            convincing.append(judged)
    return max(convincing, key=lambda one: one.fall, default=None)


def _impossible(held: HeldOut, addition: Addition, found: Added) -> bool:
    """Whether a value is clearly negative that no physical robot has negative."""
    if not addition.nonnegative:
        return False
    columns = np.concatenate([held.weights[j] * own for j, own in addition.columns.items()])
    noise = float(np.sqrt(found.total.sum() / held.torque.size))
    error = noise / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    return any(found.values[k] < -CANCELS * error[k] for k in addition.nonnegative)


def _told(robot: Robot, judged: _Judged) -> list[Advice]:
    addition = judged.addition
    return [
        Advice(robot.joint_names[j], addition.cause, max(judged.gain([j]), 0.0), addition.option) for j in addition.joints
    ]


# Logs of motors -----------------------------------------------------------------------------------


def _coupled_motors(held: HeldOut, samples: Sequence[Samples], row_filter: RowFilter | None) -> tuple[Advice, ...]:
    """A coupling that was left out of a log measured at the motors: joints moved otherwise, and shared their torques otherwise.

    Each is tried as a whole: the samples carried to the joints, the rows made anew; errors are compared at the motors.
    """
    robot = held.robot
    before, size = held.squares(held.residuals()), (held.torque**2).sum(axis=1)
    own = Coupling(tuple(map(tuple, np.eye(held.n_joints).tolist()))) if robot.coupling is None else robot.coupling
    best: _Judged | None = None
    for i, j, sign in _motor_pairs(robot, own):
        term = f"{i + 1}:{j + 1}={sign:g}"
        other = coupling_from_terms([term], robot.joint_names, start=own)
        tried = HeldOut.of(with_coupling(robot, other), [_reread(one, own, other) for one in samples], row_filter)
        if tried is None:
            continue
        at_joints = tried.residuals() / tried.weights[:, None]
        # residuals of joints are B^T times those of motors; compared in the joints' former mixture of motors
        as_before = own.B.T @ np.linalg.solve(other.B.T, at_joints)
        after = held.squares(held.weights[:, None] * as_before)
        names = robot.joint_names
        cause = (
            f"{names[j]} and {names[i]} are explained better together: the motor of {names[i]} also turns with {names[j]}"
        )
        addition = Addition((j, i), cause, f'--coupling "{term}"', {})
        judged = _Judged(addition, before, {j: after[:, j], i: after[:, i]}, float((before - after).sum()), size)
        if judged.convinces() and (best is None or judged.fall > best.fall):
            best = judged
    return () if best is None else tuple(_told(robot, best))


def _motor_pairs(robot: Robot, own: Coupling) -> list[tuple[int, int, float]]:
    turning = [k for k, joint in enumerate(robot.driven_joints) if joint.kind != "prismatic"]
    near = [(i, j) for i in turning for j in turning if 1 <= i - j <= 2 and j >= 1 and own.B[i, j] == own.B[j, i] == 0.0]
    return [(i, j, sign) for i, j in near for sign in (1.0, -1.0)]


def _reread(one: Samples, own: Coupling, other: Coupling) -> Samples:
    """Samples of the joints under another coupling of the same motors."""
    assert one.torque is not None
    back = np.linalg.solve(other.B, own.B).T
    torque = np.linalg.solve(own.B.T, one.torque.T).T @ other.B
    return replace(
        one,
        position=one.position @ back,
        velocity=one.velocity @ back,
        acceleration=one.acceleration @ back,
        torque=torque,
        load=None,
        travel=None,
    )
