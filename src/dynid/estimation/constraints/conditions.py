"""What is known of a robot but neither linear nor convex: any function of the parameters, with its exact derivative.

    h(parameters) <= 0      holds,      h(parameters) > 0      is violated by that much

The function reads parameters by name, decides by ``if`` as it likes, and is differentiated by numbers that carry their own
gradient, which NumPy's ``sqrt``, ``exp``, ``sin`` and so on pass through:

    def in_cylinder(p):
        return np.sqrt(p["c1x"] ** 2 + p["c1z"] ** 2) - 0.15

Names are those of the parameters (``m1``, ``mx1``, ``Ixx1`` about the frame's origin, ``fv1``), ``c1x`` for the centre of
mass and ``I1xx`` for the inertia about it. A function that needs plain numbers (``math.sqrt``) is differenced instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import Layout
from dynid.model.effects.mathematics import Dual, parts
from dynid.model.parameters import Parameters, canonical_name

TOTAL_MASS = "total_mass"
GRADIENT = "phi"
"""The quantity that a dual number of a condition changes with: all parameters together."""
STEP = 6e-6
"""Relative step of central differences."""


_CENTRE = re.compile(r"c_?(\d{1,9})([xyz])|c([xyz])(\d{1,9})")
_BARYCENTRIC = re.compile(r"I_?(\d{1,9})([xyz]{2})")
_ORIGIN = re.compile(r"J_?(\d{1,9})([xyz]{2})")
_MOMENT = re.compile(r"mc_?(\d{1,9})([xyz])")


def centre_name(name: str) -> tuple[int, str] | None:
    """Link and axis of a centre-of-mass coordinate ``c3x``."""
    found = _CENTRE.fullmatch(name)
    if not found:
        return None
    return (int(found[1]), found[2]) if found[1] else (int(found[4]), found[3])


def barycentric_name(name: str) -> tuple[int, str] | None:
    """Link and axes of an inertia about the centre of mass ``I3xy``."""
    found = _BARYCENTRIC.fullmatch(name)
    return (int(found[1]), "".join(sorted(found[2]))) if found else None


def parameter_name(name: str) -> str:
    """The name used here of a parameter of the regressor; ``J3xy`` and ``mc3x`` (Gaz) are known too."""
    inertia, moment = _ORIGIN.fullmatch(name), _MOMENT.fullmatch(name)
    if inertia:
        return f"I{''.join(sorted(inertia[2]))}{int(inertia[1])}"
    if moment:
        return f"m{moment[2]}{int(moment[1])}"
    return canonical_name(name)


def is_known(name: str, parameters: Parameters) -> bool:
    """Whether a quantity is one of this robot: its total mass, a centre of mass, an inertia about it, or a parameter."""
    place = centre_name(name) or barycentric_name(name)
    if place is not None:
        return 1 <= place[0] <= parameters.n_inertial // 10
    return name == TOTAL_MASS or parameter_name(name) in parameters.names


def expected_names(parameters: Parameters) -> str:
    """What a quantity of this robot may be called, in words."""
    effects = ", ".join(parameters.names[parameters.n_inertial :]) or "none"
    return (
        f"{TOTAL_MASS}, m1 .., c1x .., I1xx .. about the centre of mass, Ixx1 .. about the frame, or an effect ({effects}), "
        f"with links from 1 to {parameters.n_inertial // 10}"
    )


class Reader:
    """Parameters by name, for one evaluation of a condition."""

    def __init__(self, layout: Layout, values: Array, *, gradients: bool = False) -> None:
        self._layout = layout
        self._values = values
        self._unit = np.eye(len(layout)) if gradients else None

    def _at(self, index: int) -> Any:
        value = float(self._values[index])
        return value if self._unit is None else Dual(value, {GRADIENT: self._unit[index]})

    def __getitem__(self, name: str) -> Any:
        centre, inertia = centre_name(name), barycentric_name(name)
        if name == TOTAL_MASS:
            return sum(self.mass(link) for link in self._layout.links)
        if centre is not None:
            link, axis = centre
            return self._first(link, axis) / self.mass(link)
        if inertia is not None:
            link, axes = inertia
            return self._about_centre(link, axes[0], axes[1])
        return self._at(self._layout.index(parameter_name(name)))

    def _first(self, link: int | str, axis: str) -> Any:
        return self._at(int(self._layout.link_slots(link)[1 + "xyz".index(axis)]))

    def _about_centre(self, link: int | str, a: str, b: str) -> Any:
        """``I_aa = J_aa - (h_b^2 + h_c^2)/m`` and ``I_ab = J_ab + h_a h_b/m``."""
        place = ("xx", "xy", "yy", "xz", "yz", "zz").index("".join(sorted(a + b)))
        J, m = self._at(int(self._layout.link_slots(link)[4 + place])), self.mass(link)
        if a != b:
            return J + self._first(link, a) * self._first(link, b) / m
        u, v = (self._first(link, axis) for axis in "xyz" if axis != a)
        return J - (u * u + v * v) / m

    def mass(self, link: int | str) -> Any:
        """Mass of a link by number or name, kg."""
        return self._at(int(self._layout.link_slots(link)[0]))

    def com(self, link: int | str) -> tuple[Any, Any, Any]:
        """Centre of mass in the link's frame, m."""
        x, y, z = (self._first(link, axis) / self.mass(link) for axis in "xyz")
        return x, y, z

    def inertia_at_com(self, link: int | str) -> list[list[Any]]:
        """Inertia tensor about the centre of mass, kg m^2."""
        return [[self._about_centre(link, a, b) for b in "xyz"] for a in "xyz"]


Violation: TypeAlias = Callable[[Reader], Any]


@dataclass(frozen=True)
class Condition:
    """A named function of the parameters by name that is positive where the condition is violated.

    Examples:
        >>> Condition("link 1 is heavier", lambda p: p["m2"] - p["m1"]).name
        'link 1 is heavier'
    """

    name: str
    violation: Violation

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("a condition has no name, expected one to speak of it when it is violated")
        if not callable(self.violation):
            raise InputError(f"condition '{self.name}' is {self.violation!r}, expected a function of the parameters")

    def values(self, layout: Layout, phi: Array) -> Array:
        """The violations, one or several."""
        return _numbers(self.name, self.violation(Reader(layout, phi)))

    def derivative(self, layout: Layout, phi: Array, scale: Array) -> tuple[Array, Array, bool]:
        """Violations, their Jacobian over the parameters, and whether it is exact."""
        try:
            found = np.ravel(np.asarray(self.violation(Reader(layout, phi, gradients=True)), dtype=object))
        except TypeError as error:
            if "Dual" not in str(error):
                raise
            return (*self._differences(layout, phi, scale), False)
        h, slopes = zip(*(parts(entry) for entry in found), strict=True)
        J = np.array([np.broadcast_to(slope.get(GRADIENT, 0.0), len(layout)) for slope in slopes])
        return _numbers(self.name, h), J, True

    def _differences(self, layout: Layout, phi: Array, scale: Array) -> tuple[Array, Array]:
        h = self.values(layout, phi)
        J = np.empty((len(h), len(layout)))
        for i, size in enumerate(scale):
            step = np.zeros(len(layout))
            step[i] = STEP * max(float(size), abs(float(phi[i])))
            J[:, i] = (self.values(layout, phi + step) - self.values(layout, phi - step)) / (2.0 * step[i])
        return h, J


def _numbers(name: str, values: Any) -> Array:
    try:
        h = np.atleast_1d(np.asarray(values, dtype=np.float64)).ravel()
    except (TypeError, ValueError):
        raise InputError(f"condition '{name}' returned {values!r}, expected one number or several") from None
    if not np.isfinite(h).all():
        raise InputError(f"condition '{name}' returned {h.tolist()}, expected finite numbers")
    return h


def as_conditions(given: Iterable[Condition | Violation]) -> tuple[Condition, ...]:
    """Conditions from what a user gave: conditions, or functions that answer to their own name."""
    found = [
        entry if isinstance(entry, Condition) else Condition(getattr(entry, "__name__", type(entry).__name__), entry)
        for entry in given
    ]
    names = [entry.name for entry in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{names.count(twice[0])} conditions are named '{twice[0]}', expected names of their own")
    return tuple(found)


def check_names(conditions: Sequence[Condition], layout: Layout) -> None:
    """Refuse bounds and formulas of links that the robot does not have, before any work."""
    for condition in conditions:
        for quantity in getattr(condition.violation, "quantities", ()):
            place = centre_name(quantity) or barycentric_name(quantity)
            if place is not None and place[0] not in layout.links:
                known = [str(link) for link in layout.links]
                raise UnknownNameError("link", str(place[0]), known, f"'{quantity}' of condition '{condition.name}'")
