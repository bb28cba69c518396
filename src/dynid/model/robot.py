"""A robot as identification sees it: a tree of bodies, each moved by one joint, with named parameters.

The pose of body ``i`` in its parent is ``T_i(q) = P_i exp([S_i] q_i)`` with a constant placement ``P_i`` and a constant screw
``S_i`` given in the body's own frame. A frame away from the joint axis (standard DH) therefore needs nothing special.
A robot may stand on a floating joint; its first six velocities are then the twist of the first body in its own frame
(linear, angular) and its first seven positions the translation and the quaternion ``x y z w``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.model.coupling import Coupling
from dynid.model.effects.effect import Effect
from dynid.model.inertia import mass_com_inertia
from dynid.model.joint import Carried, Joint, KinematicTree, MergedLink, kinematic_tree, neutral_position
from dynid.model.loops import OPEN_CHAIN, Closure, Frame, Loops, checked_loops
from dynid.model.parameters import Column, Parameters, inertial_columns


@dataclass(frozen=True)
class Source:
    """Where a robot came from: file, format, its bytes' hash, and what reading it decided."""

    path: str = ""
    format: str = "built"
    sha256: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Robot:
    """Joints, links and the nominal parameters of every regressor column.

    Args:
        name: of the robot.
        joints: from base to tip; the parent of a joint comes before it.
        links: name of the body that each joint moves.
        gravity: acceleration of gravity in the base frame, m/s^2.
        effects: friction and rotor inertia, in the order of their columns.
        parameters: nominal values.
        merged: links that are fixed to a body and were merged into it.
        source: file, format and notes of the description.
        coupling: how motors drive the joints.
        loops: closures of a closed robot. Its ``joints``, ``links`` and ``parameters`` are those of its tree; its motion, torques,
            limits and names (``joint_names``, ``n_joints``, ``n_dof``, ``limits``) are those of its actuated joints.
        absent: parameters that are zero by the description and are not identified: massless links, lumped models.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> isinstance(robot, dynid.Robot), robot.n_joints, robot.lock({"elbow": 1.5}).n_joints
        (True, 7, 6)
    """

    name: str
    joints: tuple[Joint, ...]
    links: tuple[str, ...]
    gravity: Array
    effects: tuple[Effect, ...]
    parameters: Parameters
    merged: tuple[MergedLink, ...] = ()
    source: Source = field(default_factory=Source)
    locked: Mapping[str, float] = field(default_factory=dict)
    """Joints of the description that are held, each with its position."""
    described_joints: tuple[str, ...] = ()
    """Names of all joints of the description in order, those locked included: what a log may number its columns by."""
    coupling: Coupling | None = None
    """How motors drive the joints; None for one motor per joint."""
    loops: Loops = OPEN_CHAIN
    absent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", matrix("gravity", self.gravity, (3,)))
        if not self.joints:
            raise InputError(f"robot '{self.name}' has no moving joint")
        if self.loops:
            checked_loops(self.loops, self.joints, self.name)
        object.__setattr__(self, "described_joints", self.described_joints or self.joint_names)
        if len(self.links) != len(self.joints):
            raise InputError(f"robot '{self.name}' has {len(self.links)} links for {len(self.joints)} joints")
        _refuse_duplicates("joint", tuple(joint.name for joint in self.joints), self.name)
        _refuse_duplicates("link", self.links, self.name)
        for index, joint in enumerate(self.joints):
            if not -1 <= joint.parent < index:
                raise InputError(f"parent of joint '{joint.name}' must come before it in robot '{self.name}'")
            if joint.kind == "floating" and index > 0:
                raise InputError(f"joint '{joint.name}' floats inside the tree; only the first joint may")
        expected = tuple(column.name for column in _columns(self.joints, self.effects, self.loops))
        if self.parameters.names != expected:
            raise InputError(
                f"parameters of robot '{self.name}' do not match its joints and effects: "
                f"{len(self.parameters)} given, {len(expected)} expected"
            )
        for name in self.absent:
            if self.parameters.index(name) >= self.parameters.n_inertial:
                raise InputError(f"parameter '{name}' of robot '{self.name}' is no inertial one, so it cannot be left out")

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process makes the robot anew: arrays come back writable, and kernels are compiled for read-only ones."""
        return _made, ({own.name: getattr(self, own.name) for own in fields(self)},)

    @property
    def n_bodies(self) -> int:
        """Number of links that move, and of joints of the tree."""
        return len(self.joints)

    @cached_property
    def moving_joints(self) -> tuple[Joint, ...]:
        """The joints whose motion describes the robot's: all of an open chain, the actuated ones of a closed one."""
        if not self.loops:
            return self.joints
        by_name = {joint.name: joint for joint in self.joints}
        return tuple(by_name[name] for name in self.loops.actuated)

    @property
    def n_joints(self) -> int:
        """Number of joints that a log or a motion of this robot has."""
        return len(self.moving_joints)

    @cached_property
    def n_dof(self) -> int:
        """Number of velocities, and of torque rows per sample."""
        return sum(joint.n_dof for joint in self.moving_joints)

    @cached_property
    def opened(self) -> Robot:
        """The tree of a closed robot alone: all its joints move on their own, and it has no effects."""
        if not self.loops:
            return self
        n = self.parameters.n_inertial
        bare = Parameters(self.parameters.columns[:n], self.parameters.values[:n])
        return replace(self, loops=OPEN_CHAIN, effects=(), parameters=bare, described_joints=(), absent=())

    @cached_property
    def n_position(self) -> int:
        return self.n_dof + self.floating

    @cached_property
    def floating(self) -> bool:
        return self.joints[0].kind == "floating"

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.moving_joints)

    @cached_property
    def dof_names(self) -> tuple[str, ...]:
        """One name per torque row: the joint's, or six for a floating joint."""
        names: list[str] = []
        for joint in self.moving_joints:
            if joint.kind == "floating":
                names.extend(f"{joint.name}.{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz"))
            else:
                names.append(joint.name)
        return tuple(names)

    @cached_property
    def driven(self) -> IntArray:
        """Velocity indices of the joints with one degree of freedom: those that effects act on."""
        return freeze(range(6 if self.floating else 0, self.n_dof), dtype=np.int64)

    @cached_property
    def driven_joints(self) -> tuple[Joint, ...]:
        return tuple(joint for joint in self.moving_joints if joint.kind != "floating")

    @cached_property
    def driven_numbers(self) -> tuple[int, ...]:
        """Numbers of the driven joints in the tree, from 1: what the names of their parameters end with."""
        place = {joint.name: i + 1 for i, joint in enumerate(self.joints)}
        return tuple(place[joint.name] for joint in self.driven_joints)

    @cached_property
    def effect_joints(self) -> tuple[int, ...]:
        """Bodies whose joints effects act on: the driven ones, and passive ones of a closed robot that rub."""
        numbers = [number - 1 for number in self.driven_numbers]
        return tuple(numbers + [self.body_index(name) for name in self.loops.rubbing])

    @cached_property
    def position_limits(self) -> Array:
        """``(driven joints, 2)``."""
        return freeze([(joint.q_min, joint.q_max) for joint in self.driven_joints])

    def limits(self, quantity: Literal["dq_max", "ddq_max", "tau_max"]) -> Array:
        """One limit of every driven joint, infinite where unknown."""
        return freeze([getattr(joint, quantity) for joint in self.driven_joints])

    @cached_property
    def tree(self) -> KinematicTree:
        return kinematic_tree(self.joints)

    @cached_property
    def effect_incidence(self) -> Array:
        """``C`` of all effects side by side, ``(dof, effect columns)``; without effects of passive joints, see below."""
        incidence = np.zeros((self.n_dof, self._all_incidence.shape[1]))
        incidence[self.driven] = self._all_incidence[: len(self.driven)]
        return freeze(incidence)

    @cached_property
    def passive_incidence(self) -> Array:
        """The same of the passive joints that rub, ``(rubbing joints, effect columns)``; they act through the loops."""
        return freeze(self._all_incidence[len(self.driven) :])

    @cached_property
    def _all_incidence(self) -> Array:
        n = len(self.effect_joints)
        blocks = [effect.incidence(n) for effect in self.effects]
        return np.hstack(blocks) if blocks else np.zeros((n, 0))

    def body_index(self, joint: str) -> int:
        """Place in the tree of a joint, actuated or passive, and of the link it moves."""
        names = [one.name for one in self.joints]
        if joint not in names:
            raise UnknownNameError("joint", joint, names, f"robot '{self.name}'")
        return names.index(joint)

    def joint_index(self, name: str) -> int:
        try:
            return self.joint_names.index(name)
        except ValueError:
            raise UnknownNameError("joint", name, self.joint_names, f"robot '{self.name}'") from None

    def with_parameters(self, parameters: Parameters | Mapping[str, float]) -> Robot:
        """The same robot with other values: a full set of the same columns, or some by name."""
        if isinstance(parameters, Parameters):
            if parameters.names != self.parameters.names:
                missing = sorted(set(self.parameters.names) ^ set(parameters.names))
                raise InputError(f"parameters belong to another set of columns; they differ in {', '.join(missing[:8])}")
            return replace(self, parameters=parameters)
        return replace(self, parameters=self.parameters.updated(parameters))

    def with_effects(self, effects: Iterable[Effect]) -> Robot:
        """The same robot with other effects; values of columns that stay are kept, new ones are the description's."""
        chosen = tuple(effects)
        columns = _columns(self.joints, chosen, self.loops)
        known = self.parameters.as_dict()
        nominal = _nominal(columns, self.joints).tolist()
        values = [known.get(column.name, value) for column, value in zip(columns, nominal, strict=True)]
        return replace(self, effects=chosen, parameters=Parameters(columns, np.array(values)))

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        return replace(self, gravity=np.asarray(gravity, dtype=np.float64))

    def with_notes(self, notes: Iterable[str]) -> Robot:
        return replace(self, source=replace(self.source, notes=self.source.notes + tuple(notes)))

    def lock(self, positions: Mapping[str, float]) -> Robot:
        """Hold joints at the given positions: their links are merged into the bodies that carry them."""
        for name in positions:
            if self.joints[self.body_index(name)].kind == "floating":
                raise InputError(f"floating joint '{name}' cannot be locked at one number")
            follows = any(
                self.joints[tie.follower].name == name for tie in self.loops.ties
            )  # a tie can be cut, a loop cannot
            if self.loops and name not in self.loops.actuated and not follows:
                raise InputError(
                    f"joint '{name}' of robot '{self.name}' is passive, its loops move it; lock actuated joints only"
                )
        if not positions:
            return self
        held = dict(positions)
        for tie in self.loops.ties * len(
            self.loops.ties
        ):  # joints that follow a held one stand still with it, in chains too
            name = self.joints[tie.follower].name
            leader = self.joints[tie.leader].name if tie.leader >= 0 else ""
            if name not in held and leader in held:
                held[name] = tie.position(held[leader])
        return _locked(self, held)

    def only(self, joints: Sequence[str], positions: Mapping[str, float] | None = None) -> Robot:
        """The robot cut to these joints, the rest locked at ``positions`` or at their neutral position.

        Neutral is zero, or the middle of the range where zero lies outside it. A base that floats is kept.
        """
        kept = {self.joint_names[self.joint_index(name)] for name in joints}
        given = dict(positions or {})
        rest = {
            joint.name: given.get(joint.name, neutral_position(joint))
            for joint in self.moving_joints
            if joint.name not in kept and joint.kind != "floating"
        }
        stray = [name for name in given if name in kept]
        if stray:
            raise InputError(f"joint '{stray[0]}' is both kept and locked")
        return self.lock(rest | {name: value for name, value in given.items() if name not in rest})


def make_robot(
    name: str,
    joints: Sequence[Joint],
    inertials: ArrayLike,
    *,
    links: Sequence[str] | None = None,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    effects: Sequence[Effect] = (),
    merged: Sequence[MergedLink] = (),
    source: Source | None = None,
    coupling: Coupling | None = None,
    loops: Loops | None = None,
    absent: Sequence[str] = (),
) -> Robot:
    """A robot from its joints and one row of ten inertial parameters per body.

    Args:
        name: of the robot.
        joints: from base to tip; the parent of a joint comes before it.
        inertials: ``(joints, 10)``, rows ``m mx my mz Ixx Ixy Iyy Ixz Iyz Izz`` about the body frame's origin.
        links: names of the bodies; None for names made from those of the joints.
        gravity: acceleration of gravity in the base frame, m/s^2.
        effects: friction and rotor inertia.
        merged: links that are fixed to a body and were merged into it.
        source: where the robot came from.
        coupling: how motors drive the joints; None for one motor per joint.
        loops: closures of a closed chain; None for an open one.
        absent: names of inertial parameters that are zero and are not identified.

    Returns:
        the robot; its parameters are named ``m1, mx1, .. Izz1`` and so on from joint to joint, then those of effects.

    Examples:
        >>> import dynid, numpy as np
        >>> joint = dynid.Joint("hinge", "revolute", -1, np.eye(4), [0, 0, 0, 0, 1, 0])
        >>> robot = dynid.make_robot("pendulum", [joint], [[1.0, 0.5, 0, 0, 0.01, 0, 0.3, 0, 0, 0.3]])
        >>> dynid.inverse_dynamics(robot, [[0.0]], [[0.0]], [[0.0]]).round(3).tolist()
        [[-4.905]]
    """
    rows = freeze(inertials)
    check_shape(f"inertials of robot '{name}'", rows, (len(joints), 10))
    check_finite(f"inertials of robot '{name}'", rows)
    closed = loops or OPEN_CHAIN
    columns = _columns(tuple(joints), tuple(effects), closed)
    values = np.concatenate([rows.ravel(), _nominal(columns, tuple(joints))[rows.size :]])
    return Robot(
        name=name,
        joints=tuple(joints),
        links=tuple(links) if links is not None else tuple(f"link{i + 1}" for i in range(len(joints))),
        gravity=np.asarray(gravity, dtype=np.float64),
        effects=tuple(effects),
        parameters=Parameters(columns, values),
        merged=tuple(merged),
        source=source or Source(),
        coupling=coupling,
        loops=closed,
        absent=tuple(absent),
    )


def _columns(joints: tuple[Joint, ...], effects: tuple[Effect, ...], loops: Loops) -> tuple[Column, ...]:
    columns = [column for i, joint in enumerate(joints) for column in inertial_columns(i + 1, joint.name)]
    driven = [(i + 1, joint) for i, joint in enumerate(joints) if joint.kind != "floating"]
    if loops:  # effects act on actuated joints, then on the passive ones that rub
        place = {joint.name: (number, joint) for number, joint in driven}
        driven = [place[name] for name in (*loops.actuated, *loops.rubbing)]
    for effect in effects:
        columns.extend(effect.columns([number for number, _ in driven], [joint for _, joint in driven]))
    return tuple(columns)


def _nominal(columns: tuple[Column, ...], joints: tuple[Joint, ...]) -> Array:
    """Values that the description states for effect columns, zero elsewhere."""
    return np.array([joints[column.number - 1].nominal.get(column.symbol, 0.0) for column in columns])


def _refuse_duplicates(what: str, names: tuple[str, ...], robot: str) -> None:
    twice = sorted((name, times) for name, times in Counter(names).items() if times > 1)
    if twice:
        raise InputError(f"{what} name '{twice[0][0]}' appears {twice[0][1]} times in robot '{robot}'")


def _locked(robot: Robot, positions: dict[str, float]) -> Robot:
    """Merge the bodies of locked joints upward, in one pass from the base."""
    carried = Carried.of(robot.name, robot.joints, positions)
    inertials, merged = carried.merged_into(robot.parameters.inertials, robot.links, robot.merged)
    columns = [column for column in robot.parameters.columns if column.number - 1 in carried.number]
    renamed = {column.name: f"{column.symbol}{carried.number[column.number - 1] + 1}" for column in columns}
    values = {renamed[one.name]: robot.parameters[one.name] for one in columns if one.kind != "inertial"}
    driven = [joint.name for joint in robot.driven_joints]
    moving = [place for place, name in enumerate(driven) if name not in positions]
    held = {driven.index(name): value for name, value in positions.items() if name in driven}
    note = "locked and merged: " + ", ".join(f"{name} = {value:g}" for name, value in positions.items())
    cut = make_robot(
        robot.name,
        carried.moving(),
        inertials[carried.kept],
        links=[robot.links[i] for i in carried.kept],
        gravity=robot.gravity,
        effects=[effect for effect in (one.kept(moving) for one in robot.effects) if effect is not None],
        merged=merged,
        source=replace(robot.source, notes=(*robot.source.notes, note)),
        coupling=None if robot.coupling is None else robot.coupling.kept(moving, held),
        loops=_locked_loops(robot, positions, carried),
        absent=[new for old, new in renamed.items() if old in robot.absent],
    )
    return replace(
        cut.with_parameters(values),
        locked={**robot.locked, **positions},
        described_joints=robot.described_joints,
    )


def _locked_loops(robot: Robot, positions: Mapping[str, float], carried: Carried) -> Loops:
    """The closures on the bodies that still move."""

    def moved(frame: Frame) -> Frame:
        if frame.body < 0:
            return frame
        return Frame(carried.number[carried.carrier[frame.body]], carried.pose[frame.body] @ frame.placement)

    loops = robot.loops
    if not loops:
        return loops
    start = np.array(loops.start)
    for name, value in positions.items():
        start[robot.body_index(name)] = value
    actuated = tuple(name for name in loops.actuated if name not in positions)
    held = {robot.body_index(name) for name in positions}
    closures: list[Closure] = [replace(loop, first=moved(loop.first), second=moved(loop.second)) for loop in loops.framed]
    for tie in loops.ties:
        if tie.follower not in held:
            leader = -1 if tie.leader < 0 else carried.number[tie.leader]
            closures.append(replace(tie, follower=carried.number[tie.follower], leader=leader))
    if not closures:
        return OPEN_CHAIN
    return replace(loops, closures=tuple(closures), actuated=actuated, start=start[carried.kept])


def _made(values: dict[str, Any]) -> Robot:
    return Robot(**values)


def effect_value(robot: Robot, symbol: str, joint: int) -> float:
    """Value of an effect's column on a joint, zero when the robot has no such column."""
    return robot.parameters.as_dict().get(f"{symbol}{joint + 1}", 0.0)


def mass_parts(robot: Robot, body: int) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia about it; refuses a body that has moments but no mass."""
    phi = robot.parameters.inertials[body]
    if phi[0] == 0.0:
        if np.any(phi[1:4]):
            raise InputError(f"link '{robot.links[body]}' has first moments {phi[1:4].tolist()} but no mass")
        tensor = phi[[4, 5, 7, 5, 6, 8, 7, 8, 9]].reshape(3, 3)
        return 0.0, np.zeros(3), tensor
    mass, com, inertia = mass_com_inertia(phi)
    return float(mass), com, inertia
