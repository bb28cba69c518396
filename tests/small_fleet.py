"""A two-joint arm with logs and a store, and a small simulated fleet of it, for the tests of stores and fleets."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from dynid.apps.fleet.add import add_to_store
from dynid.apps.fleet.store import Store, open_store
from dynid.io.demo import demo_recording, demo_robot
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.robot import Robot
from fleet_simulation import Event, FleetPlan

OPTIONS = {"effects": ("viscous", "coulomb", "offset"), "friction": None, "velocity": "logged", "cutoff_hz": 15.0}
DAY = datetime.date(2026, 3, 1)
LOAD = (1.0, 0.05, 0.02, 0.0, 0.006, 0.0, 0.006, 0.0, 0.0, 0.004)


def small_robot() -> Robot:
    return demo_robot("viscous,coulomb,offset").only(["shoulder_pitch", "elbow"])


@dataclass(frozen=True)
class Shop:
    """A description, logs of three days, and a store with the first two of them as two robots' days."""

    folder: Path
    urdf: Path
    logs: tuple[Path, ...]
    store: Store


def make_shop(folder: Path) -> Shop:
    robot = small_robot()
    urdf = folder / "arm.urdf"
    write_urdf(robot, urdf)
    logs = []
    for seed in range(3):
        log = demo_recording(robot, seconds=8.0, torque_noise=0.01, seed=seed)
        logs.append(Path(write_recording(log, folder / f"log{seed}.parquet")))
    store = folder / "store"
    add_to_store(urdf, logs[0], store, robot_id="A", day=DAY, **OPTIONS)
    add_to_store(urdf, logs[1], store, robot_id="A", day=DAY + datetime.timedelta(days=1), condition={"tool": "B"})
    return Shop(folder, urdf, tuple(logs), open_store(store))


def small_plan(**changes: object) -> FleetPlan:
    """Eight robots over ten days: friction of the second joint of one, and the load of another, change on the sixth."""
    events = {2: (Event(5, joint=2, factor=1.4),), 5: (Event(5, load=LOAD),)}
    options: dict[str, object] = {"robots": 8, "days": 10, "seconds": 4.0, "motions": 2, "events": events}
    return FleetPlan(**(options | changes))  # type: ignore[arg-type]
