"""The momentum form of the dynamics: ``Y phi = d/dt (A(q, v) phi) - B(q, v) phi``.

``A phi`` is the generalised momentum ``dL/dv`` and ``B phi`` is ``dL/dq`` of the Lagrangian ``L = T - U``. A row filter that
differentiates its kernel instead of the signal uses ``A`` and ``B``, and no acceleration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.regression.torque import checked_motion, compiled, tree_arrays
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
    momentum = np.zeros((len(q), robot.n_dof, robot.parameters.n_inertial))
    drift = np.zeros_like(momentum)
    compiled(kernel.momentum_rows)(q, v, robot.gravity, tree_arrays(robot), momentum, drift)
    return momentum, drift
