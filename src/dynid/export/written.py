"""What every exporter shares: complete files or none, refusal of impossible bodies, and what is told about a file."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.errors import InconsistentModelError, InputError
from dynid.inertia import is_consistent
from dynid.robot.model import Robot


@dataclass(frozen=True)
class WrittenModel:
    """A file that was written: its format, how it was made, and what it could not hold."""

    path: Path
    format: str
    patched: bool
    """True where the robot's own file was edited, False where the file was written anew."""
    notes: tuple[str, ...] = ()


def write_whole(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file under a temporary name and rename it: readers see the old file or the new one, never a part."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write '{target}': there is no folder '{target.parent}'")
    if target.is_dir():
        raise InputError(f"cannot write '{target}': it is a folder")
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # a temporary file is private; what users keep follows their own mask
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(target)
    except OSError as error:
        raise InputError(f"cannot write '{target}': {error.strerror or error}") from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
    return target


def inconsistent_links(robot: Robot) -> tuple[str, ...]:
    """Moving links that no physical body could be; empty ones are frames and allowed."""
    fine = np.atleast_1d(is_consistent(robot.parameters.inertials, "full", allow_empty=True))
    return tuple(link for link, good in zip(robot.links, fine, strict=True) if not good)


def refuse_inconsistent(robot: Robot, allow_inconsistent: bool) -> tuple[str, ...]:
    """Names of the inconsistent links where they are allowed; an error that names them where they are not."""
    bad = inconsistent_links(robot)
    if bad and not allow_inconsistent:
        raise InconsistentModelError(
            f"robot '{robot.name}' has {len(bad)} of {robot.n_joints} links that no physical body could be: "
            f"{', '.join(bad)}; choose a method that keeps links consistent, or allow inconsistent ones"
        )
    return bad
