"""A controller joint by joint, for tests that need another than computed torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.forward_dynamics import forward_dynamics
from dynid.dynamics.simulate import ControlLaw, Controller
from dynid.model.robot import Robot


@dataclass(frozen=True)
class GravityPD(Controller):
    """``tau = kp (q_ref - q) + kd (v_ref - v) + g(q)``, with ``kp_j = w^2 M_jj`` and ``kd_j = 2 w M_jj`` at the middle of the motion."""

    bandwidth_hz: float = 4.0

    def law(self, robot: Robot, middle: Array, rng: np.random.Generator) -> ControlLaw:
        dynamics = forward_dynamics(robot)
        inertia = np.diag(np.linalg.inv(dynamics.mobility(middle)))
        w = 2.0 * np.pi * self.bandwidth_hz

        def law(q: Array, v: Array, q_ref: Array, v_ref: Array, a_ref: Array) -> Array:
            return dynamics.gravity(q) + w * w * inertia * (q_ref - q) + 2.0 * w * inertia * (v_ref - v)

        return law
