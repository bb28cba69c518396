"""How one option is written: a dataclass field that knows its flag, its meaning and its kind, and what is read from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, field, fields
from typing import Any

from dynid.run.kinds import Kind, Names, Numbers, Positions, Switch, Table


def option(default: Any, help: str, kind: Kind, *, flag: str = "", also: tuple[str, ...] = (), example: Any = None) -> Any:
    """One option: a dataclass field that knows its flag, other names of that flag, its meaning and its kind."""
    metadata = {"help": help, "kind": kind, "flag": flag, "also": also, "example": example}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def same_option(group: type, name: str, help: str = "", *, also: tuple[str, ...] = ()) -> Any:
    """An option of another group once more, for a verb that does not take the whole group; ``help`` in other words."""
    one = next(one for one in fields(group) if one.name == name)
    own = one.metadata
    return option(default_of(one), help or own["help"], own["kind"], flag=own["flag"], also=also, example=own["example"])


def effects_option(default: tuple[str, ...]) -> Any:
    """Which effects a model has, for every verb that asks it."""
    return option(default, "Joint effects in the model, or 'none' for rigid bodies only.", Names("NAMES"), example=())


def gravity_option() -> Any:
    """The direction of gravity, for every verb that reads a robot."""
    words = "Gravity in the base frame; default: that of the description."
    return option(None, words, Numbers("X,Y,Z", 3), example=(0.0, 0.0, -9.81))


def lock_option() -> Any:
    """Joints that are held, for every verb that reads a robot."""
    words = "Hold a joint and merge what it carries; repeat for several."
    return option({}, words, Positions("JOINT=VALUE"), example={"finger": 0.02})


def check_options(settings: Any) -> None:
    """Check every option of frozen settings against its kind, and keep the plain value; None passes where None is the default."""
    for one in fields(settings):
        value = getattr(settings, one.name)
        if value is not None or one.default is not None:
            object.__setattr__(settings, one.name, kind_of(one).check(value, one.name))


def options_of(*groups: type) -> Iterator[Field[Any]]:
    """The options of some groups, in order."""
    for group in groups:
        yield from fields(group)


def flag_of(one: Field[Any]) -> str:
    """The flag of an option."""
    return str(one.metadata["flag"]) or f"--{one.name.replace('_', '-')}"


def kind_of(one: Field[Any]) -> Kind:
    """What an option takes."""
    kind = one.metadata["kind"]
    assert isinstance(kind, Kind)
    return kind


def is_flag(one: Field[Any]) -> bool:
    """Whether an option can be given on the command line; tables cannot."""
    return not isinstance(kind_of(one), Table)


def default_of(one: Field[Any]) -> Any:
    """The default value of an option."""
    return one.default if one.default_factory is MISSING else one.default_factory()


def is_switch(one: Field[Any]) -> bool:
    """Whether an option is on or off."""
    return isinstance(kind_of(one), Switch)
