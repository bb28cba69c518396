"""Which joints the columns of a log can belong to, and in which order numbered columns count them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from dynid.errors import InputError, UnknownNameError
from dynid.naming import listed


@runtime_checkable
class HasJoints(Protocol):
    """Anything that names its moving joints in order, such as a robot."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints."""


@runtime_checkable
class HasLockedJoints(HasJoints, Protocol):
    """A robot that knows which of its joints are locked, and the order of all joints before that."""

    @property
    def described_joints(self) -> tuple[str, ...]:
        """Names of all joints of the description, in order."""

    @property
    def locked(self) -> Mapping[str, float]:
        """Locked joints, each with its position."""


class MissingJointsError(InputError):
    """A log that names its joints lacks some of the robot's; carries which are ``present`` and which ``missing``.

    ``misspelt`` gives columns that are not used and the missing joint whose name is close to theirs.
    """

    def __init__(
        self,
        where: str,
        present: Sequence[str],
        missing: Sequence[str],
        *,
        locked: Collection[str] = (),
        misspelt: Mapping[str, str] | None = None,
    ) -> None:
        self.present = tuple(present)
        self.missing = tuple(missing)
        self.misspelt = dict(misspelt or {})
        robot = len(self.present) + len(self.missing)
        hints = "".join(
            f"; column '{column}' is not used: did you mean '{joint}'?" for column, joint in self.misspelt.items()
        )
        super().__init__(
            f"{where}: log has {len(self.present)} position columns, robot has {robot} joints{besides(locked)}; "
            f"missing: {listed(self.missing)}{hints}"
        )

    def note(self, what: str) -> str:
        """That the joints are held, where what names its columns may lack some."""
        return (
            f"{what} lacks {len(self.missing)} of the robot's joints ({listed(self.missing)}): locked at neutral and merged"
        )


def besides(locked: Collection[str]) -> str:
    """Locked joints, as an addition to a number of joints in a message."""
    return f" besides the locked {', '.join(locked)}" if locked else ""


@dataclass(frozen=True)
class LogJoints:
    """The joints of a log.

    ``names`` are the joints to read, in the robot's order. Numbered columns stand for the joints in ``numbered``, in that
    order; locked ones among them are not read. ``described`` are all joints of the robot. ``given`` is true where the
    user named the joints of the columns.
    """

    names: tuple[str, ...]
    numbered: tuple[str, ...]
    described: tuple[str, ...]
    locked: Mapping[str, float] = field(default_factory=dict)
    given: bool = False
    branched: bool = False

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """Place of each joint to read among the numbered ones."""
        return tuple(self.numbered.index(name) for name in self.names)

    def in_order(self, values: Any) -> Any:
        """Values per joint, as a sequence or a table by name, for the joints to read alone.

        A sequence may be over the joints to read, over those that numbered columns stand for, or over all joints of the
        robot. Any other length is returned as it is, for the caller to refuse.
        """
        if isinstance(values, Mapping):
            return {name: value for name, value in values.items() if name in self.names or name not in self.described}
        if values is None or isinstance(values, str):
            return values
        if len(values) == len(self.numbered):
            return [values[k] for k in self.kept]
        if len(values) == len(self.described):
            return [values[self.described.index(name)] for name in self.names]
        return values

    def order_note(self) -> str | None:
        """Which joint each numbered column is taken for, where that is not obvious: trees, names with other numbers."""
        ends = [re.search(r"(\d{1,9})\D*$", name) for name in self.names]
        digits = [int(found[1]) for found in ends if found is not None]
        mixed = len(digits) == len(self.names) and digits != sorted(digits)
        if not (self.branched or mixed or self.given):
            return None
        return f"numbered columns are taken for the joints in this order: {', '.join(self.numbered if self.given else self.names)}"


def joints_of(robot: HasJoints | Sequence[str], given: Sequence[str] | None, needed: bool = True) -> LogJoints:
    """The joints of a robot, or of a sequence of names; ``given`` are those of the log's columns, in order.

    Where joints are not ``needed``, as in the log of a sensor with its own motion, there may be none.
    """
    names = tuple(robot.joint_names if isinstance(robot, HasJoints) else robot)
    if isinstance(robot, str) or (needed and not names):
        raise InputError(f"robot is {robot!r}, expected a robot with joints or a sequence of joint names")
    described, locked = names, dict[str, float]()
    if isinstance(robot, HasLockedJoints):
        described, locked = tuple(robot.described_joints), dict(robot.locked)
    parents = [joint.parent for joint in getattr(robot, "joints", ())]
    branched = parents != list(range(-1, len(parents) - 1))
    if given is None:
        return LogJoints(names, described, described, locked, branched=branched)
    for name in given:
        if name not in described:
            raise UnknownNameError("joint", name, described, "the joints of the columns")
    chosen = tuple(name for name in names if name in given)
    if not chosen:
        raise InputError(
            f"joints names only locked joints ({', '.join(given)}), expected one that moves: {', '.join(names)}"
        )
    return LogJoints(chosen, tuple(given), described, locked, given=True, branched=branched)
