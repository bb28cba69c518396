r"""What may be known of a robot beyond physical consistency: constraints for ``FeasibleSDP``, ``feasibility`` and
``PenaltyRetrieval``, and bounds and conditions for the latter.

A link is named by its number from 1, by its own name or by that of its joint; lengths are metres in the link's frame.

    >>> import dynid
    >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
    >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
    >>> limits = (dynid.MassBounds("hand", upper=1.0), dynid.TotalMass(upper=30.0))
    >>> dynid.estimate(data, base, dynid.FeasibleSDP(constraints=limits)).standard["m7"] <= 1.0
    True

``MassBounds``: mass of one ``link`` between ``lower`` and ``upper``, kg.

    >>> dynid.constraints.MassBounds(3, lower=0.5, upper=4.0).upper
    4.0

``TotalMass``: mass of the ``links`` together, by default of all, between ``lower`` and ``upper``, kg.

    >>> dynid.constraints.TotalMass(lower=16.0, upper=20.0).links
    ()

``CentreOfMassInBox``: centre of mass of a ``link`` between the corners ``lower`` and ``upper``.

    >>> dynid.constraints.CentreOfMassInBox(1, lower=(-0.1, -0.1, 0.0), upper=(0.1, 0.1, 0.3)).link
    1

``CentreOfMassInSphere``: centre of mass of a ``link`` within ``radius`` of a ``centre``.

    >>> dynid.constraints.CentreOfMassInSphere(1, centre=(0.0, 0.0, 0.1), radius=0.2).radius
    0.2

``CentreOfMassInCylinder``: centre of mass of a ``link`` within ``radius`` of the line from ``start`` to ``end``, between both.

    >>> dynid.constraints.CentreOfMassInCylinder(1, start=(0.0, 0.0, 0.0), end=(0.0, 0.0, 0.3), radius=0.1).end
    (0.0, 0.0, 0.3)

``CentreOfMassInHull``: centre of mass of a ``link`` in the convex hull of ``points``; ``from_mesh`` takes those of a mesh.

    >>> corners = ((0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1))
    >>> len(dynid.constraints.CentreOfMassInHull(1, corners).points)
    4

``DensityInBox``: the mass of a ``link`` lies inside the box between ``lower`` and ``upper``: centre of mass, second moments and
products of its faces obey what any density inside it does.

    >>> dynid.constraints.DensityInBox("hand", lower=(-0.1, -0.1, 0.0), upper=(0.1, 0.1, 0.3)).link
    'hand'

``DensityInEllipsoid``: the mass of a ``link`` lies inside an ellipsoid with ``centre``, ``semi_axes`` and, by the columns of
``rotation``, the directions of its axes; with full consistency this is necessary and sufficient.

    >>> dynid.constraints.DensityInEllipsoid(1, centre=(0.0, 0.0, 0.0), semi_axes=(0.2, 0.2, 0.3)).semi_axes
    (0.2, 0.2, 0.3)

``SymmetricLink``: a ``link`` is mirror-symmetric about the plane where the coordinate of its axis ``normal`` is ``offset``.

    >>> dynid.constraints.SymmetricLink(2, normal="y").offset
    0.0

``EqualLinks``: ``links`` with the same ten parameters in their own frames, or mirrored along the axis ``mirror``.

    >>> dynid.constraints.EqualLinks((2, 3), mirror="x").mirror
    'x'

``FixedValues``: ``values`` of parameters by name that are known.

    >>> dynid.constraints.FixedValues({"Ia7": 0.0}).values["Ia7"]
    0.0

``PositiveEffects``: values of the effects with these ``symbols`` are not negative, by default of those that cannot be.

    >>> dynid.constraints.PositiveEffects(("fv", "fc")).symbols
    ('fv', 'fc')

``Linear``: a sum of parameters with factors ``terms`` lies between ``lower`` and ``upper``; ``label`` is its name in messages.

    >>> dynid.constraints.Linear({"m1": 1.0, "m2": -1.0}, lower=0.0, label="link 1 is heavier").lower
    0.0

``Constraint``: what a constraint has: a ``kind`` and ``rows(layout)``.

    >>> def kinds(known: list[dynid.constraints.Constraint]) -> list[str]:
    ...     return [one.kind for one in known]
    >>> kinds([dynid.TotalMass(upper=30.0)])
    ['total_mass']

``constraints_from_table``: constraints from the ``[constraints]`` ``table`` of a run file.

    >>> dynid.constraints.constraints_from_table({"total_mass": {"upper": 27.0}})[0].upper
    27.0

``Bounds``: ``limits`` are lower and upper bounds by name (``m1``, ``c1x``, ``I1xx`` about the centre of mass, ``total_mass``),
``constraints`` those that stand in the same file.

    >>> dynid.constraints.Bounds({"m1": (0.5, 4.0), "c1x": (-0.1, 0.1)}).of("m1")
    (0.5, 4.0)

``read_bounds``: the bounds of a CSV (name, lower, upper) or TOML file at ``path``.

    >>> with open("bounds.csv", "w") as file:
    ...     _ = file.write("name,lower,upper\nm1,0.5,4.0\n")
    >>> dynid.constraints.read_bounds("bounds.csv").of("m1")
    (0.5, 4.0)

``Condition``: a condition with a ``name`` for messages; its ``violation`` is a function of the parameters by name that is
positive where the condition is violated.

    >>> dynid.constraints.Condition("link 1 is heavier", lambda p: p["m2"] - p["m1"]).name
    'link 1 is heavier'
"""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.estimation.constraints.bounds": ("Bounds", "read_bounds"),
        "dynid.estimation.constraints.conditions": ("Condition",),
        "dynid.estimation.constraints.constraints": (
            "CentreOfMassInBox",
            "CentreOfMassInCylinder",
            "CentreOfMassInHull",
            "CentreOfMassInSphere",
            "Constraint",
            "DensityInBox",
            "DensityInEllipsoid",
            "EqualLinks",
            "FixedValues",
            "Linear",
            "MassBounds",
            "PositiveEffects",
            "SymmetricLink",
            "TotalMass",
            "constraints_from_table",
        ),
    },
)


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
