"""Vertices of a mesh file."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.structured import read_limited

MOST_BYTES = 256 * 2**20


def mesh_vertices(path: Path) -> Array:
    """Vertices of an STL (binary or text) or OBJ file, ``(points, 3)``, each once."""
    if not path.exists():
        raise InputError(f"mesh '{path}' does not exist")
    content = read_limited(path, f"mesh '{path}'", MOST_BYTES)
    if path.suffix.lower() == ".obj":
        vertices = _text_vertices(content, b"v", path)
    elif path.suffix.lower() == ".stl":
        count = struct.unpack_from("<I", content, 80)[0] if len(content) >= 84 else -1
        if count >= 0 and len(content) == 84 + 50 * count:
            triangles = np.frombuffer(content, dtype=np.uint8, offset=84).reshape(count, 50)
            vertices = triangles[:, 12:48].copy().view("<f4").reshape(-1, 3).astype(np.float64)
        else:
            vertices = _text_vertices(content, b"vertex", path)
    else:
        raise InputError(f"mesh '{path}' is of type '{path.suffix}', expected .stl or .obj")
    if not len(vertices):
        raise InputError(f"mesh '{path}' holds no vertex")
    if not np.isfinite(vertices).all():
        raise InputError(f"mesh '{path}' holds a vertex that is not a number")
    return np.unique(vertices, axis=0)


def _text_vertices(content: bytes, keyword: bytes, path: Path) -> Array:
    found = []
    for number, line in enumerate(content.splitlines(), 1):
        parts = line.split()
        if parts and parts[0] == keyword:
            try:
                x, y, z = (float(value) for value in parts[1:4])
            except ValueError:
                raise InputError(f"line {number} of mesh '{path}' is no vertex of three numbers") from None
            found.append((x, y, z))
    return np.array(found).reshape(-1, 3)
