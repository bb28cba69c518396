"""Options of a run as the log of a force/torque sensor takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.demo import demo_robot
from dynid.io.robots.read import read_robot
from dynid.model.frames import sensor_frame
from dynid.pipeline.inspect import inspect_any
from dynid.pipeline.options import Settings
from dynid.pipeline.sensor import (
    filter_of,
    identify_body,
    places,
    refuse_other_options,
    sensor_place,
    sensor_robot,
)
from dynid.pipeline.wrench_filter import SensorFilter
from sensor_logs import NOISE, sensor_log, write_log, write_shoulder


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, "auto"),
        ({"cutoff_hz": 12.0}, SensorFilter("rows", order=4, band_hz=12.0)),
        ({"cutoff_hz": 12.0, "filter_on": "signals", "filter_order": 2}, SensorFilter("butterworth", order=2, band_hz=12.0)),
        ({"filter": "savgol:9,2"}, SensorFilter("savgol", 9, 2)),
        ({"rows": "polynomial", "window": 0.1}, SensorFilter("polynomial", window_s=0.1)),
    ],
)
def test_the_filter_of_the_options(options: dict[str, Any], found: SensorFilter | str) -> None:
    assert filter_of(Settings(**options)) == found


def test_rows_of_joint_torque_are_refused() -> None:
    with pytest.raises(InputError, match="--rows energy"):
        filter_of(Settings(rows="energy"))
    with pytest.raises(InputError, match="--friction belongs to logs of joint torque"):
        refuse_other_options(Settings(friction="auto"))
    with pytest.raises(InputError, match="ols, wls, sdp, manifold"):
        refuse_other_options(Settings(method="ridge"))


def test_a_pose_on_a_link_needs_its_robot() -> None:
    settings = Settings(frame_pose=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="--frame-pose"):
        places(None, settings)
    robot = demo_robot()
    assert sensor_place(robot, settings).name == "sensor"
    own = sensor_place(robot, Settings(frame=robot.links[-1]))
    np.testing.assert_allclose(sensor_place(robot, settings).placement[:3, 3] - own.placement[:3, 3], [0.0, 0.0, 0.1])


def test_a_sensor_alone_is_moved_as_one_free_body() -> None:
    robot = sensor_robot()
    assert robot.floating
    assert robot.n_bodies == 1
    assert robot.parameters.names[0] == "m1"


def test_a_link_named_as_a_sensor_is_its_frame(tmp_path: Path) -> None:
    robot = write_shoulder(tmp_path)
    log = sensor_log(1.0, duration_s=10.0)
    assert sensor_frame(read_robot(robot)) == "ft_sensor"
    assert identify_body([log], read_robot(robot), Settings()).frame == "ft_sensor"
    assert not any(one.level == "error" for one in inspect_any(write_log(log, tmp_path / "log.csv"), robot)[1])
    robot.write_text(robot.read_text().replace("ft_sensor", "adapter"))
    with pytest.raises(InputError, match=r"about the origin of 'adapter', not of the frame stated; give --frame adapter$"):
        identify_body([log], read_robot(robot), Settings())
    slow = sensor_log(10.0, duration_s=30.0, noise=5.0 * NOISE)  # does not show where the sensor is
    found = identify_body([slow], read_robot(robot), Settings())
    assert found.frame == "link3"
    assert "the description also has adapter (--frame)" in found.notes[0]
    assert [(one.level, one.code) for one in found.findings] == [("warning", "other_origin")]
