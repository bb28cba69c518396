"""Robots on a floating base: rows of a humanoid past unknown contact forces, and how often intervals of a walking quadruped hold.

*Speed*: Talos with both feet flat on the ground or one of them, from samples to the triangles of all channels, against the loop that
a user would write: Pinocchio's regressor and Jacobians, NumPy's null space, and a QR of the triangle so far with the rows of the
sample (``speedup_humanoid``), or of those of 100 samples at once (``speedup_batched``). Both are timed per sample in one process.
``peak_mb`` is what 100,000 samples take more than 40,000, as they stream by; all time blocks of the triangles are there by then.

*Coverage* (``--logs N`` for each kind): Solo12 with a description that is 20 % wrong and noise on encoders, base, torque and forces,
simulated by MuJoCo: free of contacts and of gravity (where torque is small, with a tenth of the noise), with the wrench on its feet
measured, and with unknown forces; and Talos that squats on flat feet, 20 joints, in the same three ways (``humanoid_``). Share of the
95 % intervals of base parameters that hold the truth, and unseen error over that of the truth itself, both as the default command has
them. ``--noise 0`` is a log without noise, ``--wrong-flags 0.05`` turns so many flags of the feet, ``--world`` simulates and logs in
another way (soft or stiff ground, another step, accelerations differenced at 100 Hz). ``--kind imu`` gives the IMU bias and delay.
"""

from __future__ import annotations

import measure

import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.model.frames import frame_named
from dynid.model.robot import Robot
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.regression.factor import factorise
from dynid.regression.floating_rows import FloatingRows, Foot, base_states
from dynid.signals.base_motion import BaseMotion
from dynid.signals.samples import Samples
from dynid.validation.prediction import row_error

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from legged_robots import HUMANOID, HUMANOID_FEET, QUADRUPED, QUADRUPED_FEET, robot_file
from legged_simulation import Logging, Walk, World, described_wrong, floating, humanoid, quadruped, stand, walk

PIECE = 5000
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "contact_free": ({"gravity": 0.0}, {"gravity": (0.0, 0.0, 0.0)}),
    "measured_wrench": ({}, {"force_frames": QUADRUPED_FEET}),
    "unknown_forces": ({}, {"feet": QUADRUPED_FEET}),
    "humanoid_contact_free": ({"gravity": 0.0}, {"gravity": (0.0, 0.0, 0.0)}),
    "humanoid_measured_wrench": ({}, {"force_frames": HUMANOID_FEET}),
    "humanoid_unknown_forces": ({}, {"flat_feet": HUMANOID_FEET}),
}
SOLE = (0.1, 0.06, 0.01)
"""Half lengths of the humanoid's feet, m."""
SOFT = World(step_s=0.002, integrator="implicitfast", contact={"solref": "0.04 1"}, radius=0.02)
STIFF = World(step_s=0.0005, contact={"solref": "0.004 1"}, option={"cone": "elliptic"}, radius=0.01)
AFTER = World(after=True, step_s=0.002)
WORLDS = {
    "plain": Logging(),
    "derived": Logging(accelerations="none"),
    "central": Logging(accelerations="central"),
    "backward": Logging(accelerations="backward"),
    "after": Logging(AFTER),
    "soft": Logging(SOFT, accelerations="none"),
    "stiff": Logging(STIFF),
    "late": Logging(AFTER, late=1, accelerations="backward"),
}
"""Ways in which others simulate and log; ``none`` logs no accelerations."""


IMU = (*(f"{sensor} bias {axis}" for sensor in ("accelerometer", "gyroscope") for axis in "xyz"), "delay")


class Stream:
    """Random motion of a humanoid, made as it goes by."""

    def __init__(self, robot: Robot, n: int) -> None:
        self._robot, self._n = robot, n

    def __iter__(self) -> Iterator[Samples]:
        for start in range(0, self._n, PIECE):
            yield motion(self._robot, min(PIECE, self._n - start), start)


def motion(robot: Robot, n: int, start: int = 0) -> Samples:
    """Random states, with one foot or both on the ground."""
    rng = np.random.default_rng(start)
    joints = robot.n_dof - 6
    base = BaseMotion(*rng.normal(size=(3, n, 3)))
    q, v, a = base_states(robot, base, *rng.normal(size=(3, n, joints)))
    contact = np.column_stack([np.ones(n), rng.random(n) > 0.5])
    torque = np.hstack([np.zeros((n, 6)), rng.normal(size=(n, joints))])
    return Samples(0.001 * (start + np.arange(n)), q, v, a, torque=torque, contact=contact)


def reference(samples: Samples, at_once: int) -> Callable[[], object]:
    """The loop over samples that a user would write."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(robot_file(HUMANOID)), pin.JointModelFreeFlyer())
    data, ids = model.createData(), [model.getFrameId(name) for name in HUMANOID_FEET]
    assert samples.torque is not None
    assert samples.contact is not None

    def run() -> object:
        width = 10 * (model.njoints - 1) + 1
        R, held = np.zeros((0, width)), list[Any]()
        for q, v, a, tau, on in zip(
            samples.position, samples.velocity, samples.acceleration, samples.torque, samples.contact, strict=True
        ):
            Y = pin.computeJointTorqueRegressor(model, data, q, v, a)
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            J = np.vstack(
                [
                    pin.getFrameJacobian(model, data, k, pin.LOCAL_WORLD_ALIGNED)
                    for k, flag in zip(ids, on, strict=True)
                    if flag
                ]
            )
            _, s, Vt = np.linalg.svd(J)
            N = Vt[np.count_nonzero(s > 1e-9 * s[0]) :]
            held.append(N @ np.column_stack([Y, tau]))
            if len(held) == at_once:
                R, held = np.linalg.qr(np.vstack([R, *held]), mode="r"), []
        return R

    return run


def peak_mb() -> float:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def truth_of(robot: Robot, simulated: Robot, viscous: float) -> Any:
    """The parameters that a robot was simulated with, over the columns of another."""
    own = simulated.parameters.as_dict()
    values = {name: own.get(name, viscous if name.startswith("fv") else 0.0) for name in robot.parameters.names}
    return robot.with_parameters(values).parameters


def turned(columns: dict[str, Any], share: float, seed: int) -> dict[str, Any]:
    """A log with a share of the flags of its feet turned."""
    rng = np.random.default_rng(seed)
    flags = {name: x for name, x in columns.items() if name.startswith("contact_")}
    return columns | {name: np.where(rng.random(len(x)) < share, 1.0 - x, x) for name, x in flags.items()}


def simulated_log(kind: str, seed: int, noise: float, world: str) -> tuple[Walk, Robot, float]:
    """A log of one kind, the description it is identified from, and the viscous friction of its joints."""
    given = {"seed": seed, "logging": WORLDS[world], "motion_noise": noise} | KINDS[kind][0]
    effects = "viscous,coulomb,offset,armature"
    if kind.startswith("humanoid"):
        given["logging"] = replace(WORLDS[world], world=replace(WORLDS[world].world, sole=SOLE))
        return stand(torque_noise=0.5 * noise, **given), described_wrong(humanoid(effects), seed=seed), 0.5
    walked = walk(quadruped(), torque_noise=0.03 * noise, **given)
    return walked, described_wrong(floating(QUADRUPED, effects), seed=seed), 0.01


def campaign(kind: str, logs: int, noise: float = 1.0, wrong: float = 0.0, world: str = "plain") -> dict[str, float]:
    """Coverage and unseen error over logs of one kind."""
    held, ratios, masses, errors, seed = [], [], [], [], -1
    while len(held) < logs:
        seed += 1
        try:
            made, described, viscous = simulated_log(
                kind, seed, 0.1 * noise if kind.endswith("contact_free") else noise, world
            )
        except InputError:  # a humanoid that falls over makes no log
            continue
        columns = turned(made.columns, wrong, seed)
        if noise == 0.0:  # accelerometers would be exact beside accelerations that are not
            columns = {name: x for name, x in columns.items() if not name.startswith("imu")}
        run = identify(described, columns, Settings(split=0.65, **KINDS[kind][1]))
        truth = truth_of(run.robot, made.truth, viscous)
        beta, (low, high) = run.estimate.base.base_values(truth), run.intervals.T
        held.append(np.mean(((low <= beta) & (beta <= high))[run.estimate.seen]))
        assert run.row_validation is not None
        floor = row_error(run.rows.source(run.robot, run.unseen), truth).relative_error
        errors.append(run.row_validation.relative_error)
        ratios.append(errors[-1] / floor)
        if not kind.endswith("contact_free"):  # where the base may have no rows
            whole = made.truth.parameters.inertials[:, 0].sum()
            masses.append(abs(float(run.model.parameters.inertials[:, 0].sum() / whole) - 1.0))
        assert run.consistency.feasible
    return {
        f"coverage_{kind}": float(np.mean(held)),
        f"least_coverage_{kind}": float(np.min(held)),
        f"over_floor_{kind}": float(np.max(ratios)),
        f"unseen_error_{kind}": float(np.mean(errors)),
        f"mass_error_{kind}": float(np.max(masses, initial=0.0)),
    }


def imu_campaign(logs: int) -> dict[str, float]:
    """How often intervals of bias and delay of an IMU hold, those of base parameters beside them, and how often errors are undone where
    there are none; half of the logs have no other motion of the base."""
    held, params, undone, noisy = [], [], [], {"torque_noise": 0.03, "motion_noise": 1.0}
    for seed in range(logs):
        rng, alone = np.random.default_rng(1000 + seed), seed % 2 == 0
        errors = *(0.15 * rng.normal(size=3)).tolist(), *(0.01 * rng.normal(size=3)).tolist()
        delay_s = 0.001 * float(rng.integers(0, 8))
        for logging in (Logging(imu_bias=errors, imu_delay_s=delay_s), Logging()):
            made = walk(quadruped(), seed=seed, logging=logging, **noisy)
            columns = {name: x for name, x in made.columns.items() if not (alone and name.startswith("base_"))}
            described = described_wrong(floating(QUADRUPED, "viscous,coulomb,offset,armature"), seed=seed)
            run = identify(described, columns, Settings(split=0.65, feet=QUADRUPED_FEET))
            assert run.calibration is not None
            truth = dict(zip(IMU, (*logging.imu_bias, logging.imu_delay_s), strict=True))
            for one in run.calibration:
                assert one.lower is not None
                assert one.upper is not None
                held.append(one.lower <= truth[one.quantity] <= one.upper)
            if logging.imu_delay_s == 0.0 and not any(logging.imu_bias):
                undone.append(any(one.undone for one in run.calibration))
            else:
                beta, (low, high) = run.estimate.base.base_values(truth_of(run.robot, made.truth, 0.01)), run.intervals.T
                params.append(np.mean(((low <= beta) & (beta <= high))[run.estimate.seen]))
    return {
        "coverage_imu": float(np.mean(held)),
        "imu_intervals": len(held),
        "undone_without_errors": float(np.mean(undone)),
        "coverage_with_imu_errors": float(np.mean(params)),
    }


def main() -> None:
    """Measure and print."""
    parser = measure.parser(__doc__)
    parser.add_argument("--logs", type=int, default=20, help="logs of each kind whose intervals are counted")
    parser.add_argument("--samples", type=int, default=100_000, help="samples of the humanoid")
    parser.add_argument("--kind", choices=(*KINDS, "imu"), help="one kind of logs alone, and no timing")
    parser.add_argument("--noise", type=float, default=1.0, help="size of all noise, 1 as usual; with --kind")
    parser.add_argument("--wrong-flags", type=float, default=0.0, help="share of the flags that are turned; with --kind")
    parser.add_argument(
        "--world", choices=tuple(WORLDS), default="plain", help="how walks are simulated and logged; with --kind"
    )
    options = parser.parse_args()
    if options.kind == "imu":
        measure.print_result(imu_campaign(options.logs), options.json)
        return
    if options.kind is not None:
        found = campaign(options.kind, options.logs, options.noise, options.wrong_flags, options.world)
        measure.print_result(found, options.json)
        return
    logs, total, few, loops = (1, 2000, 1000, 20) if options.smoke else (options.logs, options.samples, 40_000, 200)
    robot = floating(HUMANOID)
    feet = tuple(Foot(frame_named(robot, name), flat=True) for name in HUMANOID_FEET)
    factorise(FloatingRows(robot, (Stream(robot, few),), feet))
    before = peak_mb()
    ours = measure.median_time(lambda: factorise(FloatingRows(robot, (Stream(robot, total),), feet)), 1, 0) / total
    result = {"samples": total, "joints": robot.n_dof - 6, "peak_mb": peak_mb() - before, "microseconds": 1e6 * ours}
    small = motion(robot, loops)
    for name, at_once in (("speedup_humanoid", 1), ("speedup_batched", min(100, loops))):
        result[name] = measure.median_time(reference(small, at_once), 1, 0) / loops / ours
    for kind in KINDS if logs else ():
        result |= campaign(kind, logs)
    if logs:
        result["coverage"] = float(np.mean([result[f"coverage_{kind}"] for kind in KINDS]))
    measure.print_result(result, options.json)


if __name__ == "__main__":
    main()
