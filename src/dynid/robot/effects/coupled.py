"""Effects of motors that drive several joints together, such as a differential wrist.

With ``B`` the coupling, motor speeds are ``v_m = B v`` and, because power is the same on both sides, ``tau = B^T tau_m``.
An effect of the motors, with signals ``s(B q, B v, B a)`` and incidence ``C``, therefore acts on the joints with ``B^T C``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, matrix
from dynid.errors import InputError
from dynid.parameters import Column
from dynid.robot.effects.effect import Effect, FormulaMotion, InnerValue, Motion, MotionSlopes, NonlinearOption, Place
from dynid.robot.effects.mathematics import Mathematics, Value
from dynid.robot.joint import Joint

MOTOR = "m"
"""What the symbols of columns end with that belong to motors."""
_ANY_JOINT = Joint("motor", "revolute", -1, np.eye(4), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))


@dataclass(frozen=True)
class Coupled(Effect):
    """Another effect, on the motors of a coupled transmission instead of on the joints.

    Columns have the symbol of the inner effect, an ``m`` and the number of the motor: ``fvm6``.

    Args:
        effect: the effect on each motor.
        coupling: ``B`` of ``v_motor = B v``, row by row, over all joints with one degree of freedom.
        motors: numbers (from 1) of the motors that have the effect; None for all.

    Examples:
        >>> import dynid, numpy as np
        >>> B = np.eye(7)
        >>> B[5, 4] = 1.0
        >>> motor = dynid.Coupled(dynid.Viscous(), tuple(map(tuple, B.tolist())), motors=(6,))
        >>> dynid.demo_robot(effects=[dynid.Viscous(), motor]).parameters.names[-1]
        'fvm6'
    """

    name: ClassVar[str] = "coupled"
    effect: Effect
    coupling: tuple[tuple[float, ...], ...]
    motors: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        rows = np.asarray(self.coupling, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[0] != rows.shape[1]:
            raise InputError(f"coupling of motors to joints has shape {rows.shape}, expected a square matrix")
        rows = matrix("coupling of motors to joints", rows, (None, None))
        rank = int(np.linalg.matrix_rank(rows))
        if rank < len(rows):
            raise InputError(f"coupling of {len(rows)} motors to joints has rank {rank}, expected full rank")
        object.__setattr__(self, "coupling", tuple(tuple(float(x) for x in row) for row in rows))
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
        chosen = range(1, len(self.coupling) + 1) if self.motors is None else self.motors
        motors = tuple(place + 1 for place, old in enumerate(joints) if old + 1 in chosen)
        inner = self.effect.kept(joints)
        if inner is None or not motors:
            return None
        return Coupled(inner, tuple(map(tuple, B.tolist())), motors)

    @property
    def loaded(self) -> bool:
        return self.effect.loaded

    @property
    def is_friction(self) -> bool:
        return self.effect.is_friction

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        if len(joints) != len(self.coupling):
            raise InputError(f"coupling is of {len(self.coupling)} motors, the robot has {len(joints)} joints")
        inner = self.effect.columns(numbers, joints)
        return tuple(replace(inner[i], symbol=f"{inner[i].symbol}{MOTOR}") for i in self._kept(len(joints)))

    def signals(self, motion: Motion) -> Array:
        inner = self.effect.signals(self._of_motors(motion))
        return inner[:, self._kept(motion.velocity.shape[1])]

    def incidence(self, n_joints: int) -> Array:
        return np.asarray(self.B.T @ self.effect.incidence(n_joints)[:, self._kept(n_joints)])

    def scalar_signals(self, m: Mathematics, motion: Sequence[FormulaMotion]) -> list[Value]:
        inner = self.effect.scalar_signals(m, self._scalars_of_motors(motion))
        return [inner[i] for i in self._kept(len(motion))]

    @property
    def nonnegative(self) -> tuple[str, ...]:
        return self._on_motors(self.effect.nonnegative)

    def dissipation(self, speeds: Array, load: Array) -> Array:
        """Of the motors, at speeds of theirs: what each takes of the energy of all joints."""
        return self.effect.dissipation(speeds, load)[:, self._kept(speeds.shape[1])]

    @property
    def dry(self) -> bool:
        return self.effect.dry

    @property
    def depends_on_acceleration(self) -> bool:
        return self.effect.depends_on_acceleration

    # Inner numbers ----------------------------------------------------------------------------

    def nonlinear_options(self) -> tuple[NonlinearOption, ...]:
        return tuple(replace(option, key=f"motor {option.key}") for option in self.effect.nonlinear_options())

    def signals_and_derivatives(self, motion: Motion, options: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        signals, slopes = self.effect.signals_and_derivatives(self._of_motors(motion), options)
        kept = self._kept(motion.velocity.shape[1])
        return signals[:, kept], {option: slope[:, kept] for option, slope in slopes.items()}

    def option_values(self, option: str, n_joints: int) -> Array:
        return self.effect.option_values(option, n_joints)

    def with_option(self, option: str, values: ArrayLike) -> Coupled:
        return replace(self, effect=self.effect.with_option(option, values))

    def inner_numbers(self, joints: Sequence[Joint]) -> tuple[tuple[InnerValue, ...], ...]:
        """Those of the motors, motor by motor."""
        chosen = range(1, len(joints) + 1) if self.motors is None else self.motors
        return tuple(
            tuple(replace(one, name=f"{one.name}{MOTOR}") for one in own) if i + 1 in chosen else ()
            for i, own in enumerate(self.effect.inner_numbers(joints))
        )

    # Motion of the motors ---------------------------------------------------------------------

    def motion_slopes(self, motion: Motion) -> MotionSlopes:
        """Slopes of the signals with the motion of their own motor; the joints' follow by ``B``, see :meth:`motion_gradient`."""
        kept = self._kept(motion.velocity.shape[1])
        inner = self.effect.motion_slopes(self._of_motors(motion))
        slopes = (inner.by_position, inner.by_velocity, inner.by_acceleration)
        return MotionSlopes(*(None if slope is None else slope[:, kept] for slope in slopes))

    def motion_gradient(self, motion: Motion, weights: Array) -> tuple[Array | None, Array | None, Array | None]:
        n = motion.velocity.shape[1]
        every = np.zeros((len(weights), self.effect.incidence(n).shape[1]))
        every[:, self._kept(n)] = weights
        found = self.effect.motion_gradient(self._of_motors(motion), every)
        by_position, by_velocity, by_acceleration = (None if part is None else part @ self.B for part in found)
        return by_position, by_velocity, by_acceleration

    def momentum_signals(self, motion: Motion) -> Array | None:
        inner = self.effect.momentum_signals(self._of_motors(motion))
        return None if inner is None else inner[:, self._kept(motion.velocity.shape[1])]

    def energy_signals(self, motion: Motion) -> Array | None:
        inner = self.effect.energy_signals(self._of_motors(motion))
        return None if inner is None else inner[:, self._kept(motion.velocity.shape[1])]

    @property
    def is_sharp(self) -> bool:
        return self.effect.is_sharp

    def smoothed(self, widths: Array, *, at_least: bool = False) -> Effect:
        """Widths are those of joints; motors, whose speeds are mixtures of theirs, share the mean."""
        return replace(self, effect=self.effect.smoothed(np.full(len(widths), widths.mean()), at_least=at_least))

    def without_memory(self) -> Effect:
        return replace(self, effect=self.effect.without_memory())

    # Simulators -------------------------------------------------------------------------------

    def simulator_joint(self, values: Array, n_joints: int) -> Mapping[Place, Array]:
        """Each joint's own share of ``B^T diag(x) B``; dry friction of several motors adds up, each by the size of its lever."""
        every = np.zeros(self.effect.incidence(n_joints).shape[1])
        every[self._kept(n_joints)] = values
        levers: dict[Place, Array] = {"damping": self.B**2, "friction": np.abs(self.B), "armature": self.B**2}
        held = self.effect.simulator_joint(every, n_joints)
        return {place: levers[place].T @ of_motors for place, of_motors in held.items()}

    @property
    def held_in_part(self) -> tuple[str, ...]:
        """All that has a place, unless every motor drives one joint alone."""
        rows = self.B if self.motors is None else self.B[[motor - 1 for motor in self.motors]]
        if np.all(np.count_nonzero(rows, axis=1) == 1):
            return self._on_motors(self.effect.held_in_part)
        symbols = {column.symbol for column in self.effect.columns((1,), (_ANY_JOINT,))}
        return self._on_motors(sorted(symbols - set(self.effect.not_held)))

    @property
    def not_held(self) -> tuple[str, ...]:
        return self._on_motors(self.effect.not_held)

    def _on_motors(self, symbols: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{symbol}{MOTOR}" for symbol in symbols)

    def _of_motors(self, motion: Motion) -> Motion:
        B = self.B
        return Motion(
            motion.position @ B.T,
            motion.velocity @ B.T,
            motion.acceleration @ B.T,
            None if motion.load is None else np.asarray(np.linalg.solve(B.T, motion.load.T).T),
        )

    def _scalars_of_motors(self, motion: Sequence[FormulaMotion]) -> list[FormulaMotion]:
        def mixed(matrix: Array, name: str) -> list[Value]:
            values = [getattr(one, name) for one in motion]
            return [sum((float(x) * value for x, value in zip(row, values, strict=True) if x != 0.0), 0.0) for row in matrix]

        B = self.B
        columns = (
            mixed(B, "position"),
            mixed(B, "velocity"),
            mixed(B, "acceleration"),
            mixed(np.asarray(np.linalg.inv(B).T), "load"),
        )
        return [FormulaMotion(*one) for one in zip(*columns, strict=True)]

    def _kept(self, n_joints: int) -> IntArray:
        """Columns of the inner effect that belong to the chosen motors."""
        motor = np.abs(self.effect.incidence(n_joints)).argmax(axis=0) + 1
        chosen = np.arange(1, n_joints + 1) if self.motors is None else np.asarray(self.motors)
        return np.flatnonzero(np.isin(motor, chosen))
