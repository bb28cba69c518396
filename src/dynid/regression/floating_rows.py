"""Rows of a robot on a floating base: ``[Y_base; Y_joints](q, v, a) phi = [0; tau] + J(q)^T f``, without the forces of its feet.

Nothing about the dynamics of a robot depends on where its base is, how it is turned or how fast it moves along: a base at the origin, at
rest but turning, with the proper acceleration that an IMU there measures, has the same rows. Samples of a floating robot are in that form
(:func:`base_states`), so a log needs no orientation where it has an IMU; round feet alone ask for it, since they touch the ground below
their centre.

Forces of contacts that are not measured leave the rows of a sample by the null space of the contact Jacobian
(:mod:`dynid.dynamics.contact_kernels`). Taking out the force of a foot that is in the air is exact as well and only costs its rows: what
counts as contact may be generous, and a foot that slips does no harm. A row filter acts on what is left, never before: the null space
changes with time, so the filtered force of a foot would lie outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, check_shape, freeze, frozen_view
from dynid.compiled import announced
from dynid.errors import InputError
from dynid.model.frames import Frame, leg_joints
from dynid.model.poses import rotation_from_quaternion
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import Channel, torque_channels
from dynid.regression.row_source import CHUNK_ROWS, Chunk, SampleRows
from dynid.regression.torque_rows import ChosenTorqueRows, typical_torque_rows
from dynid.signals.base_motion import BaseMotion
from dynid.signals.reversal_history import pieces_with_memory, with_memory
from dynid.signals.samples import Samples, SampleStream

FLOATING = "floating"


@dataclass(frozen=True, eq=False)
class Foot:
    """A frame at which the robot may touch something with an unknown force.

    Args:
        frame: the frame.
        flat: whether it also takes a moment: six rows of a sample go with its force, else three.
        radius: of a round foot around the frame, which touches level ground so far below it, m.
    """

    frame: Frame
    flat: bool = False
    radius: float = 0.0

    @property
    def size(self) -> int:
        """Rows that its force takes with it."""
        return 6 if self.flat else 3


@dataclass(frozen=True, eq=False)
class Contacts:
    """Feet of a robot as a kernel takes them."""

    robot: Robot
    feet: tuple[Foot, ...]

    def _arrays(self, q: Array) -> tuple[Any, ...]:
        tree = self.robot.tree
        body = freeze([foot.frame.body for foot in self.feet], np.int64)
        place = freeze([foot.frame.placement[:3, 3] for foot in self.feet])
        size = freeze([foot.size for foot in self.feet], np.int64)
        radius, q = freeze([foot.radius for foot in self.feet]), frozen_view(np.ascontiguousarray(q))
        return q, tree.parent, tree.dof_start, tree.rotation, tree.translation, tree.screw, body, place, size, radius

    def jacobians(self, q: Array) -> Array:
        """``J`` of all feet, ``(samples, rows of all feet, velocities)``, in the axes of the base."""
        from dynid.dynamics import contact_kernels as kernel

        made = np.zeros((len(q), sum(foot.size for foot in self.feet), self.robot.n_dof))
        if self.feet:
            announced(kernel.foot_jacobians)(*self._arrays(q), made)
        return made

    def project(self, samples: Samples, rows: Array) -> None:
        """Rows ``(samples, velocities, columns)`` without the forces of the feet in contact, in their place."""
        from dynid.dynamics import contact_kernels as kernel

        if not self.feet:
            return
        if samples.contact is None:
            raise InputError("samples do not say which feet touch the ground, expected Samples(contact=...)")
        check_shape("contact", samples.contact, (len(samples), len(self.feet)))
        announced(kernel.project_rows)(*self._arrays(samples.position), samples.contact, rows)

    @property
    def apart(self) -> bool:
        """Whether every leg has its own joints, and no more of them than its foot holds: no row of theirs mixes with others then."""
        legs = [leg_joints(self.robot, foot.frame.body) for foot in self.feet]
        fewest = all(len(leg) <= foot.size for leg, foot in zip(legs, self.feet, strict=True))
        return fewest and len(set().union(*legs)) == sum(map(len, legs))


@dataclass(frozen=True, eq=False)
class FloatingRows(SampleRows):
    """Rows of a robot on a floating base over samples; forces of its feet are not in them.

    Args:
        robot: the robot, on a floating base, with its effects.
        samples: one set of samples, or one stream of them, per log, with the base in the form of :func:`base_states`.
        feet: where it may touch something with an unknown force; ``contact`` of the samples says when.
        chunk_rows: samples per chunk.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.regression.floating_rows import FloatingRows, base_states
        >>> from dynid.signals.base_motion import BaseMotion
        >>> joints = [dynid.Joint("base", "floating", -1, np.eye(4), np.zeros(6))]
        >>> joint = dynid.Joint("hinge", "revolute", 0, np.eye(4), [0, 0, 0, 0, 0, 1])
        >>> body = [2.0, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1]
        >>> robot = dynid.make_robot("wheel", [*joints, joint], [body, body])
        >>> rng = np.random.default_rng(0)
        >>> q, v, a = base_states(robot, BaseMotion(*rng.normal(size=(3, 50, 3))), *rng.normal(size=(3, 50, 1)))
        >>> samples = dynid.Samples(np.arange(50) / 100, q, v, a, torque=np.zeros((50, 7)))
        >>> rows = FloatingRows(robot, (samples,))
        >>> rows.kind, len(rows.channels)
        ('floating', 7)
    """

    kind = FLOATING
    timed = True
    samples: tuple[Samples | SampleStream, ...]
    feet: tuple[Foot, ...] = ()
    chunk_rows: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.robot.floating or self.robot.loops:
            what = "has closed chains" if self.robot.floating else "stands on the ground"
            raise InputError(f"robot '{self.robot.name}' {what}, expected one of open chains on a floating base")
        known = [with_memory(self.robot, one) if isinstance(one, Samples) else one for one in self.samples]
        object.__setattr__(self, "samples", tuple(known))

    @property
    def channels(self) -> tuple[Channel, ...]:
        """One per velocity. Rows that mix those of joints have the columns of all base parameters, others their own."""
        own = torque_channels(self.robot)
        if not self.feet:
            return own
        base = reduce_to_base(self.robot)
        assert base.independent is not None
        order = np.argsort(base.independent)
        columns, K = freeze(base.independent[order], np.int64), base.K[order]
        mixed = 6 if Contacts(self.robot, self.feet).apart else self.robot.n_dof
        names = self.robot.dof_names
        return tuple(Channel(names[d], columns, K) if d < mixed else own[d] for d in range(self.robot.n_dof))

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        step, channels = chunk_rows or self.chunk_rows or CHUNK_ROWS, self.channels
        columns = np.unique(np.concatenate([channel.columns for channel in channels]))
        maker, contacts = ChosenTorqueRows(self.robot, freeze(columns, np.int64)), Contacts(self.robot, self.feet)
        places = [np.append(np.searchsorted(columns, channel.columns), len(columns)) for channel in channels]
        for source in self.samples:
            for piece in pieces_with_memory(self.robot, source):
                for start in range(0, len(piece), step):
                    part = piece[start : start + step]
                    rows = maker.rows(part)
                    contacts.project(part, rows)
                    if part.weight is not None:
                        rows *= part.weight[:, :, None]
                    yield Chunk([np.asfortranarray(rows[:, d, own]) for d, own in enumerate(places)], part.time)

    def typical_rows(self) -> tuple[Array, ...]:
        return typical_torque_rows(self.robot)


def base_states(
    robot: Robot,
    base: BaseMotion,
    q: Array,
    v: Array,
    a: Array,
) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration of a floating robot whose base is at the origin, at rest but turning.

    Args:
        robot: the robot; its gravity is added to what an IMU measures.
        base: motion of the base; where its rotation is not known, it is taken to be level, which no row of the dynamics sees.
        q: positions of the joints ``(samples, joints)``, rad or m.
        v: velocities.
        a: accelerations.

    Returns:
        position ``(samples, 7 + joints)``, velocity and acceleration ``(samples, 6 + joints)``.
    """
    n = len(q)
    turned = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (n, 4)) if base.quaternion is None else base.quaternion
    rotation = robot.joints[0].placement[:3, :3] @ rotation_from_quaternion(turned[:, [3, 0, 1, 2]])
    fall = np.einsum("nji,j->ni", rotation, robot.gravity)
    position = np.hstack([np.zeros((n, 3)), turned, q])
    velocity = np.hstack([np.zeros((n, 3)), base.angular_velocity, v])
    return position, velocity, np.hstack([base.proper + fall, base.angular_acceleration, a])


def contact_torque(contacts: Contacts, q: Array, forces: Sequence[Array]) -> Array:
    """``J^T f`` of measured forces on feet, each ``(samples, 3 or 6)`` in the axes of the base, ``(samples, velocities)``."""
    return np.asarray(np.einsum("nrd,nr->nd", contacts.jacobians(q), np.hstack(forces)))
