"""Figures of the estimate say in words what a bar cannot show."""

from __future__ import annotations

import numpy as np

import dynid
from dynid.model.inertia import phi_from_principal
from dynid.pipeline.sections.model import consistency_figure


def test_links_on_the_boundary_are_named() -> None:
    robot = dynid.demo_robot()
    assert "boundary" not in consistency_figure(robot, robot).caption
    inertials = np.array(robot.parameters.inertials)
    inertials[2] = phi_from_principal(1.0, np.zeros(3), np.eye(3), np.array([1e-9, 0.01, 0.02]))
    plate = robot.with_parameters(
        robot.parameters.with_values(np.concatenate([inertials.ravel(), robot.parameters.values[70:]]))
    )
    caption = consistency_figure(robot, plate).caption
    assert f"as flat as a plate: {robot.links[2]};" in caption
