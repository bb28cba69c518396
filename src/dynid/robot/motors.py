"""Effects of motors that drive several joints: friction and rotor inertia on the speeds of the motors.

They stand beside the effects of the joints, which stay; what data cannot tell apart is left to the base reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.errors import InputError
from dynid.robot.coupling import Coupling
from dynid.robot.effects import Armature, Coulomb, Coupled, Effect, OnJoints, SmoothCoulomb, Viscous, effects_from_names
from dynid.robot.effects.models import START_WIDTH
from dynid.robot.model import Robot


def with_coupling(robot: Robot, coupling: Coupling | None) -> Robot:
    """The robot with this coupling between motors and joints, and the effects of the motors that it couples.

    Args:
        robot: the robot; effects that it has of motors of a former coupling are taken away.
        coupling: the coupling; None for one motor per joint.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects="viscous,coulomb,offset,armature")
        >>> wrist = dynid.coupling_from_terms(["7:6=1"], robot.joint_names)
        >>> dynid.with_coupling(robot, wrist).parameters.names[-3:]
        ('fvm7', 'fcm7', 'Iam7')
    """
    if coupling is not None and coupling.n_joints != len(robot.driven):
        raise InputError(
            f"the coupling is of {coupling.n_joints} motors, robot '{robot.name}' has {len(robot.driven)} joints that move"
        )
    own = without_motors(robot.effects, robot.coupling)
    effects = own if coupling is None else (*own, *motor_effects(coupling, own))
    return replace(robot.with_effects(effects), coupling=coupling)


def without_motors(effects: Sequence[Effect], coupling: Coupling | None) -> tuple[Effect, ...]:
    """The effects without those that :func:`motor_effects` made for the coupling."""
    made = None if coupling is None else (coupling.matrix, coupling.coupled_motors)
    return tuple(e for e in effects if not (isinstance(e, Coupled) and (e.coupling, e.motors) == made))


def motor_effects(coupling: Coupling, effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """Effects of the motors that drive several joints, where the joints have these effects.

    Those that the coupling names; otherwise viscous friction, dry friction (as sharp as that of the joints, or with a smooth
    sign whose width is found) and rotor inertia. An offset of a motor is the offsets of the joints it drives.
    """
    motors = coupling.coupled_motors
    if not motors or any(isinstance(e, Coupled) and e.coupling == coupling.matrix for e in effects):
        return ()
    if coupling.effects is not None:
        chosen: tuple[Effect, ...] = effects_from_names(coupling.effects)
    else:
        plain = [effect.effect if isinstance(effect, OnJoints) else effect for effect in effects]
        chosen = tuple(
            made
            for made in (
                Viscous() if any(isinstance(effect, Viscous) for effect in plain) else None,
                _dry(plain),
                Armature() if any(isinstance(effect, Armature) for effect in plain) else None,
            )
            if made is not None
        )
    return tuple(Coupled(effect, coupling.matrix, motors) for effect in chosen)


def _dry(effects: Sequence[Effect]) -> Effect | None:
    sharp = next((effect for effect in effects if isinstance(effect, Coulomb)), None)
    if sharp is not None:
        return Coulomb(dead_zone=sharp.dead_zone, smooth_width=sharp.smooth_width)
    smooth = next((effect for effect in effects if isinstance(effect, SmoothCoulomb)), None)
    if smooth is not None:
        width = smooth.smooth_width if np.all(np.asarray(smooth.smooth_width) > 0.0) else START_WIDTH
        return SmoothCoulomb(smooth_width=width, smooth_time_s=smooth.smooth_time_s)
    return SmoothCoulomb(smooth_width=START_WIDTH) if any(effect.dry for effect in effects) else None
