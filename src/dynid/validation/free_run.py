"""A robot that runs free: measured torque drives it from measured states, and nothing sets it back until a window ends.

    M(q) a = tau - c(q, v) - g(q) - friction(v),      q(t0), v(t0) as measured

MuJoCo integrates where it can represent the robot and its friction, our own Rosenbrock steps anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray, check_shape
from dynid.dynamics.forward_dynamics import inertia_and_bias, require_simulatable
from dynid.dynamics.friction import COULOMB_WIDTH, friction_torque, friction_with_slope, smooth_friction
from dynid.dynamics.integrators import DAMPING, rosenbrock
from dynid.errors import InputError, UnknownNameError
from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.robot import Robot
from dynid.signals.samples import Samples

Engine: TypeAlias = Literal["auto", "mujoco", "own"]
ENGINES: tuple[Engine, ...] = ("auto", "mujoco", "own")

LONGEST_STEP_S = 1e-3
FASTEST = 1e4
"""rad/s or m/s beyond which a motion counts as lost."""

MOST_WINDOWS = 32
"""Windows beyond this many are thinned out evenly: more would hardly change a mean."""
LEAST_WINDOWS, MANY_JOINTS = 4, 20
"""Windows that are always replayed, and joints from which these are fewer."""

LOAD_ROUNDS = 3
"""Friction that depends on the transmitted torque is found by iteration; it is a small part of that torque."""


class RunawayError(InputError):
    """The model leaves every bound when the measured torque drives it."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Where free runs begin, and how long they last: first samples, steps and their length."""

    starts: IntArray
    n_steps: int
    step_s: float

    @property
    def rows(self) -> IntArray:
        """Samples of every window, ``(windows, steps + 1)``."""
        return np.asarray(self.starts[:, None] + np.arange(self.n_steps + 1), dtype=np.int64)

    def shortened(self, window_s: float) -> Windows:
        """The same beginnings over a shorter time."""
        return replace(self, n_steps=min(self.n_steps, max(1, round(window_s / self.step_s))))


@dataclass(frozen=True, eq=False)
class FreeRobot:
    """A robot ready to run free, any number of times."""

    robot: Robot
    model: Any
    """MuJoCo's, None where our own steps are taken."""
    notes: tuple[str, ...]

    @classmethod
    def of(cls, robot: Robot, engine: Engine = "auto") -> FreeRobot:
        """``engine`` is ``mujoco``, ``own``, or ``auto``: MuJoCo where it can represent the robot."""
        return cls(robot, *_mujoco(robot, engine))

    @property
    def engine(self) -> str:
        """What integrates."""
        return "own" if self.model is None else "mujoco"

    def run(self, q: Array, v: Array, torque: Array, step_s: float) -> tuple[Array, Array]:
        """Position and velocity of every window from a state, both of the shape of the torque, ``(windows, steps + 1, joints)``."""
        if self.model is None:
            return _run_own(self.robot, q, v, torque, step_s)
        found = _run_mujoco(self.robot, self.model, q, v, torque, step_s)
        _refuse_runaway(self.robot, found[1])
        return found


def check_free_run(robot: Robot, samples: Samples, window_s: float, engine: str = "auto") -> None:
    """Refuse what cannot be set free."""
    if robot.floating:
        raise InputError(f"robot '{robot.name}' floats; replay needs a fixed base")
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    check_shape("position of the samples", samples.position, (None, robot.n_joints))
    if len(samples) < 2:
        raise InputError(f"replay needs at least 2 samples, got {len(samples)}")
    if not window_s > 0.0:
        raise InputError(f"window is {window_s:g} s, expected a positive number")
    require_simulatable(robot)


def even_windows(samples: Samples, window_s: float, most: int) -> Windows:
    """Windows of that length side by side, without a gap; beyond ``most`` they are thinned out evenly."""
    steps = np.diff(samples.time)
    step_s = float(np.median(steps))
    n_steps = max(1, round(window_s / step_s))
    if len(samples) <= n_steps:
        raise InputError(f"samples last {samples.duration_s:.4g} s, shorter than one window of {window_s:g} s")
    even = np.abs(steps - step_s) <= 0.05 * step_s
    gaps = np.concatenate([[0], np.cumsum(~even)])
    starts = np.arange(0, len(samples) - n_steps, n_steps)
    starts = starts[gaps[starts + n_steps] == gaps[starts]]
    if not len(starts):
        raise InputError(f"samples have no window of {window_s:g} s that is evenly sampled at {1.0 / step_s:.4g} Hz")
    if len(starts) > most:
        starts = starts[np.linspace(0, len(starts) - 1, most).astype(int)]
    return Windows(starts, n_steps, step_s)


def windows_for(robot: Robot) -> int:
    """Windows that a robot is replayed over: of a long chain fewer, since a step costs the square of its joints."""
    return max(LEAST_WINDOWS, int(MOST_WINDOWS * min(1.0, (MANY_JOINTS / robot.n_joints) ** 2)))


def _refuse_runaway(robot: Robot, velocity: Array) -> None:
    fastest = float(np.abs(velocity).max())
    if not fastest < FASTEST:  # NaN is not
        raise RunawayError(_runaway(robot, f"speeds up to {fastest:.3g}"))


def _runaway(robot: Robot, why: str) -> str:
    return (
        f"robot '{robot.name}' runs away when it is driven by the measured torque ({why}); "
        "take a shorter window, or check signs and units of the torque"
    )


# Engines ------------------------------------------------------------------------------------------


def _mujoco(robot: Robot, wanted: Engine) -> tuple[Any, tuple[str, ...]]:
    """MuJoCo's model of the robot, or None where it is not to be used, and why it could not be."""
    if wanted == "own":
        return None, ()
    held = (Viscous, Coulomb, SmoothCoulomb, Offset, Armature)
    others = [effect.label for effect in robot.effects if not isinstance(effect, held)]
    reason = f"it has no place for {', '.join(others)}" if others else ""
    if robot.loops:  # MuJoCo holds closures softly, ours are exact
        reason = "its loops are closed by projection on the actuated joints"
    if not reason:
        from dynid.io.robots.mjcf_new import mujoco_model

        try:
            return mujoco_model(robot, limits=False), ()
        except InputError as error:
            reason = str(error)
    if wanted == "mujoco":
        raise InputError(f"robot '{robot.name}' cannot be replayed in MuJoCo: {reason}")
    return None, (f"replayed without MuJoCo: {reason}",)


def _run_mujoco(robot: Robot, model: Any, q: Array, v: Array, torque: Array, step_s: float) -> tuple[Array, Array]:
    """MuJoCo's Runge-Kutta steps for all windows at once; torque is held at its middle over each step."""
    import mujoco
    from mujoco import rollout

    from dynid.io.robots.mujoco_model import (
        from_mujoco_force,
        mujoco_order,
        mujoco_warnings,
        to_mujoco_motion,
        with_joint_names,
    )

    n_sub = max(1, int(np.ceil(step_s / LONGEST_STEP_S - 1e-9)))
    model.opt.timestep = step_s / n_sub
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    # dry friction as hard as a step resolves: by default MuJoCo lets it build up over 20 ms
    model.dof_solref[:] = 2.0 * model.opt.timestep, 1.0
    model.dof_solimp[:, :2] = 0.99
    # what need not be looked for in every step: the model is a tree of bodies under applied torque, without shapes or sensors
    bits = mujoco.mjtDisableBit
    model.opt.disableflags |= int(bits.mjDSBL_CONTACT | bits.mjDSBL_EQUALITY | bits.mjDSBL_ACTUATION | bits.mjDSBL_SENSOR)
    values = robot.parameters.as_dict()
    offset = np.array([values.get(f"{Offset.linear[0].symbol}{number}", 0.0) for number in robot.driven_numbers])
    # in the middle of every integration step, linear between samples: (windows, steps * n_sub, joints)
    middle = ((np.arange(n_sub) + 0.5) / n_sub)[:, None]
    left, right = (torque - offset)[:, :-1, None], (torque - offset)[:, 1:, None]
    driving = np.ascontiguousarray((left + middle * (right - left)).reshape(len(torque), -1, torque.shape[2]))
    n_windows, n_steps = torque.shape[0], torque.shape[1] - 1
    flat = driving.reshape(-1, robot.n_joints)
    applied = to_mujoco_motion(robot, flat, flat, flat)[2].reshape(driving.shape)
    qpos, qvel, _ = to_mujoco_motion(robot, q, v, v)
    working = mujoco.MjData(model)
    physics = mujoco.mjtState.mjSTATE_FULLPHYSICS
    initial = np.empty((n_windows, mujoco.mj_stateSize(model, physics)))
    for k in range(n_windows):
        working.qpos[:], working.qvel[:] = qpos[k], qvel[k]
        mujoco.mj_getState(model, working, initial[k], physics)
    with mujoco_warnings() as said:
        state, _ = rollout.rollout(model, working, initial, applied, control_spec=int(mujoco.mjtState.mjSTATE_QFRC_APPLIED))
    if said:  # MuJoCo set the state back, so that what follows is finite and is no motion of the model
        why = with_joint_names(said[0], [robot.joint_names[k] for k in mujoco_order(robot)[1]])
        raise RunawayError(_runaway(robot, f"MuJoCo: {why}"))
    kept = state[:, n_sub - 1 :: n_sub, 1 : 1 + 2 * robot.n_joints].reshape(n_windows * n_steps, -1)
    moved = (
        from_mujoco_force(robot, kept, part).reshape(n_windows, n_steps, -1)
        for part in (kept[:, : robot.n_joints], kept[:, robot.n_joints :])
    )
    position, velocity = (np.concatenate([first[:, None], rest], axis=1) for first, rest in zip((q, v), moved, strict=True))
    return position, velocity


def _run_own(robot: Robot, q: Array, v: Array, torque: Array, step_s: float) -> tuple[Array, Array]:
    """Rosenbrock steps for all windows at once, with the slope of friction as what is stiff. Time is sequential, so is the loop."""
    moving = smooth_friction(robot, COULOMB_WIDTH, at_least=True)
    friction = friction_torque(moving, LOAD_ROUNDS, partial(inertia_and_bias, moving))
    n_sub = max(1, int(np.ceil(step_s / LONGEST_STEP_S - 1e-9)))
    h = step_s / n_sub
    position, velocity = np.empty((2, *torque.shape))
    position[:, 0], velocity[:, 0] = q, v

    def solved(M: Array, right: Array) -> Array:
        try:
            return np.asarray(np.linalg.solve(M, right[..., None])[..., 0], dtype=np.float64)
        except np.linalg.LinAlgError:
            raise InputError(
                f"the inertia matrix of robot '{robot.name}' is singular, so no torque determines its acceleration: a joint "
                "moves no inertia"
            ) from None

    def accelerated(tau: Array, q: Array, v: Array) -> Array:
        M, bias = inertia_and_bias(moving, q, v)
        return solved(M, tau - bias - friction(q, v, tau))

    def damped(stiff: Array, M: Array, a: Array) -> Array:
        return solved(stiff, np.einsum("nij,nj->ni", M, a))

    def stepped(q: Array, v: Array, k: int) -> tuple[Array, Array]:
        """From one sample to the next."""
        for j in range(n_sub):
            tau0, tau1 = (torque[:, k] + (j + end) / n_sub * (torque[:, k + 1] - torque[:, k]) for end in (0, 1))
            M, bias = inertia_and_bias(moving, q, v)
            rubbing, D = friction_with_slope(friction, q, v, tau0)
            stiff = M + DAMPING * h * D
            k1 = solved(stiff, tau0 - bias - rubbing)
            q, v = rosenbrock(q, v, k1, partial(accelerated, tau1), partial(damped, stiff, M), h)
        return q, v

    for k in range(torque.shape[1] - 1):
        with np.errstate(over="ignore", invalid="ignore"):  # what runs away within a step is refused after it
            q, v = stepped(q, v, k)
        position[:, k + 1], velocity[:, k + 1] = q, v
        _refuse_runaway(robot, v)
    return position, velocity
