"""An effect that some joints have and others do not: friction differs from joint to joint of one robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray
from dynid.errors import InputError
from dynid.parameters import Column
from dynid.robot.effects.effect import Effect, FormulaMotion, InnerValue, Motion, MotionSlopes, NonlinearOption, Place
from dynid.robot.effects.mathematics import Mathematics, Value
from dynid.robot.joint import Joint


@dataclass(frozen=True)
class OnJoints(Effect):
    """Another effect on some of the joints alone.

    Args:
        effect: the effect; options of its joints are given for all joints of the robot.
        joints: numbers, from 1, of the joints that have it.

    Examples:
        >>> import dynid
        >>> some = dynid.effects.OnJoints(dynid.Coulomb(), joints=(2, 4))
        >>> dynid.demo_robot(effects=[dynid.Viscous(), some]).parameters.names[-2:]
        ('fc2', 'fc4')
    """

    name: ClassVar[str] = "on_joints"
    effect: Effect
    joints: tuple[int, ...]

    def __post_init__(self) -> None:
        chosen = tuple(int(joint) for joint in self.joints)
        if not chosen or len(set(chosen)) != len(chosen) or min(chosen) < 1:
            raise InputError(f"effect '{self.effect.name}' is on joints {self.joints}, expected different numbers from 1")
        if isinstance(self.effect, OnJoints):
            raise InputError(f"effect '{self.effect.effect.name}' is limited to joints twice")
        object.__setattr__(self, "joints", tuple(sorted(chosen)))

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        if max(self.joints) > len(joints):
            raise InputError(
                f"effect '{self.effect.name}' is on joint {max(self.joints)}, the robot has {len(joints)} joints"
            )
        inner = self.effect.columns(numbers, joints)
        return tuple(inner[i] for i in self._kept(len(joints)))

    def signals(self, motion: Motion) -> Array:
        return self.effect.signals(motion)[:, self._kept(motion.velocity.shape[1])]

    def scalar_signals(self, m: Mathematics, motion: Sequence[FormulaMotion]) -> list[Value]:
        inner = self.effect.scalar_signals(m, motion)
        return [inner[i] for i in self._kept(len(motion))]

    def incidence(self, n_joints: int) -> Array:
        return self.effect.incidence(n_joints)[:, self._kept(n_joints)]

    @property
    def is_friction(self) -> bool:
        return self.effect.is_friction

    @property
    def loaded(self) -> bool:
        return self.effect.loaded

    @property
    def remembers(self) -> bool:
        return self.effect.remembers

    @property
    def dry(self) -> bool:
        return self.effect.dry

    @property
    def nonnegative(self) -> tuple[str, ...]:
        return self.effect.nonnegative

    @property
    def depends_on_acceleration(self) -> bool:
        return self.effect.depends_on_acceleration

    def nonlinear_options(self) -> tuple[NonlinearOption, ...]:
        return self.effect.nonlinear_options()

    def signals_and_derivatives(self, motion: Motion, options: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        signals, slopes = self.effect.signals_and_derivatives(motion, options)
        kept = self._kept(motion.velocity.shape[1])
        return signals[:, kept], {option: slope[:, kept] for option, slope in slopes.items()}

    def option_values(self, option: str, n_joints: int) -> Array:
        return self.effect.option_values(option, n_joints)

    def with_option(self, option: str, values: ArrayLike) -> OnJoints:
        return replace(self, effect=self.effect.with_option(option, values))

    def inner_numbers(self, joints: Sequence[Joint]) -> tuple[tuple[InnerValue, ...], ...]:
        inner = self.effect.inner_numbers(joints)
        return tuple(own if i + 1 in self.joints else () for i, own in enumerate(inner))

    def motion_slopes(self, motion: Motion) -> MotionSlopes:
        inner = self.effect.motion_slopes(motion)
        kept = self._kept(motion.velocity.shape[1])
        slopes = (inner.by_position, inner.by_velocity, inner.by_acceleration)
        return MotionSlopes(*(None if slope is None else slope[:, kept] for slope in slopes))

    def motion_gradient(self, motion: Motion, weights: Array) -> tuple[Array | None, Array | None, Array | None]:
        n = motion.velocity.shape[1]
        every = np.zeros((len(weights), self.effect.incidence(n).shape[1]))
        every[:, self._kept(n)] = weights
        return self.effect.motion_gradient(motion, every)

    def momentum_signals(self, motion: Motion) -> Array | None:
        inner = self.effect.momentum_signals(motion)
        return None if inner is None else inner[:, self._kept(motion.velocity.shape[1])]

    def energy_signals(self, motion: Motion) -> Array | None:
        inner = self.effect.energy_signals(motion)
        return None if inner is None else inner[:, self._kept(motion.velocity.shape[1])]

    @property
    def is_sharp(self) -> bool:
        return self.effect.is_sharp

    def smoothed(self, widths: Array, *, at_least: bool = False) -> Effect:
        return replace(self, effect=self.effect.smoothed(widths, at_least=at_least))

    def without_memory(self) -> Effect:
        return replace(self, effect=self.effect.without_memory())

    def simulator_joint(self, values: Array, n_joints: int) -> Mapping[Place, Array]:
        every = np.zeros(self.effect.incidence(n_joints).shape[1])
        every[self._kept(n_joints)] = values
        return self.effect.simulator_joint(every, n_joints)

    @property
    def held_in_part(self) -> tuple[str, ...]:
        return self.effect.held_in_part

    @property
    def not_held(self) -> tuple[str, ...]:
        return self.effect.not_held

    def _kept(self, n_joints: int) -> IntArray:
        """Columns of the effect that belong to the chosen joints."""
        joint = np.abs(self.effect.incidence(n_joints)).argmax(axis=0) + 1
        return np.flatnonzero(np.isin(joint, self.joints))
