"""The logs of ``truth.py``: which robots, what is done to them, what their sensors say, and what would be right to say about them.

in family        friction of a kind that dynid has a model of, plain sensors
outside          one effect that the default model lacks
bad experiment   the robot is in the family, the motion does not show it
bad log          the robot and the motion are good, a channel of the log is not; or is only coarse, which is no fault
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from truth_arms import REPORT, ROBOTS, TUNE, Arm, arm_named
from truth_world import FRICTIONS, RATE_HZ, SECONDS, Motion, World, build_world, simulate

CLASSES = ("in family", "outside", "bad experiment", "bad log")
OUTSIDE = ("lugre", "backlash", "cable", "stribeck_exp", "ripple", "elastic", "tilt", "lag", "gain", "load")
MOTIONS = ("one_way", "still", "tiny", "slow", "dwells")
CHANNELS = ("dead", "unit", "quantised", "coarse", "permuted", "sign")
HEALTHY = ("quantised", "coarse")
"""Channels that are as sensors are: no alarm is wanted."""
HALVES = {"tune": TUNE, "report": REPORT, "all": ROBOTS}
NOISE = 0.008
"""Standard deviation of measured torque over the usual torque of its joint."""


@dataclass(frozen=True)
class Case:
    """One log."""

    robot: str
    family: str
    """One of :data:`CLASSES`."""
    kind: str
    friction: str
    variant: int = 0

    @property
    def name(self) -> str:
        """Unique; it also seeds everything that is drawn."""
        return f"{self.robot}-{self.kind}-{self.friction}"

    @property
    def seed(self) -> int:
        """The same on every machine."""
        return zlib.crc32(self.name.encode())

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with robot, motion or log, so that no alarm and no advice is wanted."""
        return self.family == "in family" or self.kind in HEALTHY


def all_cases() -> list[Case]:
    """Every log, robot by robot: three in the family, three outside, one bad experiment, two bad logs each."""
    out: list[Case] = []
    for i, robot in enumerate(ROBOTS):
        # robots alternate between the halves, so the pair number moves the kinds on and the half shifts them
        pair, half = divmod(i, 2)
        chosen = [FRICTIONS[(3 * pair + 2 * half + k) % 7] for k in range(3)]
        out += [Case(robot, "in family", "healthy", friction) for friction in chosen]
        for k in range(3):
            kind = OUTSIDE[(3 * pair + 5 * half + k) % 10]
            own = kind if kind in ("lugre", "stribeck_exp") else FRICTIONS[(i + k) % 4]
            out.append(Case(robot, "outside", kind, own, pair))
        motion = MOTIONS[(pair + 2 * half) % 5]
        out.append(Case(robot, "bad experiment", motion, "dahl" if motion == "dwells" else FRICTIONS[i % 3]))
        out += [
            Case(robot, "bad log", CHANNELS[(2 * pair + 3 * half + k) % 6], FRICTIONS[(i + k) % 3], pair) for k in range(2)
        ]
    return out


def chosen_cases(half: str = "all", only: str | None = None, smoke: bool = False) -> Iterator[Case]:
    """The logs of a half of the robots, of one class or kind; a few quick ones for a smoke run."""
    quick = [Case("planar2", "in family", "healthy", "linear"), Case("planar2", "outside", "cable", "linear", 2),
             Case("scara", "bad log", "sign", "linear")]  # fmt: skip
    for case in quick if smoke else all_cases():
        if case.robot in HALVES[half] and only in (None, case.family, case.kind):
            yield case


def strongest_link(arm: Arm, world: World) -> int:
    """The turning joint with the largest inertia behind its gear: there a soft gear shows most."""
    model = arm.model
    inertia = np.diag(pin.crba(model, model.createData(), world.centre))
    return int(np.argmax([0.0 if body.prismatic else x for body, x in zip(arm.bodies, inertia, strict=True)]))


def with_effect(world: World, kind: str, joint: int, other: int) -> World:
    """The robot with an effect outside the family; one of the log or the friction leaves it as it is."""
    scale = world.scale
    if kind == "cable":
        return replace(world, cable={joint: 0.3 * float(scale[joint])})
    if kind == "ripple":
        return replace(world, ripple={j: (0.08 * float(scale[j]), 30.0 if j == joint else 24.0) for j in {joint, other}})
    if kind in ("elastic", "backlash"):
        give, gap = (0.005, 0.0) if kind == "elastic" else (0.001, 0.005)
        stiffness = float(scale[joint]) / give
        return replace(world, gear={joint: (stiffness, 0.2 * float(np.sqrt(stiffness * world.armature[joint])), gap)})
    if kind == "tilt":
        return replace(world, tilt_deg=2.0)
    if kind == "load":
        return replace(world, carried_kg=0.2 * sum(body.mass for body in world.arm.bodies[-3:]))
    return world


@dataclass(frozen=True, eq=False)
class Experiment:
    """A log with everything that is known about it."""

    case: Case
    world: World
    joint: int
    """The joint that the effect or fault is about, from 0; -1 where it is about all."""
    others: tuple[int, ...]
    """Every joint that the effect is about."""
    motion: Motion
    noise: np.ndarray
    """Standard deviation of measured torque."""
    counts: np.ndarray
    """Step of every encoder, rad or m."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Of the effect."""
        return tuple(self.world.arm.bodies[j].name for j in self.others)

    def fresh(self, seconds: float = 6.0) -> Motion:
        """Another motion of the same kind, without the carried load; what its sensors would say is of no concern."""
        rng = np.random.default_rng(self.case.seed + 1)
        kind = self.case.kind if self.case.kind in MOTIONS else "usual"
        whole = simulate(self.world, kind, max(self.joint, 0), rng, seconds, loaded=False)
        kept = slice(round(0.5 * RATE_HZ), None)
        return Motion(whole.time[kept], whole.q[kept], whole.v[kept], whole.a[kept], whole.tau[kept])


def carry_out(case: Case, seconds: float = SECONDS, known: Motion | None = None) -> Experiment:
    """Simulate a case, or take the motion of it that is known already."""
    rng = np.random.default_rng(case.seed)
    arm = arm_named(case.robot)
    world = build_world(arm, case.friction, rng)
    turning = [j for j, body in enumerate(arm.bodies) if not body.prismatic]
    pick = turning[1:] if len(turning) > 2 else turning
    if case.kind == "gain" and len(pick) > 2:
        pick = pick[:-1]  # a wrong gain of the last joint changes nothing but the scale of that joint: no log can show it
    joint, other = (int(j) for j in rng.choice(pick, 2, replace=False))
    if case.kind in ("elastic", "backlash"):
        joint = strongest_link(arm, world)
    world = with_effect(world, case.kind, joint, other)
    asked = case.kind if case.kind in MOTIONS else "usual"
    motion = simulate(world, asked, joint, rng, seconds) if known is None else known
    about: tuple[int, ...] = (joint,)
    if case.kind in (
        "tilt",
        "lag",
        "load",
        "lugre",
        "stribeck_exp",
        "healthy",
        "quantised",
        "coarse",
        "still",
        "tiny",
        "slow",
        "dwells",
    ):
        about = ()
    elif case.kind == "ripple":
        about = tuple(sorted({joint, other}))
    elif case.kind == "permuted":
        about = (joint, joint - 1 if joint else joint + 1)
    turn = 2.0 * np.pi / 2 ** (12 if case.kind == "coarse" else 20)
    counts = np.array([0.1 * turn if body.prismatic else turn for body in arm.bodies])
    return Experiment(case, world, joint if about else -1, about, motion, NOISE * world.scale, counts)


def measured(experiment: Experiment) -> tuple[np.ndarray, np.ndarray]:
    """Positions and torques as the log has them."""
    case, motion = experiment.case, experiment.motion
    rng = np.random.default_rng(case.seed + 2)
    q = np.round(motion.q / experiment.counts) * experiment.counts
    tau = motion.tau + rng.normal(size=motion.tau.shape) * experiment.noise
    j = experiment.joint
    if case.kind == "lag":
        late = 1 + case.variant % 2
        tau = np.concatenate([np.repeat(tau[:1], late, axis=0), tau[:-late]])
    elif case.kind == "gain":
        tau[:, j] *= 1.1
    elif case.kind == "dead":
        tau[:, j] = 0.02 * experiment.noise[j] * rng.normal(size=len(tau))
    elif case.kind == "unit":
        tau[:, j] *= (1000.0, 0.01, 12.0)[case.variant % 3]
    elif case.kind == "quantised":
        step = 0.02 * np.abs(tau).max(axis=0)
        tau = np.round(tau / step) * step
    elif case.kind == "permuted":
        tau[:, list(experiment.others)] = tau[:, list(experiment.others[::-1])]
    elif case.kind == "sign":
        tau[:, j] *= -1.0
    return q, tau


def write_files(experiment: Experiment, folder: Path) -> tuple[Path, Path]:
    """The description and the log as a user has them: URDF and CSV."""
    arm, (q, tau) = experiment.world.arm, measured(experiment)
    described = arm.described(np.random.default_rng(experiment.case.seed + 3))
    robot, log = folder / f"{experiment.case.robot}.urdf", folder / f"{experiment.case.name}.csv"
    robot.write_text(described.urdf)
    names = ["t", *(f"q{k}" for k in range(1, arm.n + 1)), *(f"tau{k}" for k in range(1, arm.n + 1))]
    table = np.column_stack([experiment.motion.time, q, tau])
    np.savetxt(log, table, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    return robot, log
