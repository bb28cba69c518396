"""Geoms of MJCF as solids on links, as MuJoCo compiles them.

A geom collides where ``contype`` or ``conaffinity`` is not zero or a ``<pair>`` names it; groups only say what is drawn. Which of two
colliding geoms meet in a simulation is for its speed and is not asked here: the bodies of the real robot are all hard.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.io.robots.description import read_description, vetted_mesh
from dynid.io.robots.mujoco_model import check_limits, cut_to_shapes, mujoco_reason, mujoco_warnings, whole_mjcf
from dynid.io.robots.solids import Solid, SolidKind, Solids, Surface
from dynid.io.robots.xml import serialize_xml
from dynid.model.poses import make_pose, rotation_from_quaternion

LEVEL = 1e-6
"""How far the normal of a level floor may lean."""


def geom_solids(path: Path, *, looks: bool) -> Solids:
    """Geoms of an MJCF file by body.

    Args:
        path: the file; every mesh that is needed is vetted before any is opened.
        looks: whether all geoms are wanted; else those that only are looks count where a body has none that collides.
    """
    import mujoco

    description = read_description(path)
    where, root = description.where, whole_mjcf(description)
    check_limits(root, where)
    folder = cut_to_shapes(root, path.resolve().parent, where)
    try:
        with mujoco_warnings():
            spec = mujoco.MjSpec.from_string(serialize_xml(root))
            notes = _keep_solid_geoms(spec, where, looks)
            unread = _keep_needed_meshes(spec, lambda file: vetted_mesh(folder / file, path), looks)
            # masses do not matter here, but a body whose geoms are gone must have one
            spec.compiler.fusestatic = spec.compiler.discardvisual = False
            spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
            for body in spec.bodies[1:]:
                body.mass, body.ipos, body.inertia = 1.0, np.zeros(3), np.ones(3)
                body.fullinertia, body.explicitinertial = [np.nan, *np.zeros(5)], True
            excluded = frozenset(frozenset((one.bodyname1, one.bodyname2)) for one in spec.excludes)
            model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise InputError(f"shapes of {where} cannot be read: {mujoco_reason(error)}") from error
    # bodies of a tree that moves: the base of an arm is one, a table beside it and the world itself are not
    moving = {int(model.body_rootid[b]) for b in range(1, model.nbody) if model.body_weldid[b] != 0}
    on_robot = [b > 0 and int(model.body_rootid[b]) in moving for b in range(model.nbody)]
    lacking = {}
    for body, geom, reason in unread:
        name = _body_name(model, body.id)
        if on_robot[body.id]:
            lacking[name] = reason
        else:
            notes.append(f"obstacle '{geom or name}' is not kept clear of: {reason}")
    solids, floor = _solids(model, on_robot, looks, notes)
    return Solids(solids, _joined(model), excluded, floor, lacking, tuple(notes))


# Before it is compiled ------------------------------------------------------------------------


def _keep_solid_geoms(spec: Any, where: str, looks: bool) -> list[str]:
    """Delete geoms that are not wanted; returns notes on those that have no solid here."""
    import mujoco

    kinds = mujoco.mjtGeom
    for part in (*spec.textures, *spec.materials, *spec.skins):
        spec.delete(part)
    named = {name for pair in spec.pairs for name in (pair.geomname1, pair.geomname2)}
    for pair in list(spec.pairs):
        spec.delete(pair)
    unknown = []
    for body in spec.bodies:
        geoms = list(body.geoms)
        hard = [geom for geom in geoms if geom.contype or geom.conaffinity or (geom.name and geom.name in named)]
        # what is drawn in the world without being hard is a mark, not a body
        wanted = hard if hard or body.name == "world" else geoms
        if looks:
            wanted = [] if body.name == "world" else geoms
        for geom in geoms:
            geom.material = ""
            if geom.type in (kinds.mjGEOM_HFIELD, kinds.mjGEOM_SDF):
                unknown += [f"{geom.type.name[7:].lower()} of body '{body.name}'"] * (geom in hard)
                spec.delete(geom)
            elif geom not in wanted:
                spec.delete(geom)
            elif geom in hard:
                geom.contype = 1  # also those that a pair names
    for field in list(spec.hfields):
        spec.delete(field)
    return [f"shapes of {where} that are not kept clear of: {', '.join(unknown)}"] if unknown else []


def _keep_needed_meshes(spec: Any, vet_mesh: Callable[[str], Path], looks: bool) -> list[tuple[Any, str, str]]:
    """Delete meshes that no geom needs, and all geoms of a body one of whose meshes cannot be had; of the world, that geom alone.

    Returns these bodies, each with the name of the geom and the reason.
    """
    import mujoco

    users: dict[str, list[Any]] = {}
    for geom in spec.geoms:
        if geom.meshname:
            users.setdefault(geom.meshname, []).append(geom)
    unread, doomed = [], []
    for mesh in spec.meshes:
        try:
            if mesh.name in users and mesh.file:
                vet_mesh(mesh.file)
        except InputError as error:
            if looks:
                raise
            unread += [(geom.parent, geom.name, str(error)) for geom in users[mesh.name]]
            for geom in users[mesh.name]:
                doomed += [geom] if geom.parent.name == "world" else list(geom.parent.geoms)
    for number, geom in enumerate(doomed):
        if geom not in doomed[:number]:
            spec.delete(geom)
    needed = {geom.meshname for geom in spec.geoms}
    for mesh in list(spec.meshes):
        if mesh.name in needed:
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # open and thin ones have no volume
        else:
            spec.delete(mesh)
    return unread


# The compiled model ---------------------------------------------------------------------------


def _solids(model: Any, on_robot: list[bool], looks: bool, notes: list[str]) -> tuple[tuple[Solid, ...], float | None]:
    """The solids, and the height of the highest level plane; planes that lean are noted."""
    import mujoco

    state = mujoco.MjData(model)
    mujoco.mj_kinematics(model, state)
    found, heights = [], []
    for g in range(model.ngeom):
        kind, sizes, mesh = _shape(model, g)
        collides = bool(model.geom_contype[g] or model.geom_conaffinity[g])
        b, axes = int(model.geom_bodyid[g]), state.geom_xmat[g].reshape(3, 3)
        link = _body_name(model, b)
        if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_PLANE and collides:
            if np.hypot(*axes[:2, 2]) < LEVEL and axes[2, 2] > 0.0:
                heights.append(float(state.geom_xpos[g, 2]))
            else:
                notes.append(f"plane '{model.geom(g).name or g}' is not level and is not kept clear of")
        if kind is None:
            continue
        if on_robot[b]:
            turn = rotation_from_quaternion(model.geom_quat[g])
            found.append(Solid(link, kind, sizes, make_pose(turn, model.geom_pos[g]), mesh))
        elif looks or collides:
            name = (model.geom(g).name or link) if b == 0 else link
            found.append(Solid(name, kind, sizes, make_pose(axes, state.geom_xpos[g]), mesh, obstacle=True))
    return tuple(found), max(heights) if heights else None


def _shape(model: Any, g: int) -> tuple[SolidKind | None, tuple[float, ...], Surface | None]:
    """Kind, sizes and mesh of a geom; no kind for planes, which are no bodies."""
    import mujoco

    kinds = mujoco.mjtGeom
    kind, size = (kinds(int(model.geom_type[g])), [float(value) for value in model.geom_size[g]])
    if kind == kinds.mjGEOM_MESH:
        m = int(model.geom_dataid[g])
        first, count = model.mesh_vertadr[m], model.mesh_vertnum[m]
        face, faces = model.mesh_faceadr[m], model.mesh_facenum[m]
        vertices = model.mesh_vert[first : first + count].astype(np.float64)
        return ("mesh", (), Surface(vertices, model.mesh_face[face : face + faces].astype(np.int64)))
    plain: dict[Any, tuple[SolidKind, tuple[float, ...]]] = {
        kinds.mjGEOM_BOX: ("box", tuple(size)),
        kinds.mjGEOM_ELLIPSOID: ("ellipsoid", tuple(size)),
        kinds.mjGEOM_SPHERE: ("ellipsoid", (size[0],) * 3),
        kinds.mjGEOM_CAPSULE: ("capsule", (size[0], size[1])),
        kinds.mjGEOM_CYLINDER: ("cylinder", (size[0], size[1])),
    }
    return (*plain[kind], None) if kind in plain else (None, (), None)


def _joined(model: Any) -> frozenset[frozenset[str]]:
    """Bodies that several joints at once join, by way of the bodies that are fixed to each; one joint is seen by its number."""
    members: dict[int, list[int]] = {}
    for b in range(1, model.nbody):
        members.setdefault(int(model.body_weldid[b]), []).append(b)
    pairs = set()
    for group, carried in members.items():
        if model.body_jntnum[group] > 1:
            above = members.get(int(model.body_weldid[model.body_parentid[group]]), [])
            pairs |= {frozenset((_body_name(model, one), _body_name(model, other))) for one in carried for other in above}
    return frozenset(pairs)


def _body_name(model: Any, b: int) -> str:
    return model.body(b).name or f"body{b}"
