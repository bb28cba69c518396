"""Designed motions against the published ones, on the published robots.

    gk_r30, gk_r15    condition number of the energy model through 31 and 16 optimal points (Gautier and Khalil 1992: 11 and 53),
                      designed for it alone (lambda2 = 0)
    gk_r30_default*   the same with the default weight of the scaling S (Gautier and Khalil 1992: 11 with S = 175)
    wam               condition number of 20 s with 5 harmonics within the published trajectory's envelope (Sousa 2014: 97 to 99)
    panda             the same for 13.33 s within the arm's limits, without rotor inertia (the motion of Gaz 2019 without noise: 95.4)
    wam_for_accuracy  the same, designed for the parameters' variances (criterion trace) instead of the condition number
    *_better          sqrt(trace((W^T W)^-1)) of the median of 20 random motions within the same limits over that of the design

The robots are those of the shared data folder (``DYNID_SHARED_DATA``); without it the built-in arm stands for all, under its own key.
``--sweep FILE`` also draws Table 2 of Gautier and Khalil, condition number over rows, as a figure.
"""

from __future__ import annotations

import measure

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from dynid.excitation.criteria import condition_number, scaling_of
from dynid.excitation.excitation_result import Excitation, base_regressor
from dynid.excitation.limits import limits_of
from dynid.excitation.points import design_points
from dynid.excitation.search import search_excitation
from dynid.excitation.shapes import FourierShape, random_fourier
from dynid.io.demo import demo_robot
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base


def shared_root() -> Path | None:
    """The folder with the published robots, if it is there."""
    candidates = [os.environ.get("DYNID_SHARED_DATA"), Path(__file__).resolve().parents[2] / "shared" / "data"]
    return next((Path(one) for one in candidates if one is not None and Path(one).is_dir()), None)


def better_than_random(found: Excitation, robot: Robot, period_s: float, harmonics: int) -> float:
    """How many times larger the standard error of a median random motion is."""
    errors = []
    for seed in range(20):
        motion = random_fourier(robot, period_s, harmonics, seed=seed, fraction=1.0)
        singular = np.linalg.svd(base_regressor(robot, found.base, motion), compute_uv=False)
        errors.append(float(np.sqrt((1.0 / singular**2).sum())))
    return float(np.median(errors)) / found.trace_of_inverse


def periodic(
    name: str, robot: Robot, period_s: float, harmonics: int, seconds: float, starts: int, criterion: str = "condition"
) -> dict[str, Any]:
    """Design a Fourier motion and judge it."""
    began = time.perf_counter()
    shape = FourierShape(period_s, harmonics)
    found = search_excitation(
        robot,
        reduce_to_base(robot),
        shape,
        criterion=criterion,
        seconds=seconds,
        starts=starts,
        limits=limits_of(robot),
        rest=False,
    )
    spent = time.perf_counter() - began
    return {
        name: found.condition_number,
        f"{name}_seconds": spent,
        f"{name}_smallest_margin": found.margins.smallest,
        f"{name}_better": better_than_random(found, robot, period_s, harmonics),
    }


def points(robot: Robot, smoke: bool) -> dict[str, Any]:
    """Design motions through 31 and 16 points."""
    result: dict[str, Any] = {}
    began = time.perf_counter()
    for rows in (30, 15):
        design = design_points(robot, rows, lambda2=0.0, starts=1 if smoke else 2)
        result[f"gk_r{rows}"] = condition_number(design.energy_rows)
        result[f"gk_r{rows}_scaling"] = scaling_of(design.energy_rows)
    result["gk_seconds"] = time.perf_counter() - began
    design = design_points(robot, 30, starts=1 if smoke else 2)
    W = design.energy_rows
    result |= {"gk_r30_default": condition_number(W), "gk_r30_default_scaling": scaling_of(W)}
    return result


def sweep(robot: Robot, path: Path) -> None:
    """Table 2: condition number over the number of rows, of random sequences and of designed ones, as an SVG file."""
    from dynid.excitation.points_problem import energy_rows_of
    from dynid.report.figure import Figure, figure_svg
    from dynid.report.panel import Axis, Curve, Panel

    base = reduce_to_base(robot)
    counts = np.array([15.0, 20.0, 30.0, 50.0, 100.0, 200.0])
    low, high = robot.position_limits.T
    rng = np.random.default_rng(0)
    drawn, designed = [], []
    for rows in counts.astype(int):
        values = []
        for _ in range(10):
            q = rng.uniform(low, high, (rows + 1, robot.n_joints))
            v = rng.uniform(-1.0, 1.0, q.shape) * robot.limits("dq_max")
            values.append(condition_number(energy_rows_of(robot, base, q, v)))
        drawn.append(float(np.mean(values)))
        designed.append(condition_number(design_points(robot, int(rows), lambda2=0.0).energy_rows))
        print(f"r = {rows}: random {drawn[-1]:.4g}, designed {designed[-1]:.4g}")
    curves = []
    for name, x, y, role in (
        ("random points, mean of 10", counts, np.array(drawn), "measured"),
        ("published optimum (Table 2)", np.array([15.0, 20.0, 30.0]), np.array([53.0, 30.0, 11.0]), "data"),
        ("designed, played within all limits", counts, np.array(designed), "predicted"),
    ):
        curves.append(Curve(name, x, y, role))  # type: ignore[arg-type]
        curves.append(Curve(name, x, y, role, "points", width=6.0))  # type: ignore[arg-type]
    panel = Panel("", Axis("rows r", log=True), Axis("condition number of W", log=True), tuple(curves))
    caption = "Three-joint arm of Gautier and Khalil 1992, energy model, 15 base parameters."
    figure = Figure("rows", "Condition number over the number of rows", caption, (panel,), "grid", 300, columns=1)
    path.write_text(figure_svg(figure), encoding="utf-8")


def main() -> None:
    """Measure and print."""
    options = measure.parser(__doc__)
    options.add_argument("--seconds", type=float, default=60.0, help="time budget of each periodic design")
    options.add_argument("--only", choices=("gk", "wam", "panda"), help="one robot alone")
    options.add_argument("--sweep", type=Path, metavar="FILE", help="draw condition number over rows into this SVG file")
    arguments = options.parse_args()
    root = shared_root()
    result: dict[str, Any] = {}
    seconds, starts = (8.0, 2) if arguments.smoke else (arguments.seconds, 36)
    if root is None:
        result |= periodic("demo", demo_robot(), 20.0, 5, seconds, starts)
        measure.print_result(result, arguments.json)
        return
    if arguments.only in (None, "gk"):
        arm = read_robot(root / "robots" / "gautier_khalil_3r.toml", effects="none")
        result |= points(arm, arguments.smoke)
        if arguments.sweep is not None:
            sweep(arm, arguments.sweep)
    if arguments.only in (None, "wam"):
        wam = read_robot(root / "robots" / "wam7.toml")
        result |= periodic("wam", wam, 20.0, 5, seconds, starts)
        result |= periodic("wam_for_accuracy", wam, 20.0, 5, seconds, min(starts, 12), "trace")
    if arguments.only in (None, "panda"):
        panda = read_robot(root / "panda_gaz" / "robot.toml", effects="viscous,coulomb,offset")
        result |= periodic("panda", panda, 13.33, 5, seconds, starts)
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
