"""One body, against Pinocchio, quadrature and finite differences."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.errors import InconsistentModelError, InputError, UnknownNameError
from dynid.estimation.methods.manifold import log_cholesky, log_cholesky_jacobian, phi_from_log_cholesky
from dynid.model.inertia import (
    ORDERS,
    PLAIN_BASIS,
    PSEUDO_BASIS,
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
    skew,
    sousa_matrix,
    spatial_inertia,
)
from messages import facts
from problems import random_rotation
from published import tables

N = 20


@pytest.fixture(name="inertias")
def _inertias() -> list[pin.Inertia]:
    """Pinocchio's random bodies: inertia at the centre of mass positive, triangle inequality not kept."""
    pin.seed(7)
    return [pin.Inertia.Random() for _ in range(N)]


@pytest.fixture(name="phi")
def _phi(inertias: list[pin.Inertia]) -> np.ndarray:
    return np.array([inertia.toDynamicParameters() for inertia in inertias])


def random_rotations(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rotation_exponential(rng.normal(size=(*shape, 3)) * 2.0)


def rod(mass: float = 2.0, length: float = 0.5) -> np.ndarray:
    """A thin rod along x through the origin: on the boundary of the full and of the plain condition."""
    J = mass * length**2 / 12.0
    return np.array([mass, 0.0, 0.0, 0.0, 0.0, 0.0, J, 0.0, 0.0, J])


# Coordinates against Pinocchio


def test_mass_com_inertia_is_pinocchios(inertias, phi):
    mass, com, tensor = mass_com_inertia(phi)
    np.testing.assert_allclose(mass, [inertia.mass for inertia in inertias], rtol=1e-13)
    np.testing.assert_allclose(com, [inertia.lever for inertia in inertias], rtol=1e-12)
    np.testing.assert_allclose(tensor, [inertia.inertia for inertia in inertias], atol=1e-13)
    np.testing.assert_allclose(phi_from_mass_com_inertia(mass, com, tensor), phi, atol=1e-13)


def test_spatial_inertia_is_pinocchios(inertias, phi):
    matrices = np.array([inertia.matrix() for inertia in inertias])
    np.testing.assert_allclose(spatial_inertia(phi), matrices, atol=1e-13)


def test_pseudo_inertia_is_pinocchios(inertias, phi):
    matrices = np.array([pin.PseudoInertia.FromInertia(inertia).toMatrix() for inertia in inertias])
    np.testing.assert_allclose(pseudo_inertia(phi), matrices, atol=1e-13)
    np.testing.assert_allclose(phi_from_pseudo_inertia(matrices), phi, atol=1e-13)


def test_log_cholesky_is_pinocchios():
    theta = np.random.default_rng(3).normal(size=(N, 10))
    theirs = [pin.LogCholeskyParameters(row) for row in theta]
    phi = np.array([parameters.toDynamicParameters() for parameters in theirs])
    np.testing.assert_allclose(phi_from_log_cholesky(theta), phi, rtol=1e-12, atol=1e-12 * np.abs(phi).max())
    np.testing.assert_allclose(log_cholesky(phi), theta, rtol=1e-8, atol=1e-8)
    jacobians = np.array([parameters.calculateJacobian() for parameters in theirs])
    np.testing.assert_allclose(log_cholesky_jacobian(theta), jacobians, rtol=1e-11, atol=1e-12 * np.abs(jacobians).max())


def test_change_of_frame_is_pinocchios_action(inertias, phi):
    rng = np.random.default_rng(0)
    rotation, translation = random_rotations(rng, N), rng.normal(size=(N, 3))
    moved = [
        pin.SE3(R, p).act(inertia).toDynamicParameters()
        for R, p, inertia in zip(rotation, translation, inertias, strict=True)
    ]
    X = change_of_frame(rotation, translation)
    assert X.shape == (N, 10, 10)
    np.testing.assert_allclose(np.einsum("bij,bj->bi", X, phi), moved, atol=1e-12)


def test_rotation_exponential_is_pinocchios_also_near_zero_and_pi():
    axis = np.array([1.0, -2.0, 0.5]) / np.linalg.norm([1.0, -2.0, 0.5])
    for angle in (0.0, 1e-12, 1e-5, 1.0, np.pi - 1e-9, np.pi, 7.0):
        np.testing.assert_allclose(rotation_exponential(angle * axis), pin.exp3(angle * axis), atol=1e-14)


def test_massless_body_has_no_nan():
    mass, com, tensor = mass_com_inertia(np.zeros((2, 10)))
    assert mass.tolist() == [0.0, 0.0]
    assert not com.any()
    assert not tensor.any()
    mass, com, tensor = mass_com_inertia([0.0, 1.0, 0.0, 0.0, 1.0, 0.1, 2.0, 0.2, 0.3, 3.0])
    assert not com.any()
    np.testing.assert_array_equal(tensor, [[1.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 3.0]])


def test_coordinates_keep_leading_axes():
    phi = phi_from_log_cholesky(np.random.default_rng(6).normal(size=(N, 10)))
    many = phi.reshape(4, 5, 10)
    assert pseudo_inertia(many).shape == (4, 5, 4, 4)
    assert log_cholesky_jacobian(log_cholesky(many)).shape == (4, 5, 10, 10)
    m, c, Q, L = principal_form(many)
    assert (m.shape, c.shape, Q.shape, L.shape) == ((4, 5), (4, 5, 3), (4, 5, 3, 3), (4, 5, 3))
    np.testing.assert_array_equal(log_cholesky(many)[2, 3], log_cholesky(phi[13]))
    assert is_consistent(many).shape == (4, 5)
    assert consistency(many).principal_moments.shape == (4, 5, 3)


# Principal form


def test_principal_form_diagonalises_the_inertia_at_com(inertias, phi):
    m, c, Q, L = principal_form(phi)
    np.testing.assert_allclose(np.linalg.det(Q), 1.0, rtol=1e-12)
    assert (np.diff(L, axis=-1) >= 0.0).all()
    assert ((L[:, 0] >= 0.0) == is_consistent(phi)).all()
    J = L.sum(axis=-1, keepdims=True) - L
    rebuilt = np.einsum("bij,bj,bkj->bik", Q, J, Q)
    np.testing.assert_allclose(rebuilt, [inertia.inertia for inertia in inertias], atol=1e-13)
    np.testing.assert_allclose(phi_from_principal(m, c, Q, L), phi, atol=1e-13)


def test_principal_jacobian_is_the_finite_difference_of_the_retraction():
    rng = np.random.default_rng(5)
    m, c, Q, L = rng.uniform(0.5, 3, N), rng.normal(size=(N, 3)), random_rotations(rng, N), rng.random((N, 3))

    def at(step):
        return phi_from_principal(m + step[0], c + step[1:4], Q @ rotation_exponential(step[4:7]), L + step[7:10])

    h = 1e-5
    columns = [(at(h * e) - at(-h * e)) / (2 * h) for e in np.eye(10)]
    jacobian = principal_jacobian(m, c, Q, L)
    np.testing.assert_allclose(jacobian, np.stack(columns, axis=-1), atol=1e-8)
    np.testing.assert_allclose(principal_jacobian(m[3], c[3], Q[3], L[3]), jacobian[3], atol=1e-15)


# LMI matrices


def test_bases_reproduce_both_matrices(phi):
    np.testing.assert_allclose(np.einsum("bk,kij->bij", phi, PSEUDO_BASIS), pseudo_inertia(phi), atol=1e-14)
    np.testing.assert_allclose(np.einsum("bk,kij->bij", phi, PLAIN_BASIS), sousa_matrix(phi), atol=1e-14)
    for basis in (PSEUDO_BASIS, PLAIN_BASIS):
        np.testing.assert_array_equal(basis, np.swapaxes(basis, 1, 2))
        assert not basis.flags.writeable


def test_sousa_matrix_has_the_entries_of_equation_17():
    delta = dict(zip(ORDERS["sousa"], np.arange(1.0, 11.0), strict=True))
    xx, xy, xz, yy, yz, zz, x, y, z, m = delta.values()
    printed = [
        [xx, xy, xz, 0, -z, y],
        [xy, yy, yz, z, 0, -x],
        [xz, yz, zz, -y, x, 0],
        [0, z, -y, m, 0, 0],
        [-z, 0, x, 0, m, 0],
        [y, -x, 0, 0, 0, m],
    ]
    np.testing.assert_array_equal(sousa_matrix(reorder(list(delta.values()), "sousa")), printed)


def test_skew_is_the_cross_product():
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(2, N, 3))
    np.testing.assert_allclose(np.einsum("bij,bj->bi", skew(u), v), np.cross(u, v), atol=1e-14)


# Consistency


def test_slacks_are_those_of_the_principal_moments(inertias, phi):
    report = consistency(phi)
    moments = np.array([np.linalg.eigvalsh(inertia.inertia) for inertia in inertias])
    np.testing.assert_allclose(report.principal_moments, moments, rtol=1e-11)
    slack = moments[:, 0] + moments[:, 1] - moments[:, 2]
    np.testing.assert_allclose(report.triangle_slack, slack, atol=1e-13)
    np.testing.assert_allclose(report.plain_min_eigenvalue, moments[:, 0], rtol=1e-11)
    np.testing.assert_allclose(report.second_moments[:, 0], 0.5 * report.triangle_slack)
    np.testing.assert_allclose(
        report.min_eigenvalue, [np.linalg.eigvalsh(pseudo_inertia(row))[0] for row in phi], atol=1e-14
    )
    assert not report.empty.any()
    assert not report.triangle_slack.flags.writeable


def test_triangle_inequality_separates_full_from_plain():
    phi = phi_from_mass_com_inertia(1.0, [0.1, 0.2, 0.3], np.diag([1.0, 1.0, 2.5]))
    assert is_consistent(phi, "plain") is True
    assert is_consistent(phi, "full") is False
    assert is_consistent(phi) is False
    np.testing.assert_allclose(consistency(phi).triangle_slack, -0.5)


def test_inertia_about_the_frame_does_not_hide_a_bad_inertia_at_com():
    # I about the origin is positive definite only thanks to the lever.
    phi = phi_from_mass_com_inertia(2.0, [1.0, 1.0, 1.0], np.diag([-0.1, 0.2, 0.2]))
    assert np.linalg.eigvalsh(spatial_inertia(phi)[3:, 3:])[0] > 0
    assert is_consistent(phi, "plain") is False
    assert is_consistent(phi, "full") is False


@pytest.mark.parametrize("condition", ["full", "plain"])
def test_mass_must_be_positive(condition):
    tensor = np.diag([1.0, 1.0, 1.0])
    assert is_consistent(phi_from_mass_com_inertia(1e-9, np.zeros(3), tensor), condition) is True
    assert is_consistent(phi_from_mass_com_inertia(0.0, np.zeros(3), tensor), condition) is False
    assert is_consistent(phi_from_mass_com_inertia(-1.0, np.zeros(3), tensor), condition) is False


def test_boundary_bodies_count_until_a_margin_is_asked_for():
    rng = np.random.default_rng(2)
    X = change_of_frame(random_rotations(rng, 200), rng.normal(size=(200, 3)) * 10)
    point = np.array([1.0, *np.zeros(9)])
    for body in (rod(), point):
        moved = X @ body
        assert is_consistent(moved, "full").all()
        assert is_consistent(moved, "plain").all()
        assert not is_consistent(moved, "full", margin=1e-6).any()
        assert not is_consistent(body, "full", margin=1e-6)
        assert not is_consistent(body, "plain", margin=1e-6)
        assert not is_consistent(body, "full", margin=1e-9, absolute=True)
    # What a far point mass leaves behind when it is moved to the origin is roundoff, not a fault.
    far = change_of_frame(np.eye(3), np.full(3, -2.53125)) @ point
    assert is_consistent(change_of_frame(np.eye(3), np.full(3, 2.53125)) @ far) is True
    thinner = rod() - np.array([0, 0, 0, 0, 1e-9, 0, 0, 0, 0, 0])
    assert is_consistent(thinner) is False


def test_relative_margin_does_not_depend_on_units_and_absolute_does():
    sphere = phi_from_mass_com_inertia(1.0, np.zeros(3), np.eye(3))  # L / J = 1/2
    for size in (1e-6, 1.0, 1e6):
        assert is_consistent(size * sphere, margin=0.49) is True
        assert is_consistent(size * sphere, margin=0.51) is False
    assert is_consistent(1e-6 * sphere, margin=1e-6, absolute=True) is False
    assert is_consistent(1e-6 * sphere, "plain", margin=0.99e-6, absolute=True) is True
    assert is_consistent(sphere, margin=0.5, absolute=True) is True
    assert is_consistent(sphere, margin=0.5001, absolute=True) is False


def test_empty_body_is_reported_apart():
    bodies = np.stack([np.zeros(10), rod()])
    assert consistency(bodies).empty.tolist() == [True, False]
    assert is_consistent(bodies).tolist() == [False, True]
    assert is_consistent(bodies, allow_empty=True).tolist() == [True, True]
    massless = np.array([0.0, 0, 0, 0, 1, 0, 1, 0, 0, 1])
    assert is_consistent(massless, allow_empty=True) is False


def test_verdict_is_that_of_the_eigenvalues_of_the_two_matrices(phi):
    scaled = phi * np.array([1, 1, 1, 1, 0.3, 1, 1, 1, 1, 1])
    full = np.linalg.eigvalsh(pseudo_inertia(scaled))[:, 0] > 0
    plain = np.linalg.eigvalsh(sousa_matrix(scaled))[:, 0] > 0
    assert full.sum() < plain.sum() < N
    assert is_consistent(scaled, "full").tolist() == full.tolist()
    assert is_consistent(scaled, "plain").tolist() == plain.tolist()


# Foreign orders


def test_orders_hold_the_same_ten_names():
    for names in ORDERS.values():
        assert sorted(names) == sorted(ORDERS["pinocchio"])


def test_reorder_moves_values_with_their_names():
    values = {name: float(i) for i, name in enumerate(ORDERS["pinocchio"])}
    phi = list(values.values())
    for target, names in ORDERS.items():
        there = reorder(phi, "pinocchio", target)
        assert there.tolist() == [values[name] for name in names]
        assert reorder(there, target).tolist() == phi
    assert reorder(np.arange(10.0), "khalil").tolist() == [9, 6, 7, 8, 0, 1, 3, 2, 4, 5]


def test_gaz_vector_is_grouped_by_kind():
    names = ["m1", "m2", "c1x", "c1y", "c1z", "c2x", "c2y", "c2z"]
    names += [f"I{link}{pair}" for link in (1, 2) for pair in ("xx", "xy", "xz", "yy", "yz", "zz")]
    p = {name: 0.1 * (i + 1) for i, name in enumerate(names)}
    phi = phi_from_gaz(list(p.values()))
    assert phi.shape == (2, 10)
    m, (x, y, z) = p["m2"], (p["c2x"], p["c2y"], p["c2z"])
    assert phi[1, :4] == pytest.approx([m, m * x, m * y, m * z])
    assert phi[1, [4, 6, 9]] == pytest.approx(  # (26): xx, yy, zz
        [p["I2xx"] + m * (y * y + z * z), p["I2yy"] + m * (x * x + z * z), p["I2zz"] + m * (x * x + y * y)]
    )
    assert phi[1, [5, 7, 8]] == pytest.approx(  # xy, xz, yz
        [p["I2xy"] - m * x * y, p["I2xz"] - m * x * z, p["I2yz"] - m * y * z]
    )
    np.testing.assert_allclose(gaz_from_phi(phi), list(p.values()), rtol=1e-12)
    np.testing.assert_allclose(phi_from_gaz(gaz_from_phi(phi, at_com=False), at_com=False), phi)


def test_gaz_published_set_fills_its_total_mass_and_coefficients():
    rows = tables("gaz2019")["tables_8_9"]["p_hat"]
    # c1z is not printed: it has no effect.
    m, x, y, z, *I = np.array([[-0.175 if np.isnan(value) else value for value in row] for row in rows]).T
    phi = phi_from_gaz(np.concatenate([m, np.column_stack([x, y, z]).ravel(), np.array(I).T.ravel()]))
    assert phi[:, 0].sum() == pytest.approx(16.062132, abs=1e-6)
    J2yy, J1zz = phi[1, 6], phi[0, 9]
    assert J2yy + J1zz == pytest.approx(0.0373, abs=5e-5)  # pi_1 of Table III
    assert is_consistent(phi).all()


# Refusals


def test_unknown_names_list_what_there_is():
    with pytest.raises(UnknownNameError, match=facts("pinocchio", "khalil", "dh", "parameter")):
        reorder(np.zeros(10), "dh")
    with pytest.raises(UnknownNameError, match=facts("full", "plain", "half")):
        is_consistent(np.zeros(10), "half")


def test_bad_shapes_and_values_are_refused():
    with pytest.raises(InputError, match=facts("(9,)", "(..., 10)")):
        pseudo_inertia(np.zeros(9))
    with pytest.raises(InputError, match=facts("1", "NaN")):
        is_consistent([np.nan, *np.zeros(9)])
    with pytest.raises(InputError, match="principal axes is not a proper rotation"):
        phi_from_principal(1.0, np.zeros(3), -np.eye(3), np.ones(3))
    with pytest.raises(InputError, match=facts("1", "3", "rotation")):
        change_of_frame(2 * np.eye(3), np.zeros(3))
    with pytest.raises(InputError, match=facts("1", "symmetric")):
        phi_from_mass_com_inertia(1.0, np.zeros(3), np.eye(3) + np.eye(3, k=1))
    with pytest.raises(InputError, match=facts("1e-300", "mass")):
        is_consistent([1e-300, 1e10, *np.zeros(8)])
    assert is_consistent([1e-300, 1.0, *np.zeros(8)]) is False
    with pytest.raises(InputError, match="expected numbers that are not negative"):
        is_consistent(rod(), margin=-1.0)
    with pytest.raises(InputError, match=r"shape \(15,\), expected ten per link"):
        phi_from_gaz(np.zeros(15))
    with pytest.raises(InputError, match=r"expected \(\.\.\., links, 10\)"):
        gaz_from_phi(np.zeros(10))


def test_log_cholesky_needs_the_interior():
    bodies = np.stack([phi_from_mass_com_inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.5])), rod()])
    with pytest.raises(InconsistentModelError, match=facts("-0.25", "0", "2")):
        log_cholesky(bodies)


def test_an_empty_body_has_a_symmetric_inertia():
    """Zero differs from zero by nothing, which is no more than a share of zero."""
    np.testing.assert_array_equal(phi_from_mass_com_inertia(0.0, np.zeros(3), np.zeros((3, 3))), np.zeros(10))


def test_derivatives_of_principal_forms_follow_the_shape_of_any_of_their_arguments():
    rng = np.random.default_rng(4)
    turns = np.array([random_rotation(rng) for _ in range(4)])
    found = principal_jacobian(2.0, np.array([0.1, 0.0, 0.2]), turns, np.array([0.3, 0.2, 0.1]))
    one_by_one = [principal_jacobian(2.0, np.array([0.1, 0.0, 0.2]), turn, np.array([0.3, 0.2, 0.1])) for turn in turns]
    np.testing.assert_allclose(found, one_by_one, atol=1e-15)


def test_derivatives_and_changes_of_frame_take_leading_axes_from_one_argument():
    rng = np.random.default_rng(6)
    one = (2.0, np.array([0.1, 0.0, 0.2]), random_rotation(rng), np.array([0.3, 0.2, 0.1]))
    many = (rng.uniform(1.0, 2.0, 4), rng.normal(size=(4, 3)), random_rotations(rng, 4), rng.uniform(0.1, 1.0, (4, 3)))
    for place in range(4):
        cases = [[*one[:place], own, *one[place + 1 :]] for own in many[place]]
        found = principal_jacobian(*one[:place], many[place], *one[place + 1 :])
        np.testing.assert_allclose(found, [principal_jacobian(*case) for case in cases], atol=1e-14)
    for rotation, move in ((one[2], many[1]), (many[2], one[1])):
        each = [
            change_of_frame(*pair)
            for pair in zip(np.broadcast_to(rotation, (4, 3, 3)), np.broadcast_to(move, (4, 3)), strict=True)
        ]
        np.testing.assert_allclose(change_of_frame(rotation, move), each, atol=1e-14)


def test_vectors_of_gaz_keep_leading_axes(phi):
    bodies = np.stack([phi[:6].reshape(3, 2, 10), phi[6:12].reshape(3, 2, 10)])
    for at_com in (True, False):
        vectors = gaz_from_phi(bodies, at_com)
        assert vectors.shape == (2, 3, 20)
        np.testing.assert_array_equal(vectors[1, 2], gaz_from_phi(bodies[1, 2], at_com))
        np.testing.assert_allclose(phi_from_gaz(vectors, at_com), bodies, atol=1e-12)


def test_how_far_off_is_still_taken():
    """Each tolerance is a share of the largest entry, whatever the unit."""
    turn = np.eye(3)
    turn[0, 0] += 0.4e-6
    change_of_frame(turn, np.zeros(3))
    turn[0, 0] += 0.35e-6
    with pytest.raises(InputError, match=r"differs from 1 by 1\.5e-06 and det Q is 1"):
        change_of_frame(turn, np.zeros(3))
    with pytest.raises(InputError, match="differs from 1 by 3 and det Q is 8, expected 0 and 1"):
        change_of_frame(2.0 * np.eye(3), np.zeros(3))
    for size in (1e-3, 1.0, 1e3):
        for share, fine in ((0.9e-9, True), (1.1e-9, False)):
            tensor = size * np.eye(3)
            tensor[0, 1] += share * size
            if fine:
                phi_from_mass_com_inertia(1.0, np.zeros(3), tensor)
                continue
            with pytest.raises(InputError, match="not symmetric"):
                phi_from_mass_com_inertia(1.0, np.zeros(3), tensor)


def diagonal(mass: float, *moments: float) -> np.ndarray:
    return phi_from_mass_com_inertia(mass, np.zeros(3), np.diag(moments))


def test_the_boundary_is_as_wide_as_documented():
    """A part in 1e12 of the numbers that cancel, here the largest moment and the mass times one metre squared."""
    for outside, fine in ((0.8e-12, True), (1.2e-12, False)):
        assert is_consistent(diagonal(1.0, 1.0, 1.0, 2.0 + 2.0 * 3.0 * outside)) is fine
    large = diagonal(0.5, 7.0, 4.0, 4.0)
    assert consistency(large).roundoff_scale == pytest.approx(7.5)
    off = phi_from_mass_com_inertia(2.0, np.array([0.3, 0.0, 0.0]), np.diag([7.0, 4.0, 4.0]))
    assert consistency(off).roundoff_scale == pytest.approx(7.0 + 2.0 * 0.09 + 2.0)
    skewed = phi_from_mass_com_inertia(2.0, np.array([0.3, 0.1, -0.2]), np.diag([0.7, 0.5, 0.3]))
    eigenvalues = np.linalg.eigvalsh(sousa_matrix(skewed))
    assert eigenvalues[0] < 0.9 * eigenvalues[1]
    assert consistency(skewed).plain_min_eigenvalue_lmi == pytest.approx(eigenvalues[0])


def test_what_lies_on_a_limit_without_any_tolerance():
    point = np.array([1.0, *np.zeros(9)])
    assert is_consistent(point, boundary=0.0)
    assert not is_consistent(point, margin=1e-9, boundary=0.0)
    ball = diagonal(1.0, 1.0, 1.0, 1.0)  # second moments of one half
    assert is_consistent(ball, margin=0.5, absolute=True, boundary=0.0)
    assert not is_consistent(ball, margin=0.5 + 1e-12, absolute=True, boundary=0.0)


def test_a_verdict_asks_for_no_more_than_it_is_told():
    body = diagonal(1.0, 1.0, 1.0, 1.0)
    assert consistency(body).holds()
    assert not consistency(np.zeros(10)).holds()
    small = consistency(1e-4 * body)
    assert small.holds(margin=0.1)  # of its own size
    assert not small.holds(margin=0.1, absolute=True)
