"""Undo the jumps of an angle that was logged between -pi and pi, or 0 and 2 pi."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.signals import Signals, Tally, Upstream
from dynid.recording.steps.step import Extent


@dataclass(frozen=True)
class Unwrap:
    """Positions without jumps of more than half a turn.

    Args:
        joints: joints to unwrap, counted from 1; None for all.
        turn: length of a turn in the unit of position, rad.

    Examples:
        >>> import dynid
        >>> samples = dynid.process(dynid.demo_recording(seconds=4.0), [dynid.Unwrap(joints=(1, 7)), dynid.Differentiate()])
        >>> samples.position.shape[1]
        7
    """

    joints: tuple[int, ...] | None = None
    turn: float = 2.0 * np.pi

    needs_uniform_clock: ClassVar[bool] = False
    makes_uniform_clock: ClassVar[bool] = False
    gathers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.turn) and self.turn > 0.0):
            raise InputError(f"Unwrap turn is {self.turn}, expected a positive number")

    def transient(self) -> Extent:
        """Nothing is lost."""
        return Extent()

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """Whole turns are carried from piece to piece."""
        last: Array | None = None
        for piece in upstream.pieces(tally):
            q = piece.values["position"].copy()
            columns = self._columns(q.shape[1])
            angle = q[:, columns]
            rows = angle if last is None else np.concatenate([last, angle])
            straight = np.unwrap(rows, axis=0, period=self.turn)
            straight = straight if last is None else straight[1:]
            q[:, columns] = straight
            last = straight[-1:]
            yield piece.updated({"position": q})

    def _columns(self, n_joints: int) -> list[int]:
        numbers = range(1, n_joints + 1) if self.joints is None else self.joints
        for number in numbers:
            if not 1 <= number <= n_joints:
                raise InputError(f"Unwrap names joint {number}, the log has {n_joints} joints counted from 1")
        return [number - 1 for number in numbers]
