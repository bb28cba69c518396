"""Options that several verbs share, with their meaning written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from dynid.errors import InputError

DEFAULT_EFFECTS = "viscous,coulomb,offset,armature"

RobotFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="ROBOT", help="Robot description: .urdf, .xml (MJCF) or .toml (DH).", show_default=False),
]
LogFiles: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="LOG...", help="Logs: CSV, parquet, npz, MCAP.", show_default=False)
]
LogFile: TypeAlias = Annotated[Path, typer.Argument(metavar="LOG", help="Log: CSV, parquet, npz, MCAP.", show_default=False)]
DriveGains: TypeAlias = Annotated[
    str | None, typer.Option("--drive-gains", metavar="K1,K2,..", help="N m per A: torque from motor current.")
]
Preset: TypeAlias = Annotated[
    str | None, typer.Option("--preset", help="Vendor's columns and units: libfranka, rtde, fri, joint_states.")
]
Mapping: TypeAlias = Annotated[
    Path | None, typer.Option("--mapping", help="TOML or JSON file that names the log's columns.", show_default=False)
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else there.")]
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


def effect_names(text: str) -> tuple[str, ...]:
    """Names of effects; none for ``none``."""
    return () if text == "none" else tuple(name.strip() for name in text.split(","))


_UNIT_OF_OPTION = {"--cutoff-hz": "a number of Hz", "--dead-zone": "a speed in rad/s"}


def number_or_auto(text: str, option: str) -> float | Literal["auto"]:
    """A number, or the word ``auto``."""
    if text.strip() == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} is '{text}', expected {_UNIT_OF_OPTION.get(option, 'a number')} or auto") from None


def given(context: typer.Context, name: str) -> bool:
    """Whether an option stood on the command line, rather than being its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
