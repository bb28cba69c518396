"""A result as a folder of files: numbers, models with their proofs, and the report. Repair from file to file."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.engine import Tell, give_back, one_blas_thread, silent
from dynid.errors import InputError, reason_of
from dynid.estimation.constraints.base import Constraint
from dynid.folders import Change, changed_folder, only_writer
from dynid.model.links import links_of
from dynid.pipeline.folder import read_model, write_numbers
from dynid.pipeline.manifest import add_files, claim, clear_run, write_record
from dynid.pipeline.model_files import EXPORTS, Exported, known_formats, names_in, write_exports, write_model
from dynid.pipeline.report import FIGURES, REPORT, write_report
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.verdict import NEVER_MOVED
from dynid.report.page import Section

if TYPE_CHECKING:
    from dynid.estimation.consistency.repair import Repair

DEFAULT_FORMATS = ("urdf", "mjcf")


@dataclass(frozen=True)
class Published:
    """What was written, and why a format of the model was not."""

    folder: Path
    report: Path | None
    """None where it could not be written; the refusals say why."""
    exported: tuple[Exported, ...]
    refusals: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        report = () if self.report is None else (self.report,)
        return (self.folder / "run.json", *report, *(file for item in self.exported for file in item.files))


def write_result(
    run: IdentificationResult,
    folder: str | Path,
    *,
    formats: Sequence[str] | None = None,
    allow_inconsistent: bool = False,
    sections: Sequence[Section] = (),
    tell: Tell = silent,
) -> Published:
    """Write the run, its models and its report into a folder; inconsistent models are refused by default.

    The folder is replaced as a whole: until the last moment it holds the run it held before. Files in it that are not the run's stay.

    Args:
        run: the run.
        folder: made if missing; one that holds files and is no run is refused.
        formats: of the models, as for :func:`dynid.pipeline.export.export_models`; None for urdf and mjcf, or none at all of a robot
            that never moved.
        allow_inconsistent: write models with links that no physical body can be.
        sections: sections put into the report beside its own.
        tell: called with a short text before each step.

    Examples:
        >>> import dynid
        >>> from dynid.pipeline.export import write_result
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> write_result(run, "out", formats=["json"]).report.name
        'report.html'
    """
    wanted = known_formats(DEFAULT_FORMATS if formats is None else formats, body=run.body is not None)
    claim(Path(folder))
    moved = run.verdict is None or all(reason.code != NEVER_MOVED for reason in run.verdict.reasons)
    with changed_folder(folder) as change:
        clear_run(change.stage)
        record, numbers = write_numbers(run, change.stage, change.target)
        refusals: list[str] = []
        if not moved and formats is None:
            refusals.append(
                f"no model was written, because no joint moved; --export {','.join(wanted)} writes it all the same"
            )
            wanted = ()
        elif not run.estimate.outcome.usable:
            refusals.append(f"no model was written: {run.estimate.outcome.value}")
            wanted = ()
        exported = _models(run, change.stage, wanted, {"allow_inconsistent": allow_inconsistent}, refusals, tell)
        final = tuple(item.at(change.final) for item in exported)
        tell("writing the report")
        give_back()
        own = _report(run, change, final, refusals, sections)
        write_record(change.stage, record, (*numbers, *own, *names_in(change.stage, exported), EXPORTS))
    return Published(change.target, change.target / REPORT if own else None, final, tuple(refusals))


@contextlib.contextmanager
def reserved(folder: str | Path) -> Iterator[None]:
    """Be sure, before long work, that its result can be written: the folder is free or a run, and no other process writes it.

    Args:
        folder: where :func:`write_result` will write, inside this block.

    Examples:
        >>> with reserved("out"):
        ...     pass  # identify, then write_result(run, "out")
    """
    claim(Path(folder))
    with only_writer(folder):
        yield


def _report(
    run: IdentificationResult, change: Change, exported: Sequence[Exported], refusals: list[str], sections: Sequence[Section]
) -> list[str]:
    """Names of the files of the report; what could not be made is added to the refusals, and the run is written all the same."""
    page = change.stage / REPORT
    try:
        with one_blas_thread():
            written, notes = write_report(
                run, page, exported=exported, refusals=refusals, sections=sections, place=change.target
            )
    except Exception as error:  # drawing may stumble over anything in the numbers of a run
        page.unlink(missing_ok=True)
        shutil.rmtree(change.stage / FIGURES, ignore_errors=True)
        refusals.append(f"{REPORT} was not written: {reason_of(error)}")
        return []
    refusals += notes
    return [str(file.relative_to(change.stage)) for file in written]


def _models(
    run: IdentificationResult,
    folder: Path,
    wanted: Sequence[str],
    options: Mapping[str, Any],
    refusals: list[str],
    tell: Tell = silent,
) -> list[Exported]:
    """The models that can be written; why others cannot is added to the refusals, and nothing of them stays."""
    exported: list[Exported] = []
    for format in wanted:
        tell(f"exporting {format}")
        before = {path for path in folder.rglob("*") if path.is_file()}
        try:
            exported += write_exports(run, folder, [format], **options)
        except Exception as error:  # what one format cannot hold, another may
            refusals.append(f"{format} was not written: {reason_of(error)}")
            for path in folder.rglob("*"):
                if path.is_file() and path not in before:
                    path.unlink()
    return exported


def export_models(
    run: IdentificationResult,
    folder: str | Path,
    formats: Sequence[str] = ("urdf",),
    *,
    allow_inconsistent: bool = False,
    prefix: str | None = None,
    samples: int = 0,
    rotors_apart: bool = False,
    refusals: list[str] | None = None,
) -> tuple[Exported, ...]:
    """Write the identified robot in each format into a folder, reload each file and compare its torque.

    The folder is changed once: it has all of them or none.

    Args:
        run: the run.
        folder: made if missing.
        formats: of ``urdf``, ``mjcf``, ``sdf``, ``json``; functions in ``c``, ``cpp``, ``python``, ``matlab``; ``latex`` for a table.
        allow_inconsistent: write links that no physical body can be, instead of refusing.
        prefix: before the names of functions; None for the robot's own in C, and for none in other languages.
        samples: consistent models that are drawn from the uncertainty and written besides.
        rotors_apart: leave rotor inertia out of the links of URDF and SDF, for a simulator that is given it apart.
        refusals: why a format could not be written is added to it, and the others are written; None for an error instead.

    Examples:
        >>> import dynid
        >>> from dynid.pipeline.export import export_models
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> (exported,) = export_models(run, "models", ["json"])
        >>> exported.parity < 1e-9
        True
    """
    wanted = known_formats(formats, body=run.body is not None)
    options: dict[str, Any] = {"allow_inconsistent": allow_inconsistent, "prefix": prefix, "samples": samples}
    options["rotors_apart"] = rotors_apart
    with changed_folder(folder) as change:
        if refusals is None:
            exported = [*write_exports(run, change.stage, wanted, **options)]
        else:
            exported = _models(run, change.stage, wanted, options, refusals)
            if not exported:
                raise InputError("; ".join(refusals))
        add_files(change.stage, (EXPORTS, *names_in(change.stage, exported)))
    return tuple(item.at(change.final) for item in exported)


def repair_model(
    model: str | Path, output: str | Path, constraints: Sequence[Constraint] = ()
) -> tuple[Repair, tuple[str, ...]]:
    """Write the nearest consistent model of a description, run or file of parameters, under further constraints on its bodies.

    The suffix of ``output`` chooses the format: URDF, MJCF (.xml), SDF, or a file of parameters (.json).
    """
    from dynid.estimation.consistency.repair import repair  # no other export needs it

    target = Path(output)
    if target.suffix.lower() not in (".urdf", ".xml", ".sdf", ".json"):
        raise InputError(
            f"a repaired model cannot be written as '{target}': expected .urdf, .xml (MJCF), .sdf or .json (parameters)"
        )
    if target.name in ("run.json", "estimate.json"):
        raise InputError(f"a repaired model cannot be written as '{target}': runs have files of that name, choose another")
    robot = read_model(model)
    links = links_of(robot)
    if not any(link.phi.any() for link in links):
        raise InputError(
            f"'{model}' has nothing to repair: none of its {len(links)} links has mass or inertia; state them first, or "
            "identify them"
        )
    result = repair(robot, constraints=constraints)
    written = write_model(result.robot, target, allow_inconsistent=not result.feasible_after)
    return result, (*result.notes, *written.notes)
