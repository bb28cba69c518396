"""Lines of text as columns: JSON objects, CSV under a header, or joint states as ``ros2 topic echo --csv`` prints them.

A line that cannot be read is a :class:`MalformedError`, which the caller counts; no line is fatal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from dynid.io.logs.columns import Slot

_ROS_HEAD = 3  # header.stamp.sec, header.stamp.nanosec, header.frame_id
_ROS_FIELDS = ("position", "velocity", "effort")
_NUMBERS = frozenset({int, float})
_DECODER = json.JSONDecoder()
STAMP = ("header.stamp.sec", "header.stamp.nanosec")


class MalformedError(Exception):
    """A line that holds no row; the text says why, in a few words that can be counted."""


Pick = Callable[[str], list[float]]
"""From a line to the numbers that were asked for, in order."""
_Wanted = tuple[tuple[str, ...], list[int], bool, tuple[int, ...]]
"""Path of a column, elements of it, whether these have names, shape of the column."""


class LineForm:
    """How lines are written.

    Args:
        name: of the form.
        shapes: column to the shape of one entry.
        element_names: names of the elements of list columns.
    """

    def __init__(
        self, name: str, shapes: Mapping[str, tuple[int, ...]], element_names: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.name, self.shapes, self.element_names = name, shapes, element_names or {}

    def pick(self, slots: Sequence[Slot]) -> Pick:
        """A function that takes these numbers out of a line."""
        raise NotImplementedError

    def headed(self, line: str) -> LineForm | None:
        """The form that follows where a line is a header and no row; None for a row."""
        return None


def form_of(line: str, header: Sequence[str] | None = None) -> LineForm:
    """The form of a stream by its first line; ``header`` names the columns of CSV without one."""
    text = line.strip()
    if text.startswith("{"):
        return JsonLines(_object(text))
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


class CsvLines(LineForm):
    """Numbers separated by commas, in the order of a header."""

    def __init__(self, header: tuple[str, ...]) -> None:
        super().__init__("csv", dict.fromkeys(header, ()))
        self.header = header

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


class JsonLines(LineForm):
    """One JSON object a line; objects inside it are columns with dots in their names, lists have one number per joint."""

    def __init__(self, first: Mapping[str, Any]) -> None:
        self.paths: dict[str, tuple[str, ...]] = {}
        self.names: tuple[str, ...] = ()
        """Names of the elements of lists, where the objects carry them."""
        shapes: dict[str, tuple[int, ...]] = {}
        waiting: list[tuple[tuple[str, ...], Any]] = [((str(key),), entry) for key, entry in first.items()]
        while waiting:
            path, entry = waiting.pop(0)
            if isinstance(entry, Mapping):
                waiting = [((*path, str(key)), inner) for key, inner in entry.items()] + waiting
            elif isinstance(entry, list) and entry and all(isinstance(one, str) for one in entry):
                if path[-1] in ("name", "names", "joint_names"):
                    self.names, self._names_path = tuple(entry), path
            elif entry is None or isinstance(entry, int | float | list):
                shapes[".".join(path)], self.paths[".".join(path)] = (len(entry),) if isinstance(entry, list) else (), path
        elements = {column: self.names for column, shape in shapes.items() if self.names and shape == (len(self.names),)}
        super().__init__("json", shapes, elements)

    def pick(self, slots: Sequence[Slot]) -> Pick:
        wanted = []
        for column, own in groupby(slots, lambda slot: slot.column):
            elements = [slot.element for slot in own if slot.element is not None]
            wanted.append((self.paths[column], elements, column in self.element_names, self.shapes[column]))
        return partial(self.numbers, wanted)

    def numbers(self, wanted: Sequence[_Wanted], line: str) -> list[float]:
        """Of one line, the numbers of some elements of columns, or the column where it is a number by itself."""
        record, found = _object(line), list[Any]()
        try:
            place = self._places(record)
            for path, elements, named, shape in wanted:
                value = record[path[0]] if len(path) == 1 else _at(record, path)
                if not elements:
                    found.append(value)
                elif len(value) != (len(place) if named and place is not None else shape[0]):
                    raise MalformedError("wrong number of values")
                elif named and place is not None:
                    found += [value[place[self.names[k]]] for k in elements]
                else:
                    found += [value[k] for k in elements]
        except (KeyError, IndexError, TypeError):
            raise MalformedError("missing column") from None
        if not _NUMBERS.issuperset(map(type, found)):
            raise MalformedError("not a number")
        return found

    def _places(self, record: Mapping[str, Any]) -> dict[str, int] | None:
        """Where each name is in this object; None where all are where they were in the first."""
        if not self.names:
            return None
        given = _at(record, self._names_path)
        if tuple(given) == self.names:
            return None
        return {str(name): k for k, name in enumerate(given)}


class RosLines(LineForm):
    """``sensor_msgs/JointState`` as ``ros2 topic echo --csv`` prints it.

    ``sec,nanosec,frame_id,name..,position..,velocity..,effort..`` on one line; a list that the publisher leaves empty is one empty
    field. Every line names its joints, whose order may change.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        shapes = {STAMP[0]: (), STAMP[1]: (), **dict.fromkeys(_ROS_FIELDS, (len(names),))}
        super().__init__("ros2", shapes, dict.fromkeys(_ROS_FIELDS, names))
        self.names = names

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
        found = _DECODER.decode(line)
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
