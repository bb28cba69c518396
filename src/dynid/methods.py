"""Estimation methods, and how to add your own.

A method is a value with options and no fitted state; :func:`dynid.estimate` applies it to a regression:

    >>> import dynid
    >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
    >>> data = dynid.build_regression(robot, samples)
    >>> result = dynid.estimate(data, dynid.reduce_to_base(robot), dynid.methods.WeightedLeastSquares())
    >>> result.method, result.rank
    ('wls', 69)

Every method has a name for the command line and for run files:

    >>> "sdp" in dynid.methods.method_names()
    True

``PenaltyRetrieval``: feasible parameters under any constraint, by penalties (Gaz and others 2019). ``condition``, ``margin``,
``absolute``, ``constraints``, ``effects_positive``, ``weighted``, ``covariance`` and ``tolerance`` are as for ``FeasibleSDP``;
``bounds`` are bounds or a file of them, ``conditions`` functions of the parameters that are positive where violated. ``cost`` is
``torque`` for the torque error (one step) or ``coefficients`` for the distance of base values; ``optimiser`` is ``refine`` (from
the convex relaxation, then from random ``starts``) or ``annealing`` with ``steps`` (kappa), ``growth`` of the penalty per step and
``iterations`` per step; ``seed`` is that of everything random, ``engine`` says where starts run, ``progress`` is called after each.

    >>> robot = dynid.demo_robot(effects="none")
    >>> data, base = dynid.build_regression(robot, dynid.demo_samples(robot)), dynid.reduce_to_base(robot)
    >>> bounds = dynid.Bounds({"m7": (0.1, 5.0)})
    >>> result = dynid.estimate(data, base, dynid.PenaltyRetrieval(bounds=bounds, starts=1))
    >>> result.feasible, 0.1 <= result.standard["m7"] <= 5.0
    (True, True)
"""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.estimation.result": ("Method",),
        "dynid.estimation.methods.corrected": ("CorrectedLeastSquares",),
        "dynid.estimation.methods.essential": ("EssentialParameters",),
        "dynid.estimation.methods.instrumental": ("InstrumentalVariables",),
        "dynid.estimation.methods.least_squares": ("OrdinaryLeastSquares",),
        "dynid.estimation.methods.log_cholesky": ("LogCholesky",),
        "dynid.estimation.methods.manifold": ("Manifold",),
        "dynid.estimation.methods.recursive": ("RecursiveLeastSquares",),
        "dynid.estimation.methods.registry": ("method_named", "method_names", "register_method", "unregister_method"),
        "dynid.estimation.methods.ridge": ("Ridge",),
        "dynid.estimation.methods.robust": ("IteratedReweighted",),
        "dynid.estimation.methods.sdp": ("FeasibleSDP", "WeightedFeasibleSDP"),
        "dynid.estimation.methods.total": ("TotalLeastSquares",),
        "dynid.estimation.methods.weighted": ("WeightedLeastSquares",),
        "dynid.estimation.retrieval.retrieve": ("PenaltyRetrieval",),
    },
)


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
