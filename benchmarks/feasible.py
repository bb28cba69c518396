"""Feasibility, correction and the semidefinite estimate on random problems: does any of them ever give up or contradict another?

Trees in general position and arms with right angles, of 2 to 60 links (most of them below 13), with and without effects; base
values by least squares on noisy torque, so that many are infeasible, some by little; both conditions, both metrics, with and
without the robot as a prior, a third of them under extra constraints. Of every problem:

- the nearest feasible values: solved or not, and their gap (distance less proven lower bound, over the length of the base values);
- feasibility of those: never ``infeasible``;
- the semidefinite estimate of the same data, without a prior and with the entropic one: solved or not;
- with ``--cvxpy``, the distance that cvxpy with Clarabel finds for the same program, written independently. It is sure where it
  says ``optimal`` and the distance is above 1e-4 of the length of the base values (infeasible), or below 1e-7 of it (feasible or
  on the boundary). ``contradicted`` counts verdicts that say otherwise.

``gap_max`` is the largest gap, ``gap_of_distance_max`` the same over the distance itself, of problems further than 1e-4 away.
"""

from __future__ import annotations

import measure

import time
import warnings
from collections import Counter
from dataclasses import dataclass

import cvxpy
import numpy as np

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.consistency.consistent_set import MARGIN
from dynid.estimation.consistency.correction import closest_feasible
from dynid.estimation.consistency.feasibility import feasibility
from dynid.estimation.constraints.base import Constraint, Layout
from dynid.estimation.constraints.bodies import CentreOfMassInBox, CentreOfMassInSphere, MassBounds, TotalMass
from dynid.estimation.linear import parameter_scale
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Outcome
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.inertia import PLAIN_BASIS, PSEUDO_BASIS, phi_from_principal
from dynid.model.joint import Joint, JointKind
from dynid.model.robot import Robot, make_robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import Regression, build_regression
from dynid.signals.samples import Samples

CVXPY_COUNTS = ("cvxpy_sure", "contradicted", "boundary_where_cvxpy_is_sure")
KINDS: tuple[JointKind, ...] = ("revolute", "continuous", "prismatic")


def rotation(rng: np.random.Generator, right_angles: bool) -> np.ndarray:
    """A random rotation, or one by right angles about the axes."""
    if right_angles:
        turn = rng.choice([0.0, 0.5 * np.pi, -0.5 * np.pi])
        return np.array([[1.0, 0.0, 0.0], [0.0, np.cos(turn), -np.sin(turn)], [0.0, np.sin(turn), np.cos(turn)]])
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    Q[:, 0] *= np.linalg.det(Q)
    return Q


def robot_of(rng: np.random.Generator, n_links: int, right_angles: bool, effects: bool) -> Robot:
    """A serial arm with right angles, or a tree in general position."""
    joints, bodies = [], []
    for i in range(n_links):
        kind: JointKind = "revolute" if right_angles else KINDS[int(rng.integers(3))]
        parent = i - 1 if right_angles or i < 2 else int(rng.integers(-1, i))
        pose = np.eye(4)
        pose[:3, :3] = rotation(rng, right_angles)
        pose[:3, 3] = [rng.choice([0.0, 0.1]), 0.0, rng.choice([0.0, 0.3])] if right_angles else rng.uniform(-0.5, 0.5, 3)
        axis = np.array([0.0, 0.0, 1.0]) if right_angles else rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        beside = np.zeros(3) if right_angles else np.cross(rng.uniform(-0.2, 0.2, 3), axis)
        screw = np.concatenate([axis, np.zeros(3)] if kind == "prismatic" else [beside, axis])
        limits = {"q_min": -2.0, "q_max": 2.0} if kind != "continuous" else {"q_min": -np.inf, "q_max": np.inf}
        nominal = dict(zip(("fv", "fc", "fo", "Ia"), rng.uniform(0.1, 1.0, 4).tolist(), strict=True))
        more = {"dq_max": 3.0, "ddq_max": 20.0, "tau_max": 200.0, "nominal": nominal}
        joints.append(Joint(f"joint{i + 1}", kind, parent, pose, screw, **limits, **more))
        mass = rng.uniform(0.2, 5.0)
        moments = mass * rng.uniform(0.01, 0.15, 3) ** 2
        bodies.append(phi_from_principal(mass, rng.uniform(-0.2, 0.2, 3), rotation(rng, False), moments))
    chosen = [Viscous(), Coulomb(), Offset(), Armature()] if effects else []
    return make_robot(f"random{n_links}", joints, bodies, effects=chosen)


def links_of(rng: np.random.Generator) -> int:
    """The number of links of a problem, drawn first of all."""
    return int(rng.integers(2, 13)) if rng.random() < 0.9 else int(rng.integers(13, 61))


@dataclass(frozen=True)
class Problem:
    """A robot, its data, and how the question is asked."""

    robot: Robot
    base: BaseReduction
    data: Regression
    options: dict[str, object]

    @classmethod
    def of(cls, seed: int) -> Problem:
        rng = np.random.default_rng(seed)
        n_links = links_of(rng)
        robot = robot_of(rng, n_links, bool(rng.random() < 0.5), bool(rng.random() < 0.7))
        count = 150 if n_links < 13 else 60
        q = rng.uniform(-2.0, 2.0, (count, robot.n_position))
        v, a = rng.normal(size=(count, robot.n_dof)), rng.normal(size=(count, robot.n_dof))
        noise = float(rng.choice([0.1, 0.5, 2.0, 10.0]))
        tau = inverse_dynamics(robot, q, v, a) + noise * rng.normal(size=v.shape)
        samples = Samples(time=0.01 * np.arange(count), position=q, velocity=v, acceleration=a, torque=tau)
        options: dict[str, object] = {"condition": str(rng.choice(["full", "plain"]))}
        if rng.random() < 0.7:
            options["robot"] = robot
        if rng.random() < 0.33:
            options["constraints"] = constraints_of(rng, robot)
        return cls(robot, reduce_to_base(robot), build_regression(robot, samples), options)


def constraints_of(rng: np.random.Generator, robot: Robot) -> tuple[Constraint, ...]:
    """Some that the robot itself obeys."""
    masses = robot.parameters.inertials[:, 0]
    link = int(rng.integers(1, robot.n_joints + 1))
    box = CentreOfMassInBox(link, (-0.25,) * 3, (0.25,) * 3)
    sphere = CentreOfMassInSphere(link, (0.0, 0.0, 0.0), 0.4)
    listed: list[Constraint] = [
        TotalMass(upper=1.2 * float(masses.sum())),
        MassBounds(link, 0.5 * masses[link - 1], 2.0 * masses[link - 1]),
        box,
        sphere,
    ]
    return tuple(c for c in listed if rng.random() < 0.5) or (box,)


def in_cvxpy(problem: Problem, beta: np.ndarray) -> tuple[str, float]:
    """How Clarabel says it ended, and the distance it found over the length of the base values; base metric."""
    base, robot = problem.base, problem.robot
    layout = Layout.of(base.parameter_names)
    # the margin is relative to the links of a robot that is known, and in SI units without one
    scale = np.ones(len(layout))
    if "robot" in problem.options:
        scale[: base.n_parameters] = parameter_scale(robot.parameters)
    x = cvxpy.Variable(len(layout))
    phi = cvxpy.multiply(scale, x)
    basis = PSEUDO_BASIS if problem.options["condition"] == "full" else PLAIN_BASIS
    side = basis.shape[1]
    flat = basis.reshape(10, -1).T
    listed = [cvxpy.reshape(flat @ x[slots], (side, side), order="C") - MARGIN * np.eye(side) >> 0 for slots in layout.slots]
    signed = [i for i, name in enumerate(layout.names) if name[:2] in ("Ia", "fv", "fc")]
    listed += [x[signed] >= 0.0] if signed else []
    for constraint in problem.options.get("constraints", ()):
        if isinstance(constraint, TotalMass):
            listed.append(cvxpy.sum(phi[[int(layout.link_slots(i)[0]) for i in layout.links]]) <= constraint.upper)
            continue
        m, *moments = (int(i) for i in layout.link_slots(constraint.link)[:4])
        if isinstance(constraint, MassBounds):
            listed += [phi[m] >= constraint.lower, phi[m] <= constraint.upper]
        elif isinstance(constraint, CentreOfMassInBox):
            for i, low, high in zip(moments, constraint.lower, constraint.upper, strict=True):
                listed += [phi[i] >= low * phi[m], phi[i] <= high * phi[m]]
        elif isinstance(constraint, CentreOfMassInSphere):
            listed.append(cvxpy.norm(phi[moments] - np.array(constraint.centre) * phi[m]) <= constraint.radius * phi[m])
        else:
            raise TypeError(f"{type(constraint).__name__} is not written in cvxpy here")
    length = float(np.linalg.norm(beta))
    E = np.zeros((base.n_base, len(layout)))
    E[:, : base.n_parameters] = base.K * scale[: base.n_parameters]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(E @ x / length - beta / length)), listed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program.solve(solver=cvxpy.CLARABEL)
        except cvxpy.SolverError:
            return "failed", float("nan")
    return program.status, float("nan") if program.value is None else float(program.value)


def contradiction(problem: Problem, beta: np.ndarray, counted: Counter[str]) -> str:
    """What cvxpy is sure of and the verdict denies; empty where they agree or cvxpy is not sure."""
    found = feasibility(problem.base, beta, **problem.options)
    status, distance = in_cvxpy(problem, beta)
    sure = status == "optimal" and (distance > 1e-4 or distance < 1e-7)
    counted["cvxpy_sure"] += sure
    if not sure:
        return ""
    wrong = (found.decision == "feasible") if distance > 1e-4 else (found.decision == "infeasible")
    below = found.lower_bound / float(np.linalg.norm(beta))
    if distance > 1e-4:
        counted["boundary_where_cvxpy_is_sure"] += found.decision == "boundary"
        wrong = wrong or below > distance * (1.0 + 1e-4)
    return f"verdict {found.decision}, bound {below:.3e}; cvxpy {distance:.3e}" if wrong else ""


def main() -> None:
    """Measure and print."""
    parser = measure.parser(__doc__)
    parser.add_argument("--problems", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first (default 0)")
    parser.add_argument("--cvxpy", action="store_true", help="compare the verdicts with cvxpy's")
    parser.add_argument("--links", default="2:60", metavar="A:B", help="only problems of A to B links (default 2:60)")
    arguments = parser.parse_args()
    fewest, most = (int(number) for number in arguments.links.split(":"))
    seeds = range(arguments.first, arguments.first + (8 if arguments.smoke else arguments.problems))
    seeds = [seed for seed in seeds if fewest <= links_of(np.random.default_rng(seed)) <= most]
    outcomes: Counter[str] = Counter()
    gaps, relative, seconds = [0.0], [0.0], {"closest": [0.0], "feasibility": [0.0], "sdp": [0.0]}
    for seed in seeds:
        problem = Problem.of(seed)
        robot, base, data = problem.robot, problem.base, problem.data
        beta = OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters).base_values
        metric = "torque" if "robot" in problem.options and seed % 2 else "base"
        began = time.perf_counter()
        near = closest_feasible(base, beta, metric=metric, **problem.options)
        seconds["closest"].append(time.perf_counter() - began)
        outcomes["infeasible_before"] += not near.feasible_before
        outcomes["stalled"] += near.outcome is not Outcome.SOLVED
        gaps.append(near.gap)
        if near.distance > 1e-4 * near.length:
            relative.append((near.distance - near.lower_bound) / near.distance)
        began = time.perf_counter()
        after = feasibility(base, near.base, **problem.options)
        seconds["feasibility"].append(time.perf_counter() - began)
        outcomes[f"after_{after.decision}"] += 1
        outcomes["not_feasible_after"] += not after.feasible
        if near.outcome is not Outcome.SOLVED or not after.feasible or near.gap > 1e-6:
            print(f"problem {seed}: {near.outcome.name}, gap {near.gap:.1e}, then {after.decision}", flush=True)
        if arguments.cvxpy and (text := contradiction(problem, beta, outcomes)):
            outcomes["contradicted"] += 1
            print(f"problem {seed}: {text}", flush=True)
        for prior in ("none", "entropic"):
            known = {k: v for k, v in problem.options.items() if k != "robot"}
            began = time.perf_counter()
            found = FeasibleSDP(prior=prior, covariance="classical", **known).estimate(data, base, robot.parameters)
            seconds["sdp"].append(time.perf_counter() - began)
            if found.outcome not in (Outcome.SOLVED, Outcome.RANK_DEFICIENT):
                outcomes["sdp_stalled"] += 1
                print(f"problem {seed}: estimate with prior {prior} {found.outcome.name}", flush=True)
    result = {
        "problems": len(seeds),
        "infeasible_before": outcomes["infeasible_before"],
        "stalled": outcomes["stalled"],
        "infeasible_after": outcomes["after_infeasible"],
        "not_feasible_after": outcomes["not_feasible_after"],
        "boundary_after": outcomes["after_boundary"],
        "gap_max": max(gaps),
        "gap_of_distance_max": max(relative),
        "gap_of_distance_median": float(np.median(relative)),
        "sdp_stalled": outcomes["sdp_stalled"],
        **({name: outcomes[name] for name in CVXPY_COUNTS} if arguments.cvxpy else {}),
        **{f"{name}_median_s": float(np.median(times[1:])) for name, times in seconds.items()},
        **{f"{name}_max_s": max(times) for name, times in seconds.items()},
    }
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
