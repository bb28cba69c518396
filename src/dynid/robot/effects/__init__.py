"""Joint effects beside rigid-body dynamics: friction and rotor inertia, one effect a file."""

from dynid.robot.effects.armature import Armature
from dynid.robot.effects.asymmetric_coulomb import AsymmetricCoulomb
from dynid.robot.effects.coulomb import Coulomb
from dynid.robot.effects.coupled import Coupled
from dynid.robot.effects.effect import (
    Effect,
    Motion,
    NonlinearOption,
    effect_from_dict,
    effect_to_dict,
    effects_from_names,
)
from dynid.robot.effects.load import LoadCoulomb, LoadViscous
from dynid.robot.effects.offset import Offset
from dynid.robot.effects.sigmoid import Sigmoid
from dynid.robot.effects.smooth_coulomb import SmoothCoulomb
from dynid.robot.effects.stribeck import Stribeck
from dynid.robot.effects.viscous import Viscous
from dynid.robot.effects.viscous_polynomial import ViscousPolynomial

__all__ = [
    "Armature",
    "AsymmetricCoulomb",
    "Coulomb",
    "Coupled",
    "Effect",
    "LoadCoulomb",
    "LoadViscous",
    "Motion",
    "NonlinearOption",
    "Offset",
    "Sigmoid",
    "SmoothCoulomb",
    "Stribeck",
    "Viscous",
    "ViscousPolynomial",
    "effect_from_dict",
    "effect_to_dict",
    "effects_from_names",
]
