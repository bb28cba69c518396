"""Joint names of the log against those of the robot."""

from __future__ import annotations

from dynid.recording.checks.shared import NOTHING
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.motion import Recording
from dynid.robot.model import Robot


def check_joint_names(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Joints that only the log or only the robot has, and another order of them."""
    if robot is None:
        return NOTHING
    absent = [name for name in robot.joint_names if name not in recording.joint_names]
    unknown = [name for name in recording.joint_names if name not in robot.joint_names]
    findings = []
    if unknown:
        findings.append(
            Finding(
                "joint_names",
                "error",
                f"log names joints {', '.join(unknown)}, which robot '{robot.name}' does not have "
                f"(it has {', '.join(robot.joint_names)})",
                'name the columns by their joints in a mapping file (--mapping FILE): position = {joint = "column"}, torque alike',
                tuple(unknown),
            )
        )
    if absent:
        findings.append(
            Finding(
                "absent_joints",
                "note" if not unknown else "error",
                f"log lacks joints {', '.join(absent)} of robot '{robot.name}'",
                "lock them (--lock joint=value) at the position they had, or log them",
                tuple(absent),
            )
        )
    if not unknown and not absent and recording.joint_names != robot.joint_names:
        findings.append(
            Finding(
                "joint_order",
                "error",
                f"log has the joints in the order {', '.join(recording.joint_names)}, robot '{robot.name}' in the order "
                f"{', '.join(robot.joint_names)}",
                "read the log together with the robot, which puts its columns in order",
            )
        )
    return DataCheck(tuple(findings), {})
