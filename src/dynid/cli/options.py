"""Options that several verbs share, with their meaning written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from dynid.errors import InputError

DEFAULT_EFFECTS = "viscous,coulomb,offset,armature"

RobotFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="ROBOT", help="Robot description: .urdf, .xacro, .xml (MJCF), .sdf or .toml (DH).", show_default=False
    ),
]
_LOGS = (
    "Logs: CSV, parquet, npz, MCAP; also a folder, a pattern in quotes ('logs/*.csv'), a URL (https://, s3://, gs://). "
    "LOG@10:25 is the part from 10 to 25 s."
)
LogFiles: TypeAlias = Annotated[list[str], typer.Argument(metavar="LOG...", help=_LOGS, show_default=False)]
OptionalRobotFile: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="ROBOT", help="Robot description: .urdf, .xacro, .xml (MJCF), .sdf or .toml (DH).", show_default=False
    ),
]
OptionalLogFiles: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="LOG...", help=_LOGS, show_default=False),
]
UnseenLogs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--validate", metavar="LOG", help="Unseen log to validate on; repeat for several.", show_default=False),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Effects: TypeAlias = Annotated[
    str, typer.Option("--effects", help="Joint effects in the model, or 'none' for rigid bodies only.")
]
Gravity: TypeAlias = Annotated[
    str | None,
    typer.Option("--gravity", metavar="X,Y,Z", help="Gravity in the base frame; default: the description's."),
]
Lock: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--lock", metavar="JOINT=VALUE", help="Hold a joint and merge what it carries; repeat for several."),
]
Output: TypeAlias = Annotated[Path, typer.Option("-o", "--output", help="Where to write.")]
RunFolder: TypeAlias = Annotated[
    Path | None, typer.Option("-o", "--output", help="Folder to write the run into; default: run.", show_default=False)
]
ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config", help="Run file with these options (see dynid init); flags take precedence.", show_default=False
    ),
]
ConstraintsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--constraints",
        metavar="FILE",
        help="TOML file with a table \\[constraints], such as that of a run file: what is known of the links beyond consistency.",
        show_default=False,
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]


def parsed_gravity(text: str | None) -> tuple[float, float, float] | None:
    """``x,y,z`` as numbers."""
    if text is None:
        return None
    values = numbers(text, "--gravity")
    if len(values) != 3:
        raise InputError(f"--gravity has {len(values)} numbers ('{text}'), expected 3: x,y,z")
    return values[0], values[1], values[2]


def parsed_lock(items: list[str] | None) -> dict[str, float]:
    """``joint=value`` pairs."""
    lock: dict[str, float] = {}
    for item in items or []:
        name, _, value = item.partition("=")
        try:
            lock[name.strip()] = float(value)
        except ValueError:
            raise InputError(f"--lock is '{item}', expected joint=value, the value a number in rad or m") from None
    return lock


def numbers(text: str, option: str) -> list[float]:
    """Comma-separated numbers of an option."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} is '{text}', expected numbers separated by commas") from None


def constraints_table(path: Path | None) -> dict[str, Any]:
    """The table of a file of constraints; empty without one."""
    if path is None:
        return {}
    from dynid.estimation.constraints.table import read_constraints_table

    return read_constraints_table(path)


def effect_names(text: str) -> tuple[str, ...]:
    """Names of effects; none for ``none``."""
    return () if text == "none" else tuple(name.strip() for name in text.split(","))
