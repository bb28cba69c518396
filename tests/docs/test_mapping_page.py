"""docs/mapping.md has an example of every key, and every example is read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dynid.io.logs.layout import KEYS, read_mapping
from dynid.io.logs.units import UNITS

PAGE = (Path(__file__).parents[2] / "docs" / "mapping.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| `(.+?)` \|", PAGE, re.MULTILINE))


def test_every_key_has_an_example_and_nothing_else_has() -> None:
    assert set(ROWS) == set(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_its_example_is_read(key: str) -> None:
    table = tomllib.loads(ROWS[key])
    assert list(table) == [key]
    read_mapping(table)


def test_the_whole_example_is_read() -> None:
    (text,) = re.findall(r"```toml\n(.+?)```", PAGE, re.DOTALL)
    assert set(read_mapping(tomllib.loads(text)).units) == {"time", "position", "current"}


def test_every_unit_is_named() -> None:
    line = PAGE.split("Units of time")[1]
    for quantity in ("time", "position", "torque", "current", "force", "moment"):
        for unit in UNITS[quantity]:
            assert re.search(rf"\b{unit}\b", line), unit
