"""What a compiled MuJoCo model says of its joints, their actuators and its gravity."""

from __future__ import annotations

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
