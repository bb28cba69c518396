"""A finished run as a folder of files: numbers, exported models with their proofs, and the report."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynid.adapters.blas import one_blas_thread
from dynid.errors import InconsistentModelError, InputError
from dynid.files import read_json
from dynid.progress import Tell, silent
from dynid.report.page import Section
from dynid.report.run_report import report_run
from dynid.run.export import Exported, export_run, known_formats
from dynid.run.record import Run
from dynid.run.store import save_run

DEFAULT_FORMATS = ("urdf", "mjcf")


@dataclass(frozen=True)
class Published:
    """What was written, and why a format of the model was not."""

    folder: Path
    report: Path
    exported: tuple[Exported, ...]
    refusals: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.folder / "run.json", self.report, *(file for item in self.exported for file in item.files))


def publish_run(
    run: Run,
    folder: str | Path,
    *,
    formats: Sequence[str] = DEFAULT_FORMATS,
    allow_inconsistent: bool = False,
    sections: Sequence[Section] = (),
    tell: Tell = silent,
) -> Published:
    """Write the run, its models and its report into a folder; inconsistent models are refused by default.

    Args:
        run: the run.
        folder: made if missing.
        formats: of the models, as for :func:`dynid.export_run`.
        allow_inconsistent: write models with links that no physical body can be.
        sections: sections put into the report beside its own.
        tell: called with a short text before each step.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0))
        >>> dynid.publish_run(run, "out", formats=["json"]).report.name
        'report.html'
    """
    wanted = known_formats(formats)
    _clear_old_models(Path(folder))
    place = save_run(run, folder)
    exported: list[Exported] = []
    refusals: list[str] = []
    if not run.estimate.outcome.usable:
        refusals.append(f"no model was written: {run.estimate.outcome.value}")
        wanted = ()
    for format in wanted:
        tell(f"exporting {format}")
        try:
            exported += export_run(run, place, [format], allow_inconsistent=allow_inconsistent)
        except (InputError, InconsistentModelError) as error:  # what one format cannot hold, another may
            refusals.append(f"{format} was not written: {error}")
    tell("writing the report")
    with one_blas_thread():
        report = report_run(run, place / "report.html", exported=exported, refusals=refusals, sections=sections)
    return Published(place, report, tuple(exported), tuple(refusals))


def _clear_old_models(folder: Path) -> None:
    """Take away what an earlier run left in the folder, so that no model stands beside numbers it does not come from.

    Files that were changed since are the user's own and stay.
    """
    record = folder / "exports.json"
    if record.is_file():
        entries = read_json(record, "folder").get("exports", [])
        hashes = {name: digest for entry in entries for name, digest in dict(entry.get("sha256", {})).items()}
        for name, digest in hashes.items():
            path = folder / Path(name).name
            if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
                path.unlink()
        record.unlink()
    if (folder / "run.json").is_file():
        for path in (folder / "figures").glob("*.*"):
            if path.suffix in (".svg", ".png"):
                path.unlink()
