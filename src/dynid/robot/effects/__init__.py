"""Joint effects beside rigid-body dynamics: friction, rotor inertia and springs, one effect a file.

A new effect is a file and a line below; one of another package calls :func:`register`, see :mod:`dynid.robot.effects.registry`.
"""

from dynid.robot.effects.armature import Armature
from dynid.robot.effects.asymmetric_coulomb import AsymmetricCoulomb
from dynid.robot.effects.cable import Cable
from dynid.robot.effects.conservative import ConservativeEffect
from dynid.robot.effects.coulomb import Coulomb
from dynid.robot.effects.coupled import Coupled
from dynid.robot.effects.effect import (
    PLACES,
    Effect,
    FormulaMotion,
    InnerValue,
    Motion,
    MotionSlopes,
    NonlinearOption,
    Place,
)
from dynid.robot.effects.jointwise import Coefficient, InnerNumber, JointwiseEffect
from dynid.robot.effects.load import LoadCoulomb, LoadViscous
from dynid.robot.effects.mathematics import Mathematics, Value
from dynid.robot.effects.models import (
    FrictionStart,
    friction_choices,
    friction_effects,
    friction_models,
    register_friction_model,
    tried_friction_models,
    unregister_friction_model,
)
from dynid.robot.effects.offset import Offset
from dynid.robot.effects.on_joints import OnJoints
from dynid.robot.effects.point_spring import PointSpring, spring_force
from dynid.robot.effects.potential import Potential
from dynid.robot.effects.registry import (
    effect_from_dict,
    effect_kinds,
    effect_to_dict,
    effects_from_names,
    nonnegative_symbols,
    register,
    unregister,
)
from dynid.robot.effects.sigmoid import Sigmoid
from dynid.robot.effects.smooth_coulomb import SmoothCoulomb
from dynid.robot.effects.stribeck import Stribeck
from dynid.robot.effects.torsion_spring import TorsionSpring
from dynid.robot.effects.viscous import Viscous
from dynid.robot.effects.viscous_polynomial import ViscousPolynomial

register(Viscous)
register(Coulomb)
register(Offset)
register(Armature)
register(SmoothCoulomb)
register(AsymmetricCoulomb)
register(ViscousPolynomial)
register(Stribeck)
register(Sigmoid)
register(LoadCoulomb)
register(LoadViscous)
register(TorsionSpring)
register(PointSpring)
register(Potential)
register(Cable)
register(Coupled)
register(OnJoints)

__all__ = [
    "PLACES",
    "Armature",
    "AsymmetricCoulomb",
    "Cable",
    "Coefficient",
    "ConservativeEffect",
    "Coulomb",
    "Coupled",
    "Effect",
    "FormulaMotion",
    "FrictionStart",
    "InnerNumber",
    "InnerValue",
    "JointwiseEffect",
    "LoadCoulomb",
    "LoadViscous",
    "Mathematics",
    "Motion",
    "MotionSlopes",
    "NonlinearOption",
    "Offset",
    "OnJoints",
    "Place",
    "PointSpring",
    "Potential",
    "Sigmoid",
    "SmoothCoulomb",
    "Stribeck",
    "TorsionSpring",
    "Value",
    "Viscous",
    "ViscousPolynomial",
    "effect_from_dict",
    "effect_kinds",
    "effect_to_dict",
    "effects_from_names",
    "friction_choices",
    "friction_effects",
    "friction_models",
    "nonnegative_symbols",
    "register",
    "register_friction_model",
    "spring_force",
    "tried_friction_models",
    "unregister",
    "unregister_friction_model",
]
