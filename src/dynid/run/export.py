"""The identified model of a run as files, each reloaded and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynid.errors import UnknownNameError
from dynid.export.proof import torque_parity
from dynid.export.urdf import write_urdf
from dynid.run.identify import Run

FORMATS = ("urdf",)


@dataclass(frozen=True)
class Exported:
    """A file and its proof: the largest relative torque difference after reloading it elsewhere."""

    path: Path
    format: str
    parity: float
    notes: tuple[str, ...] = ()


def export_run(
    run: Run, folder: str | Path, formats: Sequence[str] = ("urdf",), *, allow_inconsistent: bool = False
) -> tuple[Exported, ...]:
    """Write the identified robot in each format into ``folder`` and prove each file."""
    for name in formats:
        if name not in FORMATS:
            raise UnknownNameError("export format", name, FORMATS)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    robot = run.identified
    written = write_urdf(robot, target / f"{robot.name}_identified.urdf", allow_inconsistent=allow_inconsistent)
    return (Exported(written.path, "urdf", torque_parity(robot, written.path), written.notes),)
