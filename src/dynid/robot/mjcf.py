"""Robots written as MJCF.

The text and what it includes are vetted, cut to what dynamics needs and compiled by MuJoCo. Body frames are
the MJCF body frames; a joint's axis may pass beside them. Geometry counts only where a moving body has no
``<inertial>``, so a missing mesh stops nothing unless that body's mass would have come from it. Bodies
without joints are merged and remembered; several joints on one body become a chain with massless links.
Closed loops (``connect``, ``weld``) become closures.
Inertias that MuJoCo does not take, because no physical body has them, are read as the text states them and noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.adapters.mujoco_joints import actuator_shares, joint_type, model_gravity, torque_limit
from dynid.adapters.xml import parse_xml, serialize_xml
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.inertia import change_of_frame, phi_from_mass_com_inertia, skew
from dynid.robot.checks import limit_notes
from dynid.robot.files import Description, read_description
from dynid.robot.joint import Joint, JointKind
from dynid.robot.mjcf_limits import check_limits, check_meshes
from dynid.robot.mjcf_loops import TIES, cut_equalities, cut_site, first_key, with_ties
from dynid.robot.model import MergedLink, Robot, make_robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from dynid.adapters.mujoco import StatedInertia

_KEPT_SECTIONS = ("compiler", "option", "default", "asset", "worldbody", "actuator", "equality")
_NOT_RIGID = ("composite", "flexcomp", "attach")
_LOOKS = ("camera", "light", "plugin")
_IGNORED = {
    "tendon": "tendons",
    "contact": "contacts",
    "deformable": "deformable bodies",
}


def read_mjcf(path: str | PathLike[str]) -> Robot:
    """The robot of an MJCF file, with no effects."""
    return robot_from_mjcf(read_description(path))


def robot_from_mjcf(description: Description) -> Robot:
    """The robot of an MJCF file that was read, with no effects."""
    return compiled_robot(description).robot


@dataclass(frozen=True, eq=False)
class CompiledRobot:
    """A robot with MuJoCo's model of its file."""

    robot: Robot
    model: Any
    """Without looks; bodies that MuJoCo refuses have stand-ins for their inertias."""
    refused: frozenset[str]
    """Bodies whose inertia MuJoCo does not compile as it is stated."""


def compiled_robot(description: Description) -> CompiledRobot:
    """The robot of an MJCF file that was read, and how MuJoCo sees it."""
    from dynid.adapters.mujoco import compile_stated

    where = f"robot file '{description.path}'"
    root = parse_xml(description.content, where)
    if root.tag != "mujoco":
        raise InputError(f"{where} has the outermost element <{root.tag}>, expected <mujoco>")
    folder = description.path.resolve().parent
    expand_includes(root, folder, folder, {description.path.resolve()}, where)
    notes = [f"not modelled: {what}" for tag, what in _IGNORED.items() if any(len(e) for e in root.findall(tag))]
    if any(child.tag not in TIES for equality in root.findall("equality") for child in equality):
        notes.append("not modelled: equality constraints of tendons and others that are none of joints, bodies and sites")
    check_limits(root, where)
    key = first_key(root)
    needs_mesh = cut_to_dynamics(root, folder, where)
    try:
        model, stated = compile_stated(serialize_xml(root), where)
    except InputError as error:
        if needs_mesh:
            raise InputError(
                f"{error} (bodies without <inertial> weigh what their meshes do: {', '.join(needs_mesh[:5])})"
            ) from error
        raise
    body_names = [model.body(b).name or f"body{b}" for b in range(model.nbody)]
    phi = np.array([_body_phi(model, b, stated.get(b)) for b in range(model.nbody)])
    name = root.get("model") or description.path.stem
    notes.extend(_refusal_notes({body_names[b]: phi[b] for b in stated}))
    robot = with_ties(_assemble(name, model, body_names, phi, description, notes, where), model, body_names, key, where)
    if robot.floating and model.neq:
        robot = robot.with_notes(["not modelled: closed loops (equality) of a robot on a floating base"])
    return CompiledRobot(robot, model, frozenset(body_names[b] for b in stated))


def _refusal_notes(refused: Mapping[str, Array]) -> list[str]:
    """What MuJoCo would say of the bodies that it refuses."""
    massless = [name for name, phi in refused.items() if not phi.any()]
    impossible = [name for name in refused if name not in massless]
    notes = []
    if impossible:
        notes.append(f"inertias that MuJoCo does not take are read as they are stated: {', '.join(impossible)}")
    if massless:
        notes.append(f"bodies without mass, which MuJoCo does not compile where they move: {', '.join(massless)}")
    return notes


# The compiled model ---------------------------------------------------------------------------


def _assemble(
    name: str, model: Any, body_names: list[str], phis: Array, description: Description, notes: list[str], where: str
) -> Robot:
    joints: list[Joint] = []
    links: list[str] = []
    inertials: list[Array] = []
    merged: list[MergedLink] = []
    carrier: list[int] = [-1]  # the joint that carries each MuJoCo body, and the body's pose in its frame
    pose_in_carrier: list[Array] = [np.eye(4)]
    for b in range(1, model.nbody):
        above = int(model.body_parentid[b])
        placement = pose_in_carrier[above] @ _pose(model.body_pos[b], model.body_quat[b])
        parent = carrier[above]
        phi = phis[b]
        numbers = range(int(model.body_jntadr[b]), int(model.body_jntadr[b] + model.body_jntnum[b]))
        if not numbers:
            carrier.append(parent)
            pose_in_carrier.append(placement)
            merged.append(MergedLink(body_names[b], parent, placement, phi))
            if parent >= 0:
                inertials[parent] = inertials[parent] + (change_of_frame(placement[:3, :3], placement[:3, 3]) @ phi)
            continue
        for j in numbers:
            joint = _joint(model, j, parent, placement, notes, where)
            joints.append(joint)
            last = j == numbers[-1]
            links.append(body_names[b] if last else f"{body_names[b]}.{joint.name}")
            inertials.append(phi if last else np.zeros(10))
            parent, placement = len(joints) - 1, np.eye(4)
        carrier.append(parent)
        pose_in_carrier.append(np.eye(4))
    if not joints:
        raise InputError(f"{where} has no moving joint")
    notes.extend(limit_notes(joints, ("position", "torque")))
    notes.append("no velocity limit: MJCF has none")
    if np.any(model.body_gravcomp):
        notes.append("not modelled: gravity compensation of bodies (gravcomp)")
    return make_robot(
        name,
        joints,
        np.array(inertials),
        links=links,
        gravity=_gravity(model, notes),
        merged=merged,
        source=description.source("mjcf", tuple(notes)),
    )


def _joint(model: Any, j: int, parent: int, placement: Array, notes: list[str], where: str) -> Joint:
    name = model.joint(j).name or f"joint{j + 1}"
    kind = joint_type(model, j)
    if kind == "ball":
        raise InputError(
            f"joint '{name}' in {where} is a ball joint, expected hinge, slide or a free joint; "
            "three hinges on the body would do"
        )
    if kind == "free":
        # its position is the pose in the world, whatever the body's own placement
        return Joint(name, "floating", parent, np.eye(4), np.zeros(6))
    axis, point = np.array(model.jnt_axis[j]), np.array(model.jnt_pos[j])
    axis /= np.linalg.norm(axis)
    limited = bool(model.jnt_limited[j])
    ours: JointKind
    if kind == "slide":
        ours, screw = "prismatic", np.concatenate([axis, np.zeros(3)])
    else:
        ours, screw = "revolute" if limited else "continuous", np.concatenate([skew(point) @ axis, axis])
    dof = int(model.jnt_dofadr[j])
    reference = float(model.qpos0[model.jnt_qposadr[j]])
    if model.jnt_stiffness[j] != 0.0:
        notes.append(f"not modelled: spring of joint '{name}' (stiffness {model.jnt_stiffness[j]:g})")
    if np.any(model.dof_dampingpoly[dof]):
        notes.append(f"not modelled: nonlinear damping of joint '{name}'")
    of_actuators = actuator_shares(model, j)
    nominal = {
        "Ia": float(model.dof_armature[dof]) + of_actuators["armature"],
        "fv": float(model.dof_damping[dof]) + of_actuators["damping"],
        "fc": float(model.dof_frictionloss[dof]),
    }
    joint = Joint(
        name,
        ours,
        parent,
        placement,
        screw,
        q_min=float(model.jnt_range[j, 0]) if limited else -np.inf,
        q_max=float(model.jnt_range[j, 1]) if limited else np.inf,
        tau_max=torque_limit(model, j),
        nominal={symbol: value for symbol, value in nominal.items() if value != 0.0},
    )
    if reference == 0.0:
        return joint
    # MuJoCo draws the body where q = ref: P exp([S] (q - ref))
    return replace(joint, placement=joint.pose(-reference))


def _gravity(model: Any, notes: list[str]) -> Array:
    gravity = model_gravity(model)
    if gravity is None:
        notes.append("gravity is switched off in the file")
        return np.zeros(3)
    return gravity


def _body_phi(model: Any, b: int, stated: StatedInertia | None) -> Array:
    mass = float(model.body_mass[b]) if stated is None else stated.mass
    own = np.diag(model.body_inertia[b]) if stated is None else stated.inertia
    axes = _rotation(model.body_iquat[b])
    return phi_from_mass_com_inertia(mass, np.array(model.body_ipos[b]), axes @ own @ axes.T)


def _pose(position: Array, quaternion: Array) -> Array:
    pose = np.eye(4)
    pose[:3, :3] = _rotation(quaternion)
    pose[:3, 3] = position
    return pose


def _rotation(quaternion: Array) -> Array:
    """Of a quaternion ``w x y z``."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


# The text before it is compiled ---------------------------------------------------------------


def expand_includes(element: Element, folder: Path, beside: Path, seen: set[Path], where: str) -> None:
    """Put included files in place; only from the main file's folder and below, each once."""
    for index in range(len(element) - 1, -1, -1):
        child = element[index]
        if child.tag != "include":
            expand_includes(child, folder, beside, seen, where)
            continue
        name = child.get("file", "")
        if not name:
            raise InputError(f"{where} has an <include> without a file")
        candidates = [(start / name).resolve() for start in (folder, beside)]
        file = next((path for path in candidates if path.is_file()), candidates[0])
        if not file.is_relative_to(folder):
            raise InputError(f"{where} includes '{name}', which lies outside its own folder '{folder}'")
        if file in seen:
            raise InputError(f"{where} includes '{name}' more than once")
        seen.add(file)
        included = parse_xml(read_description(file).content, f"included file '{file}'")
        if included.tag not in ("mujoco", "mujocoinclude"):
            raise InputError(f"included file '{file}' has the outermost element <{included.tag}>")
        expand_includes(included, folder, file.parent, seen, where)
        element[index : index + 1] = list(included)


def cut_to_dynamics(root: Element, folder: Path, where: str) -> list[str]:
    """Keep what moves and weighs; returns the bodies whose mass comes from meshes."""
    for tag in _NOT_RIGID:
        if next(root.iter(tag), None) is not None:
            raise InputError(f"{where} uses <{tag}>, which is not supported; expected bodies written out")
    for child in list(root):
        if child.tag not in _KEPT_SECTIONS:
            root.remove(child)
    sites = cut_equalities(root)
    from_geoms = [c.get("inertiafromgeom", "auto") for c in root.findall("compiler") if "inertiafromgeom" in c.attrib]
    always_geoms = bool(from_geoms) and from_geoms[-1] == "true"
    needs_mesh: list[str] = []
    meshes: set[str] = set()
    for world in root.findall("worldbody"):
        _cut_body(world, False, False, always_geoms, needs_mesh, meshes)
        _cut_sites(world, sites)
    for geom in root.iter("geom"):
        geom.attrib.pop("material", None)
    for actuators in root.findall("actuator"):
        for actuator in list(actuators):
            if "joint" not in actuator.attrib or actuator.tag == "plugin":
                actuators.remove(actuator)
    _cut_assets(root, folder, meshes, where)
    return needs_mesh


def _cut_body(
    element: Element,
    moving: bool,
    keep_geoms: bool,
    always_geoms: bool,
    needs_mesh: list[str],
    meshes: set[str],
) -> None:
    for child in list(element):
        if child.tag in _LOOKS or (child.tag == "geom" and not keep_geoms):
            element.remove(child)
        elif child.tag == "geom" and "mesh" in child.attrib:
            meshes.add(child.attrib["mesh"])
            needs_mesh.append(element.get("name", "unnamed"))
        elif child.tag in ("frame", "replicate"):
            _cut_body(child, moving, keep_geoms, always_geoms, needs_mesh, meshes)
        elif child.tag == "body":
            below = moving or _has(child, ("joint", "freejoint"))
            weighed = _has(child, ("inertial",)) and not always_geoms
            _cut_body(child, below, below and not weighed, always_geoms, needs_mesh, meshes)


def _cut_sites(element: Element, needed: set[str]) -> None:
    """Sites that closed loops name stay, as places; the others are looks."""
    for child in list(element):
        if child.tag != "site":
            _cut_sites(child, needed)
        elif child.get("name", "") in needed:
            cut_site(child)
        else:
            element.remove(child)


def _has(body: Element, tags: tuple[str, ...]) -> bool:
    """Whether a body itself has such an element, perhaps inside a frame."""
    return any(child.tag in tags or (child.tag in ("frame", "replicate") and _has(child, tags)) for child in body)


def _cut_assets(root: Element, folder: Path, meshes: set[str], where: str) -> None:
    """Only the meshes that carry mass, looked for beside the main file."""
    for asset in root.findall("asset"):
        for child in list(asset):
            name = child.get("name") or Path(child.get("file", "")).stem
            if child.tag != "mesh" or name not in meshes:
                asset.remove(child)
            else:
                for attribute in ("material", "plugin"):
                    child.attrib.pop(attribute, None)
    fix_mesh_folder(root, folder, where)


def fix_mesh_folder(root: Element, folder: Path, where: str) -> Path:
    """State where meshes lie, whatever the working folder is, once they are known to lie there; fixed bodies stay bodies."""
    from xml.etree.ElementTree import Element

    stated: dict[str, str] = {}
    for compiler in root.findall("compiler"):
        stated |= compiler.attrib
        for attribute in ("meshdir", "assetdir", "texturedir", "fusestatic"):
            compiler.attrib.pop(attribute, None)
    directory = stated.get("meshdir", stated.get("assetdir", ""))
    check_meshes(root, folder, directory, where)
    root.append(Element("compiler", meshdir=str(folder / directory), fusestatic="false"))
    return folder / directory
