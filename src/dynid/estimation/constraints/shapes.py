"""Shapes that the mass of a link lies in, as bounds on its ten parameters; boxes of a robot's shapes, vertices of a mesh.

A density inside a region where a quadratic ``q(x) = [x; 1]^T A [x; 1]`` is not negative has

    int q rho dx = tr(A P) = a . phi >= 0,

one linear inequality on the ten parameters. Ellipsoids (Wensing and others 2018) and boxes are given here as such rows ``a``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.constraints.base import ConeRows, Layout, Vector, checked_vector, rows_of
from dynid.files import read_limited
from dynid.io.robots.shapes import body_boxes
from dynid.model.inertia import PSEUDO_BASIS, proper_rotation, trailing
from dynid.model.robot import Robot

MOST_BYTES = 256 * 2**20


@dataclass(frozen=True)
class DensityInEllipsoid:
    """Some density inside the ellipsoid has these parameters; with full consistency necessary and sufficient.

    ``centre`` and ``semi_axes`` in m; the columns of ``rotation`` are the directions of the axes in the link's frame.

    Examples:
        >>> DensityInEllipsoid(1, centre=(0.0, 0.0, 0.0), semi_axes=(0.2, 0.2, 0.3)).semi_axes
        (0.2, 0.2, 0.3)
    """

    kind: ClassVar[str] = "density_ellipsoid"
    link: int | str
    centre: Vector
    semi_axes: Vector
    rotation: tuple[Vector, Vector, Vector] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def __post_init__(self) -> None:
        for name in ("centre", "semi_axes"):
            object.__setattr__(self, name, checked_vector(f"ellipsoid {name} of link {self.link}", getattr(self, name)))
        object.__setattr__(self, "rotation", tuple(checked_vector("ellipsoid rotation", row) for row in self.rotation))
        self._functional()

    def _functional(self) -> Array:
        return ellipsoid_functional(self.centre, np.array(self.rotation), self.semi_axes)

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        label = f"density of link {self.link} in its ellipsoid"
        return (rows_of("nonnegative", label, layout.link_slots(self.link), self._functional()),)


@dataclass(frozen=True)
class DensityInBox:
    """What every density inside the box obeys: centre of mass, second moments and products of its faces.

    ``lower`` and ``upper`` are opposite corners, m in the link's frame.

    Examples:
        >>> DensityInBox("hand", lower=(-0.1, -0.1, 0.0), upper=(0.1, 0.1, 0.3)).link
        'hand'
    """

    kind: ClassVar[str] = "density_box"
    link: int | str
    lower: Vector
    upper: Vector

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, checked_vector(f"{name} corner of link {self.link}", getattr(self, name)))
        box_functionals(self.lower, self.upper)

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        label = f"density of link {self.link} in its box"
        return (rows_of("nonnegative", label, layout.link_slots(self.link), box_functionals(self.lower, self.upper)),)


def ellipsoid_functional(center: ArrayLike, rotation: ArrayLike, semi_axes: ArrayLike) -> Array:
    """Wensing, Kim and Slotine 2018: ``a . phi = tr(P Q) >= 0`` for densities inside an ellipsoid; (..., 10).

    ``Q = [[-E, E c], [c^T E, 1 - c^T E c]]`` with ``E = R diag(1/a^2) R^T``. With full consistency it is also
    sufficient.
    """
    c = trailing("center", center, (3,))
    R = proper_rotation("rotation", rotation)
    a = trailing("semi-axes", semi_axes, (3,))
    smallest = a.min(initial=np.inf)
    if smallest <= 0.0:
        raise InputError(f"semi-axes has the value {smallest:.6g}, expected lengths that are positive")
    E = (R / a[..., None, :] ** 2) @ np.swapaxes(R, -1, -2)
    Ec = (E @ c[..., None])[..., 0]
    Q = np.empty((*Ec.shape[:-1], 4, 4))
    Q[..., :3, :3] = -E
    Q[..., :3, 3] = Ec
    Q[..., 3, :3] = Ec
    Q[..., 3, 3] = 1.0 - (c * Ec).sum(axis=-1)
    return _functional(Q)


def box_functionals(lo: ArrayLike, hi: ArrayLike, products: bool = True) -> Array:
    """Rows ``a . phi >= 0`` that every density inside the box ``lo <= x <= hi`` obeys.

    With the faces ``u_i = x_i - lo_i >= 0`` and ``v_i = hi_i - x_i >= 0``: three rows ``int u_i rho``, three
    ``int v_i rho`` (centre of mass in the box), three ``int u_i v_i rho`` (second moments), and with
    ``products`` the twelve of two different axes, ``u_i u_j, u_i v_j, v_i u_j, v_i v_j`` for ``ij = xy, xz,
    yz``: (..., 21, 10), without them (..., 9, 10).
    """
    low, high = np.broadcast_arrays(trailing("lo", lo, (3,)), trailing("hi", hi, (3,)))
    if not (low <= high).all():
        raise InputError(f"box has lo {low.tolist()} and hi {high.tolist()}, expected lo <= hi on every axis")
    ones = np.broadcast_to(np.eye(3, 4), (*low.shape[:-1], 3, 4)).copy()
    u, v = ones.copy(), -ones
    u[..., 3] -= low
    v[..., 3] += high
    one = np.broadcast_to(np.array([0.0, 0.0, 0.0, 1.0]), u.shape)
    first, second = [u, v, u], [one, one, v]
    if products:
        i, j = np.array([0, 0, 1]), np.array([1, 2, 2])
        first += [u[..., i, :], u[..., i, :], v[..., i, :], v[..., i, :]]
        second += [u[..., j, :], v[..., j, :], u[..., j, :], v[..., j, :]]
    left, right = np.concatenate(first, axis=-2), np.concatenate(second, axis=-2)
    # The basis is symmetric, so the outer product need not be.
    return _functional(left[..., :, None] * right[..., None, :])


def _functional(A: Array) -> Array:
    """``a_k = tr(A B_k)`` for the basis ``B`` of the pseudo-inertia."""
    rows: Array = np.einsum("...ij,kij->...k", A, PSEUDO_BASIS)
    return rows


def boxes_of(robot: Robot) -> tuple[tuple[DensityInBox, ...], tuple[str, ...]]:
    """The boxes around the shapes of every link of a robot that has some, and a sentence on those that have none."""
    try:
        boxes, missing = body_boxes(robot)
    except InputError as error:
        return (), (f"Shape limits are not used: {error}.",)
    notes: tuple[str, ...] = ()
    if missing:
        notes = (f"Shape limits are not used for links without shapes: {', '.join(missing)}.",)
    return tuple(DensityInBox(link, lower, upper) for link, (lower, upper) in boxes.items()), notes


def mesh_vertices(path: Path) -> Array:
    """Vertices of an STL (binary or text) or OBJ file, ``(points, 3)``, each once."""
    if not path.exists():
        raise InputError(f"mesh '{path}' does not exist")
    content = read_limited(path, f"mesh '{path}'", MOST_BYTES)
    if path.suffix.lower() == ".obj":
        vertices = _text_vertices(content, b"v", path)
    elif path.suffix.lower() == ".stl":
        count = struct.unpack_from("<I", content, 80)[0] if len(content) >= 84 else -1
        if count >= 0 and len(content) == 84 + 50 * count:
            triangles = np.frombuffer(content, dtype=np.uint8, offset=84).reshape(count, 50)
            vertices = triangles[:, 12:48].copy().view("<f4").reshape(-1, 3).astype(np.float64)
        else:
            vertices = _text_vertices(content, b"vertex", path)
    else:
        raise InputError(f"mesh '{path}' is of type '{path.suffix}', expected .stl or .obj")
    if not len(vertices):
        raise InputError(f"mesh '{path}' holds no vertex")
    if not np.isfinite(vertices).all():
        raise InputError(f"mesh '{path}' holds a vertex that is not a number")
    return np.unique(vertices, axis=0)


def _text_vertices(content: bytes, keyword: bytes, path: Path) -> Array:
    found = []
    for number, line in enumerate(content.splitlines(), 1):
        parts = line.split()
        if parts and parts[0] == keyword:
            try:
                x, y, z = (float(value) for value in parts[1:4])
            except ValueError:
                raise InputError(f"line {number} of mesh '{path}' is no vertex of three numbers") from None
            found.append((x, y, z))
    return np.array(found).reshape(-1, 3)
