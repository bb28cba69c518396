"""Writes the hard cases beside it; run by hand when a case is added: ``python tests/estimation/hard/make_cases.py``.

Every case is a grouping (rows of names and coefficients), base values, and perhaps a prior and constraints; what is expected of it
stands in ``expected``: the decision, and the distance where the values are infeasible.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "benchmarks")]

import numpy as np  # noqa: E402

from constraint_tables import table_from_constraints  # noqa: E402
from dynid.estimation.consistency.correction import closest_feasible  # noqa: E402
from dynid.estimation.consistency.feasibility import feasibility  # noqa: E402
from dynid.estimation.constraints.bounds import constraints_from_table  # noqa: E402
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares  # noqa: E402
from dynid.model.effects.dry_friction import Coulomb  # noqa: E402
from dynid.model.effects.linear import Viscous  # noqa: E402
from dynid.model.joint import Joint  # noqa: E402
from dynid.model.robot import Robot, make_robot  # noqa: E402
from dynid.regression.base import BaseReduction, reduce_to_base  # noqa: E402
from feasible import Problem  # noqa: E402  (before NumPy, whose threads it sets)
from problems import random_phi, random_tree  # noqa: E402


def arm(angles: list[float], bodies: list[np.ndarray]) -> Robot:
    """Revolute joints about z, each turned about x by an angle from the one before."""
    joints = []
    for i, turn in enumerate(angles):
        pose = np.eye(4)
        pose[1:3, 1:3] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        pose[:3, 3] = [0.1, 0.0, 0.2]
        joints.append(Joint(f"joint{i + 1}", "revolute", i - 1, pose, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), -2.0, 2.0))
    return make_robot("arm", joints, bodies)


def save(
    name: str, why: str, base: BaseReduction, beta: np.ndarray, condition: str, prior=None, constraints: dict | None = None
) -> None:
    rows = [{n: float(c) for n, c in zip(base.parameter_names, row, strict=True) if c != 0.0} for row in base.K]
    case = {
        "why": why,
        "condition": condition,
        "names": list(base.parameter_names),
        "rows": rows,
        "values": np.asarray(beta).tolist(),
    }
    bare = BaseReduction.from_matrix(base.K, base.parameter_names)
    if prior is not None:
        case["prior"] = prior.values.tolist()
        case["kinds"] = [[c.symbol, c.number, c.kind, c.unit, c.joint] for c in prior.columns]
    options = {"condition": condition, **({} if prior is None else {"prior": prior})}
    if constraints:
        case["constraints"] = constraints
        options["constraints"] = constraints_from_table(constraints)
    test, near = feasibility(bare, beta, **options), closest_feasible(bare, beta, **options)
    case["expected"] = {"decision": test.decision, "distance": near.distance}
    (HERE / f"{name}.json").write_text(json.dumps(case, indent=None, separators=(",", ":")) + "\n")
    sys.stdout.write(
        f"{name} {test.decision} {near.distance:.6g} {near.lower_bound:.6g} {near.gap:.1e} {near.outcome.name}\n"
    )


def main() -> None:
    rng = np.random.default_rng(0)
    tree = random_tree(3, 3, effects=[Viscous(), Coulomb()])
    base, prior = reduce_to_base(tree), tree.parameters
    beta = base.base_values(prior)
    noise = rng.normal(size=len(beta))
    save("far", "base values a thousand times the robot's size off", base, beta + 1e3 * noise, "full", prior)
    save("far_plain", "the same under the plain condition, without a prior", base, beta + 1e3 * noise, "plain")
    near = closest_feasible(base, beta + 0.3 * noise, prior=prior)
    inward, outward = beta - near.base, beta + 0.3 * noise - near.base
    save("just_inside", "1e-5 of the way from the boundary to the robot", base, near.base + 1e-5 * inward, "full", prior)
    save("just_outside", "1e-4 of the way out from the boundary", base, near.base + 1e-4 * outward, "full", prior)
    bodies = [random_phi(rng), np.zeros(10), random_phi(rng)]
    massless = arm([0.0, 1.2, -0.7], bodies)
    mbase = reduce_to_base(massless)
    save(
        "massless",
        "a link without mass and inertia",
        mbase,
        mbase.base_values(massless.parameters),
        "full",
        massless.parameters,
    )
    tiny = arm([0.0, 1.2, -0.7], [bodies[0], 1e-6 * random_phi(rng), bodies[2]])
    tbeta = mbase.base_values(tiny.parameters)
    shaken = tbeta + 0.05 * rng.normal(size=len(tbeta)) * np.abs(tbeta)
    save("tiny", "a link of milligrams beside links of kilograms", mbase, shaken, "full", tiny.parameters)
    wrong = prior.updated({"m1": -1.0, "Ixx2": -0.3, "Iyy3": 1e-9})
    save("inconsistent_prior", "a prior with a negative mass and moment", base, beta + 0.3 * noise, "full", wrong)
    parallel = arm([0.0, 1e-4, 1e-4], [random_phi(rng) for _ in range(3)])
    pbase = reduce_to_base(parallel)
    pbeta = pbase.base_values(parallel.parameters)
    save(
        "nearly_parallel",
        "axes a ten-thousandth of a radian from parallel",
        pbase,
        pbeta + 0.05 * rng.normal(size=len(pbeta)),
        "full",
        parallel.parameters,
    )
    small = random_tree(5, 2)
    sbase = reduce_to_base(small)
    sbeta = sbase.base_values(small.parameters)
    shaken = sbeta + 0.3 * rng.normal(size=len(sbeta))
    for name, factor in (("micro", 1e-6), ("mega", 1e6)):
        save(name, f"all base values times {factor:g}, without a prior to say so", sbase, factor * shaken, "full")
    one = BaseReduction.from_matrix(np.array([[1.0, 0.5]]), ["m1", "m2"])
    boxed = Problem.of(352)
    found = OrdinaryLeastSquares(covariance="classical").estimate(boxed.data, boxed.base, boxed.robot.parameters)
    box = table_from_constraints(boxed.options["constraints"])
    save(
        "boxed", "a box for the centre of mass of a link with a null body", boxed.base, found.base_values, "full", None, box
    )
    save("rank_one", "one base value, a sum of masses, negative", one, np.array([-3.0]), "full")


if __name__ == "__main__":
    main()
