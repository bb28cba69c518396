"""Consistent estimation by semidefinite programming against the same problem written in cvxpy, both solved by Clarabel.

Arms of 7, 20 and 50 links with viscous and Coulomb friction, offset and rotor inertia (14 parameters per link), noise
strong enough that least squares is not consistent. cvxpy is written twice: with one matrix map per link, and with
``bmat`` entry by entry; it is timed with its canonicalisation, as a user pays it. Both sides start from the same
whitened triangle, whose own time is given apart. Beside the full condition (4x4) the plain one (6x6).

The command line's default, the entropic prior, is measured against the same problem in cvxpy (``entropic_speedup_*``). The time of one
solve for seven links is given with its 99.9th percentile over 1,000 solves.

Friction and rotor inertia far from zero are left out of our program, so the gain depends on the noise: keys ending in
``_noisy`` repeat the full condition with half the friction and more than twice the noise, where none can be left out.

``floor_milliseconds_*``: the arithmetic that no second-order method on these variables avoids, one Cholesky factor of ten variables a
link (``(10 n)^3 / 3`` flops) per iteration made, timed by itself.

``--cpu`` counts CPU seconds on both sides: on a busy machine these still compare, and both sides run in one thread.
"""

from __future__ import annotations

import measure

import statistics
import time
import warnings
from collections.abc import Callable, Mapping

import cvxpy
import numpy as np
import scipy.linalg

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.consistency.fit_problem import ConsistentFit, solve_whitened
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.inertia import PLAIN_BASIS, PSEUDO_BASIS, phi_from_principal
from dynid.model.joint import Joint
from dynid.model.robot import Robot, make_robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples

POSITIVE = ("Ia", "fv", "fc")


def arm(n_links: int, seed: int = 0, friction: float = 1.0) -> Robot:
    """A serial arm whose neighbouring axes are parallel or at right angles, with bodies of random shape."""
    rng = np.random.default_rng(seed)
    joints, bodies = [], []
    for i in range(n_links):
        turn = rng.choice([0.0, 0.5 * np.pi, -0.5 * np.pi])
        pose = np.eye(4)
        pose[1:3, 1:3] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        pose[:3, 3] = [rng.uniform(0.0, 0.1), 0.0, rng.uniform(0.0, 0.3)]
        screw = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        nominal = {"fv": friction, "fc": friction, "fo": 0.05, "Ia": 0.1}
        joints.append(Joint(f"joint{i + 1}", "revolute", i - 1, pose, screw, nominal=nominal))
        mass = rng.uniform(0.5, 5.0)
        axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        axes[:, 0] *= np.linalg.det(axes)
        bodies.append(phi_from_principal(mass, rng.uniform(-0.2, 0.2, 3), axes, mass * rng.uniform(0.01, 0.15, 3) ** 2))
    return make_robot(f"arm{n_links}", joints, bodies, effects=[Viscous(), Coulomb(), Offset(), Armature()])


def linear_problem(robot: Robot, noise: float, seed: int = 0) -> LinearProblem:
    """Random motion with noise on the torque, as a small triangle over base parameters."""
    rng = np.random.default_rng(seed)
    n, count = robot.n_dof, 1000
    q, v, a = rng.uniform(-2.0, 2.0, (count, n)), rng.normal(size=(count, n)), rng.normal(size=(count, n))
    tau = inverse_dynamics(robot, q, v, a) + noise * rng.normal(size=(count, n))
    samples = Samples(time=0.01 * np.arange(count), position=q, velocity=v, acceleration=a, torque=tau)
    return LinearProblem.of(build_regression(robot, samples), reduce_to_base(robot), robot.parameters)


def in_cvxpy(fit: ConsistentFit, form: str, condition: str = "full", tolerance: float | None = None) -> float:
    """The value of the same program written in cvxpy."""
    layout, n = fit.consistent.layout, fit.consistent.n
    basis = PSEUDO_BASIS if condition == "full" else PLAIN_BASIS
    side = basis.shape[1]
    x = cvxpy.Variable(n)
    constraints = [x[layout.with_symbol(POSITIVE)] >= 0.0]
    flat = basis.reshape(10, -1).T
    divergence = 0.0
    for slots in layout.slots:
        if form == "map":
            matrix = cvxpy.reshape(flat @ x[slots], (side, side), order="C")
        else:
            m, hx, hy, hz, xx, xy, yy, xz, yz, zz = (x[int(i)] for i in slots)
            half = 0.5 * (xx + yy + zz)
            matrix = cvxpy.bmat(
                [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz], [hx, hy, hz, m]]
            )
        constraints.append(matrix - fit.consistent.margin * np.eye(side) >> 0)
        if fit.entropic is not None:
            inverse = np.linalg.inv(np.einsum("k,kij->ij", fit.entropic.x0[slots], basis))
            divergence += cvxpy.trace(inverse @ matrix) - cvxpy.log_det(matrix) - np.linalg.slogdet(inverse)[1] - side
    step = x - fit.centre
    cost = 0.5 * cvxpy.sum_squares(fit.F @ step) + 0.5 * cvxpy.sum_squares(cvxpy.multiply(np.sqrt(fit.pull), step))
    if fit.entropic is not None:
        cost = cost + fit.entropic.weight * divergence
    program = cvxpy.Problem(cvxpy.Minimize(cost), constraints)
    options = {} if tolerance is None else dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate", at a tolerance asked for to compare with
        program.solve(solver=cvxpy.CLARABEL, **options)
    return float(program.value)


Clock = Callable[[], float]


def in_turns(calls: Mapping[str, Callable[[], object]], repeats: int, clock: Clock) -> dict[str, float]:
    """Median seconds of each call, taken in turns so that a busy spell of the machine falls on all of them."""
    for call in calls.values():
        call()
    rounds = [{name: measure.median_time(call, 1, 0, clock) for name, call in calls.items()} for _ in range(repeats)]
    return {name: statistics.median(times[name] for times in rounds) for name in calls}


def solved(fit: ConsistentFit) -> np.ndarray:
    """Our answer to the program."""
    x, _, _, outcome = solve_whitened(fit)
    assert x is not None
    assert outcome is None
    return x


def floor(fit: ConsistentFit, n_links: int, clock: Clock) -> float:
    """Seconds of the Cholesky factors alone, one per iteration of our solve."""
    iterations = solve_whitened(fit)[1]["iterations"]
    A = np.random.default_rng(0).normal(size=(10 * n_links, 10 * n_links))
    A = A @ A.T + 10 * n_links * np.eye(10 * n_links)
    repeats = max(3, 2000 // n_links**2)

    def factors() -> None:
        for _ in range(repeats):
            scipy.linalg.cholesky(A, lower=True, check_finite=False)

    return iterations * measure.median_time(factors, 5, 1, clock) / repeats


def percentiles(fit: ConsistentFit, solves: int, clock: Clock) -> dict[str, float]:
    """Median and 99.9th percentile of the time of one solve."""
    times = [measure.median_time(lambda: solved(fit), 1, 0, clock) for _ in range(solves)]
    return {
        "median_milliseconds_7": 1e3 * float(np.median(times)),
        "p999_milliseconds_7": 1e3 * float(np.quantile(times, 0.999)),
    }


def main() -> None:
    """Measure and print."""
    parser = measure.parser(__doc__)
    parser.add_argument("--cpu", action="store_true", help="CPU seconds instead of wall-clock time")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.cpu else time.perf_counter
    repeats = 1 if arguments.smoke else 5
    result: dict[str, object] = {}
    gaps = []
    for n_links in (7,) if arguments.smoke else (7, 20, 50):
        problem = linear_problem(arm(n_links), noise=2.0)
        for condition in ("full", "plain"):
            method = FeasibleSDP(condition=condition)
            fit = method.whiten(problem)
            x = solved(fit)
            calls = {"ours": lambda f=fit: solved(f), "map": lambda f=fit, c=condition: in_cvxpy(f, "map", c)}
            if condition == "full":
                calls["bmat"] = lambda f=fit: in_cvxpy(f, "bmat")
            times = in_turns(calls, repeats, clock)
            whitening = measure.median_time(lambda m=method, p=problem: m.whiten(p), repeats, 1, clock)
            best = min(fit.value(x), in_cvxpy(fit, "map", condition, tolerance=1e-11))
            # relative to the whole sum of squares, of which least squares leaves one half in these units
            gaps.append((fit.value(x) - best) / (0.5 + best))
            suffix = f"{n_links}" if condition == "full" else f"plain_{n_links}"
            result[f"milliseconds_{suffix}"] = 1e3 * times["ours"]
            result[f"cvxpy_milliseconds_{suffix}"] = 1e3 * times["map"]
            result[f"whitening_milliseconds_{suffix}"] = 1e3 * whitening
            result[f"speedup_{suffix}"] = times["map"] / times["ours"]
            if condition == "full":
                result[f"speedup_bmat_{n_links}"] = times["bmat"] / times["ours"]
                result[f"chi_square_excess_{n_links}"] = fit.chi_square_excess(x)
                result[f"floor_milliseconds_{n_links}"] = 1e3 * floor(fit, n_links, clock)
        entropic = FeasibleSDP(prior="entropic").whiten(problem)
        x = solved(entropic)
        rounds = repeats if n_links < 50 else 1  # cvxpy needs many seconds here
        times = in_turns({"ours": lambda f=entropic: solved(f), "map": lambda f=entropic: in_cvxpy(f, "map")}, rounds, clock)
        best = min(entropic.value(x), in_cvxpy(entropic, "map", tolerance=1e-10 if n_links < 50 else None))
        gaps.append((entropic.value(x) - best) / (0.5 + best))
        result[f"entropic_milliseconds_{n_links}"] = 1e3 * times["ours"]
        result[f"entropic_cvxpy_milliseconds_{n_links}"] = 1e3 * times["map"]
        result[f"entropic_speedup_{n_links}"] = times["map"] / times["ours"]
        if n_links == 7:
            result |= percentiles(FeasibleSDP().whiten(problem), 50 if arguments.smoke else 1000, clock)
        noisy = FeasibleSDP().whiten(linear_problem(arm(n_links, friction=0.5), noise=5.0))
        times = in_turns({"ours": lambda f=noisy: solved(f), "map": lambda f=noisy: in_cvxpy(f, "map")}, repeats, clock)
        result[f"milliseconds_{n_links}_noisy"] = 1e3 * times["ours"]
        result[f"speedup_{n_links}_noisy"] = times["map"] / times["ours"]
    result["gap_max"] = max(gaps)
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
