"""What a joint effect is: columns of the torque regressor that depend on joint motion alone.

An effect with column signals ``s_c(motion)`` and an incidence matrix ``C`` adds to the joint torque

    tau_d += sum_c C[d, c] s_c(motion) value_c

For an effect that acts on each joint by itself ``C`` is the identity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import UnknownNameError
from dynid.parameters import Column, Kind

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class Motion:
    """Joint motion of a chunk of samples, ``(samples, joints with one degree of freedom)`` each.

    ``load`` is the torque transmitted by each joint, for effects that depend on it.
    """

    position: Array
    velocity: Array
    acceleration: Array
    load: Array | None = None


class Effect(ABC):
    """Options of one effect; holds no values."""

    name: ClassVar[str]

    @abstractmethod
    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        """The columns for these joints, whose numbers (from 1) are given beside them."""

    @abstractmethod
    def signals(self, motion: Motion) -> Array:
        """Signal of every column, ``(samples, columns)``."""

    def incidence(self, n_joints: int) -> Array:
        """Which joint's torque each column enters, ``(joints, columns)``."""
        return np.eye(n_joints)


class JointwiseEffect(Effect):
    """An effect with one column per joint, acting on that joint alone."""

    symbol: ClassVar[str]
    kind: ClassVar[Kind] = "friction"

    @abstractmethod
    def unit(self, joint: Joint) -> str:
        """Unit of this effect's value on a joint."""

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        return tuple(
            Column(self.symbol, number, self.kind, self.unit(joint), joint.name)
            for number, joint in zip(numbers, joints, strict=True)
        )


def effects_from_names(names: Sequence[str] | str) -> tuple[Effect, ...]:
    """Effects by their names: ``"viscous,coulomb,offset,armature"`` or a list; ``"none"`` gives no effect."""
    from dynid.robot.effects import Armature, Coulomb, Offset, Viscous

    known: dict[str, type[Effect]] = {kind.name: kind for kind in (Viscous, Coulomb, Offset, Armature)}
    listed = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    if listed in (["none"], [""], []):
        return ()
    for name in listed:
        if name not in known:
            raise UnknownNameError("effect", name, (*known, "none"))
    return tuple(known[name]() for name in dict.fromkeys(listed))
