"""Torque columns of single joints that hold no torque, or torque in another unit.

Bodies are fitted to the torque of the other joints. They move joint ``j`` as well, so that

    tau_j = s u_j + (what only joint j shows: friction, offset, rotor)

has a scale ``s`` near 1, whatever the description says. A scale far from 1 that explains the torque is a unit; torque that nothing
explains and that is far smaller than what the bodies ask for is that of a dead channel. A wrong channel also makes right ones look
wrong: the cause is the one that is furthest from the description, measured by the usual joint, or, without a description, the one
without which the others agree best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import torque_regressor
from dynid.finding import Finding
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.signals.measures import longest_part
from dynid.signals.recording import Recording
from dynid.validation.model_fit import few_rows, fitted_model, smooth_samples, with_rotors_alone

DEAD, UNIT = "dead_torque", "torque_unit"
"""Codes of the findings whose joints a run leaves out."""
_FACTOR = 4.0  # scale, or its inverse, from which on a column is in another unit: no drive gain is so far off
_FOLLOWS = (
    0.8  # share of a torque's variance, beside what only its joint shows, that the other joints' bodies must explain then
)
_BESIDE = 0.2  # the same where the description says about the same scale
_RUBS = 10.0  # times that friction may be larger than what the bodies ask for
_BLANK = 0.3  # share that they may explain of a channel without torque
_SMALL = 0.1  # part of the torque that bodies ask for below which a channel has none
_ZEROS = 0.9  # share of rows that are exactly zero in one
_RIDGE = 1e-8  # of scaled normal equations: what the others do not show is as described


def foreign_channels(recording: Recording, robot: Robot) -> list[Finding]:
    """Joints whose torque column holds none, or is in another unit than those of the others."""
    moves = np.ptp(recording.position, axis=0) > 1e-3
    if recording.torque is None or recording.n_joints < 2 or robot.coupling is not None or not moves.any():
        return []
    kept = [j for j, name in enumerate(recording.joint_names) if name not in recording.source.ignored]
    constant = np.ptp(recording.torque, axis=0) == 0.0
    empty = [j for j in kept if moves[j] and (constant[j] or np.mean(recording.torque[:, j] == 0.0) > _ZEROS)]
    kept = [j for j in kept if j not in empty]
    found = [_finding(recording.joint_names[j], 0.0) for j in empty]
    if robot.loops or len(kept) < 2:
        return found
    model = fitted_model(robot)
    q, v, a, torque = few_rows(smooth_samples(longest_part(recording)), model)
    nominal = inverse_dynamics(with_rotors_alone(robot), q, v, a)
    problem = _Channels.of(model, torque_regressor(model, q, v, a), torque, nominal)
    while len(kept) > 1 and 2 * len(found) < recording.n_joints:
        whole = problem.squares(kept)
        scales = {j: problem.scale(kept, whole, j) for j in kept}
        suspects = [(problem.innocence(kept, whole, j), j, scale) for j, scale in scales.items() if scale is not None]
        if not suspects:
            break
        _, worst, scale = min(suspects)
        kept.remove(worst)
        found.append(_finding(recording.joint_names[worst], scale))
    return found


def _finding(joint: str, scale: float) -> Finding:
    if scale == 0.0:
        what, code = f"torque of joint {joint} is dead: it holds no torque although the joint moves and carries bodies", DEAD
    else:
        what = f"torque of joint {joint} is {scale:.3g} times what the other joints' torque asks for: it is in another unit"
        code = UNIT
    remedy = f"check the column and the sensor; identify leaves this torque out of torque rows (--ignore-torque {joint}), so that "
    remedy += "friction of the joint stays unknown"
    return Finding("warning", what, remedy, where=(joint,), code=code, values={"scale": scale})


@dataclass(frozen=True, eq=False)
class _Channels:
    """Rows of every joint over base parameters with their torque, each joint counted by the torque that it has or should have."""

    rows: Array
    """``(joints, rows, base)``."""
    torque: Array
    """``(joints, rows)``."""
    described: Array
    """Base values of the description."""
    factor: Array
    """Size of the torque over that of the description, NaN where it has none."""

    @classmethod
    def of(cls, model: Robot, Y: Array, torque: Array, nominal: Array) -> _Channels:
        base = reduce_to_base(model)
        W = np.moveaxis(base.regressor(Y), 1, 0)
        size, expected = torque.std(axis=0), nominal.std(axis=0)
        scale = np.maximum(size, expected)
        scale = np.where(scale > 0.0, scale, 1.0)
        factor = np.where(expected > 1e-9, size / np.where(expected > 0.0, expected, 1.0), np.nan)
        return cls(W / scale[:, None, None], (torque / scale).T, base.base_values(model.parameters), factor)

    def squares(self, joints: list[int]) -> Array:
        """Normal equations ``[A | b]`` of some joints, about the description: those of several are the sum of each one's."""
        W = self.rows[joints].reshape(-1, self.rows.shape[2])
        return np.column_stack([W.T @ W, W.T @ (self.torque[joints].ravel() - W @ self.described)])

    def fit(self, whole: Array, without: int) -> tuple[Array, BoolArray]:
        """Base values by the other joints of those that ``whole`` are the squares of, and which of them these joints show."""
        others = whole - self.squares([without])
        A, left = others[:, :-1], others[:, -1]
        seen = np.asarray(np.diag(A) > 1e-12 * np.diag(A).max())
        size = np.sqrt(np.where(seen, np.diag(A), 1.0))
        step = np.linalg.solve(A / np.outer(size, size) + _RIDGE * np.eye(len(A)), np.where(seen, left, 0.0) / size) / size
        return self.described + np.where(seen, step, 0.0), seen

    def unusual(self, kept: list[int], joint: int) -> float:
        """Logarithm of a joint's factor on the description's torque over the usual one; that of two joints is one."""
        known = np.log(np.maximum(self.factor[kept], 1e-12))
        usual = float(np.nanmedian(known)) if len(kept) > 2 and np.isfinite(known).any() else 0.0
        return float(np.log(max(self.factor[joint], 1e-12))) - usual

    def innocence(self, kept: list[int], whole: Array, without: int) -> float:
        """Least for the joint that is the cause: how near it is to the description, else what the others leave unexplained without it."""
        if np.isfinite(self.factor[kept]).all():
            return -abs(self.unusual(kept, without))
        beta = self.fit(whole, without)[0]
        return sum(float(((self.torque[j] - self.rows[j] @ beta) ** 2).sum()) for j in kept if j != without)

    def scale(self, kept: list[int], whole: Array, joint: int) -> float | None:
        """Scale of a joint's torque by the others where it is another unit, 0 where there is no torque, None where all is well."""
        beta, seen = self.fit(whole, joint)
        own = self.rows[joint][:, ~seen]
        Q, _ = np.linalg.qr(np.column_stack([np.ones(len(own)), own[:, own.any(axis=0)]]))
        x, y = (z - Q @ (Q.T @ z) for z in (self.rows[joint][:, seen] @ beta[seen], self.torque[joint]))
        asked, has, common = float(x @ x), float(y @ y), float(x @ y)
        if asked <= 1e-12:
            return None
        whole = self.torque[joint] - self.torque[joint].mean()
        follows = common**2 / (asked * max(has, 1e-300))
        explained = 1.0 - (has - common**2 / asked) / max(float(whole @ whole), 1e-300)
        away = self.unusual(kept, joint)
        if explained < _BLANK and has < _SMALL**2 * asked and not away > np.log(_SMALL):
            return 0.0
        found = common / asked
        if not (found > _FACTOR or 0.0 < found < 1.0 / _FACTOR):
            return None
        # the description must not speak for the column: bodies by a wrong one are just as far from a right one
        clear = follows > _FOLLOWS and (np.isnan(away) or away * np.log(found) > np.log(2.0) * abs(np.log(found)))
        # torque has friction, of which the description says nothing: it may be larger, but not far smaller
        alike = abs(away) > np.log(_FACTOR) and -np.log(_FACTOR) < away - np.log(found) < np.log(_RUBS)
        alike &= follows > _BESIDE and away * np.log(found) > 0.0
        return found if clear or alike else None
