"""What a model lacks, found by trial on blocks of time that it was not fitted to, and the option that would add it.

A correlation alone proves nothing: every extension (:mod:`~dynid.estimation.model_extensions`) is fitted beside everything else on some
blocks and judged by what it does to the error of all joints together on the others, by the rule that friction models are chosen by. It
is advised where the error falls noticeably and rises in no block. Among extensions that predict alike the one with the fewest
columns is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.estimation.friction.selection import predict_alike
from dynid.estimation.held_out import HeldOut
from dynid.estimation.model_extensions import ModelExtension, model_extensions
from dynid.model.coupling import Coupling, coupling_from_terms
from dynid.model.friction import with_coupling
from dynid.model.robot import Robot
from dynid.regression.row_filter import RowFilter
from dynid.regression.row_source import RowSource
from dynid.signals.samples import Samples

LEAST_GAIN = 0.1
"""Part by which the held-out error of the joints that it is about must fall for an extension to be advised."""
WORTH = 5e-4
"""Part of the torque of some joint by which its error must fall: less is not worth an option."""
SURE = 2.5
"""Standard errors, over blocks, by which the relative fall of the squared error must differ from zero."""
RISE = 0.05
"""Part by which the squared error of a block may rise."""
MOST = 2
"""Extensions that are advised."""
CANCELS = 3.0
"""Times that the standard error of its values may be negative where a physical robot has no negative ones."""


@dataclass(frozen=True)
class Advice:
    """One extension that would lower the error on unseen data, for one joint."""

    joint: str
    cause: str
    gain: float
    """Part by which the held-out error of the joint falls."""
    option: str | None
    """What adds it on the command line; None where no option does."""
    total: float = 0.0
    """Part by which the held-out error of all joints together falls, each in units of its noise."""


NAMED = 3
"""Joints that a sentence names."""


def advice_lines(advice: Sequence[Advice]) -> tuple[str, ...]:
    """One sentence for each extension, with the joints whose held-out error it lowers."""
    lines = []
    for cause in dict.fromkeys(one.cause for one in advice):
        own = sorted((one for one in advice if one.cause == cause), key=lambda one: -one.gain)
        falls = " and ".join(f"{100.0 * one.gain:.0f} % on {one.joint}" for one in own[:NAMED] if one.gain > 0.0)
        falls += f" and less on {len(own) - NAMED} more" if len(own) > NAMED else ""
        remedy = (
            "no option adds this to the model; held-out error it would take away:"
            if own[0].option is None
            else f"add {own[0].option}, which lowers the held-out error by"
        )
        whole = f"{100.0 * own[0].total:.0f} % over all joints, each in units of its noise"
        lines.append(f"{cause}; {remedy} {falls} ({whole})" if falls else f"{cause}; {remedy} {whole}")
    return tuple(lines)


def _convinces(held: HeldOut, before: Array, own: Mapping[int, Array], total: Array) -> bool:
    """Whether an extension predicts held-out blocks clearly better than the model without it.

    The error of all joints together must fall by more than models that predict alike differ, by as much as if that of the joints that
    it enters fell noticeably, and clearly rise in no block; that of these joints by more than blocks differ; that of some joint by
    an amount that matters; and that of no joint may rise noticeably.

    Args:
        held: the rows.
        before: ``(blocks, joints)``, squared error of all joints without it.
        own: of every block, for each joint that it enters.
        total: of every block, all joints together.
    """
    first = before.sum(axis=1)
    noticeable = (1.0 - (1.0 - LEAST_GAIN) ** 2) * len(own) / held.n_joints
    if predict_alike(first, total) or first.sum() - total.sum() < noticeable * first.sum():
        return False
    if (total > (1.0 + RISE) * first).any():
        return False
    # ratios, because one block may have far more error than the others
    falls = -np.log(np.sum(list(own.values()), axis=0) / np.maximum(before[:, list(own)].sum(axis=1), 1e-300))
    if falls.mean() <= SURE * float(np.std(falls, ddof=1)) / np.sqrt(len(falls)):
        return False
    size = (held.torque**2).sum(axis=1)
    gains = {j: _gain(before[:, j], squares) for j, squares in own.items()}
    if min(gains.values()) < -LEAST_GAIN:  # a cause that is true for some joints mends none at the cost of another
        return False
    return any(
        gain >= LEAST_GAIN and gain * np.sqrt(before[:, j].sum() / max(size[j], 1e-300)) >= WORTH
        for j, gain in gains.items()
    )


def _gain(before: Array, after: Array) -> float:
    return 1.0 - float(np.sqrt(after.sum() / before.sum())) if before.sum() > 0.0 else 0.0


def advise(
    robot: Robot,
    samples: Sequence[Samples],
    row_filter: RowFilter | None = None,
    *,
    motor_side: bool = False,
    drive_gains: Sequence[float] | None = None,
    known: Sequence[RowSource] = (),
) -> tuple[Advice, ...]:
    """The one or two extensions that would lower the error on unseen data most; none where nothing would noticeably.

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
    tried = list(model_extensions(held, drive_gains))
    for _ in range(MOST):
        best = _best(held, tried)
        if best is None:
            break
        extension, advice = best
        found.extend(advice)
        held = held.with_columns(extension.columns)
        # what is left on the same joints may be that the extension is not quite the right one
        tried = [one for one in tried if not set(one.joints) & set(extension.joints)]
    return tuple(found)


def _advice(held: HeldOut, extension: ModelExtension, before: Array, own: Mapping[int, Array], total: Array) -> list[Advice]:
    """What an extension does to the joints that it is about; of several that it is not about alone, to those that it helps."""
    whole = _gain(before.sum(axis=1), total)
    gains = {j: max(_gain(before[:, j], own[j]), 0.0) for j in extension.joints}
    if len(gains) > 2:
        gains = {j: gain for j, gain in gains.items() if gain >= LEAST_GAIN}
    names = [joint.name for joint in held.robot.driven_joints]
    return [Advice(names[j], extension.cause, gain, extension.option, whole) for j, gain in gains.items()]


def _best(held: HeldOut, tried: Sequence[ModelExtension]) -> tuple[ModelExtension, list[Advice]] | None:
    """Of the convincing extensions that lower the error of all joints alike, the one with the fewest columns, and what it does."""
    plain, added = held.with_each([one.columns for one in tried])
    before = held.squares(plain)
    good = [
        (total, len(values), extension, own)
        for extension, found in zip(tried, added, strict=True)
        if found is not None
        for own, total, values in [found]
        if _convinces(held, before, own, total) and not _impossible(held, extension, total, values)
    ]
    if not good:
        return None
    best = min(good, key=lambda one: one[0].sum())[0]
    alike = [one for one in good if predict_alike(one[0], best)]
    total, _, extension, own = min(alike, key=lambda one: (one[1], one[0].sum()))
    return extension, _advice(held, extension, before, own, total)


def _impossible(held: HeldOut, extension: ModelExtension, squares: Array, values: Array) -> bool:
    """Whether a value is clearly negative that no physical robot has negative, or smaller than it would have to be."""
    if extension.least and values[0] < extension.least:
        return True
    if not extension.nonnegative:
        return False
    columns = np.concatenate([held.weights[j] * own for j, own in extension.columns.items()])
    noise = float(np.sqrt(squares.sum() / held.torque.size))
    error = noise / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    return any(values[k] < -CANCELS * error[k] for k in extension.nonnegative)


# Logs of motors -----------------------------------------------------------------------------------
def _coupled_motors(held: HeldOut, samples: Sequence[Samples], row_filter: RowFilter | None) -> tuple[Advice, ...]:
    """A coupling that was left out of a log measured at the motors: joints moved otherwise, and shared their torques otherwise.

    Each is tried as a whole: the samples carried to the joints, the rows made anew; errors are compared at the motors.
    """
    robot = held.robot
    before = held.squares(held.residuals())
    own = Coupling(tuple(map(tuple, np.eye(held.n_joints).tolist()))) if robot.coupling is None else robot.coupling
    best: tuple[Advice, ...] = ()
    most = -np.inf
    turning = [k for k, joint in enumerate(robot.driven_joints) if joint.kind != "prismatic"]
    near = [(i, j) for i in turning for j in turning if 1 <= i - j <= 2 and j >= 1 and own.B[i, j] == own.B[j, i] == 0.0]
    for i, j, sign in [(i, j, sign) for i, j in near for sign in (1.0, -1.0)]:
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
        fall, total = float((before - after).sum()), after.sum(axis=1)
        both = {j: after[:, j], i: after[:, i]}
        if fall > most and _convinces(held, before, both, total):
            extension = ModelExtension((j, i), cause, f'--coupling "{names[i]}:{names[j]}={sign:g}"', {})
            best, most = tuple(_advice(held, extension, before, both, total)), fall
    return best


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
