"""What an MJCF file may ask MuJoCo's compiler for: checked before it is compiled, because the compiler cannot be stopped."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

from dynid.errors import InputError
from dynid.robot.mesh_files import home_of

MOST_COPIES = 10_000
"""Bodies and shapes that ``<replicate>`` makes, in all."""
FINEST_MESH = 256
"""Largest number among the ``params`` of a mesh that is built in."""


def check_limits(root: Element, where: str) -> None:
    """Refuse copies by the million and built-in meshes that would fill the memory."""
    copies = _copies(root, where)
    if copies > MOST_COPIES:
        raise InputError(f"{where} asks <replicate> for {copies:.3g} copies, expected at most {MOST_COPIES}")
    for mesh in root.iter("mesh"):
        for text in mesh.get("params", "").split() if "builtin" in mesh.attrib else ():
            if _number(text, f"params of mesh '{mesh.get('name', '')}'", where) > FINEST_MESH:
                raise InputError(
                    f"mesh '{mesh.get('name', '')}' in {where} has the parameter {text[:20]}, expected at most {FINEST_MESH}"
                )


def check_meshes(root: Element, folder: Path, directory: str, where: str) -> None:
    """Refuse meshes that are no ordinary files, or lie outside the folder of the description and its parent."""
    for mesh in root.iter("mesh"):
        if "file" in mesh.attrib:
            file = (folder / directory / mesh.attrib["file"]).resolve()
            home = home_of(folder)
            if not file.is_relative_to(home):
                raise InputError(f"{where} asks for the mesh '{file}', expected one below '{home}'")
            if file.exists() and not file.is_file():
                raise InputError(f"mesh '{file}' of {where} is not an ordinary file")


def _copies(element: Element, where: str) -> float:
    """Elements after expansion of every ``<replicate>``."""
    own = 1.0
    if element.tag == "replicate":
        own = max(_number(element.get("count", "1"), "count of <replicate>", where), 1.0)
    inner = sum(_copies(child, where) for child in element if _has_replicate(child))
    return own * max(inner, 1.0) if element.tag == "replicate" else max(inner, 1.0)


def _has_replicate(element: Element) -> bool:
    return next(element.iter("replicate"), None) is not None


def _number(text: str, what: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} in {where} is '{text[:40]}', expected a number") from None
