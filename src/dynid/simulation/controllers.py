"""Tracking controllers: from encoder readings and a reference to a torque, with a model of the robot that is wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.robot.model import Robot
from dynid.simulation.friction import friction_law
from dynid.simulation.stepping import gravity_law, mobility_law, torque_law

ControlLaw: TypeAlias = Callable[[Array, Array, Array, Array, Array], Array]
"""``tau = law(q, v, q_ref, v_ref, a_ref)``."""


class Controller(ABC):
    """Options of a tracking controller."""

    @abstractmethod
    def law(self, robot: Robot, middle: Array, rng: np.random.Generator) -> ControlLaw:
        """The law for this robot, which moves about the pose ``middle``."""


@dataclass(frozen=True)
class ComputedTorque(Controller):
    """``tau = ID(q, v, a_ref + 2 z w (v_ref - v) + w^2 (q_ref - q)) + s f(v_ref)`` with a model that is wrong.

    ``ID`` has every link's parameters and every rotor inertia off by up to ``model_error`` (relative, at random); ``s
    = friction_compensation`` is the share of true friction that is fed forward. ``w = 2 pi bandwidth_hz``, ``z =
    damping``.
    """

    bandwidth_hz: float = 4.0
    damping: float = 1.0
    model_error: float = 0.1
    friction_compensation: float = 0.7

    def __post_init__(self) -> None:
        _check_gains(self.bandwidth_hz, self.damping, self.model_error)

    def law(self, robot: Robot, middle: Array, rng: np.random.Generator) -> ControlLaw:
        model_torque = torque_law(_misjudged(robot, self.model_error, rng))
        friction = friction_law(robot)
        w = 2.0 * np.pi * self.bandwidth_hz
        stiffness, damping, share = w * w, 2.0 * self.damping * w, self.friction_compensation

        def law(q: Array, v: Array, q_ref: Array, v_ref: Array, a_ref: Array) -> Array:
            wanted = a_ref + damping * (v_ref - v) + stiffness * (q_ref - q)
            tau = model_torque(q, v, wanted)
            return tau + share * friction(q, v_ref, tau)

        return law


@dataclass(frozen=True)
class GravityPD(Controller):
    """``tau = kp (q_ref - q) + kd (v_ref - v) + g(q)``: joint by joint, with a gravity model that is wrong.

    ``kp_j = w^2 M_jj`` and ``kd_j = 2 z w M_jj`` at the middle of the motion.
    """

    bandwidth_hz: float = 4.0
    damping: float = 1.0
    model_error: float = 0.1

    def __post_init__(self) -> None:
        _check_gains(self.bandwidth_hz, self.damping, self.model_error)

    def law(self, robot: Robot, middle: Array, rng: np.random.Generator) -> ControlLaw:
        model = _misjudged(robot, self.model_error, rng)
        gravity = gravity_law(model)
        inertia = np.diag(np.linalg.inv(mobility_law(model)(middle)))
        w = 2.0 * np.pi * self.bandwidth_hz
        kp, kd = w * w * inertia, 2.0 * self.damping * w * inertia

        def law(q: Array, v: Array, q_ref: Array, v_ref: Array, a_ref: Array) -> Array:
            return gravity(q) + kp * (q_ref - q) + kd * (v_ref - v)

        return law


def _check_gains(bandwidth_hz: float, damping: float, model_error: float) -> None:
    if not (np.isfinite(bandwidth_hz) and bandwidth_hz > 0.0 and np.isfinite(damping) and damping > 0.0):
        raise InputError(f"controller has bandwidth {bandwidth_hz:g} Hz and damping {damping:g}, expected positive numbers")
    if not 0.0 <= model_error < 1.0:
        raise InputError(f"model error of the controller is {model_error:g}, expected a number in [0, 1)")


def _misjudged(robot: Robot, error: float, rng: np.random.Generator) -> Robot:
    """The robot as its controller believes it to be; scaling all ten parameters of a link keeps it consistent."""
    factor = 1.0 + error * rng.uniform(-1.0, 1.0, robot.n_bodies)
    values = robot.parameters.values.copy()
    for i, column in enumerate(robot.parameters.columns):
        if column.kind != "friction":
            values[i] *= factor[column.number - 1]
    return robot.with_parameters(robot.parameters.with_values(values))
