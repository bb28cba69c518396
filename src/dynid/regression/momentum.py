"""The momentum form of the dynamics: ``Y phi = d/dt (A(q, v) phi) - B(q, v) phi``.

``A phi`` is the generalised momentum ``dL/dv`` and ``B phi`` is ``dL/dq`` of the Lagrangian ``L = T - U``. A row filter that
differentiates its kernel instead of the signal uses ``A`` and ``B``, and no acceleration. A closed robot has ``A = G^T A_tree``
and ``B = G^T B_tree + (dG/dt)^T A_tree``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, frozen_view
from dynid.errors import InputError
from dynid.regression.closed_motion import gain_rate, tree_motion
from dynid.regression.torque import absent_columns, checked_motion, compiled, tree_arrays
from dynid.robot.model import Robot


def momentum_regressor(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """``A`` and ``B`` of ``tau = d(A phi)/dt + B phi``, ``(samples, torques, inertial parameters)`` each.

    Args:
        robot: its rigid bodies are used, its effects are not.
        q: positions, ``(samples, joints)``.
        v: velocities, ``(samples, joints)``.

    Examples:
        >>> import dynid, numpy as np
        >>> A, B = dynid.momentum_regressor(dynid.demo_robot(), np.zeros((3, 7)), np.ones((3, 7)))
        >>> A.shape, B.shape
        ((3, 7, 70), (3, 7, 70))
    """
    from dynid.regression import kernel

    if robot.floating:
        raise InputError(f"robot '{robot.name}' has a floating base, whose velocity is no derivative of its position")
    q, v, _ = checked_motion(robot, q, v, v)
    tree = tree_motion(robot, q, v, np.zeros_like(v)) if robot.loops else None
    whole = (q, v) if tree is None else (frozen_view(tree.position), frozen_view(tree.velocity))
    momentum = np.zeros((len(q), whole[1].shape[1], robot.parameters.n_inertial))
    drift = np.zeros_like(momentum)
    compiled(kernel.momentum_rows)(*whole, robot.gravity, tree_arrays(robot), momentum, drift)
    for rows in (momentum, drift):
        rows[:, :, absent_columns(robot)] = 0.0
    if tree is None:
        return momentum, drift
    # d/dt (G^T A) - (G^T B + dG/dt^T A) = G^T (dA/dt - B)
    across, rate = tree.G.swapaxes(1, 2), gain_rate(robot, tree.position, v).swapaxes(1, 2)
    return np.matmul(across, momentum), np.matmul(across, drift) + np.matmul(rate, momentum)
