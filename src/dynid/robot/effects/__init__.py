"""Joint effects beside rigid-body dynamics: friction and rotor inertia, one effect a file."""

from dynid.robot.effects.armature import Armature
from dynid.robot.effects.coulomb import Coulomb
from dynid.robot.effects.effect import Effect, Motion, effects_from_names
from dynid.robot.effects.offset import Offset
from dynid.robot.effects.viscous import Viscous

__all__ = ["Armature", "Coulomb", "Effect", "Motion", "Offset", "Viscous", "effects_from_names"]
