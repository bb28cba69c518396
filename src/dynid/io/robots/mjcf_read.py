"""Robots written as MJCF.

The text and what it includes are vetted, cut to what dynamics needs and compiled by MuJoCo. Body frames are the MJCF body frames; a
joint's axis may pass beside them. Geometry counts only where a moving body has no ``<inertial>``, so a missing mesh stops nothing
unless that body's mass would have come from it. Bodies without joints are merged and remembered; several joints on one body become a
chain with massless links. Inertias that MuJoCo does not take, because no physical body has them, are read as the text states them and
noted.

Closures are ``connect`` and ``weld`` between bodies or sites, and ``joint``, by which one joint follows another. Driven joints are
those with actuators that follow no other joint, or deduced where there are none; where joints only follow others, all that do not.
The assembly mode is that of the first keyframe, or of the file's own reference pose. Equalities of tendons are not modelled, nor are
loops of a robot on a floating base.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.io.robots.closures import deduced_joints, frame_on, free_of_ties, with_loops
from dynid.io.robots.description import DescribedJoint, Description, assemble_robot, limit_notes
from dynid.io.robots.mujoco_model import TIES, check_limits, compile_stated, cut_to_dynamics, whole_mjcf
from dynid.io.robots.xml import read_numbers, serialize_xml
from dynid.model.inertia import phi_from_mass_com_inertia, skew
from dynid.model.joint import Joint, JointKind
from dynid.model.loops import COMPONENTS, Closure, Frame, JointTie, Loop, Loops
from dynid.model.poses import make_pose, rotation_from_quaternion
from dynid.model.robot import Robot

_IGNORED = {
    "tendon": "tendons",
    "contact": "contacts",
    "deformable": "deformable bodies",
}


def robot_from_mjcf(description: Description) -> Robot:
    """The robot of an MJCF file that was read, with no effects."""
    return compiled_robot(description)[0]


def compiled_robot(description: Description) -> tuple[Robot, Any, frozenset[str]]:
    """The robot of an MJCF file that was read, MuJoCo's model of it, and bodies whose inertia MuJoCo does not compile as it is stated.

    The model is without looks; bodies that MuJoCo refuses have stand-ins for their inertias in it.
    """
    where, root = description.where, whole_mjcf(description)
    notes = [f"not modelled: {what}" for tag, what in _IGNORED.items() if any(len(e) for e in root.findall(tag))]
    if any(child.tag not in TIES for equality in root.findall("equality") for child in equality):
        notes.append("not modelled: equality constraints of tendons and others that are none of joints, bodies and sites")
    check_limits(root, where)
    first_key = next(root.iterfind("keyframe/key"), None)
    key = [] if first_key is None else read_numbers(first_key.get("qpos", ""))
    needs_mesh = cut_to_dynamics(root, description.path.resolve().parent, where)
    try:
        model, stated = compile_stated(serialize_xml(root), where)
    except InputError as error:
        if needs_mesh:
            raise InputError(
                f"{error} (bodies without <inertial> weigh what their meshes do: {', '.join(needs_mesh[:5])})"
            ) from error
        raise
    names = [model.body(b).name or f"body{b}" for b in range(model.nbody)]
    # Ten parameters of every body but the world, by its name: as the file states them where MuJoCo has other ones.
    phi: dict[str, Array] = {}
    for b in range(1, model.nbody):
        mass, own = stated.get(b, (float(model.body_mass[b]), np.diag(model.body_inertia[b])))
        axes = rotation_from_quaternion(model.body_iquat[b])
        if names[b] in phi:
            raise InputError(
                f"body name '{names[b]}' appears twice in {where}: a body without a name is called by its number"
            )
        phi[names[b]] = phi_from_mass_com_inertia(mass, np.array(model.body_ipos[b]), axes @ own @ axes.T)
    massless = [names[b] for b in stated if not phi[names[b]].any()]
    impossible = [names[b] for b in stated if names[b] not in massless]
    if impossible:
        notes.append(f"inertias that MuJoCo does not take are read as they are stated: {', '.join(impossible)}")
    if massless:
        notes.append(f"bodies without mass, which MuJoCo does not compile where they move: {', '.join(massless)}")
    joints = list(_joints(model, names, notes, where))
    phi |= {joint.child: np.zeros(10) for joint in joints if joint.child not in phi}
    robot = _robot(root.get("model") or description.path.stem, model, joints, phi, description, notes)
    return _closed(robot, model, names, key, where), model, frozenset(names[b] for b in stated)


def _robot(
    name: str,
    model: Any,
    joints: list[DescribedJoint],
    phi: dict[str, Array],
    description: Description,
    notes: list[str],
) -> Robot:
    """The tree of the model, with everything that is to be said of the file."""
    import mujoco

    weightless = bool(model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY)
    gravity = np.zeros(3) if weightless else np.array(model.opt.gravity)
    robot = assemble_robot(name, joints, phi, description.source("mjcf"), description.where, gravity)
    notes += [*limit_notes(robot.joints, ("position", "torque")), "no velocity limit: MJCF has none"]
    if np.any(model.body_gravcomp):
        notes.append("not modelled: gravity compensation of bodies (gravcomp)")
    if weightless:
        notes.append("gravity is switched off in the file")
    if robot.floating and model.neq:
        notes.append("not modelled: closed loops (equality) of a robot on a floating base")
    return robot.with_notes(notes)


# Joints ---------------------------------------------------------------------------------------
def _joints(model: Any, names: list[str], notes: list[str], where: str) -> Iterator[DescribedJoint]:
    """What carries every body: a fixed joint, its joint, or a chain of joints with massless links between them."""
    for b in range(1, model.nbody):
        above = int(model.body_parentid[b])
        parent = names[above] if above else None
        placement = make_pose(rotation_from_quaternion(model.body_quat[b]), model.body_pos[b])
        first, count = int(model.body_jntadr[b]), int(model.body_jntnum[b])
        if not count:
            yield DescribedJoint("", "fixed", parent, names[b], placement)
        for j in range(first, first + count):
            name = model.joint(j).name or f"joint{j + 1}"
            child = names[b] if j == first + count - 1 else f"{names[b]}.{name}"
            yield _joint(model, j, name, parent, child, placement, notes, where)
            parent, placement = child, np.eye(4)


def _joint(
    model: Any, j: int, name: str, parent: str | None, child: str, placement: Array, notes: list[str], where: str
) -> DescribedJoint:
    import mujoco

    types, kind = mujoco.mjtJoint, int(model.jnt_type[j])
    if kind == types.mjJNT_BALL:
        raise InputError(
            f"joint '{name}' in {where} is a ball joint, expected hinge, slide or a free joint; "
            "three hinges on the body would do"
        )
    if kind == types.mjJNT_FREE:
        # its position is the pose in the world, whatever the body's own placement
        return DescribedJoint(name, "floating", parent, child, np.eye(4))
    axis, limited = np.array(model.jnt_axis[j]), bool(model.jnt_limited[j])
    axis /= np.linalg.norm(axis)
    ours: JointKind
    if kind == types.mjJNT_SLIDE:
        ours, screw = "prismatic", np.concatenate([axis, np.zeros(3)])
    else:
        ours, screw = "revolute" if limited else "continuous", np.concatenate([skew(model.jnt_pos[j]) @ axis, axis])
    dof = int(model.jnt_dofadr[j])
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
    limits = dict(zip(("q_min", "q_max"), model.jnt_range[j].tolist(), strict=True)) if limited else {}
    reference = float(model.qpos0[model.jnt_qposadr[j]])
    if reference != 0.0:  # MuJoCo draws the body where q = ref: P exp([S] (q - ref))
        placement = Joint(name, ours, -1, placement, screw).pose(-reference)
    return DescribedJoint(
        name,
        ours,
        parent,
        child,
        placement,
        screw,
        limits | {"tau_max": _torque_limit(model, j)},
        {symbol: value for symbol, value in nominal.items() if value != 0.0},
    )


def actuator_shares(model: Any, j: int) -> dict[str, float]:
    """Rotor inertia and damping that a joint has from its actuators, in the joint's units: times the gear squared."""
    on_joint = _on_joint(model, j)
    gear = model.actuator_gear[on_joint, 0] ** 2
    return {
        "armature": float(gear @ model.actuator_armature[on_joint]),
        "damping": float(gear @ model.actuator_damping[on_joint]),
    }


def _on_joint(model: Any, j: int) -> BoolArray:
    import mujoco

    return np.asarray((model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT) & (model.actuator_trnid[:, 0] == j))


def _torque_limit(model: Any, j: int) -> float:
    """The torque that a joint's actuators and its own limit allow in both directions, infinite where nothing limits it.

    An actuator is limited by its force range, a plain motor also by its control range.
    """
    import mujoco

    total = 0.0
    for i in np.flatnonzero(_on_joint(model, j)):
        limit = _symmetric(model.actuator_forcerange[i]) if model.actuator_forcelimited[i] else np.inf
        fixed_gain = model.actuator_gaintype[i] == mujoco.mjtGain.mjGAIN_FIXED
        plain = fixed_gain and model.actuator_biastype[i] == mujoco.mjtBias.mjBIAS_NONE
        if plain and model.actuator_ctrllimited[i]:
            limit = min(limit, abs(float(model.actuator_gainprm[i, 0])) * _symmetric(model.actuator_ctrlrange[i]))
        total += abs(float(model.actuator_gear[i, 0])) * limit
    if model.jnt_actfrclimited[j]:
        total = min(total or np.inf, _symmetric(model.jnt_actfrcrange[j]))
    return total or np.inf


def _symmetric(limits: Array) -> float:
    """The bound that holds in both directions, or the only one of an actuator that pulls one way."""
    lowest, highest = sorted(np.abs(limits).tolist())
    return float(lowest or highest)


# Closures -------------------------------------------------------------------------------------
def _closed(robot: Robot, model: Any, names: list[str], key: list[float], where: str) -> Robot:
    """The robot with the closures of its file, if it has any and stands on a fixed base."""
    if robot.floating:
        return robot
    ties, loops = _closures(robot, model, names, where)
    closures: list[Closure] = [*ties, *loops]
    if not closures:
        return robot
    start = np.array(key) if len(key) == model.nq else np.array(model.qpos0)
    actuated: tuple[str, ...] = ()
    if loops:
        driven = [robot.joints[j].name for j in range(model.njnt) if _on_joint(model, j).any()]
        free = free_of_ties(robot.joints, ties)
        actuated = tuple(name for name in driven if name in free)
    actuated = actuated or deduced_joints(robot.joints, closures, start, where)
    return with_loops(robot, Loops(tuple(closures), actuated, (), start))


def _closures(robot: Robot, model: Any, names: list[str], where: str) -> tuple[list[JointTie], list[Loop]]:
    """The active ``joint`` constraints, and ``connect`` and ``weld`` between bodies or sites that were not merged into one link.

    MuJoCo states those of joints about the reference positions, ``q - q_ref = sum_k c_k (q_leader - q_leader_ref)^k``.
    """
    import mujoco

    ties: list[JointTie] = []
    loops: list[Loop] = []
    for k in np.flatnonzero(model.eq_active0).tolist():
        kind, data = mujoco.mjtEq(int(model.eq_type[k])), model.eq_data[k]
        ends, name = [int(model.eq_obj1id[k]), int(model.eq_obj2id[k])], model.equality(k).name or f"equality{k + 1}"
        if kind == mujoco.mjtEq.mjEQ_JOINT:
            joint, leader = ends
            here = float(model.qpos0[model.jnt_qposadr[joint]])
            there = float(model.qpos0[model.jnt_qposadr[leader]]) if leader >= 0 else 0.0
            about = np.polynomial.Polynomial(data[:5] if leader >= 0 else data[:1])
            plain = about(np.polynomial.Polynomial([-there, 1.0])) + here
            ties.append(JointTie(name, joint, leader, tuple(plain.coef.tolist())))
        if kind not in (mujoco.mjtEq.mjEQ_WELD, mujoco.mjtEq.mjEQ_CONNECT):
            continue
        rigid = kind == mujoco.mjtEq.mjEQ_WELD
        if int(model.eq_objtype[k]) == int(mujoco.mjtObj.mjOBJ_SITE):
            poses = [make_pose(rotation_from_quaternion(model.site_quat[s]), model.site_pos[s]) for s in ends]
            ends = [int(model.site_bodyid[s]) for s in ends]
        elif rigid:
            poses = [make_pose(rotation_from_quaternion(data[6:10]), data[3:6]), np.eye(4)]
        else:
            poses = [make_pose(None, data[:3]), make_pose(None, data[3:6])]
        frames = []
        for b, pose in zip(ends, poses, strict=True):
            body, placement = frame_on(robot, names[b], where) if b else (-1, np.eye(4))
            frames.append(Frame(body, placement @ pose))
        if frames[0].body != frames[1].body:
            loops.append(Loop(name, frames[0], frames[1], COMPONENTS if rigid else COMPONENTS[:3]))
    return ties, loops
