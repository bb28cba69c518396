"""JSON of the actuators: SI values with deviations, and the same in the units of USD drives (per degree)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.export.actuators.values import JointActuator, finite_limit
from dynid.files import write_json

DEGREE = math.pi / 180.0


def write_table(robot: str, actuators: tuple[JointActuator, ...], details: Mapping[str, Any], path: Path) -> Path:
    """Write every actuator in SI units and as USD's physics schemas want it."""
    rows = []
    for one in actuators:
        per = DEGREE if one.turns else 1.0
        axis = "rotX" if one.turns else "transX"
        rows.append(
            {
                "joint": one.joint,
                "kp": one.kp,
                "kd": one.kd,
                "effort_limit": finite_limit(one),
                "armature": one.armature,
                "viscous": one.viscous,
                "coulomb": one.coulomb,
                "offset": one.offset,
                "delay_s": one.delay_s,
                "usd": {
                    "drive:stiffness": one.kp * per,
                    "drive:damping": one.kd * per,
                    "drive:maxForce": finite_limit(one),
                    f"physxJointAxis:{axis}:armature": one.armature,
                    f"physxJointAxis:{axis}:staticFrictionEffort": one.coulomb,
                    f"physxJointAxis:{axis}:dynamicFrictionEffort": one.coulomb,
                    f"physxJointAxis:{axis}:viscousFrictionCoefficient": one.viscous * per,
                },
            }
        )
    units = "SI per radian or metre; usd: per degree where the joint turns, as UsdPhysics drives are"
    return write_json(path, {"robot": robot, "units": units, "actuators": rows, **details})
