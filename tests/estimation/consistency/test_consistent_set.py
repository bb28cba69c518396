"""The assembled set against the definitions: eigenvalues of each link's matrix, and each constraint evaluated by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency.conic_solver import matrix_from_rows
from dynid.estimation.consistency.consistent_set import ConsistentSet, onto_equalities, unit_body
from dynid.estimation.constraints.base import FixedValues, Layout, Linear, PositiveEffects
from dynid.estimation.constraints.bodies import CentreOfMassInSphere, MassBounds
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Viscous
from dynid.model.inertia import pseudo_inertia, sousa_matrix
from problems import planar_2r, random_phi

RNG = np.random.default_rng(11)
ROBOT = planar_2r([Viscous(), Coulomb()])
LAYOUT = Layout.of_parameters(ROBOT.parameters)
MATRIX = {"full": pseudo_inertia, "plain": sousa_matrix}


def point() -> np.ndarray:
    """Parameters in SI units: two consistent bodies and friction."""
    values = np.array(ROBOT.parameters.values)
    values[LAYOUT.slots] = [random_phi(RNG), random_phi(RNG)]
    values[20:] = RNG.uniform(0.1, 1.0, len(values) - 20)
    return values


@pytest.mark.parametrize("condition", ["full", "plain"])
@pytest.mark.parametrize("absolute", [False, True])
def test_slacks_of_links_are_eigenvalues_less_the_margin(condition, absolute):
    margin = 1e-3
    consistent = ConsistentSet.of(LAYOUT, condition=condition, margin=margin, absolute=absolute)  # no prior: SI units
    phi = point()
    smallest = np.linalg.eigvalsh(MATRIX[condition](phi[LAYOUT.slots]))[:, 0]
    np.testing.assert_allclose(consistent.slacks(phi), smallest - margin, atol=1e-12)
    assert consistent.contains(phi, 0.0) == bool((smallest >= margin).all())


@pytest.mark.parametrize("condition", ["full", "plain"])
def test_scaled_links_have_the_same_matrices(condition):
    """``P(phi) = T P(x) T``: a relative margin is one of ``P(x)``, an absolute one of ``P(phi)``."""
    phi, margin = point(), 0.02
    mass, length = np.array([2.0, 0.5]), np.array([0.3, 0.1])
    scale = np.ones(len(phi))
    scale[LAYOUT.slots] = [[m, *[m * one] * 3, *[m * one**2] * 6] for m, one in zip(mass, length, strict=True)]
    relative = ConsistentSet.of(LAYOUT, condition=condition, margin=margin, scale=scale)
    x = phi / scale
    scaled = MATRIX[condition](x[LAYOUT.slots])
    np.testing.assert_allclose(relative.slacks(x), np.linalg.eigvalsh(scaled)[:, 0] - margin, atol=1e-12)
    absolute = ConsistentSet.of(LAYOUT, condition=condition, margin=margin, scale=scale, absolute=True)
    side = scaled.shape[1]
    for k in range(2):
        # entries of the 4x4 matrix come in (second moments, mass), of the 6x6 in (moments, mass)
        T = np.sqrt(mass[k]) * np.array([length[k]] * 3 + [1.0] * (side - 3))
        rows = absolute.M @ x + absolute.k
        first, count, size = absolute.matrix_rows
        assert (count, size) == (2, side)
        P = matrix_from_rows(rows[first:].reshape(count, -1), side)[k]
        expected = MATRIX[condition](phi[LAYOUT.slots][k]) - margin * np.eye(side)
        np.testing.assert_allclose(np.diag(T) @ P @ np.diag(T), expected, atol=1e-12)


def test_constraints_stand_before_links_in_the_order_of_cones():
    constraints = (
        CentreOfMassInSphere(2, (0.1, 0.0, 0.0), 0.2),
        MassBounds(1, lower=0.5, upper=4.0),
        FixedValues({"m2": 1.5}),
        PositiveEffects(),
    )
    consistent = ConsistentSet.of(LAYOUT, constraints=constraints, margin=0.0)
    kinds = [kind for kind, _ in consistent.cones]
    assert kinds == sorted(kinds, key=["zero", "nonnegative", "second_order", "semidefinite"].index)
    assert consistent.constrained
    phi = point()
    slack = dict(zip(consistent.labels, consistent.slacks(phi), strict=True))
    fixed = next(label for label in slack if "m2" in label)
    assert slack[fixed] == pytest.approx(-abs(phi[LAYOUT.index("m2")] - 1.5))
    masses = {label: value for label, value in slack.items() if ">= 0.5" in label or "<= 4" in label}
    assert sorted(masses.values()) == pytest.approx(sorted([phi[0] - 0.5, 4.0 - phi[0]]))
    sphere = next(value for label, value in slack.items() if "sphere" in label)
    distance = float(np.linalg.norm(phi[11:14] - phi[10] * np.array([0.1, 0.0, 0.0])))
    # m r - |m c - m centre|, over the longest row of the cone, which holds the coefficients 1 and 0.1
    assert sphere == pytest.approx((0.2 * phi[10] - distance) / np.sqrt(1.01))
    inward = consistent.inward
    for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
        if kind == "zero":
            assert (inward[first : first + size] == 0.0).all()
        elif kind == "nonnegative":
            assert (inward[first : first + size] == 1.0).all()
        elif kind == "second_order":
            assert inward[first] == 1.0
            assert (inward[first + 1 : first + size] == 0.0).all()
        else:
            assert inward[first : first + 10].sum() == 4.0


def test_linear_rows_and_single_bounds_say_what_the_constraints_say():
    constraints = (
        MassBounds(1, lower=0.5, upper=4.0),
        Linear({"m1": 1.0, "m2": 2.0}, lower=1.0),
        FixedValues({"mx1": 0.25}),
        PositiveEffects(),
    )
    consistent = ConsistentSet.of(LAYOUT, constraints=constraints)
    found = consistent.linear
    phi = point()
    np.testing.assert_allclose(found.A @ phi - found.a, [phi[1] - 0.25], atol=1e-14)
    np.testing.assert_allclose(found.G @ phi + found.g, [(phi[0] + 2.0 * phi[10] - 1.0) / np.sqrt(5.0)], rtol=1e-12)
    bounds = set(zip(found.bounded.tolist(), found.slope.tolist(), found.offset.tolist(), strict=True))
    assert {(0, 1.0, -0.5), (0, -1.0, 4.0)} <= bounds
    effects = set(LAYOUT.with_symbol(["fv", "fc"]).tolist())
    assert {column for column, slope, offset in bounds if (slope, offset) == (1.0, 0.0)} == effects
    rows = consistent.M @ phi + consistent.k
    np.testing.assert_allclose(rows[found.bound_at], found.slope * phi[found.bounded] + found.offset)
    np.testing.assert_allclose(rows[found.inequality_at], found.G @ phi + found.g)
    np.testing.assert_allclose(rows[found.equality_at], found.A @ phi - found.a, atol=1e-14)
    assert sorted(found.lower_bounded) == sorted(effects | {0})  # an upper bound and a bound of a sum are none


def test_rows_of_constraints_are_those_of_si_units_at_any_scale():
    """A scaled row is the row in SI units over the length of its coefficients: its sign, and where it is zero, are the same."""
    phi, scale = point(), RNG.uniform(0.1, 10.0, len(LAYOUT))
    constraints = (MassBounds(1, lower=0.5), Linear({"m1": 1.0, "m2": 2.0}, lower=1.0), FixedValues({"mx1": 0.25}))
    found = ConsistentSet.of(LAYOUT, constraints=constraints, scale=scale, links=[])
    slacks = dict(zip([kind for kind, _ in found.cones], found.slacks(phi / scale), strict=False))
    assert slacks["zero"] == pytest.approx(-abs(phi[1] - 0.25) / scale[1])
    rows = found.linear
    assert rows.slope[0] * (phi / scale)[0] + rows.offset[0] == pytest.approx((phi[0] - 0.5) / scale[0])
    length = np.hypot(scale[0], 2.0 * scale[10])
    assert rows.G @ (phi / scale) + rows.g == pytest.approx([(phi[0] + 2.0 * phi[10] - 1.0) / length])


def test_a_row_without_coefficients_stays_as_it_is():
    found = ConsistentSet.of(LAYOUT, constraints=[Linear({"m1": 0.0}, lower=-3.0)], links=[])
    assert found.slacks(point()) == pytest.approx([3.0])


def test_bounds_of_single_values_are_no_further_constraint():
    for constraint, more in (
        (PositiveEffects(), False),
        (MassBounds(1, lower=0.5, upper=4.0), False),
        (FixedValues({"mx1": 0.25}), True),
        (Linear({"m1": 1.0, "m2": 2.0}, lower=1.0), True),
        (CentreOfMassInSphere(2, (0.1, 0.0, 0.0), 0.2), True),
    ):
        assert ConsistentSet.of(LAYOUT, constraints=[constraint]).constrained is more, constraint


def test_an_absolute_margin_holds_for_strict_rows_too():
    """In SI units: effects are strictly positive, a bound of a mass is as it is given."""
    constraints = (PositiveEffects(), MassBounds(1, lower=0.5))
    rows = [part for constraint in constraints for part in constraint.rows(LAYOUT)]
    found = ConsistentSet.of(LAYOUT, constraints=constraints, margin=0.01, absolute=True)
    expected = np.concatenate([part.offset - (0.01 if part.strict else 0.0) for part in rows])
    np.testing.assert_allclose(found.k[: found.first_matrix_row], expected)
    assert {part.strict for part in rows} == {True, False}


def test_a_point_outside_is_pushed_just_inside():
    for condition in ("full", "plain"):
        consistent = ConsistentSet.of(LAYOUT, condition=condition, margin=1e-4, constraints=(PositiveEffects(),))
        phi = point()
        inside, moved = consistent.pushed(phi)
        assert consistent.contains(phi)
        assert moved == 0.0
        np.testing.assert_array_equal(inside, phi)
        phi[4] = -0.5  # Ixx1
        phi[20] = -0.3
        assert not consistent.contains(phi)
        inside, moved = consistent.pushed(phi)
        assert consistent.contains(inside)
        assert inside[20] == 0.0
        link = consistent.labels.index("consistency of link 1")
        missing = -consistent.slacks(phi)[link]
        assert consistent.slacks(inside)[link] == pytest.approx(0.0, abs=1e-13)
        np.testing.assert_allclose((inside - phi)[:10], missing * unit_body(condition), rtol=1e-9)
        np.testing.assert_array_equal(inside[10:20], phi[10:20])
        assert moved == pytest.approx(max(missing * unit_body(condition).max(), 0.3))


def test_a_value_below_its_bound_is_pushed_onto_it():
    consistent = ConsistentSet.of(
        LAYOUT, constraints=(MassBounds(1, lower=2.0), MassBounds(2, lower=0.001)), margin=0.0, links=[]
    )
    phi = point()
    phi[0], phi[10] = 0.5, 1.5
    inside, moved = consistent.pushed(phi)
    assert (inside[0], inside[10], moved) == (2.0, 1.5, 1.5)


def test_only_the_links_asked_for_must_be_consistent():
    consistent = ConsistentSet.of(LAYOUT, links=[1])
    phi = point()
    phi[0] = -1.0
    assert consistent.contains(phi)
    assert consistent.labels == ("consistency of link 2",)
    assert consistent.link_rows.tolist() == [1]
    nothing = ConsistentSet.of(LAYOUT, links=[], constraints=(PositiveEffects(),))
    assert nothing.matrix_rows == (len(LAYOUT.with_symbol(["fv", "fc"])), 0, 4)
    assert not nothing.constrained
    assert nothing.contains(phi)


def test_the_unit_body_has_the_identity_and_size_counts_traces():
    for condition, side in (("full", 4), ("plain", 6)):
        np.testing.assert_allclose(MATRIX[condition](unit_body(condition)), np.eye(side), atol=1e-15)
        consistent = ConsistentSet.of(LAYOUT, condition=condition)
        phi = point()
        traces = np.trace(MATRIX[condition](phi[LAYOUT.slots]), axis1=1, axis2=2)
        assert consistent.size(phi) == pytest.approx(traces.sum())
        assert consistent.n == len(LAYOUT)


def test_equalities_hold_to_a_tolerance_of_their_own():
    consistent = ConsistentSet.of(LAYOUT, constraints=(FixedValues({"fv1": 0.5}),))
    phi = point()
    for error, holds in ((0.0, True), (0.9e-9, True), (1.1e-9, False)):
        phi[LAYOUT.index("fv1")] = 0.5 + error
        assert consistent.contains(phi) is holds
    assert consistent.contains(phi, tolerance=1e-6)
    phi[LAYOUT.slots] = 0.0  # on the boundary, less the margin
    assert not consistent.contains(phi)
    assert consistent.contains(phi, tolerance=1.001e-6)  # the margin, as documented
    assert not consistent.contains(phi, tolerance=0.999e-6)


def test_wrong_options_are_refused():
    with pytest.raises(UnknownNameError, match="consistency condition"):
        ConsistentSet.of(LAYOUT, condition="half")
    for margin in (-1e-9, np.nan, np.inf):
        with pytest.raises(InputError, match="margin is"):
            ConsistentSet.of(LAYOUT, margin=margin)
    assert ConsistentSet.of(LAYOUT, margin=0.0).margin == 0.0


def test_the_nearest_point_of_a_plane():
    E, x = RNG.normal(size=(3, 8)), RNG.normal(size=8)
    e = E @ RNG.normal(size=8)
    found = onto_equalities(E, e, x)
    np.testing.assert_allclose(E @ found, e, atol=1e-13)
    np.testing.assert_allclose(found, x + np.linalg.pinv(E) @ (e - E @ x), atol=1e-12)
