"""Base parameters: the combinations ``beta = K phi`` that motion can show, found from numbers.

Columns of the torque regressor that are always zero or always combinations of others cannot be told apart by any motion
(Gautier 1991; Sousa and Cortesao 2014, 30-39). With the kept columns ``W_b``, ``W = W_b K`` and ``tau = W_b beta``.

Normal equations of rows, channel by channel: quick to add and to solve, with half of the digits.

    G = [W y]^T [W y],      beta = (X^T G_WW X)^-1 X^T G_Wy

Enough to compare filters on long chains; estimates are made from triangles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, freeze, matrix
from dynid.dynamics.inverse_dynamics import random_states
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.structure import structure_of
from dynid.errors import InputError, UnknownNameError
from dynid.files import check_memory
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.channels import Channel, independent_columns
from dynid.regression.row_source import RowSource

NEGLIGIBLE = 3e-4
"""Share of its own torque by which a parameter must show apart from others. Robots whose description is exact keep a
thousandth and more of every base parameter; a right angle written as 1.5708 leaves some millionths."""
ROUND_OFF = 1e-9
LONG_CHAIN = 300
"""Base parameters from which what only chooses or advises is done on less: by normal equations, with bodies and friction in turn."""

COPIES = 16
"""Matrices of parameters by parameters that finding base parameters takes at its peak, measured on chains of 100 and 300 links."""


@dataclass(frozen=True)
class BaseReduction:
    """Base parameters ``beta = K phi`` and their regressor ``W_b = W lift``, with ``K lift = 1``.

    Args:
        parameter_names: names of the parameters ``phi``.
        K: ``(base, parameters)``.
        lift: ``(parameters, base)``.

    Examples:
        >>> import dynid
        >>> base = dynid.BaseReduction.from_matrix([[1.0, 0.5]], ["Ixx1", "m2"])
        >>> base.expressions()
        ('Ixx1 + 0.5 m2',)
    """

    parameter_names: tuple[str, ...]
    K: Array
    lift: Array
    independent: IntArray | None
    """Columns kept as they are, one per base parameter; None for a grouping that is no choice of columns."""
    clarity: tuple[float, float] = (1.0, 0.0)
    """Smallest independent part of a kept column and largest of a dropped one."""
    gram: Array | None = field(default=None, compare=False, repr=False)
    """``W_b^T W_b`` per row at the random states the reduction was made from: what a change of ``beta`` does to torque."""

    @property
    def note(self) -> str:
        """Note on dropped columns that were not exactly dependent; empty where the decision is clear."""
        if self.clarity[1] <= ROUND_OFF:
            return ""
        share = 10.0 ** np.ceil(np.log10(self.clarity[1]))
        return (
            f"some parameters differ from combinations of others by less than {share:.0e} of their torque, as where the "
            "description rounds right angles to 1.5708; they are taken as dependent, no motion could show them"
        )

    def __post_init__(self) -> None:
        K = matrix("K", self.K, (None, len(self.parameter_names)))
        object.__setattr__(self, "K", K)
        object.__setattr__(self, "lift", matrix("lift", self.lift, (len(self.parameter_names), K.shape[0])))

    @classmethod
    def from_matrix(cls, K: ArrayLike, names: Sequence[str]) -> BaseReduction:
        """A published grouping: ``K`` with one row per base parameter and one column per named parameter."""
        matrix_K = matrix("K", K, (None, len(names)))
        twice = sorted({name for name in names if list(names).count(name) > 1})
        if twice:
            raise InputError(f"parameter name '{twice[0]}' appears {list(names).count(twice[0])} times")
        rank = int(np.linalg.matrix_rank(matrix_K))
        if rank < len(matrix_K):
            raise InputError(f"K has {len(matrix_K)} rows but rank {rank}: its base parameters are not independent")
        independent = _unit_columns(matrix_K)
        lift = np.asarray(np.linalg.pinv(matrix_K)) if independent is None else np.eye(len(names))[:, independent]
        return cls(tuple(names), matrix_K, lift, independent)

    @cached_property
    def _picked(self) -> IntArray | None:
        """Columns that the base regressor is a choice of, None where it is no choice."""
        if self.independent is None:
            return None
        picks = np.zeros_like(self.lift)
        picks[self.independent, np.arange(self.n_base)] = 1.0
        return self.independent if np.array_equal(self.lift, picks) else None

    def regressor(self, W: Array) -> Array:
        """``W lift``, the columns of the base parameters; of a long chain choosing them costs far less than the product."""
        return np.asarray(W @ self.lift if self._picked is None else W[..., self._picked])

    @property
    def n_base(self) -> int:
        return len(self.K)

    @property
    def n_parameters(self) -> int:
        return len(self.parameter_names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name per base parameter: that of its leading parameter, or a number where there is none."""
        if self.independent is None:
            return tuple(f"beta{i + 1}" for i in range(self.n_base))
        return tuple(self.parameter_names[i] for i in self.independent)

    @cached_property
    def dependent(self) -> IntArray:
        """Columns that are no base parameter of their own."""
        if self.independent is None:
            raise InputError("this grouping is no choice of columns, so it has no dependent ones")
        return freeze(np.setdiff1d(np.arange(self.n_parameters), self.independent), dtype=np.int64)

    def index(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise UnknownNameError("base parameter", name, self.names) from None

    def base_values(self, parameters: Parameters | ArrayLike) -> Array:
        """``beta = K phi``."""
        values = parameters.values if isinstance(parameters, Parameters) else np.asarray(parameters, dtype=np.float64)
        return np.asarray(values @ self.K.T)

    def expression(self, row: int, digits: int = 6) -> str:
        """One base parameter as text; coefficients are rounded here and nowhere else."""
        coefficients = self.K[row]
        order = np.flatnonzero(np.abs(coefficients) > 0.5 * 10.0 ** (-digits - 2))
        lead = None if self.independent is None else int(self.independent[row])
        if lead is not None:
            order = np.concatenate([[lead], order[order != lead]])
        text = ""
        for column in order:
            coefficient = float(coefficients[column])
            name = self.parameter_names[column]
            first = not text
            sign = "-" if coefficient < 0.0 else ("" if first else "+")
            number = f"{abs(coefficient):.{digits}g}"
            factor = "" if number == "1" else f"{number} "
            text += f"{sign}{factor}{name}" if first else f" {sign} {factor}{name}"
        return text

    def expressions(self, digits: int = 6) -> tuple[str, ...]:
        return tuple(self.expression(row, digits) for row in range(self.n_base))

    def as_list(self) -> list[dict[str, Any]]:
        return [{"name": name, "expression": text} for name, text in zip(self.names, self.expressions(), strict=True)]


def reduce_to_base(
    robot: Robot, *, order: Sequence[str] | None = None, tolerance: float = NEGLIGIBLE, seed: int = 0
) -> BaseReduction:
    """Base parameters of a robot from its torque regressor at random states.

    The default grouping tries columns from base to tip, inside a link ``Ixx Ixy Ixz Iyy Iyz Izz mx my mz m Ia fv fc fo``, as in
    the published tables. The default reduction is computed once for all robots of one structure.

    Args:
        robot: the robot, with its effects.
        order: names of parameters to prefer, first to last; the rest follow in the default grouping.
        tolerance: a parameter that differs from a combination of others by less than this fraction of its own torque is taken
            as dependent: descriptions write 1.5708 for a right angle, and no motion can determine what rests on such rounding.
        seed: of the random states.

    Returns:
        base parameters ``beta = K phi``: the matrix ``K`` ``(base, parameters)``, their names and how to print them.

    Examples:
        >>> import dynid
        >>> base = dynid.reduce_to_base(dynid.demo_robot(effects="none"))
        >>> base.n_parameters, base.n_base
        (70, 43)
    """
    if order is None and tolerance == NEGLIGIBLE and seed == 0:
        return structure_of(robot).once(find_base)
    return find_base(robot, order=order, tolerance=tolerance, seed=seed)


def check_base_memory(robot: Robot) -> None:
    """Refuse a robot of so many joints that its base parameters cannot be found in the memory there is."""
    need = COPIES * 8.0 * len(robot.parameters) ** 2
    check_memory(f"finding the base parameters of robot '{robot.name}' with {robot.n_joints} joints", need)


def find_base(
    robot: Robot, *, order: Sequence[str] | None = None, tolerance: float = NEGLIGIBLE, seed: int = 0
) -> BaseReduction:
    """The same, looked for anew."""
    check_base_memory(robot)
    default = robot.parameters.grouping()
    preferred = [robot.parameters.index(name) for name in (order or ())]
    chosen = freeze([*preferred, *(i for i in default if i not in set(preferred))], dtype=np.int64)
    n_states = 3 * len(robot.parameters) // robot.n_dof + 20
    q, v, a, load = random_states(robot, n_states, seed)
    W = torque_regressor(robot, q, v, a, load).reshape(-1, len(robot.parameters))
    found = independent_columns(W, chosen, tolerance, _usual_lengths(robot, W))
    lift = np.eye(len(robot.parameters))[:, found.kept]
    kept = W[:, found.kept]
    clarity = (found.smallest_kept, found.largest_dropped)
    return BaseReduction(robot.parameters.names, found.K, lift, found.kept, clarity, freeze(kept.T @ kept / len(kept)))


def _usual_lengths(robot: Robot, W: Array) -> Array:
    """For inertial parameters the length of the longest column of the same unit; effects are of any size, so zero."""
    n = robot.parameters.n_inertial
    lengths = np.linalg.norm(W[:, :n], axis=0).reshape(-1, 10)
    longest = [lengths[:, part].max(initial=0.0) for part in (slice(0, 1), slice(1, 4), slice(4, 10))]
    return np.concatenate([np.tile(np.repeat(longest, (1, 3, 6)), n // 10), np.zeros(len(robot.parameters) - n)])


def _unit_columns(K: Array) -> IntArray | None:
    """For every row a column that is one there and zero elsewhere, if each row has one."""
    unit = (np.count_nonzero(K, axis=0) == 1) & np.isclose(K.sum(axis=0), 1.0, rtol=0.0, atol=1e-12)
    chosen: list[int] = []
    for row in K:
        candidates = np.flatnonzero(unit & (row != 0.0))
        if not len(candidates):
            return None
        chosen.append(int(candidates[0]))
    return freeze(chosen, dtype=np.int64)


_AT_ONCE = 128
"""Rows that are added at once: products as large as these take longer to add than to make from few rows."""
_RIDGE = 1e-12  # of unit columns, for directions that the rows do not show


@dataclass(frozen=True, eq=False)
class Squares:
    """``[W y]^T [W y]`` of every channel over its own columns. Half of the digits of the rows are lost in it."""

    channels: tuple[Channel, ...]
    grams: tuple[Array, ...]

    @classmethod
    def of(cls, source: RowSource) -> Squares:
        """In one pass over the rows."""
        grams = [np.zeros((channel.width + 1, channel.width + 1)) for channel in source.channels]
        waiting: list[list[Array]] = [[] for _ in grams]

        def add() -> None:
            for gram, parts in zip(grams, waiting, strict=True):
                rows = np.concatenate(parts) if parts else np.zeros((0, len(gram)))
                gram += rows.T @ rows
                parts.clear()

        held = 0
        for chunk in source.passes():
            for parts, block in zip(waiting, chunk.blocks, strict=True):
                parts.append(block.copy())  # the source may fill its chunk again
            held += len(chunk)
            if held >= _AT_ONCE:
                add()
                held = 0
        add()
        return cls(source.channels, tuple(grams))

    def solve(self, base: BaseReduction) -> Array:
        """Base values that fit best, all channels counted alike; zero along what the rows do not show."""
        H, g = np.zeros((base.n_base, base.n_base)), np.zeros(base.n_base)
        for channel, gram in zip(self.channels, self.grams, strict=True):
            X = base.regressor(channel.expansion)
            own = np.flatnonzero(X.any(axis=0))  # a joint sees the links that it carries
            X = X[:, own]
            H[np.ix_(own, own)] += X.T @ (gram[:-1, :-1] @ X)
            g[own] += X.T @ gram[:-1, -1]
        size = np.sqrt(np.maximum(np.diag(H), 1e-300))
        return np.asarray(np.linalg.solve(H / np.outer(size, size) + _RIDGE * np.eye(len(g)), g / size) / size)

    def error(self, base: BaseReduction, beta: Array) -> float:
        """Relative error that base values leave of the rows."""
        phi, left, size = base.lift @ beta, 0.0, 0.0
        for channel, gram in zip(self.channels, self.grams, strict=True):
            c = np.append(channel.values(phi), -1.0)
            left, size = left + max(float(c @ gram @ c), 0.0), size + float(gram[-1, -1])
        found = float(np.sqrt(left / size)) if size > 0.0 else float("inf")
        return found if np.isfinite(found) else float("inf")
