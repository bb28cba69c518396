"""Effects that store energy: a torque that is the slope of a potential of the joint's position.

    tau_j = sum_k value_kj dU_k/dq (q_j; inner numbers)

Differences of ``U_k`` are the exact work of the effect, so energy rows need no integral over samples.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from dynid.arrays import Array
from dynid.parameters import Kind
from dynid.robot.effects.effect import Motion
from dynid.robot.effects.jointwise import JointwiseEffect, beside
from dynid.robot.effects.mathematics import ARRAYS, Mathematics, Value


class ConservativeEffect(JointwiseEffect):
    """Base class of springs: beside the formula of the torque, the potential it is the slope of.

    Examples:
        >>> import dynid
        >>> issubclass(dynid.TorsionSpring, dynid.effects.ConservativeEffect)
        True
    """

    kind: ClassVar[Kind] = "spring"

    @abstractmethod
    def potential(self, m: Mathematics, position: Value, inner: Any) -> tuple[Value, ...]:
        """``U`` per unit of every coefficient, whose change with position is the formula."""

    def energy_signals(self, motion: Motion) -> Array:
        shape = motion.position.shape
        return beside(self.potential(ARRAYS, motion.position, self._inner(shape[1])), shape)
