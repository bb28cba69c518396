"""Effects on some joints alone, and effects of motors that drive several joints together.

Both hold another effect and choose among its columns. :class:`OnJoints` takes those of some joints: friction differs from joint to
joint of one robot. :class:`Coupled` puts an effect on motors, such as those of a differential wrist: with ``B`` the coupling, motor
speeds are ``v_m = B v`` and, because power is the same on both sides, ``tau = B^T tau_m``. An effect of the motors, with signals
``s(B q, B v, B a)`` and incidence ``C``, therefore acts on the joints with ``B^T C``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray
from dynid.errors import InputError
from dynid.model.coupling import checked_coupling
from dynid.model.effects.effect import Effect, EffectValue, Motion, NonlinearParameter, Place
from dynid.model.effects.mathematics import Mathematics, Value
from dynid.model.joint import Joint
from dynid.model.parameters import Column

MOTOR = "m"
"""What the symbols of columns end with that belong to motors."""
_ANY_JOINT = Joint("motor", "revolute", -1, np.eye(4), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))


class Wrapped(Effect):
    """Base class of effects that hold another one: some of its columns, on the motion that it sees."""

    effect: Effect

    @abstractmethod
    def chosen_numbers(self, n_joints: int) -> Sequence[int]:
        """Numbers, from 1, of the joints or motors that have the effect."""

    def seen_motion(self, motion: Motion) -> Motion:
        """The motion that the effect inside sees."""
        return motion

    def with_effect(self, effect: Effect) -> Effect:
        """The same around another effect."""
        made: Any = replace(self, effect=effect)  # type: ignore[type-var]
        assert isinstance(made, Effect)
        return made

    def _chosen(self, n_joints: int) -> IntArray:
        """Columns of the effect inside that belong to the chosen joints or motors."""
        number = np.abs(self.effect.incidence(n_joints)).argmax(axis=0) + 1
        return np.flatnonzero(np.isin(number, self.chosen_numbers(n_joints)))

    def _all(self, values: Array, n_joints: int) -> Array:
        """Values ``(..., columns)`` among those of all columns of the effect inside, zero for the others."""
        every = np.zeros((*values.shape[:-1], self.effect.incidence(n_joints).shape[1]))
        every[..., self._chosen(n_joints)] = values
        return every

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        inside = self.effect.columns(numbers, joints)
        return tuple(inside[i] for i in self._chosen(len(joints)))

    def signals(self, motion: Motion) -> Array:
        return self.effect.signals(self.seen_motion(motion))[:, self._chosen(motion.velocity.shape[1])]

    def scalar_signals(self, m: Mathematics, motion: Sequence[Motion]) -> list[Value]:
        inside = self.effect.scalar_signals(m, motion)
        return [inside[i] for i in self._chosen(len(motion))]

    def incidence(self, n_joints: int) -> Array:
        return self.effect.incidence(n_joints)[:, self._chosen(n_joints)]

    def dissipation(self, speeds: Array, load: Array) -> Array:
        """Of the joints or motors, at speeds of theirs: what each takes of the energy of all joints."""
        return self.effect.dissipation(speeds, load)[:, self._chosen(speeds.shape[1])]

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

    @property
    def is_sharp(self) -> bool:
        return self.effect.is_sharp

    @property
    def held_in_part(self) -> tuple[str, ...]:
        return self.effect.held_in_part

    @property
    def not_held(self) -> tuple[str, ...]:
        return self.effect.not_held

    def searched_parameters(self) -> tuple[NonlinearParameter, ...]:
        return self.effect.searched_parameters()

    def signals_and_derivatives(self, motion: Motion, options: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        signals, slopes = self.effect.signals_and_derivatives(self.seen_motion(motion), options)
        chosen = self._chosen(motion.velocity.shape[1])
        return signals[:, chosen], {option: slope[:, chosen] for option, slope in slopes.items()}

    def option_values(self, option: str, n_joints: int) -> Array:
        return self.effect.option_values(option, n_joints)

    def with_option(self, option: str, values: ArrayLike) -> Effect:
        return self.with_effect(self.effect.with_option(option, values))

    def nonlinear_values(self, joints: Sequence[Joint]) -> tuple[tuple[EffectValue, ...], ...]:
        chosen = self.chosen_numbers(len(joints))
        inside = self.effect.nonlinear_values(joints)
        return tuple(
            tuple(replace(one, effect=self.name) for one in own) if i + 1 in chosen else () for i, own in enumerate(inside)
        )

    def motion_gradient(self, motion: Motion, weights: Array) -> tuple[Array | None, Array | None, Array | None]:
        return self.effect.motion_gradient(self.seen_motion(motion), self._all(weights, motion.velocity.shape[1]))

    def momentum_signals(self, motion: Motion) -> Array | None:
        inside = self.effect.momentum_signals(self.seen_motion(motion))
        return None if inside is None else inside[:, self._chosen(motion.velocity.shape[1])]

    def energy_signals(self, motion: Motion) -> Array | None:
        inside = self.effect.energy_signals(self.seen_motion(motion))
        return None if inside is None else inside[:, self._chosen(motion.velocity.shape[1])]

    def smoothed(self, widths: Array, *, at_least: bool = False) -> Effect:
        return self.with_effect(self.effect.smoothed(widths, at_least=at_least))

    def without_memory(self) -> Effect:
        return self.with_effect(self.effect.without_memory())

    def simulator_joint(self, values: Array, n_joints: int) -> Mapping[Place, Array]:
        return self.effect.simulator_joint(self._all(values, n_joints), n_joints)


@dataclass(frozen=True)
class OnJoints(Wrapped):
    """Another effect on some of the joints alone.

    Args:
        effect: the effect; options of its joints are given for all joints of the robot.
        joints: numbers, from 1, of the joints that have it.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.wrapped import OnJoints
        >>> some = OnJoints(dynid.Coulomb(), joints=(2, 4))
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

    def chosen_numbers(self, n_joints: int) -> Sequence[int]:
        return self.joints

    @property
    def label(self) -> str:
        return f"{self.effect.label} of joints {', '.join(map(str, self.joints))}"

    def kept(self, joints: Sequence[int]) -> Effect | None:
        inside = self.effect.kept(joints)
        left = tuple(place + 1 for place, old in enumerate(joints) if old + 1 in self.joints)
        return None if inside is None or not left else OnJoints(inside, left)

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        if max(self.joints) > len(joints):
            raise InputError(
                f"effect '{self.effect.name}' is on joint {max(self.joints)}, the robot has {len(joints)} joints"
            )
        return super().columns(numbers, joints)


@dataclass(frozen=True)
class Coupled(Wrapped):
    """Another effect, on the motors of a coupled transmission instead of on the joints.

    Columns have the symbol of the inner effect, an ``m`` and the number of the motor: ``fvm6``.

    Args:
        effect: the effect on each motor.
        coupling: ``B`` of ``v_motor = B v``, row by row, over all joints with one degree of freedom.
        motors: numbers (from 1) of the motors that have the effect; None for all.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.model.effects.wrapped import Coupled
        >>> B = np.eye(7)
        >>> B[5, 4] = 1.0
        >>> motor = Coupled(dynid.Viscous(), tuple(map(tuple, B.tolist())), motors=(6,))
        >>> dynid.demo_robot(effects=[dynid.Viscous(), motor]).parameters.names[-1]
        'fvm6'
    """

    name: ClassVar[str] = "coupled"
    effect: Effect
    coupling: tuple[tuple[float, ...], ...]
    motors: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        rows = checked_coupling(self.coupling)
        object.__setattr__(self, "coupling", rows)
        if isinstance(self.effect, Coupled):
            raise InputError("a coupled effect is given inside another; multiply their couplings instead")
        if self.motors is not None:
            wrong = [motor for motor in self.motors if not 1 <= motor <= len(rows)]
            if wrong or not self.motors or len(set(self.motors)) != len(self.motors):
                raise InputError(f"motors of a coupling are {self.motors}, expected different numbers from 1 to {len(rows)}")
            object.__setattr__(self, "motors", tuple(sorted(int(motor) for motor in self.motors)))

    @property
    def B(self) -> Array:
        """The coupling as a matrix."""
        return np.array(self.coupling)

    @property
    def label(self) -> str:
        return f"motor {self.effect.label}"

    def kept(self, joints: Sequence[int]) -> Effect | None:
        """A motor that turns with a locked joint turns with the others alone; motors of locked joints are gone."""
        B = self.B[np.ix_(list(joints), list(joints))]
        chosen = self.chosen_numbers(len(self.coupling))
        motors = tuple(place + 1 for place, old in enumerate(joints) if old + 1 in chosen)
        inside = self.effect.kept(joints)
        return None if inside is None or not motors else Coupled(inside, tuple(map(tuple, B.tolist())), motors)

    @property
    def remembers(self) -> bool:
        """Where motors reversed is not known from the travel of joints."""
        return False

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        if len(joints) != len(self.coupling):
            raise InputError(f"coupling is of {len(self.coupling)} motors, the robot has {len(joints)} joints")
        return tuple(replace(column, symbol=f"{column.symbol}{MOTOR}") for column in super().columns(numbers, joints))

    def incidence(self, n_joints: int) -> Array:
        return np.asarray(self.B.T @ super().incidence(n_joints))

    def scalar_signals(self, m: Mathematics, motion: Sequence[Motion]) -> list[Value]:
        def mixed(matrix: Array, name: str) -> list[Value]:
            values = [getattr(one, name) for one in motion]
            return [sum((float(x) * value for x, value in zip(row, values, strict=True) if x != 0.0), 0.0) for row in matrix]

        parts = [mixed(self.B, name) for name in ("position", "velocity", "acceleration")]
        load = mixed(np.asarray(np.linalg.inv(self.B).T), "load")
        return super().scalar_signals(m, [Motion(*one) for one in zip(*parts, load, strict=True)])

    @property
    def nonnegative(self) -> tuple[str, ...]:
        return self._on_motors(self.effect.nonnegative)

    def searched_parameters(self) -> tuple[NonlinearParameter, ...]:
        return tuple(replace(one, key=f"motor {one.key}") for one in self.effect.searched_parameters())

    def nonlinear_values(self, joints: Sequence[Joint]) -> tuple[tuple[EffectValue, ...], ...]:
        """Those of the motors, motor by motor."""
        return tuple(
            tuple(replace(one, name=f"{one.name}{MOTOR}") for one in own) for own in super().nonlinear_values(joints)
        )

    def motion_gradient(self, motion: Motion, weights: Array) -> tuple[Array | None, Array | None, Array | None]:
        found = super().motion_gradient(motion, weights)
        by_position, by_velocity, by_acceleration = (None if part is None else part @ self.B for part in found)
        return by_position, by_velocity, by_acceleration

    def smoothed(self, widths: Array, *, at_least: bool = False) -> Effect:
        """Widths are those of joints; motors, whose speeds are mixtures of theirs, share the mean."""
        return super().smoothed(np.full(len(widths), widths.mean()), at_least=at_least)

    def simulator_joint(self, values: Array, n_joints: int) -> Mapping[Place, Array]:
        """Each joint's own share of ``B^T diag(x) B``; dry friction of several motors adds up, each by the size of its lever."""
        levers: dict[Place, Array] = {"damping": self.B**2, "friction": np.abs(self.B), "armature": self.B**2}
        held = super().simulator_joint(values, n_joints)
        return {place: levers[place].T @ of_motors for place, of_motors in held.items()}

    @property
    def held_in_part(self) -> tuple[str, ...]:
        """All that has a place, unless every motor drives one joint alone."""
        n = len(self.coupling)
        rows = self.B[[motor - 1 for motor in self.chosen_numbers(n)]]
        if np.all(np.count_nonzero(rows, axis=1) == 1):
            return self._on_motors(self.effect.held_in_part)
        symbols = {column.symbol for column in self.effect.columns(range(1, n + 1), (_ANY_JOINT,) * n)}
        return self._on_motors(sorted(symbols - set(self.effect.not_held)))

    @property
    def not_held(self) -> tuple[str, ...]:
        return self._on_motors(self.effect.not_held)

    def _on_motors(self, symbols: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{symbol}{MOTOR}" for symbol in symbols)

    def chosen_numbers(self, n_joints: int) -> Sequence[int]:
        return range(1, n_joints + 1) if self.motors is None else self.motors

    def seen_motion(self, motion: Motion) -> Motion:
        """The motion of the motors."""
        B = self.B
        load = None if motion.load is None else np.asarray(np.linalg.solve(B.T, motion.load.T).T)
        return Motion(motion.position @ B.T, motion.velocity @ B.T, motion.acceleration @ B.T, load)
