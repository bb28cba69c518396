"""Links that carry the rotors: for formats whose joints have no rotor inertia.

Of a first joint the rotor acts like inertia of the link about its axis; of a slide like mass; of others a part of it can be carried by
the links, where torque is nearest to that of rotors ``J`` over given states:

    minimise || Y (phi' - phi) - J a ||      over consistent links,      Y_g phi' = Y_g phi

with every joint's rows relative to its own torque. The second line keeps gravity as it was, so that what held the robot still holds it. A
weak pull keeps what no state shows as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.dynamics.inverse_dynamics import (
    absent_columns,
    inverse_dynamics,
)
from dynid.dynamics.joint_effects import is_rotor
from dynid.dynamics.regressors import torque_regressor
from dynid.estimation.consistency.consistent_set import ConsistentSet
from dynid.estimation.consistency.solve import fit_in
from dynid.estimation.constraints.base import Layout
from dynid.io.robots.simulator_joint import motions_to_hold
from dynid.model.inertia import is_consistent
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.signals.samples import Samples

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
