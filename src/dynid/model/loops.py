"""Closed chains: a tree of joints and the closures that tie two of its frames together.

A closure says that some components of the pose of one frame seen from another are zero. With the residual ``r(q)`` of all
closures, motion keeps ``J(q) v = 0``. A few *actuated* joints then move all others, which are *passive*:

    v_tree = G(q) v_actuated,      a_tree = G a_actuated + (dG/dt) v_actuated.

The components are those of the pose of the second frame in the first: translations ``x y z`` along the axes of the first frame
and turns ``rx ry rz`` about them. A hinge about z closes ``x y z rx ry``, a ball joint ``x y z``. A joint that follows another one
(``mimic`` of URDF, ``equality joint`` of MJCF) is a closure too: ``q_follower = sum_k c_k q_leader^k``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray, freeze, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.model.joint import Joint

COMPONENTS: Final = ("x", "y", "z", "rx", "ry", "rz")
"""Components of a relative pose that a closure may close."""
MOST_COEFFICIENTS: Final = 5
"""Of the polynomial by which a joint follows another: up to the fourth power, as in MuJoCo."""


@dataclass(frozen=True)
class Frame:
    """A frame fixed to a body: the body's number, -1 for the ground, and its pose there."""

    body: int
    placement: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "placement", matrix("placement of a closure's frame", self.placement, (4, 4)))


@dataclass(frozen=True)
class Loop:
    """One closure: the listed components of the pose of ``second`` seen from ``first`` are zero."""

    name: str
    first: Frame
    second: Frame
    closed: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.closed:
            raise InputError(f"loop '{self.name}' closes nothing, expected some of {', '.join(COMPONENTS)}")
        for component in self.closed:
            if component not in COMPONENTS:
                raise UnknownNameError("component", component, COMPONENTS, f"loop '{self.name}'")
        object.__setattr__(self, "closed", tuple(c for c in COMPONENTS if c in self.closed))
        if self.first.body == self.second.body:
            raise InputError(f"loop '{self.name}' ties a link to itself, expected frames on two links")

    def sides(self, parents: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Joints on the way between the two frames: -1 where the first frame hangs on it, 1 where the second does."""
        first, second = _above(self.first.body, parents), _above(self.second.body, parents)
        return tuple(sorted([(i, -1) for i in first - second] + [(i, 1) for i in second - first]))


@dataclass(frozen=True)
class JointTie:
    """One joint that follows another: ``q_follower = sum_k c_k q_leader^k``; without a leader (-1) it stays at ``c_0``."""

    name: str
    follower: int
    leader: int
    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        found = tuple(float(c) for c in self.coefficients)
        if not 1 <= len(found) <= MOST_COEFFICIENTS or not np.isfinite(found).all():
            raise InputError(
                f"tie '{self.name}' has the coefficients {', '.join(f'{c:g}' for c in found)}, expected one to {MOST_COEFFICIENTS} numbers"
            )
        if self.follower == self.leader:
            raise InputError(f"tie '{self.name}' lets a joint follow itself, expected two joints")
        while len(found) > 1 and found[-1] == 0.0:
            found = found[:-1]
        object.__setattr__(self, "coefficients", found)
        if len(found) == 1:
            object.__setattr__(self, "leader", -1)  # nothing of another joint is in it

    def position(self, leader: float) -> float:
        """Of the follower."""
        return float(np.polynomial.polynomial.polyval(leader, self.coefficients))

    def sides(self, parents: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """The joints that take part: 1 for the follower, -1 for the leader."""
        both = [(self.follower, 1), *([] if self.leader < 0 else [(self.leader, -1)])]
        return tuple(sorted(both))


Closure: TypeAlias = Loop | JointTie


@dataclass(frozen=True)
class Loops:
    """The closures of a robot, none for an open chain.

    Args:
        closures: one per closed loop or tie of joints.
        actuated: joints that are driven and measured; they move all others.
        rubbing: passive joints that friction and rotor inertia act on too.
        start: a position of every joint of the tree near a closed one: it chooses the assembly mode.
    """

    closures: tuple[Closure, ...] = ()
    actuated: tuple[str, ...] = ()
    rubbing: tuple[str, ...] = ()
    start: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", matrix("start of the loops", self.start, (None,)))
        names = [loop.name for loop in self.closures]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InputError(f"loop name '{twice[0]}' appears {names.count(twice[0])} times")

    def __len__(self) -> int:
        return len(self.closures)

    def __iter__(self) -> Iterator[Closure]:
        return iter(self.closures)

    def __getitem__(self, index: int) -> Closure:
        return self.closures[index]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(loop.name for loop in self.closures)

    @cached_property
    def framed(self) -> tuple[Loop, ...]:
        """Closures between two frames."""
        return tuple(loop for loop in self.closures if isinstance(loop, Loop))

    @cached_property
    def ties(self) -> tuple[JointTie, ...]:
        """Joints that follow others."""
        return tuple(tie for tie in self.closures if isinstance(tie, JointTie))

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What equals where two robots close alike."""
        frames = tuple(
            (loop.name, loop.closed, *((f.body, f.placement.tobytes()) for f in (loop.first, loop.second)))
            if isinstance(loop, Loop)
            else loop
            for loop in self.closures
        )
        return frames, self.actuated, self.rubbing, self.start.tobytes()


OPEN_CHAIN: Final = Loops()
"""No closure at all."""


def checked_loops(loops: Loops, joints: Sequence[Joint], robot: str) -> Loops:
    """The loops, once they fit these joints: known bodies, known actuated joints, a start of every joint."""
    names = [joint.name for joint in joints]
    if joints[0].kind == "floating":
        raise InputError(f"robot '{robot}' floats and has loops; closed chains are defined on a fixed base")
    # Ties are of known joints, and one that follows is not driven.
    for tie in loops.ties:
        if not (0 <= tie.follower < len(names) and -1 <= tie.leader < len(names)):
            raise InputError(
                f"tie '{tie.name}' of robot '{robot}' is of joints {tie.follower} and {tie.leader}, it has {len(names)}"
            )
        if names[tie.follower] in loops.actuated:
            raise InputError(
                f"joint '{names[tie.follower]}' of robot '{robot}' follows another one, so it is not to be listed among the actuated ones"
            )
    for loop in loops.framed:
        for frame in (loop.first, loop.second):
            if not -1 <= frame.body < len(joints):
                raise InputError(f"loop '{loop.name}' of robot '{robot}' is on body {frame.body}, it has {len(joints)}")
    for name in (*loops.actuated, *loops.rubbing):
        if name not in names:
            raise UnknownNameError("joint", name, names, f"loops of robot '{robot}'")
    if not loops.actuated:
        raise InputError(f"robot '{robot}' has loops and no actuated joint, expected at least one")
    if len(loops.start) != len(joints):
        raise InputError(f"start of the loops of robot '{robot}' has {len(loops.start)} positions for {len(joints)} joints")
    both = [name for name in loops.rubbing if name in loops.actuated]
    if both:
        raise InputError(
            f"joint '{both[0]}' of robot '{robot}' is actuated, so it is not to be listed among the passive ones"
        )
    return loops


def independent_joints(jacobian: Array, preference: Sequence[int], tolerance: float = 1e-7) -> IntArray:
    """Joints that can move all others, those of high preference first: what is left when passive columns span the rest."""
    kept: list[int] = []
    for column in reversed(preference):
        trial = jacobian[:, [*kept, column]]
        if np.linalg.matrix_rank(trial, tol=tolerance * max(1.0, float(np.abs(trial).max()))) == len(kept) + 1:
            kept.append(column)
    return freeze([i for i in range(jacobian.shape[1]) if i not in kept], np.int64)


def _above(body: int, parents: Sequence[int]) -> set[int]:
    """The joints that carry a body, its own included."""
    found = set()
    while body >= 0:
        found.add(body)
        body = parents[body]
    return found
