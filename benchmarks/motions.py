"""Motions that are safe to play: 30 designs on 15 robots, each written, read again and held against every limit by other means.

Each robot gets a motion by the defaults of ``dynid excite`` and one among a table, a ceiling and a box. ``motion_check.py`` reads the
written table and counts limits that are broken, contacts, and distances below those that the design states. Robots come from
example-robot-data and ``examples/robots``; a SCARA arm, a rail and a gripper with a mimic joint are written here.
"""

from __future__ import annotations

import measure

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import motion_check
from dynid import design_excitation, read_robot, write_motion
from dynid.errors import DynidError
from dynid.excitation.trajectories import Trajectory
from dynid.signals.samples import Samples

OWN = Path(__file__).parents[1] / "examples" / "robots"
BODY = '<inertial><origin xyz="{com}"/><mass value="{mass}"/><inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial>'


@dataclass(frozen=True)
class Case:
    """A robot, options that its description makes necessary, and what stands around it."""

    name: str
    path: str
    options: dict[str, Any] = field(default_factory=dict)
    cell: dict[str, Any] = field(default_factory=dict)
    lock: dict[str, float] = field(default_factory=dict)


ARM_CELL = {"ceiling": 1.4, "box": ("0.55,0.35,0.1,0.2,0.2,0.2",)}
LEGS = {
    f"{leg}_{part}": value
    for leg in ("FR", "RL", "RR")
    for part, value in (("hip_joint", 0.0), ("thigh_joint", 0.9), ("calf_joint", -1.8))
}
CASES = (
    Case("panda", "panda_description/urdf/panda.urdf", cell=ARM_CELL),
    Case("ur5", "ur_description/urdf/ur5_joint_limited_robot.urdf", cell=ARM_CELL),
    Case("ur10", "ur_description/urdf/ur10_joint_limited_robot.urdf", cell={"ceiling": 1.8, "box": ("0.8,0.5,0.15,0.3,0.3,0.3",)}),
    Case("xarm7", "xarm_description/urdf/xarm7.urdf", cell=ARM_CELL),
    Case("z1", "z1_description/urdf/z1.urdf", cell={"ceiling": 1.0, "box": ("0.4,0.3,0.1,0.2,0.2,0.2",)}),
    Case("kinova", "kinova_description/robots/kinova.urdf", cell={"ceiling": 1.3, "wall": ("x=0.8",)}),
    Case("so101", "so_arm_description/urdf/so101.urdf", {"clearance": 0.02}, {"ceiling": 0.6, "box": ("0.2,0.25,0.1,0.1,0.1,0.2",)}),
    Case("go2", "go2_description/urdf/go2.urdf", {"ground": -0.45, "lock": LEGS}, {"ceiling": 0.5, "wall": ("y=0.6",)}),
    Case("scara", "scara.urdf", cell={"ceiling": 1.0, "box": ("0.3,0.4,0.1,0.2,0.2,0.2",)}),
    Case("rail", "rail.urdf", cell={"ceiling": 1.2, "box": ("0.7,0.5,0.2,0.2,0.2,0.4",)}),
    Case("gripper", "gripper.urdf", {"move": ("all",)}, {"ceiling": 1.0, "box": ("0.45,0.3,0.1,0.1,0.2,0.2",)}),
    Case("four_bar", "four_bar.toml", {"ground": "none"}, {"ceiling": 0.6}),
    Case("five_bar", "five_bar.toml", {"ground": "none"}, {"wall": ("x=1.2",)}),
    Case("parallelogram", "parallelogram_arm.toml", cell={"ceiling": 2.2, "box": ("1.2,0.9,0.3,0.3,0.3,0.6",)}),
    Case("delta", "delta_rl5.toml", cell={"ceiling": 0.5, "plane": ("0,0,1,-1.3",)}),
)  # fmt: skip
SMOKE = ("scara", "four_bar")
DELTAS = ("delta_rl5.toml", "delta_rl5_lumped.toml")
PROMISED = ("panda", "ur10", "xarm7", "kinova", "so101", "scara", "rail", "z1", "parallelogram", "five_bar")
"""Robots on which the promises of a design are held against an identification."""
NOISE = 0.01
"""Torque noise of simulated logs, of each joint's torque."""
ROTOR = 0.03
"""Rotor inertia of simulated drives at the joint, kg m^2 or kg: that of a geared servo. Descriptions have none, and without it friction of
0.3 N m holds the last joints of small arms, so that they do not follow the motion."""
STANDSTILL_S = 2.0
"""Standstill at both ends of a log, as the experiment card asks for it: what identification drops there is no part of the motion."""


def main() -> None:
    """Design, write, check and print."""
    arguments = measure.parser(__doc__)
    arguments.add_argument("--only", help="names of robots, separated by commas")
    arguments.add_argument("--seconds", type=float, default=8.0, help="time for each design")
    arguments.add_argument("--points", action="store_true", help="motions through points of both delta robots alone")
    arguments.add_argument("--promises", action="store_true", help="the promises of designs alone")
    arguments.add_argument("--noise", type=float, default=NOISE, help="torque noise of the promises, of each joint's torque")
    arguments.add_argument("--coulomb", type=float, default=0.3, help="Coulomb friction of the promises, N m or N")
    arguments.add_argument(
        "--rotor", type=float, default=ROTOR, help="rotor inertia of the promises at the joint, kg m^2 or kg"
    )
    arguments.add_argument("--logs", type=int, default=8, help="simulated logs of each robot for its promises; 0 for none")
    options = arguments.parse_args()
    if options.points:
        measure.print_result({"points": [points_of(name, options.seconds) for name in DELTAS]}, options.json)
        return
    names = options.only.split(",") if options.only else SMOKE if options.smoke else [case.name for case in CASES]
    result: dict[str, Any] = {"robots": 0, "motions": 0, "violations": 0, "refused": 0}
    rows = []
    with TemporaryDirectory() as folder:
        write_robots(Path(folder))
        for case in (case for case in CASES if case.name in names):
            result["robots"] += 1
            for among in () if options.promises else (False, True):
                row = one_motion(case, among, Path(folder), 1.0 if options.smoke else options.seconds)
                rows.append(row)
                result["motions"] += "refused" not in row
                result["violations"] += len(row.get("violations", ()))
                result["refused"] += "refused" in row
                if not options.json:
                    print(json.dumps(row), flush=True)
        promises = [
            promised(
                case,
                Path(folder),
                1.0 if options.smoke else options.seconds,
                options.noise,
                options.coulomb,
                options.rotor,
                2 if options.smoke else options.logs,
            )
            for case in CASES
            if case.name in names and case.name in PROMISED and options.logs
        ]
    result["condition_numbers"] = [row.get("condition_number") for row in rows]
    result["promises"] = promises
    measure.print_result(result, options.json)


def one_motion(case: Case, among: bool, folder: Path, seconds: float, rate_hz: float = 500.0) -> dict[str, Any]:
    """A designed motion and what the check found."""
    path = robot_path(case, folder)
    row: dict[str, Any] = {"robot": case.name, "among": among}
    lock = case.options.get("lock", {})
    own = {name: value for name, value in case.options.items() if name != "lock"}
    robot = read_robot(path, ("viscous", "coulomb", "offset", "armature"), None, lock)
    try:
        found = design_excitation(
            robot, period=10.0, harmonics=4, seconds=seconds, starts=3, rate=rate_hz, engine="serial",
            seed=int(among), **own, **(case.cell if among else {}),
        )  # fmt: skip
    except DynidError as error:
        return row | {"refused": str(error)}
    table = write_motion(found.playable, folder / f"{case.name}_{among}.csv", rate_hz=rate_hz)
    checked = check(found, robot, path, table, lock)
    return row | {
        "condition_number": found.condition_number,
        "clearance_m": checked.clearance_m,
        "violations": checked.violations,
        "seconds": found.seconds,
    }


def promised(
    case: Case,
    folder: Path,
    seconds: float,
    noise: float,
    coulomb: float,
    rotor: float,
    logs: int,
    rate_hz: float = 500.0,
) -> dict[str, Any]:
    """Condition number and deviations that a design promises, beside those of identifications of simulated logs with friction.

    ``stated`` are the deviations that identification states, ``scattered`` those of its values from log to log, both over the promised
    ones, the latter root mean square over all parameters (of eight logs of one parameter alone it would itself scatter by a quarter);
    ``biased`` is the mean distance of the values from the truth, in promised deviations; ``not_followed`` how far the robot was from the
    motion, root mean square of the worst joint as a share of its range: what is not followed is another motion than was promised.
    ``condition_ratio`` is of an identification with the effects of the design on the rows of the motion; everything else, and
    ``default_condition_ratio``, of one by default options, which chooses friction and keeps what it keeps of the standstill, on the
    logs where its friction has the same columns.
    """
    from dynid import identify
    from dynid.dynamics.simulate import with_effect
    from dynid.excitation.prediction import DEFAULT_NOISE, predict_sigmas, torque_noise_of
    from dynid.pipeline.options import Settings
    from dynid.pipeline.simulate import simulate_log
    from dynid.signals.steps.filters import EDGE_S

    robot = read_robot(
        robot_path(case, folder), ("viscous", "coulomb", "offset", "armature"), None, case.options.get("lock", {})
    )
    own = {name: value for name, value in case.options.items() if name != "lock"}
    found = design_excitation(robot, period=10.0, seconds=seconds, starts=3, rate=rate_hz, engine="serial", **own)
    model = with_effect(with_effect(with_effect(found.robot, "viscous", 0.5), "coulomb", coulomb), "armature", rotor)
    table = write_motion(with_standstill(found.playable, rate_hz), folder / f"{case.name}.csv")
    rubbing = replace(found, robot=model)  # its torque, of which the noise is one percent, has friction too
    torque_noise = noise / DEFAULT_NOISE * torque_noise_of(rubbing)
    promise = np.array([one.sigma for one in predict_sigmas(rubbing, torque_noise, rate_hz)])
    truth = found.base.K @ model.parameters.values
    away, conditions, estimates = [], [], []
    end_s = STANDSTILL_S + found.playable.duration_s
    as_designed = Settings(method="wls", friction="linear", from_s=STANDSTILL_S - EDGE_S, to_s=end_s + EDGE_S)
    for seed in range(1, logs + 1):
        log = folder / f"{case.name}.parquet"
        _, played = simulate_log(model, table, log, rate_hz=rate_hz, torque_noise=noise, encoder_bits=0, seed=seed)
        error = np.sqrt(((played.position - played.reference_position) ** 2).mean(axis=0))
        away.append(float((error / np.ptp(played.reference_position, axis=0)).max()))
        conditions.append(identify(model, [log], as_designed).estimate.condition_number)
        estimates.append(identify(model, [log], Settings(method="wls")).estimate)
    estimates = [one for one in estimates if one.base.names == found.base.names]
    values, stated = np.array([one.base_values for one in estimates]), np.array([one.sigma for one in estimates]) / promise
    return {
        "robot": case.name,
        "design_condition": found.condition_number,
        "played_condition": found.played_condition_number,
        "condition_ratio": float(np.median(conditions) / found.played_condition_number),
        "not_followed": float(np.median(away)),
        "logs": len(estimates),
        "default_condition_ratio": float(
            np.median([one.condition_number for one in estimates]) / found.played_condition_number
        ),
        "stated": float(np.median(stated)),
        "stated_10_90": np.quantile(stated, (0.1, 0.9)).tolist(),
        "scattered": float(np.sqrt((np.var(values, axis=0, ddof=1) / promise**2).mean())),
        "scattered_median": float(np.median(np.std(values, axis=0, ddof=1) / promise)),
        "biased": float(np.sqrt((((values.mean(axis=0) - truth) / promise) ** 2).mean())),
    }


def with_standstill(motion: Trajectory, rate_hz: float, seconds: float = STANDSTILL_S) -> Samples:
    """The motion with the standstill before and after it that the experiment card asks for."""
    rows = motion.samples(rate_hz)
    n = round(seconds * rate_hz)
    position = np.pad(rows.position, ((n, n), (0, 0)), mode="edge")
    velocity, acceleration = (np.pad(part, ((n, n), (0, 0))) for part in (rows.velocity, rows.acceleration))
    return replace(
        rows, time=np.arange(len(position)) / rate_hz, position=position, velocity=velocity, acceleration=acceleration
    )


def points_of(name: str, seconds: float) -> dict[str, Any]:
    """A motion through points of a delta robot: its energy rows by other means, and its limits and distances."""
    robot = read_robot(OWN / name, "none")
    found = design_excitation(robot, shape="points", seconds=seconds, starts=1, rate=500.0, engine="serial")
    times = found.trajectory.point_times_s
    rows, gap = motion_check.energy_rows(found.robot, *(found.trajectory.derivative(times, order) for order in (0, 1)))
    singular = np.linalg.svd(found.base.regressor(rows), compute_uv=False)
    stated = found.as_json()["condition_number"]
    with TemporaryDirectory() as folder:
        table = write_motion(found.playable, Path(folder) / "points.csv", rate_hz=500.0)
        violations = check(found, robot, OWN / name, table, {}).violations
    return {
        "robot": robot.name,
        "condition_number": stated,
        "off_by": float(singular[0] / singular[-1] / stated - 1.0),
        "loop_gap": gap,
        "violations": violations,
    }


def check(found: Any, robot: Any, path: Path, table: Path, lock: dict[str, float]) -> motion_check.Found:
    """The written table against what the design states."""
    kept, shapes = found.limits.clearance, found.limits.clearance.shapes
    boxes = {
        name: (np.array(one.geometry.halfSide), np.array(one.placement.homogeneous))
        for name, one, obstacle in zip(shapes.owners, shapes.geometry.geometryObjects, shapes.obstacles, strict=True)
        if obstacle
    }
    pairs = {frozenset(pair): float(least) for pair, least in zip(kept.pairs, kept.least, strict=True)}
    moved = found.robot.joint_names
    held: dict[str, Any] = dict(lock) | {
        joint.name: 0.0 if joint.q_min <= 0.0 <= joint.q_max else 0.5 * (joint.q_min + joint.q_max)
        for joint in robot.moving_joints
        if joint.name not in moved
    }
    stated = motion_check.Stated(moved, found.limits.acceleration, found.limits.fraction, pairs, boxes, held)
    if path.suffix == ".toml":
        stated.held["shapes"] = shapes  # type: ignore[index]
        return motion_check.check_closed(found.robot, table, stated)
    packages = [str(folder) for folder in path.resolve().parents[:5]]
    return motion_check.check_urdf(path, table, stated, packages)


def robot_path(case: Case, folder: Path) -> Path:
    """Where a robot's description is."""
    for place in (folder, OWN):
        if (place / case.path).exists():
            return place / case.path
    import pinocchio

    prefix = Path(pinocchio.__file__).parents[4]
    return prefix / "share" / "example-robot-data" / "robots" / case.path


def write_robots(folder: Path) -> None:
    """The robots that no package has."""
    joints = [
        ("shoulder", "revolute", "base", "inner", "0 0 0.3", "0 0 1", -2.2, 2.2, 4.0, 60.0),
        ("elbow", "revolute", "inner", "outer", "0.3 0 0.02", "0 0 1", -2.5, 2.5, 5.0, 30.0),
        ("quill", "prismatic", "outer", "screw", "0.25 0 0", "0 0 -1", 0.0, 0.2, 1.0, 120.0),
        ("roll", "revolute", "screw", "flange", "0 0 -0.05", "0 0 1", -3.0, 3.0, 8.0, 6.0),
    ]
    bars = {"base": (0.0, "0.2 0.2 0.26", "0 0 0.13"), "inner": (4.0, "0.34 0.1 0.08", "0.15 0 0.02"),
            "outer": (2.5, "0.3 0.09 0.08", "0.12 0 0.06"), "screw": (0.6, "0.03 0.03 0.3", "0 0 0.1"),
            "flange": (0.3, "0.05 0.05 0.02", "0.01 0 -0.02")}  # fmt: skip
    write_urdf(folder / "scara.urdf", bars, joints)
    joints = [
        ("rail", "prismatic", "base", "cart", "0 0 0.25", "0 1 0", -0.6, 0.6, 1.5, 400.0),
        ("shoulder", "revolute", "cart", "upper", "0.1 0 0.1", "0 1 0", -1.2, 1.2, 2.5, 120.0),
        ("elbow", "revolute", "upper", "lower", "0.35 0 0", "0 1 0", -2.0, 2.0, 3.0, 60.0),
        ("wrist", "revolute", "lower", "hand", "0.3 0 0", "1 0 0", -2.5, 2.5, 5.0, 12.0),
    ]
    bars = {"base": (0.0, "0.2 1.6 0.1", "0 0 0.05"), "cart": (8.0, "0.2 0.2 0.1", "0 0 0"), "upper": (3.0, "0.4 0.08 0.08", "0.18 0 0"),
            "lower": (2.0, "0.3 0.07 0.07", "0.15 0 0"), "hand": (0.8, "0.1 0.06 0.06", "0.08 0.01 0")}  # fmt: skip
    write_urdf(folder / "rail.urdf", bars, joints)
    joints = [
        ("pan", "revolute", "base", "turret", "0 0 0.3", "0 0 1", -2.5, 2.5, 3.0, 60.0),
        ("lift", "revolute", "turret", "arm", "0 0 0.15", "0 1 0", -1.2, 0.9, 3.0, 60.0),
        ("left", "revolute", "arm", "left_finger", "0.42 0.06 0", "0 0 1", 0.0, 0.6, 2.0, 4.0),
        ("right", "revolute", "arm", "right_finger", "0.42 -0.06 0", "0 0 1", -0.6, 0.0, 2.0, 4.0),
    ]
    bars = {"base": (0.0, "0.2 0.2 0.2", "0 0 0.1"), "turret": (3.0, "0.15 0.15 0.1", "0 0 0.05"),
            "arm": (2.0, "0.35 0.08 0.08", "0.2 0 0"),
            "left_finger": (0.2, "0.12 0.02 0.03", "0.07 0 0"), "right_finger": (0.2, "0.12 0.02 0.03", "0.07 0 0")}  # fmt: skip
    write_urdf(folder / "gripper.urdf", bars, joints, {"right": '<mimic joint="left" multiplier="-1" offset="0"/>'})


def write_urdf(
    path: Path, bars: dict[str, tuple[float, str, str]], joints: list[Any], more: dict[str, str] | None = None
) -> None:
    """Bars with a mass, a size and a place, and the joints between them."""
    lines = [f'<robot name="{path.stem}">']
    for link, (mass, size, place) in bars.items():
        body = BODY.format(com=place, mass=mass, i=0.01 * mass) if mass else ""
        shape = f'<collision><origin xyz="{place}"/><geometry><box size="{size}"/></geometry></collision>'
        lines.append(f'<link name="{link}">{body}{shape}</link>')
    for name, kind, parent, child, place, axis, low, high, speed, effort in joints:
        lines.append(
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{place}"/><axis xyz="{axis}"/>'
            f'<limit lower="{low}" upper="{high}" velocity="{speed}" effort="{effort}"/>{(more or {}).get(name, "")}</joint>'
        )
    path.write_text("\n".join([*lines, "</robot>"]))


if __name__ == "__main__":
    main()
