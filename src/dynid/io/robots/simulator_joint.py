"""What writers of models share: what a simulator's joint holds of a robot's effects, what is lost, refusals and notes.

A simulator's joint has places for viscous and dry friction and rotor inertia at most; effects say themselves what they put there.
Offsets, Stribeck or load-dependent friction have no place in most formats, and a simulator that loads the file lacks their torque:
that difference is measured here, joint by joint, beside the proof of a file, which compares what the format holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.closed_chains import closures_of
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits, with_transmitted_load
from dynid.errors import InconsistentModelError, InputError, UnknownNameError
from dynid.io.robots.description import Description, read_description
from dynid.io.robots.xml import ElementSpan
from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb, TurningEffect
from dynid.model.effects.effect import PLACES, Effect, Motion, Place
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.effects.wrapped import MOTOR
from dynid.model.inertia import is_consistent
from dynid.model.parameters import Column
from dynid.model.robot import Robot
from dynid.signals.samples import Samples


@dataclass(frozen=True)
class WrittenModel:
    """A file that was written: its format, how it was made, and what it could not hold."""

    path: Path
    format: str
    patched: bool
    """True where the robot's own file was edited, False where the file was written anew."""
    notes: tuple[str, ...] = ()
    companions: tuple[Path, ...] = ()
    """Files that belong to it, such as a header or arrays."""


def inconsistent_links(robot: Robot) -> tuple[str, ...]:
    """Moving links that no physical body could be; empty ones are frames and allowed."""
    fine = np.atleast_1d(is_consistent(robot.parameters.inertials, "full", allow_empty=True))
    return tuple(link for link, good in zip(robot.links, fine, strict=True) if not good)


def refuse_inconsistent(robot: Robot, allow_inconsistent: bool) -> list[str]:
    """A note on inconsistent links where they are allowed; an error that names them where they are not."""
    bad = inconsistent_links(robot)
    if bad and not allow_inconsistent:
        raise InconsistentModelError(
            f"{those_of(robot, bad)}; choose a method that keeps links consistent, or have them written as they are "
            "('dynid export RUN --allow-inconsistent', in Python allow_inconsistent=True)"
        )
    return [f"links {', '.join(bad)} are not physically consistent"] if bad else []


def those_of(robot: Robot, bad: Sequence[str]) -> str:
    """How many links are inconsistent, and which."""
    return f"robot '{robot.name}' has {len(bad)} of {robot.n_bodies} links that no physical body could be: {', '.join(bad)}"


FARTHEST_CENTRE = 1e5
"""Metres: a mass whose centre would be farther away is a rounding error of none, and moments written about it are lost."""


def refuse_moments_without_mass(link: str, phi: Array, format: str) -> None:
    """Formats that state a centre of mass cannot hold first moments of a link that has no mass."""
    moment, mass = float(np.linalg.norm(phi[1:4])), float(phi[0])
    if moment > FARTHEST_CENTRE * abs(mass):
        raise InputError(
            f"link '{link}' has first moments {', '.join(f'{value:.4g}' for value in phi[1:4])} kg m but no mass ({mass:.2g} kg); "
            f"{format} cannot hold that: C source and JSON can, and 'dynid repair RUN -o FILE' gives every link a mass"
        )


_SAME_TORQUE = 1e-9


def refuse_lumped(robot: Robot) -> None:
    """One sentence where links have numbers that the description leaves out and that would act in a file of whole bodies."""
    if not robot.absent:
        return
    q, v, a = random_states_within_limits(robot, 20)
    ours = inverse_dynamics(robot, q, v, a, effects=False)
    whole = inverse_dynamics(replace(robot, absent=()), q, v, a, effects=False)
    if np.abs(whole - ours).max() > _SAME_TORQUE * max(float(np.abs(ours).max()), 1e-300):
        raise InputError(
            f"robot '{robot.name}' is a lumped model: parameters that its description leaves out ({', '.join(robot.absent[:3])}, ..) "
            "are not zero now and would act in a file of whole bodies; export it as json"
        )


def source_to_patch(
    robot: Robot, source: str | os.PathLike[str] | None, format: str, lost: str, notes: list[str]
) -> Description | None:
    """The file of a format whose numbers are to be replaced: the one given, or the robot's own; None where there is none.

    ``lost`` are the parts of the robot's own file that a new file lacks, for the note where it is gone.
    """
    if source is not None:
        return read_description(source)
    if robot.source.format != format or not robot.source.path:
        return None
    if not Path(robot.source.path).is_file():
        notes.append(f"robot file '{robot.source.path}' is no longer there: written anew, without {lost}")
        return None
    description = read_description(robot.source.path)
    if description.source(format).sha256 != robot.source.sha256:
        raise InputError(
            f"robot file '{description.path}' has changed since the robot was read from it; "
            "name the file to patch as the source"
        )
    return description


def joints_in_file(robot: Robot, known: Mapping[str, ElementSpan], where: str) -> Iterator[tuple[int, ElementSpan]]:
    """Every joint with one degree of freedom and its element in the robot's own file; an error names one that the file lacks."""
    for i, joint in enumerate(robot.joints):
        if joint.kind != "floating":
            if joint.name not in known:
                raise UnknownNameError("joint", joint.name, known, where)
            yield i, known[joint.name]


def untied(robot: Robot) -> list[str]:
    """Joints that follow others in their description and are joints of their own in a file written anew."""
    beginnings = tuple(f"joint '{joint.name}' is treated as a joint of its own" for joint in robot.joints)
    return [f"{note}; it is written as such" for note in robot.source.notes if note.startswith(beginnings)]


def closed_position(robot: Robot) -> Array:
    """The closed position of all joints that a description starts from."""
    return np.asarray(closures_of(robot).seeds.position[0])


def number(value: float) -> str:
    """Shortest text that reads back as the same double; no negative zero."""
    return repr(value + 0.0)


def vector(values: Array) -> str:
    """Numbers separated by spaces."""
    return " ".join(number(float(value)) for value in values)


URDF_PLACES: tuple[Place, ...] = ("damping", "friction")
"""What the joints of URDF and SDF hold."""


@dataclass(frozen=True)
class JointDifference:
    """Root mean square of the torque that a file lacks at one joint, and of the whole torque there, N m or N."""

    joint: str
    difference: float
    torque: float

    @property
    def relative(self) -> float:
        return self.difference / self.torque if self.torque > 0.0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {"joint": self.joint, "difference": self.difference, "torque": self.torque, "relative": self.relative}


def total_difference(
    robot: Robot, places: Collection[Place] | None, held: Robot | None = None, n_states: int = 400, seed: int = 0
) -> tuple[JointDifference, ...]:
    """Per joint, over random states within the limits; nothing for a format without joints of its own and for a floating base.

    ``held`` is the robot that was written, where that is another than what the joints hold of ``robot`` effect by effect.
    """
    if places is None or robot.floating or robot.loops:
        return ()
    q, v, a = random_states_within_limits(robot, n_states, seed)
    states = Samples(time=np.arange(float(n_states)), position=q, velocity=v, acceleration=a)
    load = with_transmitted_load(robot, states).load
    whole = inverse_dynamics(robot, q, v, a, load)
    lacking = whole - inverse_dynamics(as_held(held or robot, places), q, v, a)
    return tuple(
        JointDifference(name, float(np.sqrt((lacking[:, k] ** 2).mean())), float(np.sqrt((whole[:, k] ** 2).mean())))
        for k, name in enumerate(robot.joint_names)
    )


SYMBOL: dict[Place, str] = {"damping": "fv", "friction": "fc", "armature": "Ia"}
"""What a description calls the number of each place (:attr:`dynid.model.joint.Joint.nominal`)."""
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
            entering = [
                column.name
                for effect, columns, _ in _with_columns(robot)
                for column, unit in zip(columns, np.eye(len(columns)), strict=True)
                if (own := effect.simulator_joint(unit, len(robot.effect_joints)).get(place)) is not None and own[k]
            ]
            names = ", ".join(entering) or f"{SYMBOL[place]}{i + 1}"
            notes.append(f"{names} = {value:.4g} of joint '{joint.name}' is negative and was written as 0")
        values[place] = max(value, 0.0)
    return values


def held_by_joints(robot: Robot, kept: Callable[[Effect], bool] = lambda _effect: True) -> dict[Place, Array]:
    """The numbers of every place that effects of the robot have, those that are kept alone, one per driven joint."""
    total: dict[Place, Array] = {}
    for effect, _, values in _with_columns(robot):
        if not kept(effect):
            continue
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


HELD = (Viscous.name, Coulomb.name, SmoothCoulomb.name)
"""Friction that means the same in a simulator's joint: its coefficients are written as they were identified."""
TURNED = 3.0
"""Widths of a smooth sign beyond which friction slides; what it does while it turns is no part of the damping."""


def nearest_held(robot: Robot, motions: Iterable[Motion]) -> Robot:
    """The robot with the friction that a simulator's joint holds, and the viscous and dry friction nearest to what it does not hold.

        minimise sum (tau_odd(v) - damping v - friction sign(v))^2,      damping, friction >= 0

    of every joint, where ``tau_odd`` is the part of that friction which changes with the direction: an offset is no friction, and a
    simulator's joint has no place for it. Viscous and Coulomb friction stay as they are (:data:`HELD`), unless their smooth sign is
    so wide that the joint turns for most of its motion instead of sliding. Rotor inertia is that of each joint alone.
    """
    numbers = [i + 1 for i in robot.effect_joints]
    n, zero = len(numbers), np.zeros(len(numbers))
    effects = [(effect, values) for effect, _, values in _with_columns(robot) if effect.is_friction]
    exact = held_by_joints(robot, lambda effect: effect.name in HELD)
    wide = [effect.option_values("smooth_width", n) for effect, _ in effects if isinstance(effect, TurningEffect)]
    turned = TURNED * np.max([*wide, zero], axis=0)
    speed, whole, lacking = [np.zeros((0, n))], [np.zeros((0, n))], [np.zeros((0, n))]
    for motion in motions:
        speed.append(motion.velocity)
        whole.append(_odd_torque(effects, motion))
        lacking.append(_odd_torque([(one, values) for one, values in effects if one.name not in HELD], motion))
    v, total, rest = (np.concatenate(parts) for parts in (speed, whole, lacking))
    rotors, (fv, fc) = held_by_joints(robot).get("armature", zero), (exact.get(place, zero) for place in FRICTION)
    values: dict[str, float] = {}
    for k, number in enumerate(numbers):
        moving, slides = np.abs(v[:, k]) > 0.0, np.abs(v[:, k]) > turned[k]
        found = np.array([fv[k], fc[k]])
        if (sliding := 2 * slides.sum() >= moving.sum()) and not rest[:, k].any():
            found = np.maximum(found, 0.0)
        else:
            rows = slides if sliding else moving
            columns = np.column_stack([v[rows, k], np.sign(v[rows, k])])
            size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
            # with what is exact, so that the sum of both is not negative
            target = rest[rows, k] + columns @ found if sliding else total[rows, k]
            found = _two_nonnegative(columns / size, target) / size
        values |= {f"fv{number}": float(found[0]), f"fc{number}": float(found[1]), f"Ia{number}": float(rotors[k])}
    return robot.with_effects((Viscous(), Coulomb(), Armature())).with_parameters(values)


def _odd_torque(effects: Sequence[tuple[Effect, Array]], motion: Motion) -> Array:
    """Torque of effects with their values that changes with the direction, ``(samples, joints)``."""
    n, still = motion.velocity.shape[1], np.zeros_like(motion.velocity)
    forth, back = np.zeros_like(still), np.zeros_like(still)
    for effect, values in effects:
        sharp = effect.smoothed(np.zeros(n))  # a dead zone belongs to noisy signals, not to the joint
        for torque, v in ((forth, motion.velocity), (back, -motion.velocity)):
            signals = sharp.signals(replace(motion, velocity=v, acceleration=still, travel=None))
            torque += (signals * values) @ effect.incidence(n).T
    return np.asarray(0.5 * (forth - back))


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
        for column, value, unit in zip(columns, values.tolist(), np.eye(len(columns)), strict=True):
            symbol = column.symbol
            if value == 0.0 or symbol in lost:
                continue
            held = effect.simulator_joint(unit, len(robot.effect_joints))
            own = {place for place, share in held.items() if np.any(share)}
            words = _WHAT.get(symbol, f"parameter {symbol}")
            if symbol.endswith(MOTOR) and symbol.removesuffix(MOTOR) in _WHAT:
                words = f"{_WHAT[symbol.removesuffix(MOTOR)]} of coupled motors"
            what = f"{words} ({column.name} ..)"
            if not own or not own <= set(places):
                lost[symbol] = f"{format} has no place for {what}"
            elif symbol in effect.held_in_part:
                nearest = " and ".join(_NEAREST[place] for place in PLACES if place in own)
                lost[symbol] = f"{format} holds {what} only as {nearest}"
    notes = [lost[symbol] for symbol in sorted(lost)]
    if gravity and not np.array_equal(robot.gravity, [0.0, 0.0, -9.81]):
        notes.append(f"{format} has no gravity; this robot's is {' '.join(map(repr, robot.gravity.tolist()))} m/s^2")
    return notes


def _with_columns(robot: Robot) -> Iterator[tuple[Effect, tuple[Column, ...], Array]]:
    """Every effect with its columns and their values."""
    first = robot.parameters.n_inertial
    for effect in robot.effects:
        n = effect.incidence(len(robot.effect_joints)).shape[1]
        yield effect, robot.parameters.columns[first : first + n], robot.parameters.values[first : first + n]
        first += n


def as_format_holds(
    robot: Robot, samples: Sequence[Samples], format: str, places: Sequence[Place]
) -> tuple[Robot, tuple[str, ...]]:
    """A robot with its friction as far as a simulator's joint holds it, the nearest to the rest, and what is to be told of it."""
    friction = [effect for effect in robot.effects if effect.is_friction and effect.name != Offset.name]
    if not friction or robot.loops or robot.floating:
        return robot, ()
    lacking = [effect for effect in friction if effect.name not in HELD]
    if not lacking and not any(_smooth(effect) for effect in friction):
        return robot, ()
    motions, where = motions_to_hold(robot, samples)
    kept = [effect for effect in robot.effects if effect not in friction and effect.name != Armature.name]
    rest = left_out(robot.with_effects(kept), format, places, gravity=False)
    told = [f"{format} holds dry friction with a sharp sign; viscous and Coulomb friction are written as identified"]
    if lacking:
        names = ", ".join(effect.label for effect in lacking)
        told = [f"{format} holds friction ({names}) as the damping and dry friction nearest to it by least squares {where}"]
    return nearest_held(robot, motions), (*told, *rest)


def motions_to_hold(robot: Robot, samples: Sequence[Samples]) -> tuple[list[Motion], str]:
    """Motions over which something is replaced by what a format holds, and which they are, in words."""
    if samples:
        motions = [
            Motion(one.position, one.velocity, one.acceleration, with_transmitted_load(robot, one).load) for one in samples
        ]
        return motions, "over the states of the logs"
    q, v, a = random_states_within_limits(robot, 2000, 0)
    states = Samples(time=np.arange(2000.0), position=q, velocity=v, acceleration=a)
    loaded = Motion(q, v, a, with_transmitted_load(robot, states).load)
    return [loaded], "over random states within the limits, for want of the logs"


def _smooth(effect: Effect) -> bool:
    return bool(np.any(np.asarray(getattr(effect, "smooth_width", 0.0)) > 0.0))
