"""What a watch says at one time, as one object of a line of JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dynid.watch.drift import Alarm
from dynid.watch.grid import Counts
from dynid.watch.solution import Answer


@dataclass(frozen=True, eq=False)
class Report:
    """What is known after a row.

    Args:
        time_s: stamp of the newest row, on the sender's clock.
        answer: values, standard deviations and flags.
        joint_names: of the residuals.
        alarms: groups of parameters that have changed.
        stage: of the drift alarm: ``waiting``, ``learning`` or ``watching``.
        n_alarms: alarms so far.
        n_rows: samples read.
        n_used: times of filtered rows in the estimate.
        malformed: lines that held no row.
        counts: what became of the samples.
    """

    time_s: float
    answer: Answer
    joint_names: tuple[str, ...]
    alarms: tuple[Alarm, ...]
    stage: str
    n_alarms: int
    n_rows: int
    n_used: int
    malformed: int
    counts: Counts

    @property
    def residual(self) -> float:
        """Root mean square torque that the values leave, all joints together."""
        return float(np.sqrt((self.answer.residual**2).mean()))

    def as_dict(self) -> dict[str, Any]:
        """One line of ``dynid watch --json``."""
        answer = self.answer
        return {
            "t": self.time_s,
            "values": dict(zip(answer.names, answer.values.tolist(), strict=True)),
            "sigma": {n: s if np.isfinite(s) else None for n, s in zip(answer.names, answer.sigma.tolist(), strict=True)},
            "flags": {n: int(flag) for n, flag in zip(answer.names, answer.flags, strict=True)},
            "residual": self.residual,
            "alarm": None if not self.alarms else self.alarms[0].as_dict() | {"groups": [a.as_dict() for a in self.alarms]},
            "clipped": [n for n, out in zip(answer.names, answer.clipped, strict=True) if out],
            "residual_of_joints": dict(zip(self.joint_names, answer.residual.tolist(), strict=True)),
            "drift": self.stage,
            "alarms": self.n_alarms,
            "rows": self.n_rows,
            "used": self.n_used,
            "malformed": self.malformed,
            "counts": asdict(self.counts),
        }
