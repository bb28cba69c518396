"""What may be known of the mass of links, of its centre and of their symmetry; with ``h = m c`` linear or second-order in ``(m, h)``.

in a box       h - m lower >= 0,  m upper - h >= 0    (Sousa 26)
in a sphere    || h - m centre || <= m radius

Left and right: joints that are paired by their names share friction and rotors, their links are mirror images.

``FL_* FR_*`` pairs every joint whose name fits the first pattern with the one that has the same words in the second. The axis that is
mirrored is the one by which the described links are most alike; a constant offset of a joint is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import (
    AXES,
    Axis,
    ConeRows,
    Layout,
    Vector,
    bounded_rows,
    check_between,
    checked_positive,
    checked_vector,
    rows_of,
)
from dynid.estimation.constraints.shapes import mesh_vertices
from dynid.model.inertia import PSEUDO_BASIS, phi_from_pseudo_inertia, pseudo_inertia
from dynid.model.robot import Robot


@dataclass(frozen=True)
class MassBounds:
    """``lower <= m_k <= upper`` (Sousa 25).

    Args:
        link: number from 1, name, or name of its joint.
        lower: kg.
        upper: kg.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> limits = (dynid.MassBounds("hand", upper=1.0), dynid.TotalMass(upper=30.0))
        >>> dynid.estimate(data, base, dynid.FeasibleSDP(constraints=limits)).standard["m7"] <= 1.0
        True
    """

    kind: ClassVar[str] = "mass"
    link: int | str
    lower: float = 0.0
    upper: float = np.inf

    def __post_init__(self) -> None:
        check_between(f"mass of link {self.link}", self.lower, self.upper)

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        return bounded_rows(
            f"mass of link {self.link}", layout.link_slots(self.link)[:1], np.ones(1), self.lower, self.upper
        )


@dataclass(frozen=True)
class TotalMass:
    """``lower <= sum_k m_k <= upper``.

    Args:
        lower: kg.
        upper: kg.
        links: the links that are summed; all where none is named.

    Examples:
        >>> import dynid
        >>> dynid.TotalMass(lower=16.0, upper=20.0).links
        ()
    """

    kind: ClassVar[str] = "total_mass"
    lower: float = 0.0
    upper: float = np.inf
    links: tuple[int | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", tuple(self.links))
        check_between("total mass", self.lower, self.upper)

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        chosen = self.links or layout.links
        columns = np.array([layout.link_slots(link)[0] for link in chosen])
        return bounded_rows("total mass", columns, np.ones(len(columns)), self.lower, self.upper)


@dataclass(frozen=True)
class CentreOfMassInBox:
    """``lower <= c <= upper``.

    Args:
        link: number from 1, name, or name of its joint.
        lower: corner of the box, m in the link's frame.
        upper: opposite corner.

    Examples:
        >>> import dynid
        >>> dynid.CentreOfMassInBox(1, lower=(-0.1, -0.1, 0.0), upper=(0.1, 0.1, 0.3)).link
        1
    """

    kind: ClassVar[str] = "com_box"
    link: int | str
    lower: Vector
    upper: Vector

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, checked_vector(f"{name} corner of link {self.link}", getattr(self, name)))
        if not np.less_equal(self.lower, self.upper).all():
            raise InputError(
                f"box of link {self.link} has lower {self.lower} and upper {self.upper}, expected lower <= upper"
            )

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        slots = layout.link_slots(self.link)[:4]
        above = np.hstack([-np.array(self.lower)[:, None], np.eye(3)])
        below = np.hstack([np.array(self.upper)[:, None], -np.eye(3)])
        return (rows_of("nonnegative", f"centre of mass of link {self.link} in its box", slots, np.vstack([above, below])),)


@dataclass(frozen=True)
class CentreOfMassInSphere:
    """``|| c - centre || <= radius``, metres in the link's frame.

    Examples:
        >>> CentreOfMassInSphere(1, centre=(0.0, 0.0, 0.1), radius=0.2).radius
        0.2
    """

    kind: ClassVar[str] = "com_sphere"
    link: int | str
    centre: Vector
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", checked_vector(f"sphere centre of link {self.link}", self.centre))
        checked_positive(f"sphere radius of link {self.link}", self.radius)

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        M = np.zeros((4, 4))
        M[0, 0] = self.radius
        M[1:, 0] = -np.array(self.centre)
        M[1:, 1:] = np.eye(3)
        label = f"centre of mass of link {self.link} in its sphere"
        return (rows_of("second_order", label, layout.link_slots(self.link)[:4], M),)


@dataclass(frozen=True)
class CentreOfMassInCylinder:
    """Within ``radius`` of the line from ``start`` to ``end`` and between the two, metres in the link's frame.

    Examples:
        >>> CentreOfMassInCylinder(1, start=(0.0, 0.0, 0.0), end=(0.0, 0.0, 0.3), radius=0.1).end
        (0.0, 0.0, 0.3)
    """

    kind: ClassVar[str] = "com_cylinder"
    link: int | str
    start: Vector
    end: Vector
    radius: float

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            object.__setattr__(
                self, name, checked_vector(f"{name} of the cylinder of link {self.link}", getattr(self, name))
            )
        checked_positive(f"cylinder radius of link {self.link}", self.radius)
        if self.start == self.end:
            raise InputError(f"cylinder of link {self.link} starts and ends at {self.start}, expected two points")

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        start, end = np.array(self.start), np.array(self.end)
        length = float(np.linalg.norm(end - start))
        axis = (end - start) / length
        across = np.linalg.svd(axis[None])[2][1:]  # two directions normal to the axis
        slots = layout.link_slots(self.link)[:4]
        label = f"centre of mass of link {self.link} in its cylinder"
        along = np.concatenate([[-axis @ start], axis])
        ends = np.vstack([along, np.concatenate([[length], np.zeros(3)]) - along])
        disc = np.zeros((3, 4))
        disc[0, 0] = self.radius
        disc[1:, 0] = -across @ start
        disc[1:, 1:] = across
        return rows_of("nonnegative", label, slots, ends), rows_of("second_order", label, slots, disc)


@dataclass(frozen=True)
class CentreOfMassInHull:
    """``c`` in the convex hull of points, the vertices of the link's mesh say; metres in the link's frame.

    Examples:
        >>> corners = ((0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1))
        >>> len(CentreOfMassInHull(1, corners).points)
        4
    """

    kind: ClassVar[str] = "com_hull"
    link: int | str
    points: tuple[Vector, ...]

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[-1] != 3 or len(points) < 4 or not np.isfinite(points).all():
            raise InputError(f"hull of link {self.link} has points of shape {points.shape}, expected at least four of three")
        object.__setattr__(self, "points", tuple(tuple(point) for point in points.tolist()))
        self.faces()

    @classmethod
    def from_mesh(
        cls, link: int | str, path: Path | str, scale: float = 1.0, placement: ArrayLike | None = None
    ) -> CentreOfMassInHull:
        """The hull of an STL or OBJ mesh, scaled and then placed in the link's frame by a 4x4 pose."""
        pose = np.eye(4) if placement is None else matrix("placement of the mesh", placement, (4, 4))
        points = scale * mesh_vertices(Path(path)) @ pose[:3, :3].T + pose[:3, 3]
        return cls(link, tuple(tuple(point) for point in points.tolist()))

    def faces(self) -> Array:
        """``(faces, 4)``: ``n . x + d <= 0`` inside."""
        from scipy.spatial import ConvexHull, QhullError

        try:
            equations = ConvexHull(np.asarray(self.points)).equations
        except QhullError:
            raise InputError(
                f"the {len(self.points)} hull points of link {self.link} lie in a plane, expected a solid"
            ) from None
        # a flat face is reported once per triangle
        return np.unique(np.round(equations, 9), axis=0)

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        faces = self.faces()
        M = -np.column_stack([faces[:, 3], faces[:, :3]])
        label = f"centre of mass of link {self.link} in its convex hull"
        return (rows_of("nonnegative", label, layout.link_slots(self.link)[:4], M),)


@dataclass(frozen=True)
class SymmetricLink:
    """Mirror symmetry about the plane ``x_axis = offset`` of the link's frame; ``normal`` is the axis.

        int (x_n - o) rho = 0  and  int x_j (x_n - o) rho = 0 for the other axes j

    Examples:
        >>> SymmetricLink(2, normal="y").offset
        0.0
    """

    kind: ClassVar[str] = "symmetric"
    link: int | str
    normal: Axis
    offset: float = 0.0

    def __post_init__(self) -> None:
        if self.normal not in AXES:
            raise UnknownNameError("axis", str(self.normal), AXES)

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        n = AXES.index(self.normal)
        u = np.zeros(4)
        u[n], u[3] = 1.0, -self.offset
        others = [3, *(j for j in range(3) if j != n)]
        M = np.einsum("kij,j->ik", PSEUDO_BASIS, u)[others]
        return (rows_of("zero", f"symmetry of link {self.link}", layout.link_slots(self.link), M),)


@dataclass(frozen=True)
class EqualLinks:
    """Links with the same ten parameters in their own frames, or mirrored ones: left and right limbs.

    Examples:
        >>> EqualLinks((2, 3), mirror="x").mirror
        'x'
    """

    kind: ClassVar[str] = "equal"
    links: tuple[int | str, ...]
    mirror: Axis | None = None
    """The axis whose sign differs between the first link's frame and the others'."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", tuple(self.links))
        if len(self.links) < 2:
            raise InputError(f"{len(self.links)} link is named to be equal, expected at least two")
        if self.mirror is not None and self.mirror not in AXES:
            raise UnknownNameError("axis", str(self.mirror), AXES)

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        flip = np.ones(4)
        if self.mirror is not None:
            flip[AXES.index(self.mirror)] = -1.0
        S = phi_from_pseudo_inertia(flip[:, None] * PSEUDO_BASIS * flip).T
        first = layout.link_slots(self.links[0])
        M = np.hstack([np.eye(10), -S])
        return tuple(
            rows_of("zero", f"links {self.links[0]} and {other} equal", np.concatenate([first, layout.link_slots(other)]), M)
            for other in self.links[1:]
        )


SIDES = (
    *("FL_* FR_*", "RL_* RR_*", "HL_* HR_*", "LF_* RF_*", "LH_* RH_*"),
    *("left_* right_*", "*_left *_right", "l_* r_*", "*_l *_r", "L_* R_*", "*_L *_R"),
)
"""Patterns by which the sides of robots are commonly named."""
ITS_OWN = ("fo",)
"""Symbols that do not mirror: the offset of a joint is that of its own assembly."""


def paired_joints(names: Sequence[str], patterns: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Numbers (from 0) of joints that patterns such as ``FL_* FR_*`` pair, in the order of the first.

    Examples:
        >>> paired_joints(("FL_hip", "FL_knee", "FR_hip", "FR_knee"), ("FL_* FR_*",))
        ((0, 2), (1, 3))
    """
    found: list[tuple[int, int]] = []
    for pattern in patterns:
        sides = pattern.split()
        if len(sides) != 2 or any(side.count("*") != 1 for side in sides):
            raise InputError(f"--symmetric has '{pattern}', expected two names with one * each, such as 'FL_* FR_*'")
        (a, z), (b, y) = (side.split("*") for side in sides)
        pairs = [
            (i, names.index(other))
            for i, name in enumerate(names)
            if len(name) >= len(a) + len(z) and name.startswith(a) and name.endswith(z)
            if (other := b + name[len(a) : len(name) - len(z)] + y) in names and other != name
        ]
        if not pairs:
            raise InputError(f"--symmetric '{pattern}' pairs no joints; joints: {', '.join(names)}")
        found += pairs
    taken = [j for _, j in found]
    if len(set(taken)) < len(taken) or set(taken) & {i for i, _ in found}:
        raise InputError(
            "--symmetric pairs a joint twice, expected every joint in at most one pair, or as the first of several"
        )
    return tuple(found)


def proposed_symmetry(names: Sequence[str]) -> tuple[str, ...]:
    """Patterns by which the names of a robot's joints pair, empty where they do not.

    Examples:
        >>> proposed_symmetry(("FL_hip", "FR_hip"))
        ('FL_* FR_*',)
    """
    found = []
    for pattern in SIDES:
        with suppress(InputError):
            paired_joints(names, (pattern,))
            found.append(pattern)
    return tuple(found)


def mirrors(robot: Robot, pairs: Sequence[tuple[int, int]]) -> tuple[str | None, ...]:
    """Of every pair the axis that is mirrored between its links, None where they are equal as they are.

    Where the description does not tell, that which most pairs have.
    """
    choices = ("y", "x", "z", None)
    inertials = robot.parameters.inertials
    scores = np.array([[np.linalg.norm(mirrored(inertials[j], axis) - inertials[i]) for axis in choices] for i, j in pairs])
    size = np.array([max(np.linalg.norm(inertials[i]), 1e-12) for i, _ in pairs])
    most = int(np.argmin((scores / size[:, None]).sum(axis=0)))
    best = np.where(scores[:, most] <= scores.min(axis=1) + 1e-9 * size, most, np.argmin(scores, axis=1))
    return tuple(choices[k] for k in best)


def mirrored(phi: Any, axis: str | None) -> Any:
    """Ten parameters of a body in a frame whose axis points the other way."""
    flip = np.ones(4)
    if axis is not None:
        flip["xyz".index(axis)] = -1.0
    return phi_from_pseudo_inertia(flip[:, None] * pseudo_inertia(phi) * flip)


def with_symmetry(table: Mapping[str, Any], patterns: Sequence[str], robot: Robot) -> dict[str, Any]:
    """A table of constraints with the links and joints of both sides tied."""
    if not patterns:
        return dict(table)
    pairs = paired_joints(robot.joint_names, patterns)
    equal = [
        {"links": [i + 1, j + 1]} | ({} if axis is None else {"mirror": axis})
        for (i, j), axis in zip(pairs, mirrors(robot, pairs), strict=True)
    ]
    symbols = {
        (column.number - 1, column.symbol)
        for column in robot.parameters.columns
        if column.kind != "inertial" and column.symbol not in ITS_OWN
    }
    linear = [
        {"terms": {f"{symbol}{i + 1}": 1.0, f"{symbol}{j + 1}": -1.0}, "lower": 0.0, "upper": 0.0}
        for i, j in pairs
        for number, symbol in sorted(symbols)
        if number == i and (j, symbol) in symbols
    ]
    found = dict(table)
    for kind, entries in (("equal", equal), ("linear", linear)):
        given = table.get(kind, [])
        found[kind] = [*(given if isinstance(given, list) else [given]), *entries]
    return found
