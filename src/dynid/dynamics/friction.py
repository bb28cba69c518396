"""Friction over states, for integration: its torque, its slope, and how a pure sign is smoothed.

Effects of passive joints are what the motors of a closed robot feel of them, ``G^T f(G v)``. Rows and inverse dynamics hold them by
:func:`~dynid.dynamics.inverse_dynamics.passive_columns`; here rotors belong to the inertia matrix and the rest to the friction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.closed_chains import TreeMotion, closures_of
from dynid.dynamics.inverse_dynamics import effect_signals, passive_columns
from dynid.dynamics.joint_effects import effect_gains, is_rotor, rotor_matrix
from dynid.errors import InputError
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.effect import Effect, Motion
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.robot import Robot


def without_passive_effects(robot: Robot) -> Robot:
    """The robot whose effects act on its actuated joints alone, with the same values."""
    if not robot.loops.rubbing:
        return robot
    kept = [one for one in (effect.kept(range(len(robot.driven))) for effect in robot.effects) if one is not None]
    bare = replace(robot.with_effects(()), loops=replace(robot.loops, rubbing=()))
    made = bare.with_effects(kept)
    values = robot.parameters.as_dict()
    return made.with_parameters({name: values[name] for name in made.parameters.names})


class PassiveEffects:
    """What effects of passive joints do to the motors; nothing where no passive joint has any."""

    def __init__(self, robot: Robot) -> None:
        self.joints = [robot.body_index(name) for name in robot.loops.rubbing]
        resting = [effect for effect in robot.effects if not is_rotor(effect)]
        self._robot = robot.with_effects(resting) if self.joints else robot
        self._values = self._robot.parameters.values[self._robot.parameters.n_inertial :]
        self._any = bool(self.joints and resting)
        values = robot.parameters.as_dict()
        self.rotors = np.array([values.get(f"Ia{joint + 1}", 0.0) for joint in self.joints])

    def inertia(self, motion: TreeMotion) -> tuple[Array, Array]:
        """What passive rotors add to the inertia matrix, and to the torque that no acceleration needs."""
        G = motion.G[:, self.joints]
        matrix = np.einsum("spi,p,spj->sij", G, self.rotors, G)
        return matrix, np.einsum("spi,p,sp->si", G, self.rotors, motion.acceleration[:, self.joints])

    def torque(self, motion: TreeMotion) -> Array:
        """Friction and springs of passive joints at the motors, ``(samples, motors)``."""
        if not self._any:
            return np.zeros((len(motion.position), motion.G.shape[2]))
        signals = effect_signals(self._robot, *_actuated(self._robot, motion), tree=motion)
        return np.asarray(passive_columns(self._robot, motion, signals) @ self._values)

    def at(self, q: Array, v: Array) -> Array:
        """The same at positions and velocities of the actuated joints."""
        if not self._any:
            return np.zeros_like(v)
        closures = closures_of(self._robot)
        return self.torque(closures.follow(closures.positions(np.ascontiguousarray(q)), v))


def _actuated(robot: Robot, motion: TreeMotion) -> tuple[Array, Array, Array]:
    own = closures_of(robot).actuated
    return motion.position[:, own], motion.velocity[:, own], motion.acceleration[:, own]


COULOMB_WIDTH = 0.01
"""rad/s or m/s over which a pure sign is smoothed, ``tanh(v / width)``: integration needs a slope."""
SLOPE_STEP = 1e-5
"""rad/s or m/s over which slopes of friction are taken."""
Inertia: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]
"""``inertia(q, v)``: the matrix, rotors included, and the torque that no acceleration needs, over rows of states."""
FrictionLaw: TypeAlias = Callable[[Array, Array, Array], Array]
"""``friction(q, v, tau)`` opposes the motor torque ``tau``; of one state, or over rows of states."""


def friction_torque(robot: Robot, load_rounds: int = 1, inertia: Inertia | None = None) -> FrictionLaw:
    """Torque of all effects but rotor inertia, which the mass matrix holds; that of passive joints as the motors feel it.

    Friction that depends on the transmitted torque takes ``tau`` for it; with more ``load_rounds``, ``tau`` less friction, and with
    ``inertia``, matrix and bias at states, less what rotors need of it.
    """
    if robot.loops.rubbing:
        own, passive = friction_torque(without_passive_effects(robot), load_rounds, inertia), PassiveEffects(robot)
        return lambda q, v, tau: own(q, v, tau) + passive.at(np.atleast_2d(q), np.atleast_2d(v)).reshape(v.shape)
    fo, fv, fc = (_joint_values(robot, kind) for kind in (Offset, Viscous, Coulomb))
    width = _coulomb_width(robot)
    sharp = [effect for effect in robot.effects if _is_sharp(effect)]
    if sharp:  # such a sign is not written out below
        fc, width = np.zeros_like(fc), np.ones_like(width)
    steepness, rest = 1.0 / width, [*other_effects(robot), *(one for one in effect_gains(robot) if one[0] in sharp)]
    others = [(effect, gain) for effect, gain in rest if effect.is_friction]
    springs = [(effect, gain) for effect, gain in rest if not effect.is_friction]
    rounds = load_rounds if any(effect.loaded for effect, _ in others) else 1
    rotors = rotor_matrix(robot)
    turned = None if inertia is None or rounds == 1 or not rotors.any() else inertia

    def law(q: Array, v: Array, tau: Array) -> Array:
        drag = fo + fv * v + fc * np.tanh(steepness * v)
        if not others and not springs:
            return np.asarray(drag)
        shape = (-1, v.shape[-1])
        position, velocity, torque, total = (x.reshape(shape) for x in (q, v, tau, drag))
        first, still, carried = total, np.zeros_like(velocity), torque
        known = None if turned is None else turned(position, velocity)
        for _ in range(rounds):
            total = _added(first, others, Motion(position, velocity, still, carried))
            carried = torque - total
            if known is not None:
                carried = carried - np.linalg.solve(known[0], (carried - known[1])[..., None])[..., 0] @ rotors
        return _added(total, springs, Motion(position, velocity, still, torque)).reshape(v.shape)

    return law


def _is_sharp(effect: Effect) -> bool:
    """Whether an effect is a sign of velocity with a jump or a dead zone in it."""
    if not isinstance(effect, Coulomb):
        return False
    return bool(np.any(np.less_equal(effect.smooth_width, 0.0)) or np.any(effect.dead_zone))


def _added(torque: Array, effects: Sequence[tuple[Effect, Array]], motion: Motion) -> Array:
    """``torque`` and that of effects, each with the matrix of its gains."""
    return sum((effect.signals(motion) @ gain.T for effect, gain in effects), torque)


def friction_with_slope(friction: FrictionLaw, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
    """Friction over rows and ``d friction / dv``, ``(rows, joints, joints)``, by central differences."""
    n = v.shape[1]
    moved = v + SLOPE_STEP * np.concatenate([np.zeros((1, n)), np.eye(n), -np.eye(n)])[:, None]
    rows = (np.broadcast_to(part, moved.shape).reshape(-1, n) for part in (q, moved, tau))
    found = friction(*rows).reshape(moved.shape)
    return found[0], np.asarray((found[1 : n + 1] - found[n + 1 :]).transpose(1, 2, 0) / (2.0 * SLOPE_STEP))


def steepest_friction(robot: Robot) -> Array:
    """Largest change of friction with velocity, per joint; of passive joints an upper bound of what the motors feel."""
    if robot.loops.rubbing:
        return steepest_friction(without_passive_effects(robot)) + _passive_slope(robot)
    slope = np.abs(_joint_values(robot, Viscous)) + np.abs(_joint_values(robot, Coulomb)) / _coulomb_width(robot)
    speeds = np.linspace(-4.0, 4.0, 4001)
    still = np.zeros((len(speeds), robot.n_joints))
    motion = Motion(still, np.tile(speeds[:, None], robot.n_joints), still, still)
    for effect, gain in other_effects(robot):
        torque = effect.signals(motion) @ gain.T
        slope = slope + np.abs(np.diff(torque, axis=0)).max(axis=0) / (speeds[1] - speeds[0])
    return slope


def _passive_slope(robot: Robot) -> Array:
    """``G^T D G <= diag(sum_p D_p |G_pj| sum_k |G_pk|)`` with the largest ``G`` of the robot's range."""
    joints = [robot.body_index(name) for name in robot.loops.rubbing]
    values = robot.parameters.as_dict()
    widths = next((effect.smooth_width for effect in robot.effects if isinstance(effect, Coulomb)), 1.0)
    narrowest = float(np.min(np.asarray(widths, dtype=np.float64)))
    steep = np.array(
        [abs(values.get(f"fv{j + 1}", 0.0)) + abs(values.get(f"fc{j + 1}", 0.0)) / max(narrowest, 1e-6) for j in joints]
    )
    G = np.abs(closures_of(robot).seeds.G[:, joints]).max(axis=0)
    return np.asarray((steep[:, None] * G * G.sum(axis=1, keepdims=True)).sum(axis=0))


def smooth_friction(robot: Robot, width: float, *, at_least: bool = False) -> Robot:
    """The robot with friction that has a slope everywhere: ``tanh(v / width)`` on joints and motors where it is a pure sign.

    With ``at_least`` no joint turns over within less than the width, and friction has no dead zone and no memory of a filter.
    """
    widths = np.full(len(robot.effect_joints), width)
    if at_least:
        effects = [effect.smoothed(widths, at_least=True).without_memory() for effect in robot.effects]
    else:
        sharp = [effect.is_sharp or isinstance(effect, Coulomb) for effect in robot.effects]
        effects = [effect.smoothed(widths) if one else effect for effect, one in zip(robot.effects, sharp, strict=True)]
    return robot.with_effects(effects)


def other_effects(robot: Robot) -> list[tuple[Effect, Array]]:
    """Effects beyond the classical ones and inertia of rotors, each with its matrix from column signals to torques."""
    return [
        (effect, gain)
        for effect, gain in effect_gains(robot)
        if not isinstance(effect, Viscous | Coulomb | Offset | Armature) and not is_rotor(effect)
    ]


def refuse_acceleration_effects(robot: Robot) -> None:
    """Rotor inertia is in the mass matrix; no other effect may depend on the acceleration that is to be solved for."""
    for effect, _ in other_effects(robot):
        if effect.depends_on_acceleration:
            raise InputError(f"effect '{effect.name}' depends on acceleration and cannot be simulated")


def _joint_values(robot: Robot, kind: type[Viscous | Coulomb | Offset]) -> Array:
    """Values of a classical effect per joint; other effects, such as a smooth sign, may have columns of the same symbol."""
    own = [np.diag(gain) for effect, gain in effect_gains(robot) if isinstance(effect, kind)]
    return sum(own, np.zeros(len(robot.effect_joints)))


def _coulomb_width(robot: Robot) -> Array:
    """Width of the smooth sign per joint; one where there is no Coulomb friction."""
    for effect in robot.effects:
        if isinstance(effect, Coulomb):
            return np.broadcast_to(np.asarray(effect.smooth_width, dtype=np.float64), (robot.n_joints,)).copy()
    return np.ones(robot.n_joints)
