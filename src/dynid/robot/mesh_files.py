"""Files of meshes: which may be opened, whatever a description of unknown origin says."""

from __future__ import annotations

from pathlib import Path

from dynid.errors import InputError

MOST_MESH_BYTES = 64_000_000
"""Largest file of one mesh that is read."""


def check_mesh_file(file: Path, described: Path) -> None:
    """Refuse a mesh of a description that is not there, no ordinary file or too large, before anything opens it."""
    if not file.exists():
        raise InputError(f"mesh '{file}' of robot file '{described}' is not there")
    if not file.is_file():
        raise InputError(f"mesh '{file}' of robot file '{described}' is not an ordinary file")
    if (size := file.stat().st_size) > MOST_MESH_BYTES:
        raise InputError(
            f"mesh '{file}' of robot file '{described}' has {size / 1e6:.0f} MB, expected at most {MOST_MESH_BYTES / 1e6:.0f} MB"
        )


def home_of(folder: Path) -> Path:
    """Where the meshes of a description in this folder may lie: its parent, unless that holds everything."""
    return folder if folder.parent == folder.parent.parent else folder.parent
