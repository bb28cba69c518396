"""Drive gains whose truth is known: error and coverage of every method of ``identify_gains`` on simulated currents.

The built-in arm moves with and without 3 kg on its last link. Five kinds of logs, all simulated:

* ``current``: white noise of 0.1 A in the current, motion exact,
* ``motion``: encoders of 14 bit with half a count of noise, velocity from positions, current exact,
* ``both``: both,
* ``friction``: ``both``, and friction that the model does not have (Stribeck peak of 40 % of the dry friction, and 6 % of the torque),
* ``warm``: ``both``, and 20 % less friction in the loaded log than in the other, as in a robot that has warmed up.

    python benchmarks/gains.py --logs 10

``error``: mean over logs and joints of ``K / K_true - 1``, percent; ``worst``: mean over logs of the largest absolute one;
``coverage``: share of the 95 % intervals (value +- 1.96 sigma) that hold the truth. Joints whose gain is not identifiable do not count
in the errors; ``identifiable`` is the share that is.
"""

from __future__ import annotations

import measure

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dynid.apps.gains.gains import identify_gains
from dynid.apps.gains.options import METHODS
from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.io.logs.read import write_recording
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.robot import Robot
from dynid.signals.recording import Recording

KINDS = ("current", "motion", "both", "friction", "warm")
MASS, RATE_HZ, COUNT = 3.0, 250.0, 2.0 * np.pi / 2**14
TRUE = np.array([11.0, 12.0, 11.5, 10.0, 9.5, 9.0, 9.0])
EFFECTS = "viscous,coulomb,offset,armature"


def log(folder: Path, name: str, robot: Robot, seed: int, kind: str, loaded: bool) -> Path:
    """A log of currents, with the errors of its kind."""
    rng = np.random.default_rng(1000 * seed + loaded)
    motion = random_fourier(robot, 20.0, 5, seed=2 * seed + loaded).samples(RATE_HZ)
    q, v, a = motion.position, motion.velocity, motion.acceleration
    torque = inverse_dynamics(robot, q, v, a)
    n = robot.parameters.n_inertial
    bare = robot.with_parameters(
        robot.parameters.with_values(np.where(np.arange(len(robot.parameters)) < n, robot.parameters.values, 0.0))
    )
    rigid = inverse_dynamics(bare, q, v, a)
    dry = np.array([robot.parameters[f"fc{j + 1}"] for j in range(robot.n_joints)])
    if kind == "friction":
        torque = torque + np.tanh(v / 0.02) * (0.4 * dry * np.exp(-((v / 0.15) ** 2)) + 0.06 * np.abs(rigid))
    if kind == "warm" and loaded:
        torque = torque - 0.2 * (torque - rigid)
    current = torque / TRUE
    if kind != "motion":
        current = current + 0.1 * rng.normal(size=torque.shape)
    position: Array = q if kind == "current" else COUNT * np.round((q + 0.5 * COUNT * rng.normal(size=q.shape)) / COUNT)
    made = Recording(motion.time, position, robot.joint_names, velocity=v if kind == "current" else None, current=current)
    return Path(write_recording(made, folder / f"{name}.parquet"))


def measured(kind: str, logs: int, methods: tuple[str, ...]) -> dict[str, Any]:
    """Errors and coverage of one kind of logs."""
    robot = demo_robot(effects=EFFECTS)
    values = robot.parameters.values.copy()
    last = 10 * (robot.n_joints - 1)
    values[last : last + 10] += phi_from_mass_com_inertia(MASS, [0.05, -0.02, 0.12], np.diag([0.01, 0.012, 0.008]))
    heavy = robot.with_parameters(robot.parameters.with_values(values))
    found: dict[str, list[tuple[Array, Array, Array]]] = {method: [] for method in methods}
    with tempfile.TemporaryDirectory() as place:
        for seed in range(logs):
            free = log(Path(place), "free", robot, seed, kind, False)
            loaded = log(Path(place), "loaded", heavy, seed, kind, True)
            for method in methods:
                one = identify_gains(robot, [free], [loaded], MASS, method=method)  # type: ignore[arg-type]
                found[method].append(
                    (
                        np.array([gain.value for gain in one.gains]) / TRUE - 1.0,
                        np.array([gain.sigma for gain in one.gains]) / TRUE,
                        np.array([gain.identifiable for gain in one.gains]),
                    )
                )
    result = {}
    for method, parts in found.items():
        error, sigma, good = (np.array(part) for part in zip(*parts, strict=True))
        shown = np.where(good, error, np.nan)
        result[method] = {
            "error": 100.0 * float(np.nanmean(shown)),
            "worst": 100.0 * float(np.nanmean(np.nanmax(np.abs(shown), axis=1))),
            "by_joint": (100.0 * np.nanmean(shown, axis=0)).round(2).tolist(),
            "coverage": float((np.abs(error) < 1.96 * sigma)[good].mean()),
            "identifiable": float(good.mean()),
        }
    return result


def main() -> None:
    """Print the table, or with ``--json`` one object."""
    parser = measure.parser(__doc__)
    parser.add_argument("--logs", type=int, default=10)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--methods", default=",".join(METHODS))
    given = parser.parse_args()
    logs = 1 if given.smoke else given.logs
    kinds = given.kinds.split(",")[: 1 if given.smoke else None]
    result = {kind: measured(kind, logs, tuple(given.methods.split(","))) for kind in kinds}
    flat = {
        f"{kind}_{method}_{name}": value
        for kind, methods in result.items()
        for method, numbers in methods.items()
        for name, value in numbers.items()
    }
    measure.print_result({"logs": logs, **flat}, given.json)


if __name__ == "__main__":
    main()
