"""MJCF: the robot's own file with its numbers replaced, or a new file where there is none.

MuJoCo holds rotor inertia, viscous and Coulomb friction (``armature``, ``damping``, ``frictionloss``) and gravity. Inertias are
written along their principal axes, found here, because MuJoCo's compiler finds them to fewer digits. Bodies that were merged
of several are taken apart again, see :mod:`dynid.robot.links_apart`.
"""

from __future__ import annotations

import os
from pathlib import Path

from dynid.errors import InconsistentModelError, InputError
from dynid.export.loops import refuse_lumped
from dynid.export.mjcf_new import new_mjcf
from dynid.export.mjcf_patch import UnpatchableError, patched_mjcf
from dynid.export.mjcf_proof import compiled_file, mjcf_parity
from dynid.export.simulator_joint import left_out
from dynid.export.written import WrittenModel, inconsistent_links, those_of
from dynid.files import write_atomically
from dynid.robot.effects import PLACES
from dynid.robot.files import Description, read_description
from dynid.robot.model import Robot

__all__ = ["mjcf_parity", "write_mjcf"]


def write_mjcf(
    robot: Robot,
    path: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    allow_inconsistent: bool = False,
    described: Robot | None = None,
) -> WrittenModel:
    """Write the robot with its present parameters as MJCF.

    A robot that came from an MJCF file is written as that file with inertials, joint friction, rotor inertias and gravity
    replaced and everything else as it was. Other robots are written anew, with a motor on every joint.

    Args:
        robot: with the parameters to write.
        path: file to write.
        source: an MJCF file of the robot, where it did not come from one.
        allow_inconsistent: has no effect on links: MuJoCo compiles no inconsistent ones, so these are always refused.
        described: the same robot with the parameters of its description, for bodies that must be taken apart in a file
            written anew.

    Examples:
        >>> import dynid
        >>> dynid.write_mjcf(dynid.demo_robot(), "arm.xml").format
        'mjcf'
    """
    bad = inconsistent_links(robot)
    if bad:
        raise InconsistentModelError(
            f"{those_of(robot, bad)}; MuJoCo compiles no such bodies, allowed or not: choose a method that keeps links "
            "consistent, or have the nearest model written whose links are ('dynid repair RUN -o FILE.xml')"
        )
    refuse_lumped(robot)
    notes = left_out(robot, "MJCF", PLACES, gravity=False)
    target, text, patched = Path(path), None, False
    description = _source_description(robot, source, notes)
    if description is not None:
        try:
            text = patched_mjcf(robot, description, target, notes)
            patched = True
        except UnpatchableError as reason:
            notes.append(f"robot file '{description.path}' {reason}: written anew, without its looks")
    if text is None:
        text = new_mjcf(robot, notes, described).encode()
    content, problems = text, []

    def write_and_compile(temporary: Path) -> None:  # so that no file is left which MuJoCo does not compile
        temporary.write_bytes(content)
        try:
            problems.append(compiled_file(temporary)[1])
        except InputError as error:  # the user knows the file by its own name
            raise InputError(str(error).replace(str(temporary), str(target))) from error

    written = write_atomically(target, write_and_compile)
    notes.extend(f"MuJoCo compiles the file only without its looks: {problem}" for problem in problems if problem)
    return WrittenModel(written, "mjcf", patched, tuple(notes))


def _source_description(robot: Robot, source: str | os.PathLike[str] | None, notes: list[str]) -> Description | None:
    """The MJCF file to patch; None where there is none."""
    if source is not None:
        return read_description(source)
    if robot.source.format != "mjcf" or not robot.source.path:
        return None
    if not Path(robot.source.path).is_file():
        notes.append(f"robot file '{robot.source.path}' is no longer there: written anew, without its looks")
        return None
    description = read_description(robot.source.path)
    if description.source("mjcf").sha256 != robot.source.sha256:
        raise InputError(
            f"robot file '{description.path}' has changed since the robot was read from it; "
            "name the file to patch as the source"
        )
    return description
