"""Friction of a whole robot: a model put in, and its numbers listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.robot.effects import Effect
from dynid.robot.effects.models import modelled_effects
from dynid.robot.model import Robot
from dynid.robot.motors import motor_effects, without_motors


@dataclass(frozen=True)
class FrictionNumber:
    """One number of the friction of a joint, estimated linearly or inside the formula."""

    joint: str
    effect: str
    name: str
    """``fsig4`` for a parameter, ``slope4`` for a number inside a formula; motors have ``slopem4``."""
    value: float
    unit: str
    found: bool
    """Whether it is estimated or searched for; otherwise it is a choice, such as a dead zone."""


def with_friction(robot: Robot, effects: Sequence[Effect]) -> Robot:
    """The robot with a friction model in place of the one it has; effects that are in no model stay, after it.

    Motors that drive several joints get the friction that goes with the model.
    """
    joints, replaced = without_motors(robot.effects, robot.coupling), modelled_effects()
    chosen = [*effects, *(effect for effect in joints if effect.name not in replaced)]
    motors = () if robot.coupling is None else motor_effects(robot.coupling, chosen)
    return robot.with_effects([*chosen, *motors])


def without_friction(robot: Robot) -> Robot:
    """The robot without its friction; rotor inertia stays."""
    return robot.with_effects([effect for effect in robot.effects if not effect.is_friction])


def is_searched(effect: Effect) -> bool:
    """Whether a fit over motion solves for an effect beside the rigid bodies: friction, and springs whose geometry is to be found."""
    return effect.is_friction or bool(effect.nonlinear_options())


def without_searched(robot: Robot) -> Robot:
    """The robot with the effects whose columns are known: neither friction nor springs whose geometry is to be found."""
    return robot.with_effects([effect for effect in robot.effects if not is_searched(effect)])


def friction_numbers(robot: Robot) -> tuple[FrictionNumber, ...]:
    """Every number of the robot's friction at its present parameters, joint by joint: estimated values and inner numbers.

    Numbers that stand inside several effects of a joint, such as the width of the sign, are listed with each of them.
    """
    driven = [(i + 1, robot.joints[i]) for i in robot.effect_joints]
    numbers, joints = [number for number, _ in driven], [joint for _, joint in driven]
    listed: list[FrictionNumber] = []
    per_effect = [
        (effect, effect.columns(numbers, joints), effect.inner_numbers(joints))
        for effect in robot.effects
        if effect.is_friction
    ]
    for place, (number, joint) in enumerate(driven):
        for effect, columns, inner in per_effect:
            own = [column for column in columns if column.number == number]
            listed += [
                FrictionNumber(joint.name, effect.name, one.name, robot.parameters[one.name], one.unit, True) for one in own
            ]
            listed += [
                FrictionNumber(joint.name, effect.name, f"{one.name}{number}", one.value, one.unit, one.searched)
                for one in inner[place]
            ]
    return tuple(listed)


def searched_numbers(robot: Robot) -> tuple[FrictionNumber, ...]:
    """The numbers inside the friction of every joint that a fit finds, such as a width or a Stribeck speed, each once."""
    driven = [robot.joints[i] for i in robot.effect_joints]
    found: dict[tuple[str, str], FrictionNumber] = {}
    for effect in robot.effects:
        for joint, inner in zip(driven, effect.inner_numbers(driven) if effect.is_friction else (), strict=False):
            for one in inner:
                if one.searched:
                    number = FrictionNumber(joint.name, effect.name, one.name, one.value, one.unit, True)
                    found.setdefault((joint.name, one.name), number)
    return tuple(found.values())
