"""Base parameters from numbers: known small robots, other priorities, published groupings, printed expressions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import random_states, random_states_within_limits
from dynid.dynamics.regressors import energy_regressor, torque_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.io.demo import demo_robot
from dynid.io.robots.read import read_robot
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.inertia import change_of_frame
from dynid.model.joint import Joint
from dynid.model.robot import make_robot
from dynid.regression.base import BaseReduction, _usual_lengths, find_base, reduce_to_base
from dynid.regression.channels import independent_columns
from messages import facts
from problems import planar_2r, random_motion, random_phi, random_pose, random_tree

ALL_EFFECTS = (Viscous(), Coulomb(), Offset(), Armature())


def stacked(robot, seed=1234, n=60):
    q, v, a = random_motion(robot, n, seed)
    return torque_regressor(robot, q, v, a).reshape(-1, len(robot.parameters))


def pendulum(gravity=(0.0, 0.0, -9.81), effects=()):
    swing = Joint("swing", "revolute", -1, np.eye(4), np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]))
    return make_robot("pendulum", [swing], [random_phi(np.random.default_rng(0))], gravity=gravity, effects=effects)


# Known cases ----------------------------------------------------------------------------------------


def test_pendulum():
    base = reduce_to_base(pendulum())
    assert base.names == ("Iyy1", "mx1", "mz1")
    assert base.expressions() == ("Iyy1", "mx1", "mz1")
    assert reduce_to_base(pendulum(gravity=(0.0, 0.0, 0.0))).names == ("Iyy1",)
    assert reduce_to_base(pendulum(gravity=(0.0, -9.81, 0.0))).names == ("Iyy1",)


def test_pendulum_with_a_rotor_and_friction():
    base = reduce_to_base(pendulum(effects=ALL_EFFECTS))
    assert base.expressions() == ("Iyy1 + Ia1", "mx1", "mz1", "fv1", "fc1", "fo1")


def test_planar_arm():
    """Two links in a plane, l = 1: ``Iyy1 + m2, mx1 + m2, mz1, Iyy2, mx2, mz2``."""
    base = reduce_to_base(planar_2r())
    assert base.expressions() == ("Iyy1 + m2", "mx1 + m2", "mz1", "Iyy2", "mx2", "mz2")


def test_slider():
    axis = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    robot = make_robot("slider", [Joint("s", "prismatic", -1, np.eye(4), axis)], [random_phi(np.random.default_rng(1))])
    assert reduce_to_base(robot).expressions() == ("m1",)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((), 10),
        (("revolute",), 17),
        (("continuous", "revolute", "revolute"), 31),
        (("prismatic",), 14),
        (("revolute", "prismatic", "revolute"), 28),
    ],
)
def test_floating_base_count(kinds, expected):
    """All ten of the base, seven more per rotating and four more per sliding joint."""
    rng = np.random.default_rng(2)
    joints = [Joint("base", "floating", -1, np.eye(4), np.zeros(6))]
    for i, kind in enumerate(kinds):
        screw = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0] if kind == "prismatic" else [0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        joints.append(Joint(f"j{i}", kind, i, random_pose(rng), screw))
    robot = make_robot("floating", joints, [random_phi(rng) for _ in joints])
    base = reduce_to_base(robot)
    assert base.n_base == expected
    np.testing.assert_array_equal(base.K[:10, :10], np.eye(10)[base.independent[:10]])


# Laws -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "floating"), [(40, False), (41, False), (42, False), (43, True)])
def test_kept_columns_give_all_columns_in_fresh_states(seed, floating):
    robot = random_tree(seed, 7, floating, effects=ALL_EFFECTS)
    base = reduce_to_base(robot)
    W = stacked(robot)
    np.testing.assert_allclose(W[:, base.independent] @ base.K, W, rtol=0, atol=1e-9 * np.abs(W).max())
    assert np.linalg.matrix_rank(W[:, base.independent] / np.linalg.norm(W[:, base.independent], axis=0)) == base.n_base
    assert base.n_base < base.n_parameters
    np.testing.assert_array_equal(base.K @ base.lift, np.eye(base.n_base))
    np.testing.assert_array_equal(W @ base.lift, W[:, base.independent])
    assert sorted([*base.independent, *base.dependent]) == list(range(base.n_parameters))


def test_torque_depends_on_base_values_alone():
    robot = random_tree(44, 6)
    base = reduce_to_base(robot)
    W = stacked(robot)
    phi = robot.parameters.values
    beta = base.base_values(robot.parameters)
    np.testing.assert_array_equal(beta, base.base_values(phi))
    np.testing.assert_allclose(W[:, base.independent] @ beta, W @ phi, atol=1e-10)
    hidden = np.linalg.svd(base.K)[2][base.n_base :]  # what no motion shows
    other = phi + 10.0 * np.random.default_rng(0).normal(size=len(hidden)) @ hidden
    np.testing.assert_allclose(W @ other, W @ phi, atol=1e-9)


@pytest.mark.parametrize("seed", [45, 46])
def test_seed_of_the_random_states_does_not_matter(seed):
    robot = random_tree(seed, 6, effects=ALL_EFFECTS)
    one, other = reduce_to_base(robot), reduce_to_base(robot, seed=99)
    np.testing.assert_array_equal(one.independent, other.independent)
    np.testing.assert_allclose(one.K, other.K, rtol=0, atol=1e-9)
    assert one.clarity[0] > 1e-3
    assert one.clarity[1] < 1e-12


def test_units_do_not_matter():
    robot = random_tree(47, 6, effects=ALL_EFFECTS)
    base = reduce_to_base(robot)
    units = 10.0 ** np.random.default_rng(0).uniform(-3.0, 3.0, len(robot.parameters))
    scaled = independent_columns(stacked(robot) * units, robot.parameters.grouping())
    np.testing.assert_array_equal(scaled.kept, base.independent)
    np.testing.assert_allclose(scaled.K / units * units[scaled.kept, None], base.K, rtol=0, atol=1e-9)


def test_frames_do_not_matter():
    """Link frames moved and turned: the same count, and the same hidden combinations."""
    robot = random_tree(48, 6)
    rng = np.random.default_rng(5)
    moves = [random_pose(rng) for _ in robot.joints]
    blocks = np.zeros((60, 60))
    joints, inertials = [], []
    for i, (joint, move) in enumerate(zip(robot.joints, moves, strict=True)):
        inverse = np.linalg.inv(move)
        above = np.linalg.inv(moves[joint.parent]) if joint.parent >= 0 else np.eye(4)
        R, p = inverse[:3, :3], inverse[:3, 3]
        axis = R @ joint.screw[3:]
        screw = np.concatenate([R @ joint.screw[:3] + np.cross(p, axis), axis])
        joints.append(Joint(joint.name, joint.kind, joint.parent, above @ joint.placement @ move, screw))
        block = change_of_frame(R, p)
        blocks[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = block
        inertials.append(block @ robot.parameters.inertials[i])
    moved = make_robot("moved", joints, inertials, gravity=robot.gravity)
    one, other = reduce_to_base(robot), reduce_to_base(moved)
    assert other.n_base == one.n_base
    in_old_frames = other.K @ blocks
    together = np.vstack([one.K, in_old_frames])
    assert np.linalg.matrix_rank(together, tol=1e-9 * np.linalg.norm(together)) == one.n_base


@pytest.mark.parametrize(("seed", "effects"), [(49, ()), (50, ()), (51, (Armature(),))])
def test_energy_shows_the_same_base_parameters(seed, effects):
    robot = random_tree(seed, 5, effects=effects)
    base = reduce_to_base(robot)
    q, v, _ = random_motion(robot, 400, seed)
    h = energy_regressor(robot, q, v)
    if effects:
        h = np.hstack([h, 0.5 * v**2])
    found = independent_columns(h[1:] - h[:-1], robot.parameters.grouping())
    np.testing.assert_array_equal(found.kept, base.independent)
    np.testing.assert_allclose(found.K, base.K, rtol=0, atol=1e-9)


# Other priorities ---------------------------------------------------------------------------------------


def test_default_order_is_base_to_tip_with_inertia_before_mass():
    robot = random_tree(52, 4, effects=ALL_EFFECTS)
    base = reduce_to_base(robot)
    place = {
        symbol: i
        for i, symbol in enumerate(["Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m", "Ia", "fv", "fc", "fo"])
    }
    keys = [(robot.parameters.columns[i].number, place[robot.parameters.columns[i].symbol]) for i in base.independent]
    assert keys == sorted(keys)


def test_preferred_parameters_come_first():
    robot = planar_2r(effects=(Armature(),))
    plain = reduce_to_base(robot)
    assert plain.expression(plain.index("mx1")) == "mx1 + m2"
    chosen = reduce_to_base(robot, order=["m2", "Ia1", "m1"])
    assert chosen.names[:2] == ("m2", "Ia1")
    assert "m1" not in chosen.names  # preferred, but no motion shows it
    assert chosen.n_base == plain.n_base
    assert chosen.expression(chosen.index("m2")) == "m2 + mx1"
    assert chosen.expression(chosen.index("Ia1")) == "Ia1 - mx1 + Iyy1"
    W = stacked(robot)
    np.testing.assert_allclose(W[:, chosen.independent] @ chosen.K, W, rtol=0, atol=1e-9 * np.abs(W).max())
    # one grouping in terms of the other
    np.testing.assert_allclose(chosen.K, (chosen.K @ plain.lift) @ plain.K, atol=1e-9)


def test_pinocchios_order_on_request():
    robot = random_tree(53, 5)
    chosen = reduce_to_base(robot, order=robot.parameters.names)
    assert list(chosen.independent) == sorted(chosen.independent)
    assert chosen.n_base == reduce_to_base(robot).n_base


def test_unknown_preference_is_refused():
    with pytest.raises(UnknownNameError, match="Ixx9"):
        reduce_to_base(planar_2r(), order=["Ixx9"])


# Published groupings --------------------------------------------------------------------------------------


def test_published_matrix_is_taken_with_its_leading_columns():
    robot = planar_2r()
    found = reduce_to_base(robot)
    given = BaseReduction.from_matrix(found.K, robot.parameters.names)
    assert given.names == found.names
    np.testing.assert_array_equal(given.lift, found.lift)


def test_published_matrix_without_leading_columns():
    robot = planar_2r()
    found = reduce_to_base(robot)
    mixing = np.random.default_rng(6).normal(size=(6, 6))
    given = BaseReduction.from_matrix(mixing @ found.K, robot.parameters.names)
    assert given.independent is None
    assert given.names == ("beta1", "beta2", "beta3", "beta4", "beta5", "beta6")
    W = stacked(robot)
    np.testing.assert_allclose(W @ given.lift @ given.K, W, atol=1e-9)
    np.testing.assert_allclose(given.K @ given.lift, np.eye(6), atol=1e-12)
    with pytest.raises(InputError, match="no choice of columns"):
        _ = given.dependent


def test_bad_matrices_are_refused():
    with pytest.raises(InputError, match="K has 2 rows but rank 1"):
        BaseReduction.from_matrix([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]], ["a", "b", "c"])
    with pytest.raises(InputError, match=facts("(1, 3)", "(any, 2)")):
        BaseReduction.from_matrix([[1.0, 2.0, 0.0]], ["a", "b"])
    with pytest.raises(InputError, match="parameter name 'a' appears 2 times"):
        BaseReduction.from_matrix([[1.0, 2.0]], ["a", "a"])


def test_base_parameter_by_name():
    base = reduce_to_base(planar_2r())
    assert base.index("Iyy2") == 3
    with pytest.raises(UnknownNameError, match="m2"):
        base.index("m2")


# Printing ---------------------------------------------------------------------------------------------------


def test_expressions_are_rounded_for_the_eye_only():
    base = BaseReduction.from_matrix(
        [[1.0, -0.123456789, 2.0, -1.0, 0.0], [0.0, 1e-13, 0.0, 0.5, 1.0]], ["Ixx1", "m2", "mx2", "my2", "fv1"]
    )
    assert base.expression(0) == "Ixx1 - 0.123457 m2 + 2 mx2 - my2"
    assert base.expression(0, digits=2) == "Ixx1 - 0.12 m2 + 2 mx2 - my2"
    assert base.expression(1) == "fv1 + 0.5 my2"
    assert base.K[0, 1] == -0.123456789
    assert base.as_list()[1] == {"name": "fv1", "expression": "fv1 + 0.5 my2"}


def test_expressions_give_K_back():
    robot = random_tree(54, 5, effects=ALL_EFFECTS)
    base = reduce_to_base(robot)
    read = np.zeros_like(base.K)
    for row, text in enumerate(base.expressions(digits=15)):
        sign, factor = 1.0, 1.0
        for word in text.split():
            if word in ("+", "-"):
                sign = 1.0 if word == "+" else -1.0
            elif word in robot.parameters.names:
                read[row, robot.parameters.index(word)] = sign * factor
                sign, factor = 1.0, 1.0
            else:
                factor = float(word)
    np.testing.assert_allclose(read, base.K, rtol=1e-12, atol=1e-12)


# Random states -------------------------------------------------------------------------------------------------


def test_random_states_have_fast_and_slow_speeds():
    robot = random_tree(55, 5, floating=True)
    q, v, a, load = random_states(robot, 200)
    assert (q.shape, v.shape, a.shape, load.shape) == ((200, 11), (200, 10), (200, 10), (200, 10))
    np.testing.assert_allclose(np.linalg.norm(q[:, 3:7], axis=1), 1.0)
    assert np.abs(v[::2]).min() >= 0.5
    assert 1e-4 < np.abs(v[1::2]).min() < 1e-2
    assert ((v > 0.0).any(axis=0) & (v < 0.0).any(axis=0)).all()


def test_random_states_within_limits():
    robot = random_tree(56, 6)
    q, v, a = random_states_within_limits(robot, 500)
    low, high = robot.position_limits.T
    bounded = np.isfinite(low)
    assert bounded.sum() == 4
    assert (q >= np.where(bounded, low, -np.pi)).all()
    assert (q <= np.where(bounded, high, np.pi)).all()
    assert np.abs(v).max() <= 3.0
    assert np.abs(a).max() <= 20.0
    assert (q.max(axis=0)[bounded] > 1.8).all()
    assert (np.abs(a).max(axis=0) > 15.0).all()


@pytest.mark.parametrize("right_angle", [1.5708, 1.570796])
def test_rounded_right_angles_add_no_base_parameters(right_angle, tmp_path):
    """What rests on a rounding of the description is no parameter that a motion could show."""

    def arm(angle):
        path = tmp_path / f"arm_{angle}.toml"
        joints = "".join(
            f'[[joint]]\nname = "j{k}"\ntype = "{kind}"\na = {a}\nalpha = {alpha}\nd = {d}\ntheta_offset = 0.0\n'
            for k, (kind, a, alpha, d) in enumerate(
                (("revolute", 0.0, -angle, 0.3), ("revolute", 0.0, angle, 0.0), ("prismatic", 0.0, angle, 0.0),
                 ("revolute", 0.08, -angle, 0.4), ("revolute", 0.0, angle, 0.1))
            )
        )  # fmt: skip
        path.write_text(f'name = "arm"\ngravity = [0.0, 0.0, -9.81]\ndh_convention = "modified"\n{joints}', encoding="utf-8")
        return read_robot(path)

    exact, rounded = reduce_to_base(arm(np.pi / 2.0)), reduce_to_base(arm(right_angle))
    assert rounded.names == exact.names
    assert exact.note == ""
    assert "1.5708" in rounded.note
    np.testing.assert_allclose(rounded.K, exact.K, atol=1e-3)
    literal = reduce_to_base(arm(right_angle), tolerance=1e-9)
    assert literal.n_base > exact.n_base


def test_text_leaves_out_what_its_digits_do_not_show():
    """Coefficients below half a unit of the second place behind the last digit are round-off."""
    base = BaseReduction.from_matrix(np.array([[1.0, 7e-9, 3e-9], [0.0, 1.0, 0.0]]), ["m1", "mx1", "my1"])
    assert base.expressions() == ("m1 + 7e-09 mx1", "mx1")
    assert base.expressions(3) == ("m1", "mx1")
    assert base.expression(0, 7) == "m1 + 7e-09 mx1 + 3e-09 my1"


def test_a_note_tells_where_dependence_was_not_exact():
    base = reduce_to_base(planar_2r())
    assert replace(base, clarity=(1.0, 1e-9)).note == ""
    assert "less than 1e-08 of their torque" in replace(base, clarity=(1.0, 1.5e-9)).note
    assert "less than 1e-04 of their torque" in replace(base, clarity=(1.0, 2e-5)).note


def test_a_published_matrix_is_clear_and_without_a_measure_of_torque():
    given = BaseReduction.from_matrix([[1.0, 0.5]], ["Ixx1", "m2"])
    assert (given.clarity, given.gram, given.note) == ((1.0, 0.0), None, "")


def test_a_reduction_is_found_once_and_told_without_its_gram():
    base = reduce_to_base(planar_2r())
    assert reduce_to_base(planar_2r()) is base
    assert reduce_to_base(planar_2r(), seed=1) is not base
    assert "gram" not in repr(base)


def test_the_gram_is_that_of_one_row():
    robot = random_tree(51, 4, effects=ALL_EFFECTS)
    base = reduce_to_base(robot)
    q, v, a, load = random_states(robot, 4000, 7)
    rows = torque_regressor(robot, q, v, a, load).reshape(-1, len(robot.parameters))[:, base.independent]
    expected = rows.T @ rows / len(rows)
    np.testing.assert_array_less(np.abs(np.log(np.diag(base.gram) / np.diag(expected))), np.log(3.0))


def test_the_base_regressor_is_a_choice_of_columns_where_it_can_be():
    robot = random_tree(52, 4)
    base = reduce_to_base(robot)
    W = stacked(robot)
    np.testing.assert_array_equal(base.regressor(W), W @ base.lift)
    W[:, base.dependent] = np.nan  # what is not chosen is not looked at
    np.testing.assert_array_equal(base.regressor(W), W[:, base.independent])
    mixed = BaseReduction.from_matrix(
        np.random.default_rng(8).normal(size=(base.n_base, base.n_base)) @ base.K, base.parameter_names
    )
    V = stacked(robot)
    np.testing.assert_array_equal(mixed.regressor(V), V @ mixed.lift)
    scaled = replace(base, lift=2.0 * base.lift)
    np.testing.assert_array_equal(scaled.regressor(V), 2.0 * V[:, base.independent])


@pytest.mark.parametrize("K", [[[0.5, 0.3]], [[0.4, 2.0, 0.0], [0.6, 0.0, 2.0]], [[2.0, 0.0], [0.0, 1.0]]])
def test_columns_that_are_not_exactly_one_are_no_leading_ones(K):
    assert BaseReduction.from_matrix(K, ["a", "b", "c"][: len(K[0])]).independent is None


def test_the_usual_length_of_a_column_is_the_longest_of_its_unit():
    robot = planar_2r([Viscous()])
    n = len(robot.parameters)
    lengths = np.zeros(n)
    lengths[:20] = 0.1 * np.array([[2.0, 5.0, 1.0, 1.0, 7.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0] * 10]).ravel()
    found = _usual_lengths(robot, np.diag(lengths))
    expected = np.array([0.2, *[0.5] * 3, *[0.7] * 6])
    np.testing.assert_allclose(found, [*expected, *expected, *np.zeros(n - 20)])


def test_a_robot_whose_base_parameters_would_not_fit_is_refused_with_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = demo_robot(effects="viscous")
    monkeypatch.setenv("DYNID_MEMORY_GB", "0.0001")
    with pytest.raises(InputError, match=r"with 7 joints needs 0\.0007\d* GiB of memory, expected at most 0\.0001 GiB"):
        find_base(robot)
