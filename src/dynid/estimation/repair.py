"""The consistent model nearest to one that is not.

1. Only the inconsistent links change, and the base parameters stay:   K phi' = K phi.
2. Every link may change a little, and the base parameters stay.
3. No consistent model moves alike: the nearest in torque on random states within the limits.

Among the models of a stage the one with the smallest relative change of the parameters is taken. Links that were merged into
bodies are repaired one by one; frames without mass and inertia stay empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, BoolArray, IntArray, freeze
from dynid.errors import InputError
from dynid.estimation.conic import MARGIN, ON_BOUNDARY, ConicFit, ConsistentSet, fit_in, nearest_in, onto_equalities
from dynid.estimation.feasibility import torque_metric
from dynid.estimation.layout import Layout
from dynid.inertia import change_of_frame, consistency, is_consistent
from dynid.parameters import Parameters, inertial_columns
from dynid.regression.base import reduce_to_base
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics
from dynid.robot.links import Link, links_of
from dynid.robot.model import Robot

PULL = 1e-6
"""Weight of the relative change of parameters beside that of torque, in units of the least torque change."""
SAME_BASE = 1e-9
"""Relative error up to which base parameters count as kept."""


@dataclass(frozen=True, eq=False)
class Repair:
    """A repaired robot and what it cost."""

    robot: Robot
    feasible_before: bool
    feasible_after: bool
    base_kept: bool
    """Whether the base parameters, and with them every motion under given torques, are the same as before."""
    torque_change: float
    """``||tau' - tau|| / ||tau||`` of the rigid bodies on random states within the limits."""
    changed: tuple[str, ...]
    """Links whose parameters changed."""
    inconsistent: tuple[str, ...]
    """Links that were not consistent."""


def repair(robot: Robot, margin: float = MARGIN, n_states: int = 500, seed: int = 0) -> Repair:
    """Make every link consistent, the robot's motion kept where possible, else its torque as near as possible."""
    links = links_of(robot)
    phi = np.array([link.phi for link in links])
    good = _consistent(phi)
    bad = np.flatnonzero(~good)
    if not len(bad):
        return Repair(robot, True, True, True, 0.0, (), ())
    rigid = robot.with_effects(())
    base = reduce_to_base(rigid)
    K = base.K @ _assembly(robot, links)
    solid = np.flatnonzero(~consistency(phi).empty)
    fixed, kept = None, True
    for moving in (bad, solid):
        fixed = _same_base(phi, moving, K, margin)
        if fixed is not None:
            break
    if fixed is None:
        kept = False
        fixed = _nearest_torque(phi, solid, torque_metric(rigid, base, seed=seed) @ K, margin)
    mended = _rebuilt(robot, links, fixed)
    q, v, a = random_states_within_limits(rigid, n_states, seed)
    before, after = inverse_dynamics(rigid, q, v, a), inverse_dynamics(mended.with_effects(()), q, v, a)
    size = max(float(np.linalg.norm(before)), 1e-300)
    return Repair(
        robot=mended,
        feasible_before=False,
        feasible_after=bool(_consistent(np.array([link.phi for link in links_of(mended)])).all()),
        base_kept=kept,
        torque_change=float(np.linalg.norm(after - before)) / size,
        changed=tuple(link.name for link, old, new in zip(links, phi, fixed, strict=True) if not np.array_equal(old, new)),
        inconsistent=tuple(links[i].name for i in bad),
    )


def _consistent(phi: Array) -> BoolArray:
    return np.atleast_1d(np.asarray(is_consistent(phi, "full", allow_empty=True)))


def _assembly(robot: Robot, links: Sequence[Link]) -> Array:
    """``(10 bodies, 10 links)``: the parameters of every moving body from those of its links."""
    T = np.zeros((10 * robot.n_joints, 10 * len(links)))
    merged = iter(robot.merged)
    for i, link in enumerate(links):
        X = np.eye(10)
        if link.merged:
            placement = next(merged).placement
            X = change_of_frame(placement[:3, :3], placement[:3, 3])
        if link.body >= 0:
            T[10 * link.body : 10 * link.body + 10, 10 * i : 10 * i + 10] = X
    return T


def _program(phi: Array, moving: IntArray, margin: float) -> tuple[ConsistentSet, Array]:
    """The set of consistent bodies for some links, scaled, and where they are now."""
    columns = tuple(column for i in moving for column in inertial_columns(int(i) + 1, f"link{i + 1}"))
    now = Parameters(columns, phi[moving].ravel())
    consistent = ConsistentSet.of(Layout.of(now.names), margin=margin, prior=now)
    return consistent, now.values / consistent.scale


def _columns(moving: IntArray) -> IntArray:
    return (10 * moving[:, None] + np.arange(10)).ravel()


def _same_base(phi: Array, moving: IntArray, K: Array, margin: float) -> Array | None:
    """All links with only ``moving`` changed, consistent and with the same ``K phi``; None if there is no such model."""
    consistent, start = _program(phi, moving, margin)
    E = K[:, _columns(moving)] * consistent.scale
    seen = np.abs(E).max(axis=1) > 1e-12 * np.abs(E).max(initial=1e-300)
    E = E[seen]
    target = E @ start
    fit = fit_in(consistent, np.zeros((0, consistent.n)), start, pull=1.0, equalities=(E, target) if len(E) else None)
    if not fit.usable:
        return None
    x = onto_equalities(E, target, fit.x) if len(E) else fit.x
    # inside by the margin, or nearly: what is left of it must still be a margin
    if not consistent.contains(x, max(0.5 * margin, ON_BOUNDARY)):
        return None
    if len(E) and np.abs(E @ x - target).max() > SAME_BASE * max(np.abs(target).max(), 1e-300):
        return None
    return _with_links(phi, moving, consistent.scale * x)


def _nearest_torque(phi: Array, moving: IntArray, G: Array, margin: float) -> Array:
    """All links consistent, the torque as near to the old one as it gets."""
    consistent, start = _program(phi, moving, margin)
    fit: ConicFit = nearest_in(consistent, G[:, _columns(moving)] * consistent.scale, start, pull=PULL)
    if not fit.usable:
        raise InputError(f"no consistent model was found: the solver ended with '{fit.solution.status}'")
    return _with_links(phi, moving, consistent.scale * fit.x)


def _with_links(phi: Array, moving: IntArray, values: Array) -> Array:
    new = np.array(phi)
    new[moving] = values.reshape(-1, 10)
    return new


def _rebuilt(robot: Robot, links: Sequence[Link], phi: Array) -> Robot:
    """The robot with these parameters of its links, merged ones included."""
    bodies = (_assembly(robot, links) @ phi.ravel()).reshape(-1, 10)
    # bodies whose links did not change keep their numbers to the last digit
    old = (_assembly(robot, links) @ np.array([link.phi for link in links]).ravel()).reshape(-1, 10)
    same = (bodies == old).all(axis=1)
    bodies[same] = robot.parameters.inertials[same]
    values = robot.parameters.values.copy()
    values[: bodies.size] = bodies.ravel()
    merged_phi = phi[[i for i, link in enumerate(links) if link.merged]]
    merged = tuple(replace(link, phi=freeze(new)) for link, new in zip(robot.merged, merged_phi, strict=True))
    return replace(robot, parameters=robot.parameters.with_values(values), merged=merged)
