"""Pinocchio and MuJoCo as oracles of ``M(q)``, ``g(q)`` and ``c(q, v)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.oracle import Oracle
from dynid.model.robot import Robot


def pinocchio_oracle(robot: Robot, model: Any = None) -> Oracle:
    """Pinocchio as oracle: a model of its own with the robot's joints in their order, or the robot rebuilt in it.

    Rotor inertia is taken off the diagonal of ``M``.
    """
    import pinocchio as pin

    from dynid.dynamics import pinocchio_model as adapter

    known = adapter.pinocchio_model(robot, armature=False) if model is None else model
    if known.nv != robot.n_dof:
        raise InputError(f"the Pinocchio model has {known.nv} degrees of freedom, robot '{robot.name}' has {robot.n_dof}")
    working, still = known.createData(), np.zeros(known.nv)

    def at(q: Array) -> Array:
        return adapter.to_pinocchio_position(robot, q) if known.nq != robot.n_dof else q

    def inertia(q: Array) -> Array:
        # columns of M by the recursive algorithm, which takes any numbering of a tree
        base = pin.rnea(known, working, at(q), still, still).copy()
        columns = [pin.rnea(known, working, at(q), still, unit) - base for unit in np.eye(known.nv)]
        M = np.array(columns).T - np.diag(known.armature)
        return np.asarray(0.5 * (M + M.T))

    def gravity(q: Array) -> Array:
        return np.array(pin.rnea(known, working, at(q), still, still))

    def coriolis(q: Array, v: Array) -> Array:
        return np.asarray(pin.rnea(known, working, at(q), v, still) - gravity(q))

    return Oracle("pinocchio", inertia, gravity, coriolis)


def mujoco_oracle(robot: Robot, model: Any = None) -> Oracle:
    """MuJoCo as oracle: a model of its own with the robot's joints, by name, or the robot rebuilt in it.

    Rotor inertia is taken off the diagonal of ``M``; damping and dry friction do not enter.
    """
    import mujoco

    from dynid.io.robots.mjcf_new import mujoco_model
    from dynid.io.robots.mujoco_model import mujoco_warnings

    known = mujoco_model(robot, armature=False, friction=False, limits=False) if model is None else model
    if known.nv != robot.n_dof:
        raise InputError(f"the MuJoCo model has {known.nv} degrees of freedom, robot '{robot.name}' has {robot.n_dof}")
    names = [mujoco.mj_id2name(known, mujoco.mjtObj.mjOBJ_JOINT, i) for i in range(known.njnt)]
    for name in robot.joint_names:
        if name not in names:
            raise UnknownNameError("joint", name, names, "the MuJoCo model")
    place = np.array([known.jnt_dofadr[names.index(name)] for name in robot.joint_names])
    where = np.array([known.jnt_qposadr[names.index(name)] for name in robot.joint_names])
    state = mujoco.MjData(known)

    def bias(q: Array, v: Array) -> Array:
        state.qpos[where], state.qvel[place] = q, v
        with mujoco_warnings() as said:
            mujoco.mj_forward(known, state)
        if said:
            raise InputError(f"MuJoCo does not answer for robot '{robot.name}' at q = {q.tolist()}: {said[0].strip()}")
        return np.array(state.qfrc_bias[place])

    def inertia(q: Array) -> Array:
        bias(q, np.zeros(known.nv))
        M = np.zeros((known.nv, known.nv))
        # M x for unit vectors: the way to the dense matrix that does not depend on how it is stored
        for d in range(known.nv):
            mujoco.mj_mulM(known, state, M[d], np.eye(known.nv)[d])
        return np.asarray((M - np.diag(known.dof_armature))[np.ix_(place, place)])

    def gravity(q: Array) -> Array:
        return bias(q, np.zeros(known.nv))

    def coriolis(q: Array, v: Array) -> Array:
        return bias(q, v) - gravity(q)

    return Oracle("mujoco", inertia, gravity, coriolis)
