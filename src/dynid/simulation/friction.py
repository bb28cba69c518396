"""Friction as an integration needs it: a law with a slope everywhere, and how steep it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.regression.closed_motion import closures_of
from dynid.regression.passive import PassiveEffects, without_passive_effects
from dynid.robot.effects import Armature, Coulomb, Coupled, Effect, Motion, Offset, Viscous
from dynid.robot.model import Robot
from dynid.robot.rotors import is_rotor

COULOMB_WIDTH = 0.01
"""rad/s or m/s over which a pure sign is smoothed, ``tanh(v / width)``: integration needs a slope."""

SLOPE_STEP = 1e-5
"""rad/s or m/s over which slopes are taken where no formula gives them."""

FrictionLaw: TypeAlias = Callable[[Array, Array, Array], Array]
"""``friction(q, v, tau)`` opposes the motor torque ``tau``."""


def friction_law(robot: Robot) -> FrictionLaw:
    """Torque of all effects but rotor inertia, which the mass matrix holds; that of passive joints as the motors feel it."""
    if robot.loops.rubbing:
        own, passive = friction_law(without_passive_effects(robot)), PassiveEffects(robot)
        return lambda q, v, tau: own(q, v, tau) + passive.at(q[None], v[None])[0]
    fo, fv, fc = (_joint_values(robot, symbol) for symbol in ("fo", "fv", "fc"))
    steepness = 1.0 / _coulomb_width(robot)
    motors = [effect for effect in robot.effects if _is_classical_motor(effect)]
    others = [(effect, gain) for effect, gain in other_effects(robot) if effect not in motors]
    drag: Callable[[Array], Array] = lambda v: fo + fv * v + fc * np.tanh(steepness * v)  # noqa: E731
    if motors:
        drag = _with_motors(robot, drag)
    if not others:
        return lambda q, v, tau: drag(v)
    still = np.zeros((1, robot.n_joints))

    def law(q: Array, v: Array, tau: Array) -> Array:
        total = drag(v)
        motion = Motion(q[None], v[None], still, tau[None])
        for effect, gain in others:
            total = total + gain @ effect.signals(motion)[0]
        return total

    return law


def _is_classical_motor(effect: Effect) -> bool:
    return isinstance(effect, Coupled) and isinstance(effect.effect, Viscous | Coulomb)


def _with_motors(robot: Robot, drag: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The same with viscous and Coulomb friction of motors, ``B^T (fvm v_m + fcm tanh(v_m / width))``, one small product a call."""
    B, fv, fc, k = _classical_motors(robot)

    def total(v: Array) -> Array:
        speed = B @ v
        return np.asarray(drag(v) + (fv * speed + fc * np.tanh(k * speed)) @ B)

    return total


def _classical_motors(robot: Robot) -> tuple[Array, Array, Array, Array]:
    """Of motors with viscous and Coulomb friction: rows of ``B``, both coefficients, and the steepness of the sign."""
    rows, viscous, dry, steepness = [], [], [], []
    for effect, gain in other_effects(robot):
        if not _is_classical_motor(effect):
            continue
        assert isinstance(effect, Coupled)
        for column, motor in enumerate(effect.motors or range(1, robot.n_joints + 1)):
            row = effect.B[motor - 1]
            value = float(gain[:, column] @ row) / float(row @ row)
            inner = effect.effect
            rows.append(row)
            viscous.append(value if isinstance(inner, Viscous) else 0.0)
            dry.append(value if isinstance(inner, Coulomb) else 0.0)
            width = per_joint(inner.smooth_width, robot)[motor - 1] if isinstance(inner, Coulomb) else 1.0
            steepness.append(1.0 / width)
    return np.array(rows).reshape(-1, robot.n_joints), np.array(viscous), np.array(dry), np.array(steepness)


def friction_slopes(robot: Robot) -> Callable[[Array, Array, Array], Array]:
    """``d friction / dv`` at a state, ``(joints, joints)``."""
    if robot.loops.rubbing:
        own, passive = friction_slopes(without_passive_effects(robot)), PassiveEffects(robot)
        steps = SLOPE_STEP * np.concatenate([np.eye(robot.n_dof), -np.eye(robot.n_dof)])

        def both(q: Array, v: Array, tau: Array) -> Array:
            ahead, behind = np.split(passive.at(np.repeat(q[None], len(steps), axis=0), v + steps), 2)
            return np.asarray(own(q, v, tau) + (ahead - behind).T / (2.0 * SLOPE_STEP))

        return both
    fv, fc = (_joint_values(robot, symbol) for symbol in ("fv", "fc"))
    steepness = 1.0 / _coulomb_width(robot)
    B, motor_fv, motor_fc, motor_k = _classical_motors(robot)
    others = [(effect, gain) for effect, gain in other_effects(robot) if not _is_classical_motor(effect)]
    still = np.zeros((2, robot.n_joints))

    def slopes(q: Array, v: Array, tau: Array) -> Array:
        own = fv + fc * steepness * (1.0 - np.tanh(steepness * v) ** 2)
        turned = motor_fv + motor_fc * motor_k * (1.0 - np.tanh(motor_k * (B @ v)) ** 2)
        total: Array = np.diag(own) + (B.T * turned) @ B
        for effect, gain in others:
            motion = Motion(np.array([q, q]), np.array([v - SLOPE_STEP, v + SLOPE_STEP]), still, np.array([tau, tau]))
            # all velocities are moved together: of effects that couple joints this is the sum over a row, which damps as well
            total = total + np.diag(gain @ np.diff(effect.signals(motion), axis=0)[0] / (2.0 * SLOPE_STEP))
        return total

    return slopes


def per_joint(value: float | tuple[float, ...], robot: Robot) -> Array:
    """A number given once or per joint, per joint."""
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (robot.n_joints,))


def friction_slope(robot: Robot) -> Array:
    """Largest change of friction with velocity, per joint; of passive joints an upper bound of what the motors feel."""
    if robot.loops.rubbing:
        return friction_slope(without_passive_effects(robot)) + _passive_slope(robot)
    slope = np.abs(_joint_values(robot, "fv")) + np.abs(_joint_values(robot, "fc")) / _coulomb_width(robot)
    speeds = np.linspace(-4.0, 4.0, 4001)
    still = np.zeros((len(speeds), robot.n_joints))
    motion = Motion(still, np.tile(speeds[:, None], robot.n_joints), still, still)
    for effect, gain in other_effects(robot):
        torque = effect.signals(motion) @ gain.T
        slope = slope + np.abs(np.diff(torque, axis=0)).max(axis=0) / (speeds[1] - speeds[0])
    return slope


def _passive_slope(robot: Robot) -> Array:
    """``G^T D G <= diag(sum_p D_p |G_pj| sum_k |G_pk|)`` with the largest ``G`` of the robot's range."""
    joints = [robot.body_index(name) for name in robot.loops.rubbing]
    values = robot.parameters.as_dict()
    widths = next((effect.smooth_width for effect in robot.effects if isinstance(effect, Coulomb)), 1.0)
    narrowest = float(np.min(np.asarray(widths, dtype=np.float64)))
    steep = np.array(
        [abs(values.get(f"fv{j + 1}", 0.0)) + abs(values.get(f"fc{j + 1}", 0.0)) / max(narrowest, 1e-6) for j in joints]
    )
    G = np.abs(closures_of(robot).seeds.G[:, joints]).max(axis=0)
    return np.asarray((steep[:, None] * G * G.sum(axis=1, keepdims=True)).sum(axis=0))


def smoothed(robot: Robot, width: float) -> Robot:
    """The robot with Coulomb friction ``tanh(v / width)`` on joints and motors where it is a pure sign."""
    effects: list[Effect] = []
    n = len(robot.effect_joints)
    for effect in robot.effects:
        if isinstance(effect, Coulomb):
            given = np.broadcast_to(np.asarray(effect.smooth_width, dtype=np.float64), (n,))
            effect = Coulomb(smooth_width=tuple(np.where(given > 0.0, given, width).tolist()))
        elif effect.is_sharp:
            effect = effect.smoothed(np.full(n, width))
        effects.append(effect)
    return robot.with_effects(effects)


def other_effects(robot: Robot) -> list[tuple[Effect, Array]]:
    """Effects beyond the classical ones and inertia of rotors, each with its matrix from column signals to torques."""
    others = []
    first = robot.parameters.n_inertial
    for effect in robot.effects:
        incidence = effect.incidence(len(robot.effect_joints))
        value = robot.parameters.values[first : first + incidence.shape[1]]
        first += incidence.shape[1]
        if not isinstance(effect, Viscous | Coulomb | Offset | Armature) and not is_rotor(effect):
            others.append((effect, incidence * value))
    return others


def refuse_acceleration_effects(robot: Robot) -> None:
    """Rotor inertia is in the mass matrix; no other effect may depend on the acceleration that is to be solved for."""
    for effect, _ in other_effects(robot):
        if effect.depends_on_acceleration:
            raise InputError(f"effect '{effect.name}' depends on acceleration and cannot be simulated")


def _joint_values(robot: Robot, symbol: str) -> Array:
    values = robot.parameters.as_dict()
    return np.array([values.get(f"{symbol}{number}", 0.0) for number in robot.driven_numbers])


def _coulomb_width(robot: Robot) -> Array:
    """Width of the smooth sign per joint; one where there is no Coulomb friction."""
    for effect in robot.effects:
        if isinstance(effect, Coulomb):
            return np.broadcast_to(np.asarray(effect.smooth_width, dtype=np.float64), (robot.n_joints,)).copy()
    return np.ones(robot.n_joints)
