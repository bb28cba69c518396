"""Friction is passive: it takes energy from a joint and never drives it.

A joint that goes forth at the speed ``v`` and back at the same speed loses

    tau(v) - tau(-v) = 2 tau_odd(v)

of energy per unit of the way, where ``tau`` is the sum of all its friction. Friction is passive where this is nowhere negative:

    v tau_odd(v) >= 0      for every speed of the robot: within its velocity limit, and as fast as the log

What does not change with the direction is an offset (that of a sensor, of a current, or Coulomb friction that differs with the
direction): it returns what it takes and may have any sign. Every effect states its own odd part
(:meth:`~dynid.model.effects.Effect.dissipation`), linear in its values, so that the condition is a row per speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.model.effects.effect import Effect
from dynid.model.effects.wrapped import Coupled
from dynid.model.joint import Joint
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot

SPEEDS = np.unique(np.concatenate([np.geomspace(1e-3, 0.1, 7), np.linspace(0.1, 1.0, 10)]))
"""Where the condition is looked at, in parts of the largest speed: dense near zero, where friction turns over."""
MORE_LOAD = 1.5
"""Times the largest load of what is identified on, up to which estimates keep friction passive: other motions load joints more."""
NOTICED = 1e-3
"""Driving torque that counts, as a part of the largest friction of the joint: less is rounding of a solver on the boundary."""


@dataclass(frozen=True, eq=False)
class FrictionReach:
    """How fast every joint with friction can be, and what it carries at most."""

    speed: Array
    """rad/s or m/s; zero where nothing is known, and then nothing is asked of the joint."""
    load: Array
    """N m or N; zero where it is not known."""

    def beyond(self, factor: float) -> FrictionReach:
        """The same speeds under so many times the load: friction is linear in it, so what holds there holds below."""
        return FrictionReach(self.speed, freeze(factor * self.load))

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


class Passivity:
    """The condition over the friction columns of some joints, for any nonlinear parameters of their effects."""

    def __init__(self, effects: Sequence[Effect], numbers: Sequence[int], joints: Sequence[Joint]) -> None:
        listed = [(effect, column) for effect in effects if effect.is_friction for column in effect.columns(numbers, joints)]
        motor = np.array([isinstance(effect, Coupled) for effect, _ in listed], dtype=bool)
        owner = np.array([list(numbers).index(column.number) for _, column in listed], dtype=np.int64)
        places = [(j, of_motors) for of_motors in (False, True) for j in range(len(joints))]
        groups = [(j, of_motors, (owner == j) & (motor == of_motors)) for j, of_motors in places]
        self.names = tuple(column.name for _, column in listed)
        self._signed = np.array([column.symbol in effect.nonnegative for effect, column in listed], dtype=bool)
        self._groups = [(j, of_motors, used) for j, of_motors, used in groups if used.any()]
        self._joints = joints
        self._fixed: tuple[FrictionReach | None, dict[tuple[int, int], Array]] = None, {}

    def matrix(
        self, effects: Sequence[Effect], reach: FrictionReach, *, implied: bool = True
    ) -> tuple[Array, list[tuple[int, bool, float]], BoolArray]:
        """``G`` at the nonlinear parameters of these effects, joint or motor and load of every run of speeds, and which rows are kept.

        Rows in which nothing acts, as inside a dead zone, are left out; without ``implied`` also those that signs of single values hold.
        """
        if self._fixed[0] is not reach:
            self._fixed = reach, {}
        rubbing = [effect for effect in effects if effect.is_friction]
        speeds, idle = SPEEDS[:, None] * reach.speed, np.zeros_like(reach.load)
        # friction is linear in the size of the load, so its ends decide
        loads = [idle, reach.load] if any(effect.loaded for effect in rubbing) and reach.load.any() else [idle]
        parts: list[Array] = [np.zeros((0, len(self.names)))]
        places: list[tuple[int, bool, float]] = []
        for k, load in enumerate(loads):
            odd = np.hstack([np.zeros((len(speeds), 0)), *(self._odd(k, i, e, speeds, load) for i, e in enumerate(rubbing))])
            acts, positive = (odd != 0.0).any(axis=0), self._signed & (odd >= 0.0).all(axis=0)
            for j, of_motors, own in self._groups:
                used = own & acts
                if reach.speed[j] > 0.0 and used.any() and (implied or not positive[used].all()):
                    parts.append(odd * used)
                    places.append((j, of_motors, float(load[j])))
        G = np.vstack(parts)
        kept = (G != 0.0).any(axis=1)
        return G[kept], places, kept

    def rows(self, effects: Sequence[Effect], reach: FrictionReach, *, implied: bool = True) -> PassivityRows:
        """The :meth:`matrix` with the joint, speed and load of every row."""
        G, places, kept = self.matrix(effects, reach, implied=implied)
        words = [f"{'motor of ' if of_motors else ''}{self._joints[j].name}" for j, of_motors, _ in places]
        row = np.repeat(np.arange(len(places)), len(SPEEDS))[kept]
        speed = np.concatenate([np.zeros(0), *(SPEEDS * reach.speed[j] for j, _, _ in places)])[kept]
        carried = np.array([load for _, _, load in places])[row]
        return PassivityRows(self.names, freeze(G), tuple(words[k] for k in row), freeze(speed), freeze(carried))

    def _odd(self, k: int, i: int, effect: Effect, speeds: Array, load: Array) -> Array:
        """Columns of an effect under the load of number ``k``; those that no nonlinear parameter changes are kept for one reach."""
        part = self._fixed[1].get((k, i))
        if part is None:
            part = effect.dissipation(speeds, load)
            if not effect.searched_parameters():
                self._fixed[1][k, i] = part
        return part


def passivity_of(robot: Robot, reach: FrictionReach, *, implied: bool = True) -> PassivityRows:
    """The rows of a whole robot, passive joints of a closed one with friction too."""
    numbers = [int(i) + 1 for i in robot.effect_joints]
    return Passivity(robot.effects, numbers, [robot.joints[n - 1] for n in numbers]).rows(
        robot.effects, reach, implied=implied
    )


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
