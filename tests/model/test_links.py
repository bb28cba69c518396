"""Links that move together, taken apart again."""

from dataclasses import replace

import numpy as np

from dynid.model.inertia import change_of_frame
from dynid.model.joint import MergedLink
from dynid.model.links import links_of, links_taken_apart
from problems import planar_2r, random_phi, random_pose


def robot_with_a_tool(share):
    """A tool on the last link, whose inertials hold ``share`` of it."""
    rng = np.random.default_rng(0)
    robot, phi, placement = planar_2r(), random_phi(rng), random_pose(rng)
    into = change_of_frame(placement[:3, :3], placement[:3, 3])
    names, values = robot.parameters.names[10:20], robot.parameters.values[10:20] + share * (into @ phi)
    merged = MergedLink(name="tool", body=1, placement=placement, phi=phi)
    return (
        replace(robot.with_parameters(dict(zip(names, values, strict=True))), merged=(merged,)),
        robot.parameters.inertials[1],
        phi,
    )


def test_what_was_merged_is_taken_out_again():
    robot, own, tool = robot_with_a_tool(1.0)
    links = {link.name: link for link in links_of(robot)}
    np.testing.assert_allclose(links[robot.links[1]].phi, own, atol=1e-12)
    np.testing.assert_array_equal(links["tool"].phi, tool)
    notes = []
    apart = {one.name: one for one in links_taken_apart(robot, notes)}
    assert apart[robot.links[1]].is_like(own)
    assert apart["tool"].is_like(tool)
    assert notes == []


def test_links_keep_their_sum_where_the_whole_is_too_light():
    robot, _, tool = robot_with_a_tool(0.0)
    notes = []
    apart = {one.name: one.phi for one in links_taken_apart(robot, notes)}
    into = change_of_frame(robot.merged[0].placement[:3, :3], robot.merged[0].placement[:3, 3])
    np.testing.assert_allclose(apart[robot.links[1]] + into @ apart["tool"], robot.parameters.inertials[1], atol=1e-12)
    if notes:
        assert "no physical body" in notes[0]
        assert apart["tool"][0] <= tool[0]
