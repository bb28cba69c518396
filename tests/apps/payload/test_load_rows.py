"""Rows of a load: torque that a body adds at a frame is that of its columns."""

from __future__ import annotations

import numpy as np

from dynid.apps.payload.load_rows import filter_rows, load_columns, load_parameters, regressor_of
from dynid.io.demo import demo_robot, demo_samples
from dynid.model.frames import frame_named
from uniform_bodies import phi_of_cuboid


def test_the_columns_give_the_torque_that_a_body_adds() -> None:
    robot = demo_robot()
    samples = demo_samples(robot, seconds=1.0)
    place = frame_named(robot, None)
    load = phi_of_cuboid(2.0, [0.06, 0.05, 0.08], [0.02, -0.03, 0.12], np.eye(3))
    Y = regressor_of(robot, samples)
    columns = load_columns(robot, place, Y)
    parameters = load_parameters(robot, place)
    assert columns.shape == (*Y.shape[:2], len(parameters))
    values = robot.parameters.values.copy()
    values[10 * place.body : 10 * place.body + 10] += place.into_body @ load
    added = Y @ (values - robot.parameters.values)
    np.testing.assert_allclose(columns[..., :10] @ load, added, atol=1e-9 * np.abs(added).max())


def test_rows_of_signals_that_were_filtered_stay_as_they_are() -> None:
    block, time = np.ones((4, 3)), np.arange(4.0)
    (found,) = filter_rows([block], time, None).blocks
    np.testing.assert_array_equal(found, block)
