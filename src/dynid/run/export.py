"""The identified model of a run as files, each reloaded and compared."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.friction.fit import with_transmitted_load
from dynid.export.mjcf import mjcf_parity, write_mjcf
from dynid.export.proof import PARITY, torque_parity, why_unequal
from dynid.export.sidecar import sidecar_parity, write_sidecar
from dynid.export.simulator_joint import left_out, nearest_held
from dynid.export.total import URDF_PLACES, JointDifference, total_difference
from dynid.export.urdf import write_urdf
from dynid.export.written import WrittenModel
from dynid.files import read_json, write_json
from dynid.folders import changed_folder, complete
from dynid.recording.samples import Samples
from dynid.regression.random_states import random_states_within_limits
from dynid.robot.effects import PLACES, Armature, Coulomb, Effect, Motion, Offset, Place, Viscous
from dynid.robot.model import Robot
from dynid.run.record import Run
from dynid.run.sealed import add_files, hash_of

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

    def lacks(self) -> str:
        """One sentence on the whole torque of the file; empty where it holds all of it."""
        if not self.lacking:
            return ""
        whole = math.sqrt(sum(one.torque**2 for one in self.lacking))
        lost = math.sqrt(sum(one.difference**2 for one in self.lacking))
        if lost <= PARITY * whole:
            return "whole torque: nothing is left out"
        parts = ", ".join(f"{one.joint} {one.difference:.3g} ({100.0 * one.relative:.2g} %)" for one in self.lacking)
        return (
            f"whole torque, with friction and rotors, on random states: differs by {100.0 * lost / whole:.2g} %; by joint, "
            f"root mean square in N m or N: {parts}"
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


@dataclass(frozen=True)
class _Format:
    """How a format is written and how its file is proven."""

    suffix: str
    write: Callable[[Run, Robot, Path, bool], WrittenModel]
    """Of a run, its robot as the format can hold it, the file, and whether inconsistent links are allowed."""
    prove: Callable[[Robot, Path], float]
    places: tuple[Place, ...] | None = None
    """What its joints hold; None where it holds all effects as they are."""
    unprovable: Callable[[], str] = lambda: ""
    """Why this machine cannot prove it; empty where it can."""
    why_unequal: Callable[[Robot, Path], str] = lambda _robot, _path: ""
    """What made a proof fail, where that is known."""


# formats that are written on request only are loaded then


def _write_sdf(run: Run, held: Robot, path: Path, allow: bool) -> WrittenModel:
    from dynid.export.sdf import write_sdf

    return write_sdf(held, path, allow, run.robot)


def _prove_sdf(robot: Robot, path: Path) -> float:
    from dynid.export.sdf_proof import sdf_parity

    return sdf_parity(robot, path)


def _write_c(_run: Run, held: Robot, path: Path, allow: bool) -> WrittenModel:
    from dynid.export.c_source import write_c

    return write_c(held, path, "", allow)


def _prove_c(robot: Robot, path: Path) -> float:
    from dynid.export.c_source import c_parity

    return c_parity(robot, path)


def _no_compiler() -> str:
    from dynid.export.c_source import c_compiler

    return "" if c_compiler() else "not proven: there is no C compiler on this machine"


_FORMATS: Mapping[str, _Format] = {
    "urdf": _Format(
        ".urdf",
        lambda run, held, path, allow: write_urdf(held, path, None, allow, run.robot),
        torque_parity,
        URDF_PLACES,
        why_unequal=why_unequal,
    ),
    "mjcf": _Format(
        ".xml", lambda run, held, path, allow: write_mjcf(held, path, None, allow, run.robot), mjcf_parity, PLACES
    ),
    "sdf": _Format(".sdf", _write_sdf, _prove_sdf, URDF_PLACES),
    "c": _Format(".c", _write_c, _prove_c, unprovable=_no_compiler),
    "json": _Format(".json", lambda run, held, path, _allow: write_sidecar(held, path, run.estimate), sidecar_parity),
}
FORMATS = tuple(_FORMATS)


def export_run(
    run: Run, folder: str | Path, formats: Sequence[str] = ("urdf",), *, allow_inconsistent: bool = False
) -> tuple[Exported, ...]:
    """Write the identified robot in each format into a folder, reload each file and compare its torque.

    Args:
        run: the run.
        folder: made if missing.
        formats: of ``urdf``, ``mjcf``, ``sdf``, ``c``, ``json``.
        allow_inconsistent: write links that no physical body can be, instead of refusing.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> (exported,) = dynid.export_run(run, "models", ["json"])
        >>> exported.parity < 1e-9
        True
    """
    wanted = known_formats(formats)
    with changed_folder(folder) as change:
        exported = write_exports(run, change.stage, wanted, allow_inconsistent=allow_inconsistent)
        add_files(change.stage, (EXPORTS, *names_in(change.stage, exported)))
    return tuple(item.at(change.final) for item in exported)


def write_exports(
    run: Run, folder: Path, formats: Sequence[str], *, allow_inconsistent: bool = False
) -> tuple[Exported, ...]:
    """Write the model in each format into a folder that exists, with its proofs in ``exports.json``."""
    exported = tuple(_export(run, folder, name, allow_inconsistent) for name in formats)
    _remember(folder, exported)
    return exported


def names_in(folder: Path, exported: Sequence[Exported]) -> tuple[str, ...]:
    """Names of exported files inside their folder."""
    return tuple(str(file.relative_to(folder)) for item in exported for file in item.files)


def known_formats(names: Sequence[str]) -> tuple[str, ...]:
    """The formats of these names, each once."""
    wanted = tuple(dict.fromkeys(name.strip() for name in names))
    for name in wanted:
        if name not in _FORMATS:
            raise UnknownNameError("export format", name, FORMATS)
    return wanted


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


def _remember(folder: Path, exported: Sequence[Exported]) -> None:
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


def _export(run: Run, folder: Path, name: str, allow_inconsistent: bool) -> Exported:
    format = _FORMATS[name]
    held, told = run.identified, tuple[str, ...]()
    if format.places is not None:
        held, told = as_format_holds(run, name.upper(), format.places)
    path = folder / f"{_file_name(run.robot.name)}_identified{format.suffix}"
    written = format.write(run, held, path, allow_inconsistent)
    lacking = total_difference(run.identified, format.places, held)

    def made(parity: float, *notes: str) -> Exported:
        return Exported(written.path, name, parity, (*written.notes, *told, *notes), written.companions, lacking)

    obstacle = format.unprovable()
    if obstacle:
        return made(math.nan, obstacle)
    parity = min(format.prove(held, written.path), sys.float_info.max)  # JSON has no infinity
    if parity <= PARITY:
        return made(parity)
    reason = format.why_unequal(held, written.path)
    return made(
        parity,
        f"'{written.path.name}' is NOT proven: its torque differs by {parity:.1e} (relative) after reloading, expected at "
        f"most {PARITY:g}{f'; {reason}' if reason else ''}",
    )


def as_format_holds(run: Run, format: str, places: Sequence[Place]) -> tuple[Robot, tuple[str, ...]]:
    """The identified robot with the friction nearest to its own that a simulator's joint can hold, and what is to be told of it."""
    robot = run.identified
    friction = [effect for effect in robot.effects if effect.is_friction and effect.name != Offset.name]
    exact = all(effect.name in (Viscous.name, Coulomb.name) and not _smooth(effect) for effect in friction)
    if not friction or exact or robot.loops or robot.floating:
        return robot, ()
    motions, where = _motions_to_hold(run, robot)
    kept = [effect for effect in robot.effects if effect not in friction and effect.name != Armature.name]
    rest = left_out(robot.with_effects(kept), format, places, gravity=False)
    names = ", ".join(effect.label for effect in friction)
    told = f"{format} holds friction ({names}) as the damping and dry friction nearest to it by least squares {where}"
    return nearest_held(robot, motions), (told, *rest)


def _motions_to_hold(run: Run, robot: Robot) -> tuple[list[Motion], str]:
    """Motions over which friction is replaced, and which they are, in words."""
    if run.samples:
        motions = [Motion(one.position, one.velocity, one.acceleration, one.load) for one in run.samples]
        return motions, "over the speeds of the logs"
    q, v, a = random_states_within_limits(robot, 2000, 0)
    states = Samples(time=np.arange(2000.0), position=q, velocity=v, acceleration=a)
    loaded = Motion(q, v, a, with_transmitted_load(robot, states).load)
    return [loaded], "over random states within the limits, for want of the logs"


def _smooth(effect: Effect) -> bool:
    return bool(np.any(np.asarray(getattr(effect, "smooth_width", 0.0)) > 0.0))


def _file_name(robot: str) -> str:
    """The robot's name without what file names and C includes cannot have."""
    return re.sub(r"[^\w.-]+", "_", robot).strip("._") or "robot"
