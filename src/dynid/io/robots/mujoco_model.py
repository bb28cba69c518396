"""MuJoCo: MJCF vetted and compiled, its warnings collected, motion handed to it and forces back.

The compiler cannot be stopped, so everything that would fill the memory or open files elsewhere is refused before it sees the text. Of
that remains what moves and weighs (:func:`cut_to_dynamics`) or what has a shape (:func:`cut_to_shapes`).

A free joint of MuJoCo differs from dynid's: its position is the pose in the world (quaternion ``w x y z``), its linear velocity is in
world axes,

    qpos = P T(q),   qvel = (R v, w),   qacc = (R (a + w x v), alpha),   force = (R^T f, m)

with ``R`` the rotation of ``qpos`` and ``(v, w)`` dynid's twist in the body's own frame. MuJoCo numbers bodies depth first, so its
joints may stand in another order.

Warnings that are not collected go to the terminal and into ``MUJOCO_LOG.TXT`` of the present folder. MuJoCo warns where a simulation
leaves all bounds, and then sets the state back to the beginning: positions that follow are finite and mean nothing. Whoever steps
MuJoCo therefore has to look at what was collected.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_shape
from dynid.errors import InputError
from dynid.io.robots.description import Description, home_of, read_description
from dynid.io.robots.xml import one_number, parse_xml, serialize_xml
from dynid.model.poses import quaternion_from_rotation, rotation_from_quaternion
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MOST_COPIES = 10_000
"""Bodies and shapes that ``<replicate>`` makes, in all."""
FINEST_MESH = 256
"""Largest number among the ``params`` of a mesh that is built in."""
TIES = ("connect", "weld", "joint")
"""Equality constraints that are modelled."""
_PLACE = ("name", "pos", "quat", "axisangle", "xyaxes", "zaxis", "euler")
"""What a site that a closed loop names keeps."""
_DYNAMIC_SECTIONS = ("compiler", "option", "default", "asset", "worldbody", "actuator", "equality")
_SHAPE_SECTIONS = ("compiler", "default", "asset", "worldbody", "contact")
_SHAPE_ASSETS = ("mesh", "hfield", "material", "texture")
_LOOKS = ("camera", "light", "plugin")
_NOT_RIGID = ("composite", "flexcomp", "attach")
_ONE_AT_A_TIME = threading.RLock()
"""MuJoCo has one place for the function that takes its warnings."""
_DOF = re.compile(r"\bat DOF (\d+)\b")


@contextmanager
def mujoco_warnings() -> Iterator[list[str]]:
    """Warnings of everything that MuJoCo does inside, in the order of time, each once."""
    import mujoco

    said: list[str] = []

    def take(text: str) -> None:
        if text not in said:
            said.append(text)

    with _ONE_AT_A_TIME:
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(take)
        try:
            yield said
        finally:
            mujoco.set_mju_user_warning(before)


def with_joint_names(warning: str, joints: Sequence[str]) -> str:
    """MuJoCo's sentence with the name of the joint in place of its number; ``joints`` in MuJoCo's order of degrees of freedom."""

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"at joint '{joints[number]}'" if number < len(joints) else found[0]

    return _DOF.sub(name, warning).strip().rstrip(".")


_NEGATIVE = re.compile(r'<inertial\b[^>]*\b(?:mass|diaginertia)="[^"]*-')
"""An inertial that may have a negative mass or moment; the exponent of a small one looks the same."""


def compile_mjcf(text: str, where: str) -> Any:
    """The ``mujoco.MjModel`` of a vetted MJCF text."""
    import mujoco

    try:
        with mujoco_warnings():  # what is wrong with the model is in the error; the rest is for whoever draws it
            return mujoco.MjModel.from_xml_string(text)
    except (ValueError, mujoco.FatalError) as error:
        raise _not_compiled(error, where) from error


def mujoco_reason(error: Exception) -> str:
    """What MuJoCo says, in one line."""
    return "; ".join(line.strip() for line in str(error).splitlines() if line.strip())


def _not_compiled(error: Exception, where: str) -> InputError:
    return InputError(f"MuJoCo cannot compile {where}: {mujoco_reason(error)}")


StatedInertia: TypeAlias = tuple[float, Array]
"""Mass, and inertia 3x3 about its centre along the axes that the compiled model has in ``body_iquat``, as a text states them."""


def compile_stated(text: str, where: str) -> tuple[Any, dict[int, StatedInertia]]:
    """The model of a vetted MJCF text, and by body number what the text states where MuJoCo takes no such body.

    MuJoCo compiles no inertia that breaks the triangle inequality and no moving body without mass, and takes negative numbers
    of other bodies for zero. Such bodies have other numbers in the model, in place of their own; everything else in it,
    their centres and the axes of their inertias included, is as MuJoCo reads it.
    """
    import mujoco

    refusal = None
    try:
        model = compile_mjcf(text, where)
        if not _NEGATIVE.search(text):
            return model, {}
    except InputError as error:
        refusal = error
    with mujoco_warnings():  # what is wrong with the model is in the error; the rest is for whoever draws it
        try:
            spec = mujoco.MjSpec.from_string(text)
        except (ValueError, mujoco.FatalError) as error:
            raise refusal or _not_compiled(error, where) from None
        refused = _put_stand_ins(spec)
        if not refused:
            if refusal is not None:
                raise refusal
            return model, {}
        total = float(spec.compiler.settotalmass)
        spec.compiler.settotalmass = -1.0
        try:
            model = spec.compile()
        except (ValueError, mujoco.FatalError) as error:
            raise _not_compiled(error, where) from error
    stated = {}
    one_mass, one_inertia = _stand_in(spec.compiler)
    for body, (mass, inertia) in refused:
        # a frame may scale the bodies in it, and does so with the stand-in too
        mass_scale = float(model.body_mass[body.id]) / one_mass
        inertia_scale = float(model.body_inertia[body.id].mean()) / one_inertia
        stated[int(body.id)] = mass * mass_scale, inertia * inertia_scale
    if total > 0.0:
        others = np.delete(model.body_mass, list(stated)).sum()
        whole = float(others) + sum(mass for mass, _ in stated.values())
        if not whole > 0.0:
            raise InputError(f"{where} asks for a total mass of {total:g} kg, but its bodies have {whole:g} kg together")
        model.body_mass *= total / whole
        model.body_inertia *= total / whole
        stated = {b: (mass * total / whole, inertia * total / whole) for b, (mass, inertia) in stated.items()}
    return model, stated


def _stand_in(compiler: Any) -> tuple[float, float]:
    """Mass and moment of inertia that these options leave as they are."""
    return max(1.0, float(compiler.boundmass)), max(1.0, float(compiler.boundinertia))


def _put_stand_ins(spec: Any) -> list[tuple[Any, StatedInertia]]:
    """Give the bodies that MuJoCo refuses another mass and inertia; returns them with their own."""
    import mujoco

    always_geoms = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    refused = []
    for body in spec.bodies[1:]:
        if body.geoms and (always_geoms or not body.explicitinertial):
            continue  # it weighs what its geometry does
        mass, moments, full = float(body.mass), np.array(body.inertia), np.array(body.fullinertia)
        inertia = np.diag(moments)
        if np.isfinite(full[0]):
            xx, yy, zz, xy, xz, yz = full
            inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        clamped = (mass < 0.0 and not spec.compiler.boundmass) or (moments.min() < 0.0 and not spec.compiler.boundinertia)
        if not np.isfinite([mass, *inertia.flat]).all() or (not clamped and _compiles_alone(body, spec.compiler)):
            continue
        if not body.explicitinertial:
            body.ipos = np.zeros(3)
        body.mass, moment = _stand_in(spec.compiler)
        body.inertia, body.fullinertia, body.explicitinertial = np.full(3, moment), [np.nan, *np.zeros(5)], True
        refused.append((body, (mass, inertia)))
    return refused


def _compiles_alone(body: Any, compiler: Any) -> bool:
    """Whether MuJoCo takes the inertia of a body, moving if it has joints, with the bounds of these options."""
    import mujoco

    alone = mujoco.MjSpec()
    for option in ("boundmass", "boundinertia", "balanceinertia"):
        setattr(alone.compiler, option, getattr(compiler, option))
    copy = alone.worldbody.add_body(mass=body.mass, ipos=np.zeros(3), inertia=body.inertia, fullinertia=body.fullinertia)
    copy.explicitinertial = True
    if body.joints:
        copy.add_joint()
    try:
        alone.compile()
    except (ValueError, mujoco.FatalError):
        return False
    return True


def to_mujoco_motion(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """``(qpos, qvel, qacc)`` of samples ``(samples, n)`` for :func:`mujoco_model`."""
    position, velocity, acceleration = (np.array(part, dtype=np.float64, ndmin=2) for part in (q, v, a))
    if robot.joints[0].kind == "floating":
        R, p = _base_pose(robot, position)
        linear, angular = velocity[:, :3].copy(), velocity[:, 3:6]
        position[:, :3] = p
        position[:, 3:7] = [quaternion_from_rotation(one) for one in R]
        velocity[:, :3] = _turn(R, linear)
        acceleration[:, :3] = _turn(R, acceleration[:, :3] + np.cross(angular, linear))
    positions, dofs = mujoco_order(robot)
    return position[:, positions], velocity[:, dofs], acceleration[:, dofs]


def from_mujoco_force(robot: Robot, q: ArrayLike, force: ArrayLike) -> Array:
    """Generalised forces ``(samples, n)`` of MuJoCo in dynid's coordinates, at dynid's positions ``q``."""
    given = np.atleast_2d(np.asarray(force, dtype=np.float64))
    forces = np.empty_like(given)
    forces[:, mujoco_order(robot)[1]] = given
    if robot.joints[0].kind == "floating":
        R, _ = _base_pose(robot, np.atleast_2d(np.asarray(q, dtype=np.float64)))
        forces[:, :3] = _turn(np.swapaxes(R, -1, -2), forces[:, :3])
    return forces


def inverse_dynamics(model: Any, qpos: ArrayLike, qvel: ArrayLike, qacc: ArrayLike) -> Array:
    """``(samples, dof)`` forces of MuJoCo's inverse dynamics, one by one: a reference, not a fast path."""
    import mujoco

    state = mujoco.MjData(model)
    positions, velocities, accelerations = (np.atleast_2d(np.asarray(part)) for part in (qpos, qvel, qacc))
    check_shape("qpos", positions, (None, model.nq))
    check_shape("qvel", velocities, (len(positions), model.nv))
    check_shape("qacc", accelerations, (len(positions), model.nv))
    forces = np.empty((len(positions), model.nv))
    for sample, (state.qpos[:], state.qvel[:], state.qacc[:]) in enumerate(
        zip(positions, velocities, accelerations, strict=True)
    ):
        mujoco.mj_inverse(model, state)
        forces[sample] = state.qfrc_inverse
    return forces


def mujoco_order(robot: Robot) -> tuple[list[int], list[int]]:
    """Position and velocity indices of dynid in MuJoCo's order: MuJoCo numbers bodies depth first."""
    order: list[int] = []
    waiting = [i for i, joint in enumerate(robot.joints) if joint.parent < 0][::-1]
    while waiting:
        body = waiting.pop()
        order.append(body)
        waiting.extend([i for i, joint in enumerate(robot.joints) if joint.parent == body][::-1])
    if robot.joints[0].kind != "floating":
        return order, order
    driven = [i for i in order if i != 0]
    return [*range(7), *(i + 6 for i in driven)], [*range(6), *(i + 5 for i in driven)]


def _base_pose(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Rotation and position of the floating body in the world; ``x y z w`` need not be of length one."""
    R = rotation_from_quaternion(q[:, [6, 3, 4, 5]])
    placement = robot.joints[0].placement
    return placement[:3, :3] @ R, q[:, :3] @ placement[:3, :3].T + placement[:3, 3]


def _turn(R: Array, vectors: Array) -> Array:
    turned: Array = np.einsum("nij,nj->ni", R, vectors)
    return turned


def compiled_file(path: Path) -> tuple[Any, str]:
    """The file as MuJoCo compiles it, and why only without its looks where that is so (meshes that are missing)."""
    import mujoco

    try:
        with mujoco_warnings():
            return mujoco.MjModel.from_xml_path(str(path)), ""
    except (ValueError, mujoco.FatalError) as error:
        problem = mujoco_reason(error)
    description = read_description(path)
    root = whole_mjcf(description)
    cut_to_dynamics(root, path.resolve().parent, description.where)
    return compile_mjcf(serialize_xml(root), description.where), problem


# The text before MuJoCo sees it ---------------------------------------------------------------
def whole_mjcf(description: Description) -> Element:
    """The outermost element of an MJCF file, with the files that it includes in place."""
    where, path, root = description.where, description.path.resolve(), description.root
    if root.tag != "mujoco":
        raise InputError(f"{where} has the outermost element <{root.tag}>, expected <mujoco>")
    _expand_includes(root, path.parent, path.parent, {path}, where)
    return root


def _expand_includes(element: Element, folder: Path, beside: Path, seen: set[Path], where: str) -> None:
    """Put included files in place; only from the main file's folder and below, each once."""
    for index in range(len(element) - 1, -1, -1):
        child = element[index]
        if child.tag != "include":
            _expand_includes(child, folder, beside, seen, where)
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
        _expand_includes(included, folder, file.parent, seen, where)
        element[index : index + 1] = list(included)


def check_limits(root: Element, where: str) -> None:
    """Refuse copies by the million and built-in meshes that would fill the memory."""
    copies = _copies(root, where)
    if copies > MOST_COPIES:
        raise InputError(f"{where} asks <replicate> for {copies:.3g} copies, expected at most {MOST_COPIES}")
    for mesh in root.iter("mesh"):
        name = mesh.get("name", "")
        for text in mesh.get("params", "").split() if "builtin" in mesh.attrib else ():
            if one_number(text, f"params of mesh '{name}' in {where} is") > FINEST_MESH:
                raise InputError(f"mesh '{name}' in {where} has the parameter {text[:20]}, expected at most {FINEST_MESH}")


def _copies(element: Element, where: str) -> float:
    """Elements after expansion of every ``<replicate>``."""
    inner = sum(_copies(child, where) for child in element if next(child.iter("replicate"), None) is not None)
    if element.tag != "replicate":
        return max(inner, 1.0)
    return max(one_number(element.get("count", "1"), f"count of <replicate> in {where} is"), 1.0) * max(inner, 1.0)


def cut_to_dynamics(root: Element, folder: Path, where: str) -> list[str]:
    """Keep what moves and weighs; returns the bodies whose mass comes from meshes."""
    for tag in _NOT_RIGID:
        if next(root.iter(tag), None) is not None:
            raise InputError(f"{where} uses <{tag}>, which is not supported; expected bodies written out")
    _keep(root, _DYNAMIC_SECTIONS)
    sites: set[str] = set()
    for equality in root.findall("equality"):
        for child in equality:
            sites |= {child.get(end, "") for end in ("site1", "site2")} - {""}
        _keep(equality, TIES)
    from_geoms = [c.get("inertiafromgeom", "auto") for c in root.findall("compiler") if "inertiafromgeom" in c.attrib]
    always_geoms = bool(from_geoms) and from_geoms[-1] == "true"
    needs_mesh: list[str] = []
    meshes: set[str] = set()
    for world in root.findall("worldbody"):
        _cut_body(world, False, False, always_geoms, needs_mesh, meshes)
        _cut_looks(world, sites)
    for geom in root.iter("geom"):
        geom.attrib.pop("material", None)
    for actuators in root.findall("actuator"):
        for actuator in list(actuators):
            if "joint" not in actuator.attrib or actuator.tag == "plugin":
                actuators.remove(actuator)
    _cut_assets(root, meshes)
    _fix_mesh_folder(root, folder, where)
    return needs_mesh


def _cut_assets(root: Element, meshes: set[str]) -> None:
    """Keep the meshes that weigh, without their looks."""
    for asset in root.findall("asset"):
        for child in list(asset):
            name = child.get("name") or Path(child.get("file", "")).stem
            if child.tag != "mesh" or name not in meshes:
                asset.remove(child)
            else:
                for attribute in ("material", "plugin"):
                    child.attrib.pop(attribute, None)


def cut_to_shapes(root: Element, folder: Path, where: str) -> Path:
    """Keep bodies, geoms and meshes; returns the folder in which meshes lie."""
    _keep(root, _SHAPE_SECTIONS)
    for asset in root.findall("asset"):
        _keep(asset, _SHAPE_ASSETS)
    for mesh in root.iter("mesh"):
        mesh.attrib.pop("material", None)
        for child in mesh.findall("plugin"):
            mesh.remove(child)
    for world in root.findall("worldbody"):
        _cut_looks(world, ())
    return _fix_mesh_folder(root, folder, where)


def _keep(element: Element, tags: Collection[str]) -> None:
    for child in list(element):
        if child.tag not in tags:
            element.remove(child)


def _cut_looks(element: Element, sites: Collection[str]) -> None:
    """Sites that closed loops name stay, as places and nothing else; other sites are looks like cameras."""
    for child in list(element):
        named = child.tag == "site" and child.get("name", "") in sites
        if child.tag in _LOOKS or (child.tag == "site" and not named):
            element.remove(child)
        elif named:
            for attribute in [name for name in child.attrib if name not in _PLACE]:
                del child.attrib[attribute]
        else:
            _cut_looks(child, sites)


def _cut_body(
    element: Element,
    moving: bool,
    keep_geoms: bool,
    always_geoms: bool,
    needs_mesh: list[str],
    meshes: set[str],
) -> None:
    """Keep the geoms of moving bodies that weigh what their geometry does."""
    for child in list(element):
        if child.tag == "geom" and not keep_geoms:
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


def _has(body: Element, tags: tuple[str, ...]) -> bool:
    """Whether a body itself has such an element, perhaps inside a frame."""
    return any(child.tag in tags or (child.tag in ("frame", "replicate") and _has(child, tags)) for child in body)


def _fix_mesh_folder(root: Element, folder: Path, where: str) -> Path:
    """State where meshes lie, whatever the working folder is, once they are known to lie there; fixed bodies stay bodies.

    Refused are meshes that are no ordinary files, or lie outside the folder of the description and its parent.
    """
    from xml.etree.ElementTree import Element

    stated: dict[str, str] = {}
    for compiler in root.findall("compiler"):
        stated |= compiler.attrib
        for attribute in ("meshdir", "assetdir", "texturedir", "fusestatic"):
            compiler.attrib.pop(attribute, None)
    meshes, home = folder / stated.get("meshdir", stated.get("assetdir", "")), home_of(folder)
    for mesh in root.iter("mesh"):
        if "file" in mesh.attrib:
            file = (meshes / mesh.attrib["file"]).resolve()
            if not file.is_relative_to(home):
                raise InputError(f"{where} asks for the mesh '{file}', expected one below '{home}'")
            if file.exists() and not file.is_file():
                raise InputError(f"mesh '{file}' of {where} is not an ordinary file")
    root.append(Element("compiler", meshdir=str(meshes), fusestatic="false"))
    return meshes
