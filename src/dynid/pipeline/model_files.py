"""The model of a result as files: what each format is written and proven by, and the proofs kept beside the files, in ``exports.json``.

A robot is written as URDF, MJCF, SDF, JSON or functions in C, C++, Python and MATLAB, read again and its torque compared; the body on a
force/torque sensor as JSON or in the form of a vendor.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dynid.errors import InconsistentModelError, InputError, UnknownNameError, reason_of
from dynid.estimation.consistency.repair import rotors_in_links
from dynid.files import read_json, write_json, write_text
from dynid.folders import complete
from dynid.io.robots.mjcf_write import write_mjcf
from dynid.io.robots.proof import PARITY, file_parity, why_unequal
from dynid.io.robots.simulator_joint import (
    URDF_PLACES,
    JointDifference,
    WrittenModel,
    as_format_holds,
    motions_to_hold,
    total_difference,
)
from dynid.io.robots.urdf_write import write_urdf
from dynid.io.vendors import FORMS, vendor_load
from dynid.model.effects.effect import PLACES, Place
from dynid.model.robot import Robot
from dynid.pipeline.manifest import hash_of
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.robot_json import sidecar_parity, write_parameters

EXPORTS = "exports.json"
_FORMAT = 1
"""Version of ``exports.json``."""


@dataclass(frozen=True)
class Exported:
    """A file and its proof: the largest relative torque difference, of what the format holds, after reloading it elsewhere."""

    path: Path
    format: str
    parity: float
    """NaN where the proof could not be made; the notes say why."""
    notes: tuple[str, ...] = ()
    companions: tuple[Path, ...] = ()
    """Files that belong to it: a header, arrays."""
    lacking: tuple[JointDifference, ...] = ()
    """Of every joint the torque that the format has no place for; none where it holds all effects."""

    @property
    def left_out(self) -> float:
        """Part of the whole torque, on random states, that the file lacks; zero where it holds all of it."""
        whole = math.sqrt(sum(one.torque**2 for one in self.lacking))
        lost = math.sqrt(sum(one.difference**2 for one in self.lacking))
        return lost / whole if lost > PARITY * whole else 0.0

    def lacks(self) -> str:
        """One sentence on the whole torque of the file; empty where it holds all of it."""
        if not self.lacking:
            return ""
        if not self.left_out:
            return "whole torque: nothing is left out"
        parts = ", ".join(f"{one.joint} {one.difference:.3g} ({100.0 * one.relative:.1f} %)" for one in self.lacking)
        return (
            f"torque with friction and rotors differs by {100.0 * self.left_out:.1f} % on random states; by joint, RMS in N m "
            f"or N: {parts}"
        )

    @property
    def proven(self) -> bool:
        """Whether the file was read again and its torque agreed."""
        return self.parity <= PARITY

    @property
    def failed(self) -> bool:
        """Whether the file was read again and its torque did not agree; the last of the notes says so.

        A file whose proof could not be made is neither proven nor failed.
        """
        return self.parity > PARITY

    @property
    def warning(self) -> str:
        """The note on a proof that failed; empty otherwise."""
        return self.notes[-1] if self.failed and self.notes else ""

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path, *self.companions)

    def at(self, place: Callable[[Path], Path]) -> Exported:
        """The same export where its files are in the end."""
        return replace(self, path=place(self.path), companions=tuple(place(file) for file in self.companions))


def names_in(folder: Path, exported: Sequence[Exported]) -> tuple[str, ...]:
    """Names of exported files inside their folder."""
    return tuple(str(file.relative_to(folder)) for item in exported for file in item.files)


def read_exports(folder: str | Path) -> tuple[Exported, ...]:
    """What was exported into a folder and is still there, with its proofs."""
    place = Path(folder)
    complete(place)
    known = tuple(_entry(place, entry) for entry in _entries(place))
    return tuple(item for item in known if all(file.is_file() for file in item.files))


def _entries(folder: Path) -> list[Any]:
    path = folder / EXPORTS
    if not path.is_file():
        return []
    record = read_json(path, "folder")
    if record.get("format", _FORMAT) != _FORMAT:
        raise InputError(f"'{path}' has format {str(record['format'])[:20]}, expected {_FORMAT}: export the run again")
    entries = record.get("exports", [])
    if not isinstance(entries, list):
        raise InputError(f"'{path}' is damaged: 'exports' is no list")
    return entries


def _entry(place: Path, entry: Any) -> Exported:
    """One export; a file that was changed after its proof is not proven."""
    path = place / EXPORTS
    try:
        names, hashes = _names([entry["file"], *entry["companions"]]), dict(entry["sha256"])
        if not all(isinstance(note, str) for note in entry["notes"]) or not isinstance(entry["format"], str):
            raise TypeError("notes or format, which are text")
        parity = math.nan if entry["parity"] is None else float(entry["parity"])
        notes = tuple(entry["notes"])
        lacking = tuple(
            JointDifference(str(one["joint"]), float(one["difference"]), float(one["torque"]))
            for one in entry.get("lacking", ())
        )
        files = tuple(place / name for name in names)
        changed = [name for name, file in zip(names, files, strict=True) if file.is_file() and hashes[name] != hash_of(file)]
    except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise InputError(f"'{path}' is damaged: an entry lacks or misstates {error}") from None
    if changed:
        parity, notes = math.nan, (*notes, f"not proven: {', '.join(changed)} was changed after the proof; export again")
    return Exported(files[0], entry["format"], parity, notes, files[1:], lacking)


def _names(names: list[Any]) -> list[str]:
    """Names of files in the folder itself."""
    if not all(isinstance(name, str) and name and "\0" not in name and Path(name).name == name for name in names):
        raise TypeError(f"a file name: {names!r:.80}")
    return names


def remember_exports(folder: Path, exported: Sequence[Exported]) -> None:
    """Keep the proofs beside the files, in ``exports.json``; a file that is exported again takes its old entry's place."""
    known = _entries(folder)
    new = {item.path.name for item in exported}
    entries = [entry for entry in known if isinstance(entry, dict) and entry.get("file") not in new]
    entries += [
        {
            "file": item.path.name,
            "companions": [file.name for file in item.companions],
            "format": item.format,
            "parity": item.parity,
            "proven": item.proven,
            "sha256": {file.name: hash_of(file) for file in item.files},
            "notes": item.notes,
            "lacking": [one.as_dict() for one in item.lacking],
        }
        for item in exported
    ]
    write_json(folder / EXPORTS, {"format": _FORMAT, "exports": entries})


@dataclass(frozen=True)
class _Format:
    """How a format is written and how its file is proven."""

    suffix: str
    write: Callable[[Robot, Path, bool, IdentificationResult | None], WrittenModel]
    """Of the robot as the format can hold it, the file, whether inconsistent links are allowed, and the result that it is of."""
    prove: Callable[[Robot, Path], float]
    with_prefix: Callable[[str], _Format] | None = None
    """The same format with a prefix before its names; None where it has no names."""
    places: tuple[Place, ...] | None = None
    """What its joints hold; None where it holds all effects as they are."""
    unprovable: Callable[[], str] = lambda: ""
    """Why this machine cannot prove it; empty where it can."""
    why_unequal: Callable[[Robot, Path], str] = lambda _robot, _path: ""
    """What made a proof fail, where that is known."""


# formats that are written on request only are loaded then
def _write_sdf(robot: Robot, path: Path, allow: bool, run: IdentificationResult | None) -> WrittenModel:
    from dynid.io.robots.sdf_write import write_sdf

    return write_sdf(robot, path, allow, _described(run))


_LANGUAGES: Mapping[str, str] = {"c": ".c", "cpp": ".hpp", "python": ".py", "matlab": ".m"}
"""Languages of the functions, and how their files end."""


def _code_format(name: str, prefix: str | None = None) -> _Format:
    """Functions in a language; without a prefix they have the robot's name in C, and none where files or namespaces keep them apart."""

    def prefix_of(robot: Robot) -> str:
        from dynid.io.code.equations import name_of

        return prefix if prefix is not None else f"{name_of(robot.name)}_" if name == "c" else ""

    def write(robot: Robot, path: Path, allow: bool, _run: IdentificationResult | None) -> WrittenModel:
        from dynid.io.code.languages import write_source

        return write_source(name, robot, path, prefix_of(robot), allow)

    def prove(robot: Robot, path: Path) -> float:
        from dynid.io.code.languages import source_parity

        return source_parity(name, robot, path, prefix_of(robot))

    def unprovable() -> str:
        from dynid.io.code.languages import LANGUAGES

        language = LANGUAGES[name]
        return "" if language.find_runner() else f"not proven: there is no {language.runner} on this machine"

    return _Format(_LANGUAGES[name], write, prove, partial(_code_format, name), unprovable=unprovable)


def _described(run: IdentificationResult | None) -> Robot | None:
    return None if run is None else run.robot


_FORMATS: Mapping[str, _Format] = {
    "urdf": _Format(
        ".urdf",
        lambda robot, path, allow, run: write_urdf(robot, path, None, allow, _described(run)),
        partial(file_parity, "urdf"),
        places=URDF_PLACES,
        why_unequal=why_unequal,
    ),
    "mjcf": _Format(
        ".xml",
        lambda robot, path, _allow, run: write_mjcf(robot, path, None, _described(run)),
        partial(file_parity, "mjcf"),
        places=PLACES,
    ),
    "sdf": _Format(".sdf", _write_sdf, partial(file_parity, "sdf"), places=URDF_PLACES),
    **{name: _code_format(name) for name in _LANGUAGES},
    "json": _Format(
        ".json",
        lambda robot, path, _allow, run: write_parameters(robot, path, None if run is None else run.estimate),
        sidecar_parity,
    ),
}
LATEX = "latex"
"""The base parameters as a table for a paper."""
FORMATS = (*_FORMATS, LATEX)
SIMULATED: Mapping[str, tuple[Place, ...]] = {"urdf": URDF_PLACES, "mjcf": PLACES, "sdf": URDF_PLACES}
"""Formats of simulators, and what the joints of each hold."""


BODY_FORMATS: Mapping[str, str] = {name: f"_{name}.txt" for name in FORMS} | {
    "urdf": ".urdf",
    "mjcf": ".xml",
    "json": ".json",
}
"""Forms in which the body on a sensor can be written, and how their files end."""


def known_formats(names: Sequence[str], body: bool = False) -> tuple[str, ...]:
    """The formats of these names, each once; ``body`` allows the forms of a body on a sensor too."""
    wanted = tuple(dict.fromkeys(name.strip() for name in names))
    known = (*FORMATS, *BODY_FORMATS) if body else FORMATS
    for name in wanted:
        if name not in known:
            raise UnknownNameError("export format", name, known)
    return wanted


def write_model(robot: Robot, path: Path, *, allow_inconsistent: bool) -> WrittenModel:
    """Write a robot in the format that the suffix of the file names."""
    by_suffix = {one.suffix: one for one in _FORMATS.values()}
    return by_suffix[path.suffix.lower()].write(robot, path, allow_inconsistent, None)


def write_exports(
    run: IdentificationResult,
    folder: Path,
    formats: Sequence[str],
    *,
    allow_inconsistent: bool = False,
    prefix: str | None = None,
    samples: int = 0,
    rotors_apart: bool = False,
) -> tuple[Exported, ...]:
    """Write the model in each format into a folder that exists, with its proofs in ``exports.json``.

    Args:
        run: the run.
        folder: that exists.
        formats: of :data:`FORMATS`.
        allow_inconsistent: write links that no physical body can be.
        prefix: before the names of functions; None for the robot's own.
        samples: models that are drawn from the uncertainty and written besides, see :mod:`dynid.pipeline.sample_models`.
        rotors_apart: leave rotor inertia out of the links of formats that have no place for it.
    """
    if run.body is not None:
        exported = [_export_body(run, folder, name, allow_inconsistent) for name in formats]
    else:
        exported = [_export(run, folder, name, allow_inconsistent, prefix, rotors_apart) for name in formats]
    if samples:
        from dynid.pipeline.sample_models import sample_models

        digits = len(str(samples))
        for k, model in enumerate(sample_models(run, samples), 1):
            number, files = f"{k:0{digits}}", [name for name in formats if name != LATEX]  # a table is of the estimate alone
            exported += [
                _export(run, folder, name, allow_inconsistent, prefix, rotors_apart, (model, number)) for name in files
            ]
    remember_exports(folder, exported)
    return tuple(exported)


def _export_body(run: IdentificationResult, folder: Path, name: str, allow_inconsistent: bool) -> Exported:
    """The body on a sensor in one form; a robot's torque is not in it to be compared."""
    found = run.body
    assert found is not None
    body = found.best
    if name not in BODY_FORMATS:
        raise InputError(
            f"format '{name}' holds a robot, the run is that of a body on a force/torque sensor: expected "
            f"{', '.join(BODY_FORMATS)}"
        )
    if not (body.feasible or allow_inconsistent):
        raise InconsistentModelError(
            f"the body by {body.method} cannot exist (mass {body.mass:.4g} kg): identify with --method sdp, or give --allow-inconsistent"
        )
    path = folder / f"load{BODY_FORMATS[name]}"
    if name == "json":
        write_json(path, found.as_dict())
    else:
        told = vendor_load(name, body.phi, found.place or found.frame, run.mover, inertia_known=body.inertia_known)
        write_text(path, told.text + "\n")
        return Exported(path, name, math.nan, told.notes if not body.inertia_known else ())
    return Exported(path, name, math.nan)


def _export(
    run: IdentificationResult,
    folder: Path,
    name: str,
    allow_inconsistent: bool,
    prefix: str | None = None,
    rotors_apart: bool = False,
    sample: tuple[Robot, str] | None = None,
) -> Exported:
    """The identified model in one format, or a model that was drawn, with its number; written and proven."""
    if name == LATEX:
        if sample is not None:
            raise InputError(
                "--to latex is a table of the estimate and its uncertainty, which models that were drawn do not have"
            )
        return Exported(write_text(folder / f"{_file_name(run.robot.name)}_identified.tex", run.to_latex()), name, math.nan)
    options: dict[str, Any] = {"allow_inconsistent": allow_inconsistent, "prefix": prefix, "rotors_apart": rotors_apart}
    held, written = write_file(run, folder, name, **options, sample=sample)
    format = _format(name, prefix)
    lacking = total_difference(run.model if sample is None else sample[0], format.places, held)

    def made(parity: float, *notes: str) -> Exported:
        return Exported(written.path, name, parity, (*written.notes, *notes), written.companions, lacking)

    obstacle = format.unprovable()
    if obstacle:
        return made(math.nan, obstacle)
    try:
        parity = min(format.prove(held, written.path), sys.float_info.max)  # JSON has no infinity
    except Exception as error:  # the program that reads the file again may refuse it in any way
        return made(math.nan, f"not proven: '{written.path.name}' could not be read again: {reason_of(error)}")
    if parity <= PARITY:
        return made(parity)
    reason = format.why_unequal(held, written.path)
    return made(
        parity,
        f"'{written.path.name}' is NOT proven: its torque differs by {parity:.1e} (relative) after reloading, expected at "
        f"most {PARITY:g}{f'; {reason}' if reason else ''}",
    )


def write_file(
    run: IdentificationResult,
    folder: Path,
    name: str,
    *,
    allow_inconsistent: bool = False,
    prefix: str | None = None,
    rotors_apart: bool = False,
    sample: tuple[Robot, str] | None = None,
) -> tuple[Robot, WrittenModel]:
    """Write the identified model, or one that was drawn with its number, in one format; nothing is proven.

    Returns:
        the robot as the format holds it, and the file.
    """
    model, end = (run.model, "identified") if sample is None else (sample[0], f"sample{sample[1]}")
    format, held, told = _format(name, prefix), model, tuple[str, ...]()
    if format.places is not None:
        held, told = held_model(run, name, model, rotors_apart=rotors_apart)
    path = folder / f"{_file_name(run.robot.name)}_{end}{format.suffix}"
    if name == "matlab":  # a class has the name of its file
        from dynid.io.code.equations import name_of

        path = path.with_name(f"{name_of(path.stem)}{format.suffix}")
    written = format.write(held, path, allow_inconsistent, run if sample is None or name != "json" else None)
    return held, replace(written, notes=(*written.notes, *told))


def held_model(
    run: IdentificationResult, name: str, model: Robot, *, rotors_apart: bool = False
) -> tuple[Robot, tuple[str, ...]]:
    """A model as the format of a simulator holds it, and what is to be told of it; that of the run is made once.

    Rotors that the format has no place for are carried by the links, unless they are given to the simulator apart.
    """
    kept = run.held if model is run.model and not rotors_apart else {}
    if name not in kept:
        places, carried = SIMULATED[name], tuple[str, ...]()
        if "armature" not in places and not rotors_apart:
            model, carried = _carrying_rotors(run, model, name.upper())
        held, told = as_format_holds(model, run.samples, name.upper(), places)
        kept[name] = held, (*carried, *told)
    return kept[name]


NEGLIGIBLE_ROTORS = 1e-4
"""Part of the joints' torque below which nothing is told of rotors that a format has no place for."""


def _carrying_rotors(run: IdentificationResult, model: Robot, format: str) -> tuple[Robot, tuple[str, ...]]:
    """The model whose links carry its rotors, for a format without them, and what is to be told of it."""
    found = run.without_rotors if model is run.model else rotors_in_links(model, run.samples)
    if found is None:
        return model, ()
    carrying, lacked, lacks = found
    if lacked < NEGLIGIBLE_ROTORS:
        return carrying, ()
    where = motions_to_hold(model, run.samples)[1]
    told = (
        f"{format} has no place for rotor inertia: the links carry what they can of it, fitted {where} with gravity kept; of the joints' "
        f"torque {_part(lacks)} lacks, {_part(lacked)} without that; give the simulator no rotors beside it, or export with --rotors-apart"
    )
    return carrying, (told,)


def _part(share: float) -> str:
    """A share in per cent; what rounding leaves is no number."""
    return f"{'less than ' * (share < NEGLIGIBLE_ROTORS)}{100.0 * max(share, NEGLIGIBLE_ROTORS):.2g} %"


def _format(name: str, prefix: str | None) -> _Format:
    format = _FORMATS[name]
    return format if prefix is None or format.with_prefix is None else format.with_prefix(prefix)


def _file_name(robot: str) -> str:
    """The robot's name without what file names and C includes cannot have."""
    return re.sub(r"[^\w.-]+", "_", robot).strip("._") or "robot"
