"""Friction is passive: it takes energy from a joint and never drives it.

A joint that goes forth at the speed ``v`` and back at the same speed loses

    tau(v) - tau(-v) = 2 tau_odd(v)

of energy per unit of the way, where ``tau`` is the sum of all its friction. Friction is passive where this is nowhere negative:

    v tau_odd(v) >= 0      for every speed of the robot: within its velocity limit, and as fast as the log

What does not change with the direction is an offset (that of a sensor, of a current, or Coulomb friction that differs with the
direction): it returns what it takes and may have any sign. Every effect states its own odd part
(:meth:`~dynid.robot.effects.Effect.dissipation`), linear in its values, so that the condition is a row per speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.parameters import Parameters
from dynid.robot.effects import Coupled, Effect
from dynid.robot.joint import Joint
from dynid.robot.model import Robot

SPEEDS = np.unique(np.concatenate([np.geomspace(1e-3, 0.1, 7), np.linspace(0.1, 1.0, 10)]))
"""Where the condition is looked at, in parts of the largest speed: dense near zero, where friction turns over."""
NOTICED = 1e-3
"""Driving torque that counts, as a part of the largest friction of the joint: less is rounding of a solver on the boundary."""


@dataclass(frozen=True, eq=False)
class FrictionReach:
    """How fast every joint with friction can be, and what it carries at most."""

    speed: Array
    """rad/s or m/s; zero where nothing is known, and then nothing is asked of the joint."""
    load: Array
    """N m or N; zero where it is not known."""

    @classmethod
    def of(cls, robot: Robot, samples: Iterable[Any] = ()) -> FrictionReach:
        """From the velocity limits of a robot and samples of its motion; streams, which hold no arrays, add nothing."""
        limits = np.array([robot.joints[i].dq_max for i in robot.effect_joints])
        speed, load = np.where(np.isfinite(limits), limits, 0.0), np.zeros(len(limits))
        n = len(robot.driven)  # they stand first; passive joints of a closed robot are not in samples
        for one in samples:
            for values, most in ((getattr(one, "velocity", None), speed), (getattr(one, "load", None), load)):
                if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == n:
                    most[:n] = np.maximum(most[:n], np.abs(values).max(axis=0, initial=0.0))
        return cls(freeze(speed), freeze(load))


@dataclass(frozen=True, eq=False)
class PassivityRows:
    """``G c >= 0`` over the values ``c`` of the friction columns: the odd part of one joint's friction at one speed."""

    names: tuple[str, ...]
    G: Array
    """``(rows, columns)``, N m or N per unit of each value."""
    joint: tuple[str, ...]
    """Joint of each row; motors of a coupled transmission are called so."""
    speed: Array
    load: Array

    def __len__(self) -> int:
        return len(self.G)


@dataclass(frozen=True)
class Driving:
    """A joint whose friction would drive it: where, and with which torque (negative)."""

    joint: str
    speed: float
    torque: float
    largest: float
    """Largest friction of the joint over all speeds."""


@dataclass(frozen=True, eq=False)
class FrictionColumns:
    """The friction columns of some joints: what the rows need to know of them beside the inner numbers of the effects."""

    names: tuple[str, ...]
    signed: BoolArray
    """Whether a column's value is never negative by itself."""
    groups: tuple[tuple[int, bool, BoolArray], ...]
    """Place of a joint, whether its motor is meant, and the columns that act there."""

    @classmethod
    def of(cls, effects: Sequence[Effect], numbers: Sequence[int], joints: Sequence[Joint]) -> FrictionColumns:
        rubbing = [effect for effect in effects if effect.is_friction]
        listed = [(effect, column) for effect in rubbing for column in effect.columns(numbers, joints)]
        signed = np.array([column.symbol in effect.nonnegative for effect, column in listed], dtype=bool)
        motor = np.array([isinstance(effect, Coupled) for effect, _ in listed], dtype=bool)
        owner = np.array([list(numbers).index(column.number) for _, column in listed], dtype=np.int64)
        places = [(j, of_motors) for of_motors in (False, True) for j in range(len(joints))]
        groups = [(j, of_motors, (owner == j) & (motor == of_motors)) for j, of_motors in places]
        acting = tuple((j, of_motors, used) for j, of_motors, used in groups if used.any())
        return cls(tuple(column.name for _, column in listed), signed, acting)


def passivity_rows(
    effects: Sequence[Effect],
    numbers: Sequence[int],
    joints: Sequence[Joint],
    reach: FrictionReach,
    *,
    implied: bool = True,
    columns: FrictionColumns | None = None,
    fixed: dict[tuple[int, int], Array] | None = None,
) -> PassivityRows:
    """The rows of the joints with these numbers; without ``implied`` those left out that signs of single values hold already.

    ``columns`` are those of the effects, where they are known: they do not change with inner numbers. ``fixed`` keeps the parts
    of effects without inner numbers for further calls with the same reach.
    """
    rubbing = [effect for effect in effects if effect.is_friction]
    known = FrictionColumns.of(effects, numbers, joints) if columns is None else columns
    speeds = SPEEDS[:, None] * reach.speed
    parts: list[Array] = [np.zeros((0, len(known.names)))]
    places: list[tuple[int, bool, float]] = []
    kept_parts: dict[tuple[int, int], Array] = {} if fixed is None else fixed
    for k, load in enumerate(_deciding_loads(rubbing, reach)):
        odd = _dissipation(rubbing, speeds, load, k, kept_parts)
        acts, positive = np.asarray((odd != 0.0).any(axis=0)), np.asarray((odd >= 0.0).all(axis=0))
        for j, of_motors, own in known.groups:
            used = own & acts
            if not used.any() or not reach.speed[j] > 0.0:
                continue
            if not implied and known.signed[used].all() and positive[used].all():
                continue
            parts.append(np.where(used, odd, 0.0))
            places.append((j, of_motors, float(load[j])))
    return _acting_rows(known.names, np.vstack(parts), places, speeds, joints)


def _deciding_loads(rubbing: Sequence[Effect], reach: FrictionReach) -> list[Array]:
    """Loads at which friction is looked at: it is linear in the size of the load, so its ends decide."""
    idle = np.zeros_like(reach.load)
    return [idle, reach.load] if any(effect.loaded for effect in rubbing) and reach.load.any() else [idle]


def _dissipation(
    rubbing: Sequence[Effect], speeds: Array, load: Array, k: int, fixed: dict[tuple[int, int], Array]
) -> Array:
    """Columns of all effects under the load of number ``k``; ``fixed`` keeps those that no inner number changes."""
    parts = [np.zeros((len(speeds), 0))]
    for i, effect in enumerate(rubbing):
        part = fixed.get((k, i))
        if part is None:
            part = effect.dissipation(speeds, load)
            if not effect.nonlinear_options():
                fixed[k, i] = part
        parts.append(part)
    return np.hstack(parts)


def _acting_rows(
    names: tuple[str, ...], G: Array, places: Sequence[tuple[int, bool, float]], speeds: Array, joints: Sequence[Joint]
) -> PassivityRows:
    """The rows in which something acts, which inside a dead zone is nothing; all speeds of each place stand together."""
    kept = (G != 0.0).any(axis=1)
    words = [f"{'motor of ' if of_motors else ''}{joints[j].name}" for j, of_motors, _ in places]
    row = np.repeat(np.arange(len(places)), len(speeds))[kept]
    speed = np.concatenate([np.zeros(0), *(speeds[:, j] for j, _, _ in places)])[kept]
    carried = np.array([load for _, _, load in places])[row]
    return PassivityRows(names, freeze(G[kept]), tuple(words[k] for k in row), freeze(speed), freeze(carried))


def passivity_of(robot: Robot, reach: FrictionReach, *, implied: bool = True) -> PassivityRows:
    """The rows of a whole robot, passive joints of a closed one with friction too."""
    numbers = [int(i) + 1 for i in robot.effect_joints]
    return passivity_rows(robot.effects, numbers, [robot.joints[n - 1] for n in numbers], reach, implied=implied)


def driving_joints(robot: Robot, parameters: Parameters, reach: FrictionReach) -> tuple[Driving, ...]:
    """Joints whose friction, at these values, would drive them at some speed, each where it does so most."""
    rows = passivity_of(robot, reach)
    if not len(rows):
        return ()
    torque = rows.G @ np.array([parameters[name] for name in rows.names])
    found = []
    for joint in dict.fromkeys(rows.joint):
        own = np.array([name == joint for name in rows.joint])
        worst = int(np.flatnonzero(own)[np.argmin(torque[own])])
        largest = float(np.abs(torque[own]).max())
        if torque[worst] < -NOTICED * largest:
            found.append(Driving(joint, float(rows.speed[worst]), float(torque[worst]), largest))
    return tuple(found)
