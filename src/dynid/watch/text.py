"""Lines of text as columns: JSON objects, CSV under a header, or joint states as ``ros2 topic echo --csv`` prints them.

A line that cannot be read is a :class:`MalformedError`, which the caller counts; no line is fatal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dynid.recording.readers.columns import Slot

_ROS_HEAD = 3  # header.stamp.sec, header.stamp.nanosec, header.frame_id
_ROS_FIELDS = ("position", "velocity", "effort")
STAMP = ("header.stamp.sec", "header.stamp.nanosec")


class MalformedError(Exception):
    """A line that holds no row; the text says why, in a few words that can be counted."""


Pick = Callable[[str], list[float]]
"""From a line to the numbers that were asked for, in order."""


class LineForm(Protocol):
    """How lines are written."""

    @property
    def name(self) -> str:
        """Name of the form."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Column to the shape of one entry."""

    @property
    def element_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the elements of list columns."""

    def pick(self, slots: Sequence[Slot]) -> Pick:
        """A function that takes these numbers out of a line."""

    def headed(self, line: str) -> LineForm | None:
        """The form that follows where a line is a header and no row; None for a row."""


def form_of(line: str, header: Sequence[str] | None = None) -> LineForm:
    """The form of a stream by its first line; ``header`` names the columns of CSV without one."""
    text = line.strip()
    if text.startswith("{"):
        return JsonLines.of(_object(text))
    fields = [field.strip() for field in text.split(",")]
    if header is not None:
        return CsvLines(tuple(header))
    if _is_joint_state(fields):
        return RosLines(tuple(_ros_names(fields)))
    if len(fields) < 2 or any(_is_number(field) for field in fields) or not all(fields):
        raise MalformedError("no header")
    if len(set(fields)) != len(fields):
        raise MalformedError("header names a column twice")
    return CsvLines(tuple(fields))


@dataclass(frozen=True)
class CsvLines:
    """Numbers separated by commas, in the order of a header."""

    header: tuple[str, ...]
    name = "csv"

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return dict.fromkeys(self.header, ())

    @property
    def element_names(self) -> Mapping[str, Sequence[str]]:
        return {}

    def pick(self, slots: Sequence[Slot]) -> Pick:
        places, width = [self.header.index(slot.column) for slot in slots], len(self.header)

        def numbers(line: str) -> list[float]:
            fields = line.split(",")
            if len(fields) != width:
                raise MalformedError("wrong number of fields")
            try:
                return [_number(fields[place]) for place in places]
            except ValueError:
                raise MalformedError("not a number") from None

        return numbers

    def headed(self, line: str) -> LineForm | None:
        fields = tuple(field.strip() for field in line.split(","))
        return CsvLines(fields) if len(fields) == len(self.header) and set(fields) == set(self.header) else None


@dataclass(frozen=True)
class JsonLines:
    """One JSON object a line; objects inside it are columns with dots in their names, lists have one number per joint."""

    shapes: Mapping[str, tuple[int, ...]]
    element_names: Mapping[str, Sequence[str]]
    paths: Mapping[str, tuple[str, ...]]
    names: tuple[str, ...] = ()
    """Names of the elements of lists, where the objects carry them."""
    names_path: tuple[str, ...] = ()
    name = "json"

    @classmethod
    def of(cls, first: Mapping[str, Any]) -> JsonLines:
        shapes: dict[str, tuple[int, ...]] = {}
        paths: dict[str, tuple[str, ...]] = {}
        names: tuple[str, ...] = ()
        names_path: tuple[str, ...] = ()

        def walk(value: Mapping[str, Any], above: tuple[str, ...]) -> None:
            nonlocal names, names_path
            for key, entry in value.items():
                path = (*above, str(key))
                column = ".".join(path)
                if isinstance(entry, Mapping):
                    walk(entry, path)
                elif isinstance(entry, list) and entry and all(isinstance(one, str) for one in entry):
                    if key in ("name", "names", "joint_names"):
                        names, names_path = tuple(entry), path
                elif isinstance(entry, list):
                    shapes[column], paths[column] = (len(entry),), path
                elif entry is None or isinstance(entry, int | float):
                    shapes[column], paths[column] = (), path

        walk(first, ())
        elements = {column: names for column, shape in shapes.items() if names and shape == (len(names),)}
        return cls(shapes, elements, paths, names, names_path)

    def pick(self, slots: Sequence[Slot]) -> Pick:
        wanted = [(self.paths[slot.column], slot.element, self.shapes[slot.column]) for slot in slots]
        named = {self.paths[slot.column] for slot in slots if slot.column in self.element_names}

        def numbers(line: str) -> list[float]:
            record = _object(line)
            found = []
            try:
                place = self._places(record)
                for path, element, shape in wanted:
                    value = _at(record, path)
                    if element is not None:
                        if len(value) != (shape[0] if place is None or path not in named else len(place)):
                            raise MalformedError("wrong number of values")
                        value = value[element if place is None or path not in named else place[self.names[element]]]
                    if isinstance(value, bool) or not isinstance(value, int | float):
                        raise MalformedError("not a number")
                    found.append(value)
            except (KeyError, IndexError, TypeError):
                raise MalformedError("missing column") from None
            return found

        return numbers

    def _places(self, record: Mapping[str, Any]) -> dict[str, int] | None:
        """Where each name is in this object; None where all are where they were in the first."""
        if not self.names:
            return None
        given = _at(record, self.names_path)
        if tuple(given) == self.names:
            return None
        return {str(name): k for k, name in enumerate(given)}

    def headed(self, line: str) -> LineForm | None:
        return None


@dataclass(frozen=True)
class RosLines:
    """``sensor_msgs/JointState`` as ``ros2 topic echo --csv`` prints it.

    ``sec,nanosec,frame_id,name..,position..,velocity..,effort..`` on one line; a list that the publisher leaves empty is one empty
    field. Every line names its joints, whose order may change.
    """

    names: tuple[str, ...]
    name = "ros2"

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {STAMP[0]: (), STAMP[1]: (), **dict.fromkeys(_ROS_FIELDS, (len(self.names),))}

    @property
    def element_names(self) -> Mapping[str, Sequence[str]]:
        return dict.fromkeys(_ROS_FIELDS, self.names)

    def pick(self, slots: Sequence[Slot]) -> Pick:
        wanted = [(slot.column, None if slot.element is None else self.names[slot.element]) for slot in slots]

        def numbers(line: str) -> list[float]:
            fields = line.strip().split(",")
            if not _is_joint_state(fields):
                raise MalformedError("no joint state")
            names = _ros_names(fields)
            if len(set(names)) != len(names):
                raise MalformedError("joint named twice")
            lists = _ros_lists(fields[_ROS_HEAD + len(names) :], len(names))
            place = {joint: k for k, joint in enumerate(names)}
            try:
                return [
                    _number(fields[STAMP.index(column)]) if joint is None else float(lists[column][place[joint]])
                    for column, joint in wanted
                ]
            except KeyError:
                raise MalformedError("missing joint") from None
            except IndexError:
                raise MalformedError("missing column") from None
            except ValueError:
                raise MalformedError("not a number") from None

        return numbers

    def headed(self, line: str) -> LineForm | None:
        return None


def _is_joint_state(fields: Sequence[str]) -> bool:
    """Whether fields begin with seconds, nanoseconds, a frame and the name of a joint."""
    stamped = len(fields) > _ROS_HEAD + 1 and all(field.lstrip("-").isdigit() for field in fields[:2])
    return stamped and not _is_number(fields[2]) and bool(fields[3]) and not _is_number(fields[3])


def _ros_names(fields: Sequence[str]) -> list[str]:
    names = []
    for field in fields[_ROS_HEAD:]:
        if not field or _is_number(field):
            break
        names.append(field)
    return names


def _ros_lists(rest: Sequence[str], n: int) -> dict[str, Sequence[str]]:
    """Position, velocity and effort of ``n`` joints, each a list or one empty field."""
    lists: dict[str, Sequence[str]] = {}
    at = 0
    for field in _ROS_FIELDS:
        if at < len(rest) and rest[at] == "":
            lists[field], at = (), at + 1
        else:
            lists[field], at = rest[at : at + n], at + n
    if at != len(rest):
        raise MalformedError("wrong number of fields")
    return lists


def _at(record: Any, path: Sequence[str]) -> Any:
    for key in path:
        record = record[key]
    return record


def _object(line: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise MalformedError("no JSON") from None
    if not isinstance(found, dict):
        raise MalformedError("no JSON object")
    return found


def _number(text: str) -> float:
    """A number; a whole one stays exact, as stamps in nanoseconds must."""
    return int(text) if text.isdigit() else float(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
