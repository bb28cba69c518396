"""What written files are worth: robots of known truth, identified, written, and loaded by Pinocchio, MuJoCo and an SDF reader.

Truth is Pinocchio's (``truth_arms.py``, ``truth_world.py``, ``truth_mechanisms.py``): bodies, rotors, viscous and Coulomb friction. The
log is a motion of 24 s with noise on position and torque; the description has masses off by 15 %, and that of the SCARA none at all (a DH
table). The description of the UR10 is MJCF, that of the Z1 SDF, those of the delta and the palletiser tables. Per format:

    error      torque of the file against the true robot on 200 random states in the range of the log, relative, worst joint in brackets
    best       the same of the best model that the format can hold: least squares of the true torque on its own columns (rigid-body
               regressor of Pinocchio, speed, sign of the speed, and accelerations where it has rotors), and the error of the estimate
    ratio      error over best, at most 1.5
    drift      joints held by the true gravity torque, friction off, for 0.5 s in MuJoCo: file against the estimate in memory, degrees
               and mm; the offset of a slide stays, because it could be weight
    ready      what the verdict says, and what the truth says on the same unseen samples in the band that the run is judged in (5 % of
               every joint's torque)

    python benchmarks/written_files.py [ROBOT ..] [--seed N] [--smoke] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import scipy.signal

import dynid
from dynid.io.robots.proof import load_file
from truth_arms import Arm, arm_named
from truth_mechanisms import FILES, Mechanism, mechanism_named
from truth_world import World, build_world, reference

ROBOTS = (
    "scara", "rail", "panda_hand", "ur10e", "ur10", "quadruped", "delta", "palletiser", "z1", "tiago", "kinova", "ur5", "xarm7",
    "planar2",
)  # fmt: skip
SECONDS, RATE_HZ, NOISE = 24.0, 200.0, 0.01
READY = 0.05
END_S = 0.3
"""Dropped at both ends of what is low-passed, as the run does."""
DH = {"scara": ((0.0, 0.3), (0.4, 0.0), (0.35, 0.0), (0.0, -0.1))}
"""``a`` and ``d`` of arms whose joint frames differ by a shift alone: they are described by a table without inertials."""


MJCF, SDF = ("ur10",), ("z1",)
"""Robots whose description is of that format; MuJoCo writes the one, dynid the other."""


def true_robot(name: str, rng: np.random.Generator) -> World | Mechanism:
    """The robot as it is, without offsets of torque."""
    if name in FILES:
        return mechanism_named(name)
    world = build_world(arm_named(name), "linear", rng)
    return replace(world, friction=replace(world.friction, fo=np.zeros(world.arm.n)))


def described(arm: Arm, folder: Path) -> Path:
    """The description that a run is given: a data sheet, or a bare table."""
    if arm.name not in DH:
        path = folder / f"{arm.name}.urdf"
        path.write_text(arm.described(np.random.default_rng(3)).urdf)
        if arm.name in MJCF:
            model = mujoco.MjModel.from_xml_path(str(path))
            path = folder / "described.xml"
            mujoco.mj_saveLastXML(str(path), model)
        elif arm.name in SDF:
            path = dynid.write_sdf(dynid.read_robot(path), folder / "described.sdf").path
        return path
    lines = [f'name = "{arm.name}"', "gravity = [0.0, 0.0, -9.81]", 'dh_convention = "modified"']
    for body, (a, d) in zip(arm.bodies, DH[arm.name], strict=True):
        kind = "prismatic" if body.prismatic else "revolute"
        lines += ["[[joint]]", f'name = "{body.name}"', f'type = "{kind}"', f"a = {a}", "alpha = 0.0", f"d = {d}"]
        lines += ["theta_offset = 0.0", f"q_min = {body.low}", f"q_max = {body.high}", f"dq_max = {body.speed}"]
    path = folder / f"{arm.name}.toml"
    path.write_text("\n".join(lines))
    return path


def recorded(
    world: World | Mechanism, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], tuple[np.ndarray, ...], np.ndarray]:
    """The log, and the true motion and torque behind it."""
    t = np.arange(0.0, SECONDS, 1.0 / RATE_HZ)
    states = reference(world, "usual", 0, rng, t)
    tau = world.torque(*states)
    noise = NOISE * np.sqrt((tau**2).mean(axis=0))
    turn = 2.0 * np.pi / 2**20
    q = np.round(states[0] / turn) * turn
    return {"t": t, "q": q, "tau": tau + noise * rng.normal(size=tau.shape)}, states, tau


def file_torque(path: Path, run: Any, world: World | Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Torque of a file by the library of its format, nothing of the proofs of dynid used, but for the SDF of a closed robot."""
    if path.suffix == ".sdf":
        if isinstance(world, Mechanism):  # its joints count from where the loops close in the file
            return load_file("sdf", run.model, path).torque(q, v, a)
        return dynid.inverse_dynamics(dynid.read_robot(path, effects="viscous,coulomb"), q, v, a)
    if isinstance(world, World):
        return np.sum(tree_torque(path, [body.name for body in world.arm.bodies], q, v, a), axis=0)
    motion = world.tree(q, v, a)
    states = (motion.position, motion.velocity, motion.acceleration)
    rigid, rubbing = tree_torque(path, [joint.name for joint in world.robot.joints], *states)
    driven = [number - 1 for number in world.robot.driven_numbers]
    return np.einsum("sij,sj->si", world.projections(motion), rigid) + rubbing[:, driven]


def tree_torque(path: Path, names: list[str], q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Torque of bodies and rotors, and of friction, of the joints of these names in a file; closures of loops do not act."""
    rigid = np.empty_like(v)
    if path.suffix == ".urdf":
        model = pin.buildModelFromUrdf(str(path))
        data, joints = model.createData(), [model.joints[model.getJointId(name)] for name in names]
        own_q, own_v, own_a = np.zeros((len(q), model.nq)), np.empty_like(v), np.empty_like(a)
        for k, joint in enumerate(joints):
            turned = [q[:, k]] if joint.nq == 1 else [np.cos(q[:, k]), np.sin(q[:, k])]
            own_q[:, joint.idx_q : joint.idx_q + joint.nq] = np.transpose(turned)
            own_v[:, joint.idx_v], own_a[:, joint.idx_v] = v[:, k], a[:, k]
        order = [joint.idx_v for joint in joints]
        for k, state in enumerate(zip(own_q, own_v, own_a, strict=True)):
            rigid[k] = pin.rnea(model, data, *state)[order]
        return rigid, model.damping[order] * v + model.friction[order] * np.sign(v)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, places = mujoco.MjData(model), [model.joint(name) for name in names]
    at_q, at_v = (np.array([getattr(place, where)[0] for place in places]) for where in ("qposadr", "dofadr"))
    for k in range(len(q)):
        data.qpos[at_q], data.qvel[at_v], data.qacc[at_v] = q[k], v[k], a[k]
        mujoco.mj_inverse(model, data)
        rigid[k] = data.qfrc_inverse[at_v]
    return rigid, model.dof_frictionloss[at_v] * np.sign(v)


def rigid_rows(world: World | Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Columns of the bodies in the torque, by Pinocchio."""
    if isinstance(world, Mechanism):
        return world.rows(q, v, a)
    model = world.arm.model
    data = model.createData()
    return np.array([pin.computeJointTorqueRegressor(model, data, *one) for one in zip(q, v, a, strict=True)])


def best_held(world: World | Mechanism, rotors: bool, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Torque of the model nearest to the truth that a format can hold, by least squares joint by joint weighted alike."""
    eye = np.eye(world.arm.n)
    own = [v[:, :, None] * eye, np.sign(v)[:, :, None] * eye, *([a[:, :, None] * eye] if rotors else [])]
    W = np.concatenate([rigid_rows(world, q, v, a), *own], axis=2)
    true = world.torque(q, v, a)
    weight = 1.0 / np.sqrt((true**2).mean(axis=0))
    found = np.linalg.lstsq((W * weight[:, None]).reshape(-1, W.shape[2]), (true * weight).ravel(), rcond=1e-10)[0]
    return W @ found


def in_band(hz: float | None, *torques: np.ndarray) -> list[np.ndarray]:
    """Torque below a frequency, without the ends, where a filter has its transient."""
    if hz is None:
        return list(torques)
    low = scipy.signal.butter(4, hz, fs=RATE_HZ, output="sos")
    end = round(END_S * RATE_HZ)
    return [scipy.signal.sosfiltfilt(low, torque, axis=0)[end:-end] for torque in torques]


def errors(found: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    """Relative error over all joints, each relative to its own torque, and of the worst."""
    each = np.sqrt(((found - true) ** 2).mean(axis=0) / (true**2).mean(axis=0))
    return float(np.sqrt((each**2).mean())), float(each.max())


def drifted(path: Path, run: Any, world: World | Mechanism) -> tuple[float, float]:
    """Largest angle (degrees) and way (mm) by which the file falls apart from the estimate, held by the true gravity torque for 0.5 s."""
    q, h = world.centre.copy(), 1e-3
    still = np.zeros((1, len(q)))
    names, start = [body.name for body in world.arm.bodies], q
    hold = world.torque(q[None], still, still)[0] - world.friction.sliding(still)[0]
    if isinstance(world, Mechanism):
        names, start = list(world.robot.opened.joint_names), world.tree(q[None], still, still).position[0]
    held = mujoco.MjModel.from_xml_path(str(path))
    held.dof_damping[:] = held.dof_frictionloss[:] = 0.0
    held.opt.timestep, held.opt.integrator = h, mujoco.mjtIntegrator.mjINT_RK4
    held.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    data, driven = mujoco.MjData(held), [held.joint(joint.name).dofadr[0] for joint in run.robot.driven_joints]
    for name, x in zip(names, start, strict=True):
        data.qpos[held.joint(name).qposadr[0]] = x
    data.qfrc_applied[driven] = hold
    for _ in range(500):
        mujoco.mj_step(held, data)
    there = data.qpos[[held.joint(joint.name).qposadr[0] for joint in run.robot.driven_joints]]
    frictionless = run.model.with_effects([one for one in run.model.effects if one.name in ("offset", "armature")])
    names = frictionless.parameters.names
    kept = {k: x for k, x in run.model.parameters.as_dict().items() if k in names}
    for j, body in zip(run.robot.driven_numbers, world.arm.bodies, strict=True):
        if not body.prismatic:  # an offset of a turning joint is friction; in a slide it could be weight
            kept[f"fo{j}"] = 0.0
    frictionless = frictionless.with_parameters(kept)
    own = run.changed(estimate=run.estimate)
    vars(own)["model"] = frictionless
    x, v = q[None].copy(), np.zeros((1, len(q)))
    for _ in range(500):  # the midpoint rule: motion of half a second needs no more
        a = own.forward_dynamics(x, v, hold[None])
        middle = own.forward_dynamics(x + 0.5 * h * v, v + 0.5 * h * a, hold[None])
        x, v = x + h * (v + 0.5 * h * a), v + h * middle
    gap = np.abs(there - x[0])
    slides = np.array([body.prismatic for body in world.arm.bodies])
    return float(np.rad2deg(gap[~slides].max(initial=0.0))), float(1e3 * gap[slides].max(initial=0.0))


def measured(name: str, folder: Path, seed: int = 7) -> dict[str, Any]:
    """One robot from the log to its files."""
    rng = np.random.default_rng(seed)
    world = true_robot(name, rng)
    arm = world.arm
    log, states, tau = recorded(world, rng)
    description = world.described(folder) if isinstance(world, Mechanism) else described(arm, folder)
    run = dynid.identify(description, log, dynid.Settings(split=0.65))
    if isinstance(world, World):
        assert list(run.robot.joint_names) == [body.name for body in arm.bodies]
    run.save(folder / "run", formats=["urdf", "mjcf", "sdf"])
    low, high = states[0].min(axis=0), states[0].max(axis=0)
    fast, pull = np.abs(states[1]).max(axis=0), np.quantile(np.abs(states[2]), 0.99, axis=0)
    draws = np.random.default_rng(1)
    q = draws.uniform(low, high, (200, arm.n))
    v, a = draws.uniform(-fast, fast, q.shape), draws.uniform(-pull, pull, q.shape)
    true = world.torque(q, v, a)
    estimate = errors(run.predict(q, v, a), true)
    (judged,) = run.unseen
    unseen = np.searchsorted(log["t"], judged.time - 0.5 / RATE_HZ)  # the very samples that the verdict is on
    record: dict[str, Any] = {"robot": name, "grade": run.verdict.grade, "estimate": estimate[0], "formats": {}}
    for grade in run.verdict.files:
        path = folder / "run" / grade.path
        error = errors(file_torque(path, run, world, q, v, a), true)
        best = errors(best_held(world, grade.format == "mjcf", q, v, a), true)
        bound = float(np.hypot(best[0], estimate[0]))
        on_log = errors(
            *in_band(run.judged_hz, file_torque(path, run, world, *(one[unseen] for one in states)), tau[unseen])
        )
        record["formats"][grade.format] = {
            "error": error[0],
            "worst": error[1],
            "best": bound,
            "ratio": error[0] / bound,
            "ready": grade.ready,
            "deserves": on_log[1] <= READY,
            "on_log": on_log[1],
        }
        if grade.format == "mjcf":
            record["drift_deg"], record["drift_mm"] = drifted(path, run, world)
    return record


def main() -> None:
    """Measure every robot and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two robots alone")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("robots", nargs="*", help="of those known; all without any")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    records = []
    for name in options.robots or (ROBOTS[:2] if options.smoke else ROBOTS):
        with tempfile.TemporaryDirectory() as folder:
            try:
                records.append(measured(name, Path(folder), options.seed))
            except FileNotFoundError as absent:
                sys.stderr.write(f"skipped: {absent}\n")
                continue
        if not options.json:
            sys.stdout.write(line(records[-1]))
            sys.stdout.flush()
    if not records:
        sys.exit("no robot was measured")
    every = [one for record in records for one in record["formats"].values()]
    found = {
        "robots": records,
        "ratio_max": max(one["ratio"] for one in every),
        "drift_deg_max": max(record["drift_deg"] for record in records),
        "drift_mm_max": max(record["drift_mm"] for record in records),
        "ready_agrees": sum(one["ready"] == one["deserves"] for one in every) / len(every),
    }
    if options.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        told = {name: value for name, value in found.items() if name != "robots"}
        sys.stdout.write(f"{told}\n")


def line(record: dict[str, Any]) -> str:
    """A row of the table in ``docs/files.md``."""
    cells = []
    for one in record["formats"].values():
        agrees = "" if one["ready"] == one["deserves"] else f" (true: {'yes' if one['deserves'] else 'no'})"
        cells.append(
            f"{100 * one['error']:.2f} / {100 * one['best']:.2f} = {one['ratio']:.2f}, {'yes' if one['ready'] else 'no'}{agrees}"
        )
    drift = f"{record['drift_deg']:.3f}, {record['drift_mm']:.2f}"
    return f"| {record['robot']} | {record['grade']} | {100 * record['estimate']:.2f} | {' | '.join(cells)} | {drift} |\n"


if __name__ == "__main__":
    main()
