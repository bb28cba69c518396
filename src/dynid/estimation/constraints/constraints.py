"""What may be known of a robot beyond physical consistency: one vocabulary for every constrained method.

Each constraint is a value that says its name, its links and its numbers, and writes itself as rows ``M phi + k`` that must
lie in a cone: zero (equalities), not negative (inequalities), or second-order (``||tail|| <= head``). A link is named by its
number from 1, by its own name or by that of its joint.

    with (m, h = m c):   centre of mass in a box        h - m lower >= 0,  m upper - h >= 0    (Sousa 26)
                         in a sphere                    || h - m centre || <= m radius
                         density in an ellipsoid        tr(P Q) >= 0                           (Wensing and others 2018)
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray
from dynid.bodies import box_functionals, ellipsoid_functional
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.convex.layout import Layout
from dynid.inertia import PSEUDO_BASIS, phi_from_pseudo_inertia
from dynid.robot.effects import nonnegative_symbols

Axis: TypeAlias = Literal["x", "y", "z"]
AXES: tuple[Axis, ...] = ("x", "y", "z")
Vector: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Rows:
    """``M phi + k`` in one cone, as triplets over the variables of a layout."""

    cone: Literal["zero", "nonnegative", "second_order"]
    label: str
    row: IntArray
    column: IntArray
    value: Array
    offset: Array
    strict: bool = False
    """Whether an absolute margin applies to these rows too."""


class Constraint(Protocol):
    """Something known of the parameters."""

    kind: ClassVar[str]

    def rows(self, layout: Layout) -> tuple[Rows, ...]: ...


def _rows(
    cone: Literal["zero", "nonnegative", "second_order"],
    label: str,
    columns: IntArray,
    matrix: ArrayLike,
    offset: ArrayLike | None = None,
    strict: bool = False,
) -> Rows:
    """Rows from a small dense matrix over the given variables."""
    M = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    row, entry = np.nonzero(M)
    k = np.zeros(len(M)) if offset is None else np.atleast_1d(np.asarray(offset, dtype=np.float64))
    return Rows(cone, label, row, np.asarray(columns)[entry], M[row, entry], k, strict)


def _vector(name: str, values: Sequence[float]) -> Vector:
    numbers = tuple(float(value) for value in values)
    if len(numbers) != 3 or not np.isfinite(numbers).all():
        raise InputError(f"{name} is {list(values)}, expected three finite numbers")
    return numbers[0], numbers[1], numbers[2]


def _positive(name: str, value: float) -> float:
    if not (np.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value:g}, expected a positive number")
    return float(value)


def _between(what: str, lower: float, upper: float) -> None:
    if np.isnan(lower) or np.isnan(upper) or lower > upper:
        raise InputError(f"{what} has lower bound {lower:g} and upper bound {upper:g}, expected lower <= upper")
    if np.isinf(lower) and np.isinf(upper):
        raise InputError(f"{what} has no bound, expected a lower or an upper one")


def _bounded(label: str, columns: IntArray, coefficients: Array, lower: float, upper: float) -> tuple[Rows, ...]:
    """``lower <= a . phi <= upper``, as an equality where both are the same."""
    if lower == upper:
        return (_rows("zero", label, columns, coefficients, -lower),)
    found = []
    if np.isfinite(lower):
        found.append(_rows("nonnegative", f"{label} >= {lower:g}", columns, coefficients, -lower))
    if np.isfinite(upper):
        found.append(_rows("nonnegative", f"{label} <= {upper:g}", columns, -coefficients, upper))
    return tuple(found)


# Masses -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MassBounds:
    """``lower <= m_k <= upper``, kg (Sousa 25)."""

    kind: ClassVar[str] = "mass"
    link: int | str
    lower: float = 0.0
    upper: float = np.inf

    def __post_init__(self) -> None:
        _between(f"mass of link {self.link}", self.lower, self.upper)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        return _bounded(f"mass of link {self.link}", layout.link_slots(self.link)[:1], np.ones(1), self.lower, self.upper)


@dataclass(frozen=True)
class TotalMass:
    """``lower <= sum_k m_k <= upper``, kg, over the given links or all."""

    kind: ClassVar[str] = "total_mass"
    lower: float = 0.0
    upper: float = np.inf
    links: tuple[int | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", tuple(self.links))
        _between("total mass", self.lower, self.upper)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        chosen = self.links or layout.links
        columns = np.array([layout.link_slots(link)[0] for link in chosen])
        return _bounded("total mass", columns, np.ones(len(columns)), self.lower, self.upper)


# Centres of mass ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CentreOfMassInBox:
    """``lower <= c <= upper``, metres in the link's frame."""

    kind: ClassVar[str] = "com_box"
    link: int | str
    lower: Vector
    upper: Vector

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _vector(f"{name} corner of link {self.link}", getattr(self, name)))
        if not np.less_equal(self.lower, self.upper).all():
            raise InputError(
                f"box of link {self.link} has lower {self.lower} and upper {self.upper}, expected lower <= upper"
            )

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        slots = layout.link_slots(self.link)[:4]
        above = np.hstack([-np.array(self.lower)[:, None], np.eye(3)])
        below = np.hstack([np.array(self.upper)[:, None], -np.eye(3)])
        return (_rows("nonnegative", f"centre of mass of link {self.link} in its box", slots, np.vstack([above, below])),)


@dataclass(frozen=True)
class CentreOfMassInSphere:
    """``|| c - centre || <= radius``, metres in the link's frame."""

    kind: ClassVar[str] = "com_sphere"
    link: int | str
    centre: Vector
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", _vector(f"sphere centre of link {self.link}", self.centre))
        _positive(f"sphere radius of link {self.link}", self.radius)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        M = np.zeros((4, 4))
        M[0, 0] = self.radius
        M[1:, 0] = -np.array(self.centre)
        M[1:, 1:] = np.eye(3)
        label = f"centre of mass of link {self.link} in its sphere"
        return (_rows("second_order", label, layout.link_slots(self.link)[:4], M),)


@dataclass(frozen=True)
class CentreOfMassInCylinder:
    """Within ``radius`` of the line from ``start`` to ``end`` and between the two, metres in the link's frame."""

    kind: ClassVar[str] = "com_cylinder"
    link: int | str
    start: Vector
    end: Vector
    radius: float

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            object.__setattr__(self, name, _vector(f"{name} of the cylinder of link {self.link}", getattr(self, name)))
        _positive(f"cylinder radius of link {self.link}", self.radius)
        if self.start == self.end:
            raise InputError(f"cylinder of link {self.link} starts and ends at {self.start}, expected two points")

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
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
        return _rows("nonnegative", label, slots, ends), _rows("second_order", label, slots, disc)


@dataclass(frozen=True)
class CentreOfMassInHull:
    """``c`` in the convex hull of points, the vertices of the link's mesh say; metres in the link's frame."""

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
        pose = np.eye(4) if placement is None else np.asarray(placement, dtype=np.float64)
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

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        faces = self.faces()
        M = -np.column_stack([faces[:, 3], faces[:, :3]])
        label = f"centre of mass of link {self.link} in its convex hull"
        return (_rows("nonnegative", label, layout.link_slots(self.link)[:4], M),)


# Densities ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DensityInEllipsoid:
    """Some density inside the ellipsoid has these parameters; with full consistency necessary and sufficient."""

    kind: ClassVar[str] = "density_ellipsoid"
    link: int | str
    centre: Vector
    semi_axes: Vector
    rotation: tuple[Vector, Vector, Vector] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def __post_init__(self) -> None:
        for name in ("centre", "semi_axes"):
            object.__setattr__(self, name, _vector(f"ellipsoid {name} of link {self.link}", getattr(self, name)))
        object.__setattr__(self, "rotation", tuple(_vector("ellipsoid rotation", row) for row in self.rotation))
        self._functional()

    def _functional(self) -> Array:
        return ellipsoid_functional(self.centre, np.array(self.rotation), self.semi_axes)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        label = f"density of link {self.link} in its ellipsoid"
        return (_rows("nonnegative", label, layout.link_slots(self.link), self._functional()),)


@dataclass(frozen=True)
class DensityInBox:
    """What every density inside the box obeys: centre of mass, second moments and products of its faces."""

    kind: ClassVar[str] = "density_box"
    link: int | str
    lower: Vector
    upper: Vector

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _vector(f"{name} corner of link {self.link}", getattr(self, name)))
        box_functionals(self.lower, self.upper)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        label = f"density of link {self.link} in its box"
        return (_rows("nonnegative", label, layout.link_slots(self.link), box_functionals(self.lower, self.upper)),)


# Symmetry and equality ----------------------------------------------------------------------------


@dataclass(frozen=True)
class SymmetricLink:
    """Mirror symmetry about the plane ``x_axis = offset`` of the link's frame.

    int (x_n - o) rho = 0  and  int x_j (x_n - o) rho = 0 for the other axes j
    """

    kind: ClassVar[str] = "symmetric"
    link: int | str
    normal: Axis
    offset: float = 0.0

    def __post_init__(self) -> None:
        if self.normal not in AXES:
            raise UnknownNameError("axis", str(self.normal), AXES)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        n = AXES.index(self.normal)
        u = np.zeros(4)
        u[n], u[3] = 1.0, -self.offset
        others = [3, *(j for j in range(3) if j != n)]
        M = np.einsum("kij,j->ik", PSEUDO_BASIS, u)[others]
        return (_rows("zero", f"symmetry of link {self.link}", layout.link_slots(self.link), M),)


@dataclass(frozen=True)
class EqualLinks:
    """Links with the same ten parameters in their own frames, or mirrored ones: left and right limbs."""

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

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        flip = np.ones(4)
        if self.mirror is not None:
            flip[AXES.index(self.mirror)] = -1.0
        S = phi_from_pseudo_inertia(flip[:, None] * PSEUDO_BASIS * flip).T
        first = layout.link_slots(self.links[0])
        M = np.hstack([np.eye(10), -S])
        return tuple(
            _rows("zero", f"links {self.links[0]} and {other} equal", np.concatenate([first, layout.link_slots(other)]), M)
            for other in self.links[1:]
        )


# Single parameters --------------------------------------------------------------------------------


@dataclass(frozen=True)
class FixedValues:
    """``phi_name = value`` for each name."""

    kind: ClassVar[str] = "fixed"
    values: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", {name: float(value) for name, value in self.values.items()})
        if not self.values or not np.isfinite(list(self.values.values())).all():
            raise InputError(f"fixed values are {dict(self.values)}, expected at least one finite number")

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        return tuple(
            _rows("zero", f"{name} = {value:g}", np.array([layout.index(name)]), [[1.0]], -value)
            for name, value in self.values.items()
        )


@dataclass(frozen=True)
class PositiveEffects:
    """Rotor inertia, viscous and Coulomb friction are not negative on every joint (Sousa 28).

    By default these are the values that the registered effects say are never negative: ``Ia fv fc fs fsig flc``, on joints
    and on motors, and those of effects of your own.
    """

    kind: ClassVar[str] = "positive"
    symbols: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", None if self.symbols is None else tuple(self.symbols))

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        symbols = nonnegative_symbols() if self.symbols is None else self.symbols
        present = [symbol for symbol in symbols if len(layout.with_symbol((symbol,)))]
        columns = layout.with_symbol(present)
        if not len(columns):
            return ()
        label = f"{', '.join(present)} not negative"
        return (_rows("nonnegative", label, columns, np.eye(len(columns)), strict=True),)


@dataclass(frozen=True)
class Linear:
    """``lower <= sum_name terms[name] phi_name <= upper``; an equality where both bounds are the same."""

    kind: ClassVar[str] = "linear"
    terms: Mapping[str, float]
    lower: float = -np.inf
    upper: float = np.inf
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", {name: float(value) for name, value in self.terms.items()})
        if not self.terms or not np.isfinite(list(self.terms.values())).all():
            raise InputError(f"linear constraint has terms {dict(self.terms)}, expected at least one finite coefficient")
        _between(self.text, self.lower, self.upper)

    @property
    def text(self) -> str:
        return self.label or " + ".join(f"{value:g} {name}" for name, value in self.terms.items())

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        columns = np.array([layout.index(name) for name in self.terms])
        return _bounded(self.text, columns, np.array(list(self.terms.values())), self.lower, self.upper)


KINDS: dict[str, type[Any]] = {
    constraint.kind: constraint
    for constraint in (
        MassBounds,
        TotalMass,
        CentreOfMassInBox,
        CentreOfMassInSphere,
        CentreOfMassInCylinder,
        CentreOfMassInHull,
        DensityInEllipsoid,
        DensityInBox,
        SymmetricLink,
        EqualLinks,
        FixedValues,
        PositiveEffects,
        Linear,
    )
}
"""Every constraint by the word that a run file uses for it."""


# Tables of a run file -----------------------------------------------------------------------------


def constraints_from_table(table: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Constraints from a ``[constraints]`` table: a key per kind, with one table or a list of them.

    [constraints]
    total_mass = { upper = 27.0 }
    fixed = { Ia7 = 0.0 }
    com_box = [{ link = 1, lower = [-0.1, -0.1, 0.0], upper = [0.1, 0.1, 0.3] }]
    """
    found: list[Constraint] = []
    for kind, entries in table.items():
        if kind not in KINDS:
            raise UnknownNameError("constraint", kind, KINDS)
        for entry in entries if isinstance(entries, list) else [entries]:
            if not isinstance(entry, Mapping):
                raise InputError(f"constraint '{kind}' is {entry!r}, expected a table such as {{ link = 1, lower = 0.5 }}")
            found.append(_from_entry(kind, entry))
    return tuple(found)


def with_meshes_seen_from(table: Any, folder: Path) -> Any:
    """A ``[constraints]`` table with the meshes it names found relative to the folder of its file."""
    if isinstance(table, Mapping):
        return {
            name: str(folder / value) if name == "mesh" and isinstance(value, str) else with_meshes_seen_from(value, folder)
            for name, value in table.items()
        }
    return [with_meshes_seen_from(entry, folder) for entry in table] if isinstance(table, list) else table


def _from_entry(kind: str, entry: Mapping[str, Any]) -> Constraint:
    cls = KINDS[kind]
    if cls is FixedValues and "values" not in entry:
        entry = {"values": dict(entry)}
    if cls is CentreOfMassInHull and "mesh" in entry:
        rest = {key: value for key, value in entry.items() if key != "mesh"}
        return _called(kind, CentreOfMassInHull.from_mesh, {"path": entry["mesh"], **rest})
    known = [item.name for item in fields(cls)]
    for key in entry:
        if key not in known:
            raise UnknownNameError(f"entry of constraint '{kind}'", key, known)
    return _called(kind, cls, entry)


def _called(kind: str, make: Any, entry: Mapping[str, Any]) -> Constraint:
    try:
        return make(**entry)  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        raise InputError(f"constraint '{kind}' with entries {', '.join(entry) or 'none'} cannot be read: {error}") from error


def table_from_constraints(constraints: Sequence[Constraint]) -> dict[str, list[dict[str, Any]]]:
    """The inverse of :func:`constraints_from_table`, to be stored with a run; infinite bounds are left out."""
    table: dict[str, list[dict[str, Any]]] = {}
    for constraint in constraints:
        values = {item.name: getattr(constraint, item.name) for item in fields(type(constraint))}  # type: ignore[arg-type]
        entry = {
            key: value
            for key, value in values.items()
            if not (isinstance(value, float) and np.isinf(value)) and value is not None
        }
        table.setdefault(constraint.kind, []).append(entry)
    return table


# Meshes -------------------------------------------------------------------------------------------


def mesh_vertices(path: Path) -> Array:
    """Vertices of an STL (binary or text) or OBJ file, ``(points, 3)``, each once."""
    if not path.is_file():
        raise InputError(f"mesh '{path}' does not exist")
    content = path.read_bytes()
    if path.suffix.lower() == ".obj":
        vertices = _text_vertices(content, b"v")
    elif path.suffix.lower() == ".stl":
        count = struct.unpack_from("<I", content, 80)[0] if len(content) >= 84 else -1
        if len(content) == 84 + 50 * count:
            triangles = np.frombuffer(content, dtype=np.uint8, offset=84).reshape(count, 50)
            vertices = triangles[:, 12:48].copy().view("<f4").reshape(-1, 3).astype(np.float64)
        else:
            vertices = _text_vertices(content, b"vertex")
    else:
        raise InputError(f"mesh '{path}' is of type '{path.suffix}', expected .stl or .obj")
    if not len(vertices):
        raise InputError(f"mesh '{path}' holds no vertex")
    return np.unique(vertices, axis=0)


def _text_vertices(content: bytes, keyword: bytes) -> Array:
    lines = (line.split() for line in content.splitlines())
    return np.array([[float(x) for x in parts[1:4]] for parts in lines if parts and parts[0] == keyword]).reshape(-1, 3)
