"""The functions of one robot, before they are written in a language: what each takes, what it fills, and what it must return.

    tau = M(q) a + C(q, v) v + g(q) + friction(q, v, a, load)

``coriolis_matrix`` is that of Christoffel symbols, so ``dM/dt - 2 C`` is skew; robots on a floating base, whose velocities are no rates of
coordinates, have none. ``forward_dynamics`` takes friction at the sliding sign of the speed; where friction depends on the load, which
depends on the acceleration, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics, needs_load, random_states_within_limits, transmitting
from dynid.dynamics.joint_effects import rotor_matrix
from dynid.dynamics.regressors import static_regressor
from dynid.io.code.equations import SymbolicRobot
from dynid.io.code.expressions import Dialect, Expression, inputs_of, straight_line
from dynid.io.robots.proof import SMALLEST_SHARE, largest_gap
from dynid.model.friction import without_friction
from dynid.model.robot import Robot

Call: TypeAlias = Callable[[str, Sequence[Array], tuple[int, ...]], Array]
"""Evaluates a function by name at states ``(states, ..)`` into an array of a shape."""


@dataclass(frozen=True, eq=False)
class Function:
    """One function: what it takes, what it fills and its purpose."""

    arguments: tuple[tuple[str, int], ...]
    output: str
    shape: tuple[int, ...]
    values: NDArray[np.object_]
    inputs: frozenset[str]
    purpose: str

    @property
    def size(self) -> int:
        """Numbers that it fills."""
        return int(np.prod(self.shape))

    def body(self, dialect: Dialect) -> list[str]:
        """Its code: inputs into locals ``q0 ..`` first, so that outputs may overwrite them, then the statements."""
        lines: list[str] = []
        for letter, size in self.arguments:
            used = [k for k in range(size) if f"{letter}{k}" in self.inputs]
            lines += [f"{dialect.local}{letter}{k} = {dialect.entry(letter, (k,))}{dialect.end}" for k in used]
            if not used and dialect.unused is not None:
                lines.append(dialect.unused.format(letter))
        places = (dialect.entry(self.output, place) for place in np.ndindex(self.shape))
        return lines + straight_line(dict(zip(places, self.values, strict=True)), dialect)


def robot_functions(robot: Robot) -> dict[str, Function]:
    """Every function of a robot, by its name."""
    symbols = SymbolicRobot.of(robot)
    (q, v, a), n = symbols.motion(), robot.n_dof
    still, load, torque = symbols.constants(np.zeros(n)), symbols.inputs("load", n), symbols.inputs("tau", n)
    carried = symbols.transmitted_torque(q, v, a)
    total = carried + symbols.rotor_torque(a) + symbols.friction(q, v, a, carried)
    position, velocity, acceleration, loads = ("q", robot.n_position), ("v", n), ("a", n), ("load", n)
    found = {
        "inverse_dynamics": _function(
            (position, velocity, acceleration),
            "tau",
            total,
            "tau = M(q) a + C(q, v) v + g(q) + friction: torque of a motion",
        ),
        "mass_matrix": _function((position,), "M", symbols.mass_matrix(q), "inertia matrix with rotor inertias"),
        "gravity": _function((position,), "tau", symbols.rigid_torque(q, still, still), "torque that holds against gravity"),
        "coriolis": _function(
            (position, velocity),
            "tau",
            symbols.rigid_torque(q, v, still, gravity=False),
            "Coriolis and centrifugal torque c(q, v) = C(q, v) v",
        ),
        "friction": _function(
            (position, velocity, acceleration, loads),
            "tau",
            symbols.friction(q, v, a, load),
            "friction and offsets; load is the torque that the joints transmit",
        ),
    }
    if not robot.floating:
        found["coriolis_matrix"] = _function(
            (position, velocity), "C", symbols.coriolis_matrix(q, v), "C(q, v) by Christoffel symbols: dM/dt - 2 C is skew"
        )
    if not load_dependent(found):
        found["forward_dynamics"] = _function(
            (position, velocity, ("tau", n)), "a", symbols.acceleration(q, v, torque), "acceleration under a torque"
        )
    return found


def load_dependent(functions: Mapping[str, Function]) -> bool:
    """Whether friction depends on the torque that the joints transmit."""
    return any(name.startswith("load") for name in functions["friction"].inputs)


def _function(arguments: Sequence[tuple[str, int]], output: str, values: NDArray[np.object_], purpose: str) -> Function:
    flat: NDArray[np.object_] = values.ravel()
    expressions: list[Expression] = flat.tolist()
    return Function(tuple(arguments), output, values.shape, flat, frozenset(inputs_of(expressions)), purpose)


def name_of(robot: str) -> str:
    """A robot's name as one that every language takes."""
    name = re.sub(r"\W+", "_", robot, flags=re.ASCII).strip("_") or "robot"
    return name if name[0].isalpha() else f"robot_{name}"


def function_gap(robot: Robot, call: Call, n_states: int = 100, seed: int = 0) -> float:
    """Largest relative difference between written functions and Python, on random states.

    Every function counts. Parts of the torque are compared with the whole of it, entries of matrices with those of the inertia matrix
    ``sqrt(M_jj M_kk)``, where diagonal entries count as no less than a share of the largest entry
    (:data:`~dynid.io.robots.proof.SMALLEST_SHARE`): a link without inertia leaves nothing but rounding there.
    """
    q, v, a = random_states_within_limits(robot, n_states, seed)
    still = np.zeros_like(v)
    load, frictionless = (inverse_dynamics(one, q, v, a) for one in (transmitting(robot), without_friction(robot)))
    total = inverse_dynamics(robot, q, v, a, load)
    gravity = inverse_dynamics(robot, q, still, still, effects=False)

    def coriolis(speed: Array) -> Array:
        return inverse_dynamics(robot, q, speed, still, effects=False) - gravity

    expected = {
        "inverse_dynamics": ((q, v, a), total),
        "gravity": ((q,), gravity),
        "coriolis": ((q, v), coriolis(v)),
        "friction": ((q, v, a, load), total - frictionless),
    }
    gaps = [largest_gap(ours, call(name, given, ours.shape), total) for name, (given, ours) in expected.items()]
    inertia, _ = static_regressor(robot, q)
    M = inertia @ robot.parameters.values[: robot.parameters.n_inertial] + rotor_matrix(robot)
    diagonal = np.abs(np.diagonal(M, axis1=1, axis2=2)).max(axis=0)
    size = np.sqrt(np.maximum(diagonal, SMALLEST_SHARE * np.abs(M).max()))
    scale = np.where((both := np.outer(size, size)) > 0.0, both, 1.0)
    gaps.append(float((np.abs(call("mass_matrix", (q,), M.shape) - M).max(axis=0) / scale).max()))
    if not needs_load(robot):
        bias = inverse_dynamics(robot, q, v, still)
        answer = call("forward_dynamics", (q, v, total), a.shape)
        gaps.append(largest_gap(total, np.einsum("nij,nj->ni", M, answer) + bias))
    if not robot.floating:  # C e_j = (c(v + e_j) - c(v) - c(e_j)) / 2, of the symmetric form that c is made of
        at_v, units = coriolis(v), np.eye(robot.n_dof)
        C = 0.5 * np.stack([coriolis(v + e) - at_v - coriolis(still + e) for e in units], axis=-1)
        fastest = 1.0 + np.abs(v).max()
        gaps.append(float((np.abs(call("coriolis_matrix", (q, v), C.shape) - C).max(axis=0) / (scale * fastest)).max()))
    return max(gaps)
