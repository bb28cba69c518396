"""A simulated fleet: robots of one model that differ a little, whose friction scatters from day to day, some with a change.

No motion is integrated: torque is that of the equations of motion along given motions, ``tau = Y(q, v, a) phi``, plus white noise.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.apps.fleet.entry import Entry, Key
from dynid.apps.fleet.make_entry import factor_logs, held_out_start, make_entry
from dynid.arrays import Array
from dynid.dynamics.regressors import torque_regressor
from dynid.io.demo import demo_samples
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples

FIRST_DAY = datetime.date(2026, 1, 1)


@dataclass(frozen=True)
class Event:
    """What happens to one robot from a day on, counted from 0: friction of a joint times a factor, or a load on the last link."""

    day: int
    joint: int | None = None
    """Number of the joint whose friction changes, from 1."""
    factor: float = 1.0
    load: tuple[float, ...] | None = None
    """Ten parameters of a load in the frame of the last link."""
    until: int | None = None
    """Day with which friction has changed by the whole factor, evenly from ``day`` on; None for a change from one day to the next."""


@dataclass(frozen=True)
class FleetPlan:
    """A fleet to simulate; standard deviations are relative."""

    robots: int = 50
    days: int = 30
    seconds: float = 6.0
    rate_hz: float = 50.0
    motions: int = 4
    """Different motions; each day of each robot has one of them."""
    torque_noise: float = 0.01
    body_spread: float = 0.02
    friction_spread: float = 0.10
    day_scatter: float = 0.02
    """Of every friction value from day to day."""
    events: Mapping[int, Sequence[Event]] = field(default_factory=dict)
    """By robot, counted from 0."""


def robot_name(number: int) -> str:
    """Name of a simulated robot."""
    return f"R{number + 1:03d}"


def simulated_torques(
    robot: Robot, plan: FleetPlan, seed: int, regressors: Sequence[Array]
) -> Iterator[tuple[str, list[tuple[Key, int, Array]]]]:
    """Each robot with its days: key, number of the motion, and the noisy torque along it."""
    rng = np.random.default_rng(seed)
    n_inertial = robot.parameters.n_inertial
    friction = np.array([column.kind == "friction" for column in robot.parameters.columns])
    for r in range(plan.robots):
        phi = robot.parameters.values.copy()
        phi[:n_inertial] *= np.repeat(1.0 + plan.body_spread * rng.normal(size=n_inertial // 10), 10)
        phi[friction] *= 1.0 + plan.friction_spread * rng.normal(size=int(friction.sum()))
        days = []
        for d in range(plan.days):
            today = phi.copy()
            today[friction] *= 1.0 + plan.day_scatter * rng.normal(size=int(friction.sum()))
            _apply(today, robot, [event for event in plan.events.get(r, ()) if d >= event.day], d)
            k = int(rng.integers(plan.motions))
            torque: Array = regressors[k] @ today
            torque = torque + plan.torque_noise * np.sqrt((torque**2).mean(axis=0)) * rng.normal(size=torque.shape)
            days.append((Key(robot_name(r), FIRST_DAY + datetime.timedelta(days=d), {}), k, torque))
        yield robot_name(r), days


def simulated_robots(robot: Robot, base: BaseReduction, plan: FleetPlan, seed: int = 0) -> Iterator[tuple[str, list[Entry]]]:
    """The entries of one robot after another, made from their rows as those of logs are."""
    motions = [demo_samples(robot, seconds=plan.seconds, rate_hz=plan.rate_hz, seed=k) for k in range(plan.motions)]
    regressors = [torque_regressor(robot, one.position, one.velocity, one.acceleration) for one in motions]
    for name, days in simulated_torques(robot, plan, seed, regressors):
        entries = []
        for key, k, torque in days:
            samples: Samples = replace(motions[k], torque=torque)
            log = f"simulated, seed {seed}, {name}, {key.day.isoformat()}"
            digest = hashlib.sha256(log.encode() + torque.tobytes()).hexdigest()
            rows = TorqueRows(robot, (samples,))
            made = factor_logs(rows, [held_out_start(float(samples.time[0]), float(samples.time[-1]))])
            entries.append(make_entry(key, [(log, digest)], made, base, samples.duration_s))
        yield name, entries


def simulated_fleet(robot: Robot, base: BaseReduction, plan: FleetPlan, seed: int = 0) -> Iterator[Entry]:
    """The same, one entry after another."""
    for _, entries in simulated_robots(robot, base, plan, seed):
        yield from entries


def _apply(values: Array, robot: Robot, events: Sequence[Event], day: int) -> None:
    for event in events:
        done = 1.0 if event.until is None else min((day - event.day) / (event.until - event.day), 1.0)
        if event.load is not None:
            n = robot.parameters.n_inertial
            values[n - 10 : n] += np.asarray(event.load)
        if event.joint is not None:
            for i, column in enumerate(robot.parameters.columns):
                if column.kind == "friction" and column.symbol != "fo" and column.number == event.joint:
                    values[i] *= 1.0 + done * (event.factor - 1.0)


def usual_events(days: int) -> dict[int, tuple[Event, ...]]:
    """Three robots whose friction changes and one that carries a load from a day on."""
    load = (1.0, 0.02, 0.0, 0.05, 0.004, 0.0, 0.004, -0.001, 0.0, 0.002)
    return {
        4: (Event(days // 2, joint=2, factor=1.2),),
        17: (Event(days // 3, joint=5, factor=1.3),),
        31: (Event(2 * days // 3, joint=4, factor=0.8),),
        42: (Event(days // 2, load=load),),
    }
