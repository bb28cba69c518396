"""Sides of a robot by their names; mirrored bodies against a rotation by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dynid import demo_samples, estimate, factorise, reduce_to_base
from dynid.errors import InputError
from dynid.estimation.constraints.bodies import mirrored, mirrors, paired_joints, proposed_symmetry, with_symmetry
from dynid.estimation.methods.registry import method_from_options
from dynid.io.demo import demo_robot
from dynid.model.inertia import mass_com_inertia, phi_from_mass_com_inertia
from dynid.pipeline.options import Settings
from dynid.regression.torque_rows import TorqueRows

NAMES = ("FL_hip", "FL_knee", "FR_hip", "FR_knee", "neck")


def test_names_are_paired_by_what_the_star_stands_for() -> None:
    assert paired_joints(NAMES, ("FL_* FR_*",)) == ((0, 2), (1, 3))
    assert paired_joints(("hip_left", "hip_right"), ("*_left *_right",)) == ((0, 1),)
    assert proposed_symmetry(NAMES) == ("FL_* FR_*",)
    assert proposed_symmetry(("joint1", "joint2")) == ()


@pytest.mark.parametrize("pattern", ["FL_*", "FL FR", "RL_* RR_*", "*_hip *_hip"])
def test_patterns_that_pair_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="--symmetric"):
        paired_joints(NAMES, (pattern,))


def test_a_mirrored_body_has_its_centre_on_the_other_side() -> None:
    inertia = np.array([[0.02, 0.003, 0.001], [0.003, 0.03, 0.002], [0.001, 0.002, 0.04]])
    phi = phi_from_mass_com_inertia(2.0, [0.1, 0.2, 0.3], inertia)
    mass, com, turned = mass_com_inertia(mirrored(phi, "y"))
    flip = np.diag([1.0, -1.0, 1.0])
    assert mass == pytest.approx(2.0)
    assert com == pytest.approx([0.1, -0.2, 0.3])
    assert turned == pytest.approx(flip @ inertia @ flip)
    assert mirrored(phi, None) == pytest.approx(phi)


def test_links_and_friction_of_both_sides_are_tied() -> None:
    robot = demo_robot()
    inertials = np.array(robot.parameters.inertials)
    inertials[3] = mirrored(inertials[1], "x")
    values = np.array(robot.parameters.values)
    values[: inertials.size] = inertials.ravel()
    robot = robot.with_parameters(robot.parameters.with_values(values))
    assert mirrors(robot, ((1, 3),)) == ("x",)
    table = with_symmetry({"total_mass": {"upper": 30.0}}, ("shoulder_pitch* elbow*",), robot)
    assert table["equal"] == [{"links": [2, 4], "mirror": "x"}]
    assert {"fv2": 1.0, "fv4": -1.0} in [one["terms"] for one in table["linear"]]
    assert not any("fo2" in one["terms"] for one in table["linear"])
    assert table["total_mass"] == {"upper": 30.0}


def test_an_estimate_obeys_it_and_methods_without_constraints_refuse() -> None:
    robot = demo_robot()
    options = {**Settings().as_dict(), "symmetric": ("shoulder_pitch* elbow*",)}
    data = factorise(TorqueRows(robot, (demo_samples(robot, seconds=4.0),)))
    found = estimate(data, reduce_to_base(robot), method_from_options("sdp", options, robot)).standard.as_dict()
    assert found["fv2"] == pytest.approx(found["fv4"], rel=1e-4)
    assert found["m2"] == pytest.approx(found["m4"], rel=1e-4)
    with pytest.raises(InputError, match="takes no constraints"):
        method_from_options("ols", options, robot)
