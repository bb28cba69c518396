"""Whether the robot still is what it was: a control chart on what blocks of time say against a reference.

For a block of some seconds the torque that the reference leaves, ``e = y - W beta_0``, is projected on the columns of a group: friction of
one joint, or the weight on the last link. With these columns first, ``Q^T [G W e] = [T M z]``, ``z`` is what the block says about the group
in units that do not depend on how the robot moved: for unchanged parameters it has mean zero and one covariance, whatever the motion.
That covariance ``S`` is learned from ``N`` blocks, and with the uncertainty of the reference beside it

    T^2 = z^T (S + M C M^T)^-1 z,       T^2 (N - p) / (p (N - 1)) (N / (N + 1))  ~  F(p, N - p)

is Hotelling's chart, whose threshold has the false-alarm rate that was asked for if blocks are normal, independent of one another and
alike. Against the start of the stream, the mean of the learned blocks is subtracted: what the model cannot explain from the start is no
drift. Against a run it is not: what changed since the run is what is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.estimation.online import Triangles
from dynid.model.robot import Robot
from dynid.regression.channels import torque_channels

LEARNED_BLOCKS = 24
"""Blocks from which the chart learns before it judges."""
_WEIGHT = ("m", "mx", "my", "mz")
_SEEN = 1e-6  # of a column's length that must be independent of the columns before it


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that change together, and the joints whose rows show it."""

    name: str
    joints: tuple[int, ...]
    parameters: tuple[int, ...]


ControlLimit: TypeAlias = tuple[Array, Array, float, float]
"""Mean and covariance that a group's blocks had, the share that the statistic is multiplied by, and its threshold."""


def parameter_groups(robot: Robot) -> tuple[ParameterGroup, ...]:
    """Friction of every joint, and the weight on the last link."""
    found = []
    columns = robot.parameters.columns
    for j, name in enumerate(robot.dof_names):
        acts = robot.effect_incidence[j] != 0.0
        n_inertial = robot.parameters.n_inertial
        own = tuple(n_inertial + k for k in np.flatnonzero(acts).tolist() if columns[n_inertial + k].kind == "friction")
        if own:
            found.append(ParameterGroup(f"friction of {name}", (j,), own))
    last = robot.parameters.n_inertial // 10 - 1
    weight = tuple(10 * last + k for k in range(len(_WEIGHT)))
    found.append(ParameterGroup(f"load on {robot.links[last]}", tuple(range(robot.n_dof)), weight))
    return tuple(found)


class DriftChart:
    """Judges block after block against a reference.

    Args:
        robot: whose rows are judged.
        block_s: length of the blocks, s.
        false_alarms: those in an hour that are accepted.
        subtract_mean: against the start of the stream rather than a run.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        block_s: float = 5.0,
        false_alarms: float = 0.01,
        subtract_mean: bool,
    ) -> None:
        self._rate, self.groups = false_alarms * block_s / 3600.0, parameter_groups(robot)
        self._channels, self._subtract = torque_channels(robot), subtract_mean
        self._columns = [
            [channel.expansion[:, list(group.parameters)] for channel in self._channels] for group in self.groups
        ]
        self.reference: Array | None = None
        self.covariance = np.zeros((0, 0))
        self.noise = np.ones(len(self._channels))
        self._learned: list[list[Array]] = [[] for _ in self.groups]
        self.statistics = np.zeros(len(self.groups))
        self._since = np.full(len(self.groups), np.nan)
        self.n_alarms = 0
        self._limits: list[ControlLimit] | None = None

    @property
    def n_learned(self) -> int:
        """Blocks learned from so far."""
        return min((len(known) for known in self._learned), default=0)

    @property
    def stage(self) -> str:
        """``waiting`` for a reference, ``learning`` what blocks are like, or ``watching``."""
        if self.reference is None:
            return "waiting"
        return "learning" if self.n_learned < LEARNED_BLOCKS else "watching"

    @property
    def probability(self) -> float:
        """Probability of a false alarm that one group has in one block."""
        return self._rate / max(len(self.groups), 1)

    def set_reference(self, parameters: Array, covariance: Array, noise: Array) -> None:
        """Set the reference: values of all parameters, their covariance, and the noise of every joint's rows."""
        self.reference = np.array(parameters, dtype=np.float64)
        self.covariance = np.array(covariance, dtype=np.float64)
        self.noise = np.maximum(np.array(noise, dtype=np.float64), 1e-12)

    def judge(self, block: Triangles, begin_s: float) -> None:
        """Learn from a block, or judge it."""
        if self.reference is None or block.n_times == 0.0:
            return
        said = [self._whitened(g, block) for g in range(len(self.groups))]
        if self.stage == "learning":
            for known, (z, _) in zip(self._learned, said, strict=True):
                known.append(z)
            return
        if self._limits is None:
            self._limits = [control_limit(np.array(known), self._subtract, self.probability) for known in self._learned]
        for g, ((mean, covariance, share, threshold), (z, spread)) in enumerate(zip(self._limits, said, strict=True)):
            off = z - mean
            self.statistics[g] = float(share * off @ np.linalg.solve(covariance + spread, off))
            if self.statistics[g] > threshold:
                if np.isnan(self._since[g]):
                    self._since[g] = begin_s
                    self.n_alarms += 1
            else:
                self._since[g] = np.nan

    def alarms(self) -> tuple[Mapping[str, Any], ...]:
        """Groups that the last block found changed, the gravest first: since when, and by how much; as in the JSON of a report."""
        if self._limits is None:
            return ()
        found = [
            {"group": group.name, "since": float(since), "statistic": float(statistic), "threshold": limit[-1]}
            for group, since, statistic, limit in zip(self.groups, self._since, self.statistics, self._limits, strict=True)
            if np.isfinite(since)
        ]
        return tuple(sorted(found, key=lambda alarm: -alarm["statistic"] / alarm["threshold"]))

    def learned_noise(self) -> Array:
        """Standard deviation of a row that counts for itself, by joint, from the spread of what blocks said; NaN until it is learned."""
        found = np.full(len(self._channels), np.nan)
        if self.n_learned < LEARNED_BLOCKS:
            return found
        for group, known in zip(self.groups, self._learned, strict=True):
            if len(group.joints) == 1:
                j = group.joints[0]
                found[j] = self.noise[j] * float(np.sqrt(np.array(known).var(axis=0, ddof=1).mean()))
        return found

    def _whitened(self, g: int, block: Triangles) -> tuple[Array, Array]:
        """``z`` of a group in a block, in units of the noise, and what the uncertain reference adds to its covariance."""
        assert self.reference is not None
        group, parts = self.groups[g], []
        p = len(group.parameters)
        for j in group.joints:
            R, channel = block.R[j], self._channels[j]
            W = R[:, :-1]
            rest = R[:, -1] - W @ (channel.expansion @ self.reference)
            parts.append(np.column_stack([W @ self._columns[g][j], W @ channel.expansion, rest]) / self.noise[j])
        stacked = np.vstack(parts)
        sizes = np.linalg.norm(stacked[:, :p], axis=0)
        stacked[:, :p] /= np.where(sizes > 0.0, sizes, 1.0)
        Q, T = np.linalg.qr(stacked[:, :p])
        sign = np.where(np.diag(T) < 0.0, -1.0, 1.0)
        seen = np.abs(np.diag(T)) > _SEEN
        projected = (Q.T @ stacked[:, p:]) * sign[:, None]
        z = np.where(seen, projected[:, -1], 0.0)
        M = np.where(seen[:, None], projected[:, :-1], 0.0)
        return z, M @ self.covariance @ M.T

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {
            "reference": self.reference,
            "covariance": self.covariance,
            "noise": self.noise,
            "learned": [
                np.array(known).reshape(-1, len(g.parameters)) for g, known in zip(self.groups, self._learned, strict=True)
            ],
            "statistics": self.statistics.copy(),
            "since": self._since.copy(),
            "n_alarms": self.n_alarms,
            "judging": self._limits is not None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""
        n = self._channels[0].expansion.shape[1]
        if state["reference"] is not None:
            self.set_reference(np.reshape(state["reference"], n), np.reshape(state["covariance"], (n, n)), state["noise"])
        self._learned = [list(known) for _, known in zip(self.groups, state["learned"], strict=True)]
        self.statistics, self._since, self.n_alarms = state["statistics"], state["since"], state["n_alarms"]
        if state["judging"]:
            self._limits = [control_limit(np.array(known), self._subtract, self.probability) for known in self._learned]


def control_limit(z: Array, subtract_mean: bool, probability: float) -> ControlLimit:
    """The limit of Hotelling's chart learned from what ``(blocks, parameters)`` said."""
    from scipy.stats import f

    n, p = z.shape
    mean = z.mean(axis=0) if subtract_mean else np.zeros(p)
    covariance = np.atleast_2d(np.cov(z, rowvar=False))
    # a direction that blocks never showed has no spread of its own: one unit of noise
    covariance = covariance + np.diag(np.where(np.diag(covariance) > 0.0, 0.0, 1.0))
    share = n / (n + 1.0) if subtract_mean else 1.0
    return mean, covariance, share, float(p * (n - 1.0) / (n - p) * f.isf(probability, p, n - p))
