"""Pictures of a log's clock and of the limits beside its motion."""

from __future__ import annotations

import numpy as np

from dynid.pipeline.sections.data import near_limits, step_figure
from problems import planar_2r


def test_the_steps_of_a_clock_are_counted_and_drawn_over_time() -> None:
    time = np.cumsum(np.where(np.arange(4000) % 100 == 0, 0.012, 0.004))
    figure = step_figure([("a.csv", time), ("one row", time[:1])])
    assert figure is not None
    assert len(figure.panels) == 2  # a log of one row has no step
    often = figure.panels[0]
    assert sum(np.asarray(often.curves[0].y)) == len(time) - 1
    assert abs(often.marks[0].value - 4.0) < 1e-9
    assert step_figure([("one row", time[:1])]) is None


def test_only_limits_near_the_motion_are_drawn() -> None:
    joint = planar_2r().driven_joints[0]
    assert near_limits(joint, "position", np.array([0.0, 0.1])) == []
    assert near_limits(joint, "position", np.array([0.0, 0.9 * joint.q_max])) == [joint.q_max]
    speed = np.array([-0.8, 0.8]) * joint.dq_max
    assert near_limits(joint, "velocity", speed) == [-joint.dq_max, joint.dq_max]
