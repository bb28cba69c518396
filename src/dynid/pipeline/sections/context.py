"""What a report shows of a run: the logs that are drawn, with their predictions.

Torque: measured against predicted, what friction explains of it, and what nothing explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dynid.arrays import Array, freeze
from dynid.dynamics.inverse_dynamics import friction_part, with_transmitted_load
from dynid.model.robot import Robot
from dynid.pipeline.result import IdentificationResult
from dynid.signals.reversal_history import with_memory
from dynid.signals.samples import Samples
from dynid.validation.prediction import band_limited, predict

MOST_LOGS = 4


@dataclass(frozen=True, eq=False)
class Shown:
    """A run and the predictions that several sections draw, made once."""

    run: IdentificationResult
    folder: Path | None = None
    """Where the run and its report lie."""

    @cached_property
    def logs(self) -> tuple[Predicted, ...]:
        """The logs that are drawn, unseen ones first."""
        run = self.run
        files = [Path(path).name for path, _ in run.logs]
        others = files if run.settings.split is not None else [Path(path).name for path, _ in run.validation_logs]
        named = [(f"unseen: {name_at(run.unseen_windows or others, i)}", one) for i, one in enumerate(run.unseen)]
        named += [(f"identified on: {name_at(run.windows or files, i)}", one) for i, one in enumerate(run.samples)]
        unseen, own = named[: len(run.unseen)], named[len(run.unseen) :]
        chosen = (unseen[: MOST_LOGS - 1] + own)[:MOST_LOGS]
        return tuple(predicted(name, run.model, one, run.judged_hz) for name, one in chosen if one.torque is not None)

    @property
    def judged(self) -> Predicted | None:
        """The log on which residuals are looked at: an unseen one where there is one."""
        return self.logs[0] if self.logs else None

    @property
    def left_out(self) -> int:
        """Logs that are not drawn."""
        return len(self.run.unseen) + len(self.run.samples) - len(self.logs)


def name_at(names: Sequence[str], index: int) -> str:
    """The name of a log by its place."""
    return names[index] if index < len(names) else f"log {index + 1}"


@dataclass(frozen=True, eq=False)
class Predicted:
    """Samples of one log, the torque that the identified robot predicts for them, and its friction part."""

    name: str
    samples: Samples
    prediction: Array
    friction: Array

    @property
    def torque(self) -> Array:
        assert self.samples.torque is not None
        return self.samples.torque

    @cached_property
    def residual(self) -> Array:
        return self.torque - self.prediction


def predicted(name: str, identified: Robot, samples: Samples, band_hz: float | None = None) -> Predicted:
    """A log with its prediction; the load that friction may depend on is the model's own where the samples have none.

    With ``band_hz`` measured torque, prediction and friction are those in a band, as the run judges them.
    """
    if samples.load is None:
        samples = with_transmitted_load(identified, samples)
    samples = with_memory(identified, samples)
    prediction = predict(identified, samples)
    friction = friction_part(identified, samples.position, samples.velocity, samples.load, travel=samples.travel)
    judged, in_band = band_limited(samples, prediction, band_hz)
    _, rubbing = band_limited(samples, friction, band_hz)
    return Predicted(name, judged, freeze(in_band), freeze(rubbing))
