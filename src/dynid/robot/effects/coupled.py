"""Effects of motors that drive several joints together, such as a differential wrist.

With ``B`` the coupling, motor speeds are ``v_m = B v`` and, because power is the same on both sides, ``tau = B^T tau_m``.
An effect of the motors, with signals ``s(B q, B v, B a)`` and incidence ``C``, therefore acts on the joints with ``B^T C``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, matrix
from dynid.errors import InputError
from dynid.parameters import Column
from dynid.robot.effects.effect import Effect, Motion, NonlinearOption

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class Coupled(Effect):
    """Another effect, on the motors instead of the joints.

    ``coupling`` is ``B`` over all joints with one degree of freedom, row by row; ``motors`` are the numbers (from 1)
    of those motors that have the effect, by default all. Columns carry the symbol of the inner effect with an ``m``
    and the motor's number.
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
    def loaded(self) -> bool:
        return self.effect.loaded

    @property
    def is_friction(self) -> bool:
        return self.effect.is_friction

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        if len(joints) != len(self.coupling):
            raise InputError(f"coupling is of {len(self.coupling)} motors, the robot has {len(joints)} joints")
        inner = self.effect.columns(numbers, joints)
        return tuple(replace(inner[i], symbol=f"{inner[i].symbol}m") for i in self._kept(len(joints)))

    def signals(self, motion: Motion) -> Array:
        inner = self.effect.signals(self._of_motors(motion))
        return inner[:, self._kept(motion.velocity.shape[1])]

    def incidence(self, n_joints: int) -> Array:
        return np.asarray(self.B.T @ self.effect.incidence(n_joints)[:, self._kept(n_joints)])

    def nonlinear_options(self) -> tuple[NonlinearOption, ...]:
        return tuple(replace(option, key=f"motor {option.key}") for option in self.effect.nonlinear_options())

    def derivative(self, motion: Motion, option: str) -> Array:
        inner = self.effect.derivative(self._of_motors(motion), option)
        return inner[:, self._kept(motion.velocity.shape[1])]

    def option_values(self, option: str, n_joints: int) -> Array:
        return self.effect.option_values(option, n_joints)

    def with_option(self, option: str, values: ArrayLike) -> Coupled:
        return replace(self, effect=self.effect.with_option(option, values))

    def _of_motors(self, motion: Motion) -> Motion:
        B = self.B
        return Motion(
            motion.position @ B.T,
            motion.velocity @ B.T,
            motion.acceleration @ B.T,
            None if motion.load is None else np.asarray(np.linalg.solve(B.T, motion.load.T).T),
        )

    def _kept(self, n_joints: int) -> IntArray:
        """Columns of the inner effect that belong to the chosen motors."""
        motor = np.abs(self.effect.incidence(n_joints)).argmax(axis=0) + 1
        chosen = np.arange(1, n_joints + 1) if self.motors is None else np.asarray(self.motors)
        return np.flatnonzero(np.isin(motor, chosen))
