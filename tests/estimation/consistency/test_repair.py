"""Repair of bodies that motion does not decide: consistent, and of a size that fits the robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency import repair as module
from dynid.estimation.consistency.feasibility import feasibility
from dynid.estimation.consistency.repair import Repair, repair
from dynid.estimation.constraints.base import FixedValues
from dynid.estimation.constraints.bodies import MassBounds, TotalMass
from dynid.model.inertia import consistency, is_consistent, mass_com_inertia, phi_from_mass_com_inertia
from dynid.model.joint import MergedLink
from dynid.model.links import links_of
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from problems import demo_arm, random_tree


def with_ground_link(phi: np.ndarray) -> Robot:
    return replace(demo_arm(), merged=(MergedLink("pedestal", -1, np.eye(4), phi),))


def mended(found: Repair, link: str) -> np.ndarray:
    assert found.feasible_after
    (phi,) = [one.phi for one in links_of(found.robot) if one.name == link]
    return phi


def size_of(robot: Robot) -> float:
    """Longest chain of joints, or the largest radius of gyration of a link about its frame."""
    reach: list[float] = []
    for joint in robot.joints:
        reach.append((reach[joint.parent] if joint.parent >= 0 else 0.0) + np.linalg.norm(joint.placement[:3, 3]))
    phi = robot.parameters.inertials
    return max(*reach, *np.sqrt(phi[:, [4, 6, 9]].sum(axis=1) / (2.0 * phi[:, 0])))


def test_a_ground_link_of_negative_mass_gets_that_mass_with_the_sign_turned():
    com, tensor = np.array([0.02, -0.01, 0.1]), np.diag([0.05, 0.06, 0.04])
    robot = with_ground_link(phi_from_mass_com_inertia(-5.0, com, tensor))
    found = repair(robot)
    mass, centre, inertia = mass_com_inertia(mended(found, "pedestal"))
    assert mass == pytest.approx(5.0, rel=1e-4)
    np.testing.assert_allclose(centre, com, atol=1e-4)
    np.testing.assert_allclose(inertia, tensor, atol=1e-4)
    assert found.base_kept
    assert found.torque_change == 0.0
    assert found.changed == ("pedestal",)
    assert found.notes == ("link 'pedestal' had a mass of -5 kg, has 5 kg now",)


def test_inertia_of_a_house_is_brought_down_to_the_size_of_the_robot():
    robot = with_ground_link(phi_from_mass_com_inertia(-5.0, np.zeros(3), np.diag([300.0, 300.0, 900.0])))
    phi = mended(repair(robot), "pedestal")
    gyration = np.sqrt(phi[[4, 6, 9]].sum() / (2.0 * phi[0]))
    assert gyration <= size_of(robot) * (1.0 + 1e-6)
    assert phi[0] <= (robot.parameters.inertials[:, 0].sum() + 5.0) * (1.0 + 1e-6)


def test_a_ground_link_without_mass_gets_one_of_the_usual_radius_of_gyration():
    robot = with_ground_link(np.array([0.0, 0.0, 0.0, 0.0, 0.02, 0.0, 0.03, 0.0, 0.0, 0.04]))
    phi = mended(repair(robot), "pedestal")
    mass, _, inertia = mass_com_inertia(phi)
    good = robot.parameters.inertials
    usual = np.median(consistency(good).second_moments.sum(axis=1) / good[:, 0])
    assert 0.5 * np.trace(inertia) / mass == pytest.approx(usual, rel=1e-3)


def test_a_mass_that_rounding_left_is_none():
    """Least squares of a robot without nominal masses: first moments that motion shows, with masses of 1e-14 kg."""
    robot = demo_arm()
    lost = {f"m{k}": sign * 1e-14 for k, sign in ((1, 1.0), (2, -1.0), (3, 1.0))}
    found = repair(robot.with_parameters(lost))
    assert found.feasible_after
    assert found.torque_change < 0.05


def test_what_motion_shows_stays_though_the_mass_turns_positive():
    """The first link of an arm with an upright first axis: only Izz shows, and that is kept."""
    robot = demo_arm()
    before = robot.parameters
    robot = robot.with_parameters({"m1": -before["m1"], "mx1": -before["mx1"], "my1": -before["my1"], "mz1": -before["mz1"]})
    found = repair(robot)
    assert found.feasible_after
    assert found.base_kept
    base = reduce_to_base(robot.with_effects(()))
    rigid = [one.with_effects(()).parameters for one in (robot, found.robot)]
    assert base.base_values(rigid[1]) == pytest.approx(base.base_values(rigid[0]), rel=1e-9, abs=1e-9)
    assert found.robot.parameters["m1"] == pytest.approx(before["m1"], rel=0.2)


def test_nearly_the_nearest_torque_with_masses_that_a_robot_has(monkeypatch: pytest.MonkeyPatch):
    """A moving link of negative mass: the nearest torque of all may take tons; a little further on are bodies."""
    robot = random_tree(2, 4)
    total = np.abs(robot.parameters.inertials[:, 0]).sum()
    values = robot.parameters.values.copy()
    values[20:30] = -values[20:30]
    robot = robot.with_parameters(robot.parameters.with_values(values))
    found = repair(robot)
    assert found.feasible_after
    assert not found.base_kept
    assert found.robot.parameters.inertials[:, 0].max() <= total * (1.0 + 1e-6)
    monkeypatch.setattr(module, "NEAR", 1.0)
    nearest = repair(robot)
    assert nearest.torque_change <= found.torque_change * (1.0 + 1e-6)
    assert found.torque_change <= 1.3 * nearest.torque_change

    def change(one: Repair) -> float:
        return float(np.abs(one.robot.parameters.values - values).sum())

    assert change(found) < change(nearest)


# Further constraints ------------------------------------------------------------------------------------


def test_a_model_is_moved_into_its_constraints_and_moves_as_before():
    robot = demo_arm()
    known = [TotalMass(upper=18.0), MassBounds("hand", upper=0.6)]
    found = repair(robot, constraints=known)
    assert not found.feasible_before
    assert set(found.violated) == {"total mass <= 18", "mass of link hand <= 0.6"}
    assert found.inconsistent == ()
    assert found.feasible_after
    assert found.base_kept
    masses = found.robot.parameters.inertials[:, 0]
    assert masses.sum() <= 18.0 + 1e-5
    assert masses[-1] <= 0.6 + 1e-6
    same = repair(found.robot, constraints=[TotalMass(upper=18.1)])
    assert (same.feasible_before, same.changed) == (True, ())


def test_constraints_are_those_of_whole_bodies():
    """Links that are fixed to others count with the body they belong to, as they do in an identification."""
    robot = demo_arm().only(["shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow"])
    assert robot.merged
    whole = float(robot.parameters["m4"])
    found = repair(robot, constraints=[MassBounds(4, lower=1.05 * whole)])
    assert found.feasible_after
    assert found.robot.parameters["m4"] >= (1.05 - 1e-5) * whole
    assert is_consistent(found.robot.parameters.inertials).all()


def test_constraints_that_no_model_keeps_are_named():
    with pytest.raises(InputError, match=r"no consistent model was found.*mass of link hand"):
        repair(demo_arm(), constraints=[MassBounds("hand", upper=0.5), MassBounds("hand", lower=0.6)])
    with pytest.raises(UnknownNameError, match="'Ia7'"):
        repair(demo_arm(), constraints=[FixedValues({"Ia7": 0.0})])


def broken(seed: int, link: int, factor: float, n_joints: int = 5) -> Robot:
    robot = random_tree(seed, n_joints)
    name = f"Ixx{link}"
    return robot.with_parameters({name: factor * robot.parameters[name]})


def test_a_consistent_robot_is_left_alone():
    robot = random_tree(0, 4)
    found = repair(robot)
    assert found.robot is robot
    assert (found.feasible_before, found.feasible_after, found.base_kept, found.torque_change) == (True, True, True, 0.0)


def test_repair_keeps_the_base_parameters_where_it_can():
    robot = broken(0, 1, 0.1)
    found = repair(robot)
    assert not found.feasible_before
    assert found.feasible_after
    assert found.base_kept
    assert found.torque_change < 1e-12
    assert found.changed == found.inconsistent == ("link1",)
    base = reduce_to_base(robot)
    assert base.base_values(found.robot.parameters) == pytest.approx(base.base_values(robot.parameters), rel=1e-9, abs=1e-10)


def test_repair_changes_other_links_rather_than_the_motion():
    found = repair(broken(3, 4, 3.0))
    assert found.base_kept
    assert found.inconsistent == ("link4",)
    assert len(found.changed) > 1


def test_repair_is_nearest_in_torque_where_no_consistent_robot_moves_alike():
    robot = broken(2, 3, 0.1)
    base = reduce_to_base(robot)
    assert not feasibility(base, base.base_values(robot.parameters), prior=robot.parameters).feasible
    found = repair(robot)
    assert found.feasible_after
    assert not found.base_kept
    assert 0.0 < found.torque_change < 0.05
    # no other way to mend it moves the torque less: clipping the one link does not
    clipped = robot.parameters.values.copy()
    eigenvalues, vectors = np.linalg.eigh(_pseudo(clipped[20:30]))
    from dynid.model.inertia import phi_from_pseudo_inertia

    clipped[20:30] = phi_from_pseudo_inertia((vectors * np.maximum(eigenvalues, 1e-8)) @ vectors.T)
    q, v, a = random_states_within_limits(robot, 500, 0)
    tau = inverse_dynamics(robot, q, v, a)
    other = inverse_dynamics(robot.with_parameters(robot.parameters.with_values(clipped)), q, v, a)
    assert found.torque_change < np.linalg.norm(other - tau) / np.linalg.norm(tau)


def _pseudo(phi):
    from dynid.model.inertia import pseudo_inertia

    return pseudo_inertia(phi)


def test_links_merged_into_bodies_and_ground_links_are_repaired_too():
    robot = random_tree(1, 3)
    good = phi_from_mass_com_inertia(0.3, np.zeros(3), np.diag([1e-3, 1e-3, 1e-3]))
    bad = phi_from_mass_com_inertia(0.3, np.zeros(3), np.diag([1e-3, 1e-3, 9e-3]))
    place = np.eye(4)
    place[:3, 3] = [0.1, 0.0, 0.2]
    merged = (
        MergedLink("camera", 1, place, bad),
        MergedLink("frame", 1, place, np.zeros(10)),
        MergedLink("stand", -1, np.eye(4), bad),
        MergedLink("bracket", 2, place, good),
    )
    values = robot.parameters.values.copy()
    from dynid.model.inertia import change_of_frame

    X = change_of_frame(np.eye(3), place[:3, 3])
    values[10:20] += X @ bad
    values[20:30] += X @ good
    robot = replace(robot, merged=merged, parameters=robot.parameters.with_values(values))
    found = repair(robot)
    assert found.inconsistent == ("camera", "stand")
    assert found.feasible_after
    after = {link.name: link.phi for link in links_of(found.robot)}
    assert consistency(after["frame"]).empty
    assert is_consistent(after["stand"])
    assert is_consistent(after["camera"])
    assert found.base_kept
    assert found.torque_change < 1e-10


def test_massless_link_with_inertia_gets_a_mass():
    robot = random_tree(4, 4)
    robot = robot.with_parameters({"m4": 0.0, "mx4": 0.0, "my4": 0.0, "mz4": 0.0})
    found = repair(robot)
    assert not found.feasible_before
    assert found.feasible_after
    assert found.robot.parameters["m4"] > 0.0
