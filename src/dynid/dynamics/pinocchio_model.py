"""Pinocchio: any robot can be rebuilt in it as an independent reference.

A Pinocchio joint turns about an axis through its own frame's origin; a dynid body frame may lie beside the
axis. With ``A`` the pose of the Pinocchio joint frame in the body frame (its origin on the axis),

    P exp([S] q) = P A exp([S_A] q) A^-1,        phi_joint = X(A^-1) phi_body

A continuous joint's position is one angle in dynid and ``(cos, sin)`` in Pinocchio; velocities are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_shape
from dynid.model.joint import Joint, axis_point, pitch
from dynid.model.poses import frame_with_z, inverse_pose
from dynid.model.robot import Robot, effect_value, mass_parts


def pinocchio_model(robot: Robot, *, armature: bool = True) -> Any:
    """The same rigid robot as a ``pinocchio.Model``; ``armature`` also hands over the rotor inertias.

    Joints keep the robot's numbers. Recursions over parents (``rnea``, ``aba``, regressors) take any order; Pinocchio's ``crba``
    and ``computeMinverse`` are right only where every subtree is numbered in one run, as trees read from URDF and MJCF are.
    """
    import pinocchio as pin

    model = pin.Model()
    model.name = robot.name
    model.gravity.linear = np.array(robot.gravity)
    axes = [_joint_frame(joint) for joint in robot.joints]
    for i, joint in enumerate(robot.joints):
        above = inverse_pose(axes[joint.parent]) if joint.parent >= 0 else np.eye(4)
        placement = pin.SE3(above @ joint.placement @ axes[i])
        identifier = model.addJoint(joint.parent + 1, _joint_model(joint), placement, joint.name, *_limits(joint))
        body_in_joint = pin.SE3(inverse_pose(axes[i]))
        model.addJointFrame(identifier)
        model.addFrame(pin.Frame(robot.links[i], identifier, body_in_joint, pin.FrameType.BODY))
        if armature and joint.kind != "floating":
            model.armature[model.idx_vs[identifier]] = effect_value(robot, "Ia", i)
    for link in robot.merged:
        above = inverse_pose(axes[link.body]) if link.body >= 0 else np.eye(4)
        model.addFrame(pin.Frame(link.name, link.body + 1, pin.SE3(above @ link.placement), pin.FrameType.BODY))
    for i in range(len(robot.joints)):
        # set, and last: what Pinocchio adds up for frames divides by a mass that it takes to be positive
        model.inertias[i + 1] = pin.SE3(inverse_pose(axes[i])).act(_inertia(robot, i))
    return model


def to_pinocchio_position(robot: Robot, q: ArrayLike) -> Array:
    """Positions ``(..., n)`` as Pinocchio wants them: ``(cos, sin)`` for continuous joints."""
    position = np.asarray(q, dtype=np.float64)
    widths = [7 if joint.kind == "floating" else 1 for joint in robot.joints]
    check_shape("position", position, (*(None,) * (position.ndim - 1), sum(widths)))
    parts = zip(robot.joints, np.split(position, np.cumsum(widths)[:-1], axis=-1), strict=True)
    turned = ([np.cos(part), np.sin(part)] if _is_unbounded(joint) else [part] for joint, part in parts)
    return np.concatenate([one for part in turned for one in part], axis=-1)


def inverse_dynamics(model: Any, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """``(samples, dof)`` torques of Pinocchio's recursion, sample by sample: a reference, not a fast path."""
    import pinocchio as pin

    working = model.createData()
    samples = zip(np.atleast_2d(q), np.atleast_2d(v), np.atleast_2d(a), strict=True)
    return np.array([pin.rnea(model, working, *sample) for sample in samples])


def _is_unbounded(joint: Joint) -> bool:
    return joint.kind == "continuous" and pitch(joint) == 0.0


def _joint_model(joint: Joint) -> Any:
    import pinocchio as pin

    if joint.kind == "floating":
        return pin.JointModelFreeFlyer()
    if joint.kind == "prismatic":
        return pin.JointModelPrismaticUnaligned(np.array(joint.screw[:3]))
    axis = np.array(joint.screw[3:])
    if pitch(joint) != 0.0:
        return pin.JointModelHelicalUnaligned(axis, pitch(joint))
    if joint.kind == "continuous":
        return pin.JointModelRUBZ()
    return pin.JointModelRevoluteUnaligned(axis)


def _limits(joint: Joint) -> tuple[Array, Array, Array, Array]:
    """Effort, velocity, lowest and highest position."""
    if joint.kind == "floating":
        return np.full(6, np.inf), np.full(6, np.inf), np.full(7, -np.inf), np.full(7, np.inf)
    if _is_unbounded(joint):
        lowest, highest = np.full(2, -1.01), np.full(2, 1.01)
    else:
        lowest, highest = np.array([joint.q_min]), np.array([joint.q_max])
    return np.array([joint.tau_max]), np.array([joint.dq_max]), lowest, highest


def _inertia(robot: Robot, body: int) -> Any:
    import pinocchio as pin

    mass, _, tensor = mass_parts(robot, body)
    if mass == 0.0:
        massless = pin.Inertia.Zero()
        massless.inertia = tensor
        return massless
    # unlike the constructor this one also takes bodies that are not physically consistent
    return pin.Inertia.FromDynamicParameters(np.array(robot.parameters.inertials[body]))


def _joint_frame(joint: Joint) -> Array:
    """Pose of the Pinocchio joint frame in the body frame; its z axis is that of a continuous joint."""
    pose = np.eye(4)
    pose[:3, 3] = axis_point(joint)
    if _is_unbounded(joint):
        pose[:3, :3] = frame_with_z(joint.screw[3:])
    return pose
