"""What a compiled MuJoCo model says of its joints, their actuators and its gravity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from dynid.arrays import Array, BoolArray

MujocoJoint: TypeAlias = Literal["free", "ball", "slide", "hinge"]


def joint_type(model: Any, j: int) -> MujocoJoint:
    """The type of a joint in MJCF's own word."""
    import mujoco

    types: dict[int, MujocoJoint] = {
        int(mujoco.mjtJoint.mjJNT_FREE): "free",
        int(mujoco.mjtJoint.mjJNT_BALL): "ball",
        int(mujoco.mjtJoint.mjJNT_SLIDE): "slide",
        int(mujoco.mjtJoint.mjJNT_HINGE): "hinge",
    }
    return types[int(model.jnt_type[j])]


def actuator_shares(model: Any, j: int) -> dict[str, float]:
    """Rotor inertia and damping that a joint has from its actuators, in the joint's units: times the gear squared."""
    on_joint = _on_joint(model, j)
    gear = model.actuator_gear[on_joint, 0] ** 2
    return {
        "armature": float(gear @ model.actuator_armature[on_joint]),
        "damping": float(gear @ model.actuator_damping[on_joint]),
    }


def torque_limit(model: Any, j: int) -> float:
    """The torque that a joint's actuators and its own limit allow in both directions, infinite where nothing limits it."""
    limit = sum(
        abs(float(model.actuator_gear[i, 0])) * _force_limit(model, int(i)) for i in np.flatnonzero(_on_joint(model, j))
    )
    if model.jnt_actfrclimited[j]:
        limit = min(limit or np.inf, _symmetric(model.jnt_actfrcrange[j]))
    return limit or np.inf


def model_gravity(model: Any) -> Array | None:
    """Gravity of the model; None where it is switched off."""
    import mujoco

    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY:
        return None
    return np.array(model.opt.gravity)


def without_outer_forces(model: Any) -> None:
    """Switch off all but rigid bodies, joint friction, rotors and gravity: what an identified model has."""
    import mujoco

    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_SPRING | off.mjDSBL_CONTACT
    model.opt.density = model.opt.viscosity = 0.0
    model.body_gravcomp[:] = 0.0


def _on_joint(model: Any, j: int) -> BoolArray:
    import mujoco

    return np.asarray((model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT) & (model.actuator_trnid[:, 0] == j))


def _force_limit(model: Any, i: int) -> float:
    """Smallest of an actuator's two force limits: its force range, or a plain motor's control range."""
    import mujoco

    limit = np.inf
    if model.actuator_forcelimited[i]:
        limit = _symmetric(model.actuator_forcerange[i])
    plain = (
        model.actuator_gaintype[i] == mujoco.mjtGain.mjGAIN_FIXED
        and model.actuator_biastype[i] == mujoco.mjtBias.mjBIAS_NONE
    )
    if plain and model.actuator_ctrllimited[i]:
        gain = abs(float(model.actuator_gainprm[i, 0]))
        limit = min(limit, gain * _symmetric(model.actuator_ctrlrange[i]))
    return limit


def _symmetric(limits: Array) -> float:
    """The bound that holds in both directions, or the only one of an actuator that pulls one way."""
    lowest, highest = sorted(np.abs(limits).tolist())
    return float(lowest or highest)


@dataclass(frozen=True, eq=False)
class Tie:
    """A ``connect`` or ``weld`` of a compiled model: its name, the two bodies with a frame on each, whether turns are tied too."""

    name: str
    bodies: tuple[int, int]
    placements: tuple[Array, Array]
    rigid: bool


def ties(model: Any) -> list[Tie]:
    """The active ``connect`` and ``weld`` constraints between bodies or sites."""
    import mujoco

    found = []
    for k in range(model.neq):
        kind = int(model.eq_type[k])
        if kind not in (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)) or not model.eq_active0[k]:
            continue
        rigid = kind == int(mujoco.mjtEq.mjEQ_WELD)
        ends = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        poses = np.eye(4), np.eye(4)
        if int(model.eq_objtype[k]) == int(mujoco.mjtObj.mjOBJ_SITE):
            poses = (
                _placed(model.site_pos[ends[0]], model.site_quat[ends[0]]),
                _placed(model.site_pos[ends[1]], model.site_quat[ends[1]]),
            )
            ends = int(model.site_bodyid[ends[0]]), int(model.site_bodyid[ends[1]])
        elif rigid:
            poses = _placed(model.eq_data[k, 3:6], model.eq_data[k, 6:10]), np.eye(4)
        else:
            straight = np.array([1.0, 0.0, 0.0, 0.0])
            poses = _placed(model.eq_data[k, :3], straight), _placed(model.eq_data[k, 3:6], straight)
        found.append(Tie(model.equality(k).name or f"equality{k + 1}", ends, poses, rigid))
    return found


@dataclass(frozen=True)
class Follower:
    """An ``equality joint`` of a compiled model: ``q = sum_k c_k q_leader^k``, in positions as the model counts them."""

    name: str
    joint: int
    leader: int
    """-1 where the joint is held at ``c_0``."""
    coefficients: tuple[float, ...]


def followers(model: Any) -> list[Follower]:
    """The active ``joint`` constraints between joints of one degree of freedom.

    MuJoCo states them about the reference positions, ``q - q_ref = sum_k c_k (q_leader - q_leader_ref)^k``.
    """
    import mujoco

    found = []
    for k in range(model.neq):
        if int(model.eq_type[k]) != int(mujoco.mjtEq.mjEQ_JOINT) or not model.eq_active0[k]:
            continue
        joint, leader = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        here = float(model.qpos0[model.jnt_qposadr[joint]])
        there = float(model.qpos0[model.jnt_qposadr[leader]]) if leader >= 0 else 0.0
        about = np.polynomial.Polynomial(model.eq_data[k, :5] if leader >= 0 else model.eq_data[k, :1])
        plain = about(np.polynomial.Polynomial([-there, 1.0])) + here
        name = model.equality(k).name or f"equality{k + 1}"
        found.append(Follower(name, joint, leader, tuple(plain.coef.tolist())))
    return found


def driven_by_actuators(model: Any) -> list[int]:
    """Joints that an actuator acts on."""
    return [j for j in range(model.njnt) if _on_joint(model, j).any()]


def _placed(position: Array, quaternion: Array) -> Array:
    import mujoco

    pose, turn = np.eye(4), np.empty(9)
    mujoco.mju_quat2Mat(turn, np.asarray(quaternion, dtype=np.float64))
    pose[:3, :3], pose[:3, 3] = turn.reshape(3, 3), position
    return pose
