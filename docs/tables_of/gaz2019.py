"""Gaz, Cognetti, Oliva, Robuffo Giordano and De Luca 2019: coefficients of the Panda, and parameters that could have them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

import dynid
from dynid.arrays import Array
from dynid.dynamics.joint_wrench import joint_wrenches
from dynid.estimation.constraints.bounds import Bounds
from dynid.estimation.constraints.conditions import Condition
from dynid.estimation.methods.retrieval_search import Retrieval
from dynid.io.robots.dh import robot_from_table
from dynid.model.inertia import mass_com_inertia, phi_from_gaz, phi_from_mass_com_inertia
from dynid.regression.static_rows import pose_regression
from dynid.signals.recording import Recording, StaticRecording
from dynid.signals.steps.clock import Decimate
from tables_of import markdown, shared, yes

_IN_CVXPY = {"bounds_repo_csv": "3.7259e-4", "bounds": "3.8597e-4"}
"""Found by ``python benchmarks/retrieval.py``; the pages do without that package."""

# Supplement V: the eight coefficients with l2 = 0.8, and the bounds of Table VII.
_TWO_LINK_COEFFICIENTS: list[dict[str, float]] = [
    {"Iyy1": 1.0, "Iyy2": 1.0, "m2": -0.64},
    {"Ixx2": 1.0, "Iyy2": -1.0, "m2": 0.64},
    {"Ixy2": 1.0},
    {"Ixz2": 1.0, "mz2": -0.8},
    {"Iyz2": 1.0},
    {"Izz2": 1.0, "m2": -0.64},
    {"m2": 0.8, "mx2": 1.0},
    {"my2": 1.0},
]
_TWO_LINK_BOUNDS = Bounds(
    {
        "m1": (0.0, 10.0),
        "m2": (0.0, 5.0),
        "c1y": (-1.42, 0.08),
        "c2x": (-0.8, 0.0),
        "total_mass": (1.0, 15.0),
        **{f"I{i}{a}{b}": (0.0 if a == b else -1.0, 1.0) for i in (1, 2) for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")},
    }
)


def static_set() -> str:
    """Reverse engineering from the table of poses, against the published coefficients."""
    poses = dynid.read_recording(shared("panda_gaz/static_mg.parquet"), _robot())
    assert isinstance(poses, StaticRecording)
    regression = pose_regression(_robot(), poses.position, poses.inertia, poses.gravity)
    found = dynid.estimate(regression, _grouping(_expected()["coefficients"]), dynid.OrdinaryLeastSquares())
    ours = dynid.reduce_to_base(_robot())
    printed = np.array([row["pi_RE"] for row in _expected()["coefficients"]], dtype=float)
    digits = np.array([row["pi_RE_7digits"] for row in _expected()["coefficients"]], dtype=float)
    known = ~np.isnan(digits)
    worst = np.abs(found.base_values - printed)
    number = int(worst.argmax())
    return markdown(
        ("", "published", "here"),
        [
            ("base coefficients, of 70 parameters", "43", f"{ours.n_base}"),
            ("rows: 28 of M and 6 of g, 1010 poses", "", f"{found.n_rows}"),
            ("condition number", "48.9", f"{found.condition_number:.3f}"),
            ("relative residual", "3.15e-4 (robot)", f"{found.relative_error:.2e} (published functions)"),
            (
                f"largest difference to the {known.sum()} values with seven digits",
                "",
                f"{np.abs(found.base_values - digits)[known].max():.1e}",
            ),
            (f"largest difference to the 43 as printed, four decimals (coefficient {number + 1})", "", f"{worst.max():.1e}"),
        ],
    )


def retrieval() -> str:
    """Cost and proven bound of the retrieved set, with both values of the disputed bound."""
    kept = _kept()
    values = np.array([row["pi_RE"] for row in kept])
    phat = float(np.sum((np.array([row["pi_of_phat"] for row in kept]) - values) ** 2))
    keys = ("bounds_repo_csv", "bounds")
    found = [_retrieved(key) for key in keys]
    return markdown(
        ("", "`c5z` from -0.35", "`c5z` from -0.05"),
        [
            ("cost of the published p-hat, printed coefficients", "", f"{phat:.3e}"),
            ("cost of p-hat, computed from its parameters", "", f"{_cost(_published('feasible_parameters_phat')):.3e}"),
            ("convex optimum, in cvxpy (benchmark)", *(_IN_CVXPY[key] for key in keys)),
            ("retrieval: cost", *(f"**{one.cost:.4e}**" for one in found)),
            ("proven lower bound", *(f"{one.lower_bound:.4e}" for one in found)),
            ("gap", *(f"{one.gap:.0e}" for one in found)),
            ("bounds and conditions violated", *(f"{len(one.violated)}" for one in found)),
            ("fully consistent", *(yes(dynid.is_consistent(one.bodies).all()) for one in found)),
            ("total mass, kg", *(f"{mass_com_inertia(one.bodies)[0].sum():.2f}" for one in found)),
        ],
    )


def torque() -> str:
    """Relative error of the torque from Newton and Euler on the exciting log, with the published friction."""
    recording = dynid.read_recording(shared("panda_gaz/exciting_traj_1.parquet"), _robot())
    assert isinstance(recording, Recording)
    steps = [
        dynid.Resample(period_s=1e-3),
        dynid.LowPass(cutoff_hz=5.0, order=4),
        dynid.Differentiate(velocity="logged"),
        Decimate(every=4),
    ]
    samples = dynid.process(recording, steps, edge_s=0.3)
    phi1, phi2, phi3 = (np.array(_expected()["friction_sigmoid"][f"phi{i}"]) for i in (1, 2, 3))
    friction = phi1 / (1.0 + np.exp(-phi2 * (samples.velocity + phi3))) - phi1 / (1.0 + np.exp(-phi2 * phi3))
    sets = {
        "p-hat, published": _published("feasible_parameters_phat"),
        "delta, published": _published("lmi_sdp_parameters_delta"),
        "retrieved, `c5z` from -0.35": _retrieved("bounds_repo_csv").bodies,
        "retrieved, `c5z` from -0.05": _retrieved("bounds").bodies,
    }
    rows = []
    for name, bodies in sets.items():
        robot = _robot().with_parameters(_robot().parameters.with_values(np.ravel(bodies)))
        tau = friction + dynid.inverse_dynamics(robot, samples.position, samples.velocity, samples.acceleration)
        errors = [np.linalg.norm(y - tau) / np.linalg.norm(y) for y in (samples.torque, samples.raw_torque)]
        worst = float(np.sqrt(np.mean((samples.torque - tau) ** 2, axis=0)).max())
        rows.append((name, f"{_cost(bodies):.3e}", *(f"{100.0 * error:.2f} %" for error in errors), f"{worst:.2f}"))
    return markdown(("set", "cost", "error, filtered torque", "as recorded", "worst joint, N m (rms)"), rows)


def two_links() -> str:
    """Supplement V: from the eight true coefficients of a 2R robot to parameters that meet all conditions."""
    robot, base = _two_links()
    coefficients = base.base_values(robot.parameters)
    method = dynid.PenaltyRetrieval(
        cost="coefficients",
        bounds=_TWO_LINK_BOUNDS,
        conditions=(Condition("gCoM1", _outside_cylinder), Condition("gCoM2", _outside_cylinder_and_cone)),
    )
    found = method.retrieve(base, coefficients)
    start = np.random.default_rng(0).normal(scale=1e5, size=20)
    free = start + base.lift @ (coefficients - base.K @ start)  # any solution: nothing but the coefficients bounds it
    t = np.arange(0.0, 10.0, 0.01)[:, None]
    w, size = np.array([1.3, 2.1]), np.array([1.0, 0.8])
    motion = size * np.sin(w * t), size * w * np.cos(w * t), -size * w**2 * np.sin(w * t)
    rows: list[list[str]] = [[] for _ in range(5)]
    for phi in (robot.parameters.values, found.standard, free):
        one = robot.with_parameters(robot.parameters.with_values(phi))
        change = dynid.inverse_dynamics(one, *motion) - dynid.inverse_dynamics(robot, *motion)
        force = np.linalg.norm(joint_wrenches(one, *motion)[..., :3], axis=-1)
        rows[0].append(f"{np.abs(base.base_values(phi) - coefficients).max():.1g}")
        rows[1].append(f"{np.abs(change).max():.1g}")
        rows[2].append(", ".join(f"{mass:.3g}" for mass in one.parameters.inertials[:, 0]))
        rows[3].append(" / ".join(f"{low:.3g} to {high:.3g}" for low, high in zip(force.min(0), force.max(0), strict=True)))
        rows[4].append(yes(dynid.is_consistent(one.parameters.inertials).all()))
    names = ("coefficients, largest difference", "torque, largest difference, N m", "masses, kg", "force in joint 1 / 2, N")
    table = [(name, *row) for name, row in zip((*names, "fully consistent"), rows, strict=True)]
    table.append(("bounds and conditions violated", "", f"{len(found.violated)}", ""))
    return markdown(("", "true", "retrieved", "bounded by nothing"), table)


def _outside_cylinder(p: Any) -> Any:
    """Link 1 along y; printed with ``c1y`` for ``c1z``."""
    return np.sqrt(p["c1x"] ** 2 + p["c1z"] ** 2) - 0.15


def _outside_cylinder_and_cone(p: Any) -> Any:
    """Link 2 along x, its last 0.2 m conical."""
    radius = 0.08 if p["c2x"] < -0.2 else 0.08 - 0.3 * (0.2 + p["c2x"])
    return np.sqrt(p["c2y"] ** 2 + p["c2z"] ** 2) - radius


@cache
def _two_links() -> tuple[dynid.Robot, dynid.BaseReduction]:
    """The true robot and the printed grouping (its sixth coefficient with ``l2^2`` for ``l2``)."""
    common = {"type": "revolute", "theta_offset": 0.0}
    joints = [
        {"name": "joint1", "a": 0.0, "alpha": 0.5 * np.pi, "d": 1.5, **common},
        {"name": "joint2", "a": 0.8, "alpha": 0.0, "d": 0.0, **common},
    ]
    robot = robot_from_table({"name": "2R", "gravity": [0.0, 0.0, -9.81], "dh_convention": "standard", "joint": joints})
    links = [
        phi_from_mass_com_inertia(8.0, [0.01, -0.75, -0.02], np.diag([0.03, 0.03, 0.01])),
        phi_from_mass_com_inertia(3.0, [-0.1, 0.0, 0.0], np.diag([0.01, 0.04, 0.04])),
    ]
    names = robot.parameters.names
    K = [[row.get(name, 0.0) for name in names] for row in _TWO_LINK_COEFFICIENTS]
    true = robot.with_parameters(robot.parameters.with_values(np.concatenate(links)))
    return true, dynid.BaseReduction.from_matrix(K, names)


@cache
def _expected() -> dict[str, Any]:
    expected: dict[str, Any] = json.loads(shared("panda_gaz/expected.json").read_text())
    return expected


@cache
def _robot() -> dynid.Robot:
    return dynid.read_robot(shared("panda_gaz/robot.toml"), "none")


def _kept() -> list[dict[str, Any]]:
    """The coefficients that the authors did not discard."""
    return [row for row in _expected()["coefficients"] if not row.get("discarded")]


def _grouping(coefficients: Sequence[dict[str, Any]]) -> dynid.BaseReduction:
    """The paper's combinations: ``J2xy`` is ``Ixy2`` here, ``mc3z`` is ``mz3``."""
    names = _robot().parameters.names
    K = np.zeros((len(coefficients), len(names)))
    for row, coefficient in zip(K, coefficients, strict=True):
        for term, factor in coefficient["terms"].items():
            ours = f"I{term[2:]}{term[1]}" if term[0] == "J" else f"m{term[3]}{term[2]}" if term[1] == "c" else term
            row[names.index(ours)] = factor
    return dynid.BaseReduction.from_matrix(K, names)


@cache
def _retrieved(key: str) -> Retrieval:
    limits = {name: (float(low), float(high)) for name, (low, high) in _expected()[key].items()}
    low, high = _expected()["total_mass_range_kg"]
    method = dynid.PenaltyRetrieval(cost="coefficients", bounds=Bounds({**limits, "total_mass": (low, high)}))
    found: Retrieval = method.retrieve(_grouping(_kept()), np.array([row["pi_RE"] for row in _kept()]))
    return found


def _published(key: str) -> Array:
    """Ten parameters per link of a printed set of masses, centres of mass and inertia about these."""
    values = _expected()[key]
    return phi_from_gaz([values[name] or 0.0 for name in _expected()["conventions"]["standard_order"]])


def _cost(bodies: Array) -> float:
    values = np.array([row["pi_RE"] for row in _kept()])
    return float(np.sum((_grouping(_kept()).K @ np.ravel(bodies) - values) ** 2))
