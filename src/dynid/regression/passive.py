"""Friction, rotors and springs of passive joints, as the motors of a closed robot feel them: ``G^T f(G v)``.

Rows and inverse dynamics hold them by :func:`~dynid.regression.torque.passive_columns`; here they stand for integration, where rotors
belong to the inertia matrix and the rest to the friction of a state.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.regression.closed_motion import TreeMotion, closures_of
from dynid.regression.torque import effect_signals, passive_columns
from dynid.robot.model import Robot
from dynid.robot.rotors import is_rotor


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
