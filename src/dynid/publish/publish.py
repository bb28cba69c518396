"""A finished run as a folder of files: numbers, exported models with their proofs, and the report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynid.adapters.blas import one_blas_thread
from dynid.adapters.memory import give_back
from dynid.errors import InconsistentModelError, InputError
from dynid.folders import changed_folder, only_writer
from dynid.progress import Tell, silent
from dynid.report.page import Section
from dynid.report.run_report import REPORT, write_report
from dynid.run.export import EXPORTS, Exported, known_formats, names_in, write_exports
from dynid.run.record import Run
from dynid.run.sealed import add_files, claim
from dynid.run.store import clear_run, write_run

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

    The folder is replaced as a whole: until the last moment it holds the run it held before. Files in it that are not the run's stay.

    Args:
        run: the run.
        folder: made if missing; one that holds files and is no run is refused.
        formats: of the models, as for :func:`dynid.export_run`.
        allow_inconsistent: write models with links that no physical body can be.
        sections: sections put into the report beside its own.
        tell: called with a short text before each step.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> dynid.publish_run(run, "out", formats=["json"]).report.name
        'report.html'
    """
    wanted = known_formats(formats)
    claim(Path(folder))
    with changed_folder(folder) as change:
        clear_run(change.stage)
        write_run(run, change.stage, change.target)
        exported, refusals = _models(run, change.stage, wanted, allow_inconsistent, tell)
        final = tuple(item.at(change.final) for item in exported)
        tell("writing the report")
        give_back()
        with one_blas_thread():
            written = write_report(
                run, change.stage / REPORT, exported=final, refusals=refusals, sections=sections, place=change.target
            )
        own = [str(file.relative_to(change.stage)) for file in written]
        add_files(change.stage, (*own, *names_in(change.stage, exported), *((EXPORTS,) if exported else ())))
    return Published(change.target, change.target / REPORT, final, tuple(refusals))


@contextlib.contextmanager
def reserved(folder: str | Path) -> Iterator[None]:
    """Be sure, before long work, that its result can be written: the folder is free or a run, and no other process writes it.

    Args:
        folder: where :func:`publish_run` will write, inside this block.

    Examples:
        >>> with reserved("out"):
        ...     pass  # identify, then publish_run(run, "out")
    """
    claim(Path(folder))
    with only_writer(folder):
        yield


def _models(
    run: Run, folder: Path, wanted: Sequence[str], allow_inconsistent: bool, tell: Tell
) -> tuple[list[Exported], list[str]]:
    """The models that can be written, and why others cannot."""
    exported: list[Exported] = []
    refusals: list[str] = []
    if not run.estimate.outcome.usable:
        refusals.append(f"no model was written: {run.estimate.outcome.value}")
        wanted = ()
    for format in wanted:
        tell(f"exporting {format}")
        try:
            exported += write_exports(run, folder, [format], allow_inconsistent=allow_inconsistent)
        except (InputError, InconsistentModelError) as error:  # what one format cannot hold, another may
            refusals.append(f"{format} was not written: {error}")
    return exported, refusals
