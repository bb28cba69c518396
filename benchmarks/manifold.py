"""Ways to one consistent optimum: semidefinite program, manifold of bodies, log-Cholesky; other forms of a rotation.

A 7-joint arm, with and without an entropic prior: time of each method and how far above the program's optimum it ends,
relative to the whole cost. One body on a force/torque sensor: the native manifold beside the same problem with the
rotation as a unit quaternion and as a matrix, both with their constraints left to SciPy's SLSQP, as Traversaro and others
(2016) compare them.
"""

from __future__ import annotations

import measure

import numpy as np
from scipy.optimize import minimize

from dynid.dynamics.regressors import body_regressor
from dynid.estimation.consistency.fit_problem import ConsistentFit, solve_whitened
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.manifold import LogCholesky, Manifold
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.model.inertia import phi_from_principal, phi_from_pseudo_inertia
from dynid.model.parameters import Parameters, inertial_columns
from dynid.regression.base import BaseReduction
from dynid.regression.factor import matrix_regression
from sdp import arm, linear_problem

TRUTH = phi_from_principal(1.85, np.array([0.03, 0.0, 0.11]), np.eye(3), np.array([0.0005, 0.0008, 0.009]))


def body_problem(seed: int = 0) -> LinearProblem:
    """Slow random motion of one body with noise that hides its inertia."""
    rng = np.random.default_rng(seed)
    velocity = np.hstack([0.05 * rng.normal(size=(2000, 3)), 0.6 * rng.normal(size=(2000, 3))])
    acceleration = np.hstack([9.81 * rng.normal(size=(2000, 3)) / np.sqrt(3.0), 1.5 * rng.normal(size=(2000, 3))])
    Y = body_regressor(acceleration, velocity)
    wrench = Y @ TRUTH + np.array([0.5] * 3 + [0.05] * 3) * rng.normal(size=(2000, 6))
    start = phi_from_principal(2.0, np.zeros(3), np.eye(3), np.full(3, 0.005))
    prior = Parameters(inertial_columns(1, "body"), start)
    rows = np.concatenate([Y, wrench[:, :, None]], axis=-1)
    data = matrix_regression(prior, ["fx", "fy", "fz", "nx", "ny", "nz"], [rows[:, i] for i in range(6)])
    return LinearProblem.of(data, BaseReduction.from_matrix(np.eye(10), prior.names), prior)


def matrix_of_quaternion(q: np.ndarray) -> np.ndarray:
    """``R(q)`` of any quaternion; a rotation where its length is one."""
    w, x, y, z = q
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )


def by_slsqp(fit: ConsistentFit, form: str) -> tuple[float, int]:
    """Value and iterations of SLSQP with the rotation in one of the forms."""
    quaternion = form == "quaternion"
    turn = np.array([1.0, 0.0, 0.0, 0.0]) if quaternion else np.eye(3).ravel()
    start = np.concatenate([[1.0], np.zeros(3), turn, np.full(3, 0.5)])

    def body(z: np.ndarray) -> np.ndarray:
        m, c, L = z[0], z[1:4], z[-3:]
        Q = matrix_of_quaternion(z[4:8]) if quaternion else z[4:13].reshape(3, 3)
        P = np.zeros((4, 4))
        P[:3, :3] = (Q * L) @ Q.T + m * np.outer(c, c)
        P[:3, 3] = P[3, :3] = m * c
        P[3, 3] = m
        return phi_from_pseudo_inertia(P)

    def length(z: np.ndarray) -> float:
        return float(z[4:8] @ z[4:8] - 1.0)

    def orthogonal(z: np.ndarray) -> np.ndarray:
        Q = z[4:13].reshape(3, 3)
        return (Q.T @ Q - np.eye(3))[np.triu_indices(3)]

    bounds = [(1e-9, None), *[(None, None)] * (3 + len(turn)), *[(0.0, None)] * 3]
    found = minimize(
        lambda z: fit.value(body(z)),
        start,
        method="SLSQP",
        bounds=bounds,
        constraints=[{"type": "eq", "fun": length if quaternion else orthogonal}],
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    return float(found.fun), int(found.nit)


def main() -> None:
    """Measure and print."""
    arguments = measure.parser(__doc__).parse_args()
    repeats = 1 if arguments.smoke else 5
    result: dict[str, object] = {}
    problem = linear_problem(arm(3 if arguments.smoke else 7), noise=2.0)
    for prior in ("none", "entropic"):
        fit = FeasibleSDP(prior=prior).whiten(problem)
        x, _, _, _ = solve_whitened(fit)
        assert x is not None
        best = fit.value(x)
        result[f"sdp_milliseconds_{prior}"] = 1e3 * measure.median_time(lambda f=fit: solve_whitened(f), repeats)
        for method in (Manifold(prior=prior), LogCholesky(prior=prior)):
            _, _, end = method.solve(fit)
            result[f"{method.name}_milliseconds_{prior}"] = 1e3 * measure.median_time(
                lambda m=method, f=fit: m.solve(f), repeats
            )
            result[f"{method.name}_above_{prior}"] = (end["objective"] - best) / (0.5 + best)
            result[f"{method.name}_iterations_{prior}"] = end["iterations"]
    body = Manifold(margin=0.0, regularization=0.0).whiten(body_problem())
    x, _, _, _ = solve_whitened(body)
    assert x is not None
    best = body.value(x)
    _, _, end = Manifold().solve(body)
    result["body_native_milliseconds"] = 1e3 * measure.median_time(lambda: Manifold().solve(body), repeats)
    result["body_native_above"] = (end["objective"] - best) / (0.5 + best)
    for form in ("quaternion", "matrix"):
        value, iterations = by_slsqp(body, form)
        result[f"body_{form}_milliseconds"] = 1e3 * measure.median_time(lambda f=form: by_slsqp(body, f), repeats)
        result[f"body_{form}_above"] = (value - best) / (0.5 + best)
        result[f"body_{form}_iterations"] = iterations
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
