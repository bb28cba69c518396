"""The consistent model nearest to one that is not.

1. Only the inconsistent links change, and the base parameters stay:   K phi' = K phi.
2. Every link may change a little, and the base parameters stay.
3. No consistent model moves alike: the nearest in torque on random states within the limits.

Among the models of a stage the one with the smallest relative change of the parameters is taken; in the third among those
whose torque is nearly as near as it gets (:data:`NEAR`), because the very nearest may have links of tons for no gain.
Links that were merged into bodies are repaired one by one; frames without mass and inertia stay empty. Further constraints hold for
whole bodies, as in an identification; where one is violated, every link may change from the start.

The nearest body to one without a positive mass would be one without mass, but with inertia: consistent, and absurd. Two
rules keep what motion does not decide (all of a link that stands on the ground, most of the first link) in proportion.

- What changes is counted from a body of positive mass: ``|m|`` with the centre and the inertia there as they were; where the
  mass is zero, or a rounding error of it, the mass that gives the link the median radius of gyration of the consistent ones. Of
  that body only the part that no motion shows is taken, the rest is the old one's: ``min ||phi* - phi_sensible||`` with
  ``K phi* = K phi``.
- The mass of a link that changes lies in a ball of radius ``R`` around its frame, so that ``tr(I) / 2 <= m R^2``. ``R`` is the
  robot's own size: its longest chain of joints or, where larger, the radius of gyration of a consistent link about its frame.
  It weighs no more than the whole robot did, with the masses of the first rule. Where no model that moves alike is so, this
  rule is given up before the motion is.

Links that carry the rotors: for formats whose joints have no rotor inertia.

Of a first joint the rotor acts like inertia of the link about its axis; of a slide like mass; of others a part of it can be carried by
the links, where torque is nearest to that of rotors ``J`` over given states:

    minimise || Y (phi' - phi) - J a ||      over consistent links,      Y_g phi' = Y_g phi

with every joint's rows relative to its own torque. The second line keeps gravity as it was, so that what held the robot still holds it. A
weak pull keeps what no state shows as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dynid.arrays import Array, BoolArray, IntArray, freeze
from dynid.dynamics.inverse_dynamics import (
    absent_columns,
    inverse_dynamics,
    random_states_within_limits,
)
from dynid.dynamics.joint_effects import is_rotor
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.estimation.consistency.conic_solver import ConicSolution
from dynid.estimation.consistency.consistent_set import (
    MARGIN,
    ON_BOUNDARY,
    ConsistentSet,
    onto_equalities,
    violated_constraints,
)
from dynid.estimation.consistency.correction import torque_metric
from dynid.estimation.consistency.solve import fit_in, max_margin_point
from dynid.estimation.constraints.base import ConeRows, Constraint, Layout, rows_of
from dynid.estimation.constraints.bodies import MassBounds
from dynid.estimation.constraints.shapes import DensityInEllipsoid
from dynid.io.robots.simulator_joint import motions_to_hold
from dynid.model.inertia import change_of_frame, consistency, is_consistent, mass_com_inertia, phi_from_mass_com_inertia
from dynid.model.links import Link, links_of
from dynid.model.parameters import Parameters, inertial_columns
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.signals.samples import Samples

PULLS = tuple(10.0**power for power in range(-6, 4))
"""Weights of the relative change of parameters beside that of torque, in units of the least torque change."""
NEAR = 1.05
"""How many times the least torque change is given for parameters that change less."""
FARTHEST = 1e3
"""A mass whose centre would be farther away than this many times the size of the robot is a rounding error of none."""
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
    notes: tuple[str, ...] = ()
    """Masses that were not positive, and what was taken for them."""
    violated: tuple[str, ...] = ()
    """Constraints that did not hold."""


def repair(
    robot: Robot,
    margin: float = MARGIN,
    n_states: int = 500,
    seed: int = 0,
    *,
    constraints: Sequence[Constraint] = (),
) -> Repair:
    """Make every link consistent, the robot's motion kept where possible, else its torque as near as possible.

    Args:
        robot: the robot.
        margin: smallest eigenvalue of every link, relative to its size.
        n_states: random states at which torque is compared.
        seed: of these states.
        constraints: hold for the bodies of the result; those of effects are refused, since effects do not change.

    Returns:
        the repaired robot, the links that changed, whether the base values were kept, and the relative change of torque.

    Examples:
        >>> import dynid
        >>> broken = dynid.demo_robot(effects="none").with_parameters({"Ixx3": -0.01})
        >>> dynid.check_model(dynid.repair(broken).robot).feasible
        True
    """
    links = links_of(robot)
    phi = np.array([link.phi for link in links])
    good = _consistent(phi)
    bad = np.flatnonzero(~good)
    violated = violated_constraints(robot.with_effects(()), constraints)
    if not len(bad) and not violated:
        return Repair(robot, True, True, True, 0.0, (), ())
    rigid = robot.with_effects(())
    base = reduce_to_base(rigid)
    K = base.K @ _assembly(robot, links)
    solid = np.flatnonzero(~consistency(phi).empty)
    radius = _radius(robot, phi[good & (phi[:, 0] > 0.0)])
    sensible = _sensible(phi, good, radius)
    known = _OfBodies.each(constraints, rigid, _assembly(robot, links), phi)
    fixed, kept = None, True
    first = solid if violated else bad
    for within, moving in ((radius, first), (radius, solid), (np.inf, first), (np.inf, solid)):
        fixed = _same_base(_Program.of(phi, sensible, moving, K, margin, within, known))
        if fixed is not None:
            break
    if fixed is None:
        kept = False
        metric = torque_metric(rigid, base, seed=seed) @ K
        fixed = _nearest_torque(_Program.of(phi, sensible, solid, K, margin, radius, known), metric)
    mended = _rebuilt(robot, links, fixed)
    q, v, a = random_states_within_limits(rigid, n_states, seed)
    before, after = inverse_dynamics(rigid, q, v, a), inverse_dynamics(mended.with_effects(()), q, v, a)
    size = max(float(np.linalg.norm(before)), 1e-300)
    return Repair(
        robot=mended,
        feasible_before=False,
        feasible_after=bool(_consistent(np.array([link.phi for link in links_of(mended)])).all())
        and not violated_constraints(mended.with_effects(()), constraints),
        base_kept=kept,
        torque_change=float(np.linalg.norm(after - before)) / size,
        changed=tuple(link.name for link, old, new in zip(links, phi, fixed, strict=True) if not np.array_equal(old, new)),
        inconsistent=tuple(links[i].name for i in bad),
        notes=tuple(
            f"link '{links[i].name}' had a mass of {phi[i, 0]:g} kg, has {fixed[i, 0]:.4g} kg now"
            for i in bad
            if phi[i, 0] <= 0.0
        ),
        violated=violated,
    )


@dataclass(frozen=True, eq=False)
class _OfBodies:
    """A constraint on the bodies of a robot as one on some of the links that they consist of."""

    kind: ClassVar[str] = "of_bodies"
    constraint: Constraint
    layout: Layout
    """Of the bodies."""
    assembly: Array
    phi: Array
    """All links as they are."""
    moving: IntArray | None = None

    @classmethod
    def each(cls, constraints: Sequence[Constraint], rigid: Robot, assembly: Array, phi: Array) -> tuple[_OfBodies, ...]:
        layout = Layout.of_parameters(rigid.parameters, rigid.links)
        return tuple(cls(one, layout, assembly, phi) for one in constraints)

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        """Over the ten parameters of each moving link; the others count as they are."""
        assert self.moving is not None
        free = _columns(self.moving)
        held = np.setdiff1d(np.arange(self.phi.size), free)
        found = []
        for part in self.constraint.rows(self.layout):
            whole = np.zeros((len(part.offset), len(self.layout)))
            np.add.at(whole, (part.row, part.column), part.value)
            over_links = whole[:, : len(self.assembly)] @ self.assembly
            offset = part.offset + over_links[:, held] @ self.phi.ravel()[held]
            found.append(rows_of(part.cone, part.label, np.arange(len(free)), over_links[:, free], offset, part.strict))
        return tuple(found)


def _consistent(phi: Array) -> BoolArray:
    return np.atleast_1d(np.asarray(is_consistent(phi, "full", allow_empty=True)))


def _assembly(robot: Robot, links: Sequence[Link]) -> Array:
    """``(10 bodies, 10 links)``: the parameters of every moving body from those of its links."""
    T = np.zeros((10 * robot.n_bodies, 10 * len(links)))
    merged = iter(robot.merged)
    for i, link in enumerate(links):
        X = np.eye(10)
        if link.merged:
            placement = next(merged).placement
            X = change_of_frame(placement[:3, :3], placement[:3, 3])
        if link.body >= 0:
            T[10 * link.body : 10 * link.body + 10, 10 * i : 10 * i + 10] = X
    return T


def _radius(robot: Robot, consistent: Array) -> float:
    """The robot's size: its longest chain of joints, or the largest radius of gyration of a link about its frame, metres."""
    reach: list[float] = []
    for joint in robot.joints:
        travel = max(abs(joint.q_min), abs(joint.q_max)) if joint.kind == "prismatic" else 0.0
        above = reach[joint.parent] if joint.parent >= 0 else 0.0
        length = float(np.linalg.norm(joint.placement[:3, 3]))
        reach.append(above + length + (travel if np.isfinite(travel) else 0.0))
    for link in robot.merged:
        above = reach[link.body] if link.body >= 0 else 0.0
        reach.append(above + float(np.linalg.norm(link.placement[:3, 3])))
    gyration = np.sqrt(consistent[:, [4, 6, 9]].sum(axis=1) / (2.0 * consistent[:, 0]))
    return max([*reach, *gyration.tolist()], default=0.0) or 1.0


def _sensible(phi: Array, good: BoolArray, radius: float) -> Array:
    """The links with a positive mass each, see the head of this module."""
    new = np.array(phi)
    solid = phi[good & (phi[:, 0] > 0.0)]
    second = consistency(solid).second_moments.sum(axis=1) / solid[:, 0] if len(solid) else np.zeros(0)
    usual = float(np.sqrt(np.median(second))) if len(second) else 0.0
    usual = usual if usual > 0.0 else 0.25 * radius
    moments = np.linalg.norm(phi[:, 1:4], axis=1)
    none = np.abs(phi[:, 0]) * FARTHEST * radius <= moments
    for i in np.flatnonzero(~good & ((phi[:, 0] <= 0.0) | none)):
        if none[i]:
            moment = float(moments[i])
            new[i, 0] = max(0.5 * float(np.abs(phi[i, [4, 6, 9]]).sum()) / usual**2, moment / usual)
            continue
        mass, com, inertia = mass_com_inertia(phi[i])
        far = float(np.linalg.norm(com))
        nearer = com * min(1.0, 0.5 * radius / far) if far > 0.0 else com
        new[i] = phi_from_mass_com_inertia(abs(float(mass)), nearer, inertia)
    return new


@dataclass(frozen=True, eq=False)
class _Program:
    """The consistent bodies that some links may become, scaled, and where the search begins."""

    phi: Array
    """All links as they are."""
    moving: IntArray
    consistent: ConsistentSet
    E: Array
    """``K`` of the moving links, scaled, without rows that do not know them."""
    target: Array
    """``E x`` of the links as they are."""
    start: Array
    """Moves as the links do, and is otherwise as near to sensible ones as that allows."""

    @classmethod
    def of(
        cls,
        phi: Array,
        sensible: Array,
        moving: IntArray,
        K: Array,
        margin: float,
        radius: float,
        known: Sequence[_OfBodies] = (),
    ) -> _Program:
        columns = tuple(column for i in moving for column in inertial_columns(int(i) + 1, f"link{i + 1}"))
        wanted = Parameters(columns, sensible[moving].ravel())
        sphere = (radius, radius, radius)
        rows: list[Constraint] = [replace(one, moving=moving) for one in known]
        if np.isfinite(radius):
            total = float(sensible[:, 0].sum())
            for number in (moving + 1).tolist():
                rows += [DensityInEllipsoid(number, (0.0, 0.0, 0.0), sphere), MassBounds(number, 0.0, total)]
        consistent = ConsistentSet.of(Layout.of(wanted.names), margin=margin, prior=wanted, constraints=rows)
        E = K[:, _columns(moving)] * consistent.scale
        E = E[np.abs(E).max(axis=1) > 1e-12 * np.abs(E).max(initial=1e-300)]
        now = phi[moving].ravel() / consistent.scale
        start = wanted.values / consistent.scale
        if len(E) and not np.array_equal(now, start):
            start = onto_equalities(E, E @ now, start)
        return cls(phi, moving, consistent, E, E @ now, start)

    def links(self, x: Array) -> Array:
        """All links, the moving ones at ``x``."""
        new = np.array(self.phi)
        new[self.moving] = (self.consistent.scale * x).reshape(-1, 10)
        return new


def _columns(moving: IntArray) -> IntArray:
    return (10 * moving[:, None] + np.arange(10)).ravel()


def _same_base(program: _Program) -> Array | None:
    """All links with only some changed, consistent and with the same ``K phi``; None if there is no such model."""
    consistent, E, target = program.consistent, program.E, program.target
    equalities = (E, target) if len(E) else None
    fit = fit_in(consistent, np.zeros((0, consistent.n)), program.start, pull=1.0, equalities=equalities)
    if not fit.usable:
        return None
    x = onto_equalities(E, target, fit.x) if len(E) else fit.x
    # inside by the margin, or nearly: what is left of it must still be a margin
    if not consistent.contains(x, max(0.5 * consistent.margin, ON_BOUNDARY)):
        return None
    if len(E) and np.abs(E @ x - target).max() > SAME_BASE * max(np.abs(target).max(), 1e-300):
        return None
    return program.links(x)


def _nearest_torque(program: _Program, G: Array) -> Array:
    """All links consistent, the torque nearly as near to the old one as it gets, the links as near as that allows."""
    consistent, start = program.consistent, program.start
    metric = G[:, _columns(program.moving)] * consistent.scale
    best = _nearest(consistent, metric, start, PULLS[0])
    if not best.usable:
        against = (
            consistent.active_constraints(max_margin_point(consistent, reference=start).dual)
            if consistent.constrained
            else ()
        )
        reason = f"these cannot hold together: {', '.join(against[:4])}" if against else f"it ended '{best.status}'"
        raise InputError(f"no consistent model was found: {reason}")
    least = float(np.linalg.norm(metric @ (best.x - start)))
    if least > SAME_BASE * float(np.linalg.norm(metric @ start)):
        # the torque change grows with the pull, so the strongest allowed one is found by halving
        first, last = 1, len(PULLS)
        while first < last:
            middle = (first + last) // 2
            fit = fit_in(consistent, metric / least, start, pull=PULLS[middle], tolerance=1e-9)
            if fit.usable and np.linalg.norm(metric @ (fit.x - start)) <= NEAR * least:
                best, first = fit, middle + 1
            else:
                last = middle
    return program.links(best.x)


def _nearest(consistent: ConsistentSet, G: Array, centre: Array, pull: float) -> ConicSolution:
    """Nearest point in the metric ``||G (x - centre)||``; asked again where the first guess of its size was far off."""
    size = max(float(np.linalg.norm(G @ centre)), 1e-12)
    scale = 1e-3 * size
    best, distance = fit_in(consistent, G / scale, centre, pull=pull, tolerance=1e-9), np.inf
    fit = best
    for _ in range(8):
        excess = G / scale @ (fit.x - centre)
        found = float(np.sqrt(excess @ excess)) if fit.usable else np.inf
        solved = fit.verdict == "solved"
        if (solved, -found * scale) > (best.verdict == "solved", -distance):
            best, distance = fit, found * scale
        if not np.isfinite(found) or 0.1 < found < 10.0 or distance < 1e-9 * size:
            break
        # between the guess and what it led to: a poor answer must not throw the next guess far off
        scale *= float(np.clip(found, 1e-2, 1e2))
        fit = fit_in(consistent, G / scale, centre, pull=pull, tolerance=1e-9)
    return best


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


STATES = 600
"""States of the logs that are looked at, spread evenly."""
PULL = (1e-2, 1e-4)
"""Torque, relative to that of its joint, that a change of a link by its own size must gain: of mass and centre, of inertia."""
SEEN = 1e-12
"""Share of the squares above which a combination of parameters has a weight."""


def rotors_in_links(robot: Robot, samples: Sequence[Samples]) -> tuple[Robot, float, float] | None:
    """The robot with its rotors in its links, as far as they can carry them.

    Args:
        robot: with the identified parameters.
        samples: whose states count; random states within the limits where there are none.

    Returns:
        the robot, whose rotor inertias are zero; the share of torque that lacked without rotors, and that still does, root mean squares
        over joints. None for a robot without rotors, with links that are not consistent, or where nothing was gained.
    """
    rotors = robot.with_effects([effect for effect in robot.effects if is_rotor(effect)])
    n, parameters = robot.parameters.n_inertial, rotors.parameters
    each = np.arange(n).reshape(-1, 10)
    # frames without a body stay such, and so do bodies that the description states in part
    solid = parameters.inertials.any(axis=1) & ~np.isin(each, absent_columns(robot)).any(axis=1)
    if not (solid.any() and parameters.values[n:].any() and np.all(is_consistent(parameters.inertials[solid]))):
        return None
    at = each[solid].ravel()
    links = Parameters(tuple(parameters.columns[k] for k in at), parameters.values[at])
    motions, _ = motions_to_hold(robot, samples)
    step = max(sum(len(one.position) for one in motions) // STATES, 1)
    q, v, a = (
        np.concatenate([part[::step] for part in parts])
        for parts in zip(*((one.position, one.velocity, one.acceleration) for one in motions), strict=True)
    )
    load = [one.load[::step] for one in motions if one.load is not None]
    Y, still = torque_regressor(rotors, q, v, a), np.zeros_like(v)
    whole = inverse_dynamics(robot, q, v, a, np.concatenate(load) if load else None)
    size = np.maximum(np.sqrt((whole**2).mean(axis=0)), 1e-300) * np.sqrt(whole.size)
    consistent = ConsistentSet.of(Layout.of(links.names), prior=links)
    rows = (Y[:, :, at] / size[:, None]).reshape(-1, len(at)) * consistent.scale
    target = (Y[:, :, n:] @ parameters.values[n:] / size).ravel()
    weights = torque_regressor(rotors, q, still, still)[:, :, at].reshape(-1, len(at)) * consistent.scale
    squares, directions = np.linalg.eigh(weights.T @ weights)
    E = directions[:, squares > SEEN * squares[-1]].T
    P = rows.T @ rows + np.diag(np.tile(np.repeat(np.square(PULL), (4, 6)), solid.sum()))
    x = links.values / consistent.scale
    nearest = x + np.linalg.solve(P, rows.T @ target)  # were every link allowed
    lacked = float(np.linalg.norm(target))
    found = fit_in(consistent, np.linalg.cholesky(P).T / lacked, nearest, equalities=(E, E @ x))
    lacks = float(np.linalg.norm(rows @ (found.x - x) - target)) if found.usable else lacked
    if lacks >= lacked:
        return None
    carrying = dict(zip(links.names, (consistent.scale * found.x).tolist(), strict=True))
    return robot.with_parameters(carrying | dict.fromkeys(parameters.names[n:], 0.0)), lacked, lacks
