"""Friction and motors of a whole robot: a friction model put in, values listed, effects of motors that drive several joints.

Effects of motors, friction and rotor inertia on the speeds of the motors, stand beside the effects of the joints, which stay; what
data cannot tell apart is left to the base reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.errors import InputError
from dynid.model.coupling import Coupling
from dynid.model.effects import effects_from_names
from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb
from dynid.model.effects.effect import Effect, EffectValue
from dynid.model.effects.friction_models import START_WIDTH, friction_effects, modelled_effects
from dynid.model.effects.linear import Armature, Viscous
from dynid.model.effects.wrapped import Coupled, OnJoints
from dynid.model.robot import Robot


def with_friction(robot: Robot, model: str | Sequence[Effect]) -> Robot:
    """The robot with a friction model in place of the one it has; effects that are in no model stay, after it.

    The model is a name, for its effects without a time constant of the signal path, or the effects themselves.
    Motors that drive several joints get the friction that goes with the model.
    """
    joints, replaced = without_motors(robot.effects, robot.coupling), modelled_effects()
    own = friction_effects(model, time_s=0.0) if isinstance(model, str) else model
    chosen = [*own, *(effect for effect in joints if effect.name not in replaced)]
    motors = () if robot.coupling is None else motor_effects(robot.coupling, chosen)
    return robot.with_effects([*chosen, *motors])


def without_friction(robot: Robot) -> Robot:
    """The robot without its friction; rotor inertia stays."""
    return robot.with_effects([effect for effect in robot.effects if not effect.is_friction])


def has_dead_zone(robot: Robot) -> bool:
    """Whether some friction of a joint or of a coupled motor is the sign of a velocity, which a dead zone keeps from noise."""
    return any(isinstance(one.effect if isinstance(one, Coupled) else one, Coulomb) for one in robot.effects)


def blind_below(robot: Robot, zone: tuple[float, ...]) -> Robot:
    """The robot with this dead zone of its Coulomb friction per joint, rad/s or m/s; of motors with what their joints' add up to."""

    def blind(effect: Effect) -> Effect:
        if isinstance(effect, Coulomb):
            return replace(effect, dead_zone=zone)
        if isinstance(effect, Coupled) and isinstance(effect.effect, Coulomb):
            return replace(effect, effect=replace(effect.effect, dead_zone=tuple((np.abs(effect.B) @ zone).tolist())))
        return effect

    return robot.with_effects([blind(effect) for effect in robot.effects])


def is_searched(effect: Effect) -> bool:
    """Whether a fit over motion solves for an effect beside the rigid bodies: friction, and springs whose geometry is to be found."""
    return effect.is_friction or bool(effect.searched_parameters())


def without_searched(robot: Robot) -> Robot:
    """The robot with the effects whose columns are known: neither friction nor springs whose geometry is to be found."""
    return robot.with_effects([effect for effect in robot.effects if not is_searched(effect)])


def searched_values(robot: Robot) -> tuple[EffectValue, ...]:
    """The values inside the friction of every joint that a fit finds, such as a width or a Stribeck speed, each once."""
    driven = [robot.joints[i] for i in robot.effect_joints]
    found: dict[tuple[str, str], EffectValue] = {}
    for effect in robot.effects:
        for own in effect.nonlinear_values(driven) if effect.is_friction else ():
            for one in own:
                if one.found:
                    found.setdefault((one.joint, one.name), one)
    return tuple(found.values())


def with_coupling(robot: Robot, coupling: Coupling | None) -> Robot:
    """The robot with this coupling between motors and joints, and the effects of the motors that it couples.

    Args:
        robot: the robot; effects that it has of motors of a former coupling are taken away.
        coupling: the coupling; None for one motor per joint.

    Examples:
        >>> import dynid
        >>> from dynid.model.coupling import coupling_from_terms
        >>> from dynid.model.friction import with_coupling
        >>> robot = dynid.demo_robot(effects="viscous,coulomb,offset,armature")
        >>> wrist = coupling_from_terms(["7:6=1"], robot.joint_names)
        >>> with_coupling(robot, wrist).parameters.names[-3:]
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
