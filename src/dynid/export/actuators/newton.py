"""Newton and MJX: joint values set on a model builder, as a Python module.

Newton's joints hold armature, dry friction and a drive per degree of freedom (``joint_armature``, ``joint_friction``,
``joint_target_ke``, ``joint_target_kd``, ``joint_effort_limit``). Its MuJoCo solver and MJX take friction loss like MuJoCo. Damping of
the joint itself has no field of its own in the builder, so viscous friction is added to the drive's damping, which is the same while
the drive damps absolute velocity. Delays are steps to hold commands back by.
"""

from __future__ import annotations

import json
from pathlib import Path

from dynid.export.actuators.values import JointActuator, finite_limit
from dynid.files import write_text

STEP_S = 0.005


def write_newton(robot: str, actuators: tuple[JointActuator, ...], path: Path, step_s: float = STEP_S) -> Path:
    """Write values and a function that sets them on a ``newton.ModelBuilder``."""
    rows = {
        one.joint: {
            "target_ke": one.kp,
            "target_kd": one.kd + one.viscous,
            "armature": one.armature,
            "friction": one.coulomb,
            "effort_limit": finite_limit(one),
            "offset": one.offset,
            "delay_steps": one.ticks(step_s),
        }
        for one in actuators
    }
    values = json.dumps(rows, indent=4).replace("null", "None")
    text = f'''"""Actuators of {robot} for Newton, identified by dynid from commands and positions.

SI units. target_kd is the drive's gain plus the joint's viscous friction. delay_steps are steps of {step_s:g} s by which commands are held
back. MJX: use the MJCF export, whose actuators and friction MJX takes as they are; a version without actuator delays needs the commands
held back the same way.
"""

ACTUATORS = {values}


def apply(builder):
    """Set the values on a newton.ModelBuilder that already holds the robot; joints are found by the end of their key."""
    for index, key in enumerate(builder.joint_key):
        name = key.rsplit("/", 1)[-1]
        if name not in ACTUATORS:
            continue
        one, dof = ACTUATORS[name], builder.joint_qd_start[index]
        builder.joint_target_ke[dof] = one["target_ke"]
        builder.joint_target_kd[dof] = one["target_kd"]
        builder.joint_armature[dof] = one["armature"]
        builder.joint_friction[dof] = one["friction"]
        if one["effort_limit"] is not None:
            builder.joint_effort_limit[dof] = one["effort_limit"]
'''
    return write_text(path, text)
