r"""Physical consistency of bodies, and feasibility of base values.

A body is consistent when its pseudo-inertia is positive definite; base values are feasible when a robot with consistent
bodies has them.

``feasibility``: whether some consistent robot has these base values (BPFT of Sousa and Cortesao). ``base`` are the base
parameters and ``beta`` their values; ``condition`` is ``full`` or ``plain``, ``constraints`` are further ones, ``margin`` is the
smallest eigenvalue asked of every link, relative to its size in ``prior`` (that of ``robot`` if given) or in SI units with
``absolute``; with ``effects_positive`` friction and rotor inertia that cannot be negative are zero or more.

    >>> import dynid
    >>> robot = dynid.demo_robot(effects="none")
    >>> base = dynid.reduce_to_base(robot)
    >>> beta = base.base_values(robot.parameters.values)
    >>> dynid.feasibility(base, beta).decision, dynid.feasibility(base, -beta).decision
    ('feasible', 'infeasible')

``closest_feasible``: the feasible base values nearest to ``beta`` (BPFC). ``metric`` is ``base`` for the Euclidean distance,
which depends on the grouping, or ``torque`` for the root mean square torque at random states of ``robot``; ``gram`` is any
other quadratic metric. ``base``, ``condition``, ``constraints``, ``margin``, ``absolute``, ``prior`` and ``effects_positive`` are as
for ``feasibility``.

    >>> dynid.closest_feasible(base, beta).distance < 1e-9
    True

``repair``: the nearest consistent model of a ``robot``: its motion is kept where possible, else its torque as near as possible
at ``n_states`` random states (``seed``); ``margin`` is the smallest eigenvalue of every link relative to its size, ``constraints`` are
further ones on its bodies.

    >>> broken = robot.with_parameters({"Ixx3": -0.01})
    >>> dynid.check_model(dynid.repair(broken).robot).feasible
    True

``read_base_values``: base values from a CSV file at ``path``, grouped by expressions beside them, by a matrix in the file ``grouping``
or by a ``robot``; the page on feasibility shows the files.

    >>> with open("beta.csv", "w") as file:
    ...     _ = file.write("expression,value\nm1 + m2,-3.0\n")
    >>> values = dynid.feasible.read_base_values("beta.csv")
    >>> values.labels
    ('m1 + m2',)

``check_base``: what is proven of the values ``given``, and the nearest feasible ones; ``condition``, ``margin`` and ``constraints`` are
as for ``feasibility``.

    >>> found = dynid.feasible.check_base(values)
    >>> found.verdict.decision, round(found.distance, 3)
    ('infeasible', 3.0)

``write_sdpa``: writes a semidefinite ``program`` to a file ``path`` in SDPA format, for other solvers; here that of an estimate
(FBPE).

    >>> from dynid.estimation.linear import LinearProblem
    >>> data = dynid.build_regression(robot, dynid.demo_samples(robot))
    >>> fit = dynid.FeasibleSDP().whiten(LinearProblem.of(data, base, robot.parameters))
    >>> dynid.write_sdpa(fit, "fit.dat-s").name
    'fit.dat-s'

``feasibility_program``: the program of ``feasibility`` for ``write_sdpa``; ``base``, ``beta``, ``condition``, ``constraints``, ``margin``,
``absolute``, ``prior``, ``robot`` and ``effects_positive`` are as there.

    >>> dynid.write_sdpa(dynid.feasible.feasibility_program(base, beta), "bpft.dat-s").name
    'bpft.dat-s'

``correction_program``: the program of ``closest_feasible``; ``base``, ``beta``, ``condition``, ``metric``, ``constraints``, ``margin``,
``absolute``, ``prior``, ``robot``, ``gram`` and ``effects_positive`` are as there.

    >>> dynid.write_sdpa(dynid.feasible.correction_program(base, -beta), "bpfc.dat-s").name
    'bpfc.dat-s'
"""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.estimation.convex.feasibility": ("closest_feasible", "feasibility"),
        "dynid.estimation.convex.repair": ("repair",),
        "dynid.estimation.convex.sdpa": ("correction_program", "feasibility_program", "write_sdpa"),
        "dynid.inertia": ("consistency", "is_consistent"),
        "dynid.run.base_check": ("check_base", "read_base_values"),
        "dynid.validation.consistency": ("check_model",),
    },
)


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
