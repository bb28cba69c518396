"""Problems whose unconstrained solution is, or is not, consistent; and the same programs written in cvxpy."""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np

from dynid.estimation.convex.whitened import WhitenedFit
from dynid.estimation.linear import LinearProblem
from dynid.inertia import PLAIN_BASIS, PSEUDO_BASIS
from dynid.recording.samples import Samples
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import Regression, build_regression
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import Armature, Coulomb, Offset, Viscous
from dynid.robot.model import Robot
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


def optimum_in_cvxpy(fit: WhitenedFit, condition: str = "full", constraints=(), tolerance: float = 1e-10) -> float:
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
