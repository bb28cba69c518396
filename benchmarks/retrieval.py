"""Retrieval of the Panda's feasible parameters (Gaz and others 2019): cost, optimum, time, violated constraints.

41 kept coefficients of the supplement's Table III, its bounds (both values of the disputed one of ``c5z``), total mass 16 to
20 kg, full consistency with margin 1e-7. ``optimum`` is that of the convex program written in cvxpy; ``published_cost``
that of the printed coefficients of the published parameters. ``annealing_*`` is the paper's own Algorithm 1, one start.
With ``--tables`` the supplement's tables III, IV, VIII and IX with our columns, as Markdown.
"""

from __future__ import annotations

import measure

import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.constraints.bounds import Bounds
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.estimation.methods.retrieval_search import Retrieval
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.io.logs.read import read_recording
from dynid.io.robots.read import read_robot
from dynid.model.inertia import PSEUDO_BASIS, gaz_from_phi, phi_from_gaz
from dynid.regression.base import BaseReduction
from dynid.regression.factor import build_regression
from dynid.regression.static_rows import pose_regression
from dynid.signals.process import process
from dynid.signals.recording import Recording, StaticRecording
from dynid.signals.samples import Samples
from dynid.signals.steps.clock import Decimate, Resample
from dynid.signals.steps.filters import Differentiate, LowPass

MARGIN = 1e-7


def data_folder() -> Path | None:
    """``DYNID_SHARED_DATA`` or ``../shared/data`` beside the repository; None where absent."""
    here = Path(__file__).resolve().parent.parent
    for candidate in (os.environ.get("DYNID_SHARED_DATA"), here.parent / "shared" / "data"):
        if candidate is not None and (Path(candidate) / "panda_gaz").is_dir():
            return Path(candidate) / "panda_gaz"
    return None


def our_name(term: str) -> str:
    """``J2xy`` is our ``Ixy2``, ``mc3z`` our ``mz3``."""
    if term[0] == "J":
        return f"I{term[2:]}{term[1]}"
    return f"m{term[3]}{term[2]}" if term.startswith("mc") else term


def grouping(coefficients: Sequence[Mapping[str, Any]], names: Sequence[str]) -> BaseReduction:
    """The paper's coefficients as rows over the parameters."""
    K = np.zeros((len(coefficients), len(names)))
    for row, coefficient in zip(K, coefficients, strict=True):
        for term, factor in coefficient["terms"].items():
            row[list(names).index(our_name(term))] = factor
    return BaseReduction.from_matrix(K, names)


def bounds_of(expected: Mapping[str, Any], key: str) -> Bounds:
    """The paper's bounds; ``bounds`` as printed in the supplement, ``bounds_repo_csv`` as in the authors' code."""
    limits = {name: (float(low), float(high)) for name, (low, high) in expected[key].items()}
    low, high = expected["total_mass_range_kg"]
    return Bounds({**limits, "total_mass": (float(low), float(high))})


def in_cvxpy(base: BaseReduction, values: np.ndarray, bounds: Bounds) -> float:
    """The convex optimum by another formulation."""
    phi = [cvxpy.Variable(10) for _ in range(7)]
    constraints = []
    for i, body in enumerate(phi, start=1):
        matrix = cvxpy.reshape(PSEUDO_BASIS.reshape(10, -1).T @ body, (4, 4), order="C")
        constraints.append(matrix - MARGIN * np.eye(4) >> 0)
        low, high = bounds.of(f"m{i}")
        constraints += [body[0] >= low, body[0] <= high]
        for j, axis in enumerate("xyz", start=1):
            low, high = bounds.of(f"c{i}{axis}")
            constraints += [body[j] >= low * body[0], body[j] <= high * body[0]]
    low, high = bounds.of("total_mass")
    total = sum(body[0] for body in phi)
    constraints += [total >= low, total <= high]
    residual = base.K @ cvxpy.hstack(phi) - values
    # in units of a hundredth, so that the value is of the size of one
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(1e2 * residual)), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-10)
    return 1e-4 * float(program.value)


# Tables -------------------------------------------------------------------------------------------


def printed_set(expected: Mapping[str, Any], values: Mapping[str, float | None]) -> np.ndarray:
    """``(7, 10)`` from a printed set (m, c, I)."""
    return phi_from_gaz([values[name] or 0.0 for name in expected["conventions"]["standard_order"]])


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, figures to the right."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def figure(value: float | None) -> str:
    """Four digits as in the supplement, more for what is small."""
    if value is None:
        return "-"
    return f"{value:.4f}" if abs(value) >= 1e-3 or value == 0.0 else f"{value:.2e}"


def parameter(value: float) -> str:
    """Four digits; round-off as zero, what is not printed as a dash."""
    return "-" if np.isnan(value) else "0" if abs(value) < 1e-14 else f"{value:.4g}"


def filtered(recording: Recording) -> Samples:
    """1 ms, order 4 at 5 Hz on q, logged dq and torque, 0.3 s dropped, every fourth row."""
    steps = [Resample(period_s=1e-3), LowPass(cutoff_hz=5.0, order=4), Differentiate(velocity="logged"), Decimate(every=4)]
    return process(recording, steps, edge_s=0.3)


def sigmoid(expected: Mapping[str, Any], velocity: np.ndarray) -> np.ndarray:
    """The published friction (25)."""
    phi1, phi2, phi3 = (np.array(expected["friction_sigmoid"][f"phi{i}"]) for i in (1, 2, 3))
    return np.asarray(phi1 / (1.0 + np.exp(-phi2 * (velocity + phi3))) - phi1 / (1.0 + np.exp(-phi2 * phi3)))


def tables(folder: Path, expected: Mapping[str, Any], retrieved: Retrieval) -> str:
    """Tables III, IV, VIII and IX with our semidefinite program and our retrieval beside the published sets."""
    robot = read_robot(folder / "robot.toml", "none")
    bounds = bounds_of(expected, "bounds")
    all_rows = grouping(expected["coefficients"], robot.parameters.names)
    poses = read_recording(folder / "static_mg.parquet", robot)
    recording = read_recording(folder / "exciting_traj_1.parquet", robot)
    assert isinstance(poses, StaticRecording)
    assert isinstance(recording, Recording)
    program = FeasibleSDP(constraints=bounds.convex())
    sdp = estimate(pose_regression(robot, poses.position, poses.inertia, poses.gravity), all_rows, program)
    samples = filtered(recording)
    linear = read_robot(folder / "robot.toml", "viscous,coulomb,offset")
    one_step = estimate(
        build_regression(linear, samples), _with_friction(all_rows, linear.parameters.names), PenaltyRetrieval(bounds=bounds)
    )
    sets = {
        "p-hat": printed_set(expected, expected["feasible_parameters_phat"]),
        "delta": printed_set(expected, expected["lmi_sdp_parameters_delta"]),
        "our SDP": sdp.standard.inertials,
        "our retrieval": retrieved.bodies,
    }
    coefficients = {name: all_rows.K @ phi.ravel() for name, phi in sets.items()}
    ours_once = all_rows.K @ one_step.standard.inertials.ravel()
    rows = []
    for i, row in enumerate(expected["coefficients"]):
        value = {name: found[i] for name, found in coefficients.items()}
        printed = (row["pi_RE"], row["pi_of_phat"], value["delta"], value["our SDP"], value["our retrieval"])
        steps = (row["pi_CLS"], row["pi_OSI"], ours_once[i])
        rows.append([f"{i + 1}: {row['expression'].replace('*', ' ')}", *map(figure, (*printed, *steps))])
    kept = [i for i, row in enumerate(expected["coefficients"]) if not row.get("discarded")]
    target = np.array([row["pi_RE"] for row in expected["coefficients"]])
    costs = {name: float(np.sum((found - target)[kept] ** 2)) for name, found in coefficients.items()}
    costs["p-hat"] = float(np.sum([(expected["coefficients"][i]["pi_of_phat"] - target[i]) ** 2 for i in kept]))
    rows.append(["**cost of the 41 kept**", "0", *(f"{costs[name]:.3e}" for name in sets), "", "", ""])
    header = ["coefficient", "reverse engineering", *sets, "classical", "one-step", "our one-step"]
    parts = ["### Table III: coefficients\n", markdown(header, rows)]
    friction = sigmoid(expected, samples.velocity)
    lines, relative = [], []
    published = expected["torque_mse_10_validation_trajectories_Nm2"]
    for name in ("phat", "delta"):
        shown = {"phat": "p-hat"}.get(name, name)
        lines.append([f"{shown}, published, ten motions of 10 s", *(f"{mse:.4f}" for mse in published[name]), ""])
    for name, phi in sets.items():
        found = robot.with_parameters(robot.parameters.with_values(phi.ravel()))
        error = samples.torque - friction - inverse_dynamics(found, samples.position, samples.velocity, samples.acceleration)
        share = 100.0 * np.linalg.norm(error) / np.linalg.norm(samples.torque)
        relative.append(share)
        lines.append([f"{name}, exciting log", *(f"{mse:.4f}" for mse in np.mean(error**2, axis=0)), f"{share:.2f} %"])
    header = ["set, motion", *(f"joint {i}" for i in range(1, 8)), "relative error"]
    parts += ["\n### Table IV: mean square torque error, N^2 m^2\n", markdown(header, lines)]
    order = expected["conventions"]["standard_order"]
    flat = {name: gaz_from_phi(phi) for name, phi in sets.items()}
    flat["p-hat"][order.index("c1z")] = np.nan  # not printed: it has no effect
    for title, chosen in (
        ("VIII: masses, kg, and centres of mass, m", order[:28]),
        ("IX: inertia about the centres of mass, kg m^2", order[28:]),
    ):
        rows = [
            [name, *(f"{bound:g}" for bound in bounds.of(name)), *(parameter(flat[s][order.index(name)]) for s in flat)]
            for name in chosen
        ]
        if "m1" in chosen:
            rows.append(["total mass", "16", "20", *(f"{found[:7].sum():.4g}" for found in flat.values())])
        parts += [f"\n### Table {title}\n", markdown(["parameter", "lower", "upper", *sets], rows)]
    return "\n".join(parts)


def _with_friction(base: BaseReduction, names: tuple[str, ...]) -> BaseReduction:
    """The coefficients and one row for each friction value."""
    more = len(names) - base.n_parameters
    K = np.block([[base.K, np.zeros((base.n_base, more))], [np.zeros((more, base.n_parameters)), np.eye(more)]])
    return BaseReduction.from_matrix(K, names)


def main() -> None:
    """Measure and print."""
    options = measure.parser(__doc__)
    options.add_argument(
        "--tables", action="store_true", help="print the supplement's tables with our columns, nothing else"
    )
    arguments = options.parse_args()
    folder = data_folder()
    if folder is None:
        sys.exit("the Panda's tables are not on this machine; set DYNID_SHARED_DATA")
    expected = json.loads((folder / "expected.json").read_text())
    kept = [row for row in expected["coefficients"] if not row.get("discarded")]
    names = [f"{s}{i}" for i in range(1, 8) for s in ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")]
    base, values = grouping(kept, names), np.array([row["pi_RE"] for row in kept])
    if arguments.tables:
        options = PenaltyRetrieval(cost="coefficients", bounds=bounds_of(expected, "bounds"))
        print(tables(folder, expected, options.retrieve(base, values)))
        return
    repeats = 1 if arguments.smoke else 5
    result: dict[str, object] = {}
    for key, suffix in (("bounds_repo_csv", ""), ("bounds", "_printed")):
        bounds = bounds_of(expected, key)
        method = PenaltyRetrieval(cost="coefficients", bounds=bounds)
        found = method.retrieve(base, values)
        result[f"cost{suffix}"] = found.cost
        result[f"optimum{suffix}"] = in_cvxpy(base, values, bounds)
        result[f"lower_bound{suffix}"] = found.lower_bound
        result[f"seconds{suffix}"] = measure.median_time(lambda m=method: m.retrieve(base, values), repeats)
        result[f"violations{suffix}"] = len(found.violated)
        if not arguments.smoke:
            recipe = PenaltyRetrieval(cost="coefficients", bounds=bounds, optimiser="annealing", starts=1)
            annealed = recipe.retrieve(base, values)
            result[f"annealing_cost{suffix}"] = annealed.cost
            result[f"annealing_seconds{suffix}"] = annealed.details["seconds"]
            result[f"annealing_violations{suffix}"] = len(annealed.violated)
    printed = np.array([row["pi_of_phat"] for row in kept])
    result["published_cost"] = float(np.sum((printed - values) ** 2))
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
