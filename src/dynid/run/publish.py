"""Everything a run leaves behind: its record, the models it exports and the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dynid.errors import InconsistentModelError
from dynid.run.export import Exported, export_run
from dynid.run.identify import Run
from dynid.run.report import report_run
from dynid.run.store import save_run


@dataclass(frozen=True)
class Published:
    """What was written, and why there is no model where there is none."""

    folder: Path
    report: Path
    exported: tuple[Exported, ...]
    refusal: str = ""

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.folder / "run.json", self.report, *(item.path for item in self.exported))


def publish_run(run: Run, folder: str | Path, *, allow_inconsistent: bool = False) -> Published:
    """Write the run, its models (unless they are inconsistent, which needs leave) and its report into a folder."""
    place = save_run(run, folder)
    exported: tuple[Exported, ...] = ()
    refusal = ""
    try:
        exported = export_run(run, place, allow_inconsistent=allow_inconsistent)
    except InconsistentModelError as error:
        refusal = str(error)
    return Published(place, report_run(run, place / "report.html"), exported, refusal)
