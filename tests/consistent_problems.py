"""Problems whose unconstrained solution is, or is not, consistent; and the same programs written in cvxpy."""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.consistency.consistent_set import ConsistentSet
from dynid.estimation.consistency.fit_problem import ConsistentFit
from dynid.estimation.consistency.nearest_feasible import NearestFeasibleProblem
from dynid.estimation.constraints.base import Constraint, FixedValues, Layout
from dynid.estimation.constraints.bodies import CentreOfMassInSphere, MassBounds, TotalMass
from dynid.estimation.constraints.bounds import Bounds
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.inertia import PLAIN_BASIS, PSEUDO_BASIS, phi_from_mass_com_inertia
from dynid.model.parameters import INERTIAL_SYMBOLS
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import Regression, build_regression
from dynid.signals.samples import Samples
from noisy_logs import short_arm
from problems import random_motion, random_tree


def noisy_tree(
    seed: int, n_joints: int = 4, noise: float = 1.0, n_samples: int = 150, effects: bool = True
) -> tuple[Robot, BaseReduction, Regression]:
    """A random tree and its motion with torque noise."""
    chosen = [Viscous(), Coulomb(), Offset(), Armature()] if effects else []
    robot = random_tree(seed, n_joints, effects=chosen)
    q, v, a = random_motion(robot, n_samples, seed)
    rng = np.random.default_rng(seed + 1000)
    tau = inverse_dynamics(robot, q, v, a) + noise * rng.normal(size=a.shape)
    samples = Samples(time=0.01 * np.arange(n_samples), position=q, velocity=v, acceleration=a, torque=tau)
    return robot, reduce_to_base(robot), build_regression(robot, samples)


def linear_problem(robot: Robot, base: BaseReduction, data: Regression) -> LinearProblem:
    return LinearProblem.of(data, base, robot.parameters)


def infeasible_values(seed: int = 0) -> tuple[Robot, BaseReduction, np.ndarray]:
    """Least squares on noisy data, which no consistent robot has."""
    robot, base, data = noisy_tree(seed, 4, 3.0)
    return robot, base, OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters).base_values


def optimum_in_cvxpy(fit: ConsistentFit, condition: str = "full", constraints=(), tolerance: float = 1e-10) -> float:
    """The value of the program of ``fit``, written independently; ``constraints(phi)`` adds more, on unscaled parameters."""
    layout, scale = fit.consistent.layout, fit.consistent.scale
    basis = PSEUDO_BASIS if condition == "full" else PLAIN_BASIS
    side = basis.shape[1]
    x = cvxpy.Variable(fit.consistent.n)
    listed = [x[layout.with_symbol(("Ia", "fv", "fc"))] >= 0.0] if len(layout.with_symbol(("Ia", "fv", "fc"))) else []
    step = x - fit.centre
    cost = 0.5 * cvxpy.sum_squares(fit.F @ step) + 0.5 * cvxpy.sum_squares(cvxpy.multiply(np.sqrt(fit.pull), step))
    for slots in layout.slots:
        matrix = sum(x[int(slot)] * basis[k] for k, slot in enumerate(slots))
        listed.append(matrix - fit.consistent.margin * np.eye(side) >> 0)
        if fit.entropic is not None:
            prior = sum(fit.entropic.x0[slot] * basis[k] for k, slot in enumerate(slots))
            divergence = cvxpy.trace(np.linalg.inv(prior) @ matrix) - cvxpy.log_det(matrix) + np.linalg.slogdet(prior)[1] - 4
            cost = cost + fit.entropic.weight * divergence
    listed += [made for extra in constraints for made in extra(cvxpy.multiply(scale, x))]
    program = cvxpy.Problem(cvxpy.Minimize(cost), listed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at this tolerance cvxpy may call its answer inaccurate
        program.solve(solver=cvxpy.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
    return float(program.value)


def relative_difference(value: float, reference: float) -> float:
    """Of the whole sum of squares; what least squares leaves is one half in these units."""
    return (value - reference) / (0.5 + reference)


TWO_LINKS = Layout.of(
    [*(f"{symbol}{k}" for k in (1, 2) for symbol in INERTIAL_SYMBOLS), "Ia1", "fv1", "fc1", "fo1"], {"upper": 1, "elbow": 2}
)
"""Ten parameters of two links, and four effects."""


def body(mass: float = 2.0, com=(0.1, 0.0, 0.0)) -> np.ndarray:
    """A body around its centre of mass."""
    return phi_from_mass_com_inertia(mass, np.array(com), np.diag([0.02, 0.03, 0.04]))


def holds(
    constraint: Constraint, first: np.ndarray, second: np.ndarray | None = None, effects=(0.1, 0.2, 0.3, -0.4)
) -> bool:
    """Whether the rows of one constraint hold for two bodies and four effects."""
    consistent = ConsistentSet.of(TWO_LINKS, constraints=[constraint], margin=0.0, links=[])
    x = np.concatenate([first, body() if second is None else second, effects])
    return bool(consistent.contains(x, 1e-12))


KNOWN = (
    TotalMass(upper=8.0),
    MassBounds(2, 0.5, 1.5),
    CentreOfMassInSphere(3, (0.0, 0.0, 0.0), 0.1),
    FixedValues({"fv1": 0.5}),
)
"""Constraints of every kind on three links."""


def fit_of_three_links(seed: int, **options) -> ConsistentFit:
    """Noisy least squares of three links under some options of the semidefinite program."""
    robot, base, data = noisy_tree(seed, 3, 4.0)
    return FeasibleSDP(**options).whiten(linear_problem(robot, base, data))


def infeasible_problem(seed: int, condition: str) -> NearestFeasibleProblem:
    """Base values by least squares that no consistent robot has."""
    robot, base, data = noisy_tree(seed, 4, 5.0)
    beta = OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters).base_values
    return NearestFeasibleProblem.of(
        base,
        beta,
        condition=condition,
        constraints=(),
        margin=1e-6,
        absolute=False,
        prior=robot.parameters,
        robot=None,
        effects_positive=True,
    )


def _bent(p):
    return p["c2x"] ** 2 - 0.01


def small_retrieval(**options) -> tuple[PenaltyRetrieval, BaseReduction, np.ndarray, Robot]:
    """Coefficients of a short arm that no bodies within bounds have, with a condition that is not convex."""
    limits = {f"m{i}": (0.1, 10.0) for i in (1, 2, 3)}
    limits |= {f"c{i}{axis}": (-0.4, 0.4) for i in (1, 2, 3) for axis in "xyz"}
    rigid = short_arm().with_effects(())
    base = reduce_to_base(rigid)
    values = base.base_values(rigid.parameters) * np.random.default_rng(0).uniform(0.9, 1.1, base.n_base)
    method = PenaltyRetrieval(
        cost="coefficients", bounds=Bounds({**limits, "total_mass": (1.0, 20.0)}), conditions=(_bent,), **options
    )
    return method, base, values, rigid
