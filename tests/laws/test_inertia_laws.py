"""What holds for every body: inverses, invariances, implications."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dynid.estimation.constraints.shapes import box_functionals, ellipsoid_functional
from dynid.estimation.methods.manifold import log_cholesky, log_cholesky_jacobian, phi_from_log_cholesky
from dynid.model.inertia import (
    ORDERS,
    change_of_frame,
    consistency,
    gaz_from_phi,
    is_consistent,
    mass_com_inertia,
    phi_from_gaz,
    phi_from_mass_com_inertia,
    phi_from_principal,
    phi_from_pseudo_inertia,
    principal_form,
    principal_jacobian,
    pseudo_inertia,
    reorder,
    rotation_exponential,
    sousa_matrix,
)
from uniform_bodies import cuboid_of, phi_of_cuboid, phi_of_points, realisable_in_box, realisable_in_ellipsoid


def numbers(*shape: int, low: float = -3.0, high: float = 3.0) -> st.SearchStrategy[np.ndarray]:
    """Zero, or of a size whose square and quotient are still numbers: no 1e-160 m, no 1e-300 kg."""
    values = arrays(np.float64, shape, elements=st.floats(low, high))
    return values.map(lambda x: np.where(np.abs(x) < 1e-9, 0.0, x))


parameters = numbers(4, 10)
"""Any ten numbers, of a body or not."""

inside = numbers(4, 10, low=-2.0, high=2.0).map(phi_from_log_cholesky)
"""Bodies strictly inside the full condition, over seven decades of mass and size."""

poses = st.tuples(numbers(3).map(rotation_exponential), numbers(3))
clouds = st.tuples(numbers(5, low=0.0, high=10.0), numbers(5, 3))
"""Masses that may be zero, points that may coincide."""


def close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-9) -> None:
    """Equal relative to the largest entry of each body."""
    scale = np.abs(expected).max(axis=-1, keepdims=True)
    assert (np.abs(actual - expected) <= tolerance * scale + 1e-300).all()


@given(parameters)
def test_linear_forms_invert(phi):
    close(phi_from_pseudo_inertia(pseudo_inertia(phi)), phi, 1e-14)
    close(phi_from_gaz(gaz_from_phi(phi, at_com=False), at_com=False), phi, 0.0)
    for name in ORDERS:
        close(reorder(reorder(phi, "pinocchio", name), name), phi, 0.0)


@given(inside)
def test_nonlinear_coordinates_invert(phi):
    close(phi_from_mass_com_inertia(*mass_com_inertia(phi)), phi)
    close(phi_from_principal(*principal_form(phi)), phi)
    close(phi_from_log_cholesky(log_cholesky(phi)), phi)
    close(phi_from_gaz(gaz_from_phi(phi)), phi)
    cuboid = cuboid_of(phi)
    close(phi_of_cuboid(cuboid.mass, cuboid.half_lengths, cuboid.center, cuboid.rotation), phi)


@given(numbers(10), numbers(10))
def test_log_cholesky_jacobian_is_the_derivative(theta, direction):
    h = 1e-4
    ahead, behind = (phi_from_log_cholesky(theta + step * direction) for step in (h, -h))
    difference = (ahead - behind) / (2 * h)
    jacobian = log_cholesky_jacobian(theta)
    error = np.abs(jacobian @ direction - difference).max()
    assert error <= 1e-5 * (np.abs(jacobian).max() * (1 + np.abs(direction).max()) ** 3 + 1)


@given(inside)
def test_principal_jacobian_moves_the_principal_form(phi):
    """Along (m, L) phi is linear and homogeneous: J_m m + J_L L = phi."""
    m, c, Q, L = principal_form(phi)
    jacobian = principal_jacobian(m, c, Q, L)
    steps = np.concatenate([m[:, None], np.zeros((4, 6)), L], axis=-1)
    close(np.einsum("bij,bj->bi", jacobian, steps), phi)


@given(parameters, poses, poses)
def test_changes_of_frame_compose(phi, first, second):
    (R1, p1), (R2, p2) = first, second
    both = change_of_frame(R2 @ R1, R2 @ p1 + p2)
    np.testing.assert_allclose(change_of_frame(R2, p2) @ change_of_frame(R1, p1), both, atol=1e-11)
    there_and_back = change_of_frame(R1.T, -R1.T @ p1) @ change_of_frame(R1, p1)
    np.testing.assert_allclose(there_and_back, np.eye(10), atol=1e-11)


@given(clouds, poses)
def test_change_of_frame_moves_the_points(cloud, pose):
    (masses, positions), (R, p) = cloud, pose
    moved = change_of_frame(R, p) @ phi_of_points(masses, positions)
    np.testing.assert_allclose(moved, phi_of_points(masses, positions @ R.T + p), atol=1e-9)


@given(parameters, poses)
def test_consistency_is_a_property_of_the_body_not_of_the_frame(phi, pose):
    X = change_of_frame(*pose)
    here, there = consistency(phi), consistency(phi @ X.T)
    # Three digits more than roundoff: a light body far away loses that many in I - m (c.c 1 - c c^T).
    tolerance = 1e-9 * (here.roundoff_scale + there.roundoff_scale)
    heavy = np.abs(phi[:, 0]) > 0.0  # without mass there is no centre for the moments to be about
    moved = np.abs(here.principal_moments - there.principal_moments).max(axis=-1)
    assert (moved <= tolerance + 1e-12)[heavy].all()
    for condition in ("full", "plain"):
        slack = 0.5 * here.triangle_slack if condition == "full" else here.plain_min_eigenvalue
        clear = np.abs(slack) > tolerance + 1e-12
        same = is_consistent(phi, condition) == is_consistent(phi @ X.T, condition)
        assert same[clear].all()


@given(clouds, poses)
def test_points_make_a_consistent_body_in_every_frame(cloud, pose):
    phi = change_of_frame(*pose) @ phi_of_points(*cloud)
    if cloud[0].sum() > 0.0:
        assert is_consistent(phi, "full")
        assert is_consistent(phi, "plain")
    else:
        assert consistency(phi).empty
        assert not is_consistent(phi)


@given(parameters)
def test_full_implies_plain(phi):
    full, plain = is_consistent(phi, "full"), is_consistent(phi, "plain")
    assert (plain | ~full).all()


@given(numbers(3, low=0.1, high=3.0), st.floats(0.01, 1.0), st.floats(0.1, 5.0), poses)
def test_plain_does_not_imply_full(moments, excess, mass, pose):
    """Any two principal moments and a third beyond their sum."""
    J = np.array([moments[0], moments[1], (moments[0] + moments[1]) * (1.0 + excess)])
    phi = change_of_frame(*pose) @ phi_from_mass_com_inertia(mass, np.zeros(3), np.diag(J))
    assert is_consistent(phi, "plain")
    assert not is_consistent(phi, "full")


@given(parameters)
def test_verdicts_are_those_of_the_lmi_matrices(phi):
    """Schur: the conditions at the centre of mass are definiteness of the matrices that are linear in phi."""
    report = consistency(phi)
    for matrix, condition, slack in (
        (pseudo_inertia(phi), "full", report.triangle_slack),
        (sousa_matrix(phi), "plain", report.plain_min_eigenvalue),
    ):
        definite = np.linalg.eigvalsh(matrix)[..., 0] > 0.0
        clear = (np.abs(slack) > 1e-9 * (1 + report.roundoff_scale)) & (np.abs(phi[:, 0]) > 1e-9)
        assert (definite == is_consistent(phi, condition))[clear].all()


@given(inside, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_relative_margin_knows_no_units(phi, kilogram, metre):
    units = kilogram * metre ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    here, there = consistency(phi), consistency(units * phi)
    ratio = 0.5 * here.triangle_slack / here.scale
    # A millimetre is nearer to roundoff than a metre.
    doubt = 1e-11 * (here.roundoff_scale / here.scale + there.roundoff_scale / there.scale)
    for margin in (1e-6, 1e-3, 0.1):
        clear = (np.abs(ratio - margin) > doubt) & (ratio > doubt)
        same = is_consistent(phi, margin=margin) == is_consistent(units * phi, margin=margin)
        assert same[clear].all()


@given(clouds, numbers(3), numbers(3, low=0.1, high=4.0), numbers(3).map(rotation_exponential))
def test_bounds_never_refuse_what_is_inside(cloud, center, size, rotation):
    """Points clipped into a box, and scaled into an ellipsoid, obey the rows of that box and ellipsoid."""
    masses, positions = cloud
    if masses.sum() == 0.0:
        return
    lo, hi = center - size, center + size
    assert realisable_in_box(phi_of_points(masses, np.clip(positions, lo, hi)), lo, hi)
    local = positions / np.maximum(np.linalg.norm(positions, axis=1, keepdims=True), 1.0)
    in_ellipsoid = phi_of_points(masses, (local * size) @ rotation.T + center)
    assert realisable_in_ellipsoid(in_ellipsoid, center, rotation, size)


@given(numbers(3), numbers(3, low=0.1, high=4.0), numbers(3), numbers(3).map(rotation_exponential))
def test_bounds_refuse_a_point_outside(center, size, direction, rotation):
    """For a point mass the rows are the shape itself."""
    outside = center + direction
    point = phi_of_points(np.ones(1), outside[None])
    in_box = (np.abs(direction) <= size).all()
    if (np.abs(np.abs(direction) - size) > 1e-6).all():
        assert realisable_in_box(point, center - size, center + size) == in_box
        assert (box_functionals(center - size, center + size, products=False) @ point >= 0).all() == in_box
    distance = np.linalg.norm((direction @ rotation) / size)
    if abs(distance - 1) > 1e-6:
        assert realisable_in_ellipsoid(point, center, rotation, size) == (distance < 1)
        assert (ellipsoid_functional(center, rotation, size) @ point >= 0) == (distance < 1)
