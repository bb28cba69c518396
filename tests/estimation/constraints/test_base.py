"""Variables of a constrained problem by name."""

from __future__ import annotations

import pytest

from consistent_problems import TWO_LINKS
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import FixedValues, Layout
from dynid.estimation.constraints.bodies import MassBounds
from dynid.model.parameters import canonical_name, canonical_names
from messages import facts
from problems import random_tree


def test_unknown_links_and_parameters_list_what_there_is():
    with pytest.raises(UnknownNameError, match=facts("1", "2", "upper", "elbow", "wrist", "link")):
        MassBounds("wrist", 1.0).rows(TWO_LINKS)
    with pytest.raises(UnknownNameError, match="unknown parameter 'Ia7'"):
        FixedValues({"Ia7": 1.0}).rows(TWO_LINKS)


def test_names_of_the_literature():
    given = ["L1yy", "L_2xz", "l2x", "l_3y", "m_3", "fv_1", "Ia_1", "XX4", "MX4", "M4", "FS4", "IA4", "Ixy5", "k1_2"]
    here = ["Iyy1", "Ixz2", "mx2", "my3", "m3", "fv1", "Ia1", "Ixx4", "mx4", "m4", "fc4", "Ia4", "Ixy5", "k1_2"]
    assert [canonical_name(name) for name in given] == here
    with pytest.raises(InputError, match="'L1xx' and 'XX1' both mean 'Ixx1'"):
        canonical_names(["L1xx", "XX1"])
    with pytest.raises(InputError, match="inertia about the centre of mass"):
        canonical_name("I1xx")


def test_parameters_that_a_grouping_leaves_out_become_free():
    layout = Layout.of(["L1yy", "m2", "l2x"])
    assert layout.n_named == 3
    assert layout.links == (1, 2)
    assert len(layout) == 20
    assert layout.names[int(layout.link_slots(1)[6])] == "Iyy1"


def test_layout_of_a_robot_knows_links_by_name():
    robot = random_tree(0, 3)
    layout = Layout.of_parameters(robot.parameters, robot.links)
    assert layout.link_row("link2") == layout.link_row("joint2") == layout.link_row(2) == 1
