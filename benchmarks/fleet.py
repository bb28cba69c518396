"""A store of triangles and a fleet, simulated: cost of a day, of identifying again, kills while writing, alarms found and false.

All data are simulated: motions of the demonstration arm, torque of its equations of motion with 1 % white noise, robots that
differ by 2 % in their bodies and 10 % in friction, friction that scatters by 2 % from day to day. CPU seconds are user and
system time of this process.

``add_ratio``: adding a log as day 365 of a robot against day 1, whole additions from file to disk.
``identify_cpu_s``: every robot of a store identified again (sdp, intervals, held-out error by day, changes).
``unreadable``, ``lost``: after a writer was killed with SIGKILL at random times, how often the store could not be read, and how
many additions that the writer had reported were missing.
``events_found``: of three robots with changed friction and one with a load in each fleet, the share that was named with the right
kind and joint. ``fleets_with_false_alarm``: fleets in which any other robot, or a value that did not change, was named.
``trend_``, ``step_``: five robots over thirty days. Friction of one joint of one robot grows slowly by 44 % over 18 days, that of another
robot's by 25 % from one day to the next, three stay as they are: share of the seeds in which both values of the joint's friction are found
as such, by how many days they are dated wrong and by which share of it their size is wrong at most. ``trend_false_alarms``: other alarms.
The triangles of these fleets are made from one QR of each motion, and their noise is entered as white, which it is; with
``--through-rows`` every day goes through its rows and the spectrum of its residual, as logs do (some forty times slower).
"""

from __future__ import annotations

import measure

import argparse
import datetime
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.apps.fleet.add import add_to_store
from dynid.apps.fleet.entry import Entry, Key
from dynid.apps.fleet.identify import identify_store
from dynid.apps.fleet.judge import Fleet, assess, judge_fleet
from dynid.apps.fleet.store import Store, open_store
from dynid.arrays import Array
from dynid.dynamics.regressors import torque_regressor
from dynid.io.demo import demo_recording, demo_robot, demo_samples
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.channels import torque_channels

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fleet_simulation import (
    FIRST_DAY,
    Event,
    FleetPlan,
    robot_name,
    simulated_fleet,
    simulated_robots,
    simulated_torques,
    usual_events,
)

OPTIONS = {"friction": "linear", "cutoff_hz": 20.0, "velocity": "logged"}


def main() -> None:
    """Measure and print."""
    parser = measure.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="simulated fleets")
    parser.add_argument(
        "--first-seed", type=int, default=0, help="seed of the first fleet with trends; thresholds were set on 0 to 19"
    )
    parser.add_argument("--only", choices=("store", "kills", "fleet", "trends"), help="one part alone")
    parser.add_argument("--through-rows", action="store_true", help="simulated fleets through their rows")
    parser.add_argument("--write-into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write_into is not None:
        _write_for_ever(options.write_into)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if options.only in (None, "store"):
            result |= _store(place, options.smoke)
        if options.only in (None, "kills"):
            result |= _kills(place, 2 if options.smoke else 50)
    if options.only in (None, "fleet"):
        make = simulated_robots if options.through_rows else _quick_robots
        result |= _fleets(
            make, 2 if options.smoke else options.seeds, 8 if options.smoke else 20, 44 if options.smoke else 50
        )
    if options.only in (None, "trends"):
        make = simulated_robots if options.through_rows else _quick_robots
        seeds = 2 if options.smoke else options.seeds
        result |= _trends(make, range(options.first_seed, options.first_seed + seeds))
    measure.print_result(result, options.json)


def _cpu(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def _new_store(place: Path) -> tuple[Store, Path]:
    """A store with the first day of one robot, and the folder of logs."""
    write_urdf(demo_robot(), place / "arm.urdf")
    for number in range(7):
        write_recording(demo_recording(seconds=20.0, torque_noise=0.01, seed=number), place / f"log{number}.parquet")
    _add(place, 0, 0)
    return open_store(place / "store"), place


def _add(place: Path, log: int, day: int) -> None:
    when = FIRST_DAY + datetime.timedelta(days=day)
    options = OPTIONS if day == 0 else {}
    add_to_store(place / "arm.urdf", place / f"log{log}.parquet", place / "store", robot_id="year", day=when, **options)


def _renamed(entry: Entry, robot: str, day: int) -> Entry:
    """The same numbers as another robot's or day's."""
    digest = hashlib.sha256(f"{robot} {day}".encode()).hexdigest()
    return replace(entry, key=Key(robot, FIRST_DAY + datetime.timedelta(days=day), {}), logs=((f"{robot} {day}", digest),))


def _store(place: Path, smoke: bool) -> dict[str, Any]:
    folder = place / "year"
    folder.mkdir()
    store, _ = _new_store(folder)
    first = [_cpu(lambda n=n: _add(folder, n, n)) for n in (1, 2, 3)]
    entry = next(store.entries(["year"]))
    n_days = 20 if smoke else 365
    for day in range(4, n_days - 3):
        store.add(_renamed(entry, "year", day))
    last = [_cpu(lambda n=n: _add(folder, n, n_days - 7 + n)) for n in (4, 5, 6)]
    sizes = [path.stat().st_size for path in store.files("year")]
    n_robots, per_robot, different = (3, 4, 1) if smoke else (100, 30, 10)
    robot, base = store.run.robot, store.base
    plan = FleetPlan(robots=different, days=per_robot, seconds=4.0)
    made = list(simulated_fleet(robot, base, plan))
    for r in range(n_robots):
        for d in range(per_robot):
            store.add(_renamed(made[(r % different) * per_robot + d], robot_name(r), d))
    names = [robot_name(r) for r in range(n_robots)]
    started = time.perf_counter()
    seconds = _cpu(lambda: identify_store(store, robots=names))
    wall = time.perf_counter() - started
    judged = _cpu(lambda: judge_fleet(store, robots=names))
    return {
        "add_day_1_ms": 1e3 * float(np.median(first)),
        "add_day_365_ms": 1e3 * float(np.median(last)),
        "add_ratio": float(np.median(last) / np.median(first)),
        "bytes_per_row": float(np.mean(sizes)),
        "identify_robots": n_robots,
        "identify_rows": n_robots * per_robot,
        "identify_cpu_s": seconds,
        "identify_wall_s": wall,
        "fleet_cpu_s": judged,
    }


def _kills(place: Path, n_kills: int) -> dict[str, Any]:
    folder = place / "kills"
    folder.mkdir()
    store, _ = _new_store(folder)
    rng = random.Random(0)
    unreadable = lost = partial = reported = 0
    for _ in range(n_kills):
        before = len(list(store.files("killed")))
        command = [sys.executable, __file__, "--write-into", str(store.folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            child.stdout.readline()  # it has begun to write
            time.sleep(rng.uniform(0.0, 0.3))
            os.kill(child.pid, signal.SIGKILL)
            acknowledged = {int(line) for line in child.stdout.read().split()}
        reported += len(acknowledged)
        try:
            found = list(open_store(store.folder).entries(["killed"]))
        except Exception as error:  # whatever it is, it is what is counted
            print(error, file=sys.stderr)
            unreadable += 1
            continue
        days = {(entry.key.day - FIRST_DAY).days for entry in found}
        lost += len(acknowledged - days) + max(before - len(found), 0)
        partial += len(list((store.folder / "partial").iterdir()))
    return {
        "kills": n_kills,
        "additions_reported": reported,
        "unreadable": unreadable,
        "lost": lost,
        "cut_off_while_writing": partial,
    }


def _write_for_ever(folder: Path) -> None:
    """Add days until the process is killed; each is reported after it was added."""
    store = open_store(folder)
    entry = next(store.entries(["year"]))
    day = max(((_day_of(path) - FIRST_DAY).days for path in store.files("killed")), default=-1) + 1
    print("begun", flush=True)
    while True:
        store.add(_renamed(entry, "killed", day))
        print(day, flush=True)
        day += 1


def _day_of(path: Path) -> datetime.date:
    return datetime.date.fromisoformat(path.name[:10])


def _quick_robots(robot: Robot, base: BaseReduction, plan: FleetPlan, seed: int) -> Iterator[tuple[str, list[Entry]]]:
    """The entries of :func:`simulated_robots` with white noise, from one QR of every motion."""
    motions = [_QuickMotion(robot, base, plan, k) for k in range(plan.motions)]
    for name, days in simulated_torques(robot, plan, seed, [motion.regressor for motion in motions]):
        yield name, [motions[k].entry(key, torque) for key, k, torque in days]


class _QuickMotion:
    """One motion: rows of every channel and the weighted fit as orthonormal bases, which all torques share."""

    def __init__(self, robot: Robot, base: BaseReduction, plan: FleetPlan, number: int) -> None:
        samples = demo_samples(robot, seconds=plan.seconds, rate_hz=plan.rate_hz, seed=number)
        self.regressor = torque_regressor(robot, samples.position, samples.velocity, samples.acceleration)
        torque = self.regressor @ robot.parameters.values
        self._sigma = plan.torque_noise * np.sqrt((torque**2).mean(axis=0))
        channels = torque_channels(robot)
        self._bases = [np.linalg.qr(self.regressor[:, j][:, one.columns]) for j, one in enumerate(channels)]
        rows = np.transpose(self.regressor @ base.lift, (1, 0, 2)) / self._sigma[:, None, None]
        self._fit, _ = np.linalg.qr(rows.reshape(-1, base.n_base))
        self._n_base = base.n_base

    def entry(self, key: Key, torque: Array) -> Entry:
        """What :func:`dynid.apps.fleet.make_entry.make_entry` keeps, of torque with white noise."""
        n, n_joints = torque.shape
        weighted = (torque / self._sigma).T.ravel()
        left = (weighted - self._fit @ (self._fit.T @ weighted)).reshape(n_joints, n)
        residual = (left**2).sum(axis=1) * self._sigma**2
        freedom = np.full(n_joints, n - self._n_base / n_joints)
        triangles = []
        for j, (Q, R) in enumerate(self._bases):
            seen = Q.T @ torque[:, j]
            rest = np.linalg.norm(torque[:, j] - Q @ seen)
            triangles.append(np.block([[R, seen[:, None]], [np.zeros((1, len(R))), np.array([[rest]])]]))
        noise = [s * R.T @ R for s, (_, R) in zip(residual / freedom, self._bases, strict=True)]
        unknown = np.full(n_joints, np.nan)
        return Entry(
            key=key,
            logs=(),
            rows=(n,) * n_joints,
            triangles=tuple(triangles),
            noise=tuple(noise),
            noise_freedom=float(freedom.sum()),
            residual=residual,
            freedom=freedom,
            torque_energy=(torque**2).sum(axis=0),
            held_out_residual=unknown,
            held_out_energy=unknown,
            seconds=0.0,
        )


def _fleets(make: Any, seeds: int, days: int, robots: int) -> dict[str, Any]:
    robot = demo_robot()
    base, channels = reduce_to_base(robot), torque_channels(robot)
    events = usual_events(days)
    plan = FleetPlan(robots=robots, days=days, events=events)
    found = asked = wrong = false_alarms = 0
    delay = []
    for seed in range(seeds):
        fleet = assess(make(robot, base, plan, seed), channels, base, robot)
        own_wrong = _false(fleet, events)
        wrong += bool(own_wrong)
        false_alarms += len(own_wrong)
        for r, (event,) in events.items():
            asked += 1
            right = [change for change in fleet.changes if change.robot == robot_name(r) and _matches(change, event)]
            found += bool(right)
            delay += [abs((change.day - FIRST_DAY).days - event.day) for change in right[:1]]
        if own_wrong:
            print(f"seed {seed}: {own_wrong}", file=sys.stderr)
    return {
        "seeds": seeds,
        "fleet_robots": robots,
        "fleet_days": days,
        "events_found": found / asked,
        "day_off_mean": float(np.mean(delay)) if delay else float("nan"),
        "fleets_with_false_alarm": wrong / seeds,
        "false_alarms": false_alarms,
        "false_alarm_rate_stated": fleet.rate,
    }


def _trends(make: Any, seeds: range) -> dict[str, Any]:
    robot = demo_robot()
    base, channels = reduce_to_base(robot), torque_channels(robot)
    events = {2: (Event(11, joint=4, factor=1.44, until=29),), 3: (Event(17, joint=2, factor=1.25),)}
    plan = FleetPlan(robots=5, days=30, events=events)
    found: dict[str, list[bool]] = {"trend": [], "step": []}
    days: dict[str, list[int]] = {"trend": [], "step": []}
    sizes: dict[str, list[float]] = {"trend": [], "step": []}
    false_alarms = 0
    for seed in seeds:
        fleet = assess(make(robot, base, plan, seed), channels, base, robot)
        false_alarms += len(_false(fleet, events))
        for name, (r, (event,)) in zip(("trend", "step"), events.items(), strict=True):
            own = [change for change in fleet.changes if change.robot == robot_name(r) and _matches(change, event)]
            slow = name == "trend"
            found[name].append(len(own) == 2 and all((change.until is not None) == slow for change in own))
            days[name] += [abs((change.day - FIRST_DAY).days - event.day) for change in own]
            sizes[name] += [abs(change.difference / change.before / (event.factor - 1.0) - 1.0) for change in own]
    result: dict[str, Any] = {"trend_seeds": len(seeds), "trend_first_seed": seeds.start, "trend_false_alarms": false_alarms}
    for name in found:
        result |= {
            f"{name}_found": float(np.mean(found[name])),
            f"{name}_days_off_max": max(days[name], default=None),
            f"{name}_size_off_max": max(sizes[name], default=None),
        }
    return result


def _matches(change: Any, event: Any) -> bool:
    if event.load is not None:
        return bool(change.kind == "load")
    return bool(change.kind == "friction" and change.parameter.endswith(str(event.joint)))


def _false(fleet: Fleet, events: Any) -> list[str]:
    """Alarms on robots to which nothing happened, or on values of the others that did not change."""
    happened = {robot_name(r): event for r, (event,) in events.items()}
    wrong = [one.sentence() for one in fleet.outliers if one.robot not in happened]
    wrong += [
        change.sentence()
        for change in fleet.changes
        if change.robot not in happened or not _matches(change, happened[change.robot])
    ]
    return wrong


if __name__ == "__main__":
    main()
