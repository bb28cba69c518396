"""What of a robot's effects the joint of a simulator holds, as the effects themselves say, and what is lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.parameters import Column
from dynid.robot.effects import PLACES, Armature, Coulomb, Effect, Motion, Place, Viscous
from dynid.robot.effects.coupled import MOTOR
from dynid.robot.model import Robot

SYMBOL: dict[Place, str] = {"damping": "fv", "friction": "fc", "armature": "Ia"}
"""What a description calls the number of each place (:attr:`dynid.robot.joint.Joint.nominal`)."""
FRICTION: tuple[Place, ...] = ("damping", "friction")
_WHAT = {"Ia": "rotor inertia", "fo": "torque offset"}
_NEAREST: dict[Place, str] = {
    "damping": "viscous friction of each joint alone, without coupling",
    "friction": "dry friction of the same mean size",
    "armature": "rotor inertia of each joint alone, without coupling",
}


def joint_dynamics(robot: Robot, i: int, notes: list[str], places: Collection[Place] = PLACES) -> dict[Place, float]:
    """Viscous and dry friction and rotor inertia of a joint, as far as a format has places, where the robot or its description has them.

    A robot with friction among its effects has none of its description's. Simulators want numbers that are not negative, so
    such ones become zero.
    """
    joint = robot.joints[i]
    total = held_by_joints(robot)
    own_friction = bool(set(FRICTION) & total.keys())
    k = robot.effect_joints.index(i) if i in robot.effect_joints else -1  # passive joints of a closed robot have none
    values: dict[Place, float] = {}
    for place in places:
        if place in total and k >= 0:
            value = float(total[place][k])
        elif SYMBOL[place] in joint.nominal:
            value = 0.0 if own_friction and place in FRICTION else joint.nominal[SYMBOL[place]]
        else:
            continue
        if value < -1e-12:  # what is left of zero needs no telling
            names = ", ".join(_names(robot, place, k)) or f"{SYMBOL[place]}{i + 1}"
            notes.append(f"{names} = {value:.4g} of joint '{joint.name}' is negative and was written as 0")
        values[place] = max(value, 0.0)
    return values


def held_by_joints(robot: Robot) -> dict[Place, Array]:
    """The numbers of every place that effects of the robot have, one per driven joint."""
    total: dict[Place, Array] = {}
    for effect, _, values in _with_columns(robot):
        for place, own in effect.simulator_joint(values, len(robot.effect_joints)).items():
            total[place] = total.get(place, 0.0) + own
    return total


def as_held(robot: Robot, places: Collection[Place] = PLACES) -> Robot:
    """The robot with what a simulator's joints hold of its effects: viscous and dry friction and rotor inertia, none negative."""
    simple = robot.with_effects((Viscous(), Coulomb(), Armature()))
    ignored: list[str] = []
    values: dict[str, float] = {}
    for i in robot.effect_joints:
        own = joint_dynamics(robot, i, ignored)
        values |= {f"{SYMBOL[place]}{i + 1}": own.get(place, 0.0) if place in places else 0.0 for place in PLACES}
    return simple.with_parameters(values)


def nearest_held(robot: Robot, motions: Iterable[Motion]) -> Robot:
    """The robot with the viscous and dry friction and rotor inertia whose torque is nearest to its own over these motions.

        minimise sum (tau_odd(v) - damping v - friction sign(v))^2,      damping, friction >= 0

    of every joint, where ``tau_odd`` is the part of its friction that changes with the direction: an offset is no friction, and a
    simulator's joint has no place for it. Rotor inertia is that of each joint alone.
    """
    numbers = [i + 1 for i in robot.effect_joints]
    n = len(numbers)
    # a dead zone belongs to noisy signals, not to the joint
    friction = [(e.smoothed(np.zeros(n)), values) for e, _, values in _with_columns(robot) if e.is_friction]
    speed, target = [np.zeros((0, n))], [np.zeros((0, n))]
    for motion in motions:
        still = np.zeros_like(motion.velocity)
        forth, back = (
            sum(
                (effect.signals(replace(motion, velocity=v, acceleration=still, travel=None)) * values)
                @ effect.incidence(n).T
                for effect, values in friction
            )
            for v in (motion.velocity, -motion.velocity)
        )
        speed.append(motion.velocity)
        target.append(np.broadcast_to(0.5 * (np.asarray(forth) - np.asarray(back)), motion.velocity.shape))
    v, tau = np.concatenate(speed), np.concatenate(target)
    rotors = held_by_joints(robot).get("armature", np.zeros(n))
    values: dict[str, float] = {}
    for k, number in enumerate(numbers):
        moving = np.abs(v[:, k]) > 0.0
        columns = np.column_stack([v[moving, k], np.sign(v[moving, k])])
        size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        found = _two_nonnegative(columns / size, tau[moving, k]) / size
        values |= {f"fv{number}": float(found[0]), f"fc{number}": float(found[1]), f"Ia{number}": float(rotors[k])}
    return robot.with_effects((Viscous(), Coulomb(), Armature())).with_parameters(values)


def _two_nonnegative(columns: Array, target: Array) -> Array:
    """Least squares by two columns with factors that are not negative: of both, of one alone, or of none, whichever is nearest.

    SciPy's solver for any number of columns is the same thing behind an import that takes longer than the whole export.
    """
    both = np.linalg.lstsq(columns, target, rcond=None)[0]
    if (both >= 0.0).all():
        return np.asarray(both)
    gain = np.maximum(columns.T @ target, 0.0)
    size = np.maximum((columns**2).sum(axis=0), 1e-300)
    better = int(np.argmax(gain**2 / size))  # the one that takes most off the sum of squares
    found = np.zeros(2)
    found[better] = gain[better] / size[better]
    return found


def left_out(robot: Robot, format: str, places: Collection[Place], *, gravity: bool = True) -> list[str]:
    """What the robot has and a format with these places in its joints holds in part or not at all; perhaps also gravity."""
    lost: dict[str, str] = {}
    for effect, columns, values in _with_columns(robot):
        reached = _reached(effect, len(columns), len(robot.effect_joints))
        for column, value, own in zip(columns, values.tolist(), reached, strict=True):
            symbol = column.symbol
            if value == 0.0:
                continue
            what = f"{_what(symbol)} ({column.name} ..)"
            if symbol in lost:
                continue
            if not own or not own <= set(places):
                lost[symbol] = f"{format} has no place for {what}"
            elif symbol in effect.held_in_part:
                nearest = " and ".join(_NEAREST[place] for place in PLACES if place in own)
                lost[symbol] = f"{format} holds {what} only as {nearest}"
    notes = [lost[symbol] for symbol in sorted(lost)]
    if gravity and not np.array_equal(robot.gravity, [0.0, 0.0, -9.81]):
        notes.append(f"{format} has no gravity; this robot's is {' '.join(map(repr, robot.gravity.tolist()))} m/s^2")
    return notes


def _what(symbol: str) -> str:
    """Words for the columns of an effect, of joints or of the motors of a coupling."""
    if symbol.endswith(MOTOR) and symbol.removesuffix(MOTOR) in _WHAT:
        return f"{_WHAT[symbol.removesuffix(MOTOR)]} of coupled motors"
    return _WHAT.get(symbol, f"parameter {symbol}")


def _with_columns(robot: Robot) -> Iterator[tuple[Effect, tuple[Column, ...], Array]]:
    """Every effect with its columns and their values."""
    first = robot.parameters.n_inertial
    for effect in robot.effects:
        n = effect.incidence(len(robot.effect_joints)).shape[1]
        yield effect, robot.parameters.columns[first : first + n], robot.parameters.values[first : first + n]
        first += n


def _reached(effect: Effect, n_columns: int, n_joints: int) -> list[set[Place]]:
    """The places that each column enters."""
    units = (effect.simulator_joint(unit, n_joints) for unit in np.eye(n_columns))
    return [{place for place, own in held.items() if np.any(own)} for held in units]


def _names(robot: Robot, place: Place, k: int) -> list[str]:
    """Columns that enter a place of a joint."""
    names = []
    for effect, columns, _ in _with_columns(robot):
        for column, unit in zip(columns, np.eye(len(columns)), strict=True):
            own = effect.simulator_joint(unit, len(robot.effect_joints)).get(place)
            if own is not None and own[k]:
                names.append(column.name)
    return names
