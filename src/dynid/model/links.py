"""The links of a description one by one: bodies that were merged of several are taken apart into links that can all exist.

Links that hang on a body keep the inertials of their description and the moving link gets the rest,
``P = P_body - sum_k P_k``. Where that rest is no physical body, the first of these that leaves one is taken:

1. The described inertials times ``identified mass / described mass`` of the whole body.
2. The described mass distribution of all its links, shifted and stretched alike until the whole is the identified body,

       x -> A (x - c_described) + c_identified,     A S_described A = S_identified,

   with ``S`` the central second moments over the mass and ``A`` symmetric and positive (the least motion of mass between the
   two). Every link keeps its share of the mass and is a physical body. An identified body that is nearly flat has room for
   nothing but flat links in its own plane, so no other shapes could be kept.
3. Where the description has no such distribution: the described inertials times half the largest ``s`` for which
   ``P_body - s sum_k P_k >= 0``.

Links that are no physical bodies themselves are put into the moving link altogether. An identified body that is none itself is
taken apart by subtraction, or by 1. where the moving link would have no mass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import listed
from dynid.model.inertia import change_of_frame, is_consistent, phi_from_pseudo_inertia, pseudo_inertia
from dynid.model.robot import Robot


@dataclass(frozen=True, eq=False)
class Link:
    """A link as its description has it, or as it is to be written: its own ten parameters, in its own frame."""

    name: str
    phi: Array
    body: int
    """The moving body it belongs to; -1 for the ground."""
    merged: bool
    size: Array
    """Of the numbers that cancelled in the parameters, which sets what in them is rounding."""

    def is_like(self, present: Array) -> bool:
        """Equal up to what merging and taking apart rounds off: mass, first moments and inertias each by their size."""
        groups = (slice(0, 1), slice(1, 4), slice(4, 10))
        difference = np.abs(self.phi - present)
        return all(difference[group].max() <= ROUNDING * self.size[group].max() for group in groups)


def links_of(robot: Robot) -> tuple[Link, ...]:
    """Every link: the moving ones without what was merged into them, then the merged ones."""
    own = robot.parameters.inertials.copy()
    total = np.abs(own)
    for link in robot.merged:
        if link.body >= 0:
            part = change_of_frame(link.placement[:3, :3], link.placement[:3, 3]) @ link.phi
            own[link.body] -= part
            total[link.body] += np.abs(part)
    own[np.abs(own) <= 1e-12 * total] = 0.0  # what is left of a link that had nothing of its own is round-off
    moving = [Link(name, own[body], body, False, total[body]) for body, name in enumerate(robot.links)]
    return (*moving, *(Link(link.name, link.phi, link.body, True, np.abs(link.phi)) for link in robot.merged))


ROUNDING = 1e-14
"""Relative difference up to which an inertial counts as unchanged."""


def links_taken_apart(
    robot: Robot, notes: list[str], described: Mapping[str, Array] | None = None, *, physical: bool = False
) -> list[Link]:
    """Moving links first, then the merged ones, in the frames of the robot.

    ``described`` has the moving links' own ten parameters by name, as the robot's description states them. With ``physical``
    no link is left that is no physical body, even one that its description states so: for programs that take no such.
    """
    apart: list[Link] = []
    shares: dict[str, Array] = {}
    for body, (name, whole) in enumerate(zip(robot.links, robot.parameters.inertials, strict=True)):
        into_body = {  # what brings the ten parameters of every link with mass that hangs on the body into its frame
            link.name: change_of_frame(link.placement[:3, :3], link.placement[:3, 3])
            for link in robot.merged
            if link.body == body and link.phi.any()
        }
        parts = {link.name: into_body[link.name] @ link.phi for link in robot.merged if link.name in into_body}
        size = np.abs(whole) + sum((np.abs(part) for part in parts.values()), np.zeros(10))
        reason = _reason_to_share(whole, parts, name, physical)
        shared = parts
        if reason:
            shared, told = _shared_out(whole, parts, None if described is None else described.get(name), name)
            notes.append(f"link {reason} no physical body: {told}")
        # those that keep their inertials keep them to the last digit
        shares |= {
            part: np.asarray(np.linalg.solve(into_body[part], phi), dtype=np.float64)
            for part, phi in shared.items()
            if not np.array_equal(phi, parts[part])
        }
        apart.append(Link(name, _without(whole, shared), body, False, size))
    for link in robot.merged if physical else ():
        if link.body < 0 and not is_consistent(link.phi, allow_empty=True):
            shares[link.name] = np.zeros(10)
            notes.append(f"link '{link.name}' on the ground is no physical body and is written without mass")
    apart.extend(
        Link(link.name, shares.get(link.name, link.phi), link.body, True, np.abs(link.phi)) for link in robot.merged
    )
    return apart


def _reason_to_share(whole: Array, parts: Mapping[str, Array], name: str, physical: bool) -> str:
    """Which link would be no physical body if the links on a body kept their inertials; empty where they can."""
    own = _without(whole, parts)
    bad = [part for part, phi in parts.items() if not is_consistent(phi)]
    possible, rest_possible = is_consistent(whole, allow_empty=True), is_consistent(own, allow_empty=True)
    # of a body that is none itself, links still need masses that can be added up
    if not parts or not (not rest_possible or (physical and bad) if possible else whole[0] > 0.0 >= own[0]):
        return ""
    return f"'{name}' without {listed(list(parts))} would be" if not rest_possible else f"{listed(bad)} on '{name}' is"


def with_links_apart(robot: Robot, described: Robot) -> tuple[Robot, tuple[str, ...]]:
    """The robot with its merged links as they are taken apart, and how; ``described`` has the inertials of the description.

    Every body that could exist then is a sum of links that could exist, so whoever looks at links and whoever looks at bodies
    find the same.
    """
    if not robot.merged:
        return robot, ()
    notes: list[str] = []
    apart = {link.name: link.phi for link in links_taken_apart(robot, notes, own_inertials(described), physical=True)}
    merged = tuple(
        link if np.array_equal(apart[link.name], link.phi) else replace(link, phi=apart[link.name]) for link in robot.merged
    )
    return replace(robot, merged=merged), tuple(notes)


def own_inertials(described: Robot | None) -> dict[str, Array] | None:
    """Every link's own ten parameters by its name."""
    return None if described is None else {link.name: link.phi for link in links_of(described)}


def _without(whole: Array, parts: Mapping[str, Array]) -> Array:
    """What is left of the body; what is left of numbers that cancel is no link."""
    part = sum(parts.values(), np.zeros(10))
    rest = whole - part
    return np.where(np.abs(rest) <= 1e-13 * (np.abs(whole) + np.abs(part)), 0.0, rest)


def _shared_out(whole: Array, parts: Mapping[str, Array], own: Array | None, name: str) -> tuple[dict[str, Array], str]:
    """What the links that hang on a body get of it, in its frame, and how that was chosen."""
    if not is_consistent(whole, allow_empty=True):
        # For a whole that is no physical body: one factor that leaves the moving link a positive mass.
        hanging = float(sum(phi[0] for phi in parts.values()))
        described = 2.0 * hanging if own is None or own[0] <= 0.0 else float(own[0]) + hanging
        factor = float(whole[0]) / described
        words = f"inertials of {listed(list(parts))} were multiplied by {factor:.4g}, so that its mass is positive"
        return {part: factor * phi for part, phi in parts.items()}, words
    bad = [part for part, phi in parts.items() if not is_consistent(phi)]
    good = {part: phi for part, phi in parts.items() if part not in bad}
    told = [f"inertials were put into it from {listed(bad)}"] if bad else []
    if not good or is_consistent(_without(whole, good), allow_empty=True):
        return _of_all(parts, good), "".join(told)
    names = listed(list(good))
    nominal = None if own is None else own + sum(parts.values(), np.zeros(10))
    if nominal is not None and nominal[0] > 0.0:
        alike, how = _shared_as_described(whole, nominal, good, name)
        if alike:
            return _of_all(parts, alike), " and ".join([*told, how])
    factor = 0.5 * _largest_share(whole, sum(good.values(), np.zeros(10)))
    if factor > 0.0:
        told.append(f"inertials were multiplied by {factor:.4g} in {names}")
        return _of_all(parts, {part: factor * phi for part, phi in good.items()}), " and ".join(told)
    return _of_all(parts, {}), f"inertials were put into it from {listed(list(parts))}"


def _shared_as_described(
    whole: Array, nominal: Array, parts: Mapping[str, Array], name: str
) -> tuple[dict[str, Array], str]:
    """The described distribution of mass scaled, else stretched, and how; nothing where the rest would be no body either way."""
    names, factor = listed(list(parts)), float(whole[0] / nominal[0])
    scaled = {part: factor * phi for part, phi in parts.items()}
    if is_consistent(_without(whole, scaled), allow_empty=True):
        return scaled, f"inertials of {names} were multiplied by {factor:.4g}, as the mass of the whole was"
    return _stretched(whole, nominal, parts) or {}, (
        f"the described masses of {name}, {names} were moved and stretched together until the whole was the "
        f"identified body; each keeps its share of the mass ({whole[0]:.4g} kg now, {nominal[0]:.4g} kg described)"
    )


def _of_all(parts: Mapping[str, Array], shares: Mapping[str, Array]) -> dict[str, Array]:
    """Shares of all links in their order; those without one are put into the moving link."""
    return {part: shares.get(part, np.zeros(10)) for part in parts}


def _stretched(whole: Array, nominal: Array, parts: Mapping[str, Array]) -> dict[str, Array] | None:
    """The parts of ``nominal`` under the least affine motion of mass that makes ``whole`` of it; None if there is none.

    In homogeneous coordinates ``T = [[A, c_whole - A c_nominal], [0, 1]]`` and ``P_k' = (m_whole / m_nominal) T P_k T^T``.
    """
    rest = _without(nominal, parts)
    if not (is_consistent(rest, allow_empty=True) and is_consistent(nominal)):
        return None
    c_whole, c_nominal = whole[1:4] / whole[0], nominal[1:4] / nominal[0]
    S_whole, S_nominal = _spread(whole, c_whole), _spread(nominal, c_nominal)
    values, vectors = np.linalg.eigh(S_nominal)
    if values[0] <= 1e-9 * values[-1]:
        return None  # a flat description cannot be stretched into a solid
    root, inverse = ((vectors * values**power) @ vectors.T for power in (0.5, -0.5))
    inner, axes = np.linalg.eigh(root @ S_whole @ root)
    T = np.eye(4)
    T[:3, :3] = inverse @ (axes * np.sqrt(np.maximum(inner, 0.0))) @ axes.T @ inverse
    T[:3, 3] = c_whole - T[:3, :3] @ c_nominal
    factor = whole[0] / nominal[0]
    moved = {part: phi_from_pseudo_inertia(factor * T @ pseudo_inertia(phi) @ T.T) for part, phi in parts.items()}
    fine = [is_consistent(phi) for phi in moved.values()]
    return moved if all(fine) and is_consistent(_without(whole, moved), allow_empty=True) else None


def _spread(phi: Array, com: Array) -> Array:
    """Central second moments over the mass, m^2."""
    return np.asarray(pseudo_inertia(phi)[:3, :3] / phi[0] - np.outer(com, com))


def _largest_share(whole: Array, part: Array) -> float:
    """Largest ``s`` with ``P_whole - s P_part >= 0``, one over the largest eigenvalue of ``P_whole^-1 P_part``."""
    values, vectors = np.linalg.eigh(pseudo_inertia(whole))
    if values[0] <= 1e-12 * values[-1]:
        return 0.0  # a flat body has nothing to give in some direction
    root = vectors / np.sqrt(values)
    return float(1.0 / np.linalg.eigvalsh(root.T @ pseudo_inertia(part) @ root)[-1])
