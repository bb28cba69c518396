"""What a report shows of a run: the logs that are drawn, with their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dynid.report.torque_plots import Predicted, predicted
from dynid.run.record import Run

MOST_LOGS = 4


@dataclass(frozen=True, eq=False)
class Shown:
    """A run and the predictions that several sections draw, made once."""

    run: Run
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
        return tuple(predicted(name, run.identified, one, run.judged_hz) for name, one in chosen if one.torque is not None)

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
