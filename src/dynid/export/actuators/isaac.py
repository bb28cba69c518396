"""Isaac Lab: actuator groups as a Python module.

Sources: ``isaaclab.actuators`` (ActuatorBaseCfg, ImplicitActuatorCfg, DelayedPDActuatorCfg), PhysX 5.6 ``PxJointFrictionParams``.
``stiffness`` and ``damping`` are kp and kd per radian, ``armature`` is kg m^2, delays are whole physics steps. From Isaac Sim 5.0
(PhysX 5.6) on, ``friction``, ``dynamic_friction`` and ``viscous_friction`` are N m, N m and N m s/rad. Before, ``friction`` was a
unitless coefficient on the force that the joint transmits, which no identified torque converts to, so it is left out there and viscous
friction is added to the damping.
"""

from __future__ import annotations

import json
from pathlib import Path

from dynid.export.actuators.values import JointActuator, finite_limit
from dynid.files import write_text

STEP_S = 0.005
"""Physics step that the delay is counted in; the file says how to change it."""
_CONFIGURATIONS = """# Isaac Sim 5.0 and later: friction in N m
DELAYED_PD = DelayedPDActuatorCfg(
    joint_names_expr=JOINTS,
    stiffness=STIFFNESS,
    damping=DAMPING,
    armature=ARMATURE,
    friction=COULOMB,
    dynamic_friction=COULOMB,
    viscous_friction=VISCOUS,
    effort_limit=EFFORT_LIMIT or None,
    min_delay=DELAY_STEPS[0],
    max_delay=DELAY_STEPS[1],
)

# without delay, integrated with the physics
IMPLICIT = ImplicitActuatorCfg(
    joint_names_expr=JOINTS,
    stiffness=STIFFNESS,
    damping=DAMPING,
    armature=ARMATURE,
    friction=COULOMB,
    dynamic_friction=COULOMB,
    viscous_friction=VISCOUS,
    effort_limit_sim=EFFORT_LIMIT or None,
)

# Isaac Sim before 5.0: joint friction is a unitless coefficient there, so dry friction is left out
BEFORE_5 = ImplicitActuatorCfg(
    joint_names_expr=JOINTS,
    stiffness=STIFFNESS,
    damping={name: DAMPING[name] + VISCOUS[name] for name in JOINTS},
    armature=ARMATURE,
    effort_limit_sim=EFFORT_LIMIT or None,
)
"""
"""Configurations of the tables above them."""


def write_isaac(robot: str, actuators: tuple[JointActuator, ...], path: Path, step_s: float = STEP_S) -> Path:
    """Write actuator configurations for Isaac Lab."""
    limits = {one.joint: limit for one in actuators if (limit := finite_limit(one)) is not None}
    tables = {
        "STIFFNESS": {one.joint: one.kp for one in actuators},
        "DAMPING": {one.joint: one.kd for one in actuators},
        "ARMATURE": {one.joint: one.armature for one in actuators},
        "COULOMB": {one.joint: one.coulomb for one in actuators},
        "VISCOUS": {one.joint: one.viscous for one in actuators},
        "EFFORT_LIMIT": limits,
    }
    ticks = sorted(one.ticks(step_s) for one in actuators)
    names = json.dumps([one.joint for one in actuators])
    parts = "\n".join(f"{name} = {_table(values)}" for name, values in tables.items())
    offsets = {one.joint: one.offset for one in actuators if one.offset != 0.0}
    text = f'''"""Actuators of {robot}, identified by dynid from commands and positions.

SI units per radian or metre. The delay is counted in physics steps of {step_s:g} s: change both together.
Offsets (constant torque against the drive, N m) have no place in these classes; add OFFSET / STIFFNESS to the commands.
"""

from isaaclab.actuators import DelayedPDActuatorCfg, ImplicitActuatorCfg

JOINTS = {names}
{parts}
OFFSET = {_table(offsets)}
DELAY_STEPS = ({ticks[0]}, {ticks[-1]})  # smallest and largest over the joints, {1e3 * actuators[0].delay_s:.2f} ms

{_CONFIGURATIONS}'''
    return write_text(path, text)


def _table(values: dict[str, float]) -> str:
    """A dictionary of joints as Python source."""
    lines = "".join(f"    {json.dumps(name)}: {value!r},\n" for name, value in values.items())
    return "{\n" + lines + "}" if values else "{}"
