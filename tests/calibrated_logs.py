"""Logs of an arm whose encoders, torque sensors and gears are known; the torque is Pinocchio's, arms with gears move in MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np
import pinocchio

import dynid
from dynid.arrays import Array
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.io.demo import demo_robot, demo_samples
from dynid.io.robots.mjcf_new import mjcf_text
from dynid.model.robot import Robot
from dynid.signals.samples import Samples

JOINTS = 4
NOISE = 0.01
"""Of torque, part of its standard deviation."""


@dataclass(frozen=True, eq=False)
class WrongSensors:
    """An arm, what its sensors are wrong by, and samples that they made."""

    robot: Robot
    zero: Array
    gain: Array
    offset: Array
    samples: tuple[Samples, ...]

    def true(self, quantity: str, joint: int) -> float:
        return float(getattr(self, quantity)[joint])

    def recording(self, log: int = 0) -> dynid.Recording:
        one = self.samples[log]
        return dynid.Recording(
            time=one.time,
            position=one.position,
            velocity=one.velocity,
            torque=one.torque,
            joint_names=self.robot.joint_names,
        )


def arm() -> Robot:
    whole = demo_robot(effects=("viscous", "offset"))
    return whole.only(whole.joint_names[:JOINTS])


def wrong_sensors(
    seed: int, *, zero: bool = False, gain: bool = False, offset: bool = False, seconds: float = 10.0
) -> WrongSensors:
    """Two logs with errors of up to 5 degrees, 10 % and 1 N m; the gain of the second joint is right."""
    rng, robot = np.random.default_rng(seed), arm()
    z = np.deg2rad(rng.uniform(-5.0, 5.0, JOINTS)) * zero
    g = 1.0 + rng.uniform(-0.1, 0.1, JOINTS) * gain
    g[1] = 1.0
    f = rng.uniform(-1.0, 1.0, JOINTS) * offset
    model = pinocchio_model(robot)
    data, logs = model.createData(), []
    for k in range(2):
        one = demo_samples(robot, seconds=seconds, rate_hz=100.0, seed=2 * seed + k)
        motion = zip(one.position, one.velocity, one.acceleration, strict=True)
        torque = np.array([pinocchio.rnea(model, data, *row) for row in motion]) + 0.8 * one.velocity
        read = g * (torque + f)
        read += NOISE * read.std(axis=0) * rng.normal(size=read.shape)
        logs.append(replace(one, position=one.position + z).with_torque(read))
    return WrongSensors(robot, z, g, f, tuple(logs))


STEP_S, RATE_HZ, LEAD_S = 2.5e-4, 200.0, 1.0
COUNT = 2.0 * np.pi / 2**18
ROTOR, VISCOUS, COULOMB = np.array([0.5, 0.5, 0.2, 0.2]), np.array([3.0, 3.0, 1.5, 1.5]), np.array([2.0, 2.0, 1.0, 1.0])
KP, KD = np.array([3000.0, 3000.0, 800.0, 800.0]), np.array([150.0, 150.0, 30.0, 30.0])
SOFTEST = np.array([2700.0, 2700.0, 1000.0, 1000.0])
"""N m/rad: links of softer gears swing within 4.5 Hz."""


@dataclass(frozen=True, eq=False)
class Geared:
    """A log of an arm that has gears, read by encoders at its motors, and what its gears and sensors have."""

    robot: Robot
    """As described: wrong rotors and friction."""
    recording: dynid.Recording
    compliance: Array
    backlash: Array
    temperature: Array
    zero: Array
    gain: Array

    def true(self, quantity: str, joint: int) -> float:
        return float(getattr(self, quantity)[joint])


def geared_log(
    seed: int, *, stiff: bool = False, play: bool = False, warm: bool = False, wrong: bool = False, seconds: float = 20.0
) -> Geared:
    """An arm that moves in MuJoCo under position control, its gears as second hinges on the axes of the first.

    Stiffness 1e3 to 1e5 N m/rad but no softer than ``SOFTEST``, play 0.2 to 2 degrees, friction that changes by up to half in a minute,
    sensors as in :func:`wrong_sensors`; torque with noise of 1 %, encoders of 18 bit.
    """
    rng, robot = np.random.default_rng(seed), arm().with_effects(())
    c = 1.0 / np.maximum(10.0 ** rng.uniform(3.0, 5.0, JOINTS), SOFTEST) * stiff
    b = np.deg2rad(rng.uniform(0.2, 2.0, JOINTS)) * play
    a = rng.uniform(-0.5, 0.5, JOINTS) * warm
    z, g = np.deg2rad(rng.uniform(-5.0, 5.0, JOINTS)) * wrong, 1.0 + rng.uniform(-0.1, 0.1, JOINTS) * wrong
    g[1] = 1.0
    q, torque = _controlled(robot, c, b, a, seed, seconds, damping=rng.uniform(0.03, 0.2))
    time = np.arange(len(q)) / RATE_HZ
    read = np.round((q + z + 0.5 * COUNT * rng.normal(size=q.shape)) / COUNT) * COUNT
    torque = g * torque
    torque += NOISE * torque.std(axis=0) * rng.normal(size=torque.shape)
    described = demo_robot(effects=("viscous", "coulomb", "offset", "armature")).only(robot.joint_names)
    return Geared(described, dynid.Recording(time, read, robot.joint_names, torque=torque), c, b, a, z, g)


def geared_model(robot: Robot, compliance: Array, backlash: Array) -> mujoco.MjSpec:
    """The arm with motors under position control, and second hinges for gears that yield."""
    spec = mujoco.MjSpec.from_string(mjcf_text(robot, limits=False))
    for j, name in enumerate(robot.joint_names):
        joint = spec.joint(name)
        joint.armature = ROTOR[j]  # before compilation: what limits and friction weigh follows from it
        if compliance[j] > 0.0 or backlash[j] > 0.0:
            gear = joint.parent.add_joint(name=f"{name}_gear", type=joint.type, axis=joint.axis, pos=joint.pos)
            if compliance[j] > 0.0:
                gear.stiffness[0] = 1.0 / compliance[j]
            else:
                gear.limited, gear.range = 1, [-0.5 * backlash[j], 0.5 * backlash[j]]
                gear.solref_limit, gear.solimp_limit = [1e-3, 1.0], [0.99, 0.999, 1e-4, 0.5, 2.0]
        one = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        one.gaintype, one.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        one.gainprm[0], one.biasprm[:3] = KP[j], [0.0, -KP[j], -KD[j]]
    return spec


def _controlled(
    robot: Robot, compliance: Array, backlash: Array, warming: Array, seed: int, seconds: float, damping: float
) -> tuple[Array, Array]:
    """Position and torque of the motors."""
    model = geared_model(robot, compliance, backlash).compile()
    model.opt.timestep, model.opt.integrator = STEP_S, mujoco.mjtIntegrator.mjINT_EULER
    model.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    motor = np.array([model.joint(name).dofadr[0] for name in robot.joint_names])
    model.dof_solref[motor] = [1e-3, 1.0]
    u = _command(robot, seconds, seed)
    state = mujoco.MjData(model)
    state.qpos[motor] = u[0]
    mujoco.mj_forward(model, state)
    M, weight = np.zeros((model.nv, model.nv)), -state.qfrc_bias.copy()
    mujoco.mj_fullM(model, state, M)
    for j, dof in enumerate(motor):
        if compliance[j] > 0.0:
            model.dof_damping[dof + 1] = 2.0 * damping * np.sqrt(M[dof + 1, dof + 1] / compliance[j])
            state.qpos[dof + 1] = compliance[j] * weight[dof]
        elif backlash[j] > 0.0:
            state.qpos[dof + 1] = 0.5 * backlash[j] * np.sign(weight[dof])
    rows, per_row = [], round(1.0 / RATE_HZ / STEP_S)
    for k in range(len(u) - 1):
        factor = 1.0 + warming * (k / RATE_HZ - LEAD_S) / 60.0
        model.dof_damping[motor], model.dof_frictionloss[motor] = VISCOUS * factor, COULOMB * factor
        state.ctrl[:] = u[k]
        mujoco.mj_forward(model, state)
        rows.append([state.qpos[motor].copy(), state.actuator_force.copy()])
        for step in range(per_row):
            state.ctrl[:] = u[k] + step / per_row * (u[k + 1] - u[k])
            mujoco.mj_step(model, state)
    q, torque = np.array(rows)[round(LEAD_S * RATE_HZ) :].transpose(1, 0, 2)
    return q, torque


def _command(robot: Robot, seconds: float, seed: int) -> Array:
    """The motion of the demonstration from rest on, ahead by what weight, inertia and friction keep the motors behind."""
    ref = demo_samples(robot, seconds=seconds + LEAD_S, rate_hz=RATE_HZ, seed=seed)
    t = np.arange(len(ref)) / RATE_HZ
    x = np.clip(t / LEAD_S, 0.0, 1.0)
    q = ref.position[0] + (x**3 * (10.0 - 15.0 * x + 6.0 * x**2))[:, None] * (ref.position - ref.position[0])
    v, a = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    ahead = dynid.inverse_dynamics(robot, q, v, a) + ROTOR * a + VISCOUS * v + COULOMB * np.tanh(v / 0.02)
    return q + (KD * v + ahead) / KP
