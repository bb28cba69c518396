"""Legged robots of example-robot-data, for tests and benchmarks."""

from __future__ import annotations

from pathlib import Path

import pinocchio as pin

QUADRUPED = "solo_description/robots/solo12.urdf"
QUADRUPED_FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
HUMANOID = "talos_data/robots/talos_reduced.urdf"
HUMANOID_FEET = ("left_sole_link", "right_sole_link")


def robot_file(name: str) -> Path:
    """A description that comes with Pinocchio's example robots."""
    return Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots" / name
