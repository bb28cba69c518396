"""Effects that act on each joint alone, each written as one formula.

    tau_j = sum_k value_kj f_k(q_j, v_j, a_j, load_j; theta_j)

A subclass states the coefficients that are estimated (:class:`Coefficient`), the parameters ``theta`` inside the formula
(:class:`~dynid.model.effects.effect.NonlinearParameter`, dataclass fields of the same name) and the formula. Signals, derivatives,
code, checks of the options, units and limits of the search follow from these.

An effect that stores energy (:class:`ConservativeEffect`) has a torque that is the slope of a potential, ``f_k = dU_k/dq``.
Differences of ``U_k`` are its exact work, so energy rows need no integral over samples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.model.effects.effect import Effect, EffectValue, Motion, NonlinearParameter, Place, unit_on
from dynid.model.effects.mathematics import ARRAYS, DUALS, Dual, Mathematics, Value, parts
from dynid.model.joint import Joint
from dynid.model.parameters import Column, Kind

MOTION = ("position", "velocity", "acceleration")
_EXPECTED = {"positive": "positive numbers", "nonnegative": "zero or positive numbers", "any": "finite numbers"}


@dataclass(frozen=True)
class Coefficient:
    """A value of an effect that is estimated, one per joint.

    Args:
        symbol: name of the column without the joint's number.
        unit: unit on a revolute joint.

    Examples:
        >>> import dynid
        >>> dynid.Coefficient("fv", "N m s/rad", nonnegative=True, place="damping").symbol
        'fv'
    """

    symbol: str
    unit: str
    """On a turning joint; that of a sliding one follows."""
    nonnegative: bool = False
    """Whether a physical joint never has a negative one."""
    place: Place | None = None
    """Where a simulator's joint holds it."""
    share: float = 1.0
    """What of the value goes there; another one than 1 is the nearest that the place can hold."""


class JointwiseEffect(Effect):
    """Base class of effects with one column per joint and coefficient, acting on that joint alone.

    A subclass is a frozen dataclass with ``name``, ``linear`` and ``formula``:

    Examples:
        >>> from dataclasses import dataclass
        >>> import dynid
        >>> @dataclass(frozen=True)
        ... class Quadratic(dynid.JointwiseEffect):
        ...     '''tau = fq |v| v'''
        ...
        ...     name = "quadratic"
        ...     linear = (dynid.Coefficient("fq", "N m s^2/rad^2"),)
        ...
        ...     def formula(self, m, motion, theta):
        ...         return (abs(motion.velocity) * motion.velocity,)
        >>> dynid.demo_robot(effects=[Quadratic()]).parameters.names[-1]
        'fq7'
    """

    kind: ClassVar[Kind] = "friction"
    linear: ClassVar[tuple[Coefficient, ...]]
    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = ()

    @abstractmethod
    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        """One signal per coefficient, of ``motion`` and the nonlinear parameters ``theta``, by operators and the functions of ``m``."""

    def __post_init__(self) -> None:
        for number in self.nonlinear:
            given = getattr(self, number.name)
            values = np.atleast_1d(np.asarray(given))
            if values.ndim > 1 or not values.size or values.dtype.kind not in "iuf":  # NumPy would take text for a number
                raise InputError(f"{type(self).__name__} {number.name} is {given}, expected a number, or one per joint")
            fine = {"positive": values > 0.0, "nonnegative": values >= 0.0, "any": np.isfinite(values)}[number.sign]
            if not (np.isfinite(values).all() and fine.all()):
                raise InputError(f"{type(self).__name__} {number.name} is {given}, expected {_EXPECTED[number.sign]}")

    def coefficients(self) -> tuple[Coefficient, ...]:
        """The coefficients of this very effect; all joints of the first one stand first among the columns."""
        return self.linear

    # Columns ----------------------------------------------------------------------------------

    @property
    def is_friction(self) -> bool:
        return self.kind == "friction"

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(coefficient.symbol for coefficient in self.coefficients())

    @property
    def nonnegative(self) -> tuple[str, ...]:
        return tuple(coefficient.symbol for coefficient in self.coefficients() if coefficient.nonnegative)

    def columns(self, numbers: Sequence[int], joints: Sequence[Joint]) -> tuple[Column, ...]:
        return tuple(
            Column(coefficient.symbol, number, self.kind, unit_on(joint, coefficient.unit), joint.name)
            for coefficient in self.coefficients()
            for number, joint in zip(numbers, joints, strict=True)
        )

    def incidence(self, n_joints: int) -> Array:
        return np.tile(np.eye(n_joints), (1, len(self.coefficients())))

    # The formula ------------------------------------------------------------------------------

    def signals(self, motion: Motion) -> Array:
        self._check_load(motion)
        shape = motion.velocity.shape
        return beside(self.formula(ARRAYS, motion, self._nonlinear(shape[1])), shape)

    def signals_and_derivatives(self, motion: Motion, options: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        self._check_load(motion)
        known = {number.name for number in self.nonlinear}
        for option in options:
            if option not in known:
                raise InputError(f"effect '{self.name}' has no option '{option}' that could be searched for")
        shape = motion.velocity.shape
        theta = self._nonlinear(shape[1])
        for option in options:
            setattr(theta, option, Dual(getattr(theta, option), {option: 1.0}))
        found = [parts(part) for part in self.formula(DUALS, motion, theta)]
        slopes = {option: beside([slope.get(option, 0.0) for _, slope in found], shape) for option in options}
        return beside([value for value, _ in found], shape), slopes

    def motion_gradient(self, motion: Motion, weights: Array) -> tuple[Array | None, Array | None, Array | None]:
        n = motion.velocity.shape[1]
        total: dict[str, Array] = {}
        for k, slopes in enumerate(self._slopes(motion)):
            own = weights[:, k * n : (k + 1) * n]
            for name, slope in slopes.items():
                total[name] = total[name] + own * slope if name in total else own * slope
        return total.get("position"), total.get("velocity"), total.get("acceleration")

    def _slopes(self, motion: Motion) -> list[Mapping[str, Value]]:
        """Of every coefficient's signal, by position, velocity and acceleration; what does not change it is absent."""
        self._check_load(motion)
        moving: dict[str, Value] = {name: Dual(getattr(motion, name), {name: 1.0}) for name in MOTION}
        formula = self.formula(DUALS, replace(motion, **moving), self._nonlinear(motion.velocity.shape[1]))
        return [parts(part)[1] for part in formula]

    def scalar_signals(self, m: Mathematics, motion: Sequence[Motion]) -> list[Value]:
        n = len(motion)
        options = {number.name: self.option_values(number.name, n).tolist() for number in self.nonlinear}
        by_joint = [
            self.formula(m, motion[j], SimpleNamespace(**{name: values[j] for name, values in options.items()}))
            for j in range(n)
        ]
        return [by_joint[j][k] for k in range(len(self.coefficients())) for j in range(n)]

    @property
    def depends_on_acceleration(self) -> bool:
        n = max([1, *(np.size(getattr(self, number.name)) for number in self.nonlinear)])
        some = np.ones((1, n))
        return any("acceleration" in slope for slope in self._slopes(Motion(some, some, some, some)))

    def _check_load(self, motion: Motion) -> None:
        if self.loaded and motion.load is None:
            raise InputError(
                f"effect '{self.name}' depends on the torque that each joint transmits, but the samples carry no load; "
                "attach one with samples.with_load(...), such as the rigid-body torque of the current estimate"
            )

    def _nonlinear(self, n_joints: int) -> SimpleNamespace:
        """The nonlinear parameters as one number, or one per joint that broadcasts over samples."""
        values, size = self._options
        if size not in (1, n_joints):
            for name in values:
                self.option_values(name, n_joints)  # names the option at fault
        return SimpleNamespace(**values)

    @cached_property
    def _options(self) -> tuple[dict[str, Any], int]:
        """The nonlinear parameters, and how many joints they are for; one for all joints is a plain number.

        Conditions on plain numbers are decided once and not for every sample.
        """
        given = {number.name: np.asarray(getattr(self, number.name), dtype=np.float64) for number in self.nonlinear}
        values = {name: float(own.flat[0]) if (own == own.flat[0]).all() else own for name, own in given.items()}
        return values, max((own.size for own in given.values()), default=1)

    # Nonlinear parameters ---------------------------------------------------------------------

    def kept(self, joints: Sequence[int]) -> Effect:
        given = {number.name: getattr(self, number.name) for number in self.nonlinear}
        several = {name: values for name, values in given.items() if np.size(values) > 1}
        made: Any = replace(self, **{name: tuple(values[j] for j in joints) for name, values in several.items()})  # type: ignore[type-var]
        assert isinstance(made, Effect)
        return made

    def searched_parameters(self) -> tuple[NonlinearParameter, ...]:
        """Parameters with limits that are in use: a width of zero is a sharp sign, and stays sharp."""
        return tuple(
            one
            for one in self.nonlinear
            if one.is_bounded and (not one.logarithmic or np.all(np.asarray(getattr(self, one.name)) > 0.0))
        )

    def nonlinear_values(self, joints: Sequence[Joint]) -> tuple[tuple[EffectValue, ...], ...]:
        searched = {one.name for one in self.searched_parameters()}
        values = {one.name: self.option_values(one.name, len(joints)).tolist() for one in self.nonlinear}
        return tuple(
            tuple(
                EffectValue(
                    joint.name, self.name, one.name, values[one.name][j], unit_on(joint, one.unit), one.name in searched
                )
                for one in self.nonlinear
            )
            for j, joint in enumerate(joints)
        )

    # Simulators -------------------------------------------------------------------------------

    def simulator_joint(self, values: Array, n_joints: int) -> Mapping[Place, Array]:
        held: dict[Place, Array] = {}
        for coefficient, own in zip(self.coefficients(), np.reshape(values, (-1, n_joints)), strict=True):
            if coefficient.place is not None:
                held[coefficient.place] = held.get(coefficient.place, 0.0) + coefficient.share * own
        return held

    @property
    def held_in_part(self) -> tuple[str, ...]:
        return tuple(one.symbol for one in self.coefficients() if one.place is not None and one.share != 1.0)

    @property
    def not_held(self) -> tuple[str, ...]:
        return tuple(one.symbol for one in self.coefficients() if one.place is None)


def beside(values: Sequence[Value], shape: tuple[int, ...]) -> Array:
    """Arrays side by side, each as large as the motion."""
    full = [value if np.shape(value) == shape else np.full(shape, value) for value in values]
    return np.asarray(full[0] if len(full) == 1 else np.hstack(full))


def distinct_whole(what: str, values: Sequence[float], allowed: Sequence[int], expected: str) -> tuple[int, ...]:
    """Different whole numbers, at least one, all among those allowed: powers, harmonics."""
    given = tuple(values)
    if not given or any(value not in allowed for value in given) or len(set(given)) != len(given):
        raise InputError(f"{what} {given}, expected {expected}")
    return tuple(int(value) for value in given)


class ConservativeEffect(JointwiseEffect):
    """Base class of springs: beside the formula of the torque, the potential it is the slope of.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.jointwise import ConservativeEffect
        >>> from dynid.model.effects.springs import TorsionSpring
        >>> issubclass(TorsionSpring, ConservativeEffect)
        True
    """

    kind: ClassVar[Kind] = "spring"

    @abstractmethod
    def potential(self, m: Mathematics, position: Value, theta: Any) -> tuple[Value, ...]:
        """``U`` per unit of every coefficient, whose change with position is the formula."""

    def energy_signals(self, motion: Motion) -> Array:
        shape = motion.position.shape
        return beside(self.potential(ARRAYS, motion.position, self._nonlinear(shape[1])), shape)
