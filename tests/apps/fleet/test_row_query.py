"""Which rows of a store are meant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dynid.apps.fleet.entry import Entry
from dynid.apps.fleet.row_query import RowQuery, holds, parse_where
from dynid.errors import InputError
from small_fleet import Shop, make_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("shop"))


def test_where_is_taken_apart(shop: Shop) -> None:
    def days(where: str) -> list[int]:
        return [entry.key.day.day for _, own in RowQuery.of(where).by_robot(shop.store, light=True) for entry in own]

    assert days("robot=A") == [1, 2]
    assert days("day>=2026-03-02") == [2]
    assert days("robot=A and day<2026-03-02") == [1]
    assert days("tool='B'") == [2]
    assert parse_where("temperature>=20.5") == (("temperature", ">=", "20.5"),)
    entry: Entry = next(shop.store.entries(light=True))
    warm = replace(entry.key, condition={"temperature": "9"})
    assert not holds(parse_where("temperature>20")[0], warm)  # numbers are compared as numbers
    for text, message in (
        ("robot", "expected comparisons joined by 'and'"),
        ("__import__('os')", "expected comparisons joined by 'and'"),
        ("day>=monday", "the day of --where is 'monday'"),
        ("robot=Z", "has no robot 'Z', it has A"),
        ("tool=C", "has no row that matches"),
    ):
        with pytest.raises(InputError, match=message):
            days(text)
