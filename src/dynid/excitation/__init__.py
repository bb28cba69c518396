"""Motions that show a robot's parameters: shapes, limits, criteria, designs and files to play.

>>> import dynid
>>> robot = dynid.demo_robot()
>>> motion = dynid.excitation.random_fourier(robot, period_s=10.0, harmonics=3)
>>> margins = dynid.excitation.margins_of(robot, motion, dynid.excitation.limits_of(robot))
>>> margins.smallest > 0.0
True
"""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.excitation.bspline": ("BSplineShape",),
        "dynid.excitation.collision": ("Clearance", "clearance_of"),
        "dynid.excitation.criteria": ("Criterion", "condition_number", "criterion_from"),
        "dynid.excitation.design": ("Excitation", "design_excitation"),
        "dynid.excitation.export": ("read_coefficients", "write_motion"),
        "dynid.excitation.fourier": (
            "FourierShape",
            "FourierTrajectory",
            "random_fourier",
            "read_trajectory",
            "write_trajectory",
        ),
        "dynid.excitation.limits": ("Limits", "Margins", "limits_of", "margins_of"),
        "dynid.excitation.points": ("PointsDesign", "PointsTrajectory", "design_points"),
        "dynid.excitation.ramps": ("rest_to_rest",),
        "dynid.excitation.shape": ("LinearShape", "Trajectory"),
        "dynid.excitation.sinusoids": (
            "SinusoidTrajectory",
            "all_joint_sinusoids",
            "given_sinusoids",
            "single_joint_sinusoid",
        ),
    },
)


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
