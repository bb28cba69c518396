"""A wrench in the axes of another frame of the description than the one that was taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.errors import InputError
from dynid.pipeline.inspect import inspect_any
from dynid.pipeline.wrench import identify_sensor_body
from sensor_logs import URDF, sensor_log, write_log

TURNED = """  <link name="plate"/>
  <joint name="turn" type="fixed"><parent link="ft_sensor"/><child link="plate"/><origin rpy="1.5707963 0 0"/></joint>
</robot>
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A robot with a second frame at the sensor, turned about x, and a log in the axes of the first."""
    robot = tmp_path / "shoulder.urdf"
    robot.write_text(URDF.replace("</robot>\n", TURNED))
    return robot, write_log(sensor_log(1.0, duration_s=20.0), tmp_path / "log.csv")


def test_the_frame_that_has_the_axes_is_named_first(files: tuple[Path, Path]) -> None:
    robot, log = files
    found = inspect_any(log, robot, "plate")[1].find("force_axes")
    assert found is not None
    assert found.remedy.startswith("give --frame link3 or --frame ft_sensor, which has these axes")
    assert inspect_any(log, robot, "ft_sensor")[1].find("force_axes") is None


def test_identification_names_it_too(files: tuple[Path, Path]) -> None:
    from dynid.io.logs.read import read_recording
    from dynid.io.robots.read import read_robot

    robot = read_robot(files[0])
    with pytest.raises(InputError, match="give --frame link3 or --frame ft_sensor, which has these axes"):
        identify_sensor_body([read_recording(files[1], robot, kind="wrench")], robot, "plate")


def test_axes_of_no_frame_are_left_to_a_mapping(files: tuple[Path, Path], tmp_path: Path) -> None:
    robot, log = files
    text = log.read_text()
    head, rows = text.split("\n", 1)
    swapped = tmp_path / "swapped.csv"
    swapped.write_text(head.replace("fx", "f_").replace("fy", "fx").replace("f_", "fy") + "\n" + rows)
    found = inspect_any(swapped, robot, "ft_sensor")[1].find("force_axes")
    assert found is not None
    assert found.remedy.startswith("name the columns in a mapping")
