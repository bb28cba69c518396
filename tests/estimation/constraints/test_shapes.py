"""Shapes and bounds, against quadrature and semidefinite programs; links kept in the boxes around their shapes."""

from __future__ import annotations

from dataclasses import replace

import cvxpy
import numpy as np
import pytest
from scipy.integrate import tplquad
from scipy.optimize import linprog

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InconsistentModelError, InputError
from dynid.estimation.constraints.shapes import DensityInBox, box_functionals, boxes_of, ellipsoid_functional
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.model.effects.linear import Viscous
from dynid.model.inertia import (
    PSEUDO_BASIS,
    change_of_frame,
    is_consistent,
    phi_from_mass_com_inertia,
    phi_from_pseudo_inertia,
    pseudo_inertia,
    rotation_exponential,
)
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import Regression, build_regression
from dynid.signals.samples import Samples
from messages import facts
from problems import planar_2r, random_motion
from uniform_bodies import (
    cuboid_of,
    phi_of_cuboid,
    phi_of_ellipsoid,
    phi_of_points,
    realisable_in_box,
    realisable_in_ellipsoid,
)

ROTATION = rotation_exponential([0.4, -0.9, 0.3])
CENTER = np.array([0.1, -0.2, 0.3])
LENGTHS = np.array([0.3, 0.1, 0.2])


def moments_by_quadrature(mass: float, limits: tuple[object, ...], volume: float) -> np.ndarray:
    """Ten parameters of a uniform body around the origin, then moved to CENTER, ROTATION."""

    def integral(i: int, j: int) -> float:
        def value(z: float, y: float, x: float) -> float:
            point = (x, y, z, 1.0)
            return point[i] * point[j]

        return tplquad(value, *limits, epsabs=1e-9)[0]

    P = np.array([[integral(i, j) for j in range(4)] for i in range(4)]) * mass / volume
    return change_of_frame(ROTATION, CENTER) @ phi_from_pseudo_inertia(P)


def test_cuboid_is_the_integral_over_its_volume():
    a, b, c = LENGTHS
    expected = moments_by_quadrature(2.0, (-a, a, -b, b, -c, c), 8 * a * b * c)
    np.testing.assert_allclose(phi_of_cuboid(2.0, LENGTHS, CENTER, ROTATION), expected, atol=1e-9)


def test_ellipsoid_is_the_integral_over_its_volume():
    # In spherical coordinates the integrand is a polynomial and sines: Gauss-Legendre is exact enough.
    nodes, weights = np.polynomial.legendre.leggauss(24)
    r, wr = (nodes + 1) / 2, weights / 2
    angle, wa = (nodes + 1) * np.pi, weights * np.pi
    R, u, A = np.meshgrid(r, nodes, angle, indexing="ij")
    s = np.sqrt(1 - u**2)
    x = np.stack([R * s * np.cos(A), R * s * np.sin(A), R * u], axis=-1) * LENGTHS
    w = wr[:, None, None] * weights[None, :, None] * wa[None, None, :] * R**2
    positions = x.reshape(-1, 3) @ ROTATION.T + CENTER
    masses = 2.0 * w.ravel() / w.sum()
    np.testing.assert_allclose(
        phi_of_ellipsoid(2.0, LENGTHS, CENTER, ROTATION), phi_of_points(masses, positions), atol=1e-12
    )


def test_cuboid_realises_a_body():
    rng = np.random.default_rng(1)
    phi = phi_of_points(rng.random((30, 6)), rng.normal(size=(30, 6, 3)))
    cuboid = cuboid_of(phi)
    assert cuboid.half_lengths.shape == (30, 3)
    rebuilt = phi_of_cuboid(cuboid.mass, cuboid.half_lengths, cuboid.center, cuboid.rotation)
    np.testing.assert_allclose(rebuilt, phi, atol=1e-12)
    # A lattice over that cuboid has the same mass and nearly the same moments.
    grid = (np.arange(40) + 0.5) / 20 - 1
    lattice = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    points = (lattice * cuboid.half_lengths[4]) @ cuboid.rotation[4].T + cuboid.center[4]
    density = np.full(len(points), cuboid.mass[4] / len(points))
    np.testing.assert_allclose(phi_of_points(density, points), phi[4], rtol=2e-3, atol=2e-3)


def test_cuboid_of_plane_and_line_is_flat():
    sheet = phi_of_cuboid(1.0, [0.2, 0.3, 0.0], CENTER, ROTATION)
    np.testing.assert_allclose(cuboid_of(sheet).half_lengths, [0.0, 0.2, 0.3], atol=1e-7)


def test_cuboid_of_inconsistent_body_is_refused():
    bodies = np.stack([phi_of_cuboid(1.0, LENGTHS, CENTER, ROTATION), np.zeros(10)])
    with pytest.raises(InconsistentModelError, match=facts("1", "2")):
        cuboid_of(bodies)
    bad = phi_from_mass_com_inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.5]))
    with pytest.raises(InconsistentModelError, match=facts("1", "-0.5", "mass")):
        cuboid_of(bad)


# Ellipsoid


def test_ellipsoid_functional_is_the_moment_of_its_quadratic():
    rng = np.random.default_rng(3)
    positions = rng.normal(size=(8, 3))
    masses = rng.random(8)
    local = (positions - CENTER) @ ROTATION / LENGTHS
    expected = (masses * (1 - (local**2).sum(axis=1))).sum()
    row = ellipsoid_functional(CENTER, ROTATION, LENGTHS)
    assert row @ phi_of_points(masses, positions) == pytest.approx(expected, rel=1e-12)


def test_ellipsoid_surface_points_are_the_boundary():
    direction = np.array([1.0, 2.0, -1.0]) / np.sqrt(6.0)
    surface = np.stack([CENTER + ROTATION @ (LENGTHS * direction), CENTER - ROTATION @ (LENGTHS * direction)])
    for mass in (1e-3, 1.0, 50.0):
        body = phi_of_points([mass, 2 * mass], surface)
        assert realisable_in_ellipsoid(body, CENTER, ROTATION, LENGTHS) is True
        assert realisable_in_ellipsoid(body, CENTER, ROTATION, LENGTHS * (1 - 1e-6)) is False


def test_ellipsoid_holds_its_solid_and_the_two_points_at_its_ends():
    solid = phi_of_ellipsoid(1.0, LENGTHS, CENTER, ROTATION)
    assert realisable_in_ellipsoid(solid, CENTER, ROTATION, LENGTHS) is True
    # The moments of this cuboid are those of two points at +-a on the first axis: no room is left across.
    stretched = phi_of_cuboid(1.0, np.sqrt(3.0) * np.array([0.3, 0, 0]), CENTER, ROTATION)
    assert realisable_in_ellipsoid(stretched, CENTER, ROTATION, LENGTHS) is True
    stretched = phi_of_cuboid(1.0, np.sqrt(3.0) * np.array([0.3, 0.01, 0]), CENTER, ROTATION)
    assert realisable_in_ellipsoid(stretched, CENTER, ROTATION, LENGTHS) is False


def test_ellipsoid_condition_is_sufficient():
    """Bodies with tr(P Q) >= 0 are mixtures of points of the ellipsoid, here by linear programming."""
    rng = np.random.default_rng(8)
    directions = rng.normal(size=(3000, 3))
    inside = directions / np.linalg.norm(directions, axis=1, keepdims=True) * LENGTHS
    points = np.concatenate([inside, 0.5 * inside]) @ ROTATION.T + CENTER
    rows = phi_of_points(np.ones((len(points), 1)), points[:, None, :])
    row = ellipsoid_functional(CENTER, ROTATION, LENGTHS)
    for _ in range(3):
        local = np.append(LENGTHS * rng.uniform(-0.3, 0.3, 3), 0.0)[:, None]
        P = np.diag([*(LENGTHS**2 * rng.dirichlet(np.ones(3))), 1.0])
        P[:3, :3] *= 0.9 - (local[:3, 0] ** 2 / LENGTHS**2).sum()
        P[:3, :3] += local[:3] @ local[:3].T
        P[:3, 3:] = local[:3]
        P[3:, :3] = local[:3].T
        phi = change_of_frame(ROTATION, CENTER) @ phi_from_pseudo_inertia(P)
        assert row @ phi == pytest.approx(0.1, rel=1e-9)  # near the bound, far from a solid's 0.4
        found = linprog(np.zeros(len(points)), A_eq=rows.T, b_eq=phi, method="highs")
        assert found.status == 0


def test_inconsistent_body_is_in_no_ellipsoid():
    # Negative second moments make tr(P Q) large: the functional alone does not refuse it.
    bad = phi_from_mass_com_inertia(1.0, CENTER, np.diag([1e-4, 1e-4, 3e-4]))
    assert ellipsoid_functional(CENTER, ROTATION, LENGTHS) @ bad > 0
    assert realisable_in_ellipsoid(bad, CENTER, ROTATION, LENGTHS) is False


# Box


def test_box_functionals_are_the_moments_of_its_faces():
    rng = np.random.default_rng(4)
    lo, hi = np.array([-0.2, 0.1, -1.0]), np.array([0.3, 0.4, 2.0])
    x, m = rng.normal(size=(8, 3)), rng.random(8)
    u, v = x - lo, hi - x
    expected = [*(m @ u), *(m @ v), *(m @ (u * v))]
    for left, right in ((u, u), (u, v), (v, u), (v, v)):
        expected += [m @ (left[:, i] * right[:, j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    phi = phi_of_points(m, x)
    np.testing.assert_allclose(box_functionals(lo, hi) @ phi, expected, rtol=1e-11, atol=1e-12)
    nine = box_functionals(lo, hi, products=False) @ phi
    np.testing.assert_allclose(nine, expected[:9], rtol=1e-11, atol=1e-12)
    assert box_functionals(np.tile(lo, (5, 2, 1)), hi).shape == (5, 2, 21, 10)


def test_box_refuses_what_nine_rows_let_pass():
    """A cloud along the diagonal x = y of a corner: its variance fits per axis, its correlation does not."""
    lo, hi = np.zeros(3), np.ones(3)
    P = np.eye(4)
    P[:3, 3] = P[3, :3] = [0.1, 0.9, 0.5]
    sigma = 0.3
    correlation = 0.99
    central = sigma**2 * np.array([[1.0, correlation, 0.0], [correlation, 1.0, 0.0], [0.0, 0.0, 1.0]])
    P[:3, :3] = central + np.outer(P[:3, 3], P[:3, 3])
    phi = phi_from_pseudo_inertia(P)
    assert is_consistent(phi)
    assert (box_functionals(lo, hi, products=False) @ phi >= -1e-12).all()
    assert realisable_in_box(phi, lo, hi) is False
    # An independent word: no non-negative weights on a fine lattice of the box have these moments.
    grid = np.linspace(0, 1, 9)
    lattice = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    rows = phi_of_points(np.ones((len(lattice), 1)), lattice[:, None, :])
    weights = cvxpy.Variable(len(lattice), nonneg=True)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm1(rows.T @ weights - phi)))
    problem.solve(solver=cvxpy.CLARABEL)
    assert problem.value > 1e-2


def test_corners_of_the_box_are_its_boundary():
    lo, hi = np.array([-0.2, 0.1, -1.0]), np.array([0.3, 0.4, 2.0])
    corners = np.stack(np.meshgrid(*zip(lo, hi, strict=True), indexing="ij"), axis=-1).reshape(-1, 3)
    body = phi_of_points(np.arange(1.0, 9.0), corners)
    assert realisable_in_box(body, lo, hi) is True
    assert realisable_in_box(body, lo, hi - 1e-6) is False
    assert realisable_in_box(phi_of_points(np.ones(1), hi[None]), lo, hi) is True
    assert realisable_in_box(phi_of_points(np.ones(1), hi[None] + 1e-6), lo, hi) is False


def test_many_bodies_against_one_and_many_shapes():
    bodies = np.stack([phi_of_cuboid(1.0, s * LENGTHS, np.zeros(3), np.eye(3)) for s in (0.5, 1.0, 2.0)])
    assert realisable_in_box(bodies, -LENGTHS, LENGTHS).tolist() == [True, True, False]
    assert realisable_in_ellipsoid(bodies, np.zeros(3), np.eye(3), LENGTHS).tolist() == [True, True, False]
    sizes = np.stack([LENGTHS, LENGTHS, 2 * LENGTHS])
    assert realisable_in_box(bodies, -sizes, sizes).all()
    assert realisable_in_ellipsoid(bodies, np.zeros(3), np.eye(3), sizes).all()


def test_farthest_body_in_an_ellipsoid_is_a_point_on_its_surface():
    """Maximise the centre of mass along x over all consistent bodies of unit mass with tr(P Q) >= 0."""
    row = ellipsoid_functional(CENTER, ROTATION, LENGTHS)
    phi = cvxpy.Variable(10)
    P = sum(phi[k] * PSEUDO_BASIS[k] for k in range(10))
    problem = cvxpy.Problem(cvxpy.Maximize(phi[1]), [P >> 0, phi[0] == 1.0, row @ phi >= 0])
    problem.solve(solver=cvxpy.CLARABEL)
    reach = CENTER[0] + np.linalg.norm(ROTATION[0] * LENGTHS)
    assert problem.value == pytest.approx(reach, abs=1e-6)
    assert np.linalg.eigvalsh(pseudo_inertia(phi.value))[0] == pytest.approx(0.0, abs=1e-6)


def test_bad_shapes_are_refused():
    with pytest.raises(InputError, match="expected lo <= hi on every axis"):
        box_functionals(np.ones(3), np.zeros(3))
    with pytest.raises(InputError, match=facts("0", "semi-axes", "length")):
        ellipsoid_functional(np.zeros(3), np.eye(3), [1.0, 0.0, 1.0])
    with pytest.raises(InputError, match=facts("-1", "half", "length")):
        phi_of_cuboid(1.0, [1.0, -1.0, 1.0], np.zeros(3), np.eye(3))
    with pytest.raises(InputError, match=facts("(3,)", "(2, 3)", "mass")):
        phi_of_points(np.ones(3), np.zeros((2, 3)))


UPPER = DensityInBox("upper", (-0.1, -0.15, -0.15), (1.05, 0.15, 0.15))
LOWER = DensityInBox("lower", (-0.1, -0.15, -0.15), (0.9, 0.15, 0.15))
AWAY = DensityInBox("lower", (-0.5, -0.15, -0.15), (-0.1, 0.15, 0.15))
"""Where the mass of the lower link is not: its centre lies at 0.4."""


@pytest.fixture(scope="module")
def truth() -> Robot:
    return planar_2r([Viscous()]).with_parameters({"fv1": 0.4, "fv2": 0.2})


@pytest.fixture(scope="module")
def data(truth: Robot) -> Regression:
    q, v, a = random_motion(truth, 400)
    torque = inverse_dynamics(truth, q, v, a) + 0.2 * np.random.default_rng(3).normal(size=q.shape)
    samples = Samples(time=np.arange(400) / 100.0, position=q, velocity=v, acceleration=a, torque=torque)
    light = truth.with_parameters({name: 0.1 * truth.parameters[name] for name in truth.parameters.names[:20]})
    return build_regression(light, samples)


@pytest.mark.parametrize("prior", ["none", "auto", "scaled"])
def test_densities_lie_in_the_boxes_at_no_cost_to_the_fit(truth: Robot, data: Regression, prior: str) -> None:
    base = reduce_to_base(truth)
    plain = FeasibleSDP(prior=prior, covariance="classical")
    free, held = (estimate(data, base, method) for method in (plain, replace(plain, boxes=(UPPER, LOWER))))
    inside = [
        [
            bool(realisable_in_box(phi, box.lower, box.upper, boundary=1e-6))
            for phi, box in zip(one.standard.inertials, (UPPER, LOWER), strict=True)
        ]
        for one in (free, held)
    ]
    assert inside[1] == [True, True]
    assert held.details["boxes"] == {"kept": ["upper", "lower"], "contradicted": {}}
    assert held.relative_error < 1.01 * free.relative_error
    if prior == "none":
        assert inside[0] != [True, True]  # so that the boxes have something to do


def test_a_box_that_the_data_contradict_is_left_out_and_named(truth: Robot, data: Regression) -> None:
    base = reduce_to_base(truth)
    plain = FeasibleSDP(prior="auto", covariance="classical")
    free, held = (estimate(data, base, method) for method in (plain, replace(plain, boxes=(UPPER, AWAY))))
    assert held.details["boxes"]["kept"] == ["upper"]
    (share,) = held.details["boxes"]["contradicted"].values()
    assert share is None or share > 0.5
    assert any("contradict that the mass of link 'lower'" in note for note in held.notes)
    assert held.relative_error < 1.01 * free.relative_error
    assert realisable_in_box(held.standard.inertials[0], UPPER.lower, UPPER.upper, boundary=1e-6)


def test_a_robot_without_shapes_has_no_boxes_and_a_note() -> None:
    boxes, notes = boxes_of(planar_2r())
    assert boxes == ()
    assert notes[0].startswith("Shape limits are not used: robot 'planar_2r'")
