"""Sousa and Cortesao 2014: feasibility of base parameters, on their three-link example and on the WAM."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np

import dynid
from dynid.arrays import Array
from dynid.estimation.constraints.base import Constraint
from dynid.estimation.constraints.bodies import CentreOfMassInBox, TotalMass
from dynid.excitation.trajectories import FourierTrajectory
from tables_of import markdown, shared

# Table 1: combination; beta_t1, beta_t2 and the corrected beta_t2 as printed.
_TABLE_1: list[tuple[dict[str, float], float, float, float]] = [
    ({"L1yy": 1, "L2yy": 1, "L3yy": 1, "m3": 1}, 6.4, 6.2, 6.200951),
    ({"L2xx": 1, "L2yy": -1, "m3": -1}, -5.48, -5.48, -5.479049),
    ({"L2xy": 1}, 0.072, 0.072, 0.071966),
    ({"L2xz": 1, "l3z": -1}, -0.087, -0.087, -0.086967),
    ({"L2yz": 1}, 0.051, 0.051, 0.050999),
    ({"L2zz": 1, "m3": 1}, 5.6, 5.6, 5.600000),
    ({"l2x": 1, "m3": 1}, 6.5, 6.5, 6.500000),
    ({"l2y": 1}, -0.00075, -0.00075, -0.000750),
    ({"L3xx": 1, "L3yy": -1}, -0.72, -0.72, -0.719049),
    ({"L3xy": 1}, -0.0098, -0.0098, -0.009819),
    ({"L3xz": 1}, -0.0098, -0.0098, -0.009817),
    ({"L3yz": 1}, -0.00045, -0.00045, -0.000450),
    ({"L3zz": 1}, 0.72, 0.72, 0.720000),
    ({"l3x": 1}, 0.95, 0.95, 0.949999),
    ({"l3y": 1}, 0.015, 0.015, 0.014966),
]
_T1, _T2, _T2_PRINTED = (np.array([row[i] for row in _TABLE_1]) for i in (1, 2, 3))
# Table 8: OLS, BPFC, FBPE-OLS, FBPE-OLS with extra constraints; condition number of the recorded motion (5.2).
_TABLE_8 = {
    "identification": ((6.60, 6.68, 6.64, 6.65), 99),
    "validation A": ((7.16, 7.14, 7.01, 6.98), 94),
    "validation B": ((8.47, 8.49, 8.44, 8.40), 106),
    "validation C": ((6.81, 6.79, 6.76, 6.74), 101),
}
_MOTIONS = dict(zip(_TABLE_8, ("traj1", "traj2", "traj3", "traj4"), strict=True))
# Of the size of Table 6; the noise makes the error that of Table 8.
_EFFECTS = {
    "fv": (1.63, 2.37, 0.86, 0.62, 0.146, 0.144, 0.058),
    "fc": (1.6, 0.53, 0.35, 0.63, 0.036, 0.064, 0.012),
    "fo": (0.01, 0.9, -0.1, 0.05, 0.005, -0.007, -0.002),
    "Ia": (0.2, 0.26, 0.07, 0.02, 0.003, 0.003, 0.0005),
}
_NOISE = 0.45
_SEEDS = 8
_MARGIN = 1e-6


def verdicts() -> str:
    """Test and correction of both vectors of Table 1, under either condition."""
    base, rows = _three_links(), []
    printed = {("t1", "plain"): ("feasible", ""), ("t2", "plain"): ("infeasible", "1.65e-3")}
    for vector, beta in (("t1", _T1), ("t2", _T2)):
        for condition in ("plain", "full"):
            test = dynid.feasibility(base, beta, condition, margin=_MARGIN)
            near = dynid.closest_feasible(base, beta, condition, margin=_MARGIN)
            verdict, distance = printed.get((vector, condition), ("", ""))
            found = "feasible" if test.feasible else "infeasible"
            rows.append(
                (f"{vector}, {condition}", verdict, found, f"{test.min_eigenvalue:.2e}", distance, f"{near.distance:.3e}")
            )
    header = ("vector, condition", "printed", "here", "smallest eigenvalue", "distance printed", "distance here")
    return markdown(header, rows)


def table_1() -> str:
    """Both vectors and the corrected second one."""
    base = _three_links()
    plain = dynid.closest_feasible(base, _T2, "plain", margin=_MARGIN).base
    full = dynid.closest_feasible(base, _T2, "full", margin=_MARGIN).base
    columns = zip(base.expressions(), _T1, _T2, _T2_PRINTED, plain, full, strict=True)
    rows = [(f"`{name}`", f"{t1:g}", f"{t2:g}", *(f"{value:.6f}" for value in rest)) for name, t1, t2, *rest in columns]
    difference = f"**{np.abs(plain - _T2_PRINTED).max():.1e}**"
    rows.append(("largest difference to the printed correction", "", "", "", difference, ""))
    return markdown(("combination", "t1", "t2", "corrected, printed", "corrected, here", "here, full condition"), rows)


def table_3() -> str:
    """Combinations of more than one parameter, as printed and as found."""
    robot, base = _wam()
    published = json.loads(shared("tables/sousa2014_table3_table6.json").read_text())["rows"]
    rows, equal = [], 0
    for number, entry in enumerate(published):
        K = np.zeros(base.n_parameters)
        for name, factor in entry["terms"].items():
            K[robot.parameters.index(_our_name(name))] = factor
        found = int(np.abs(base.K - K).max(axis=1).argmin())
        difference = float(np.abs(base.K[found] - K).max())
        equal += difference <= 1e-12
        if number in (0, 7, 10, 17, 31, 36, 53):
            rows.append((f"{number + 1}", f"`{entry['expression']}`", f"`{base.expression(found)}`", f"{difference:.0e}"))
    count = f"**{equal} of {len(published)} equal to 1e-12**"
    rows.append(("all", f"{len(published)} combinations of 98", f"{base.n_base} of {base.n_parameters}", count))
    return markdown(("number", "printed", "here", "largest difference of a coefficient"), rows, words=3)


def condition_numbers() -> str:
    """Unscaled and with columns of length one; the same motion under another grouping."""
    robot, base = _wam()
    printed = json.loads(shared("tables/sousa2014_table5.json").read_text())
    two_decimals = FourierTrajectory(20.0, *(np.array(printed[key]) for key in ("a", "b", "q0")))
    rows = [("Table 5, two decimals", "", *_condition(robot, base, two_decimals))]
    for name, trajectory in _MOTIONS.items():
        rows.append((f"{name}, full precision", f"{_TABLE_8[name][1]}", *_condition(robot, base, _trajectory(trajectory))))
    other = dynid.reduce_to_base(robot, order=robot.parameters.names)
    rows.append(("Table 5, grouped with mass first", "", *_condition(robot, other, two_decimals)))
    return markdown(("motion", "recorded motion, printed", "condition number", "scaled columns"), rows)


def table_8() -> str:
    """Median relative error over the seeds, least squares against what stays feasible; printed figures beside."""
    robot, base = _wam()
    given: dict[str, Any] = {"margin": _MARGIN, "absolute": True, "robot": robot}
    errors, feasible, positive = [], [], []
    for seed in range(_SEEDS):
        rng = np.random.default_rng(seed)
        data = [_regression(name, rng) for name in _MOTIONS.values()]
        ols = dynid.estimate(data[0], base, dynid.OrdinaryLeastSquares(covariance="classical")).base_values
        solutions = [
            ols,
            dynid.closest_feasible(base, ols, "plain", **given).base,
            dynid.estimate(data[0], base, _method()).base_values,
            dynid.estimate(data[0], base, _method(constraints=_extra_constraints())).base_values,
        ]
        tests = [dynid.feasibility(base, beta, "plain", **given) for beta in solutions]
        feasible.append([test.feasible for test in tests])
        positive.append([100.0 * test.mass_matrix.positive_share for test in tests if test.mass_matrix is not None])
        errors.append([[100.0 * _relative_error(part, base, beta) for beta in solutions] for part in data])
    median = np.median(errors, axis=0)
    gain = np.median(np.array(errors)[:, :, :1] - errors, axis=0)
    rows: list[tuple[str, ...]] = []
    for (name, (printed, _)), ours, gained in zip(_TABLE_8.items(), median, gain, strict=True):
        rows.append((f"{name}, printed", *(f"{value:.2f}" for value in printed)))
        rows.append((f"{name}, simulated", *(f"{value:.3f}" for value in ours)))
        rows.append((f"{name}, gain over OLS on the same log", "", *(f"{value:+.4f}" for value in gained[1:])))
    rows.append((f"feasible, of {_SEEDS} logs", *(f"{count}" for count in np.sum(feasible, axis=0))))
    rows.append(("positions with $M(q) \\succ 0$, %", *(f"{share:.0f}" for share in np.mean(positive, axis=0))))
    return markdown(("error of torque, %", "OLS", "BPFC", "FBPE-OLS", "FBPE-OLS, extra constraints"), rows)


def growing_masses() -> str:
    """What the pull towards the unconstrained solution is worth, in fit and in masses."""
    robot, base = _wam()
    data = _regression("traj1", np.random.default_rng(0))
    rows = []
    for pull in (1e-2, 1e-4, 1e-6, 1e-8, 0.0):
        found = dynid.estimate(data, base, _method(pull))
        masses = found.standard.inertials[:, 0]
        error = 100.0 * _relative_error(data, base, found.base_values)
        rows.append((f"pull {pull:g}", f"{error:.5f}", *(f"{mass:.1f}" for mass in masses[:4]), f"{masses.sum():.1f}"))
    for name, method in (
        ("boxes and 27 kg of Table 7", _method(constraints=_extra_constraints())),
        ("full condition, entropic prior", dynid.FeasibleSDP(prior="entropic", covariance="classical")),
    ):
        found = dynid.estimate(data, base, method)
        masses = found.standard.inertials[:, 0]
        error = 100.0 * _relative_error(data, base, found.base_values)
        rows.append((name, f"{error:.5f}", *(f"{mass:.1f}" for mass in masses[:4]), f"{masses.sum():.1f}"))
    masses = robot.parameters.inertials[:, 0]
    rows.append(("true robot (CAD)", "", *(f"{mass:.1f}" for mass in masses[:4]), f"{masses.sum():.1f}"))
    return markdown(("estimate", "error of torque, %", "m1, kg", "m2", "m3", "m4", "all seven"), rows)


@cache
def _three_links() -> dynid.BaseReduction:
    """The grouping of Yoshida and Khalil; parameters that it does not name are free."""
    names = sorted({name for terms, *_ in _TABLE_1 for name in terms})
    return dynid.BaseReduction.from_matrix([[terms.get(name, 0.0) for name in names] for terms, *_ in _TABLE_1], names)


@cache
def _wam() -> tuple[dynid.Robot, dynid.BaseReduction]:
    """The WAM with CAD bodies, and friction and rotors of the size of Table 6."""
    robot = dynid.read_robot(shared("robots/wam7.toml"))
    values = {f"{symbol}{i + 1}": value for symbol, row in _EFFECTS.items() for i, value in enumerate(row)}
    return robot.with_parameters(values), dynid.reduce_to_base(robot)


def _our_name(name: str) -> str:
    """``L_2xy -> Ixy2``, ``l_3y -> my3``, ``fv_1 -> fv1``."""
    symbol, rest = name.split("_")
    return {"L": "I", "l": "m"}.get(symbol, symbol) + rest[1:] + rest[0]


def _trajectory(name: str) -> FourierTrajectory:
    """A published motion: (78) is the series that dynid uses too."""
    record = json.loads(shared("wam7/fourier.json").read_text())["trajectories"][name]
    return FourierTrajectory(record["period_s"], *(np.array(record[key]) for key in ("a", "b", "q0")))


def _condition(robot: dynid.Robot, base: dynid.BaseReduction, motion: FourierTrajectory) -> tuple[str, str]:
    samples = motion.samples(100.0)
    Y = dynid.torque_regressor(robot, samples.position, samples.velocity, samples.acceleration)
    W = Y.reshape(-1, base.n_parameters) @ base.lift
    R = np.linalg.qr(W, mode="r")  # has W's singular values, and its columns' lengths
    return f"{np.linalg.cond(R):.1f}", f"{np.linalg.cond(R / np.linalg.norm(R, axis=0)):.1f}"


def _regression(name: str, rng: np.random.Generator) -> dynid.Regression:
    """One period at 50 Hz, torque from the true robot with white noise."""
    robot, _ = _wam()
    made = _trajectory(name).samples(50.0)
    tau = dynid.inverse_dynamics(robot, made.position, made.velocity, made.acceleration)
    noisy = tau + _NOISE * rng.normal(size=tau.shape)
    return dynid.build_regression(
        robot, dynid.Samples(made.time, made.position, made.velocity, made.acceleration, torque=noisy)
    )


def _method(pull: float = 1e-4, constraints: tuple[Constraint, ...] = ()) -> dynid.FeasibleSDP:
    """FBPE-OLS as in the paper: plain condition, margin 1e-6 in SI units."""
    return dynid.FeasibleSDP(
        condition="plain",
        margin=_MARGIN,
        absolute=True,
        regularization=pull,
        constraints=constraints,
        covariance="classical",
    )


@cache
def _extra_constraints() -> tuple[Constraint, ...]:
    """Table 7: boxes of the centres of mass, and the total mass."""
    table = json.loads(shared("tables/sousa2014_table7.json").read_text())
    boxes = zip(table["lower"], table["upper"], strict=True)
    return (
        *(CentreOfMassInBox(i, tuple(low), tuple(high)) for i, (low, high) in enumerate(boxes, start=1)),
        TotalMass(upper=table["max_total_mass_kg"]),
    )


def _relative_error(data: dynid.Regression, base: dynid.BaseReduction, beta: Array) -> float:
    rows = data.stacked(base)
    return float(np.linalg.norm(rows[:, -1] - rows[:, :-1] @ beta) / np.linalg.norm(rows[:, -1]))
