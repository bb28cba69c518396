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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.regression.channels import Channel
from dynid.robot.model import Robot
from dynid.watch.triangles import JointTriangles

LEARNED_BLOCKS = 24
"""Blocks from which the chart learns before it judges."""
_WEIGHT = ("m", "mx", "my", "mz")
_SEEN = 1e-6  # of a column's length that must be independent of the columns before it


@dataclass(frozen=True)
class Group:
    """Parameters that change together, and the joints whose rows show it."""

    name: str
    joints: tuple[int, ...]
    parameters: tuple[int, ...]


@dataclass(frozen=True)
class DriftOptions:
    """Length of the blocks, and the false alarms in an hour that are accepted."""

    block_s: float = 5.0
    per_hour: float = 0.01


@dataclass(frozen=True)
class Alarm:
    """A group that has left the chart, since when, and by how much."""

    group: str
    since_s: float
    statistic: float
    threshold: float

    def as_dict(self) -> dict[str, Any]:
        """For one line of JSON."""
        return {"group": self.group, "since": self.since_s, "statistic": self.statistic, "threshold": self.threshold}


def groups_of(robot: Robot) -> tuple[Group, ...]:
    """Friction of every joint, and the weight on the last link."""
    found = []
    columns = robot.parameters.columns
    for j, name in enumerate(robot.dof_names):
        acts = robot.effect_incidence[j] != 0.0
        n_inertial = robot.parameters.n_inertial
        own = tuple(n_inertial + k for k in np.flatnonzero(acts).tolist() if columns[n_inertial + k].kind == "friction")
        if own:
            found.append(Group(f"friction of {name}", (j,), own))
    last = robot.parameters.n_inertial // 10 - 1
    weight = tuple(10 * last + k for k in range(len(_WEIGHT)))
    found.append(Group(f"load on {robot.links[last]}", tuple(range(robot.n_dof)), weight))
    return tuple(found)


class DriftChart:
    """Judges block after block against a reference.

    Args:
        channels: of the rows.
        groups: what to judge.
        options: length of blocks and rate of false alarms.
        subtract_mean: against the start of the stream rather than a run.
    """

    def __init__(
        self, channels: Sequence[Channel], groups: Sequence[Group], options: DriftOptions, *, subtract_mean: bool
    ) -> None:
        self.options, self.groups = options, tuple(groups)
        self._channels, self._subtract = tuple(channels), subtract_mean
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
        self._judges: list[_Judge] | None = None

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
        return self.options.per_hour * self.options.block_s / 3600.0 / max(len(self.groups), 1)

    def refer(self, parameters: Array, covariance: Array, noise: Array) -> None:
        """Set the reference: values of all parameters, their covariance, and the noise of every joint's rows."""
        self.reference = np.array(parameters, dtype=np.float64)
        self.covariance = np.array(covariance, dtype=np.float64)
        self.noise = np.maximum(np.array(noise, dtype=np.float64), 1e-12)

    def judge(self, block: JointTriangles, end_s: float, begin_s: float) -> None:
        """Learn from a block, or judge it."""
        if self.reference is None or block.empty:
            return
        said = [self._whitened(g, block) for g in range(len(self.groups))]
        if self.stage == "learning":
            for known, (z, _) in zip(self._learned, said, strict=True):
                known.append(z)
            return
        if self._judges is None:
            self._judges = [_Judge.of(np.array(known), self._subtract, self.probability) for known in self._learned]
        for g, (judge, (z, spread)) in enumerate(zip(self._judges, said, strict=True)):
            self.statistics[g] = judge.statistic(z, spread)
            if self.statistics[g] > judge.threshold:
                if np.isnan(self._since[g]):
                    self._since[g] = begin_s
                    self.n_alarms += 1
            else:
                self._since[g] = np.nan

    def alarms(self) -> tuple[Alarm, ...]:
        """Groups that the last block found changed, the gravest first."""
        if self._judges is None:
            return ()
        found = [
            Alarm(group.name, float(since), float(statistic), judge.threshold)
            for group, since, statistic, judge in zip(self.groups, self._since, self.statistics, self._judges, strict=True)
            if np.isfinite(since)
        ]
        return tuple(sorted(found, key=lambda alarm: -alarm.statistic / alarm.threshold))

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

    def _whitened(self, g: int, block: JointTriangles) -> tuple[Array, Array]:
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
            "judging": self._judges is not None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""
        reference = state["reference"]
        self.reference = None if reference is None else np.array(reference)
        self.covariance, self.noise = np.array(state["covariance"]), np.array(state["noise"])
        self._learned = [list(np.asarray(known)) for known in state["learned"]]
        self.statistics, self._since = np.array(state["statistics"]), np.array(state["since"])
        self.n_alarms = int(state["n_alarms"])
        if state["judging"]:
            self._judges = [_Judge.of(np.array(known), self._subtract, self.probability) for known in self._learned]


@dataclass(frozen=True, eq=False)
class _Judge:
    """Mean and covariance that a group's blocks had, and the threshold of Hotelling's statistic."""

    mean: Array
    covariance: Array
    scale: float
    threshold: float

    @classmethod
    def of(cls, z: Array, subtract_mean: bool, probability: float) -> _Judge:
        from scipy.stats import f

        n, p = z.shape
        mean = z.mean(axis=0) if subtract_mean else np.zeros(p)
        covariance = np.atleast_2d(np.cov(z, rowvar=False))
        # a direction that blocks never showed has no spread of its own: one unit of noise
        covariance = covariance + np.diag(np.where(np.diag(covariance) > 0.0, 0.0, 1.0))
        share = n / (n + 1.0) if subtract_mean else 1.0
        return cls(mean, covariance, share, float(p * (n - 1.0) / (n - p) * f.isf(probability, p, n - p)))

    def statistic(self, z: Array, spread: Array) -> float:
        off = z - self.mean
        return float(self.scale * off @ np.linalg.solve(self.covariance + spread, off))
