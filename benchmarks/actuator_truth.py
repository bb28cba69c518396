"""Actuators whose truth is known: errors, coverage of intervals, and gains that are not known, on logs simulated in MuJoCo.

A 7-joint arm (built in) and, where the folder of recordings is there, the Unitree Go2 with its base fixed. Rigid bodies move in MuJoCo
(Runge-Kutta steps of 0.25 ms) under its position actuators with a delay of 12 ms; smooth dry friction and offset act at every stage;
encoders of 14 bit and white noise of half a count, 200 Hz. Every log goes through files and ``identify_actuators`` as on the command
line.

    python benchmarks/actuator_truth.py --robot arm --logs 40

``worst``: largest relative error of one log over joints, median over logs; ``coverage``: share of 95 % intervals (value +- 1.96 sigma)
that hold the truth; ``bias`` and ``spread``: mean and standard deviation of (value - truth) / sigma over logs and joints, 0 and 1 for
intervals that are right. ``--smoke`` uses one short log.
"""

from __future__ import annotations

import measure

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from dynid.apps.actuators.identify import ActuatorRun, identify_actuators
from dynid.apps.actuators.options import ActuatorSettings
from dynid.arrays import Array
from dynid.io.demo import demo_robot
from dynid.io.robots.mjcf_new import mjcf_text
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot

DELAY_S, RATE_HZ, STEP_S, COUNT = 0.012, 200.0, 2.5e-4, 2.0 * np.pi / 2**14
WIDTH = 0.02
ASKED = {"armature": "Ia", "viscous": "fv", "coulomb": "fc", "offset": "fo"}


def arm() -> tuple[Robot, dict[str, Array], Array, Array]:
    """The built-in arm: robot, truth, gains."""
    truth = {
        "Ia": np.array([0.5, 0.5, 0.4, 0.4, 0.15, 0.15, 0.1]),
        "fv": np.array([6.0, 6.0, 4.0, 4.0, 1.5, 1.5, 1.0]),
        "fc": np.array([6.0, 6.0, 4.0, 4.0, 1.5, 1.5, 1.0]),
        "fo": np.array([0.3, -0.4, 0.2, -0.2, 0.1, 0.0, -0.1]),
    }
    kp = np.array([600.0, 600.0, 400.0, 400.0, 120.0, 120.0, 80.0])
    return demo_robot(effects="none"), truth, kp, 0.08 * kp


def go2() -> tuple[Robot, dict[str, Array], Array, Array]:
    """The Go2 on a fixed base."""
    given = os.environ.get("DYNID_SHARED_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    path = folder / "go2" / "robot.xml"
    if not path.is_file():
        sys.exit(f"{path} is not there; set DYNID_SHARED_DATA to the folder of recordings, or measure --robot arm")
    robot = read_robot(path, "none")
    n = robot.n_joints
    truth = {"Ia": np.tile([0.01, 0.012, 0.02], 4), "fv": np.tile([0.2, 0.25, 0.3], 4), "fc": np.tile([0.2, 0.3, 0.4], 4)}
    return robot, truth | {"fo": np.tile([0.05, -0.04, 0.0], 4)}, np.full(n, 20.0), np.full(n, 0.8)


def commands(robot: Robot, seconds: float, rng: np.random.Generator) -> Array:
    """Sums of sines up to 4 Hz about the middle of the range, with a few steps."""
    t, u = np.arange(round(seconds * RATE_HZ)) / RATE_HZ, []
    low, high = (np.where(np.isfinite(x), x, s) for x, s in zip(robot.position_limits.T, (-1.0, 1.0), strict=True))
    for middle in 0.5 * (low + high):
        f, phase = rng.uniform(0.15, 4.0, 6), rng.uniform(0.0, 2.0 * np.pi, 6)
        size = 0.35 * rng.uniform(0.4, 1.0, 6) / (1.0 + f)
        wave = (size * (np.sin(2.0 * np.pi * np.outer(t, f) + phase) - np.sin(phase))).sum(axis=1)
        for row in rng.integers(0, len(t), 5):
            wave[row:] += rng.choice([-0.08, 0.08])
        u.append(middle + wave)
    return np.column_stack(u)


def simulate(robot: Robot, truth: dict[str, Array], kp: Array, kd: Array, u: Array, rng: np.random.Generator) -> Array:
    """Positions as the encoders give them."""
    spec = mujoco.MjSpec.from_string(mjcf_text(robot.with_effects(()), limits=False))
    for name, stiff, damped in zip(robot.joint_names, kp, kd, strict=True):
        # an actuator acts at every stage of a step; an applied torque would be held over it, which is a latency of the feedback
        one = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        one.gaintype, one.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        one.gainprm[0], one.biasprm[:3] = stiff, [0.0, -stiff, -damped]
    model = spec.compile()
    model.opt.timestep, model.opt.integrator = STEP_S, mujoco.mjtIntegrator.mjINT_RK4
    model.dof_armature[:], model.dof_damping[:] = truth["Ia"], truth["fv"]
    state = mujoco.MjData(model)
    state.qpos[:] = u[0]

    def friction(_: Any, now: Any) -> None:
        now.qfrc_passive[:] -= truth["fc"] * np.tanh(now.qvel / WIDTH) + truth["fo"]

    # friction acts at every stage of a step too: held over it, it would come half a step late
    mujoco.set_mjcb_passive(friction)
    per_row, late = round(1.0 / RATE_HZ / STEP_S), round(DELAY_S / STEP_S)
    q = np.empty_like(u)
    for k in range(len(u)):
        q[k] = state.qpos
        for step in range(k * per_row, (k + 1) * per_row):
            state.ctrl[:] = u[max(step - late, 0) // per_row]
            mujoco.mj_step(model, state)
    mujoco.set_mjcb_passive(None)
    return np.asarray(np.round((q + 0.5 * COUNT * rng.normal(size=q.shape)) / COUNT) * COUNT)


def identified(robot: Robot, logs: list[tuple[Array, Array]], folder: Path, **settings: Any) -> ActuatorRun:
    """The run of some logs, through files."""
    paths = []
    for index, (q, u) in enumerate(logs):
        header = ",".join(["t", *(f"q.{n}" for n in robot.joint_names), *(f"q_cmd.{n}" for n in robot.joint_names)])
        paths.append(folder / f"log{index}.csv")
        t = np.arange(len(q)) / RATE_HZ
        np.savetxt(paths[-1], np.column_stack([t, q, u]), delimiter=",", header=header, comments="")
    return identify_actuators(robot, paths, ActuatorSettings(limit=(1e6,), **settings))


def main() -> None:
    """Measure and print."""
    options = measure.parser(__doc__)
    options.add_argument("--robot", choices=("arm", "go2"), default="arm")
    options.add_argument("--logs", type=int, default=40, help="simulated logs of the coverage")
    options.add_argument("--seconds", type=float, default=10.0, help="length of a log")
    arguments = options.parse_args()
    n_logs, seconds = (1, 2.0) if arguments.smoke else (arguments.logs, arguments.seconds)
    robot, truth, kp, kd = arm() if arguments.robot == "arm" else go2()
    known = {"kp": (tuple(kp),), "kd": (tuple(kd),)}
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as written:
        folder = Path(written)
        inside: dict[str, list[float]] = {name: [] for name in (*ASKED, "delay")}
        worst: dict[str, list[float]] = {name: [] for name in ("armature", "viscous", "coulomb", "delay_ms")}
        ratios: dict[str, list[Array]] = {name: [] for name in ASKED}
        cpu = []
        for seed in range(n_logs):
            rng = np.random.default_rng(seed)
            u = commands(robot, seconds, rng)
            q = simulate(robot, truth, kp, kd, u, rng)
            begun = time.process_time()
            run = identified(robot, [(q, u)], folder, **known)
            cpu.append(time.process_time() - begun)
            for word, symbol in ASKED.items():
                found = [run.value(j, symbol) for j in range(robot.n_joints)]
                errors = np.array([one[0] - x for one, x in zip(found, truth[symbol], strict=True) if one is not None])
                sigma = np.array([one[1] for one in found if one is not None])
                inside[word].append(float(np.mean(np.abs(errors) <= 1.96 * sigma)))
                ratios[word].append(errors / sigma)
                if word in worst:
                    worst[word].append(float(np.max(np.abs(errors) / truth[symbol])))
            delay = run.as_json()["delay_s"]
            inside["delay"].append(float(abs(delay["value"] - DELAY_S) <= 1.96 * delay["sigma"]))
            worst["delay_ms"].append(1e3 * abs(delay["value"] - DELAY_S))
            print(f"log {seed + 1} of {n_logs}: {cpu[-1]:.1f} s", file=sys.stderr)
        result |= {f"worst_{name}": float(np.median(values)) for name, values in worst.items()}
        result |= {f"worst_{name}_of_all_logs": float(np.max(values)) for name, values in worst.items()}
        result |= {f"coverage_{name}": float(np.mean(values)) for name, values in inside.items()}
        for name, parts in ratios.items():
            found_ratios = np.concatenate(parts)
            result[f"bias_{name}"], result[f"spread_{name}"] = float(found_ratios.mean()), float(found_ratios.std())
            if len({len(part) for part in parts}) == 1:
                result[f"bias_{name}_by_joint"] = np.mean(parts, axis=0).round(2).tolist()
                result[f"spread_{name}_by_joint"] = np.std(parts, axis=0).round(2).tolist()
        shares = np.repeat([1.0, 1.0 / robot.n_joints], [len(ASKED), 1])
        result["coverage"] = float(np.average([np.mean(values) for values in inside.values()], weights=shares))
        result["cpu_seconds_per_log"] = float(np.median(cpu))
        blind = identified(robot, [(q, u)], folder)
        result["inseparable_with_unknown_gains"] = [list(names) for names in blind.separability.inseparable]
        rng = np.random.default_rng(1000)
        other = commands(robot, seconds, rng)
        second = simulate(robot, truth, 2.0 * kp, 2.0 * kd, other, rng)
        wrong = 0.7  # the numbers given are this share of the true gains
        both = {name: (tuple(wrong * x), tuple(2.0 * wrong * x)) for name, x in (("kp", kp), ("kd", kd))}
        apart = identified(robot, [(q, u), (second, other)], folder, gains="scale", **both)
        result["inseparable_with_two_gains"] = [list(names) for names in apart.separability.inseparable]
        result["worst_with_two_gains"] = max(
            float(np.max(np.abs(apart.model.values[s] / truth[s] - 1.0))) for s in ("Ia", "fv", "fc")
        )
        result["worst_gain_with_two_gains"] = max(
            float(np.max(np.abs(wrong * apart.model.values[s] - 1.0))) for s in ("kp", "kd")
        )
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
