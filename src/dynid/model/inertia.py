"""One rigid body: its coordinates, their derivatives, and THE definition of physical consistency.

The ten parameters of a body with density ``rho`` in a frame are, in Pinocchio's order,

    phi = [m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz],   h = (mx, my, mz) = m c,

with the inertia about the frame's origin, and they are the entries of one matrix, the pseudo-inertia
(Wensing, Kim and Slotine 2018)

    P = int [x; 1] [x; 1]^T rho dx = [[Sigma, h], [h^T, m]],
    Sigma = tr(I)/2 1 - I,   I = tr(Sigma) 1 - Sigma.

Some density generates ``phi`` exactly when ``P`` is positive semidefinite; a change of frame is ``T P T^T``.
Everything here is linear algebra on ``P``. Every function takes any number of leading axes: one body, the
links of a robot, many robots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, BoolArray, check_finite, freeze
from dynid.errors import InputError, UnknownNameError

CONDITIONS = ("full", "plain")
"""``full``: some density generates the body. ``plain``: mass and inertia at the centre of mass positive."""

ROUNDOFF = 1e-12
"""How far outside the boundary, relative to the numbers that cancel in a slack, still counts as on it."""

_PINOCCHIO = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
_KHALIL = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m")
_ROW_BY_ROW = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")

ORDERS: dict[str, tuple[str, ...]] = {
    "pinocchio": _PINOCCHIO,
    "khalil": _KHALIL,
    "sousa": _KHALIL,
    "gaz": _ROW_BY_ROW,
    "idyntree": _ROW_BY_ROW,
    "spatial_v2": ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Iyz", "Ixz", "Ixy"),
}
"""Order of one body's ten parameters in each convention; all hold tensor elements (Ixy = -int xy rho)."""

# phi -> symmetric 3x3 tensor and back: rows and columns of [Ixx, Ixy, Iyy, Ixz, Iyz, Izz].
_ROW = np.array([0, 0, 1, 0, 1, 2])
_COLUMN = np.array([0, 1, 1, 2, 2, 2])
_EYE3 = np.eye(3)


# Checks -------------------------------------------------------------------------------------------


def trailing(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Finite float array whose last axes are ``shape``."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape[-len(shape) :] != shape:
        wanted = ", ".join(str(length) for length in shape)
        raise InputError(f"{name} has shape {array.shape}, expected (..., {wanted})")
    check_finite(name, array)
    return array


def proper_rotation(name: str, values: ArrayLike) -> Array:
    """Proper rotation matrices, or the refusal."""
    rotation = trailing(name, values, (3, 3))
    error = np.abs(np.swapaxes(rotation, -1, -2) @ rotation - _EYE3).max(initial=0.0)
    smallest = np.linalg.det(rotation).min(initial=np.inf)
    if error > 1e-6 or smallest < 0.0:
        raise InputError(
            f"{name} is not a proper rotation: Q^T Q differs from 1 by {error:.3g} and det Q is "
            f"{smallest:.6g}, expected 0 and 1"
        )
    return rotation


def _symmetric(name: str, values: ArrayLike) -> Array:
    """Symmetric 3x3 tensors, or the refusal."""
    tensor = trailing(name, values, (3, 3))
    error = np.abs(tensor - np.swapaxes(tensor, -1, -2)).max(initial=0.0)
    if error > 1e-9 * np.abs(tensor).max(initial=0.0):
        raise InputError(f"{name} is not symmetric: two entries that should agree differ by {error:.3g}")
    return tensor


def _parameters(phi: ArrayLike) -> Array:
    return trailing("phi", phi, (10,))


# Parts of phi -------------------------------------------------------------------------------------


def skew(vector: ArrayLike) -> Array:
    """``S(u) v = u x v`` as a 3x3 matrix."""
    u = trailing("vector", vector, (3,))
    x, y, z = u[..., 0], u[..., 1], u[..., 2]
    zero = np.zeros_like(x)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotation_exponential(vector: ArrayLike) -> Array:
    """Rodrigues: ``exp(S(w)) = 1 + sin(t)/t S(w) + (1 - cos t)/t^2 S(w)^2`` with ``t = |w|``."""
    w = trailing("rotation vector", vector, (3,))
    S = skew(w)
    angle = np.linalg.norm(w, axis=-1)[..., None, None]
    # numpy's sinc is sin(pi x)/(pi x), which has no singularity to step around at t = 0.
    R: Array = _EYE3 + np.sinc(angle / np.pi) * S + 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2 * (S @ S)
    return R


def _tensor(phi: Array) -> Array:
    """Inertia tensor about the frame's origin."""
    tensor = np.empty((*phi.shape[:-1], 3, 3))
    tensor[..., _ROW, _COLUMN] = phi[..., 4:]
    tensor[..., _COLUMN, _ROW] = phi[..., 4:]
    return tensor


def _phi(mass: Array, first_moment: Array, tensor: Array) -> Array:
    phi = np.empty((*np.broadcast_shapes(mass.shape, first_moment.shape[:-1], tensor.shape[:-2]), 10))
    phi[..., 0] = mass
    phi[..., 1:4] = first_moment
    phi[..., 4:] = tensor[..., _ROW, _COLUMN]
    return phi


def _flipped(second_moment: Array) -> Array:
    """``tr(S) 1 - S``: inertia tensor of second moments."""
    trace: Array = np.trace(second_moment, axis1=-2, axis2=-1)
    return trace[..., None, None] * _EYE3 - second_moment


def _second_moments(tensor: Array) -> Array:
    """``tr(I)/2 1 - I``: second moments of an inertia tensor."""
    trace: Array = np.trace(tensor, axis1=-2, axis2=-1)
    return 0.5 * trace[..., None, None] * _EYE3 - tensor


def _point_second_moment(mass: Array, com: Array) -> Array:
    """``m c c^T``."""
    return mass[..., None, None] * com[..., :, None] * com[..., None, :]


def phi_from_mass_com_inertia(mass: ArrayLike, com: ArrayLike, inertia_at_com: ArrayLike) -> Array:
    """``I = I_C + m (c.c 1 - c c^T)``: ten parameters from mass, centre of mass and inertia about it."""
    m = np.asarray(mass, dtype=np.float64)
    check_finite("mass", m)
    c = trailing("centre of mass", com, (3,))
    tensor = _symmetric("inertia at the centre of mass", inertia_at_com)
    return _phi(m, m[..., None] * c, tensor + _flipped(_point_second_moment(m, c)))


def mass_com_inertia(phi: ArrayLike) -> tuple[Array, Array, Array]:
    """``(m, c = h/m, I_C = I - m (c.c 1 - c c^T))``; with zero mass ``c = 0`` and ``I`` is kept."""
    p = _parameters(phi)
    m, h = p[..., 0], p[..., 1:4]
    with np.errstate(over="ignore", invalid="ignore"):
        c = np.divide(h, m[..., None], out=np.zeros_like(h), where=m[..., None] != 0.0)
        tensor = _tensor(p) - _flipped(_point_second_moment(m, c))
    if not np.isfinite(tensor).all():
        raise InputError(
            f"the centre of mass of a body overflows: smallest mass is {np.abs(m[m != 0.0]).min():.3g}, "
            f"largest first moment {np.abs(h).max():.3g}"
        )
    return m.copy(), c, tensor


# Matrix forms -------------------------------------------------------------------------------------


def spatial_inertia(phi: ArrayLike) -> Array:
    """``[[m 1, -S(h)], [S(h), I]]``: 6x6 in Pinocchio's (linear, angular) order."""
    p = _parameters(phi)
    S = skew(p[..., 1:4])
    top = np.concatenate([p[..., 0, None, None] * _EYE3, -S], axis=-1)
    return np.concatenate([top, np.concatenate([S, _tensor(p)], axis=-1)], axis=-2)


def pseudo_inertia(phi: ArrayLike) -> Array:
    """``P = [[Sigma, h], [h^T, m]]`` with ``Sigma = tr(I)/2 1 - I``."""
    p = _parameters(phi)
    P = np.empty((*p.shape[:-1], 4, 4))
    P[..., :3, :3] = _second_moments(_tensor(p))
    P[..., :3, 3] = p[..., 1:4]
    P[..., 3, :3] = p[..., 1:4]
    P[..., 3, 3] = p[..., 0]
    return P


def phi_from_pseudo_inertia(matrix: ArrayLike) -> Array:
    """Inverse of :func:`pseudo_inertia`; linear; only the symmetric part of the matrix counts."""
    P = trailing("pseudo-inertia", matrix, (4, 4))
    P = 0.5 * (P + np.swapaxes(P, -1, -2))
    return _phi(P[..., 3, 3], P[..., :3, 3], _flipped(P[..., :3, :3]))


def sousa_matrix(phi: ArrayLike) -> Array:
    """Sousa and Cortesao (17): ``[[L, S(l)], [S(l)^T, m 1]]``, positive definite under the plain condition.

    The signs are those of the entries printed in (17); the block form above them there has ``S`` transposed,
    which changes the sign of ``l`` and no eigenvalue.
    """
    M = spatial_inertia(phi)
    angular_first = np.array([3, 4, 5, 0, 1, 2])
    return M[..., angular_first[:, None], angular_first[None, :]]


PSEUDO_BASIS: Array = freeze(pseudo_inertia(np.eye(10)))
"""(10, 4, 4): ``pseudo_inertia(phi) = sum_k phi_k PSEUDO_BASIS[k]``, the LMI of the full condition."""

PLAIN_BASIS: Array = freeze(sousa_matrix(np.eye(10)))
"""(10, 6, 6): ``sousa_matrix(phi) = sum_k phi_k PLAIN_BASIS[k]``, the LMI of the plain condition."""


def change_of_frame(rotation: ArrayLike, translation: ArrayLike) -> Array:
    """``P_A = T P_B T^T`` as a 10x10 matrix ``X``: ``phi_A = X phi_B``.

    ``(rotation, translation)`` is the pose of frame B in frame A, ``x_A = R x_B + p``.
    """
    R = proper_rotation("rotation", rotation)
    p = trailing("translation", translation, (3,))
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4))
    T[..., :3, :3] = R
    T[..., :3, 3] = p
    T[..., 3, 3] = 1.0
    columns = T[..., None, :, :] @ PSEUDO_BASIS @ np.swapaxes(T, -1, -2)[..., None, :, :]
    return np.swapaxes(phi_from_pseudo_inertia(columns), -1, -2)


# Principal form (m, c, Q, L) ----------------------------------------------------------------------


def principal_form(phi: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Traversaro's ``(m, c, Q, L)``: ``Sigma - m c c^T = Q diag(L) Q^T``.

    ``L`` holds the second central moments along the principal axes, ascending, the columns of the proper
    rotation ``Q``. The body is fully consistent when ``m > 0`` and ``L >= 0``; a body that is not has a
    negative ``L``.
    """
    m, c, tensor = mass_com_inertia(phi)
    L, Q = np.linalg.eigh(_second_moments(tensor))
    Q[..., :, 0] *= np.sign(np.linalg.det(Q))[..., None]
    return m, c, Q, L


def phi_from_principal(mass: ArrayLike, com: ArrayLike, rotation: ArrayLike, second_moments: ArrayLike) -> Array:
    """``I = Q diag(P L) Q^T - m S(c) S(c)`` with ``P L = tr(L) - L``: inverse of :func:`principal_form`."""
    m = np.asarray(mass, dtype=np.float64)
    check_finite("mass", m)
    c = trailing("centre of mass", com, (3,))
    Q = proper_rotation("principal axes", rotation)
    L = trailing("second moments", second_moments, (3,))
    central = (Q * L[..., None, :]) @ np.swapaxes(Q, -1, -2)
    return _phi(m, m[..., None] * c, _flipped(central + _point_second_moment(m, c)))


def principal_jacobian(mass: ArrayLike, com: ArrayLike, rotation: ArrayLike, second_moments: ArrayLike) -> Array:
    """``d phi`` by ``(m, c, w, L)`` under the retraction ``Q exp(S(w))`` at ``w = 0``; (..., 10, 10).

    dP/dm = [c; 1][c; 1]^T,                      dP/dc_k = m ([e_k; 0][c; 1]^T + transpose),
    dSigma/dw_k = Q (S(e_k) D - D S(e_k)) Q^T,   dSigma/dL_k = q_k q_k^T,   D = diag(L).
    """
    m = np.asarray(mass, dtype=np.float64)
    check_finite("mass", m)
    c = trailing("centre of mass", com, (3,))
    Q = proper_rotation("principal axes", rotation)
    L = trailing("second moments", second_moments, (3,))
    leading = np.broadcast_shapes(m.shape, c.shape[:-1], Q.shape[:-2], L.shape[:-1])
    point = np.ones((*leading, 4))
    point[..., :3] = c
    dP = np.zeros((*leading, 10, 4, 4))
    dP[..., 0, :, :] = point[..., :, None] * point[..., None, :]
    # Only the symmetric part counts below, so one of two transposed terms is written, doubled.
    dP[..., 1:4, :, :] = 2.0 * m[..., None, None, None] * np.eye(3, 4)[:, :, None] * point[..., None, None, :]
    generators = 2.0 * skew(_EYE3) * L[..., None, None, :]
    dP[..., 4:7, :3, :3] = Q[..., None, :, :] @ generators @ np.swapaxes(Q, -1, -2)[..., None, :, :]
    axes = np.swapaxes(Q, -1, -2)
    dP[..., 7:10, :3, :3] = axes[..., :, :, None] * axes[..., :, None, :]
    return np.swapaxes(phi_from_pseudo_inertia(dP), -1, -2)


# Consistency --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Consistency:
    """How far each body is inside (positive) or outside (negative) the conditions, field by field.

    ``min_eigenvalue`` and ``plain_min_eigenvalue_lmi`` (of the 4x4 pseudo-inertia and of Sousa's 6x6 matrix)
    mix kg with kg m^2 and move with the frame; the other slacks are those of the body itself and do not.
    ``triangle_slack`` is ``J1 + J2 - J3`` of the ascending principal moments, twice the smallest second
    central moment. ``scale`` is the largest ``|J|``, ``roundoff_scale`` the size of the numbers that cancel
    in the slacks, ``empty`` marks bodies of ten zeros.
    """

    mass: Array
    min_eigenvalue: Array
    triangle_slack: Array
    plain_min_eigenvalue: Array
    plain_min_eigenvalue_lmi: Array
    principal_moments: Array
    second_moments: Array
    scale: Array
    roundoff_scale: Array
    empty: BoolArray

    def holds(
        self,
        condition: str = "full",
        margin: float = 0.0,
        *,
        absolute: bool = False,
        boundary: float = ROUNDOFF,
        allow_empty: bool = False,
    ) -> bool | BoolArray:
        """The verdict of :func:`is_consistent`."""
        if condition not in CONDITIONS:
            raise UnknownNameError("consistency condition", condition, CONDITIONS)
        if not (margin >= 0.0 and boundary >= 0.0):
            raise InputError(f"margin and boundary are {margin} and {boundary}, expected numbers that are not negative")
        tolerance = boundary * self.roundoff_scale
        if absolute and margin > 0.0:
            eigenvalue = self.min_eigenvalue if condition == "full" else self.plain_min_eigenvalue_lmi
            inside = eigenvalue >= margin - tolerance
        else:
            slack = 0.5 * self.triangle_slack if condition == "full" else self.plain_min_eigenvalue
            inside = slack >= margin * self.scale - tolerance
            if margin > 0.0:  # a point mass has no scale of its own and must not pass for that reason
                inside &= slack > tolerance
        verdict = np.asarray((self.mass > 0.0) & inside | (self.empty & allow_empty))
        return bool(verdict) if verdict.ndim == 0 else verdict


def consistency(phi: ArrayLike) -> Consistency:
    """Slacks of the plain and the full condition for each body, see :class:`Consistency`.

    Args:
        phi: ten parameters of a body, or many, ``(..., 10)``.

    Examples:
        >>> import dynid
        >>> from dynid.model.inertia import consistency
        >>> slack = consistency([1.0, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.3])
        >>> bool(slack.triangle_slack < 0.0)
        True
    """
    p = _parameters(phi)
    mass, com, tensor = mass_com_inertia(p)
    second = np.linalg.eigvalsh(_second_moments(tensor))
    principal = (second.sum(axis=-1, keepdims=True) - second)[..., ::-1]
    # What cancels in I - m (c.c 1 - c c^T) sets how well its eigenvalues can be known; m (1 m)^2 stands for
    # what cancelled before, when the body was brought here from frames about a metre away.
    cancelling = np.abs(p[..., 4:]).max(axis=-1) + np.abs((p[..., 1:4] * com).sum(axis=-1)) + np.abs(mass)
    return Consistency(
        mass=freeze(mass),
        min_eigenvalue=freeze(np.linalg.eigvalsh(pseudo_inertia(p))[..., 0]),
        triangle_slack=freeze(2.0 * second[..., 0]),
        plain_min_eigenvalue=freeze(principal[..., 0]),
        plain_min_eigenvalue_lmi=freeze(np.linalg.eigvalsh(sousa_matrix(p))[..., 0]),
        principal_moments=freeze(principal),
        second_moments=freeze(second),
        scale=freeze(np.abs(principal).max(axis=-1)),
        roundoff_scale=freeze(cancelling),
        empty=freeze((p == 0.0).all(axis=-1), dtype=np.bool_),
    )


def is_consistent(
    phi: ArrayLike,
    condition: str = "full",
    margin: float = 0.0,
    *,
    absolute: bool = False,
    boundary: float = ROUNDOFF,
    allow_empty: bool = False,
) -> bool | BoolArray:
    """Whether a body can exist: a bool for one body ``(10,)``, an array of them for ``(..., 10)``.

        full:   m > 0 and L_min >= 0,   L the second central moments, so J1 + J2 >= J3 (4x4 pseudo-inertia)
        plain:  m > 0 and J_min >= 0,   J the principal moments at the centre of mass (Sousa's 6x6 matrix)

    Point masses, rods and plates lie on the boundary and count as consistent.

    Args:
        phi: ten parameters ``m mx my mz Ixx Ixy Iyy Ixz Iyz Izz`` of a body, or many.
        condition: ``full`` or ``plain``.
        margin: where positive, the strict interior is asked for: ``slack >= margin * J_max``, relative to the body's own size
            and the same in every frame.
        absolute: the smallest eigenvalue of the LMI matrix (4x4 or 6x6, SI units) must be at least ``margin`` instead, as in
            Sousa's (21).
        boundary: tolerance of the boundary, relative to the numbers that cancel in the slack (entries of ``I``, ``m c.c``,
            ``m (1 m)^2``).
        allow_empty: accept a body of ten zeros, which is a frame rather than a body.

    Returns:
        a bool for one body, an array of the leading shape for many.

    Examples:
        >>> import dynid
        >>> dynid.is_consistent([1.0, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1])
        True
        >>> dynid.is_consistent([1.0, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.3])
        False
        >>> dynid.is_consistent([1.0, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.3], condition="plain")
        True
    """
    return consistency(phi).holds(condition, margin, absolute=absolute, boundary=boundary, allow_empty=allow_empty)


# Foreign orders -----------------------------------------------------------------------------------


def reorder(phi: ArrayLike, source: str, target: str = "pinocchio") -> Array:
    """Ten parameters from the order of ``source`` to that of ``target``, both names in :data:`ORDERS`."""
    for name in (source, target):
        if name not in ORDERS:
            raise UnknownNameError("parameter order", name, ORDERS)
    position = {name: index for index, name in enumerate(ORDERS[source])}
    return _parameters(phi)[..., [position[name] for name in ORDERS[target]]]


def phi_from_gaz(parameters: ArrayLike, at_com: bool = True) -> Array:
    """(..., 10 n) of Gaz et al., all masses, all centres of mass, all tensors row by row, to (..., n, 10).

    With ``at_com`` the vector is that of (27), ``(m, c, I_C)``; without, that of (3), ``(m, m c, I about the
    link frame)``.
    """
    p = np.asarray(parameters, dtype=np.float64)
    if p.ndim == 0 or p.shape[-1] % 10:
        raise InputError(f"parameters of all links have shape {p.shape}, expected ten per link in the last axis")
    n = p.shape[-1] // 10
    moments = p[..., n : 4 * n].reshape(*p.shape[:-1], n, 3)
    tensors = p[..., 4 * n :].reshape(*p.shape[:-1], n, 6)
    phi = reorder(np.concatenate([p[..., :n, None], moments, tensors], axis=-1), "gaz")
    return phi_from_mass_com_inertia(phi[..., 0], phi[..., 1:4], _tensor(phi)) if at_com else phi


def gaz_from_phi(phi: ArrayLike, at_com: bool = True) -> Array:
    """Inverse of :func:`phi_from_gaz`: (..., n, 10) to (..., 10 n)."""
    p = _parameters(phi)
    if p.ndim < 2:
        raise InputError(f"phi has shape {p.shape}, expected (..., links, 10)")
    if at_com:
        p = _phi(*mass_com_inertia(p))
    rows = reorder(p, "pinocchio", "gaz")
    blocks = [rows[..., 0], rows[..., 1:4], rows[..., 4:]]
    return np.concatenate([block.reshape(*p.shape[:-2], -1) for block in blocks], axis=-1)
