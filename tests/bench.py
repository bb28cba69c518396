"""One simulated arm with its description and logs, for the tests of whole runs and of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dynid.dynamics.simulate import simulate
from dynid.excitation.motion_files import write_motion
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.robot import Robot

PLAIN: tuple[object, ...] = ("--cutoff-hz", 10, "--friction", "linear", "--export", "json")
"""Options of a run whose bands, friction and exports are not what is tested."""


@dataclass(frozen=True)
class Bench:
    """A four-joint arm, its URDF, two logs of it and a short motion."""

    truth: Robot
    urdf: Path
    log: Path
    other_log: Path
    motion: Path


def make_bench(folder: Path) -> Bench:
    truth = demo_robot().only(["shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow"])
    urdf = folder / "arm.urdf"
    write_urdf(truth, urdf)
    logs = []
    for seed in (1, 2):
        reference = random_fourier(truth, 6.0, 4, seed=seed).samples(250.0)
        result = simulate(truth, reference, rate_hz=250.0, seed=seed)
        logs.append(Path(write_recording(result.recording, folder / f"log{seed}.parquet")))
    motion = Path(write_motion(random_fourier(truth, 3.0, 3, seed=3).samples(100.0), folder / "motion.csv"))
    return Bench(truth, urdf, logs[0], logs[1], motion)
