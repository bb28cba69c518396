"""CPU seconds of the main command, as a user pays them: imports, reading, choices, fit, exports and report together.

Each command runs twice in a process of its own and the second run counts (kernels are then cached); user and system time of
``dynid --help`` is taken off. On the Panda's log (Gaz and others 2019): ``--friction linear``, ``--friction auto``, and
``dynid report`` of the latter. Simulated: 8 joints and 5,870 rows with friction chosen, the same with two BLAS threads beside a
busy process, and 60 joints and 2,000 samples by ordinary least squares, in this process from samples to estimate.
"""

from __future__ import annotations

import measure

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb
from dynid.model.effects.effect import Effect
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.inertia import phi_from_principal
from dynid.model.joint import Joint
from dynid.model.robot import Robot, make_robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples

EIGHT_ROWS, EIGHT_HZ = 5_870, 100.0
SIXTY_SAMPLES = 2_000


def chain(n_links: int, effects: list[Effect], seed: int = 0) -> Robot:
    """A serial arm whose neighbouring axes are parallel or at right angles, with bodies of random shape."""
    rng = np.random.default_rng(seed)
    joints, bodies = [], []
    for i in range(n_links):
        turn = rng.choice([0.0, 0.5 * np.pi, -0.5 * np.pi])
        pose = np.eye(4)
        pose[1:3, 1:3] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        pose[:3, 3] = [rng.uniform(0.0, 0.1), 0.0, rng.uniform(0.0, 0.3)]
        screw = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        nominal = {"fv": 1.0, "fc": 1.0, "fo": 0.05, "Ia": 0.1}
        joints.append(Joint(f"joint{i + 1}", "revolute", i - 1, pose, screw, nominal=nominal))
        mass = rng.uniform(0.5, 5.0)
        axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        axes[:, 0] *= np.linalg.det(axes)
        bodies.append(phi_from_principal(mass, rng.uniform(-0.2, 0.2, 3), axes, mass * rng.uniform(0.01, 0.15, 3) ** 2))
    return make_robot(f"arm{n_links}", joints, bodies, effects=effects)


def motion(n_joints: int, time_s: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of five sines on every joint: position, velocity and acceleration."""
    rng = np.random.default_rng(seed)
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)[:, None] * rng.uniform(0.8, 1.2, (5, n_joints))
    size, phase = rng.uniform(0.1, 0.4, (5, n_joints)), rng.uniform(0.0, 2.0 * np.pi, (5, n_joints))
    angle = w * time_s[:, None, None] + phase
    parts = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    q, v, a = (part.sum(axis=1) for part in parts)
    return q, v, a


def write_log(folder: Path, rows: int) -> tuple[Path, Path]:
    """Description and simulated log of an arm with 8 joints, encoders of 2^17 counts per turn and noise on torque."""
    robot = chain(8, [Viscous(), SmoothCoulomb(smooth_width=0.02), Offset(), Armature()])
    time_s = np.arange(rows) / EIGHT_HZ
    q, v, a = motion(8, time_s)
    torque = inverse_dynamics(robot, q, v, a)
    torque += 0.01 * torque.std(axis=0) * np.random.default_rng(1).normal(size=torque.shape)
    step = 2.0 * np.pi / 2**17
    recording = Recording(time=time_s, position=np.round(q / step) * step, torque=torque, joint_names=robot.joint_names)
    return write_urdf(robot, folder / "arm8.urdf").path, write_recording(recording, folder / "arm8.parquet")


def cpu_s(arguments: list[str], runs: int, threads: int = 1) -> float:
    """User and system seconds of the last of several runs of a command."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is not compiled at every start
    found = 0.0
    for _ in range(runs):
        process = subprocess.Popen(
            [sys.executable, "-m", "dynid", *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        messages = process.stderr.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"dynid {' '.join(arguments)} ended with {process.returncode}: {messages[-2000:]}")
        found = used.ru_utime + used.ru_stime
    return found


def beside_busy_process(arguments: list[str], runs: int) -> float:
    """The same with two BLAS threads while another process keeps every core but one busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(max(1, (os.cpu_count() or 2) - 1))]
    try:
        return cpu_s(arguments, runs, threads=2)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def sixty_joints_s(n_links: int, n_samples: int) -> float:
    """CPU seconds of ordinary least squares, from samples to an estimate with its covariance."""
    robot = chain(n_links, [Viscous(), Coulomb(), Offset(), Armature()])
    q, v, a = motion(n_links, np.arange(n_samples) / 100.0)
    torque = inverse_dynamics(robot, q, v, a)
    torque += 0.01 * np.random.default_rng(2).normal(size=torque.shape)
    samples = Samples(time=np.arange(n_samples) / 100.0, position=q, velocity=v, acceleration=a, torque=torque)
    build_regression(robot, samples[:20])  # kernels are loaded
    started = time.process_time()
    estimate(build_regression(robot, samples), reduce_to_base(robot), OrdinaryLeastSquares())
    return time.process_time() - started


def panda_log() -> tuple[Path, Path] | None:
    """Description and log in ``DYNID_SHARED_DATA`` or ``../shared/data`` beside the repository; None where there is none."""
    here = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("DYNID_SHARED_DATA", here.parent / "shared" / "data")) / "panda_gaz"
    log = folder / "exciting_traj_1.parquet"
    return (folder / "robot.toml", log) if log.is_file() else None


def panda_figures(robot: Path, log: Path, folder: Path, runs: int, idle_s: float) -> dict[str, float]:
    """The commands on the Panda's log."""
    found = {}
    for friction in ("linear", "auto"):
        command = ["identify", str(robot), str(log), "--friction", friction, "-o", str(folder / friction)]
        found[f"{friction}_s"] = cpu_s(command, runs) - idle_s
    found["auto_over_linear"] = found["auto_s"] / found["linear_s"]
    found["report_s"] = cpu_s(["report", str(folder / "auto")], runs) - idle_s
    return found


def main() -> None:
    """All figures."""
    arguments = measure.parser(__doc__).parse_args()
    runs = 1 if arguments.smoke else 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        idle_s = cpu_s(["--help"], runs)
        result: dict[str, float] = {"help_s": idle_s}
        panda = panda_log()
        if panda is None:
            print("no recording of the Panda was found, set DYNID_SHARED_DATA: its figures are left out", file=sys.stderr)
        elif not arguments.smoke:
            result |= panda_figures(*panda, folder, runs, idle_s)
        robot, log = write_log(folder, 1_500 if arguments.smoke else EIGHT_ROWS)
        command = ["identify", str(robot), str(log), "--friction", "auto", "-o", str(folder / "eight")]
        result["eight_joints_s"] = cpu_s(command, runs) - idle_s
        result["two_threads_busy_s"] = beside_busy_process(command, 1) - idle_s
        result["two_threads_ratio"] = result["two_threads_busy_s"] / result["eight_joints_s"]
        result["sixty_joints_s"] = sixty_joints_s(*((12, 300) if arguments.smoke else (60, SIXTY_SAMPLES)))
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
