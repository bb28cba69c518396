"""What the data tell and what they cannot tell apart.

Unknowns are judged by the Fisher information in scaled units.

Each unknown is measured in a unit of its own size (the torque or time that it would have in a joint like this one). What the data
leave uncertain by more than a share of that size, they do not determine. Unknowns that are not determined and that vary together are a
group: their sum may be well known, none of them is.

Only the data decide. Along a direction that they leave open the estimate may stop anywhere, and so do the sizes of the unknowns in
it: a belief of the same size about one of them (friction that happens to be small) would pass for knowledge of the other (its gain).

Lag of the current loop and dead band of the drives are linear in nothing, so each is profiled: for a few values all other unknowns
follow by output error, and what is left of the positions is a function of that value alone. Its minimum is refined by a parabola;
twice the log likelihood changes by 3.84 within the 95 % interval. Rows of a log depend on their neighbours, so they count as the fewer
rows that their autocorrelation leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dynid.apps.actuators.model import ActuatorModel, ActuatorProblem, name_of
from dynid.apps.actuators.output_error import OutputError
from dynid.arrays import Array, freeze
from dynid.dynamics.position_loop import Unknown
from dynid.engine import Tell

UNDETERMINED = 0.5
"""Deviation, in units of an unknown's own size, above which the data do not determine it."""
WIDE = 1e3
"""Deviation of every unknown before the data speak, in units of its own size: it keeps the covariance finite and decides nothing."""
TOGETHER = 0.9
"""Correlation above which undetermined unknowns belong to one group."""
NUISANCE = ("width",)
GAIN_SIZE = 0.1
"""Least size of the gains of a motor that a voltage drives, N m/V and N m s/rad: that of small servos."""


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
    linked, members = np.abs(correlation) > TOGETHER, list[set[int]]()
    for k in weak:
        touching = [group for group in members if any(linked[k, other] for other in group)]
        members = [group for group in members if group not in touching] + [{k}.union(*touching)]
    groups = tuple(_described(problem, model, sorted(group), covariance, sizes) for group in members)
    return Separability(groups, freeze(np.minimum(deviation, 1.0)), freeze(correlation))


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
        error, slip = log.control.parts(
            u, v, q, v, log.time[::stride][1:]
        )  # damping of a position drive is none of what it pushes with
        torque = np.maximum(torque, np.quantile(np.abs(error - slip), 0.98, axis=0))
        speed = np.maximum(speed, np.quantile(np.abs(v), 0.9, axis=0))
        acceleration = np.maximum(acceleration, np.quantile(np.abs(a), 0.9, axis=0))
    voltage = problem.logs[0].control.supply is not None
    # a voltage times a position gain of one: what it makes of torque is not known yet
    share = 0.1 * np.maximum(torque * (GAIN_SIZE if voltage else 1.0), 1e-6)
    by_symbol = {
        "fc": share,
        "fo": share,
        "fv": share / np.maximum(speed, 1e-3),
        "Ia": share / np.maximum(acceleration, 1e-2),
        "kp": np.full(n, GAIN_SIZE if voltage else 0.1),
        "kd": np.full(n, GAIN_SIZE if voltage else 0.1),
        "fl": np.full(n, 0.1),
        "fe": np.full(n, 0.1),
        "rise": np.full(n, 0.1),
        "fading": np.full(n, 0.1),
        "sat": 0.01 / share,
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


GRIDS: Final[Mapping[str, tuple[float, ...]]] = {
    "lag": (0.0, 0.002, 0.005, 0.01, 0.02, 0.04),
    "dead_band": (0.0, 0.002, 0.005, 0.01, 0.02, 0.04),
}
"""Values that are compared first, s and rad or m."""
WORDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "lag": ("lag of the current loop", "s", "steps and chirps above 1 / (2 pi lag), recorded at twice that rate or more"),
    "dead_band": ("dead band", "rad or m", "slow ramps that turn back, with rests between them"),
}
ROUNDS = 2
"""Refinements of the minimum between its neighbours."""
CHANGE = 3.841
"""Twice the log likelihood that a 95 % interval spans."""


@dataclass(frozen=True)
class Profile:
    """One number that was profiled.

    Args:
        name: ``lag`` or ``dead_band``.
        value: the one that leaves least; zero where the data do not tell it from zero.
        low: lower end of the 95 % interval.
        high: upper end; infinite where the largest value that was tried still fits.
        told: whether the data tell the value from zero.
        trials: values tried and twice the negative log likelihood of each, the least one taken off.
    """

    name: str
    value: float
    low: float
    high: float
    told: bool
    trials: tuple[tuple[float, float], ...]

    @property
    def sigma(self) -> float:
        """Half the interval, as a standard deviation."""
        return (self.high - self.low) / (2.0 * 1.96)

    def as_json(self) -> dict[str, Any]:
        """Plain numbers; None where an interval has no end."""
        high = self.high if np.isfinite(self.high) else None
        sigma = self.sigma if np.isfinite(self.high) else None
        return {"value": self.value, "sigma": sigma, "interval": [self.low, high], "told": self.told}

    def sentence(self) -> str:
        """What was found, for the user."""
        words, unit, experiment = WORDS[self.name]
        high = f"{self.high:.3g}" if np.isfinite(self.high) else "more than the largest value tried"
        if self.told:
            return f"{words}: {self.value:.3g} {unit}, 95 % interval {self.low:.3g} to {high}; the other deviations hold it there"
        return (
            f"{words}: not told from zero by these logs, anything from {self.low:.3g} to {high} {unit} fits alike; it is left at zero; "
            f"to find it: {experiment}"
        )


def profiled(name: str, fit: Callable[[float], OutputError], n_rows: int, tell: Tell) -> Profile:
    """The value of ``lag`` or ``dead_band`` that leaves least of the positions, and its interval.

    Args:
        name: what is profiled.
        fit: output error of everything else, with that value held.
        n_rows: rows of all logs.
        tell: called before every fit.
    """
    found: dict[float, OutputError] = {}

    def tried(x: float) -> None:
        if x not in found:
            tell(f"{WORDS[name][0]} of {x:.4g} {WORDS[name][1]}")
            found[x] = fit(x)

    for x in GRIDS[name]:
        tried(x)
    for _ in range(ROUNDS):
        grid, cost = _costs(found, n_rows)
        tried(_between(grid, cost))
    grid, cost = _costs(found, n_rows)
    k = int(np.argmin(cost))
    low, high = _crossing(grid[: k + 1][::-1], cost[: k + 1][::-1], grid[0]), _crossing(grid[k:], cost[k:], np.inf)
    told = bool(cost[0] > CHANGE)
    trials = tuple(zip(grid.tolist(), cost.tolist(), strict=True))
    return Profile(name, float(grid[k]) if told else 0.0, low if told else 0.0, high, told, trials)


def _costs(found: Mapping[float, OutputError], n_rows: int) -> tuple[Array, Array]:
    """Values in order, and twice the negative log likelihood of each above the least, in rows that count."""
    grid = np.array(sorted(found))
    rms = np.array([found[x].rms for x in grid])
    best = int(np.argmin(np.log(np.maximum(rms, 1e-12)).sum(axis=1)))
    rows = n_rows / found[float(grid[best])].inflation ** 2
    cost = rows * 2.0 * np.log(np.maximum(rms, 1e-12)).sum(axis=1)
    return grid, cost - cost.min()


def _between(grid: Array, cost: Array) -> float:
    """Where the parabola through the least value and its neighbours is least; half-way to the neighbour at an end."""
    k = int(np.argmin(cost))
    if k in (0, len(grid) - 1):
        return float(0.5 * (grid[k] + grid[1 if k == 0 else k - 1]))
    x, y = grid[k - 1 : k + 2], cost[k - 1 : k + 2]
    bend, slope, _ = np.polyfit(x - x[1], y, 2)
    at = float(x[1] - slope / (2.0 * bend)) if bend > 0.0 else float(x[1])
    if abs(at - x[1]) < 1e-3 * float(x[2] - x[0]):
        at = float(0.5 * (x[1] + x[0 if x[1] - x[0] > x[2] - x[1] else 2]))
    return float(np.clip(at, x[0], x[2]))


def _crossing(grid: Sequence[float] | Array, cost: Sequence[float] | Array, otherwise: float) -> float:
    """Where the cost first exceeds the interval's change, outward from its least value."""
    for inner, outer, below, above in zip(grid[:-1], grid[1:], cost[:-1], cost[1:], strict=True):
        if above > CHANGE:
            # costs grow as the square of the distance from the minimum
            share = (np.sqrt(CHANGE) - np.sqrt(max(below, 0.0))) / (np.sqrt(above) - np.sqrt(max(below, 0.0)))
            return float(inner + share * (outer - inner))
    return float(otherwise)
