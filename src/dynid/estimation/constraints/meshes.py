"""Vertices of a mesh file."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError


def mesh_vertices(path: Path) -> Array:
    """Vertices of an STL (binary or text) or OBJ file, ``(points, 3)``, each once."""
    if not path.is_file():
        raise InputError(f"mesh '{path}' does not exist")
    content = path.read_bytes()
    if path.suffix.lower() == ".obj":
        vertices = _text_vertices(content, b"v")
    elif path.suffix.lower() == ".stl":
        count = struct.unpack_from("<I", content, 80)[0] if len(content) >= 84 else -1
        if len(content) == 84 + 50 * count:
            triangles = np.frombuffer(content, dtype=np.uint8, offset=84).reshape(count, 50)
            vertices = triangles[:, 12:48].copy().view("<f4").reshape(-1, 3).astype(np.float64)
        else:
            vertices = _text_vertices(content, b"vertex")
    else:
        raise InputError(f"mesh '{path}' is of type '{path.suffix}', expected .stl or .obj")
    if not len(vertices):
        raise InputError(f"mesh '{path}' holds no vertex")
    return np.unique(vertices, axis=0)


def _text_vertices(content: bytes, keyword: bytes) -> Array:
    lines = (line.split() for line in content.splitlines())
    return np.array([[float(x) for x in parts[1:4]] for parts in lines if parts and parts[0] == keyword]).reshape(-1, 3)
