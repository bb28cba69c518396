"""Joint effects beside rigid-body dynamics: friction, rotor inertia, and how to add your own.

An effect adds columns to the torque regressor, such as ``tau = fv v``. A robot carries its effects:

    >>> import dynid
    >>> robot = dynid.demo_robot(effects=[dynid.effects.Viscous(), dynid.effects.SmoothCoulomb(smooth_width=0.05)])
    >>> robot.parameters.names[-1]
    'fc7'

An effect of another package is one class and one call of :func:`register`; :mod:`dynid.robot.effects.registry` shows both.
A set of effects that replaces viscous, Coulomb and offset is a friction model, see :func:`register_friction_model`.
"""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.robot.effects": (
            "Armature",
            "AsymmetricCoulomb",
            "Coefficient",
            "Coulomb",
            "Coupled",
            "Effect",
            "FormulaMotion",
            "FrictionStart",
            "InnerNumber",
            "JointwiseEffect",
            "LoadCoulomb",
            "LoadViscous",
            "Mathematics",
            "Motion",
            "Offset",
            "OnJoints",
            "Sigmoid",
            "SmoothCoulomb",
            "Stribeck",
            "Viscous",
            "ViscousPolynomial",
            "effect_from_dict",
            "effect_kinds",
            "effect_to_dict",
            "effects_from_names",
            "friction_effects",
            "friction_models",
            "register",
            "register_friction_model",
            "unregister",
            "unregister_friction_model",
        ),
    },
)


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
