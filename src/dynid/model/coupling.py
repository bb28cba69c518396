"""Motors that drive several joints together: the coupling of a transmission.

With ``N`` the gear ratios (motor turns per joint turn, with signs) and ``B`` the coupling,

    q_motor = N B q,      tau = B^T N tau_motor

because power is the same on both sides. ``B`` has a unit diagonal where every motor turns its own joint: a wrist whose motor 6
also turns with joint 5 has ``B[6, 5] = 1``, so ``v_m6 = v_6 + v_5`` (after the gears) and ``tau_5`` receives ``tau_m6``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, matrix
from dynid.codec import read_fields
from dynid.errors import InputError, UnknownNameError

Side: TypeAlias = Literal["joint", "motor"]
SIDES: tuple[Side, ...] = ("joint", "motor")
TABLE = ("side", "gear_ratios", "matrix", "effects")
"""Keys of a ``[coupling]`` table beside its terms, such as ``"6:5" = 1``."""


@dataclass(frozen=True)
class Coupling:
    """The motor-to-joint matrix of a robot and its gear ratios.

    Args:
        matrix: ``B`` of ``v_motor = B v`` after the gears, row by row, over the joints with one degree of freedom.
        gear_ratios: motor turns per joint turn, one per motor, negative where it turns the other way; None where not known.
        side: where logs of this robot are measured unless they say otherwise, ``joint`` or ``motor``.
        effects: names of the effects of motors that drive several joints; None for viscous and Coulomb friction and rotor
            inertia as far as the joints have them.

    Examples:
        >>> import dynid
        >>> wrist = dynid.Coupling(((1.0, 0.0), (1.0, 1.0)), gear_ratios=(50.0, -40.0))
        >>> wrist.coupled_motors, wrist.at_motors([[0.2, 0.1]]).round(6).tolist()
        ((2,), [[10.0, -12.0]])
    """

    matrix: tuple[tuple[float, ...], ...]
    gear_ratios: tuple[float, ...] | None = None
    side: Side = "joint"
    effects: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        B = checked_coupling(self.matrix)
        object.__setattr__(self, "matrix", B)
        if self.side not in SIDES:
            raise UnknownNameError("side of the gearbox", str(self.side), SIDES, "the coupling")
        if self.gear_ratios is not None:
            ratios = tuple(float(x) for x in self.gear_ratios)
            if len(ratios) != len(B) or not all(np.isfinite(x) and x != 0.0 for x in ratios):
                raise InputError(f"gear ratios of the coupling are {ratios}, expected {len(B)} numbers that are not zero")
            object.__setattr__(self, "gear_ratios", ratios)
        if self.effects is not None:
            object.__setattr__(self, "effects", tuple(self.effects))

    @property
    def n_joints(self) -> int:
        return len(self.matrix)

    @property
    def B(self) -> Array:
        """The coupling as a matrix."""
        return np.array(self.matrix)

    @property
    def coupled_motors(self) -> tuple[int, ...]:
        """Numbers (from 1) of the motors that do not turn with their own joint alone."""
        return tuple(int(i) + 1 for i in np.flatnonzero((np.eye(self.n_joints) != self.B).any(axis=1)))

    @property
    def terms(self) -> tuple[str, ...]:
        """What differs from one motor per joint, such as ``6:5=1``."""
        off = np.argwhere(np.eye(self.n_joints) != self.B)
        return tuple(f"{i + 1}:{j + 1}={self.matrix[i][j]:g}" for i, j in off.tolist())

    def position_at_joints(self, after_gears: Array) -> Array:
        """Positions, velocities or accelerations of joints from those of motors after their gears, ``(samples, joints)``."""
        return np.asarray(np.linalg.solve(self.B, after_gears.T).T)

    def torque_at_joints(self, after_gears: Array) -> Array:
        """Torques of joints from those of motors after their gears, ``(samples, joints)``."""
        return np.asarray(after_gears @ self.B)

    def at_motors(self, position: ArrayLike) -> Array:
        """Positions, velocities or accelerations of the motors themselves, ``N B q``."""
        return np.asarray(np.asarray(position, dtype=np.float64) @ self.B.T * self.ratios)

    def torque_at_motors(self, torque: ArrayLike) -> Array:
        """Torques of the motors themselves, ``N^-1 B^-T tau``."""
        return np.asarray(np.linalg.solve(self.B.T, np.asarray(torque, dtype=np.float64).T).T / self.ratios)

    @property
    def ratios(self) -> Array:
        """The gear ratios, one where they are not known."""
        return np.ones(self.n_joints) if self.gear_ratios is None else np.array(self.gear_ratios)

    def kept(self, joints: Sequence[int], positions: Mapping[int, float] | None = None) -> Coupling:
        """The coupling of the joints that still move, by their place from 0; ``positions`` are those of the locked ones.

        A motor that turns with a locked joint is shifted by it, which a log measured at the motor does not tell.
        """
        B, places = self.B, list(joints)
        moved = [j for j, q in (positions or {}).items() if q != 0.0 and np.any(B[places, j])]
        if self.side == "motor" and moved:
            raise InputError(
                f"joint {moved[0] + 1} is locked away from zero, but its position also turns another joint's motor and the log is "
                "measured at the motors; lock it at 0, or give a log of the joints"
            )
        ratios = None if self.gear_ratios is None else tuple(self.gear_ratios[i] for i in places)
        return replace(self, matrix=tuple(map(tuple, B[np.ix_(places, places)].tolist())), gear_ratios=ratios)


def checked_coupling(rows: ArrayLike) -> tuple[tuple[float, ...], ...]:
    """Rows of a motor-to-joint matrix that can be inverted."""
    B = np.asarray(rows, dtype=np.float64)
    if B.ndim != 2 or B.shape[0] != B.shape[1]:
        raise InputError(f"coupling of motors to joints has shape {B.shape}, expected a square matrix")
    B = matrix("coupling of motors to joints", B, (None, None))
    rank = int(np.linalg.matrix_rank(B))
    if rank < len(B):
        raise InputError(f"coupling of {len(B)} motors to joints has rank {rank}, expected full rank")
    return tuple(map(tuple, B.tolist()))


def coupling_from_terms(
    terms: Sequence[str],
    joint_names: Sequence[str],
    where: str = "--coupling",
    *,
    start: Coupling | None = None,
) -> Coupling:
    """A coupling from terms ``motor:joint=value``, motors and joints by number (from 1) or name, beside a unit diagonal.

    Args:
        terms: such as ``("6:5=1",)``.
        joint_names: of the joints with one degree of freedom, in order; motors go by the names of their own joints.
        where: what messages call the terms.
        start: the coupling that the terms change; None for one motor per joint.

    Examples:
        >>> from dynid.model.coupling import coupling_from_terms
        >>> coupling_from_terms(["elbow:1=-0.5"], ["shoulder", "elbow"]).matrix
        ((1.0, 0.0), (-0.5, 1.0))
    """
    n = len(joint_names)
    B = np.eye(n) if start is None else start.B
    for term in terms:
        pair, _, text = str(term).rpartition("=")
        motor, _, joint = pair.partition(":")
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        if not np.isfinite(value) or not motor.strip() or not joint.strip():
            raise InputError(f"{where} is '{term}', expected MOTOR:JOINT=VALUE such as 6:5=1")
        B[_place(motor.strip(), joint_names, where), _place(joint.strip(), joint_names, where)] = value
    made = tuple(map(tuple, B.tolist()))
    return Coupling(made) if start is None else replace(start, matrix=made)


def _place(text: str, joint_names: Sequence[str], where: str) -> int:
    if text in joint_names:
        return list(joint_names).index(text)
    if text.isdecimal() and len(text) < 10 and 1 <= int(text) <= len(joint_names):
        return int(text) - 1
    raise InputError(
        f"{where} names joint '{text[:80]}', expected a number from 1 to {len(joint_names)} or one of {', '.join(joint_names)}"
    )


def coupling_from_table(table: Any, joint_names: Sequence[str], where: str) -> Coupling:
    """The coupling of a ``[coupling]`` table: terms such as ``"6:5" = 1``, ``matrix``, ``gear_ratios``, ``side``, ``effects``."""
    terms, rest = split_table(table, where)
    found = Coupling(tuple(map(tuple, rest.pop("matrix", np.eye(len(joint_names)).tolist()))), **rest)
    if found.n_joints != len(joint_names):
        raise InputError(f"{where} couples {found.n_joints} motors, the robot has {len(joint_names)} joints")
    return coupling_from_terms(terms, joint_names, where, start=found)


def split_table(table: Any, where: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Terms and the other entries of a ``[coupling]`` table, each of the type it must have."""
    if not isinstance(table, Mapping):
        raise InputError(f'{where} is {table!r}, expected a table such as "6:5" = 1')
    terms, rest = [], {}
    for key, value in table.items():
        if ":" in key:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"'{key}' in {where} is {value!r}, expected a number")
            terms.append(f"{key}={value!r}")
        elif key not in TABLE:
            raise UnknownNameError("key", key, ("MOTOR:JOINT", *TABLE), where)
        else:
            rest[key] = value
    for key in ("gear_ratios", "effects", "matrix"):
        if key in rest and not isinstance(rest[key], list | tuple):
            raise InputError(f"'{key}' in {where} is {rest[key]!r}, expected a list")
    try:
        return tuple(terms), read_fields(Coupling, rest)
    except ValueError as error:
        raise InputError(f"{where} has {error}") from None
