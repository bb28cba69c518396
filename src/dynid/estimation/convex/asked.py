"""Base values that are asked about: checked, with the set they are held against and where a search for bodies begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, check_shape, freeze
from dynid.errors import InputError
from dynid.estimation.constraints.constraints import Constraint, PositiveEffects
from dynid.estimation.convex.consistent_set import ON_BOUNDARY, ConsistentSet, onto_equalities
from dynid.estimation.convex.layout import Layout
from dynid.estimation.convex.question import Question
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.robot.model import Robot


@dataclass(frozen=True, eq=False)
class Asked:
    """Base values, their reduction, and what is known of the robot."""

    base: BaseReduction
    values: Array
    prior: Parameters | None
    robot: Robot | None
    condition: str
    constraints: tuple[Constraint, ...]
    margin: float
    absolute: bool

    @classmethod
    def of(
        cls,
        base: BaseReduction,
        beta: ArrayLike,
        prior: Parameters | None,
        robot: Robot | None,
        condition: str,
        constraints: Iterable[Constraint],
        margin: float,
        absolute: bool,
        effects_positive: bool,
    ) -> Asked:
        values = np.asarray(beta, dtype=np.float64)
        check_shape("base values", values, (base.n_base,))
        check_finite("base values", values)
        known = (*((PositiveEffects(),) if effects_positive else ()), *constraints)
        return cls(base, values, _prior(base, prior, robot), robot, condition, known, margin, absolute)

    def consistent(self, share: float = 1.0) -> ConsistentSet:
        """The set, with a share of the margin."""
        names = self.base.parameter_names
        links = self.robot.links if self.robot else ()
        layout = Layout.of(names) if self.prior is None else Layout.of_parameters(self.prior, links)
        return ConsistentSet.of(
            layout,
            condition=self.condition,
            margin=share * self.margin,
            absolute=self.absolute,
            constraints=self.constraints,
            prior=self.prior,
        )

    def question(self, consistent: ConsistentSet, R: Array) -> Question:
        """Which feasible values are nearest in the metric ``||R d||``."""
        K = self.base.K
        start = np.zeros(consistent.n)
        if self.prior is not None:
            start = consistent.layout.extended(self.prior.values) / consistent.scale
        return Question(consistent, K, R, self.values, start)

    def named(self, consistent: ConsistentSet, x: Array) -> tuple[Parameters | Array, Array]:
        """All named parameters, and one row of ten per link with those that the grouping leaves out."""
        phi = consistent.scale * x
        named = phi[: consistent.layout.n_named]
        standard = freeze(named) if self.prior is None else self.prior.with_values(named)
        return standard, freeze(consistent.layout.inertials(phi))


def reference_point(question: Question) -> Array:
    """The point nearest to the start with these base values."""
    return onto_equalities(question.E, question.beta, question.start)


def with_exact_base(question: Question, required: ConsistentSet, x: Array) -> Array | None:
    """The point nearest to ``x`` with the base values asked for, if it is inside ``required``."""
    rows = required.linear
    E, e = question.E, question.beta
    if len(rows.a):
        E, e = np.vstack([E, rows.A]), np.concatenate([e, rows.a])
    exact = onto_equalities(E, e, x)
    slacks = required.slacks(exact)
    equal = np.array([kind == "zero" for kind, _ in required.cones])
    slacks[equal & (slacks >= -ON_BOUNDARY)] = 0.0
    return exact if float(slacks.min()) >= 0.0 else None


def _prior(base: BaseReduction, prior: Parameters | None, robot: Robot | None) -> Parameters | None:
    chosen = prior if prior is not None or robot is None else robot.parameters
    if chosen is not None and chosen.names != base.parameter_names:
        raise InputError(
            f"the prior has {len(chosen)} parameters, the base reduction {base.n_parameters}, or other names; "
            "make both from the same robot and effects"
        )
    return chosen
