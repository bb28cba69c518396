"""What the data cannot tell apart, by the Fisher information in scaled units.

Each unknown is measured in a unit of its own size (the torque or time that it would have in a joint like this one). What the data
leave uncertain by more than a share of that size, they do not determine. Unknowns that are not determined and that vary together are a
group: their sum may be well known, none of them is.

Only the data decide. Along a direction that they leave open the estimate may stop anywhere, and so do the sizes of the unknowns in
it: a belief of the same size about one of them (friction that happens to be small) would pass for knowledge of the other (its gain).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, freeze
from dynid.estimation.actuators.model import ActuatorModel, ActuatorProblem, name_of
from dynid.simulation.position_loop import Unknown

UNDETERMINED = 0.5
"""Deviation, in units of an unknown's own size, above which the data do not determine it."""
WIDE = 1e3
"""Deviation of every unknown before the data speak, in units of its own size: it keeps the covariance finite and decides nothing."""
TOGETHER = 0.9
"""Correlation above which undetermined unknowns belong to one group."""
NUISANCE = ("width",)


@dataclass(frozen=True)
class Group:
    """Unknowns that the data do not tell apart, what of them is known, and how to separate them."""

    names: tuple[str, ...]
    determined: str
    """The combination that the data do determine, with its value; empty where there is none."""
    experiment: str

    @property
    def alone(self) -> bool:
        """Whether it is one value that simply was not excited."""
        return len(self.names) == 1


@dataclass(frozen=True, eq=False)
class Separability:
    """Groups of unknowns that cannot be told apart, and how well each unknown is determined.

    Args:
        groups: inseparable or undetermined unknowns.
        deviation: of every unknown in units of its own size, at most 1; small is well determined.
        correlation: of the unknowns.
    """

    groups: tuple[Group, ...]
    deviation: Array
    correlation: Array

    @property
    def inseparable(self) -> tuple[tuple[str, ...], ...]:
        return tuple(group.names for group in self.groups if not group.alone)

    @property
    def entangled(self) -> frozenset[str]:
        """Names that are in a group with others: no value of their own can be given."""
        return frozenset(name for names in self.inseparable for name in names)


def separability(problem: ActuatorProblem, model: ActuatorModel, information: Array, inflation: float = 1.0) -> Separability:
    """Groups from the information of the unknowns at a model.

    Args:
        problem: what was asked.
        model: near the answer.
        information: inverse covariance of independent residuals, over the unknowns.
        inflation: by how much autocorrelation widens deviations.
    """
    sizes = typical_sizes(problem, model)
    scaled = information * np.outer(sizes, sizes) / inflation**2
    covariance = _covariance(scaled)
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    weak = [
        k for k, unknown in enumerate(problem.unknowns) if deviation[k] > UNDETERMINED and unknown.symbol not in NUISANCE
    ]
    groups = [
        _described(problem, model, sorted(members), covariance, sizes)
        for members in _connected(weak, np.abs(correlation) > TOGETHER)
    ]
    return Separability(tuple(groups), freeze(np.minimum(deviation, 1.0)), freeze(correlation))


def _covariance(scaled: Array) -> Array:
    """Covariance of scaled unknowns under their information and a wide prior.

    Columns are brought to length one before the inversion, so that an open direction is not lost beside well-known unknowns.
    """
    precision = scaled + np.eye(len(scaled)) / WIDE**2
    length = np.sqrt(np.diag(precision))
    values, vectors = np.linalg.eigh(precision / np.outer(length, length))
    spread = vectors / np.sqrt(np.maximum(values, np.finfo(np.float64).eps * len(values)))
    return np.asarray(spread @ spread.T / np.outer(length, length))


def typical_sizes(problem: ActuatorProblem, model: ActuatorModel) -> Array:
    """A size of every unknown: half its value, but at least what matters in the joint."""
    floor = _floors(problem)
    return np.array([max(0.5 * abs(model.value(u)), floor[k]) for k, u in enumerate(problem.unknowns)])


def _floors(problem: ActuatorProblem) -> Array:
    """A tenth of the joint's largest drive torque as dry friction, and what makes as much torque at the speeds of the log."""
    n = problem.robot.n_joints
    torque, speed, acceleration = np.zeros((3, n))
    for log in problem.logs:
        stride = max(1, round(0.02 / log.period_s))  # differences over 20 ms, which noise of an encoder does not fill
        v = np.diff(log.position[::stride], axis=0) / np.diff(log.time[::stride])[:, None]
        a = np.diff(v, axis=0) / np.diff(log.time[::stride])[1:, None]
        q, u = log.position[::stride][1:], log.command.at(log.time[::stride][1:], np.zeros(n))
        error, slip = log.control.parts(u, v, q, v)  # damping of a position drive is none of what it pushes with
        torque = np.maximum(torque, np.quantile(np.abs(error - slip), 0.98, axis=0))
        speed = np.maximum(speed, np.quantile(np.abs(v), 0.9, axis=0))
        acceleration = np.maximum(acceleration, np.quantile(np.abs(a), 0.9, axis=0))
    share = 0.1 * np.maximum(torque, 1e-6)
    by_symbol = {
        "fc": share,
        "fo": share,
        "fv": share / np.maximum(speed, 1e-3),
        "Ia": share / np.maximum(acceleration, 1e-2),
        "kp": np.full(n, 0.1),
        "kd": np.full(n, 0.1),
        "width": np.full(n, 0.02),
        "delay": np.full(n, 0.005),
    }
    bodies = np.maximum(np.abs(problem.robot.parameters.inertials), 1e-4)
    return np.array(
        [
            by_symbol[u.symbol][max(u.joint, 0)] if u.symbol in by_symbol else 0.3 * float(bodies[u.joint].max())
            for u in problem.unknowns
        ]
    )


def _connected(members: Sequence[int], linked: Array) -> list[set[int]]:
    groups: list[set[int]] = []
    for k in members:
        touching = [group for group in groups if any(linked[k, other] for other in group)]
        merged = {k}.union(*touching)
        groups = [group for group in groups if group not in touching] + [merged]
    return groups


def _described(problem: ActuatorProblem, model: ActuatorModel, members: list[int], covariance: Array, sizes: Array) -> Group:
    unknowns = [problem.unknowns[k] for k in members]
    names = tuple(name_of(u) for u in unknowns)
    return Group(names, _determined(problem, model, members, covariance, sizes), _experiment(unknowns, problem))


def _determined(problem: ActuatorProblem, model: ActuatorModel, members: list[int], covariance: Array, sizes: Array) -> str:
    """The best-known combination of a pair, such as ``fv1 + kd1 = 1.75 (0.02)``."""
    if len(members) != 2:
        return ""
    own = covariance[np.ix_(members, members)]
    values, vectors = np.linalg.eigh(own)
    if values[0] > 0.05 * values[1]:
        return ""
    units = np.array([_unit(problem, problem.unknowns[k]) for k in members])
    weights = vectors[:, 0] / (sizes[members] * units)
    sigma = float(np.sqrt(values[0])) / abs(weights[0])
    weights = weights / weights[0]
    total = float(weights @ (units * [model.value(problem.unknowns[k]) for k in members]))
    first, second = (name_of(problem.unknowns[k]) for k in members)
    sign = "+" if weights[1] >= 0.0 else "-"
    share = f"{abs(weights[1]):.3g} "
    return f"{first} {sign} {'' if share == '1 ' else share}{second} = {total:.4g} ({sigma:.1g})"


def _unit(problem: ActuatorProblem, unknown: Unknown) -> float:
    """What an unknown counts: a gain is a multiple of the first log's number, in N m/rad or N m s/rad."""
    if unknown.symbol not in ("kp", "kd"):
        return 1.0
    return float(getattr(problem.logs[0].control, unknown.symbol)[unknown.joint])


def _experiment(unknowns: Sequence[Unknown], problem: ActuatorProblem) -> str:
    """What to record so that these unknowns show apart."""
    symbols = {u.symbol for u in unknowns}
    joints = ", ".join(dict.fromkeys(problem.robot.joint_names[u.joint] for u in unknowns if u.joint >= 0)) or "all joints"
    if symbols & {"kd"} and symbols & {"fv"}:
        return (
            f"a second log of {joints} with another kd (half or double), given with --gains scale; where only the ratio of the gains "
            "is known: --kp 1/2 --kd 1/2 --gains scale"
        )
    if "kp" in symbols and len(symbols) > 1:
        return f"a log of {joints} with a known load, or a second log with another kp, given with --gains scale"
    if "Ia" in symbols and ("delay" in symbols or len(unknowns) == 1):
        return f"faster motion of {joints}: a chirp up to the bandwidth of the drive ('dynid excite --for actuators')"
    if {"fc", "fo"} <= symbols:
        return f"slow motion of {joints} in both directions, so that dry friction changes sign and the offset does not"
    if {"fc", "fv"} & symbols:
        return f"slow and fast ramps of {joints} in both directions ('dynid excite --for actuators')"
    if "delay" in symbols:
        return f"steps or a chirp of {joints}: a slow command does not show when it arrives"
    return f"more motion of {joints}, at several speeds and in several poses"
