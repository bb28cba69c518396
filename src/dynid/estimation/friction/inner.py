"""How well the numbers inside friction are known, and what that adds to the uncertainty of everything else.

At given inner numbers ``theta`` base and friction values ``x`` follow from one linear solve with columns ``A``; with ``T`` the change of
the prediction with ``theta`` and ``J`` its part outside the span of ``A``,

    cov(theta) = noise^2 (J^T J)^-1,      cov(x) = cov(x | theta) + (A^+ T) cov(theta) (A^+ T)^T.

An estimate at fixed inner numbers knows the first term of ``cov(x)`` alone, and is too sure of Coulomb friction and rotor inertia.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimation.friction.fit import Fitted, joint_weights, residual_norms
from dynid.estimation.friction.model import FrictionModel, Solver
from dynid.estimation.result import Estimate
from dynid.robot.effects.coupled import MOTOR

AT_BOUND = 1e-3
"""Distance from the end of its range at which an inner number counts as held there."""
WITHIN = 1.96


@dataclass(frozen=True)
class InnerNumber:
    """A number inside the friction of one joint, with its 95 % interval."""

    name: str
    joint: str
    value: float
    lower: float
    upper: float
    """Equal to the value where the number is held at the end of its range."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class InnerUncertainty:
    """The inner numbers of a fit, and what one standard deviation of each moves in the parameters."""

    numbers: tuple[InnerNumber, ...]
    moves: Mapping[str, Array]
    """Row of ``A^+ T cov(theta)^1/2`` of every parameter that the rows show."""

    def widen(self, estimate: Estimate) -> Estimate:
        """The estimate with their uncertainty in its covariance, coloured as its own is."""
        if not self.moves:
            return estimate
        names, base = estimate.standard.names, estimate.base
        n = len(next(iter(self.moves.values())))
        moved = np.array([self.moves.get(name, np.zeros(n)) for name in names])
        spread = base.K @ moved
        shown = np.diag(estimate.covariance) > 0.0
        spread[~shown] = 0.0
        classical = np.asarray(estimate.details.get("classical_sigma", estimate.sigma))
        colour = float(np.median(estimate.sigma[shown] / classical[shown])) if shown.any() else 1.0
        added = max(colour, 1.0) ** 2 * (spread @ spread.T)
        return replace(estimate, covariance=estimate.covariance + added)


def inner_uncertainty(fitted: Fitted) -> InnerUncertainty | None:
    """Of a finished fit; None where its friction has no inner numbers."""
    model, theta = fitted.model, fitted.theta
    if not len(theta):
        return None
    data, weights = model.data, fitted.weights
    left = residual_norms(fitted.solution, weights)
    if data.held:  # such a fit needs no weights, but what it leaves of one joint is not the noise of another
        weights = joint_weights(left, data.measured)
    coordinates = model.coordinates(data.basis, fitted.columns, data.torque)
    solver = Solver(model.system(data.basis, coordinates, weights))
    tangents = model.tangents(coordinates, fitted.solution.own, weights)
    low, high = model.bounds()
    inside = (theta > low + AT_BOUND) & (theta < high - AT_BOUND)
    free = inside & (np.linalg.norm(tangents, axis=0) > 0.0)
    sigma, root = np.where(inside, high - low, 0.0), np.zeros((len(theta), int(free.sum())))  # no row shows it: anywhere
    if free.any():
        J = solver.outside(tangents)[:, free]
        spent = solver.A.shape[1] + int(free.sum())
        noise = float(((weights * left) ** 2).sum()) / max(data.torque.size - spent, 1)
        information = J.T @ J / max(noise, 1e-300)
        # what the rows do not show is known to be within its range, and no better
        information[np.diag_indices(len(J.T))] += (2.0 / (high - low)[free]) ** 2
        root[free] = np.linalg.inv(np.linalg.cholesky(information)).T
        sigma[free] = np.linalg.norm(root[free], axis=1)
    change = -solver.solve(tangents) @ root
    moves: dict[str, Array] = {}
    if not data.held:
        lifted = data.base.lift @ change[: data.n_shared]
        moves |= dict(zip(data.rigid.parameters.names, lifted, strict=True))
    moves |= dict(zip(model.names, change[data.n_shared :], strict=True))
    return InnerUncertainty(tuple(_numbers(model, theta, WITHIN * sigma)), moves if free.any() else {})


def _numbers(model: FrictionModel, theta: Array, width: Array) -> Iterator[InnerNumber]:
    """Every number that a joint or motor has, by the name under which its effect lists it."""
    low, high = model.bounds()
    joints = model.robot.driven_joints
    for k, variable in enumerate(model.variables):
        name = variable.option.name
        listed = [model.effects[i].inner_numbers(joints) for i in variable.effects]
        for d, joint in enumerate(joints):
            shown = {one.name for own in listed for one in own[d] if one.name in (name, f"{name}{MOTOR}")}
            at = k * len(joints) + d
            limits = (theta[at], max(theta[at] - width[at], low[at]), min(theta[at] + width[at], high[at]))
            for own_name in shown:
                yield InnerNumber(own_name, joint.name, *(float(variable.from_search(np.array(x))) for x in limits))
