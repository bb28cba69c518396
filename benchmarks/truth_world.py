"""The world of ``truth.py``: forward dynamics, friction, gears, controller and sensors of simulated robots whose truth is known.

    M(q) a + h(q, v) + Ia a + rubbing(v) + position(q) = tau

Rigid bodies accelerate by Pinocchio's articulated-body algorithm, rotor inertia included; friction, cables, ripple, compliance and
backlash are written here; the equations are integrated by the classical Runge-Kutta method with steps of 1 ms, or 0.5 ms where
gears are soft or contacts yield, the controller acting at every stage, so that torque and motion in a log belong to the same
instant. A joint with a soft gear has two positions; encoder, motor torque and friction are those of the motor. Nothing of dynid is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin

from truth_arms import Arm

SECONDS, RATE_HZ = 24.0, 200.0
WIDTH = 0.01
"""rad/s or m/s over which dry friction turns: narrow, but of a finite stiffness."""
STIFFEST = 1200.0
"""1/s, the fastest decay of speed by dry friction that a step of 1 ms follows."""


@dataclass(frozen=True, eq=False)
class Friction:
    """Friction of every joint against its motion; arrays over joints, SI units."""

    kind: str
    fv: np.ndarray
    fc: np.ndarray
    fo: np.ndarray
    extra: np.ndarray
    """Size of what the kind adds: Stribeck peak, cubic term, share of the load."""
    speed: np.ndarray
    """Speed of the Stribeck peak, or of full motion."""
    width: np.ndarray

    @property
    def remembers(self) -> bool:
        """Whether contacts have a state of their own."""
        return self.kind in ("dahl", "lugre")

    def sliding(self, v: np.ndarray, load: np.ndarray | float = 0.0) -> np.ndarray:
        """Torque of friction and offset in steady motion; ``load`` is what the bodies need."""
        sign = np.tanh(v / self.width)
        dry = self.fc * sign
        if self.kind == "stribeck":
            dry = dry + self.extra / (1.0 + (np.abs(v) / self.speed) ** 2) * sign
        elif self.kind in ("stribeck_exp", "lugre"):
            dry = dry + self.extra * np.exp(-np.abs(v) / self.speed) * sign
        elif self.kind == "sigmoid":  # one curve in place of the sign, shifted: not the same both ways
            slope, shift = 1.0 / self.width, 0.4 * self.width
            dry = 2.0 * self.fc * (1.0 / (1.0 + np.exp(-slope * (v + shift))) - 1.0 / (1.0 + np.exp(-slope * shift)))
        elif self.kind == "polynomial":
            dry = dry - self.extra * (np.abs(v) * v - 0.35 * v**3 / self.speed) / self.speed**2
        elif self.kind == "load":
            dry = dry + self.extra * np.abs(load) * sign
        return self.fv * v + dry + self.fo

    def grip(self, v: np.ndarray) -> np.ndarray:
        """Largest torque of a contact at a speed, where contacts have a state."""
        peak = self.extra * np.exp(-np.abs(v) / self.speed) if self.kind == "lugre" else 0.0
        return self.fc + peak


BRISTLE = {"dahl": 5e-4, "lugre": 1.5e-3}
"""rad or m over which a contact with a state yields before it slides."""


@dataclass(frozen=True, eq=False)
class World:
    """A robot as it is; what is None or empty is absent."""

    arm: Arm
    armature: np.ndarray
    friction: Friction
    scale: np.ndarray
    """Usual torque of every joint."""
    centre: np.ndarray
    """Middle of the usual motion, its amplitude and its largest speed."""
    amplitude: np.ndarray
    speed: np.ndarray
    tilt_deg: float = 0.0
    cable: dict[int, float] = field(default_factory=dict)
    """Torque at the end of the usual range, by joint."""
    ripple: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Amplitude and periods per radian, by joint."""
    gear: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    """Stiffness, damping and half of the gap of a soft gear, by joint."""
    carried_kg: float = 0.0
    """A load at the end of the arm, there during a third of the log."""

    def model(self, carried: bool = False) -> pin.Model:
        """Rigid bodies with rotors, gravity as it is, with or without the load."""
        model = self.arm.model
        model.armature = np.where([j in self.gear for j in range(self.arm.n)], 0.0, self.armature)
        lean = np.deg2rad(self.tilt_deg)
        # to the side, and half as much forwards: a mounting plate that is not level
        direction = np.array([np.sin(lean) * 0.894, np.sin(lean) * 0.447, -np.cos(lean)])
        model.gravity.linear = 9.81 * direction
        if carried and self.carried_kg:
            reach = self.arm.bodies[-1].centre * 2.0
            model.inertias[self.arm.n] = model.inertias[self.arm.n] + pin.Inertia(
                self.carried_kg, reach, np.eye(3) * 1e-3 * self.carried_kg
            )
        return model

    def position_torque(self, q: np.ndarray) -> np.ndarray:
        """Torque of cables and ripple, ``(joints,)`` or ``(samples, joints)``."""
        out = np.zeros_like(q)
        for j, size in self.cable.items():
            x = (q[..., j] - self.centre[j] - 0.3 * self.amplitude[j]) / self.amplitude[j]
            out[..., j] += size * (0.5 * x + 0.5 * x**3)
        for j, (size, periods) in self.ripple.items():
            out[..., j] += size * np.sin(periods * q[..., j] + 0.7)
        return out

    def torque(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Torque of the truth at states, ``(samples, joints)``, sliding, gears stiff, without the carried load."""
        rigid = replace(self, gear={}).model()
        data = rigid.createData()
        needed = np.array([pin.rnea(rigid, data, *state) for state in zip(q, v, a, strict=True)])
        return needed + self.friction.sliding(v, needed - self.armature * a) + self.position_torque(q)


@dataclass(frozen=True, eq=False)
class Motion:
    """What happened, at the rate of the log and at the motors: positions, speeds, accelerations, torques, ``(samples, joints)``."""

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray


def fourier(
    world: World, rng: np.random.Generator, seconds: float, least: int = 3, most: int = 20
) -> tuple[np.ndarray, ...]:
    """Amplitudes, phases and angular frequencies of a sum of sines that keeps the usual amplitude and speed."""
    omega = 2.0 * np.pi * np.arange(least, most + 1) / seconds
    weights = rng.normal(size=(world.arm.n, len(omega))) / np.sqrt(omega)
    phases = rng.uniform(0.0, 2.0 * np.pi, weights.shape)
    t = np.linspace(0.0, seconds, 2000)
    wave = np.einsum("jh,jht->jt", weights, np.sin(omega[:, None] * t + phases[..., None]))
    slope = np.einsum("jh,jht->jt", weights * omega, np.cos(omega[:, None] * t + phases[..., None]))
    shrink = np.minimum(world.amplitude / np.abs(wave).max(axis=1), world.speed / np.abs(slope).max(axis=1))
    return weights * shrink[:, None], phases, omega


def stalled(t: np.ndarray, seconds: float, share: float, stops: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A time that stands still several times, and its two derivatives: ``share`` of the log is spent in the stops."""
    ramp, rest = 0.25, share * seconds / stops
    rate, change = np.ones_like(t), np.zeros_like(t)
    for k in range(stops):
        x = np.abs(t - seconds * (k + 0.6) / stops) - 0.5 * rest
        inside = (x > 0.0) & (x < ramp)
        rate = np.where(x <= 0.0, 0.0, np.where(inside, 0.5 - 0.5 * np.cos(np.pi * x / ramp), rate))
        side = np.sign(t - seconds * (k + 0.6) / stops)
        change = np.where(inside, side * 0.5 * np.pi / ramp * np.sin(np.pi * x / ramp), np.where(x <= 0.0, 0.0, change))
    return np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(t))]), rate, change


def reference(world: World, kind: str, joint: int, rng: np.random.Generator, t: np.ndarray) -> tuple[np.ndarray, ...]:
    """Positions, speeds and accelerations that the controller is asked for, ``(samples, joints)``."""
    seconds = SECONDS  # of a whole log: a shorter motion is the beginning of one
    size, phase, omega = fourier(world, rng, seconds)
    if kind == "still":
        size = 0.0 * size
    elif kind == "tiny":
        size = size * 0.01
    elif kind == "slow":
        omega = omega / 40.0
    s, rate, change = stalled(t, seconds, 0.08) if kind == "dwells" else (t, np.ones_like(t), np.zeros_like(t))
    angle = omega[None, None, :] * s[:, None, None] + phase[None]
    q = world.centre + (size * np.sin(angle)).sum(axis=2)
    v = (size * omega * np.cos(angle)).sum(axis=2)
    a = (-size * omega**2 * np.sin(angle)).sum(axis=2)
    v, a = v * rate[:, None], a * rate[:, None] ** 2 + v * change[:, None]
    if kind == "one_way":  # one joint turns forwards only, at a speed that varies
        way, w = 2.0 * world.amplitude[joint], 2.0 * np.pi * 7.0 / seconds
        mean = way / seconds
        q[:, joint] = world.centre[joint] - 0.5 * way + mean * (t - 0.7 * np.sin(w * t) / w)
        v[:, joint], a[:, joint] = mean * (1.0 - 0.7 * np.cos(w * t)), mean * 0.7 * w * np.sin(w * t)
    return q, v, a


def simulate(
    world: World, kind: str, joint: int, rng: np.random.Generator, seconds: float = SECONDS, loaded: bool = True
) -> Motion:
    """Move the robot under a controller with a wrong model of it; ``loaded``: whether the load is there in the middle of the log."""
    n, soft = world.arm.n, sorted(world.gear)
    step = 5e-4 if soft or world.friction.remembers else 1e-3
    every = round(1.0 / RATE_HZ / step)
    rows = round(seconds * RATE_HZ)
    t = np.arange(2 * rows * every + 1) * 0.5 * step
    q_ref, v_ref, a_ref = reference(world, kind, joint, rng, t)
    models = [(model, model.createData()) for model in (world.model(), world.model(carried=True))]
    feed = _feed_forward(world, rng, q_ref, v_ref, a_ref)
    inertia = joint_inertia(world)
    stiff, damp = 30.0**2 * inertia, 2.0 * 30.0 * inertia
    asked = feed + stiff * q_ref + damp * v_ref
    springs = np.array([world.gear[j] for j in soft]).reshape(-1, 3).T
    rubbing, rotor = world.friction, world.armature
    sigma = rubbing.fc / BRISTLE.get(rubbing.kind, 1.0)
    placed = bool(world.cable or world.ripple)
    loads = [models[int(loaded and bool(world.carried_kg) and 0.35 < x / seconds < 0.7)] for x in t]
    bristles, m = rubbing.remembers, len(soft)
    none = np.zeros(n)

    def at_motors(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and speeds of the motors: those of the joints but where a gear is soft."""
        q, v = y[:n], y[n : 2 * n]
        if m:
            q, v = q.copy(), v.copy()
            q[soft], v[soft] = y[3 * n : 3 * n + m], y[3 * n + m :]
        return q, v

    def slope(k: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivative of the state, motor acceleration and torque, at the half step ``k``."""
        q, v, z = y[:n], y[n : 2 * n], y[2 * n : 3 * n]
        motor, turning = at_motors(y)
        u = asked[k] - stiff * motor - damp * turning
        rate = none
        if bristles:
            rate = turning - np.abs(turning) * sigma * z / rubbing.grip(turning)
            drag = sigma * (z + 2e-3 * rate) + rubbing.fv * turning + rubbing.fo
        else:
            drag = rubbing.sliding(turning)
        own = world.position_torque(motor) if placed else none
        net = through = u - drag - own
        if m:
            through = net.copy()
            wound = motor[soft] - q[soft]
            wound = np.sign(wound) * np.maximum(np.abs(wound) - springs[2], 0.0)
            held = springs[0] * wound + springs[1] * (turning[soft] - v[soft]) * (wound != 0.0)
            through[soft] = held
        a = spun = pin.aba(*loads[k], q, v, through)
        if rubbing.kind == "load":  # friction grows with the load that the bodies are, which depends on the acceleration
            for _ in range(3):
                drag = rubbing.sliding(turning, u - drag - own - rotor * a)
                a = spun = pin.aba(*loads[k], q, v, u - drag - own)
        out = np.empty(len(y))
        out[:n], out[n : 2 * n], out[2 * n : 3 * n] = v, a, rate
        if m:
            spun = a.copy()
            spun[soft] = (net[soft] - held) / rotor[soft]
            out[3 * n : 3 * n + m], out[3 * n + m :] = turning[soft], spun[soft]
        return out, spun, u

    y = np.concatenate([q_ref[0], v_ref[0], np.zeros(n), q_ref[0][soft], v_ref[0][soft]])
    out = np.empty((4, rows, n))
    for row in range(rows):
        for part in range(every):
            k = 2 * (row * every + part)
            first, spun, u = slope(k, y)
            if part == 0:
                out[:, row] = *at_motors(y), spun, u
            second = slope(k + 1, y + 0.5 * step * first)[0]
            third = slope(k + 1, y + 0.5 * step * second)[0]
            fourth = slope(k + 2, y + step * third)[0]
            y = y + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
        if not np.isfinite(y).all():
            raise FloatingPointError(f"{world.arm.name}: the simulation left its bounds at {row / RATE_HZ} s")
    return Motion(np.arange(rows) / RATE_HZ, *out)


def _feed_forward(world: World, rng: np.random.Generator, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Torque of the controller's own, wrong model."""
    model = world.arm.described(rng).model
    data = model.createData()
    return np.array([pin.rnea(model, data, *state) for state in zip(q, v, a, strict=True)]) + 0.8 * world.armature * a


def joint_inertia(world: World) -> np.ndarray:
    """Inertia about every joint in the middle of the motion."""
    model = world.arm.model
    return np.diag(pin.crba(model, model.createData(), world.centre)).copy() + world.armature


FRICTIONS = ("linear", "smooth", "stribeck", "sigmoid", "polynomial", "load", "dahl")
"""Kinds that the friction models of dynid contain."""


def build_world(arm: Arm, kind: str, rng: np.random.Generator) -> World:
    """A robot with friction of a kind, sized by the torque that its usual motion needs."""
    low, high = (np.array([getattr(body, side) for body in arm.bodies]) for side in ("low", "high"))
    speed = 0.7 * np.array([body.speed for body in arm.bodies])
    centre, amplitude = np.clip(0.5 * (low + high), -np.pi, np.pi), np.minimum(0.35 * (high - low), 1.2)
    ones = np.ones(arm.n)
    bare = World(arm, ones, Friction("linear", ones, ones, ones, ones, ones, ones), ones, centre, amplitude, speed)
    t = np.linspace(0.0, SECONDS, 400)
    states = reference(bare, "usual", 0, rng, t)
    model = arm.model
    data = model.createData()
    needed = np.sqrt(np.mean([pin.rnea(model, data, *state) ** 2 for state in zip(*states, strict=True)], axis=0))
    inertia = np.mean([np.diag(pin.crba(model, data, q)) for q in states[0][::40]], axis=0)
    turning = np.array([not body.prismatic for body in arm.bodies])
    # a joint that carries little has the friction and rotor of its gear all the same
    needed = np.where(turning, np.maximum(needed, 0.08 * 0.7 ** np.arange(arm.n) * needed[turning].max()), needed)
    usual = np.sqrt(np.mean(states[1] ** 2, axis=0))
    fc, fv = rng.uniform(0.12, 0.25, arm.n) * needed, rng.uniform(0.08, 0.2, arm.n) * needed / usual
    width = np.full(arm.n, {"smooth": 0.06, "sigmoid": 0.04}.get(kind, 0.02 if kind in ("dahl", "lugre") else WIDTH))
    width = np.where(turning, width, 0.2 * width)
    extra = {"stribeck": 0.4 * fc, "stribeck_exp": 0.5 * fc, "lugre": 0.4 * fc, "polynomial": 0.15 * fv * speed}.get(
        kind, 0.0 * fc
    )
    extra = np.full(arm.n, 0.08) if kind == "load" else extra
    at = speed if kind == "polynomial" else 0.08 * speed
    grip = (fc + (extra if "stribeck" in kind else 0.0)) / width
    armature = np.maximum(rng.uniform(0.3, 0.8, arm.n) * inertia, grip / STIFFEST)
    friction = Friction(kind, fv, fc, rng.uniform(-0.05, 0.05, arm.n) * needed, extra, at, width)
    return World(arm, armature, friction, needed + fc, centre, amplitude, speed)
